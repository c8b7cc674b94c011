//! The page of byte diagrams covers the table of formats.

use ggml_blocks::FORMATS;
use gguf_format::Kind;

#[test]
fn every_format_has_its_section_with_a_diagram_and_its_size() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/blocks.md");
    let page = std::fs::read_to_string(path).unwrap();
    let sections: Vec<&str> = page.split("\n## ").skip(1).collect();
    for format in &FORMATS {
        let (info, name) = (format.info(), format.name());
        let of_format = |section: &&&str| {
            let heading = section.lines().next().unwrap_or_default();
            heading.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
        };
        let section = sections.iter().find(of_format).unwrap_or_else(|| panic!("no section for {name}"));
        assert!(section.contains("```text\n"), "{name}");
        assert!(section.contains("Used by "), "{name}");
        if matches!(info.kind, Kind::Block | Kind::Activation) {
            let bits = f64::from(8 * info.block_bytes) / f64::from(info.block_len);
            assert!(section.contains(&format!(" {bits} bits per weight.")), "{name}: {bits}");
        }
        assert_eq!(section.contains("Meets activations in "), info.kind == Kind::Block, "{name}");
    }
}
