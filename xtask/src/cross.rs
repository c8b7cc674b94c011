//! `cargo xtask cross`: the kernels' tests on processors that this machine is not, under qemu, on a
//! reduced grid. x86-64 with instructions masked shows that detection holds and that nothing above a
//! level is executed below it; aarch64 runs code that is otherwise never run here.
//!
//! The aarch64 standard library and a rustc that fits it come from Debian, as do the linker and qemu.
//! What is missing is installed, which takes root.

use crate::asm;
use crate::util::{Artifact, Outcome, artifacts, root, run as run_command, test_builds};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// What is needed of Debian. rustc and the standard library must be of one version.
const NEEDED: &[&str] = &[
    "rustc-web",
    "cargo-web",
    "libstd-rust-web-dev:arm64",
    "gcc-aarch64-linux-gnu",
    "libc6-dev-arm64-cross",
    "qemu-user-static",
];

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// A processor: qemu's name of it, less what qemu would warn of, and the best level that it must give.
const X86: &[(&str, &str)] = &[
    ("Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid", "avx2"),
    ("Westmere,-pcid,-x2apic,-tsc-deadline", "portable"),
];
const AARCH64: &[(&str, &str)] = &[("cortex-a53", "neon"), ("neoverse-n1", "dotprod"), ("max", "i8mm")];

/// Seconds that one processor may take.
const PATIENCE: &str = "600";

/// Installs what is missing, builds, runs.
pub(crate) fn run(_: &[String]) -> Outcome {
    install()?;
    let native = artifacts(&mut test_builds())?;
    for (cpu, level) in X86 {
        test(program(&native)?, "qemu-x86_64-static", cpu, level)?;
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
    debian.args(["test", "--package", "ggml-kernels", "--test", "it", "--no-run", "--target", TARGET]);
    // What other crates do is little, and proc macros are among them.
    debian.args(["--config", "profile.dev.package.'*'.opt-level = 0"]);
    let foreign = artifacts(&mut debian)?;
    asm::check(&asm::library(&foreign)?, &asm::AARCH64)?;
    for (cpu, level) in AARCH64 {
        test(program(&foreign)?, "qemu-aarch64-static", cpu, level)?;
    }
    Ok(())
}

/// Installs the packages that dpkg does not list.
fn install() -> Outcome {
    let listed = |package: &&&str| Path::new(&format!("/var/lib/dpkg/info/{package}.list")).exists();
    let missing: Vec<&str> = NEEDED.iter().filter(|p| !listed(p)).copied().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let failed = |e: String| format!("cannot install {} (Debian, as root): {e}", missing.join(", "));
    println!("installing {}", missing.join(" "));
    run_command(Command::new("dpkg").args(["--add-architecture", "arm64"])).map_err(failed)?;
    run_command(Command::new("apt-get").args(["update", "-qq"])).map_err(failed)?;
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    apt.args(["install", "-y", "-qq", "--no-install-recommends"]).args(&missing);
    run_command(&mut apt).map_err(failed)
}

/// The integration tests of the kernels.
fn program(built: &[Artifact]) -> Outcome<&Path> {
    let found = built.iter().filter(|a| a.is("ggml-kernels", "it")).find_map(|a| a.program.as_deref());
    found.ok_or_else(|| "cargo named no test program of ggml-kernels".to_owned())
}

/// Runs the tests on one processor. Instructions are not emulated twice: qemu's signal frames lack the
/// registers that the emulator of AVX-VNNI rewrites. What threads do is the same everywhere, and large.
fn test(program: &Path, qemu: &str, cpu: &str, level: &str) -> Outcome {
    println!("{qemu} -cpu {cpu}, best level {level}");
    let start = Instant::now();
    let mut command = Command::new("timeout");
    command
        .args([PATIENCE, qemu, "-cpu", cpu])
        .arg(program)
        .args(["--skip", "vnni::", "--skip", "threads", "--quiet"]);
    command.env("GGML_KERNELS_GRID", "reduced").env("GGML_KERNELS_EXPECT", level);
    run_command(&mut command)?;
    println!("{:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
