"""Safetensors files of one side against the other: tensors.py see FILE... | make FOLDER

`see` prints what the package sees in each file, as JSON: for each tensor its dtype, its shape and the sha256 of its
data. `make` writes files with the package and prints the same of what went into them.
"""

import hashlib
import json
import pathlib
import sys

import numpy
import safetensors
import safetensors.numpy


def seen(data):
    tensors = {}
    for name, t in safetensors.deserialize(data):
        digest = hashlib.sha256(bytes(t["data"])).hexdigest()
        tensors[name] = [t["dtype"], list(t["shape"]), digest]
    return tensors


def make(folder):
    rng = numpy.random.default_rng(7)
    files = {
        "floats": {
            "b.weight": rng.standard_normal((5, 3)).astype(numpy.float32),
            "a.weight": rng.standard_normal((2, 3, 4)).astype(numpy.float16),
            "z": rng.standard_normal(7),
            "scalar": numpy.array(3.5, numpy.float32),
            "none": numpy.zeros((0, 4), numpy.float32),
        },
        "integers": {
            str(numpy.dtype(t)): rng.integers(0, 100, (3, 5)).astype(t)
            for t in ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]
        },
        "names": {name: numpy.arange(4, dtype=numpy.uint8) for name in ["", "\u00fc\"\\\n", "\U0001f600", "x" * 300]},
        "many": {f"layer.{i}.weight": numpy.full((3,), i, numpy.float32) for i in range(3000)},
    }
    result = {}
    for name, tensors in files.items():
        path = pathlib.Path(folder) / f"{name}.safetensors"
        safetensors.numpy.save_file(tensors, path, metadata={"format": "np", "by": "package"})
        result[str(path)] = seen(path.read_bytes())
    return result


def main():
    if sys.argv[1] == "make":
        print(json.dumps(make(sys.argv[2])))
    else:
        print(json.dumps({path: seen(pathlib.Path(path).read_bytes()) for path in sys.argv[2:]}))


main()
