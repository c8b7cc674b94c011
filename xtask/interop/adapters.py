"""Adapters merged here against numpy: adapters.py make FOLDER | check FOLDER | names LORA.MD

`make` writes bases, adapters of each kind, and cases.json with the arguments of each merge. `check` opens what came of
them with PyPI's reader: where all numbers are small integers, the merged matrices must equal `W + (B @ A) * alpha / r`
of numpy bit for bit; else each element must be within a bound of the same in f64. `names` holds the tables of names
against the package's.
"""

import json
import pathlib
import re
import sys

import gguf
import numpy
from safetensors.numpy import save_file

HIDDEN, KV, FF, VOCAB, HEADS = 64, 32, 96, 40, 4
SHAPES = {
    "token_embd.weight": (VOCAB, HIDDEN),
    "blk.0.attn_norm.weight": (HIDDEN,),
    "blk.0.attn_q.weight": (HIDDEN, HIDDEN),
    "blk.0.attn_k.weight": (KV, HIDDEN),
    "blk.0.attn_v.weight": (KV, HIDDEN),
    "blk.0.attn_output.weight": (HIDDEN, HIDDEN),
    "blk.0.ffn_norm.weight": (HIDDEN,),
    "blk.0.ffn_gate.weight": (FF, HIDDEN),
    "blk.0.ffn_up.weight": (FF, HIDDEN),
    "blk.0.ffn_down.weight": (HIDDEN, FF),
    "output_norm.weight": (HIDDEN,),
    "output.weight": (VOCAB, HIDDEN),
}
# The module of Hugging Face, the trainer's short name, and the tensor.
MODULES = [
    ("self_attn.q_proj", "q", "blk.0.attn_q.weight"),
    ("self_attn.k_proj", "k", "blk.0.attn_k.weight"),
    ("self_attn.v_proj", "v", "blk.0.attn_v.weight"),
    ("self_attn.o_proj", "o", "blk.0.attn_output.weight"),
    ("mlp.gate_proj", "gate", "blk.0.ffn_gate.weight"),
    ("mlp.up_proj", "up", "blk.0.ffn_up.weight"),
    ("mlp.down_proj", "down", "blk.0.ffn_down.weight"),
]
RANK, ALPHA = 8, 12.0


def numbers(rng, shape, whole):
    if whole:
        return rng.integers(-8, 9, shape).astype(numpy.float32)
    return rng.standard_normal(shape).astype(numpy.float32)


def write_base(path, architecture, tensors):
    w = gguf.GGUFWriter(path, architecture)
    w.add_block_count(1)
    w.add_embedding_length(HIDDEN)
    w.add_head_count(HEADS)
    w.add_head_count_kv(HEADS * KV // HIDDEN)
    for name, data in tensors.items():
        w.add_tensor(name, data)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_peft(folder, pairs, rslora):
    folder.mkdir()
    config = {
        "peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "bias": "none", "use_rslora": rslora,
        "target_modules": [m.split(".")[1] for m, _, _ in MODULES],
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))
    tensors = {}
    for module, _, name in MODULES:
        a, b = pairs[name]
        tensors[f"base_model.model.model.layers.0.{module}.lora_A.weight"] = a
        tensors[f"base_model.model.model.layers.0.{module}.lora_B.weight"] = b
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})


def write_plain(folder, pairs):
    folder.mkdir()
    tensors = {}
    for _, short, name in MODULES:
        tensors[f"layers.0.{short}.lora_a"], tensors[f"layers.0.{short}.lora_b"] = pairs[name]
    save_file(tensors, folder / "adapters.safetensors")


def write_gguf(path, architecture, pairs):
    w = gguf.GGUFWriter(path, architecture)
    w.add_string("general.type", "adapter")
    w.add_string("adapter.type", "lora")
    w.add_float32("adapter.lora.alpha", ALPHA)
    for name, (a, b) in pairs.items():
        w.add_tensor(name + ".lora_a", a)
        w.add_tensor(name + ".lora_b", b)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def permuted(weights, heads):
    """The converter's order of rows of Q and K: the halves of a head take turns."""
    n = weights.shape[0]
    return weights.reshape(heads, 2, n // heads // 2, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


def make(folder):
    rng = numpy.random.default_rng(11)
    cases = []
    for whole in [True, False]:
        label = "integer" if whole else "real"
        base = {name: numbers(rng, shape, whole) for name, shape in SHAPES.items()}
        pairs = {}
        for _, _, name in MODULES:
            out, width = SHAPES[name]
            pairs[name] = (numbers(rng, (RANK, width), whole), numbers(rng, (out, RANK), whole))
        numpy.savez(folder / f"{label}.npz", **base, **{f"{n}/a": p[0] for n, p in pairs.items()},
                    **{f"{n}/b": p[1] for n, p in pairs.items()})
        for architecture in ["qwen3", "llama"]:
            write_base(folder / f"{label}-{architecture}.gguf", architecture, base)
            write_gguf(folder / f"{label}-{architecture}-adapter.gguf", architecture, pairs)
        write_peft(folder / f"{label}-peft", pairs, False)
        write_peft(folder / f"{label}-rslora", pairs, True)
        write_plain(folder / f"{label}-plain", pairs)
        for architecture, adapter, more, scale, reordered in [
            ("qwen3", f"{label}-peft", [], ALPHA / RANK, False),
            ("qwen3", f"{label}-rslora", [], ALPHA / RANK**0.5, False),
            ("qwen3", f"{label}-plain", ["--alpha", str(ALPHA)], ALPHA / RANK, False),
            ("qwen3", f"{label}-qwen3-adapter.gguf", [], ALPHA / RANK, False),
            ("qwen3", f"{label}-peft@-0.5", [], -0.5 * ALPHA / RANK, False),
            ("llama", f"{label}-peft", [], ALPHA / RANK, True),
            ("llama", f"{label}-llama-adapter.gguf", [], ALPHA / RANK, False),
        ]:
            cases.append({
                "numbers": label, "base": f"{label}-{architecture}.gguf", "adapter": adapter, "more": more,
                "scale": scale, "reordered": reordered, "out": f"merged-{len(cases)}.gguf",
            })
    (folder / "cases.json").write_text(json.dumps(cases))


def check(folder):
    faults, equal, within, worst = [], 0, 0, 0.0
    for case in json.loads((folder / "cases.json").read_text()):
        data = numpy.load(folder / f"{case['numbers']}.npz")
        merged = {t.name: t.data for t in gguf.GGUFReader(folder / case["out"]).tensors}
        what = f"{case['base']} + {case['adapter']}"
        if set(merged) != set(SHAPES):
            faults.append(f"{what}: other tensors")
            continue
        changed = {name for _, _, name in MODULES}
        for name, got in merged.items():
            w = data[name]
            if name not in changed:
                if not numpy.array_equal(got, w):
                    faults.append(f"{what}: {name}: changed")
                continue
            a, b = data[f"{name}/a"], data[f"{name}/b"]
            if case["reordered"] and name in ("blk.0.attn_q.weight", "blk.0.attn_k.weight"):
                b = permuted(b, HEADS if "attn_q" in name else HEADS * KV // HIDDEN)
            # What f32 makes of alpha over the root of the rank is no integer; its bound is checked below.
            exact = case["numbers"] == "integer" and case["scale"] in (ALPHA / RANK, -0.5 * ALPHA / RANK)
            if exact:
                want = w + (b @ a) * numpy.float32(case["scale"])
                if want.dtype != numpy.float32 or got.tobytes() != want.tobytes():
                    faults.append(f"{what}: {name}: not numpy's bits")
                equal += got.size
                continue
            w, a, b, s = w.astype(float), a.astype(float), b.astype(float), case["scale"]
            bound = (RANK + 3) * 2.0**-24 * (abs(w) + abs(s) * (abs(b) @ abs(a)))
            share = float((abs(got - (w + s * (b @ a))) / bound).max())
            worst = max(worst, share)
            if not share <= 1:
                faults.append(f"{what}: {name}: {share:.2f} of the bound")
            within += got.size
    print(json.dumps({"faults": faults, "equal": equal, "within": within, "worst": worst}))


def names(path):
    faults, checked = [], 0
    text = pathlib.Path(path).read_text()
    arches = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}
    for section in text.split("\n### ")[1:]:
        arch = section.split("\n", 1)[0].strip()
        table = gguf.get_tensor_name_map(arches[arch], 4)
        prefixes = [""] + re.findall(r"`([^`]*\.)`", section.split("\n|")[0])
        for hf, tensor, note in re.findall(r"^\| `([^`]*)` \| `([^`]*)`(.*)\|$", section, re.M):
            if "half" in note:
                continue
            # The package knows stacks of experts, not the experts in them.
            hf = hf.replace("block_sparse_moe.experts.{x}", "feed_forward.experts").replace("experts.{x}", "experts")
            hf, want = hf.replace("{b}", "3"), tensor.replace("{b}", "3")
            found = {table.get_name(p + hf) for p in prefixes} | {table.get_name(hf.replace("feed_", "layers.3.feed_"))}
            if hf == "lm_head" and not any(found):
                continue  # Always tied; the error says so.
            checked += 1
            if want not in found:
                faults.append(f"{arch}: {hf} is {want} here and {sorted(map(str, found))} in the package")
    print(json.dumps({"faults": faults, "checked": checked}))


def main():
    task, path = sys.argv[1:]
    {"make": lambda p: make(pathlib.Path(p)), "check": lambda p: check(pathlib.Path(p)), "names": names}[task](path)


main()
