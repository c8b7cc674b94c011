//! The `export-gguf` command: everything is in the library, this file only hands over the exit code.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    export_gguf::cli::main()
}
