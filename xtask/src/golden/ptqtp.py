"""Makes golden/ptqtp: trit-planes of odd and ordinary groups, straight from the formulas of docs/ptqtp.md.

    python3 xtask/src/golden/ptqtp.py GOLDEN OUT

GOLDEN is the folder with `inputs/`, OUT where the files go. Python's standard library only, one number
after the other: it shares nothing with the solver it is to check. An f32 operation is the f64 one rounded
once more, which gives the same number for +, -, *, / (53 bits are more than twice 24 and two).
"""

import ctypes
import hashlib
import math
import os
import struct
import sys

G = 256
INF = float("inf")
NAN = float("nan")


def f32(x):
    return ctypes.c_float(x).value


def divide(a, b):
    if b != 0.0:
        return a / b
    if a == 0.0 or math.isnan(a):
        return NAN
    return math.copysign(INF, a) * math.copysign(1.0, b)


# What the formulas leave open: candidates in order, the first of equals wins.

ONE = [(0,), (-1,), (1,)]
TWO = [(0, 0), (0, -1), (0, 1), (-1, 0), (1, 0), (-1, -1), (-1, 1), (1, -1), (1, 1)]
THREE = [
    (0, 0, 0),
    (0, 0, -1), (0, 0, 1), (0, -1, 0), (0, 1, 0), (-1, 0, 0), (1, 0, 0),
    (0, -1, -1), (0, -1, 1), (0, 1, -1), (0, 1, 1),
    (-1, 0, -1), (-1, 0, 1), (1, 0, -1), (1, 0, 1),
    (-1, -1, 0), (-1, 1, 0), (1, -1, 0), (1, 1, 0),
    (-1, -1, -1), (-1, -1, 1), (-1, 1, -1), (-1, 1, 1), (1, -1, -1), (1, -1, 1), (1, 1, -1), (1, 1, 1),
]
CANDIDATES = {1: ONE, 2: TWO, 3: THREE}

RIDGE = f32(1e-8)
STILL = f32(1e-4)


def nearest(w, alpha):
    """The trits of every weight for these scales."""
    planes = len(alpha)
    values = []
    for c in CANDIDATES[planes]:
        v = f32(alpha[0] * c[0])
        for a, t in zip(alpha[1:], c[1:]):
            v = f32(v + f32(a * t))
        values.append(v)
    trits = []
    for x in w:
        best = 0
        if math.isfinite(x):
            d = f32(x - values[0])
            least = f32(d * d)
            for i in range(1, len(values)):
                d = f32(x - values[i])
                e = f32(d * d)
                if e < least:
                    best, least = i, e
        trits.append(CANDIDATES[planes][best])
    return trits


def scales(w, trits, planes):
    """The ridge regression of the weights on the planes, in f64."""
    n = [0, 0, 0]
    cross = {(0, 1): 0, (0, 2): 0, (1, 2): 0}
    b = [0.0, 0.0, 0.0]
    for x, t in zip(w, trits):
        for p in range(planes):
            if t[p] != 0:
                n[p] += 1
                if math.isfinite(x):
                    b[p] += x if t[p] > 0 else -x
        for p, q in cross:
            if q < planes:
                cross[p, q] += t[p] * t[q]
    ridge = RIDGE
    if planes == 1:
        return [f32(divide(b[0], n[0] + ridge))]
    if planes == 2:
        c = float(cross[0, 1])
        while True:
            a0, a1 = n[0] + ridge, n[1] + ridge
            det = a0 * a1 - c * c
            condition = divide(a0 * a0 + a1 * a1 + 2.0 * c * c, det)
            if condition <= 1e6 or ridge >= 1.0:
                break
            ridge = min(ridge * 10.0, 1.0)
        return [f32(divide(b[0] * a1 - b[1] * c, det)), f32(divide(b[1] * a0 - b[0] * c, det))]
    c01, c02, c12 = float(cross[0, 1]), float(cross[0, 2]), float(cross[1, 2])
    while True:
        a0, a1, a2 = n[0] + ridge, n[1] + ridge, n[2] + ridge
        j00 = a1 * a2 - c12 * c12
        j01 = -(c01 * a2 - c12 * c02)
        j02 = c01 * c12 - a1 * c02
        j11 = a0 * a2 - c02 * c02
        j12 = -(a0 * c12 - c01 * c02)
        j22 = a0 * a1 - c01 * c01
        det = a0 * j00 + c01 * j01 + c02 * j02
        of_a = math.sqrt(a0 * a0 + a1 * a1 + a2 * a2 + 2.0 * (c01 * c01 + c02 * c02 + c12 * c12))
        of_j = math.sqrt(j00 * j00 + j11 * j11 + j22 * j22 + 2.0 * (j01 * j01 + j02 * j02 + j12 * j12))
        condition = divide(of_a * of_j, det)
        if condition <= 1e6 or ridge >= 1.0:
            break
        ridge = min(ridge * 10.0, 1.0)
    return [
        f32(divide(j00 * b[0] + j01 * b[1] + j02 * b[2], det)),
        f32(divide(j01 * b[0] + j11 * b[1] + j12 * b[2], det)),
        f32(divide(j02 * b[0] + j12 * b[1] + j22 * b[2], det)),
    ]


def free(w, planes):
    """Scales of the free fit, and how many rounds they took; negative when they still moved."""
    trits = []
    for x in w:
        t = 1 if x > 0 else -1 if x < 0 else 0
        trits.append((t,) * planes)
    alpha = [1.0] * planes
    for rounds in range(1, 51):
        before = alpha
        alpha = scales(w, trits, planes)
        trits = nearest(w, alpha)
        move = 0.0
        for a, old in zip(alpha, before):
            move += (a - old) * (a - old)
        if math.sqrt(move) < STILL:
            return alpha, rounds
    return alpha, -rounds


def tied(w, planes):
    """Scales of the tied fit: the step of the uniform quantizer with the least squared error."""
    levels = (3**planes - 1) // 2
    largest = 0.0
    for x in w:
        if math.isfinite(x):
            largest = max(largest, abs(x))
    if largest == 0.0:
        return [0.0] * planes, 1
    least, step = INF, f32(largest / levels)
    for i in range(65):
        s = f32(largest / f32(f32(levels - 0.75) + f32(i * 0.03125)))
        error = 0.0
        for x in w:
            if not math.isfinite(x):
                continue
            q = f32(divide(x, s))
            code = levels
            if not math.isnan(q):
                code = math.floor(min(abs(q), float(levels)) + 0.5)
                code = min(code, levels) * (1 if q >= 0 else -1)
            d = f32(x - f32(s * code))
            error += d * d
        if error < least:
            least, step = error, s
    return [f32(3.0 ** (planes - 1 - p) * step) for p in range(planes)], 1


def pack(w, alpha):
    """One TQ2_0 block per plane: the scales as f16, the trits that fit those best."""
    bits = []
    stored = []
    for a in alpha:
        a = abs(a)
        h = struct.pack("<e", 65504.0 if math.isnan(a) or a > 65504.0 else a)
        bits.append(h)
        stored.append(struct.unpack("<e", h)[0])
    trits = nearest(w, stored)
    blocks = []
    for p in range(len(alpha)):
        qs = bytearray(64)
        for i in range(G):
            half, rest = divmod(i, 128)
            crumb, byte = divmod(rest, 32)
            qs[32 * half + byte] |= (trits[i][p] + 1) << (2 * crumb)
        blocks.append(bytes(qs) + bits[p])
    return blocks


# Groups.

MASK = (1 << 64) - 1


class SplitMix:
    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def unit(self):
        return (self.next() >> 11) / (1 << 53)

    def normal(self):
        return sum(self.unit() for _ in range(12)) - 6.0


def own():
    """Groups that no other input has."""
    r = SplitMix(20)
    gauss = [f32(r.normal() * 0.02) for _ in range(G)]

    def with_(changes):
        out = list(gauss)
        for i, x in changes.items():
            out[i] = x
        return out

    tiny = struct.unpack("<f", struct.pack("<I", 1))[0]
    most = struct.unpack("<f", struct.pack("<I", 0x7F7FFFFF))[0]
    yield "zeros", [0.0] * G
    yield "zeros of both signs", [(-0.0, 0.0)[i % 2] for i in range(G)]
    yield "one value", [0.37] * G
    yield "one negative value", [-0.37] * G
    yield "one value and its negative", [(0.37, -0.37)[i % 3 == 0] for i in range(G)]
    yield "one value among zeros", [0.37 if i == 100 else 0.0 for i in range(G)]
    yield "nan", [NAN] * G
    yield "infinite", [(INF, -INF)[i % 2] for i in range(G)]
    yield "one nan", with_({17: NAN})
    yield "one infinity", with_({0: INF})
    yield "infinities of both signs and nan", with_({3: -INF, 4: INF, 200: NAN, 255: INF})
    yield "finite only at the end", [NAN] * 200 + gauss[200:]
    yield "infinite but for one", [INF] * 255 + [0.5]
    yield "smallest denormals", [tiny * (r.next() % 7 - 3) for _ in range(G)]
    yield "denormals", [f32(r.normal() * 1e-40) for _ in range(G)]
    yield "around the smallest normal", [f32(r.normal() * 1.2e-38) for _ in range(G)]
    yield "squares underflow", [f32(r.normal() * 3e-23) for _ in range(G)]
    yield "squares overflow", [f32(r.normal() * 3e19) for _ in range(G)]
    yield "largest", [(most, -most)[r.next() % 2] for _ in range(G)]
    yield "nearly largest", [f32(most * (2.0 * r.unit() - 1.0)) for _ in range(G)]
    yield "beyond f16", [f32(r.normal() * 1e5) for _ in range(G)]
    yield "at the end of f16", [f32((r.unit() + 0.5) * 65504.0 * (1 - 2 * (i % 2))) for i in range(G)]
    yield "below f16", [f32(r.normal() * 1e-8) for _ in range(G)]
    yield "f16 subnormals", [f32(r.normal() * 1e-6) for _ in range(G)]
    yield "powers of three", [f32((1 - 2 * (i % 2)) * 3.0 ** (i // 2 % 5 - 2)) for i in range(G)]
    yield "nine even levels", [float(r.next() % 9) - 4.0 for _ in range(G)]
    yield "halves between nine levels", [(float(r.next() % 18) - 8.5) / 2.0 for _ in range(G)]
    yield "twenty-seven even levels", [float(r.next() % 27) - 13.0 for _ in range(G)]
    yield "halves between levels", [float(r.next() % 26) - 12.5 for _ in range(G)]
    yield "trits", [float(r.next() % 3) - 1.0 for _ in range(G)]
    yield "two sizes", [(1 - 2 * (r.next() % 2)) * (1.0, 0.25)[r.next() % 2] for _ in range(G)]
    yield "one outlier", with_({128: 5.0})
    yield "two outliers", with_({1: 5.0, 254: -5.0})
    yield "all positive", [abs(x) for x in gauss]
    yield "shifted", [f32(x + 0.05) for x in gauss]
    yield "ulp neighbours", [f32(1.0 + r.next() % 5 * 2.0**-23) for _ in range(G)]
    yield "half of them zero", [0.0 if r.next() % 2 else x for x in gauss]
    yield "one element per size", [f32(2.0 ** -(i / 16.0) * (1 - 2 * (i % 2))) for i in range(G)]
    for i in range(4):
        yield f"gaussian {i}", [f32(r.normal() * 0.02) for _ in range(G)]
    for i in range(2):
        yield f"uniform {i}", [f32(2.0 * r.unit() - 1.0) for _ in range(G)]


# Of the inputs of the other goldens: every so many groups.
SHARED = {"adversarial": 2, "outliers": 3, "ties": 4, "scale-limits": 3, "constant-noise": 2, "gaussian": 3,
          "heavy-tails": 2, "minilm": 3}


def groups(golden):
    yield from own()
    for name, every in SHARED.items():
        with open(os.path.join(golden, "inputs", name + ".f32"), "rb") as file:
            data = file.read()
        values = struct.unpack(f"<{len(data) // 4}f", data)
        for g in range(0, len(values) // G, every):
            yield f"{name} group {g}", list(values[g * G : (g + 1) * G])


FITS = {"free1": (free, 1), "free2": (free, 2), "free3": (free, 3), "tied2": (tied, 2), "tied3": (tied, 3)}


def main(golden, out):
    every = list(groups(golden))
    files = {"groups.f32": b"".join(struct.pack(f"<{G}f", *w) for _, w in every)}
    lines = ["# Made by xtask/src/golden/ptqtp.py, read by the tests of export-gguf; see docs/golden.md."]
    rounds = []
    for fit, (solve, planes) in FITS.items():
        solved = [solve(w, planes) for _, w in every]
        packed = [pack(w, alpha) for (_, w), (alpha, _) in zip(every, solved)]
        for p in range(planes):
            files[f"{fit}.ptqtp{p}"] = b"".join(blocks[p] for blocks in packed)
        rounds.append([n for _, n in solved])
    lines.append("rounds " + " ".join(FITS) + ", negative where the scales still moved")
    for g, (name, _) in enumerate(every):
        lines.append(f"group {g} {' '.join(str(r[g]) for r in rounds)} {name}")
    for name, data in sorted(files.items()):
        lines.append(f"file {hashlib.sha256(data).hexdigest()} {len(data)} {name}")
        with open(os.path.join(out, name), "wb") as file:
            file.write(data)
    with open(os.path.join(out, "MANIFEST"), "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
