//! Everything people read: help, plans, errors of the command line.

use crate::support::*;

/// Help is wrapped at a fixed width, whatever the terminal.
fn help(args: &[&str]) -> String {
    let output = Place::new().command(args).env("COLUMNS", "100").output().unwrap();
    let ran = Ran::from(output);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out
}

#[test]
fn help_of_transcoding() {
    insta::assert_snapshot!(help(&["--help"]));
}

#[test]
fn help_of_demo() {
    insta::assert_snapshot!(help(&["demo", "--help"]));
}

#[test]
fn every_flag_has_an_example() {
    use clap::CommandFactory;
    let root = export_gguf::cli::Cli::command();
    for command in std::iter::once(&root).chain(root.get_subcommands()) {
        for arg in command.get_arguments().filter(|a| !a.is_global_set()) {
            let help = arg.get_long_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example: "), "{} {}", command.get_name(), arg.get_id());
        }
    }
}

#[test]
fn the_plan_is_printed_and_nothing_is_written() {
    let place = Place::new();
    place.write("in.gguf", &mixed());
    let ran = place.run(&["--from-gguf", "in.gguf", "--dtype", "q8_0", "--dry-run"]);
    insta::assert_snapshot!(ran.out);
    let ran = place.run(&["--from-gguf", "in.gguf", "--dtype", "q8_0", "--dry-run", "--json"]);
    insta::assert_snapshot!(ran.out);
    assert_eq!(place.names(), ["in.gguf"]);
}

#[test]
fn the_summary_is_there_for_machines_too() {
    let place = Place::new();
    place.write("in.gguf", &mixed());
    let ran = place.run(&["--from-gguf", "in.gguf", "--out", "o.gguf", "--dtype", "q4_0", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["files"][0]["bytes"], place.read("o.gguf").len());
    assert_eq!(json["tensors"][0]["to"], "Q4_0");
    assert_eq!(json["keys"]["general.file_type"], 2);
}

#[test]
fn patterns_that_decide_about_nothing_are_noted() {
    let place = Place::new();
    place.write("in.gguf", &mixed());
    let types = ["no_such=q4_0", "weight=q8_0", "weight=q4_0"].map(|t| ["--tensor-type", t]).concat();
    let mix = [&["--from-gguf", "in.gguf", "--out", "o.gguf", "--mix", "q5_0"][..], &types].concat();
    let notes =
        ["no_such=Q4_0", "weight=Q4_0"].map(|t| format!("--tensor-type '{t}' decides about no tensor"));
    for more in [&["--dry-run"][..], &[]] {
        let ran = place.run(&[&mix[..], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        let found: Vec<&str> = ran.out.lines().filter_map(|l| l.strip_prefix("note: ")).collect();
        assert_eq!(found, notes);
    }
    let ran = place.run(&[&mix[..], &["--dry-run", "--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["notes"], serde_json::json!(notes));
}

#[test]
fn options_of_mixes_stand_beside_nothing_else() {
    use clap::CommandFactory;
    let place = Place::new();
    let command = export_gguf::cli::Cli::command();
    let of_mixes = command.get_arguments().filter(|a| {
        let elsewhere = ["mix", "allow-requantize", "include-weights", "exclude-weights"];
        a.get_help_heading().is_some_and(|h| h.starts_with("Mixes"))
            && !elsewhere.contains(&a.get_long().unwrap_or_default())
    });
    let mut seen = 0;
    for arg in of_mixes {
        let name = arg.get_long().unwrap();
        let value = match name {
            "pure" | "leave-output-tensor" | "keep-split" => None,
            "tensor-type" => Some("a=q8_0"),
            "override-kv" => Some("a=int:1"),
            "prune-layers" => Some("1"),
            "imatrix-missing" => Some("uniform"),
            "order" => Some("source"),
            "tensor-type-file" | "imatrix-name" => Some("file"),
            _ => Some("q8_0"),
        };
        let option = format!("--{name}");
        let words: Vec<&str> = std::iter::once(option.as_str()).chain(value).collect();
        for others in [
            &["--from-gguf", "a", "--imatrix", "i", "--dtype", "q8_0"][..],
            &["--from-gguf", "a", "--imatrix", "i", "--experts-dtype", "q8_0"],
            &["--from-ptqtp", "a"],
        ] {
            let ran = place.run(&[others, &["--out", "b"], &words].concat());
            assert_eq!(ran.code, 2, "{others:?} {words:?}: {}", ran.err);
            assert!(ran.err.contains("cannot be used with"), "{others:?} {words:?}: {}", ran.err);
            seen += 1;
        }
    }
    assert_eq!(seen, 3 * 12);
}

#[test]
fn patterns_without_end_are_refused() {
    let place = Place::new();
    place.write("in.gguf", &mixed());
    place.write("types.txt", &vec![b' '; (1 << 20) + 1]);
    let mix = ["--from-gguf", "in.gguf", "--out", "o.gguf", "--mix", "q5_0", "--tensor-type-file"];
    for file in ["types.txt", "/dev/zero"] {
        let ran = place.run(&[&mix[..], &[file]].concat());
        assert_eq!(ran.code, 2, "{file}: {}", ran.err);
        assert!(ran.err.contains("longer than 1048576 bytes"), "{file}: {}", ran.err);
    }
}

#[test]
fn senseless_command_lines_exit_with_2() {
    let place = Place::new();
    let mut said = String::new();
    for args in [
        &[][..],
        &["--from-gguf", "a"],
        &["--from-gguf", "a", "--out", "b", "--dtype", "q9_z"],
        &["--from-gguf", "a", "--out", "b", "--dtype", "q4_2"],
        &["--from-gguf", "a", "--out", "b", "--dtype", "q8_k"],
        &["--from-gguf", "a", "--out", "b", "--split-max-size", "4X"],
        &["--from-gguf", "a", "--out", "b", "--threads", "0"],
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        let line = ran.err.lines().next().unwrap_or_default();
        // The list of types grows with the codecs.
        said += &format!("{}\n", line.split("; there are").next().unwrap());
    }
    insta::assert_snapshot!(said);
}

#[test]
fn completions_and_manual_know_the_flags() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let out = place.run(&["completions", shell]).out;
        assert!(out.contains("experts-dtype"), "{shell}");
        // These shells also complete values.
        assert!(out.contains("q8_0") || !["bash", "zsh", "fish"].contains(&shell), "{shell}");
    }
    let man = place.run(&["man"]).out;
    assert!(man.contains("experts\\-dtype") && man.contains("only\\-model"), "{man}");
}
