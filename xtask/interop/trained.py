"""Adapters of real shapes: trained.py t5 ADAPTER BASE | t5-check ADAPTER BASE MERGED | qwen BASE ADAPTER

`t5` makes a base of random numbers with the tensors that the trained PEFT adapter for t5-large changes, and `t5-check`
holds what was merged against f64. `qwen` writes a GGUF adapter for a real model, of random numbers small enough for
the model to keep on writing sentences, large enough for other ones.
"""

import json
import pathlib
import sys

import gguf
import numpy
from safetensors.numpy import load_file

PARTS = {
    "encoder.block.{}.layer.0.SelfAttention.{}": "enc.blk.{}.attn_{}",
    "decoder.block.{}.layer.0.SelfAttention.{}": "dec.blk.{}.attn_{}",
    "decoder.block.{}.layer.1.EncDecAttention.{}": "dec.blk.{}.cross_attn_{}",
}


def pairs(folder):
    """Tensor, A and B for each module of the adapter."""
    tensors = load_file(pathlib.Path(folder) / "adapter_model.safetensors")
    found = []
    for hf, name in PARTS.items():
        for block in range(24):
            for part in ["q", "v"]:
                module = "base_model.model." + hf.format(block, part)
                a, b = tensors.pop(module + ".lora_A.weight"), tensors.pop(module + ".lora_B.weight")
                found.append((name.format(block, part) + ".weight", a, b))
    assert not tensors, list(tensors)
    return found


def t5(adapter, base):
    rng = numpy.random.default_rng(3)
    w = gguf.GGUFWriter(base, "t5")
    w.add_block_count(24)
    w.add_head_count(16)
    for name, a, b in pairs(adapter):
        w.add_tensor(name, rng.standard_normal((b.shape[0], a.shape[1])).astype(numpy.float32) / 32)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def t5_check(adapter, base, merged):
    config = json.loads((pathlib.Path(adapter) / "adapter_config.json").read_text())
    rank, s = config["r"], config["lora_alpha"] / config["r"]
    old = {t.name: t.data for t in gguf.GGUFReader(base).tensors}
    new = {t.name: t.data for t in gguf.GGUFReader(merged).tensors}
    faults, worst, weights, numpys = [], 0.0, 0, 0
    for name, a, b in pairs(adapter):
        theirs = old[name] + (b @ a) * numpy.float32(s)
        numpys += int((theirs.view(numpy.uint32) == new[name].view(numpy.uint32)).sum())
        w, a, b = old[name].astype(float), a.astype(float), b.astype(float)
        bound = (rank + 3) * 2.0**-24 * (abs(w) + abs(s) * (abs(b) @ abs(a)))
        share = float((abs(new[name] - (w + s * (b @ a))) / bound).max())
        worst, weights = max(worst, share), weights + w.size
        if not share <= 1 or numpy.array_equal(old[name], new[name]):
            faults.append(f"{name}: {share:.2f} of the bound")
    print(json.dumps({"faults": faults, "within": weights, "worst": worst, "numpy": numpys}))


def qwen(base, adapter):
    rng = numpy.random.default_rng(5)
    w = gguf.GGUFWriter(adapter, "qwen2")
    w.add_string("general.type", "adapter")
    w.add_string("adapter.type", "lora")
    w.add_float32("adapter.lora.alpha", 8.0)
    for t in gguf.GGUFReader(base).tensors:
        if not t.name.endswith(("attn_output.weight", "ffn_down.weight", "attn_q.weight")):
            continue
        width, out = (int(n) for n in t.shape)
        share = 0.6 * float(numpy.linalg.norm(t.data[:64].astype(float))) / 8 / width**0.5
        a = rng.standard_normal((4, width)).astype(numpy.float32)
        b = (rng.standard_normal((out, 4)) * share / 4).astype(numpy.float32)
        w.add_tensor(t.name + ".lora_a", a)
        w.add_tensor(t.name + ".lora_b", b)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    tasks = {"t5": t5, "t5-check": t5_check, "qwen": qwen}
    tasks[sys.argv[1]](*sys.argv[2:])


main()
