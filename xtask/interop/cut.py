"""cut.py PART1 PART3 OUT ROWS: the first two blocks of Qwen2.5-Coder-0.5B, made F16, from the first and third
of the six parts that its file is published in.

Matrices keep their first ROWS rows. The embedding takes its rows from the third part, where its end lies,
and the output matrix from the first. The final norm lies elsewhere; ones stand for it. Metadata is the
model's own, but for the number of blocks and the vocabulary, which is left out. Nothing runs this model, but
it is all that a quantizer needs.
"""

import os
import struct
import sys

import gguf
import numpy as np

from llama import BY_ID, TYPES, Reader

F32, F16 = TYPES["f32"][0], TYPES["f16"][0]
ARRAY = 9


class Head(Reader):
    """The header of a file of which only parts are there."""

    def __init__(self, path):
        self.data = np.memmap(path, dtype=np.uint8, mode="r")
        self.at = 0
        _, _, count, pairs = self.take("<4sIQQ")
        self.pairs = {}
        for _ in range(pairs):
            begin = self.at
            key, kind = self.text(), self.take("<I")[0]
            self.value(kind)
            if kind != ARRAY:
                self.pairs[key] = self.data[begin : self.at].tobytes()
        self.infos = []
        for _ in range(count):
            name = self.text()
            dims = self.take(f"<{self.take('<I')[0]}Q")
            self.infos.append((name, dims, *self.take("<IQ")))
        self.base = (self.at + 31) // 32 * 32


def values(part, begin, ident, row_len, rows, at):
    """Rows of a tensor whose data begins at `begin` of the file; `part` begins at `at`."""
    _, _, length, size = TYPES[BY_ID[ident]]
    row = row_len // length * size
    skip = max(0, -((begin - at) // row))
    first = begin + skip * row - at
    data = part[first : first + rows * row]
    assert data.size == rows * row
    if ident == F32:
        return data.view(np.float32).reshape(rows, row_len)
    return gguf.quants.dequantize(data.reshape(rows, row), gguf.GGMLQuantizationType(ident))


def main():
    first, third, out, most = *sys.argv[1:4], int(sys.argv[4])
    head = Head(first)
    size = os.path.getsize(first)
    third = np.fromfile(third, dtype=np.uint8)
    count = head.pairs["qwen2.block_count"]
    head.pairs["qwen2.block_count"] = count[:-4] + struct.pack("<I", 2)
    tensors = []
    for name, dims, ident, offset in head.infos:
        row_len, rows = dims[0], min(most, dims[1]) if len(dims) > 1 else 1
        if name == "output_norm.weight":
            data = np.ones((1, row_len), dtype=np.float32)
        elif name == "output.weight":
            data = values(head.data, head.base + offset, ident, row_len, rows, 0)
        elif name == "token_embd.weight" or name.startswith(("blk.0.", "blk.1.")):
            data = values(third, head.base + offset, ident, row_len, rows, 2 * size)
        else:
            continue
        matrix = len(dims) > 1
        tensors.append((name, (row_len, rows) if matrix else (row_len,), data.astype(np.float16) if matrix else data))
    with open(out, "wb") as file:
        file.write(struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(head.pairs)))
        file.write(b"".join(head.pairs.values()))
        offset = 0
        for name, dims, data in tensors:
            file.write(struct.pack("<Q", len(name)) + name.encode())
            file.write(struct.pack(f"<I{len(dims)}Q", len(dims), *dims))
            file.write(struct.pack("<IQ", F16 if data.dtype == np.float16 else F32, offset))
            offset += (data.nbytes + 31) // 32 * 32
        for data in [None, *(data for _, _, data in tensors)]:
            if data is not None:
                file.write(data.tobytes())
            file.write(bytes(-file.tell() % 32))


main()
