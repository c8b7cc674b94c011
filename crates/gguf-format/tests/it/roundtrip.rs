//! Written, read, written again: the same bytes.

use gguf_format::{Builder, GgmlType, Gguf};

#[test]
fn a_written_file_reads_back_and_re_emits_identically() {
    let mut builder = Builder::new();
    builder
        .set("general.architecture", "llama")
        .set("llama.block_count", 1_u32)
        .set("tokenizer.ggml.tokens", ["a", "b"])
        .align(64);
    builder.tensor("a.weight", &[32, 2], GgmlType::Q8_0).unwrap();
    builder.tensor("b.bias", &[3], GgmlType::F32).unwrap();
    let layout = builder.layout().unwrap();
    let (a, b) = ([7; 68], [1; 12]);
    let file = layout.whole(&[&a, &b]).unwrap();
    assert_eq!(file.len() as u64, layout.total_len());

    let gguf = Gguf::parse(&file).unwrap();
    assert_eq!(gguf.get("general.architecture").unwrap().as_str(), Some("llama"));
    assert_eq!(gguf.alignment(), 64);
    assert_eq!(gguf.findings(), []);
    let tensor = gguf.tensor("b.bias").unwrap();
    assert_eq!(gguf.data(&tensor), Some(&b[..]));
    assert_eq!(tensor.file_offset(), layout.tensors()[1].file_offset);

    let mut again = Builder::from_gguf(&gguf);
    for tensor in gguf.tensors() {
        again.copy_tensor(&tensor).unwrap();
    }
    let layout = again.layout().unwrap();
    let mut stream = layout.stream(Vec::new());
    for byte in gguf.tensors().flat_map(|t| gguf.data(&t).unwrap()) {
        stream.write(&[*byte]).unwrap();
    }
    assert_eq!(stream.finish().unwrap(), file);
}
