//! `export-gguf --mix` against llama-quantize: the same command line to both, and whole files compared.
//! Every mix, with and without importance of either kind; then the options, each where it matters.

use super::quantizer::{Quantizer, Reply};
use super::{Tools, run_command};
use crate::util::{Outcome, root};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// The folder of the models, and the two programs.
struct Bench<'a> {
    folder: &'a Path,
    llama: Quantizer,
    ours: Duration,
    theirs: Duration,
}

/// How a comparison of two runs ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Equal,
    /// Both programs refused.
    Refused,
    Different,
}

/// One line of the table: a mix, the size of the first model's file, and per model and kind of importance
/// how it went.
struct Row {
    mix: String,
    verdicts: Vec<Verdict>,
    seconds: [f64; 2],
}

/// What stands between `--mix` and the files: options that both programs know under one name.
type Words<'a> = &'a [&'a str];

impl<'a> Bench<'a> {
    /// Starts llama.cpp's side.
    fn new(tools: &Tools, folder: &'a Path, library: &Path) -> Outcome<Self> {
        let llama = Quantizer::start(tools, folder, library)?;
        Ok(Self { folder, llama, ours: Duration::ZERO, theirs: Duration::ZERO })
    }

    /// Runs both programs on a model and compares what they wrote. Words of ours alone come last.
    fn compare(&mut self, model: &str, mix: &str, words: Words<'_>, own: Words<'_>) -> Outcome<Verdict> {
        let start = Instant::now();
        let theirs = self.llama.ask(&[words, &[model, "theirs.gguf", mix]].concat())?;
        self.theirs += start.elapsed();
        let start = Instant::now();
        let ours = self.export(model, mix, &[words, own].concat())?;
        self.ours += start.elapsed();
        self.verdict(&theirs, &ours)
    }

    /// The same with another command line for ours, against what llama.cpp wrote last.
    fn again(&mut self, model: &str, mix: &str, words: Words<'_>) -> Outcome<Verdict> {
        let start = Instant::now();
        let ours = self.export(model, mix, words)?;
        self.ours += start.elapsed();
        self.verdict(&Reply::Done(BTreeMap::new()), &ours)
    }

    fn export(&self, model: &str, mix: &str, words: Words<'_>) -> Outcome<Output> {
        let mut export = Command::new(root().join("target/release/export-gguf"));
        export.current_dir(self.folder).args(["--from-gguf", model, "--out", "ours.gguf", "--mix", mix]);
        export.args(words).args(["--force", "--threads", "2"]);
        export.output().map_err(|e| format!("export-gguf: {e}"))
    }

    fn verdict(&self, theirs: &Reply, ours: &Output) -> Outcome<Verdict> {
        let verdict = match (theirs, ours.status.code()) {
            (Reply::Refused(_), Some(1)) => Verdict::Refused,
            (Reply::Done(_), Some(0)) => {
                let (ours, theirs) = (self.written("ours")?, self.written("theirs")?);
                let alike = !ours.is_empty() && ours.len() == theirs.len();
                let mut pairs = ours.iter().zip(&theirs);
                match alike && pairs.try_fold(true, |all, (a, b)| Ok::<_, String>(all && same(a, b)?))? {
                    true => Verdict::Equal,
                    false => Verdict::Different,
                }
            }
            _ => Verdict::Different,
        };
        if verdict == Verdict::Different {
            let (theirs, said) = (theirs.words(), String::from_utf8_lossy(&ours.stderr));
            eprintln!("llama.cpp: {theirs}; export-gguf: {} {said}", ours.status);
        }
        for file in self.written("ours")? {
            remove(&file)?;
        }
        Ok(verdict)
    }

    /// The files that one side wrote: `NAME.gguf`, or its parts.
    fn written(&self, name: &str) -> Outcome<Vec<PathBuf>> {
        let failed = |e: std::io::Error| format!("{}: {e}", self.folder.display());
        let mut found = Vec::new();
        for entry in std::fs::read_dir(self.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let rest = file.strip_prefix(name).and_then(|r| r.strip_suffix(".gguf"));
            if rest.is_some_and(|r| r.is_empty() || r.starts_with('-')) {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }

    fn forget(&self) -> Outcome {
        self.written("theirs")?.iter().try_for_each(|p| remove(p))
    }

    /// One mix over all models: alone, with importance, and with the same importance in its older form,
    /// which must give the same file.
    fn mix(&mut self, models: &[&str], mix: &str, faults: &mut Vec<String>) -> Outcome<Row> {
        (self.ours, self.theirs) = (Duration::ZERO, Duration::ZERO);
        let mut verdicts = Vec::new();
        for model in models {
            let file = format!("{model}-f16.gguf");
            let (gguf, dat) = (format!("{model}.blocks.imatrix.gguf"), format!("{model}.blocks.imatrix.dat"));
            let mut row = vec![self.compare(&file, mix, &[], &[])?];
            self.forget()?;
            row.push(self.compare(&file, mix, &["--imatrix", &gguf], &[])?);
            if row[1] == Verdict::Equal {
                row[1] = self.again(&file, mix, &["--imatrix", &dat, "--imatrix-name", &gguf])?;
            }
            self.forget()?;
            if row.contains(&Verdict::Different) {
                faults.push(format!("{mix} of {model}: {row:?}"));
            }
            self.plan(&file, mix, faults)?;
            verdicts.extend(row);
        }
        let seconds = [self.theirs, self.ours].map(|d| d.as_secs_f64());
        Ok(Row { mix: mix.to_owned(), verdicts, seconds })
    }

    /// The dry runs of both: the same type for every tensor.
    fn plan(&mut self, model: &str, mix: &str, faults: &mut Vec<String>) -> Outcome {
        let theirs = self.llama.ask(&["--dry-run", model, "theirs.gguf", mix])?;
        let words = ["--dry-run", "--json", "--imatrix-missing", "uniform"];
        let ours = self.export(model, mix, &words)?;
        let plan: Value = serde_json::from_slice(&ours.stdout).unwrap_or_default();
        let types: BTreeMap<String, String> = plan["tensors"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|t| Some((t["name"].as_str()?.to_owned(), t["to"].as_str()?.to_lowercase())))
            .collect();
        match theirs {
            Reply::Done(found) if found == types && !found.is_empty() => {}
            Reply::Done(found) => faults.push(format!("{mix} of {model}: dry run: {found:?}, {types:?}")),
            Reply::Refused(said) => faults.push(format!("{mix} of {model}: dry run: {said}")),
        }
        Ok(())
    }

    /// The options, each where it changes something.
    fn options(&mut self, small: &str, faults: &mut Vec<String>) -> Outcome<usize> {
        let file = |name: &str| format!("{name}-f16.gguf");
        let imatrix = format!("{small}.blocks.imatrix.gguf");
        let (whole, parts) = (file(small), "parts.gguf");
        std::fs::write(self.folder.join("types.txt"), "attn_q=q5_1\nblk\\.0\\.FFN_UP=Q8_0 attn_k=iq4_nl\n")
            .map_err(|e| format!("types.txt: {e}"))?;
        let made = |words: Words<'_>| {
            let mut export = Command::new(root().join("target/release/export-gguf"));
            export.current_dir(self.folder).args(["--from-gguf", &whole, "--force", "--quiet"]).args(words);
            run_command(&mut export)
        };
        made(&["--out", parts, "--split-max-tensors", "17"])?;
        made(&["--out", "q8.gguf", "--dtype", "q8_0"])?;
        let parts: Vec<PathBuf> = self.written("parts")?;
        let Some(first) = parts.first().and_then(|p| p.file_name()?.to_str()) else {
            return Err("the source was not split".to_owned());
        };
        let with = ["--imatrix", &imatrix];
        let cases: Vec<(&str, &str, Vec<&str>)> = vec![
            (first, "Q4_K_M", vec![]),
            (first, "Q4_K_M", vec!["--keep-split"]),
            (first, "IQ3_XS", [&with[..], &["--keep-split"]].concat()),
            (first, "COPY", vec!["--keep-split"]),
            (&whole, "COPY", vec![]),
            (&whole, "Q4_K_M", vec!["--pure"]),
            (&whole, "IQ4_XS", vec!["--leave-output-tensor"]),
            (&whole, "Q4_K_M", vec!["--output-tensor-type", "q5_1", "--token-embedding-type", "q4_0"]),
            (&whole, "Q3_K_M", vec!["--tensor-type", "ffn_down=q6_k", "--tensor-type", "attn_(k|v)=q8_0"]),
            (&whole, "Q3_K_L", vec!["--tensor-type-file", "types.txt"]),
            (&whole, "Q3_K_M", vec!["--prune-layers", "1"]),
            (&whole, "Q4_K_S", [&with[..], &["--prune-layers", "0"]].concat()),
            (
                &whole,
                "Q5_K_M",
                [&with[..], &["--include-weights", "ffn_down", "--include-weights", "attn_v"]].concat(),
            ),
            (&whole, "Q5_K_M", [&with[..], &["--exclude-weights", "ffn_down"]].concat()),
            (&whole, "Q2_K", [&with[..], &["--include-weights", "no such name"]].concat()),
            (
                &whole,
                "Q4_K_M",
                vec![
                    "--override-kv",
                    "general.name=str:another",
                    "--override-kv",
                    "some.new=int:-7",
                    "--override-kv",
                    "some.float=float:0.1",
                    "--override-kv",
                    "some.flag=bool:true",
                ],
            ),
            ("q8.gguf", "Q4_K_M", vec!["--allow-requantize"]),
            ("q8.gguf", "Q4_K_M", vec![]),
            ("q8.gguf", "COPY", vec![]),
            ("q8.gguf", "Q8_0", vec![]),
        ];
        for (model, mix, words) in &cases {
            let verdict = self.compare(model, mix, words, &[])?;
            self.forget()?;
            let refused = *model == "q8.gguf" && words.is_empty() && *mix == "Q4_K_M";
            if verdict != (if refused { Verdict::Refused } else { Verdict::Equal }) {
                faults.push(format!("{model} {mix} {}: {verdict:?}", words.join(" ")));
            }
        }
        for file in [&parts[..], &[self.folder.join("q8.gguf"), self.folder.join("types.txt")]].concat() {
            remove(&file)?;
        }
        Ok(cases.len())
    }
}

/// All mixes over all models, or those named, then the options over each, which have the name `options`;
/// prints the table, and gives the faults.
pub(super) fn run(
    tools: &Tools,
    folder: &Path,
    library: &Path,
    models: &[&str],
    only: &[&str],
) -> Outcome<Vec<String>> {
    let mut bench = Bench::new(tools, folder, library)?;
    let mut faults = Vec::new();
    println!("\nwhole files beside llama-quantize's: {}", models.join(", "));
    println!("{:<10} {:<28} {:>8} {:>8}", "mix", "alone, with importance", "llama s", "ours s");
    let mut equal = 0;
    for mix in names()?.iter().filter(|m| only.is_empty() || only.contains(&m.to_lowercase().as_str())) {
        let row = bench.mix(models, mix, &mut faults)?;
        equal += row.verdicts.iter().filter(|v| **v == Verdict::Equal).count();
        let verdicts: Vec<&str> = row.verdicts.iter().map(|v| v.word()).collect();
        let [theirs, ours] = row.seconds;
        println!("{:<10} {:<28} {theirs:>8.1} {ours:>8.1}", row.mix, verdicts.join(" "));
    }
    println!("{equal} files equal");
    if only.is_empty() || only.contains(&"options") {
        for model in models {
            let start = Instant::now();
            let count = bench.options(model, &mut faults)?;
            println!("{count} sets of options on {model}: {:.1} s", start.elapsed().as_secs_f64());
        }
    }
    Ok(faults)
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Refused => "refused",
            Self::Different => "DIFFERENT",
        }
    }
}

/// The mixes that our program knows, from what it says to a wrong name.
fn names() -> Outcome<Vec<String>> {
    let mut export = Command::new(root().join("target/release/export-gguf"));
    let output = export.args(["--from-gguf", "none", "--mix", "?"]).output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let list = said.split_once("there are: ").and_then(|(_, rest)| rest.lines().next());
    let names: Vec<String> = list.unwrap_or_default().split(", ").map(str::to_owned).collect();
    match names.len() {
        35.. => Ok(names),
        n => Err(format!("export-gguf names {n} mixes: {said}")),
    }
}

/// Whether two files hold the same bytes.
fn same(a: &Path, b: &Path) -> Outcome<bool> {
    let open = |p: &Path| gguf_mmap::Mapping::open(p).map_err(|e| format!("{}: {e}", p.display()));
    Ok(open(a)?.bytes() == open(b)?.bytes())
}

fn remove(path: &Path) -> Outcome {
    std::fs::remove_file(path).map_err(|e| format!("{}: {e}", path.display()))
}
