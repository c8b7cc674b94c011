//! `info`, `dump`, `kv` and `tensors`: their text in snapshots, their JSON by its values.

use super::{Folder, f32s, gguf, model, set};
use gguf_format::{Builder, Str};
use serde_json::json;

/// Every string in here tries something with the terminal that shows it.
fn hostile() -> Folder {
    let keys = |b: &mut Builder| {
        b.set("general.architecture", "llama\x1b[2J");
        b.set("general.name", "bell\x07 and \u{9b}31m and \u{202e}desrever");
        b.set("key\x1b]0;title\x07", "line\r\nfeed");
        b.set("bytes", Str::new(b"\xff\xfe\x00"));
        b.set("floats", [f32::NAN, f32::INFINITY, -0.0, 0.1]);
        b.set("long", "é".repeat(150));
        b.set("many", (0..100_u32).collect::<Vec<_>>());
        b.set("strings", ["a\tb", "\x1b[31m"]);
        b.set("none", Vec::<u8>::new());
    };
    Folder::with(&[("h.gguf", gguf(keys, &[f32s("evil\x1b[8m", &[1], &[1.0])]))])
}

fn tiny() -> Folder {
    Folder::with(&[("m.gguf", model())])
}

#[test]
fn info_is_a_glance_at_the_model() {
    insta::assert_snapshot!(tiny().text(&["info", "m.gguf"]));
}

#[test]
fn info_counts_all_parts() {
    insta::assert_snapshot!(Folder::with(&set()).text(&["info", "m-00001-of-00002.gguf"]));
}

#[test]
fn info_as_json() {
    let j = tiny().json(&["info", "m.gguf"]);
    assert_eq!(j["architecture"], "llama");
    assert_eq!((&j["parameters"], &j["tensors"]), (&json!(48), &json!(3)));
    assert_eq!(
        j["types"][0],
        json!({"type": "F32", "tensors": 2, "weights": 16, "bytes": 64, "bits_per_weight": 32.0})
    );
    assert_eq!(j["file_type"], json!({"id": 0, "name": "F32"}));
    assert_eq!(j["hyperparameters"]["block_count"], "1");
    assert_eq!(j["tokenizer"]["special"][1], json!({"role": "eos", "id": 1, "token": "</s>"}));
    assert_eq!(j["bytes"], json!(model().len()));
}

#[test]
fn dump_shows_what_can_be_read_and_shortens_the_rest() {
    insta::assert_snapshot!(tiny().text(&["dump", "m.gguf"]));
}

#[test]
fn a_hostile_file_cannot_drive_the_terminal() {
    let folder = hostile();
    insta::assert_snapshot!(folder.text(&["dump", "h.gguf"]));
    for args in [&["info", "h.gguf"][..], &["tensors", "h.gguf"], &["dump", "h.gguf", "--full"]] {
        for json in [&[][..], &["--json"]] {
            let shown = folder.text(&[args, json].concat());
            let control = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!shown.contains(control), "{args:?} {json:?}: {shown:?}");
        }
    }
}

#[test]
fn dump_as_json_keeps_every_value() {
    let folder = hostile();
    let j = folder.json(&["dump", "h.gguf", "--full"]);
    let value = |key: &str| {
        let keys = j["parts"][0]["keys"].as_array().unwrap();
        keys.iter().find(|k| k["key"] == key).unwrap()["value"].clone()
    };
    assert_eq!(value("general.name"), "bell\x07 and \u{9b}31m and \u{202e}desrever");
    assert_eq!(value("bytes"), json!({"bytes": "fffe00"}));
    assert_eq!(value("floats"), json!(["NaN", "Infinity", -0.0, 0.1]));
    assert_eq!(value("many").as_array().unwrap().len(), 100);
    assert_eq!(j["tensors"][0]["name"], "evil\x1b[8m");
    let short = folder.json(&["dump", "h.gguf"]);
    let many = short["parts"][0]["keys"].as_array().unwrap().iter().find(|k| k["key"] == "many").unwrap();
    assert_eq!((&many["len"], &many["shown"]), (&json!(100), &json!(8)));
}

#[test]
fn dump_of_a_split_set_has_the_keys_of_every_part() {
    insta::assert_snapshot!(Folder::with(&set()).text(&["dump", "m-00001-of-00002.gguf"]));
}

#[test]
fn kv_prints_one_value() {
    let folder = tiny();
    let kv = |key| folder.text(&["kv", "m.gguf", key]);
    assert_eq!(kv("llama.context_length"), "2048\n");
    assert_eq!(kv("tokenizer.ggml.tokens"), "<s>\n</s>\nit's\n");
    assert_eq!(kv("tokenizer.ggml.scores"), "0.0\n-1.0\n0.5\n");
    let template = "{% for m in messages %}\n\t{{ m['content'] }}\n{% endfor %}";
    assert_eq!(kv("tokenizer.chat_template"), format!("{template}\n"));
    assert_eq!(folder.text(&["kv", "m.gguf", "tokenizer.chat_template", "--raw"]), template);
    let j = folder.json(&["kv", "m.gguf", "tokenizer.ggml.token_type"]);
    assert_eq!(
        j,
        json!({"key": "tokenizer.ggml.token_type", "type": "array", "element_type": "i32", "len": 3, "value": [3, 3, 1]})
    );
}

#[test]
fn kv_prints_bytes_raw_only_if_asked() {
    let folder = hostile();
    assert_eq!(folder.text(&["kv", "h.gguf", "bytes"]), "\\xff\\xfe\\0\n");
    assert_eq!(folder.run(&["kv", "h.gguf", "bytes", "--raw"]).out, b"\xff\xfe\x00");
    assert_eq!(folder.text(&["kv", "h.gguf", "general.architecture"]), "llama\\u{1b}[2J\n");
}

#[test]
fn tensors_are_listed() {
    insta::assert_snapshot!(tiny().text(&["tensors", "m.gguf"]));
    insta::assert_snapshot!(Folder::with(&set()).text(&["tensors", "m-00001-of-00002.gguf"]));
    let j = tiny().json(&["tensors", "m.gguf"]);
    assert_eq!(j.as_array().unwrap().len(), 3);
    assert_eq!(
        (&j[2]["name"], &j[2]["dims"], &j[2]["bytes"]),
        (&json!("output.weight"), &json!([32, 1]), &json!(34))
    );
}

#[test]
fn what_cannot_be_shown_is_refused_with_one_line() {
    let folder = tiny();
    std::fs::write(folder.path("page.gguf"), "<!DOCTYPE html>").unwrap();
    std::fs::write(folder.path("empty.gguf"), "").unwrap();
    let mut lines = String::new();
    for args in [
        &["info", "none.gguf"][..],
        &["info", "."],
        &["dump", "empty.gguf"],
        &["tensors", "page.gguf"],
        &["kv", "m.gguf", "no.such\x1bkey"],
    ] {
        lines += &folder.refused(args);
    }
    insta::assert_snapshot!(lines);
}
