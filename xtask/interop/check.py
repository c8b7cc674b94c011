"""check.py BIN_DIR FOLDER TYPE MODEL...: compares what export-gguf made of FOLDER's models with what
llama.cpp makes of them, and prints one line of JSON.

Tensors of the same type must be byte-equal to those of llama_model_quantize (pure); where the types
differ, `explained` must know why. The model `recut` has rows of 256 only: each of its matrices must
also equal what ggml_quantize_chunk gives.

With IMPORTANCE set in the environment, both tools weigh by MODEL.imatrix.gguf. With KEEP set,
llama.cpp's files stay for other uses.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from llama import BY_ID, TYPES, Reader, ggml, importance_of

# llama_model_quantize never touches these; export-gguf treats them as the weights they are.
TABLES = {"position_embd.weight"}
# What llama.cpp takes instead where the blocks don't divide a row; export-gguf leaves such a tensor as it is.
FALLBACK = {
    **dict.fromkeys(["iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_xs"], "iq4_nl"),
    **dict.fromkeys(["q2_0", "q2_k", "q3_k", "tq1_0", "tq2_0"], "q4_0"),
    "q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0",
}


def explained(kind, name, dims, source, ours, theirs):
    """The written list of differences: why the two tools chose different types, or None."""
    if name in TABLES and theirs == source and ours == kind:
        return "llama.cpp keeps position tables"
    if dims[0] % TYPES[kind][2] and ours == source and theirs == FALLBACK.get(kind):
        return f"rows of {dims[0]}: llama.cpp takes {theirs}, export-gguf keeps {ours}"
    return None


def reference(folder, work, model, kind):
    """The model by llama_model_quantize, in a process of its own."""
    target = f"{work}/{model}-{kind}.llama.gguf"
    importance = [f"{work}/{model}.imatrix.gguf"] if "IMPORTANCE" in os.environ else []
    tool = os.path.join(os.path.dirname(__file__), "llama.py")
    command = [sys.executable, tool, folder, f"{work}/{model}-f16.gguf", target, kind, *importance]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise SystemExit(f"llama_model_quantize of {model} to {kind} failed:\n{done.stderr[-2000:]}")
    return target


def by_chunk(library, kind, values, row_len, importance):
    """ggml_quantize_chunk over the rows of a tensor, on two threads."""
    ident, _, length, size = TYPES[kind]
    rows, row_size = values.size // row_len, row_len // length * size
    out = np.zeros(rows * row_size, dtype=np.uint8)
    weights = importance.ctypes.data if importance is not None else None
    half = rows // 2

    def part(begin, end):
        if begin < end:
            library.ggml_quantize_chunk(
                ident, values.ctypes.data + begin * row_len * 4, out.ctypes.data + begin * row_size, 0,
                end - begin, row_len, weights,
            )

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(part, (0, half), (half, rows)))
    return out


def check(folder, work, model, kind, result):
    """All tensors of a model."""
    source = Reader(f"{work}/{model}-f16.gguf").tensors
    ours = Reader(f"{work}/{model}-{kind}.gguf").tensors
    path = reference(folder, work, model, kind)
    theirs = Reader(path).tensors
    assert ours.keys() == theirs.keys() == source.keys()
    for name in source:
        compare(kind, model, name, source[name], ours[name], theirs[name], result)
    if "KEEP" not in os.environ:
        os.unlink(path)
    if model == "recut":
        check_chunks(folder, work, kind, source, ours, result)


def check_chunks(folder, work, kind, source, ours, result):
    """Every matrix of the model by ggml_quantize_chunk."""
    importance = importance_of(f"{work}/recut.imatrix.gguf") if "IMPORTANCE" in os.environ else {}
    library = ggml(folder)
    library.ggml_quantize_init(TYPES[kind][0])
    for name, (ident, dims, data) in ours.items():
        if len(dims) < 2:
            continue
        if BY_ID[ident] != kind:
            result["faults"].append(f"recut {name}: {BY_ID[ident]}, not {kind}")
            continue
        values = np.frombuffer(source[name][2].tobytes(), dtype=np.float16).astype(np.float32)
        chunk = by_chunk(library, kind, values, dims[0], importance.get(name))
        result["weights"] += values.size
        if not np.array_equal(chunk, data):
            result["faults"].append(f"recut {name}: {blocks(chunk, data, kind)} differ from ggml_quantize_chunk")


def compare(kind, model, name, source, ours, theirs, result):
    """One tensor of both tools: equal bytes, or a difference that is on the list."""
    types = [BY_ID[t[0]] for t in (source, ours, theirs)]
    if types[1] != types[2]:
        why = explained(kind, name, source[1], *types)
        if why is None:
            result["faults"].append(f"{model} {name}: {types[1]}, llama.cpp has {types[2]}: not on the list")
        else:
            result["differences"][why] = result["differences"].get(why, 0) + 1
    elif not np.array_equal(ours[2], theirs[2]):
        result["faults"].append(f"{model} {name}: {blocks(ours[2], theirs[2], types[1])} differ from llama.cpp")
    elif types[1] == kind:
        result["equal"] += 1


def blocks(a, b, kind):
    size = TYPES[kind][3]
    bad = (a.reshape(-1, size) != b.reshape(-1, size)).any(axis=1)
    return f"{bad.sum()} of {bad.size} blocks (first {bad.argmax()})"


def main():
    folder, work, kind, *models = sys.argv[1:]
    result = {"type": kind, "equal": 0, "weights": 0, "differences": {}, "faults": []}
    for model in models:
        check(folder, work, model, kind, result)
    print(json.dumps(result))


main()
