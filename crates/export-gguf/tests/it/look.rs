//! The looking commands as a user runs them: the binary, its output, its exit code.

mod extract;
mod pipe;
mod sample;
mod text;
mod verify;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use gguf_format::{Builder, GgmlType};
use serde_json::Value;
use tempfile::TempDir;

/// A folder of files in which commands run, so that output names files without a path.
struct Folder(TempDir);

/// What a command left: exit code, standard output, standard error.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: Vec<u8>,
    err: String,
}

impl Folder {
    fn with(files: &[(&str, Vec<u8>)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, bytes) in files {
            std::fs::write(folder.path(name), bytes).unwrap();
        }
        folder
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_export-gguf"));
        command.current_dir(self.0.path()).args(args).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        let Output { status, stdout, stderr } = self.command(args).output().unwrap();
        let err = String::from_utf8(stderr).unwrap();
        Ran { code: status.code().unwrap(), out: stdout, err }
    }

    /// Runs a command that must succeed in silence, and gives its output.
    fn text(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
        String::from_utf8(ran.out).unwrap()
    }

    /// The same with `--json`, parsed.
    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.text(&[args, &["--json"]].concat())).unwrap()
    }

    /// Runs a command that must be refused with one line, and gives it.
    fn refused(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!((ran.code, ran.out.as_slice()), (1, &b""[..]), "{args:?}: {ran:?}");
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        ran.err
    }
}

/// The bytes of F32 values in a file.
fn le(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// A tensor for [`gguf`]: name, dimensions, type, bytes.
type Tensor<'a> = (&'a str, &'a [u64], GgmlType, Vec<u8>);

/// A GGUF file of these keys and tensors.
fn gguf(keys: impl FnOnce(&mut Builder), tensors: &[Tensor<'_>]) -> Vec<u8> {
    let mut b = Builder::new();
    keys(&mut b);
    for (name, dims, ty, _) in tensors {
        b.tensor(name, dims, *ty).unwrap();
    }
    let data: Vec<&[u8]> = tensors.iter().map(|t| t.3.as_slice()).collect();
    b.layout().unwrap().whole(&data).unwrap()
}

/// One one-dimensional F32 tensor.
fn f32s<'a>(name: &'a str, dims: &'a [u64], values: &[f32]) -> Tensor<'a> {
    (name, dims, GgmlType::F32, le(values))
}

/// The keys of a small model that nothing is wrong with.
fn llama(b: &mut Builder) {
    b.set("general.architecture", "llama");
    b.set("general.name", "Tiny");
    b.set("general.file_type", 0_u32);
    b.set("llama.context_length", 2048_u32);
    b.set("llama.embedding_length", 4_u32);
    b.set("llama.block_count", 1_u32);
    b.set("llama.attention.head_count", 2_u32);
    b.set("tokenizer.ggml.model", "gpt2");
    b.set("tokenizer.ggml.pre", "llama-bpe");
    b.set("tokenizer.ggml.tokens", ["<s>", "</s>", "it's"]);
    b.set("tokenizer.ggml.scores", [0.0_f32, -1.0, 0.5]);
    b.set("tokenizer.ggml.token_type", [3_i32, 3, 1]);
    b.set("tokenizer.ggml.bos_token_id", 0_u32);
    b.set("tokenizer.ggml.eos_token_id", 1_u32);
    b.set("tokenizer.chat_template", "{% for m in messages %}\n\t{{ m['content'] }}\n{% endfor %}");
}

/// Its tensors, at their smallest.
fn layers() -> [Tensor<'static>; 3] {
    [
        f32s("token_embd.weight", &[4, 3], &[0.5; 12]),
        f32s("blk.0.attn_norm.weight", &[4], &[1.0; 4]),
        ("output.weight", &[32, 1], GgmlType::Q8_0, q8_0()),
    ]
}

/// One `Q8_0` block: scale 0.5, levels from -16 to 15.
fn q8_0() -> Vec<u8> {
    let mut block = 0x3800_u16.to_le_bytes().to_vec();
    block.extend((-16_i8..16).map(|q| q as u8));
    block
}

/// The small model with what it takes to be quantized.
fn model() -> Vec<u8> {
    let keys = |b: &mut Builder| {
        llama(b);
        b.set("general.quantization_version", 2_u32);
    };
    gguf(keys, &layers())
}

/// A split set of two parts.
fn set() -> [(&'static str, Vec<u8>); 2] {
    let split = |b: &mut Builder, no: u16| {
        b.set("split.no", no);
        b.set("split.count", 2_u16);
        b.set("split.tensors.count", 2_i32);
    };
    let first = gguf(
        |b| {
            b.set("general.architecture", "llama");
            split(b, 0);
        },
        &[f32s("a.weight", &[2], &[1.0, 2.0])],
    );
    let second = gguf(|b| split(b, 1), &[f32s("b.weight", &[1], &[3.0])]);
    [("m-00001-of-00002.gguf", first), ("m-00002-of-00002.gguf", second)]
}
