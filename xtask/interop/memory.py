"""python memory.py BINARY FOLDER GB: a BF16 model of so many gigabytes (10^9), made in FOLDER, goes through BINARY
under `prlimit --data=1073741824`, and in a control group of as much memory where one can be made: to q8_0, and a
quarter of its matrices to two trit-planes while the rest is copied. Prints seconds, peak RSS and peak anonymous memory
of each, and removes everything again.
"""

import json
import os
import struct
import subprocess
import sys
import time

import numpy as np

LIMIT = 1 << 30
ROWS, COLUMNS = 8192, 8192
KINDS = ["attn_q", "attn_output", "ffn_up", "ffn_down"]


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def make(path, size):
    """Matrices of nearly normal weights, none of them zero, each another piece of one long noise."""
    rng = np.random.default_rng(1)
    noise = (rng.standard_normal(1 << 25, dtype=np.float32) * 0.02).view(np.uint32) >> 16
    noise = np.where(noise & 0x7FFF == 0, 0x3C00, noise).astype("<u2").tobytes()
    each = ROWS * COLUMNS * 2
    count = max(1, size // each)
    names = [f"blk.{i // len(KINDS)}.{KINDS[i % len(KINDS)]}.weight" for i in range(count)]
    blocks = (count + len(KINDS) - 1) // len(KINDS)
    header = b"GGUF" + struct.pack("<IQQ", 3, count, 2)
    header += text("general.architecture") + struct.pack("<I", 8) + text("llama")
    header += text("llama.block_count") + struct.pack("<II", 4, blocks)
    for i, name in enumerate(names):
        header += text(name) + struct.pack("<IQQIQ", 2, COLUMNS, ROWS, 30, i * each)
    with open(path, "wb") as file:
        file.write(header + bytes(-len(header) % 32))
        for i in range(count):
            at = i * 7_919_000 * 2 % len(noise)
            rest = each
            while rest:
                piece = noise[at : at + rest]
                file.write(piece)
                rest, at = rest - len(piece), 0
    return count * each


def control_group():
    """A group whose processes, page cache included, have no more memory than the limit; None where there is none."""
    for parent, name in [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]:
        group = os.path.join(parent, f"export-gguf-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            with open(os.path.join(group, name), "w") as file:
                file.write(str(LIMIT))
            return group
        except OSError:
            os.rmdir(group)
    return None


def anonymous(pid):
    try:
        with open(f"/proc/{pid}/status") as file:
            return max((int(line.split()[1]) for line in file if line.startswith("RssAnon:")), default=0)
    except OSError:
        return 0


def run(binary, group, options):
    command = ["prlimit", f"--data={LIMIT}", binary, *options, "--json", "--force", "--no-measure"]
    start, peak = time.monotonic(), 0

    def enter():
        if group:
            with open(os.path.join(group, "cgroup.procs"), "w") as file:
                file.write(str(os.getpid()))

    process = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=enter)
    # The report comes at the end and fits a pipe.
    while process.poll() is None:
        peak = max(peak, anonymous(process.pid))
        time.sleep(0.02)
    report = json.loads(process.stdout.read())
    if process.returncode != 0:
        raise SystemExit(f"{command}: {process.returncode}")
    return time.monotonic() - start, report["peak_rss"] / 2**20, peak / 1024


def main(binary, folder, size):
    source, target = os.path.join(folder, "memory-in.gguf"), os.path.join(folder, "memory-out.gguf")
    group = control_group()
    try:
        made = make(source, int(float(size) * 1e9))
        print(f"{made / 1e9:.1f} GB of BF16, {LIMIT >> 20} MiB of data allowed{', and of memory in a control group' if group else ''}", flush=True)
        for what in (["--ptqtp=2", "--ptqtp-include", "attn_q"], ["--dtype", "q8_0"]):
            seconds, rss, anon = run(binary, group, ["--from-gguf", source, "--out", target, *what])
            print(f"{' '.join(what):45} {seconds:8.1f} s  peak RSS {rss:6.1f} MiB  anonymous {anon:6.1f} MiB", flush=True)
            os.remove(target)
    finally:
        for path in (source, target):
            if os.path.exists(path):
                os.remove(path)
        if group:
            os.rmdir(group)


main(*sys.argv[1:])
