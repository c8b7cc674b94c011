//! The mix rules against what llama-quantize planned for made-up models of many architectures
//! (`golden/mixes/dry-runs.txt`; its format is described where it is made, `xtask/interop/mix_golden.py`).

use std::fs;
use std::path::Path;

use export_gguf::mix::{FileType, HyperParameters, Options, Override, Subject, assign, processing_order};
use gguf_format::GgmlType;

#[derive(Default)]
struct Model {
    name: String,
    hyper: HyperParameters,
    tensors: Vec<(String, Vec<u64>)>,
}

impl Model {
    fn parse(line: &str) -> Self {
        let mut words = line.split(' ');
        let mut model = Self { name: words.next().unwrap().into(), ..Self::default() };
        for (key, value) in words.map(|w| w.split_once('=').unwrap()) {
            let number = || value.parse().unwrap();
            match key {
                "architecture" => model.hyper.architecture = value.into(),
                "layers" => model.hyper.layers = number(),
                "experts" => model.hyper.experts = number(),
                "heads" => model.hyper.heads = number(),
                "heads_kv" => model.hyper.heads_kv = number(),
                other => panic!("unknown key {other}"),
            }
        }
        model
    }

    /// The types in processing order, with the names, or `None` where the policy refuses.
    fn assign(&self, options: &Options) -> Option<Vec<(&str, GgmlType)>> {
        let names: Vec<&str> = self.tensors.iter().map(|(n, _)| n.as_str()).collect();
        let order = processing_order(&names);
        let subjects: Vec<Subject<'_>> = order
            .iter()
            .map(|&i| Subject { name: &self.tensors[i].0, dims: &self.tensors[i].1, ty: GgmlType::F16 })
            .collect();
        let choices = assign(&subjects, &self.hyper, options).ok()?;
        Some(subjects.iter().zip(choices).map(|(s, c)| (s.name, c.ty)).collect())
    }
}

fn options(words: &str) -> Options {
    let mut words = words.split(' ');
    let mut options = Options::new(FileType::from_name(words.next().unwrap()).unwrap());
    let ty = |name: &str| GgmlType::from_name(name).unwrap();
    for word in words {
        match word.split_once('=') {
            None if word == "importance" => options.importance = true,
            None if word == "pure" => options.pure = true,
            None if word == "leave-output" => options.leave_output = true,
            Some(("output", t)) => options.output_type = Some(ty(t)),
            Some(("embedding", t)) => options.token_embedding_type = Some(ty(t)),
            Some(("override", rule)) => {
                let (pattern, t) = rule.rsplit_once('=').unwrap();
                let pattern = fancy_regex::Regex::new(pattern).unwrap();
                options.overrides.push(Override { pattern, ty: ty(t) });
            }
            _ => panic!("unknown option {word}"),
        }
    }
    options
}

/// `12 12*3` and so on.
fn types(line: &str) -> Vec<GgmlType> {
    line.split(' ')
        .flat_map(|run| {
            let (ty, count) = run.split_once('*').unwrap_or((run, "1"));
            std::iter::repeat_n(GgmlType(ty.parse().unwrap()), count.parse().unwrap())
        })
        .collect()
}

#[test]
fn every_recorded_dry_run() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/mixes/dry-runs.txt");
    let text = fs::read_to_string(path).unwrap();
    let (mut model, mut run) = (Model::default(), "");
    let mut checked = 0;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("model ") {
            model = Model::parse(rest);
        } else if let Some(rest) = line.strip_prefix("tensor ") {
            let (name, dims) = rest.split_once(' ').unwrap();
            model.tensors.push((name.into(), dims.split(' ').map(|d| d.parse().unwrap()).collect()));
        } else if let Some(rest) = line.strip_prefix("run ") {
            run = rest;
        } else {
            let got = model.assign(&options(run));
            let what = format!("{}: {run}", model.name);
            if line == "error" {
                assert!(got.is_none(), "{what}: llama.cpp refuses");
            } else {
                let got = got.unwrap_or_else(|| panic!("{what}: refused"));
                let expect = types(line);
                assert_eq!(got.len(), expect.len(), "{what}");
                for ((name, ty), expect) in got.iter().zip(expect) {
                    assert_eq!(*ty, expect, "{what}: {name}");
                }
            }
            checked += 1;
        }
    }
    assert!(checked > 1000, "only {checked} runs were checked");
}
