"""Writes golden/safetensors with the PyPI package `safetensors`: python3 xtask/interop/safetensors_golden.py

The files are small and cover what a writer decides: the order of the tensors, the padding of the header, the
escapes of names, the tags of the dtypes. tests/it/golden.rs of safetensors-lite declares the same tensors and
wants the same bytes; the data of each is `pattern` of its length.
"""

import ctypes
import hashlib
import pathlib

import safetensors

OUT = pathlib.Path(__file__).resolve().parents[2] / "golden" / "safetensors"

# The package's names of the dtypes it can write, with bytes of a row of 8 elements. Of F4 it counts pairs.
DTYPES = {
    "bool": 8, "float4_e2m1fn_x2": 8, "uint8": 8, "int8": 8, "float8_e5m2": 8, "float8_e4m3fn": 8,
    "float8_e8m0fnu": 8, "float8_e4m3fnuz": 8, "float8_e5m2fnuz": 8, "int16": 16, "uint16": 16, "float16": 16,
    "bfloat16": 16, "int32": 32, "uint32": 32, "float32": 32, "complex64": 64, "float64": 64, "int64": 64,
    "uint64": 64,
}

FILES = {
    "empty": ({}, None),
    "metadata_only": ({}, {"format": "pt"}),
    "metadata_empty": ({"a": ("float32", [1], 4)}, {}),
    "shapes": (
        {
            "scalar": ("float32", [], 4),
            "none": ("float32", [0], 0),
            "none.inside": ("int64", [3, 0, 2], 0),
            "row": ("float16", [3], 6),
            "odd": ("uint8", [3], 3),
            "cube": ("float32", [2, 3, 4], 96),
            "deep": ("bfloat16", [1, 2, 1, 2, 1, 2], 16),
        },
        {"format": "np"},
    ),
    "order": (
        {name: (dtype, [2], size) for name, dtype, size in [
            ("b", "float32", 8), ("a", "float32", 8), ("B", "float32", 8), ("a.10", "float32", 8),
            ("a.2", "float32", 8), ("z", "float64", 16), ("c", "bfloat16", 4), ("d", "float16", 4),
            ("e", "uint8", 2), ("f", "bool", 2), ("g", "int64", 16), ("\u00fc", "float32", 8),
        ]},
        None,
    ),
    "names": (
        {name: ("uint8", [1], 1) for name in [
            "", " ", "quote\"", "back\\slash", "tab\t", "new\nline", "nul\0", "bell\x07", "del\x7f", "/slash",
            "caf\u00e9", "\u6a21\u578b", "\U0001f600", "\u2028", "model.layers.0.self_attn.q_proj.weight",
        ]},
        {"k\n\u00e9\"": "v\\\t"},
    ),
    "dtypes": ({dtype: (dtype, [8], size) for dtype, size in DTYPES.items()}, None),
}


def pattern(size):
    return bytes((i * 37 + size * 11) % 256 for i in range(size))


def write(tensors, metadata):
    kept, specs = [], {}
    for name, (dtype, shape, size) in tensors.items():
        buffer = ctypes.create_string_buffer(pattern(size), max(size, 1))
        kept.append(buffer)
        specs[name] = safetensors.TensorSpec(
            dtype=dtype, shape=shape, data_ptr=ctypes.addressof(buffer), data_len=size
        )
    return safetensors.serialize(specs, metadata)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Made by xtask/interop/safetensors_golden.py, read by the tests of safetensors-lite.",
        f"package safetensors {safetensors.__version__} (PyPI)",
    ]
    for name, (tensors, metadata) in FILES.items():
        data = write(tensors, metadata)
        (OUT / f"{name}.safetensors").write_bytes(data)
        lines.append(f"file {hashlib.sha256(data).hexdigest()} {name}.safetensors")
    (OUT / "MANIFEST").write_text("\n".join(lines) + "\n")


main()
