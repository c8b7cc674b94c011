//! The target appears whole or not at all.

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::*;

#[cfg(unix)]
#[test]
fn links_to_the_input_are_refused_even_with_force() {
    let place = Place::new();
    let input = mixed();
    let path = place.write("in.gguf", &input);
    std::os::unix::fs::symlink(&path, place.path("soft.gguf")).unwrap();
    std::fs::hard_link(&path, place.path("hard.gguf")).unwrap();
    for out in ["in.gguf", "./in.gguf", "soft.gguf", "hard.gguf"] {
        let ran = place.run(&["--from-gguf", "in.gguf", "--out", out, "--dtype", "q8_0", "--force"]);
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains("is the input"), "{}", ran.err);
    }
    assert!(place.read("in.gguf") == input);
}

#[test]
fn targets_that_cannot_be_are_named_in_one_line() {
    let place = Place::new();
    let input = mixed();
    place.write("in.gguf", &input);
    place.write("there.gguf", b"old");
    std::fs::create_dir(place.path("folder")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere", place.path("dangling.gguf")).unwrap();
    let say = |out: &str| {
        let ran = place.run(&["--from-gguf", "in.gguf", "--out", out]);
        assert_eq!(ran.code, 1, "{out}");
        ran.err
    };
    insta::assert_snapshot!(
        ["there.gguf", "folder", "no/such/out.gguf", "in.gguf/x", "new.gguf/", "dangling.gguf"].map(say).concat(),
        @r"
    error: there.gguf: exists already; choose another name, or replace it with --force
    error: folder: is a folder; name a file in it
    error: cannot use folder no/such: No such file or directory (os error 2)
    error: in.gguf/x: its parent is not a folder
    error: new.gguf/: names a folder; name a file in it
    error: dangling.gguf: is a link to a file that does not exist; remove it, or choose another name
    "
    );
    assert_eq!(place.read("there.gguf"), b"old");
    let ran = place.run(&["--from-gguf", "in.gguf", "--out", "there.gguf", "--force", "--quiet"]);
    assert_eq!((ran.code, ran.out, ran.err), (0, String::new(), String::new()));
    assert!(place.read("there.gguf") == input);
}

/// A file size limit stands for a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_before_the_work_and_leaves_nothing() {
    let place = Place::new();
    place.write("in.gguf", &mixed());
    place.write("out.gguf", b"old");
    let limited = std::process::Command::new("prlimit")
        .arg("--fsize=4096")
        .arg(env!("CARGO_BIN_EXE_export-gguf"))
        .args(["--from-gguf", text(&place.path("in.gguf")), "--out", text(&place.path("out.gguf"))])
        .args(["--force", "--dtype", "q8_0"])
        .output()
        .unwrap();
    let ran = Ran::from(limited);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("take disk space") && ran.err.contains("bytes needed"), "{}", ran.err);
    assert_eq!(place.names(), ["in.gguf", "out.gguf"]);
    assert_eq!(place.read("out.gguf"), b"old");
}

/// Starts a long run over an existing target, and waits until its temporary is there.
#[cfg(unix)]
fn long_run(place: &Place) -> std::process::Child {
    place.write("out.gguf", b"old");
    // Slow on any machine: many weights, one thread, a type that searches.
    let n = 256 * 40_000;
    let zeros = vec![0x3C; n * 2];
    let name = "blk.0.ffn_up.weight";
    place.write("in.gguf", &model(&[(name, &[256, 40_000], gguf_format::GgmlType::F16, zeros)]));
    // Whoever runs the tests may ignore SIGHUP (nohup does), which children inherit and the program
    // respects; `env` gives the signals their meaning back and becomes the program.
    let mut command = std::process::Command::new("env");
    let child = command
        .current_dir(place.path("."))
        .args(["--default-signal=HUP,INT,TERM", env!("CARGO_BIN_EXE_export-gguf")])
        .args(["--from-gguf", "in.gguf", "--out", "out.gguf", "--force", "--threads", "1"])
        .args(["--dtype", "iq3_s"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !place.names().iter().any(|n| n.contains("export-gguf-tmp")) {
        assert!(started.elapsed() < Duration::from_secs(60), "no temporary appeared");
        std::thread::sleep(Duration::from_millis(1));
    }
    // Whatever the test does next finds it in the middle of its work.
    kill(&child, "-STOP");
    child
}

#[cfg(unix)]
fn kill(child: &std::process::Child, signal: &str) {
    let ok = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(ok.success());
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_the_target_as_it_was() {
    for (signal, code) in [("-TERM", 143), ("-INT", 130), ("-HUP", 129)] {
        let place = Place::new();
        let mut child = long_run(&place);
        kill(&child, signal);
        kill(&child, "-CONT");
        assert_eq!(child.wait().unwrap().code(), Some(code));
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(said.contains("nothing was left behind"), "{said}");
        assert_eq!(place.names(), ["in.gguf", "out.gguf"]);
        assert_eq!(place.read("out.gguf"), b"old");
    }
}

#[cfg(unix)]
#[test]
fn what_a_killed_run_leaves_the_next_one_removes() {
    let place = Place::new();
    let mut child = long_run(&place);
    kill(&child, "-KILL");
    child.wait().unwrap();
    let left = place.names();
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(left[0].starts_with(".out.gguf.export-gguf-tmp-"), "{left:?}");
    assert_eq!(place.read("out.gguf"), b"old");
    let ran = place.run(&["--from-gguf", "in.gguf", "--out", "out.gguf", "--force"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(place.names(), ["in.gguf", "out.gguf"]);
}

#[cfg(unix)]
#[test]
fn a_running_export_is_not_disturbed_by_another() {
    let place = Place::new();
    let mut child = long_run(&place);
    let temporary = place.names().remove(0);
    place.write("other.gguf", &mixed());
    let ran = place.run(&["--from-gguf", "other.gguf", "--out", "out.gguf", "--force"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(place.names().contains(&temporary));
    kill(&child, "-TERM");
    kill(&child, "-CONT");
    child.wait().unwrap();
    assert_eq!(place.names(), ["in.gguf", "other.gguf", "out.gguf"]);
}

#[test]
fn a_closed_pipe_is_success() {
    let place = Place::new();
    place.write("in.gguf", &mixed());
    for args in [&["man"][..], &["completions", "zsh"], &["--from-gguf", "in.gguf", "--dry-run"], &["--help"]]
    {
        let mut child = place.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{args:?}");
    }
}
