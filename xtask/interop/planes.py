"""python planes.py BIN_DIR PLANES SUMS: decodes every trit-plane of PLANES in llama.cpp's library, adds
those of a tensor in f32 from the first on, and compares with the F32 tensor of SUMS, bit by bit. Prints
what it found as JSON.
"""

import ctypes as C
import json
import sys

import numpy as np

from llama import BY_ID, Reader, ggml


def main(folder, planes, sums):
    library = ggml(folder)
    library.dequantize_row_tq2_0.argtypes = [C.c_void_p, C.c_void_p, C.c_int64]
    library.dequantize_row_tq2_0.restype = None
    planes, sums = Reader(planes), Reader(sums)
    found = {"planes": 0, "tensors": 0, "weights": 0, "faults": []}
    for name, (kind, dims, stored) in sums.tensors.items():
        total, count = None, 0
        while f"{name}.ptqtp{count}" in planes.tensors:
            ty, shape, data = planes.tensors[f"{name}.ptqtp{count}"]
            if BY_ID[ty] != "tq2_0" or shape != dims:
                found["faults"].append(f"{name}: plane {count} is {BY_ID[ty]} {shape}")
            data = np.ascontiguousarray(data)
            out = np.empty(int(np.prod(dims)), dtype=np.float32)
            library.dequantize_row_tq2_0(data.ctypes.data, out.ctypes.data, out.size)
            total = np.zeros_like(out) if total is None else total
            total = total + out
            count += 1
        if count == 0:
            same = name in planes.tensors and bytes(planes.tensors[name][2]) == bytes(stored)
            if not same:
                found["faults"].append(f"{name}: not what passes through")
            continue
        ours = np.frombuffer(bytes(stored), dtype=np.float32)
        if BY_ID[kind] != "f32" or ours.tobytes() != total.tobytes():
            found["faults"].append(f"{name}: the sum of {count} planes differs from ggml's")
        found["planes"] += count
        found["tensors"] += 1
        found["weights"] += total.size
    print(json.dumps(found))


main(*sys.argv[1:])
