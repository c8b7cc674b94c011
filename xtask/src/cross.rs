//! `cargo xtask cross`: the kernels' tests on processors that this machine is not, under qemu, on a
//! reduced grid. x86-64 with instructions masked shows that detection holds and that nothing above a
//! level is executed below it; aarch64 runs code that is otherwise never run here.
//!
//! The aarch64 standard library and a rustc that fits it come from Debian, as do the linker and qemu.
//! What is missing is installed, which takes root.

use crate::util::{Outcome, capture, cargo, root, run as run_command};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file that shows a package to be there, and the package.
const NEEDED: &[(&str, &str)] = &[
    ("/usr/bin/rustc", "rustc-web"),
    ("/usr/bin/cargo", "cargo-web"),
    ("/usr/lib/rustlib/aarch64-unknown-linux-gnu/lib", "libstd-rust-web-dev:arm64"),
    ("/usr/bin/aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
    ("/usr/aarch64-linux-gnu/include/stdio.h", "libc6-dev-arm64-cross"),
    ("/usr/bin/qemu-aarch64-static", "qemu-user-static"),
];

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// A processor: qemu's name of it, and the best level that it must give.
const X86: &[(&str, &str)] = &[("Haswell", "avx2"), ("Westmere", "portable")];
const AARCH64: &[(&str, &str)] = &[("cortex-a53", "neon"), ("neoverse-n1", "dotprod"), ("max", "dotprod")];

/// Seconds that one processor may take.
const PATIENCE: &str = "600";

/// Installs what is missing, builds, runs.
pub(crate) fn run(_: &[String]) -> Outcome {
    install()?;
    let native = build(&mut cargo(), None)?;
    for (cpu, level) in X86 {
        test(&native, "qemu-x86_64-static", cpu, level)?;
    }
    let mut debian = Command::new("/usr/bin/cargo");
    debian
        .current_dir(root())
        // Cargo looks rustc up in PATH otherwise, and finds rustup's.
        .env("RUSTC", "/usr/bin/rustc")
        .env("RUSTDOC", "/usr/bin/rustdoc")
        .env("CARGO_TARGET_DIR", root().join("target/cross"))
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc")
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    run_command(Command::new("/usr/bin/rustc").arg("--version"))?;
    let foreign = build(&mut debian, Some(TARGET))?;
    for (cpu, level) in AARCH64 {
        test(&foreign, "qemu-aarch64-static", cpu, level)?;
    }
    Ok(())
}

fn install() -> Outcome {
    let missing: Vec<&str> =
        NEEDED.iter().filter(|(file, _)| !Path::new(file).exists()).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("installing {}", missing.join(" "));
    run_command(Command::new("dpkg").args(["--add-architecture", "arm64"]))?;
    run_command(Command::new("apt-get").args(["update", "-qq"]))?;
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    run_command(apt.args(["install", "-y", "-qq", "--no-install-recommends"]).args(missing))
}

/// Builds the integration tests of the kernels, and says where they are.
fn build(cargo: &mut Command, target: Option<&str>) -> Outcome<PathBuf> {
    cargo.args(["test", "--package", "ggml-kernels", "--test", "it", "--no-run", "--message-format", "json"]);
    if let Some(target) = target {
        cargo.args(["--target", target]);
    }
    let messages = capture(cargo)?;
    let program = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|m| m["target"]["name"] == "it")
        .find_map(|m| m["executable"].as_str().map(PathBuf::from));
    program.ok_or_else(|| "cargo named no test program".to_owned())
}

/// Runs the tests on one processor. Instructions are not emulated twice: qemu's signal frames lack the
/// registers that the emulator of AVX-VNNI rewrites. What threads do is the same everywhere, and large.
fn test(program: &Path, qemu: &str, cpu: &str, level: &str) -> Outcome {
    println!("{qemu} -cpu {cpu}, best level {level}");
    let mut command = Command::new("timeout");
    command
        .args([PATIENCE, qemu, "-cpu", cpu])
        .arg(program)
        .args(["--skip", "vnni::", "--skip", "threads", "--quiet"]);
    command.env("GGML_KERNELS_GRID", "reduced").env("GGML_KERNELS_EXPECT", level);
    run_command(&mut command)
}
