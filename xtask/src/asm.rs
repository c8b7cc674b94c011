//! `cargo xtask asm`: the machine code of the tiles, one function per layout, number of rows and
//! instruction set. Each must be made of the instruction that its set is for, must keep multiplication
//! and addition apart, and must call nothing but the reports of a broken index: a call elsewhere would be
//! to code that was not inlined, so not compiled for the set.
//!
//! It looks at the library that the tests are built with. `cargo xtask cross` does the same for aarch64.

use crate::util::{Artifact, Outcome, artifacts, capture, test_builds};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The instruction sets of a processor family, and how its machine code reads.
#[derive(Debug)]
pub(crate) struct Family {
    objdump: &'static str,
    /// What the names of calls start with, and those of jumps.
    call: &'static str,
    jump: &'static str,
    sets: &'static [Set],
}

/// What the tiles of a set have in them.
#[derive(Debug)]
struct Set {
    token: &'static str,
    /// Dot products: as many of any of these.
    dots: &'static [&'static str],
    /// What has no place there: another set's dot products, and fused multiplication and addition.
    others: &'static [&'static str],
}

pub(crate) const X86: Family = Family {
    objdump: "objdump",
    call: "call",
    jump: "j",
    sets: &[
        Set { token: "Avx2", dots: &["vpmaddubsw", "vpmaddwd"], others: &["vpdpbusd", "vfm", "vfnm"] },
        Set { token: "AvxVnni", dots: &["vpdpbusd"], others: &["vpmaddubsw", "vfm", "vfnm"] },
        Set { token: "Avx512Vnni", dots: &["vpdpbusd"], others: &["vpmaddubsw", "vfm", "vfnm"] },
    ],
};

pub(crate) const AARCH64: Family = Family {
    objdump: "aarch64-linux-gnu-objdump",
    call: "bl",
    jump: "b",
    sets: &[
        Set {
            token: "Neon",
            dots: &["smull", "smlal"],
            others: &["sdot", "usdot", "usmmla", "fmla", "fmls", "fmadd"],
        },
        Set { token: "Dotprod", dots: &["sdot"], others: &["usdot", "usmmla", "fmla", "fmls", "fmadd"] },
        Set { token: "I8mm", dots: &["usdot", "usmmla"], others: &["fmla", "fmls", "fmadd"] },
    ],
};

/// Layouts: packed, of plane sets, and of whole bytes.
const LAYOUTS: usize = 18 + 3 + 5;
/// A tile has one, two or four rows.
const ROWS: usize = 3;
/// Dot products of the smallest tile, whose loops stay rolled.
const DOTS: usize = 2;

/// Instructions of a tile that a set has no use for: it returns.
const EMPTY: usize = 3;

/// Parts of the names of functions that end the program.
const REPORTS: &[&str] = &["core::panicking::", "_fail"];

/// One function of the library.
#[derive(Debug, Default)]
struct Function {
    name: String,
    instructions: Vec<String>,
    calls: Vec<String>,
}

/// Checks the library of this processor's family.
pub(crate) fn run(_: &[String]) -> Outcome {
    check(&library(&artifacts(&mut test_builds())?)?, &X86)
}

/// The library among what a build has made, or found made.
pub(crate) fn library(built: &[Artifact]) -> Outcome<PathBuf> {
    let files = built.iter().filter(|a| a.is("ggml-kernels", "ggml_kernels")).flat_map(|a| &a.files);
    let found = files.into_iter().find(|f| f.extension().is_some_and(|e| e == "rlib"));
    found.cloned().ok_or_else(|| "cargo named no library of ggml-kernels".to_owned())
}

/// Disassembles a library and looks at every tile.
pub(crate) fn check(library: &Path, family: &Family) -> Outcome {
    let mut command = Command::new(family.objdump);
    let text = capture(command.args(["-drC", "--no-show-raw-insn"]).arg(library))?;
    let functions = functions(&text, family);
    let mut faults = Vec::new();
    for set in family.sets {
        let name = format!("::{} as ggml_kernels::isa::Isa>::tile::imp", set.token);
        let ours = functions.iter().filter(|f| f.name.contains(&name));
        let tiles: Vec<&Function> = ours.filter(|f| f.instructions.len() > EMPTY).collect();
        let dots: usize = tiles.iter().map(|t| t.count(set.dots)).sum();
        println!("{:<11} {} tiles, {dots} of {}", set.token, tiles.len(), set.dots.join(", "));
        if tiles.len() < LAYOUTS * ROWS {
            faults.push(format!("{}: {} tiles, {} expected", set.token, tiles.len(), LAYOUTS * ROWS));
        }
        for tile in tiles {
            tile.check(set, &mut faults);
        }
    }
    for fault in &faults {
        eprintln!("{fault}");
    }
    if faults.is_empty() { Ok(()) } else { Err(format!("{} faults", faults.len())) }
}

impl Function {
    /// How many of its instructions have one of these names.
    fn count(&self, names: &[&str]) -> usize {
        self.instructions.iter().filter(|i| names.iter().any(|n| i.contains(n))).count()
    }

    fn check(&self, set: &Set, faults: &mut Vec<String>) {
        let dots = self.count(set.dots);
        if dots < DOTS {
            faults.push(format!("{}: {dots} of {:?}, {DOTS} expected", self.name, set.dots));
        }
        for other in set.others.iter().filter(|o| self.count(&[**o]) > 0) {
            faults.push(format!("{}: has {other}", self.name));
        }
        // An operation of the same set is compiled for it, inlined or not.
        let own =
            [format!("{} as ggml_kernels", set.token), format!("{}$u20$as$u20$ggml_kernels", set.token)];
        let allowed =
            |call: &str| REPORTS.iter().any(|r| call.contains(r)) || own.iter().any(|o| call.contains(o));
        for call in self.calls.iter().filter(|c| !allowed(c)) {
            faults.push(format!("{}: calls {call}", self.name));
        }
    }
}

/// Takes objdump's text apart. Where a call or jump leaves its function, the name of what it goes to
/// stands in the relocation below it.
fn functions(text: &str, family: &Family) -> Vec<Function> {
    let mut found: Vec<Function> = Vec::new();
    for line in text.lines() {
        if let Some((_, name)) = line.strip_suffix(">:").and_then(|l| l.split_once(" <")) {
            found.push(Function { name: name.to_owned(), ..Function::default() });
            continue;
        }
        let Some(function) = found.last_mut() else { continue };
        let last = function.instructions.last().map_or("", String::as_str);
        let is_call = last.starts_with(family.call);
        if let Some((_, relocation)) = line.split_once(": R_") {
            if is_call {
                function.calls.pop();
            }
            if is_call || last.starts_with(family.jump) {
                let target = relocation.split_once('\t').map_or(relocation, |(_, target)| target);
                function.calls.push(target.to_owned());
            }
        } else if let Some((_, instruction)) = line.split_once(":\t") {
            let instruction = instruction.replace('\t', " ");
            // Unless a relocation says more.
            if instruction.starts_with(family.call) {
                function.calls.push(instruction.clone());
            }
            function.instructions.push(instruction);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
0000000000000000 <<a::isa::x86::AvxVnni as a::isa::Isa>::tile::imp::h1>:
   0:\tvpdpbusd ymm0,ymm1,ymm2
   4:\tcall   5 <memcpy>
\t\t\t5: R_X86_64_PLT32\tcore::panicking::panic-0x4
   9:\tje     0 <x>
   b:\tcall   *%rax
   d:\tjmp    12 <y>
\t\t\te: R_X86_64_PLT32\tmemcpy-0x4
  12:\tvfmadd213ps ymm0,ymm1,ymm2
";

    #[test]
    fn calls_and_instructions_are_found() {
        let functions = functions(TEXT, &X86);
        let mut faults = Vec::new();
        functions[0].check(&X86.sets[1], &mut faults);
        let expected = ["1 of [\"vpdpbusd\"]", "has vfm", "calls call   *%rax", "calls memcpy"];
        assert_eq!(faults.len(), expected.len(), "{faults:?}");
        for (fault, expected) in faults.iter().zip(expected) {
            assert!(fault.contains(expected), "{fault}");
        }
    }
}
