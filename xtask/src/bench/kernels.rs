//! Products against llama.cpp's prebuilt CPU library for AVX2, plain and repacked, against candle built
//! for this CPU, and two limits measured in the same run: the rate of byte multiplications from registers,
//! and a plain read of memory. All take turns; quantizing the activations is part of everyone's time.

use super::median;
use crate::interop::Tools;
use crate::util::{Outcome, capture, cargo, root, run as run_command};
use ggml_blocks::{FORMATS, Kind};
use ggml_kernels::{GgmlType, Kernels, Packed, Rhs, Scratch};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

/// Outputs and inputs.
const SIDE: usize = 4096;
/// Rows, and whether the weights come from memory: then there are as many copies as fill 512 MiB.
const CASES: [(usize, bool); 6] =
    [(1, true), (1, false), (4, false), (16, false), (128, false), (512, false)];
const FROM_MEMORY: usize = 512 << 20;
const ROUNDS: usize = 9;
/// From memory a product takes a millisecond or so: more rounds, that a disturbance does not decide.
const ROUNDS_FROM_MEMORY: usize = 27;
/// llama.cpp plain and repacked, candle.
const PEERS: usize = 3;
const LIBRARY: &str = "libggml-cpu-haswell.so";

/// Prints a line per type, case and number of threads.
pub(super) fn run(only: &[&str]) -> Outcome {
    let (rows, only): (Vec<&str>, Vec<&str>) = only.iter().partition(|o| o.starts_with("m="));
    let tools = Tools::get()?;
    let folder = root().join("target/bench");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let programs =
        Programs { tools, limits: limits_program(&folder)?, candle: candle_program(&folder)?, folder };
    let kernels = Kernels::best();
    println!(
        "level {}, n = k = {SIDE}, medians; GOP/s, from memory GB/s of the file's form",
        kernels.level()
    );
    println!(
        "{:<7} {:>4} {:>5} {:>3} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6} {:>8} {:>6}",
        "type", "m", "from", "thr", "ggml", "repack", "candle", "ours", "packed", "ratio", "limit", "of it"
    );
    let blocks = FORMATS.iter().filter(|f| f.info().kind == Kind::Block);
    for format in blocks.filter(|f| only.is_empty() || only.iter().any(|o| o.eq_ignore_ascii_case(f.name())))
    {
        let (name, ty) = (format.name(), format.info().id);
        let bytes = weights(ty, SIDE, SIDE)?;
        for threads in [1, 2] {
            let pool =
                rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|e| e.to_string())?;
            for (m, memory) in CASES
                .into_iter()
                .filter(|(m, _)| rows.is_empty() || rows.contains(&format!("m={m}").as_str()))
            {
                let case = Case { name, ty, bytes: &bytes, m, memory, threads };
                pool.install(|| case.run(&programs, kernels))?;
            }
        }
    }
    Ok(())
}

/// Encoded noise: `n` rows, a multiple of 64.
pub(super) fn weights(ty: GgmlType, n: usize, k: usize) -> Outcome<Vec<u8>> {
    let format = ggml_blocks::Format::of(ty).ok_or("no such format")?;
    let rows = 64;
    let mut bytes = vec![0; rows * format.row_bytes(k).map_err(|e| e.to_string())?];
    let importance = vec![1.0; k];
    format
        .encode_rows(&noise(rows * k), k, Some(&importance), &mut bytes)
        .map_err(|e| format!("{}: {e}", format.name()))?;
    Ok(bytes.repeat(n / rows))
}

pub(super) fn noise(count: usize) -> Vec<f32> {
    let mut state = 1u64;
    let mut unit = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 40) as f32 / 16_777_216.0
    };
    (0..count).map(|_| unit() + unit() + unit() - 1.5).collect()
}

/// What runs beside us, and the folder where it is told what to multiply.
struct Programs {
    tools: Tools,
    limits: PathBuf,
    candle: PathBuf,
    folder: PathBuf,
}

struct Case<'a> {
    name: &'a str,
    ty: GgmlType,
    bytes: &'a [u8],
    m: usize,
    memory: bool,
    threads: usize,
}

impl Case<'_> {
    fn run(&self, programs: &Programs, kernels: Kernels) -> Outcome {
        let copies = if self.memory { FROM_MEMORY.div_ceil(self.bytes.len()) } else { 1 };
        let x = noise(self.m * SIDE);
        let mut y = vec![0.0; self.m * SIDE];
        let mut scratch = Scratch::new();
        let text = |e: ggml_kernels::Error| e.to_string();

        let held: Vec<Vec<u8>> = (0..copies).map(|_| self.bytes.to_vec()).collect();
        let plain: Vec<Rhs<'_>> =
            held.iter().map(|b| Rhs::new(self.ty, b, SIDE, SIDE)).collect::<Result<_, _>>().map_err(text)?;
        let packed: Vec<Packed> = match kernels.packed_size(&plain[0]) {
            Some(_) => plain.iter().map(|w| kernels.pack(w)).collect::<Result<_, _>>().map_err(text)?,
            None => Vec::new(),
        };
        let mut peers = self.peers(programs, copies, &x)?;

        kernels.matmul(&x, &plain[0], &mut y, &mut scratch).map_err(text)?;
        for peer in peers.iter_mut().flatten() {
            peer.check(&y, &programs.folder.join("result"))?;
        }
        let (mut ours, mut theirs) = ([(); 2].map(|()| Vec::new()), [(); PEERS].map(|()| Vec::new()));
        let mut best_limits = [0.0f64; 2];
        for round in 0..if self.memory { ROUNDS_FROM_MEMORY } else { ROUNDS } {
            for (peer, times) in peers.iter_mut().zip(&mut theirs) {
                if let Some(peer) = peer {
                    self.measure(times, || peer.once())?;
                }
            }
            // From memory, every copy is read before one is read again.
            let at = round % copies;
            self.measure(&mut ours[0], || {
                let start = Instant::now();
                kernels.matmul(&x, &plain[at], &mut y, &mut scratch).map_err(text)?;
                Ok(start.elapsed().as_nanos() as f64)
            })?;
            if let Some(packed) = packed.get(at) {
                self.measure(&mut ours[1], || {
                    let start = Instant::now();
                    packed.matmul(&x, &mut y, &mut scratch).map_err(text)?;
                    Ok(start.elapsed().as_nanos() as f64)
                })?;
            }
            if round % 4 == 0 {
                let found = capture(Command::new(&programs.limits).arg("64"))?;
                let mut numbers = found.split_whitespace().filter_map(|n| n.parse::<f64>().ok());
                for best in &mut best_limits {
                    *best = best.max(numbers.next().unwrap_or(0.0));
                }
            }
        }
        self.print(ours, theirs, best_limits);
        Ok(())
    }

    /// Starts llama.cpp's two ways and candle.
    fn peers(&self, programs: &Programs, copies: usize, x: &[f32]) -> Outcome<[Option<Peer>; PEERS]> {
        let Programs { tools, folder, .. } = programs;
        let files = [folder.join("weights"), folder.join("activations")];
        for (path, bytes) in files.iter().zip([self.bytes, &crate::oracle::le_bytes(x)]) {
            std::fs::write(path, bytes).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        let numbers = |these: &[usize]| these.iter().map(usize::to_string).collect::<Vec<_>>();
        let shape = [self.ty.0 as usize, SIDE, SIDE, self.m];
        let ggml = |repack: usize| {
            let mut python = tools.python("kernels.py");
            python.arg(tools.libraries()).arg(LIBRARY).args(&files).args(numbers(&shape));
            python.args(numbers(&[self.threads, copies, repack]));
            Peer::start("kernels.py", &mut python)
        };
        let mut candle = Command::new(&programs.candle);
        candle.args(&files).args(numbers(&shape)).args(numbers(&[copies]));
        candle.env("RAYON_NUM_THREADS", self.threads.to_string());
        Ok([ggml(0)?, ggml(1)?, Peer::start("candle-peer", &mut candle)?])
    }

    /// One side's turn. Where few rows meet weights that a cache holds, the other sides have driven them out:
    /// the first run, untimed, brings them back.
    fn measure(&self, times: &mut Vec<f64>, mut run: impl FnMut() -> Outcome<f64>) -> Outcome {
        let cached = !self.memory && self.m < 16;
        if cached {
            run()?;
        }
        for _ in 0..if cached { 3 } else { 1 } {
            times.push(run()?);
        }
        Ok(())
    }

    fn print(&self, ours: [Vec<f64>; 2], theirs: [Vec<f64>; PEERS], limits: [f64; 2]) {
        let work = if self.memory { self.bytes.len() as f64 } else { 2.0 * (self.m * SIDE * SIDE) as f64 };
        let speed = |times: Vec<f64>| if times.is_empty() { 0.0 } else { work / median(times) };
        let [plain, packed] = ours.map(speed);
        let [ggml, repack, candle] = theirs.map(speed);
        let best = if packed > 0.0 { packed } else { plain };
        // The limit of multiplications is one thread's, that of memory is shared.
        let limit = if self.memory { limits[1] } else { limits[0] * self.threads as f64 };
        println!(
            "{:<7} {:>4} {:>5} {:>3} {ggml:>8.1} {repack:>8.1} {candle:>8.1} {plain:>8.1} {packed:>8.1} {:>6.2} {limit:>8.1} {:>5.0}%",
            self.name,
            self.m,
            if self.memory { "DRAM" } else { "cache" },
            self.threads,
            best / ggml.max(repack).max(candle),
            100.0 * best / limit,
        );
    }
}

/// A process that multiplies with a peer's library.
struct Peer {
    name: &'static str,
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Peer {
    /// `None` where the library has no such way.
    fn start(name: &'static str, command: &mut Command) -> Outcome<Option<Self>> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("{name}: {e}"))?;
        let (to, from) = child.stdin.take().zip(child.stdout.take()).ok_or(format!("{name} has no pipes"))?;
        let mut peer = Self { name, child, to, from: BufReader::new(from) };
        match peer.line()?.as_str() {
            "ready" => {
                peer.once()?;
                Ok(Some(peer))
            }
            "none" => Ok(None),
            other => Err(format!("{name} said `{other}`")),
        }
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        self.from.read_line(&mut line).map_err(|e| format!("{}: {e}", self.name))?;
        Ok(line.trim().to_owned())
    }

    fn ask(&mut self, request: &str) -> Outcome<f64> {
        writeln!(self.to, "{request}").map_err(|e| format!("{}: {e}", self.name))?;
        self.line()?.parse().map_err(|_| format!("{} gave no time", self.name))
    }

    /// Nanoseconds of one product.
    fn once(&mut self) -> Outcome<f64> {
        self.ask("run")
    }

    /// Compares its outputs with ours: other roundings, the same product.
    fn check(&mut self, y: &[f32], path: &Path) -> Outcome {
        self.ask(&format!("result {}", path.display()))?;
        let bytes = crate::util::read(path)?;
        let theirs: Vec<f32> = bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        let size = y.iter().map(|y| f64::from(*y).powi(2)).sum::<f64>();
        let off = y.iter().zip(&theirs).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        let fits = theirs.len() == y.len() && off <= size * 1e-4;
        if fits { Ok(()) } else { Err(format!("{}: another product: {off:e} of {size:e}", self.name)) }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It waits for input for ever, and no one is left to hear of a failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn limits_program(folder: &Path) -> Outcome<PathBuf> {
    let program = folder.join("limits");
    let mut cc = Command::new("cc");
    cc.args(["-O3", "-march=haswell", "-o"]).arg(&program).arg(root().join("xtask/oracle/limits.c"));
    run_command(&mut cc)?;
    Ok(program)
}

/// Builds candle with what this CPU has: it chooses its instructions when it is compiled.
fn candle_program(folder: &Path) -> Outcome<PathBuf> {
    let target = folder.join("candle");
    let mut build = cargo();
    build.args(["build", "--release", "--quiet", "--locked", "--target-dir"]).arg(&target);
    build.current_dir(root().join("xtask/peers/candle")).env("RUSTFLAGS", "-Ctarget-cpu=native");
    run_command(&mut build)?;
    Ok(target.join("release/candle-peer"))
}
