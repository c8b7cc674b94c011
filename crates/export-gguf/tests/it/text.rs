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
    let types = ["--tensor-type", "no_such=q4_0", "--tensor-type", "weight=q8_0"];
    let mix = [&["--from-gguf", "in.gguf", "--out", "o.gguf", "--mix", "q5_0"][..], &types].concat();
    let note = "note: --tensor-type 'no_such' decides about no tensor\n";
    for more in [&["--dry-run"][..], &[]] {
        let ran = place.run(&[&mix[..], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert_eq!((ran.out.matches("note: ").count(), ran.out.contains(note)), (1, true), "{}", ran.out);
    }
    let ran = place.run(&[&mix[..], &["--dry-run", "--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["notes"], serde_json::json!(["--tensor-type 'no_such' decides about no tensor"]));
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
