//! The mix rules against llama.cpp's own record of what each file type gives each tensor of four
//! published dense models (`golden/mixes`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use export_gguf::mix::{FileType, HyperParameters, Options, Subject, assign, processing_order};
use gguf_format::GgmlType;

struct Model {
    architecture: &'static str,
    file: &'static str,
    head_dim: u64,
    tied: bool,
}

/// The head size is not in the record; it comes from each model's published configuration.
const MODELS: &[Model] = &[
    Model { architecture: "qwen3", file: "qwen3-0.6b", head_dim: 128, tied: false },
    Model { architecture: "qwen3", file: "qwen3-14b", head_dim: 128, tied: false },
    Model { architecture: "llama", file: "meta-llama-3.1-70b-instruct", head_dim: 128, tied: false },
    Model { architecture: "gemma3", file: "gemma-3-4b-it", head_dim: 256, tied: true },
];

type Tensors = Vec<(String, Vec<u64>)>;

/// The tensors of a dense llama-like model, from its dimensions.
fn tensors(model: &Model, dims: &BTreeMap<String, u64>) -> Tensors {
    let d = |k: &str| dims[k];
    let (embd, ff, vocab) = (d("n_embd"), d("n_ff"), d("n_vocab"));
    let (q, kv) = (d("n_head") * model.head_dim, d("n_head_kv") * model.head_dim);
    let mut list = vec![
        ("token_embd.weight".to_owned(), vec![embd, vocab]),
        ("output_norm.weight".to_owned(), vec![embd]),
    ];
    if !model.tied {
        list.push(("output.weight".to_owned(), vec![embd, vocab]));
    }
    for n in 0..d("n_layer") {
        for (part, shape) in [
            ("attn_norm", vec![embd]),
            ("ffn_norm", vec![embd]),
            ("attn_q", vec![embd, q]),
            ("attn_k", vec![embd, kv]),
            ("attn_v", vec![embd, kv]),
            ("attn_output", vec![q, embd]),
            ("ffn_gate", vec![embd, ff]),
            ("ffn_up", vec![embd, ff]),
            ("ffn_down", vec![ff, embd]),
        ] {
            list.push((format!("blk.{n}.{part}.weight"), shape));
        }
    }
    list
}

/// A file type's name, its default, and the tensors that get something else.
type Section = (String, String, BTreeMap<String, String>);

/// `# n_embd=1024, n_ff=3072, ...` and, per file type, its default and its exceptions.
fn parse(text: &str) -> (BTreeMap<String, u64>, Vec<Section>) {
    let mut dims = BTreeMap::new();
    let mut sections: Vec<Section> = Vec::new();
    for line in text.lines().filter(|l| !l.is_empty()) {
        if let Some(rest) = line.strip_prefix("# n_embd") {
            for pair in format!("n_embd{rest}").split(", ") {
                let (key, value) = pair.split_once('=').unwrap();
                dims.insert(key.to_owned(), value.parse().unwrap());
            }
        } else if let Some(rest) = line.strip_prefix('[') {
            let (name, default) = rest.split_once("] ").unwrap();
            sections.push((name.to_owned(), default.to_owned(), BTreeMap::new()));
        } else if !line.starts_with('#') {
            let (name, ty) = line.split_once(' ').unwrap();
            sections.last_mut().unwrap().2.insert(name.to_owned(), ty.to_owned());
        }
    }
    (dims, sections)
}

#[test]
fn every_line_of_the_recorded_dense_models() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/mixes");
    let mut checked = 0;
    for model in MODELS {
        let text = fs::read_to_string(folder.join(format!("{}.schema", model.file))).unwrap();
        let (dims, sections) = parse(&text);
        let list = tensors(model, &dims);
        let names: Vec<&str> = list.iter().map(|(n, _)| n.as_str()).collect();
        let order = processing_order(&names);
        let subjects: Vec<Subject<'_>> = order
            .iter()
            .map(|&i| Subject { name: &list[i].0, dims: &list[i].1, ty: GgmlType::F32 })
            .collect();
        let hyper = HyperParameters {
            architecture: model.architecture.into(),
            layers: u32::try_from(dims["n_layer"]).unwrap(),
            experts: 0,
            heads: u32::try_from(dims["n_head"]).unwrap(),
            heads_kv: u32::try_from(dims["n_head_kv"]).unwrap(),
        };
        for (name, default, exceptions) in sections {
            let Some(file_type) = FileType::from_name(&name) else {
                assert_eq!(name, "NVFP4", "{}", model.file);
                continue;
            };
            let options = Options::new(file_type);
            let choices = assign(&subjects, &hyper, &options).unwrap();
            for (s, choice) in subjects.iter().zip(&choices) {
                if s.dims.len() < 2 {
                    continue;
                }
                let expect = exceptions.get(s.name).unwrap_or(&default);
                assert_eq!(
                    choice.ty.to_string().to_lowercase(),
                    expect.to_lowercase(),
                    "{} {file_type}: {} ({:?})",
                    model.file,
                    s.name,
                    choice.reason
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 10_000, "only {checked} lines were checked");
}
