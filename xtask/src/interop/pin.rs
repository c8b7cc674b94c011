//! llama.cpp's quantizer of the golden's version, compiled from the sources that the goldens come from:
//! `llama_model_quantize` and what it calls, with the architectures of our models. The prebuilt libraries
//! have an older ggml, whose encoders differ here and there.

use crate::oracle::{self, Source, VERSION};
use crate::util::{Outcome, capture, read, root, run, sha256};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is compiled, relative to the sources. Only the C files do the arithmetic.
const FILES: &[&str] = &[
    "ggml/src/ggml-quants.c",
    "ggml/src/ggml.c",
    "ggml/src/ggml-threading.cpp",
    "ggml/src/gguf.cpp",
    "src/llama-arch.cpp",
    "src/llama-hparams.cpp",
    "src/llama-impl.cpp",
    "src/llama-mmap.cpp",
    "src/llama-model-loader.cpp",
    "src/llama-model.cpp",
    "src/llama-quant.cpp",
    "src/llama-vocab.cpp",
    "src/llama.cpp",
    "src/models/bert.cpp",
    "src/models/qwen2.cpp",
];
/// The goldens' flags for C. What is C++ only decides and copies, so it need not be as fast.
const C: &[&str] = &["-std=gnu11", "-O3", "-D_GNU_SOURCE"];
const CXX: &[&str] = &["-std=c++17", "-O1"];
const BOTH: &[&str] = &["-DNDEBUG", "-w", "-fPIC", "-c"];

/// The library, compiled if it isn't there.
pub(super) fn library() -> Outcome<PathBuf> {
    let source = Source::fetch(VERSION)?;
    let shim = root().join("xtask/interop/shim.c");
    let key = format!("{} {FILES:?} {C:?} {CXX:?} {BOTH:?} {}", oracle::compiler()?, sha256(&read(&shim)?));
    let folder = root().join("target/oracle").join(VERSION).join(&sha256(key.as_bytes())[..16]);
    let library = folder.join("libquantize.so");
    if library.is_file() {
        return Ok(library);
    }
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    // Not in the package: cmake would make them.
    for name in ["GGML", "LLAMA"] {
        let text = format!("#define {name}_VERSION \"\"\n#define {name}_COMMIT \"\"\n");
        write(&folder.join(format!("{}-version.h", name.to_lowercase())), &text)?;
    }
    let tree = source.path("llama.cpp");
    let files: Vec<PathBuf> = FILES.iter().map(|f| tree.join(f)).chain([shim]).collect();
    let mut objects = compile(&files, &tree, &folder)?;
    // The other architectures, and all that would run a model, are never called: their names are given
    // an address so that the library loads.
    let first = folder.join("first.so");
    link(&objects, &first)?;
    let undefined = capture(Command::new("nm").args(["-D", "--undefined-only"]).arg(&first))?;
    let mut stubs = String::from(".section .note.GNU-stack,\"\"\n.text\n");
    // A name with a version is the system's.
    let names = undefined.lines().filter_map(|l| l.trim().strip_prefix("U ")).filter(|n| !n.contains('@'));
    names.for_each(|name| stubs += &format!(".globl \"{name}\"\n\"{name}\":\n"));
    // Who calls one of them all the same ends at once.
    stubs += "ud2\n";
    let file = folder.join("stubs.s");
    write(&file, &stubs)?;
    let object = folder.join("stubs.o");
    run(Command::new("cc").arg("-c").arg(&file).arg("-o").arg(&object))?;
    objects.push(object);
    let partial = folder.join("partial.so");
    link(&objects, &partial)?;
    std::fs::rename(&partial, &library).map_err(|e| format!("{}: {e}", library.display()))?;
    Ok(library)
}

/// Compiles every file, two at a time.
fn compile(files: &[PathBuf], tree: &Path, folder: &Path) -> Outcome<Vec<PathBuf>> {
    let object = |file: &Path| folder.join(file.file_name().unwrap_or_default()).with_added_extension("o");
    let compile = |file: &Path| {
        let (program, flags) = if file.extension() == Some("c".as_ref()) { ("cc", C) } else { ("c++", CXX) };
        let mut command = Command::new(program);
        command.args(flags).args(BOTH).arg("-I").arg(folder);
        for include in ["include", "src", "ggml/include", "ggml/src"] {
            command.arg("-I").arg(tree.join(include));
        }
        run(command.arg(file).arg("-o").arg(object(file)))
    };
    let next = AtomicUsize::new(0);
    let worker = || -> Outcome {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            compile(file)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(worker);
        let own = worker();
        other.join().unwrap_or_else(|_| Err("a compiling thread panicked".to_owned())).and(own)
    })?;
    Ok(files.iter().map(|f| object(f)).collect())
}

fn link(objects: &[PathBuf], to: &Path) -> Outcome {
    run(Command::new("c++").args(["-shared", "-o"]).arg(to).args(objects).args(["-lpthread", "-lm"]))
}

fn write(path: &Path, text: &str) -> Outcome {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
