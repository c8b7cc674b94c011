"""importance.py MODEL.gguf OUT: a made-up file of importance for a model, by the rules of llama.cpp's
format: sums of squares and counts per tensor.
"""

import sys

import gguf
import numpy as np

from llama import Reader


def write(path, rows):
    """For tensors of the given names and row lengths."""
    rng = np.random.default_rng(7)
    writer = gguf.GGUFWriter(path, "")
    writer.kv_data[0].pop("general.architecture", None)
    writer.add_type("imatrix")
    writer.add_array("imatrix.datasets", ["made up"])
    writer.add_uint32("imatrix.chunk_count", 100)
    writer.add_uint32("imatrix.chunk_size", 512)
    for name, row_len in rows:
        sums = np.exp(rng.normal(0.0, 1.5, row_len)) * 100
        writer.add_tensor(f"{name}.in_sum2", sums.astype(np.float32).reshape(1, row_len))
        writer.add_tensor(f"{name}.counts", np.full((1, 1), 100, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    tensors = Reader(sys.argv[1]).tensors
    write(sys.argv[2], [(name, dims[0]) for name, (_, dims, _) in tensors.items() if len(dims) > 1])
