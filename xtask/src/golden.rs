//! `cargo xtask golden`: makes `golden/`, the bytes that ggml gives. `--check` makes them again and
//! compares; `--against VERSION` asks another version of ggml; `ptqtp` makes the trit-planes alone.
//! How: `docs/golden.md`.

mod against;
mod contraction;
mod decode;
mod encode;
mod inputs;
mod manifest;
mod minilm;
mod planes;
mod rng;

use crate::oracle::{CONFIGS, CONTRACTED, Oracle, Source, VERSION};
use crate::util::{Outcome, read, root, sha256};
use contraction::Origins;
use gguf_format::{GgmlType, Importance, Kind, TYPES, TypeInfo};
use std::collections::BTreeMap;
use std::time::Instant;

/// The folders of `golden/` that this task makes, besides `MANIFEST`.
const OURS: [&str; 2] = ["blocks", "inputs"];

/// Every file of them: path below `golden/`, contents.
type Files = BTreeMap<String, Vec<u8>>;

/// The formats that have goldens: every block format, and the two 16-bit floats.
pub(crate) fn formats() -> impl Iterator<Item = &'static TypeInfo> {
    TYPES.iter().filter(|t| {
        matches!(t.kind, Kind::Block | Kind::Activation) || t.id == GgmlType::F16 || t.id == GgmlType::BF16
    })
}

/// A format's folder below `golden/`.
pub(crate) fn folder(info: &TypeInfo) -> String {
    format!("blocks/{}", info.name.to_lowercase())
}

/// The running builds of ggml.
struct Oracles {
    agreeing: [Oracle; CONFIGS.len()],
    contracted: Oracle,
}

/// Asks several builds at the same time.
fn side_by_side<T: Send, const N: usize>(
    oracles: [&mut Oracle; N],
    ask: impl Fn(&mut Oracle) -> Outcome<T> + Sync,
) -> Outcome<[T; N]> {
    let replies = std::thread::scope(|scope| {
        let threads = oracles.map(|oracle| scope.spawn(|| ask(oracle)));
        threads.map(|t| t.join().unwrap_or_else(|_| Err("a thread panicked".to_owned())))
    });
    let replies: Vec<T> = replies.into_iter().collect::<Outcome<_>>()?;
    replies.try_into().map_err(|_| "a build gave no answer".to_owned())
}

/// Dispatches on the arguments.
pub(crate) fn run(args: &[String]) -> Outcome {
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => write(),
        ["--check"] => check(),
        ["ptqtp"] => planes::write(),
        ["--against", version] => against::run(version),
        _ => Err("usage: golden [--check | --against VERSION | ptqtp]".to_owned()),
    }
}

/// Makes every file in memory: the files and the manifest.
fn generate(known: Option<&Origins>) -> Outcome<(Files, String)> {
    let source = Source::fetch(VERSION)?;
    let [a, b, c] = CONFIGS.map(|config| source.start(config));
    let mut oracles = Oracles { agreeing: [a?, b?, c?], contracted: source.start(CONTRACTED)? };
    let model = minilm::MiniLm::load()?;
    let shared = inputs::all(&model);
    let importances = inputs::importances();
    let pool = contraction::Pool::new(&model);

    let mut files = Files::new();
    let mut lines = manifest::head(&source)?;
    for input in &shared {
        let path = format!("inputs/{}.f32", input.name);
        files.insert(path, crate::oracle::le_bytes(&input.values()));
        lines.push(format!("input {} {}", input.name, input.row_len));
        lines.extend(
            input.rows.iter().enumerate().map(|(n, (what, _))| format!("row {} {n} {what}", input.name)),
        );
    }
    for (kind, what, weights) in &importances {
        lines.push(format!("importance {kind} {what}"));
        if let Some(weights) = weights {
            files.insert(format!("inputs/importance-{kind}.f32"), crate::oracle::le_bytes(weights));
        }
    }
    for info in formats() {
        let start = Instant::now();
        for (kind, _, weights) in &importances {
            let wanted = match info.importance {
                Importance::Ignored => weights.is_none(),
                Importance::Required => weights.is_some(),
                _ => true,
            };
            if !wanted {
                continue;
            }
            let case = encode::Case { info, kind, weights: weights.as_deref() };
            let bytes = encode::all(&mut oracles, &case, &shared, &mut lines)?;
            files.insert(format!("{}/{kind}.bin", folder(info)), bytes);
            if *kind == "none" || *kind == "realistic" {
                contraction::add(&mut oracles, &case, &pool, known, &mut files, &mut lines)?;
            }
        }
        decode::add(&mut oracles, info, &mut files, &mut lines)?;
        println!("{:<8} {:>6.1} s", info.name, start.elapsed().as_secs_f64());
    }
    for (path, bytes) in &files {
        lines.push(format!("file {} {} {path}", sha256(bytes), bytes.len()));
    }
    Ok((files, lines.join("\n") + "\n"))
}

fn write() -> Outcome {
    let (files, manifest) = generate(None)?;
    for folder in OURS {
        let folder = root().join("golden").join(folder);
        if folder.is_dir() {
            std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
    }
    for (path, bytes) in &files {
        put(path, bytes)?;
    }
    put("MANIFEST", manifest.as_bytes())?;
    planes::write()?;
    let total: usize = files.values().map(Vec::len).sum();
    println!("{} files, {:.1} MB", files.len(), total as f64 / 1e6);
    Ok(())
}

fn put(path: &str, bytes: &[u8]) -> Outcome {
    let path = root().join("golden").join(path);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
    }
    std::fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))
}

fn check() -> Outcome {
    let folder = root().join("golden");
    let committed = String::from_utf8_lossy(&read(&folder.join("MANIFEST"))?).into_owned();
    let origins = manifest::origins(&committed)?;
    let (files, manifest) = generate(Some(&origins))?;
    let mut faults = Vec::new();
    for (path, bytes) in &files {
        match std::fs::read(folder.join(path)) {
            Ok(found) if found == *bytes => {}
            Ok(_) => faults.push(format!("golden/{path}: differs from what ggml gives")),
            Err(e) => faults.push(format!("golden/{path}: {e}")),
        }
    }
    for path in crate::util::files(&folder)? {
        if OURS.iter().any(|folder| path.starts_with(folder)) && !files.contains_key(&path) {
            faults.push(format!("golden/{path}: not made by this task"));
        }
    }
    planes::check(&mut faults)?;
    let (ours, theirs) = (manifest::comparable(&manifest), manifest::comparable(&committed));
    for line in ours.symmetric_difference(&theirs) {
        let side = if theirs.contains(line) { "committed" } else { "made now" };
        faults.push(format!("golden/MANIFEST, {side}: {line}"));
    }
    for fault in &faults {
        eprintln!("{fault}");
    }
    println!("{} files compared, {} differences", files.len(), faults.len());
    if faults.is_empty() { Ok(()) } else { Err(format!("{} differences", faults.len())) }
}
