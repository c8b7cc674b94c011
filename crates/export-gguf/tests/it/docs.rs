//! Documentation that is made from the code must be what the code says. `UPDATE_DOCS=1` rewrites it.

use std::fs;
use std::path::Path;

fn check(file: &str, section: &str, expect: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
    let text = fs::read_to_string(&path).unwrap();
    let begin = format!("<!-- generated: {section} -->\n");
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("{file} lacks {begin}"));
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let want = format!("{before}{begin}{expect}<!-- end -->{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &want).unwrap();
    } else {
        assert!(text == want, "docs/{file} is stale: run UPDATE_DOCS=1 cargo test -p export-gguf docs");
    }
}

#[test]
fn the_table_of_mixes_is_the_rules() {
    check("quantize.md", "mixes", &export_gguf::mix::markdown_table());
}

#[test]
fn the_tables_of_names_are_the_tables() {
    check("lora.md", "names", &export_gguf::lora::markdown_tables());
}
