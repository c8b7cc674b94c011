//! ggml itself, as truth: its C sources come from a registry package, the system C compiler makes
//! a small program of them, and this module talks to that program.

use crate::util::{Outcome, capture, cargo, read, root, sha256};
use gguf_format::GgmlType;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The package that bundles ggml's sources.
pub(crate) const PACKAGE: &str = "llama-cpp-sys-2";
/// The version that is the truth.
pub(crate) const VERSION: &str = "0.1.161";
/// What the codecs are compiled from, relative to the package.
pub(crate) const SOURCES: &[&str] = &[
    "llama.cpp/ggml/include/ggml.h",
    "llama.cpp/ggml/src/ggml-common.h",
    "llama.cpp/ggml/src/ggml-impl.h",
    "llama.cpp/ggml/src/ggml-quants.c",
    "llama.cpp/ggml/src/ggml-quants.h",
    "llama.cpp/ggml/src/ggml.c",
];
const COMMON_FLAGS: &[&str] = &[
    "-std=gnu11",
    "-DNDEBUG",
    "-D_GNU_SOURCE",
    "-w",
    "-ffunction-sections",
    "-fdata-sections",
    "-Wl,--gc-sections",
];

/// One way to compile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config {
    pub(crate) name: &'static str,
    pub(crate) flags: &'static [&'static str],
}

/// The first is the truth, the others must agree with it.
pub(crate) const CONFIGS: [Config; 3] = [
    Config { name: "baseline", flags: &["-O3"] },
    Config { name: "native", flags: &["-O3", "-march=native", "-ffp-contract=off"] },
    Config { name: "o1", flags: &["-O1"] },
];
/// Fuses multiply and add. Only shows which inputs would notice a fused operation.
pub(crate) const CONTRACTED: Config =
    Config { name: "contracted", flags: &["-O3", "-march=native", "-ffp-contract=fast"] };

/// The sources of one version of the package.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    folder: PathBuf,
    version: String,
}

impl Source {
    /// Has cargo fetch the package through a manifest of its own, outside the workspace.
    pub(crate) fn fetch(version: &str) -> Outcome<Self> {
        let own = root().join("target/oracle").join(version);
        std::fs::create_dir_all(own.join("src")).map_err(|e| format!("{}: {e}", own.display()))?;
        let manifest = format!(
            "[package]\nname = \"oracle\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
             [workspace]\n\n[dependencies]\n{PACKAGE} = \"={version}\"\n"
        );
        write(&own.join("Cargo.toml"), manifest.as_bytes())?;
        write(&own.join("src/lib.rs"), b"")?;
        let path = own.join("Cargo.toml");
        let mut command = cargo();
        command.args(["metadata", "--format-version", "1", "--manifest-path"]).arg(&path);
        let metadata: serde_json::Value =
            serde_json::from_str(&capture(&mut command)?).map_err(|e| format!("cargo metadata: {e}"))?;
        let manifest = metadata["packages"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|p| p["name"] == PACKAGE)
            .and_then(|p| p["manifest_path"].as_str())
            .ok_or(format!("cargo fetched no {PACKAGE}"))?;
        let folder = Path::new(manifest).parent().unwrap_or(Path::new("/")).to_owned();
        Ok(Self { folder, version: version.to_owned() })
    }

    /// A file or folder of the package.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// One file of the package.
    pub(crate) fn read(&self, name: &str) -> Outcome<Vec<u8>> {
        read(&self.folder.join(name))
    }

    /// ggml's own version number.
    pub(crate) fn ggml_version(&self) -> Outcome<String> {
        let text = read(&self.folder.join("llama.cpp/ggml/CMakeLists.txt"))?;
        let text = String::from_utf8_lossy(&text);
        let number = |part: &str| {
            let from = text.split_once(&format!("set(GGML_VERSION_{part} "))?.1;
            from.split_once(')').map(|(n, _)| n.to_owned())
        };
        let parts: Vec<String> = ["MAJOR", "MINOR", "PATCH"].iter().filter_map(|p| number(p)).collect();
        Ok(parts.join("."))
    }

    /// The sha256 of each source file.
    pub(crate) fn hashes(&self) -> Outcome<Vec<(&'static str, String)>> {
        SOURCES.iter().map(|name| Ok((*name, sha256(&read(&self.folder.join(name))?)))).collect()
    }

    /// Compiles one configuration, or finds it compiled, and starts it.
    pub(crate) fn start(&self, config: Config) -> Outcome<Oracle> {
        let harness = root().join("xtask/oracle/harness.c");
        let mut key = format!("{} {:?} {:?}", compiler()?, config, COMMON_FLAGS);
        key += &sha256(&read(&harness)?);
        for (_, hash) in self.hashes()? {
            key += &hash;
        }
        let folder = root().join("target/oracle").join(&self.version).join(&sha256(key.as_bytes())[..16]);
        let program = folder.join(format!("harness-{}", config.name));
        if !program.is_file() {
            std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            // Not in the package: cmake would make it.
            write(&folder.join("ggml-version.h"), b"#define GGML_VERSION \"\"\n#define GGML_COMMIT \"\"\n")?;
            let ggml = self.folder.join("llama.cpp/ggml");
            let partial = folder.join("partial");
            let mut cc = Command::new("cc");
            cc.args(config.flags).args(COMMON_FLAGS);
            for include in [folder.as_path(), &ggml.join("include"), &ggml.join("src")] {
                cc.arg("-I").arg(include);
            }
            cc.arg(ggml.join("src/ggml.c")).arg(ggml.join("src/ggml-quants.c")).arg(&harness);
            cc.arg("-o").arg(&partial).args(["-lm", "-lpthread"]);
            crate::util::run(&mut cc)?;
            std::fs::rename(&partial, &program).map_err(|e| format!("{}: {e}", program.display()))?;
        }
        Oracle::start(&program)
    }
}

/// The compiler's name and version.
pub(crate) fn compiler() -> Outcome<String> {
    let text = capture(Command::new("cc").arg("--version"))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn write(path: &Path, bytes: &[u8]) -> Outcome {
    std::fs::write(path, bytes).map_err(|e| format!("{}: {e}", path.display()))
}

/// A running harness.
#[derive(Debug)]
pub(crate) struct Oracle {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
}

impl Oracle {
    fn start(program: &Path) -> Outcome<Self> {
        // What ggml has to say about a failed search would hide our own output.
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        let (to, from) = child.stdin.take().zip(child.stdout.take()).ok_or("the harness has no pipes")?;
        Ok(Self { child, to, from })
    }

    /// `ggml_quantize_chunk`, or the reference function of an activation format. The inner error
    /// is ggml's message when it aborts.
    pub(crate) fn quantize(
        &mut self,
        ty: GgmlType,
        values: &[f32],
        row_len: usize,
        importance: Option<&[f32]>,
    ) -> Outcome<Result<Vec<u8>, String>> {
        let mut payload = le_bytes(values);
        payload.extend(importance.map(|w| le_bytes(&w[..row_len])).unwrap_or_default());
        self.ask(b'q', ty, values.len() / row_len, row_len, importance.is_some(), &payload)
    }

    /// `to_float` of a type, over one row.
    pub(crate) fn dequantize(&mut self, ty: GgmlType, bytes: &[u8], weights: usize) -> Outcome<Vec<f32>> {
        let reply = self.ask(b'd', ty, 1, weights, false, bytes)??;
        Ok(reply.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
    }

    /// Does the last request once more and gives the nanoseconds it took.
    pub(crate) fn again(&mut self) -> Outcome<u64> {
        let reply = self.ask(b't', GgmlType(0), 0, 0, false, &[])??;
        reply.try_into().map(u64::from_le_bytes).map_err(|_| "the harness gave no time".to_owned())
    }

    fn ask(
        &mut self,
        operation: u8,
        ty: GgmlType,
        rows: usize,
        row_len: usize,
        importance: bool,
        payload: &[u8],
    ) -> Outcome<Result<Vec<u8>, String>> {
        let mut request = Vec::with_capacity(32);
        request.extend(u32::from(operation).to_le_bytes());
        request.extend(ty.0.to_le_bytes());
        request.extend((rows as u64).to_le_bytes());
        request.extend((row_len as u64).to_le_bytes());
        request.extend(u32::from(importance).to_le_bytes());
        request.extend(0u32.to_le_bytes());
        let mut exchange = || {
            self.to.write_all(&request)?;
            self.to.write_all(payload)?;
            let mut head = [0; 16];
            self.from.read_exact(&mut head)?;
            let [status, _, low, high] =
                [0, 4, 8, 12].map(|i| u32::from_le_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]));
            let mut body = vec![0; (u64::from(high) << 32 | u64::from(low)) as usize];
            self.from.read_exact(&mut body)?;
            Ok((status, body))
        };
        match exchange() {
            Ok((0, body)) => Ok(Ok(body)),
            Ok((_, message)) => Ok(Err(String::from_utf8_lossy(&message).into_owned())),
            Err::<_, std::io::Error>(e) => Err(format!("the harness stopped while encoding {ty}: {e}")),
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // It may wait for input for ever, and no one is left to hear of a failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Little-endian bytes of f32 values.
pub(crate) fn le_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
