"""importance.py MODEL.gguf OUT.gguf: a made-up file of importance for a model, by the rules of llama.cpp's
format: sums of squares and counts per tensor. OUT.dat beside it is the same in the older form. With
BLOCKS_ONLY set in the environment, only the matrices of blocks are in it, as in those that llama-imatrix
makes.
"""

import os
import struct
import sys

import gguf
import numpy as np

from llama import Reader

DATASET, CHUNKS, COUNT, CALLS = "made up", 100, 100, 64


def sums(rows):
    """For tensors of the given names and row lengths."""
    rng = np.random.default_rng(7)
    for name, row_len in rows:
        yield name, (np.exp(rng.normal(0.0, 1.5, row_len)) * COUNT).astype(np.float32)


def write(path, rows):
    """The GGUF form."""
    writer = gguf.GGUFWriter(path, "")
    writer.kv_data[0].pop("general.architecture", None)
    writer.add_type("imatrix")
    writer.add_array("imatrix.datasets", [DATASET])
    writer.add_uint32("imatrix.chunk_count", CHUNKS)
    writer.add_uint32("imatrix.chunk_size", 512)
    for name, values in sums(rows):
        writer.add_tensor(f"{name}.in_sum2", values.reshape(1, -1))
        writer.add_tensor(f"{name}.counts", np.full((1, 1), COUNT, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_dat(path, rows):
    """The older form: the mean times the calls, a power of two, so that both forms mean the same floats."""
    with open(path, "wb") as file:
        file.write(struct.pack("<i", len(rows)))
        for name, values in sums(rows):
            file.write(struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", CALLS, values.size))
            file.write((values / np.float32(COUNT) * np.float32(CALLS)).tobytes())
        file.write(struct.pack("<ii", CHUNKS, len(DATASET)) + DATASET.encode())


def main():
    tensors = Reader(sys.argv[1]).tensors
    rows = [(name, dims[0]) for name, (_, dims, _) in tensors.items() if len(dims) > 1]
    if "BLOCKS_ONLY" in os.environ:
        rows = [row for row in rows if row[0].startswith("blk.")]
    write(sys.argv[2], rows)
    write_dat(sys.argv[2].removesuffix("gguf") + "dat", rows)


if __name__ == "__main__":
    main()
