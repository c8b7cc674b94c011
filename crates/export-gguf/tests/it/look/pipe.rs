//! A reader that stops reading is no failure.

use std::io::Read;
use std::process::Stdio;

use super::{Folder, gguf, llama, model};

#[test]
fn a_closed_pipe_is_success() {
    let keys = |b: &mut gguf_format::Builder| {
        llama(b);
        b.set("many", vec!["some text that fills pipes"; 100_000]);
    };
    let folder = Folder::with(&[("m.gguf", gguf(keys, &[])), ("t.gguf", model())]);
    for args in [
        &["dump", "m.gguf", "--full"][..],
        &["dump", "m.gguf", "--full", "--json"],
        &["kv", "m.gguf", "many"],
        &["kv", "m.gguf", "many", "--json"],
    ] {
        let mut command = folder.command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 16];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let done = child.wait_with_output().unwrap();
        assert_eq!((done.status.code(), &*done.stderr), (Some(0), &b""[..]), "{args:?}");
    }
}
