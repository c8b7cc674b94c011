//! Models made in memory, and the binary run over them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gguf_format::{Builder, GgmlType, Gguf, Importance};

/// A tensor to be written: name, dimensions, type, bytes.
pub(crate) type Data<'a> = (&'a str, &'a [u64], GgmlType, Vec<u8>);

/// A file of these tensors, with two keys before them.
pub(crate) fn model(tensors: &[Data<'_>]) -> Vec<u8> {
    let mut b = Builder::new();
    b.set("general.architecture", "llama").set("llama.block_count", 1_u32);
    whole(b, tensors)
}

/// A file of these tensors after the keys of a builder.
pub(crate) fn whole(mut b: Builder, tensors: &[Data<'_>]) -> Vec<u8> {
    for (name, dims, ty, _) in tensors {
        b.tensor(name, dims, *ty).unwrap();
    }
    let data: Vec<&[u8]> = tensors.iter().map(|(.., d)| d.as_slice()).collect();
    b.layout().unwrap().whole(&data).unwrap()
}

pub(crate) fn f32s(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

pub(crate) fn bf16s(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(|v| ((v.to_bits() >> 16) as u16).to_le_bytes()).collect()
}

pub(crate) fn f16s(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(|v| half::f16::from_f32(v).to_le_bytes()).collect()
}

/// Values that look like weights, from a small generator.
pub(crate) fn weights(n: usize) -> impl Iterator<Item = f32> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    })
    .take(n)
}

/// A model with every kind of tensor that the policy tells apart.
pub(crate) fn mixed() -> Vec<u8> {
    model(&[
        ("token_embd.weight", &[256, 40], GgmlType::F16, f16s(weights(256 * 40))),
        ("blk.0.attn_norm.weight", &[256], GgmlType::F32, f32s(weights(256))),
        ("blk.0.attn_q.weight", &[256, 33], GgmlType::BF16, bf16s(weights(256 * 33))),
        ("blk.0.ffn_up.weight", &[512, 7], GgmlType::F32, f32s(weights(512 * 7))),
        ("blk.0.ffn_down.weight", &[288, 4], GgmlType::F16, f16s(weights(288 * 4))),
        ("blk.0.ffn_up.bias", &[256, 2], GgmlType::F32, f32s(weights(512))),
        ("blk.0.ids", &[3], GgmlType::I32, vec![1; 12]),
    ])
}

/// A folder for one test.
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The names in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The command with these arguments, run in the folder, so that messages have no long paths.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_export-gguf"));
        command.current_dir(self.dir.path()).args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }

    /// `--from-gguf in.gguf --out out.gguf` and more, which must work; the output's bytes.
    pub(crate) fn export(&self, input: &[u8], more: &[&str]) -> Vec<u8> {
        self.write("in.gguf", input);
        let ran = self.run(&[&["--from-gguf", "in.gguf", "--out", "out.gguf", "--force"], more].concat());
        assert_eq!(ran.code, 0, "{more:?}: {}", ran.err);
        self.read("out.gguf")
    }

    /// The same, which must fail with code 1, leave nothing, and say one line: that line.
    pub(crate) fn refuse(&self, input: &[u8], more: &[&str]) -> String {
        self.write("in.gguf", input);
        let ran = self.run(&[&["--from-gguf", "in.gguf", "--out", "refused.gguf"], more].concat());
        assert_eq!(ran.code, 1, "{more:?}: {}", ran.out);
        let left = self.names();
        assert!(!left.iter().any(|n| n.contains("refused") || n.contains("tmp")), "{left:?}");
        assert_eq!(ran.err.trim_end().lines().count(), 1, "{}", ran.err);
        ran.err.trim_end().to_owned()
    }
}

/// What a run of the binary gave.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(o: Output) -> Self {
        Self {
            code: o.status.code().unwrap_or(-1),
            out: String::from_utf8(o.stdout).unwrap(),
            err: String::from_utf8(o.stderr).unwrap(),
        }
    }
}

/// The stored bytes of a tensor.
pub(crate) fn data(file: &[u8], name: &str) -> Vec<u8> {
    let g = Gguf::parse(file).unwrap();
    g.data(&g.tensor(name).unwrap()).unwrap().to_vec()
}

/// The type of a tensor.
pub(crate) fn ty(file: &[u8], name: &str) -> GgmlType {
    Gguf::parse(file).unwrap().tensor(name).unwrap().ty()
}

/// The values of a tensor.
pub(crate) fn values(file: &[u8], name: &str) -> Vec<f32> {
    let g = Gguf::parse(file).unwrap();
    let t = g.tensor(name).unwrap();
    let mut out = vec![0.0; t.elements() as usize];
    let format = ggml_blocks::Format::of(t.ty()).unwrap();
    format.decode_rows(g.data(&t).unwrap(), t.row_len() as usize, &mut out).unwrap();
    out
}

/// The names of all types that can be transcoded to without an importance matrix.
pub(crate) fn targets() -> Vec<String> {
    export_gguf::plan::targets()
        .filter(|t| t.info().is_some_and(|i| i.importance != Importance::Required))
        .map(|t| t.to_string())
        .collect()
}

/// A folder as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
