"""llama.cpp's prebuilt libraries through ctypes: llama_model_quantize, ggml_quantize_chunk, and
the mapping from a type's name to both. Also a GGUF reader of its own, so that comparing bytes
trusts no library.

As a program:  llama.py BIN_DIR IN OUT TYPE [IMATRIX]   a whole llama-quantize, pure, two threads;
with REQUANTIZE set in the environment, from a quantized model too
"""

import ctypes as C
import os
import struct
import sys

# name: id, llama_ftype (None: only a tensor override reaches it), elements and bytes per block
TYPES = {
    "f32": (0, 0, 1, 4), "f16": (1, 1, 1, 2), "bf16": (30, 32, 1, 2),
    "q4_0": (2, 2, 32, 18), "q4_1": (3, 3, 32, 20), "q5_0": (6, 8, 32, 22), "q5_1": (7, 9, 32, 24),
    "q8_0": (8, 7, 32, 34), "q2_k": (10, 10, 256, 84), "q3_k": (11, 11, 256, 110),
    "q4_k": (12, 14, 256, 144), "q5_k": (13, 16, 256, 176), "q6_k": (14, 18, 256, 210),
    "iq2_xxs": (16, 19, 256, 66), "iq2_xs": (17, 20, 256, 74), "iq3_xxs": (18, 23, 256, 98),
    "iq1_s": (19, 24, 256, 50), "iq4_nl": (20, 25, 32, 18), "iq3_s": (21, 26, 256, 110),
    "iq2_s": (22, 29, 256, 82), "iq4_xs": (23, 30, 256, 136), "iq1_m": (29, 31, 256, 56),
    "tq1_0": (34, 36, 256, 54), "tq2_0": (35, 37, 256, 66), "mxfp4": (39, 38, 32, 17),
    "nvfp4": (40, None, 64, 36), "q1_0": (41, 40, 128, 18), "q2_0": (42, 41, 64, 18),
}
BY_ID = {row[0]: name for name, row in TYPES.items()}


class Quantize(C.Structure):
    """llama_model_quantize_params of the pinned version."""

    _fields_ = [
        ("nthread", C.c_int32), ("ftype", C.c_int), ("output_type", C.c_int), ("embedding_type", C.c_int),
        ("allow_requantize", C.c_bool), ("quantize_output", C.c_bool), ("only_copy", C.c_bool),
        ("pure", C.c_bool), ("keep_split", C.c_bool), ("dry_run", C.c_bool),
        ("imatrix", C.c_void_p), ("kv", C.c_void_p), ("overrides", C.c_void_p), ("prune", C.c_void_p),
        ("max_buffer", C.c_size_t), ("spare", C.c_char * 64),
    ]


class Importance(C.Structure):
    _fields_ = [("name", C.c_char_p), ("data", C.c_void_p), ("size", C.c_size_t)]


class Override(C.Structure):
    _fields_ = [("pattern", C.c_char_p), ("type", C.c_int)]


def ggml(folder):
    """libggml-base: ggml_quantize_chunk."""
    library = C.CDLL(os.path.join(folder, "libggml-base.so"), mode=C.RTLD_GLOBAL)
    library.ggml_quantize_chunk.restype = C.c_size_t
    library.ggml_quantize_chunk.argtypes = [
        C.c_int, C.c_void_p, C.c_void_p, C.c_int64, C.c_int64, C.c_int64, C.c_void_p
    ]
    library.ggml_quantize_init.argtypes = [C.c_int]
    return library


def llama(folder):
    """libllama with the plainest of its CPU backends; or a library of its own that has all it needs."""
    if os.path.isfile(folder):
        return signed(C.CDLL(folder))
    for name in ("libggml-base.so", "libggml-cpu-x64.so"):
        C.CDLL(os.path.join(folder, name), mode=C.RTLD_GLOBAL)
    find = lambda stem: next(n for n in sorted(os.listdir(folder)) if n.startswith(stem) and ".so" in n)
    library = C.CDLL(os.path.join(folder, find("libllama.v")), mode=C.RTLD_GLOBAL)
    backends = C.CDLL(os.path.join(folder, find("libggml.v")), mode=C.RTLD_GLOBAL)
    backends.ggml_backend_load_all_from_path(C.c_char_p(folder.encode()))
    library.llama_backend_init()
    return signed(library)


def signed(library):
    """The library with the types of what is called in it."""
    library.llama_model_quantize_default_params.restype = Quantize
    library.llama_model_quantize.argtypes = [C.c_char_p, C.c_char_p, C.POINTER(Quantize)]
    library.llama_model_quantize.restype = C.c_uint32
    return library


def quantize(folder, source, target, kind, importance=None, requantize=False):
    """llama_model_quantize, pure: every tensor it quantizes gets the one type."""
    library = llama(folder)
    ident, ftype, _, _ = TYPES[kind]
    params = library.llama_model_quantize_default_params()
    params.nthread, params.pure, params.allow_requantize = 2, True, requantize
    params.ftype = ftype if ftype is not None else TYPES["q8_0"][1]
    if ftype is None:
        rows = (Override * 2)(Override(b".*", ident), Override(None, 0))
        params.overrides = C.cast(rows, C.c_void_p)
    if importance:
        import numpy as np

        kept = {name: np.ascontiguousarray(w, dtype=np.float32) for name, w in importance.items()}
        rows = [Importance(name.encode(), w.ctypes.data, w.size) for name, w in kept.items()]
        table = (Importance * (len(rows) + 1))(*rows, Importance(None, None, 0))
        params.imatrix = C.cast(table, C.c_void_p)
    return library.llama_model_quantize(source.encode(), target.encode(), C.byref(params))


WIRE = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Reader:
    """Tensors of a GGUF v3 file: name -> (type id, ne, bytes)."""

    def __init__(self, path):
        import numpy as np

        self.data = np.memmap(path, dtype=np.uint8, mode="r")
        self.at = 0
        magic, version, count, pairs = self.take("<4sIQQ")
        assert (magic, version) == (b"GGUF", 3), path
        self.metadata = {}
        for _ in range(pairs):
            key = self.text()
            self.metadata[key] = self.value(self.take("<I")[0])
        infos = []
        for _ in range(count):
            name = self.text()
            dims = self.take(f"<{self.take('<I')[0]}Q")
            infos.append((name, dims, *self.take("<IQ")))
        align = self.metadata.get("general.alignment", 32)
        base = (self.at + align - 1) // align * align
        self.tensors = {}
        for name, dims, ident, offset in infos:
            kind = BY_ID.get(ident)
            assert kind, f"{path}: {name} has type {ident}"
            _, _, length, size = TYPES[kind]
            count = int(np.prod(dims, dtype=np.int64))
            begin = base + offset
            self.tensors[name] = (ident, dims, self.data[begin : begin + count // length * size])

    def take(self, form):
        size = struct.calcsize(form)
        values = struct.unpack(form, self.data[self.at : self.at + size].tobytes())
        self.at += size
        return values

    def text(self):
        (size,) = self.take("<Q")
        self.at += size
        return self.data[self.at - size : self.at].tobytes().decode("utf-8", "replace")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            kind, count = self.take("<IQ")
            return [self.value(kind) for _ in range(count)]
        return self.take("<" + WIRE[kind])[0]


def importance_file(path):
    """An importance file of either kind: values by name, datasets, chunks."""
    with open(path, "rb") as file:
        legacy = file.read(4) != b"GGUF"
    return importance_dat(path) if legacy else importance_gguf(path)


def importance_gguf(path):
    """Sums divided by counts, one count for each expert."""
    import numpy as np

    reader = Reader(path)
    floats = lambda name: np.frombuffer(reader.tensors[name][2].tobytes(), dtype=np.float32)
    names = [n.removesuffix(".in_sum2") for n in reader.tensors if n.endswith(".in_sum2")]
    entries = {}
    for name in names:
        counts = floats(f"{name}.counts")
        sums = floats(f"{name}.in_sum2").reshape(counts.size, -1)
        divided = np.divide(sums, counts[:, None], out=np.ones_like(sums), where=counts[:, None] > 0)
        entries[name] = divided.reshape(-1)
    return entries, reader.metadata["imatrix.datasets"], reader.metadata["imatrix.chunk_count"]


def importance_dat(path):
    """The older kind: values times calls."""
    import numpy as np

    with open(path, "rb") as file:
        number = lambda: struct.unpack("<i", file.read(4))[0]
        entries = {}
        for _ in range(number()):
            name = file.read(number()).decode()
            calls, count = number(), number()
            entries[name] = np.frombuffer(file.read(4 * count), dtype=np.float32) / np.float32(calls or 1)
        chunks = number()
        return entries, [file.read(number()).decode()], chunks


def importance_of(path):
    """Importance by name."""
    return importance_file(path)[0]


if __name__ == "__main__":
    folder, source, target, kind, *rest = sys.argv[1:]
    sys.exit(quantize(folder, source, target, kind, importance_of(rest[0]) if rest else None, "REQUANTIZE" in os.environ))
