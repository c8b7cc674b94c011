#!/usr/bin/env python3
"""Record which type llama-quantize gives every tensor of small made-up models of odd architectures.

    mix_golden.py BIN_DIR OUT.txt        BIN_DIR: the folder with libllama and libggml (bins/linux-x64)

Names and shapes are all that counts, so the models are sparse files without weights and llama.cpp only plans
(dry_run). Needs the packages gguf and numpy. The output is text:

    model NAME architecture=... layers=... experts=... heads=... heads_kv=...
    tensor NAME DIMS...                  in the order of the file, dimensions in ne order
    run FILE_TYPE [importance] [pure] [leave-output] [output=T] [embedding=T] [override=REGEX=T]
    TYPES                                one id per tensor in processing order, as ID or ID*COUNT
    run ... / error                      where llama.cpp refuses
"""
import ctypes as C
import glob
import os
import re
import subprocess
import sys
import tempfile

import gguf
import numpy as np

FTYPES = [0, 1, 2, 3, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
          32, 36, 37, 38, 40, 41]
TYPE = {name.lower(): int(value) for name, value in gguf.GGMLQuantizationType.__members__.items()}
TYPE.update(q1_0=41, q2_0=42, nvfp4=40, mxfp4=39)


class Params(C.Structure):
    """llama_model_quantize_params of llama.cpp v0.5.0."""
    _fields_ = [("nthread", C.c_int32), ("ftype", C.c_int), ("output_type", C.c_int), ("embed_type", C.c_int),
                ("allow_requantize", C.c_bool), ("quantize_output", C.c_bool), ("only_copy", C.c_bool),
                ("pure", C.c_bool), ("keep_split", C.c_bool), ("dry_run", C.c_bool),
                ("imatrix", C.c_void_p), ("kv", C.c_void_p), ("tt", C.c_void_p), ("prune", C.c_void_p),
                ("max_buf_size", C.c_size_t), ("spare", C.c_char * 64)]


class Importance(C.Structure):
    _fields_ = [("name", C.c_char_p), ("data", C.POINTER(C.c_float)), ("size", C.c_size_t)]


class Override(C.Structure):
    _fields_ = [("pattern", C.c_char_p), ("type", C.c_int)]


def dense(blocks, embd, ff, q, kv, head=(), tail=(), **more):
    """Tensors of a llama-like model; `more` are further tensors of each block."""
    out = list(head)
    for n in range(blocks):
        parts = {"attn_norm": (embd,), "ffn_norm": (embd,), "attn_q": (embd, q), "attn_k": (embd, kv),
                 "attn_v": (embd, kv), "attn_output": (q, embd)}
        if ff:
            parts |= {"ffn_gate": (embd, ff), "ffn_up": (embd, ff), "ffn_down": (ff, embd)}
        parts |= more
        out += [(f"blk.{n}.{p}.weight", s) for p, s in parts.items() if s]
    return out + list(tail)


def ends(embd, vocab, tied=False):
    out = [("token_embd.weight", (embd, vocab)), ("output_norm.weight", (embd,))]
    return out if tied else out + [("output.weight", (embd, vocab))]


def experts(embd, ff, n):
    return {"ffn_gate_inp": (embd, n), "ffn_gate_exps": (embd, ff, n), "ffn_up_exps": (embd, ff, n),
            "ffn_down_exps": (ff, embd, n)}


def keys(arch, layers, heads, kv, embd, ff=512, **more):
    base = {"context_length": 512, "embedding_length": embd, "block_count": layers, "feed_forward_length": ff,
            "attention.head_count": heads, "attention.head_count_kv": kv, "vocab_size": 512,
            "attention.layer_norm_rms_epsilon": 1e-5, "attention.layer_norm_epsilon": 1e-5}
    return arch, base | {k.replace("__", "."): v for k, v in more.items()}


MODELS = {
    "llama-8-experts": (keys("llama", 16, 8, 2, 256, expert_count=8, expert_used_count=2),
                        dense(16, 256, 0, 256, 64, ends(256, 512), **experts(256, 512, 8))),
    "llama-70b-class": (keys("llama", 80, 8, 1, 256), dense(80, 256, 512, 256, 32, ends(256, 512))),
    "llama-65b-class": (keys("llama", 80, 8, 8, 256), dense(80, 256, 512, 256, 256, ends(256, 512))),
    "llama-tied": (keys("llama", 24, 8, 4, 256), dense(24, 256, 512, 256, 128, ends(256, 512, tied=True))),
    "llama-odd-rows": (keys("llama", 8, 4, 2, 288, ff=36), dense(8, 288, 36, 288, 144, ends(288, 512))),
    "llama-4-experts": (keys("llama", 9, 8, 8, 256, expert_count=4, expert_used_count=2),
                        dense(9, 256, 0, 256, 256, ends(256, 512), **experts(256, 512, 4))),
    "qwen2-70b-class": (keys("qwen2", 80, 8, 2, 256), dense(80, 256, 512, 256, 64, ends(256, 512))),
    "qwen2moe": (keys("qwen2moe", 12, 8, 8, 256, expert_count=60, expert_used_count=4,
                      expert_feed_forward_length=256, expert_shared_feed_forward_length=512),
                 dense(12, 256, 0, 256, 256, ends(256, 512), **experts(256, 256, 60), ffn_gate_inp_shexp=(256,),
                       ffn_gate_shexp=(256, 512), ffn_up_shexp=(256, 512), ffn_down_shexp=(512, 256))),
    "falcon": (keys("falcon", 32, 8, 1, 256),
               dense(32, 256, 0, 256, 0, ends(256, 512), attn_q=None, attn_k=None, attn_v=None,
                     attn_qkv=(256, 320), ffn_up=(256, 1024), ffn_down=(1024, 256))),
    "deepseek2": (keys("deepseek2", 10, 8, 8, 256, expert_count=64, expert_used_count=6, expert_shared_count=2,
                       expert_feed_forward_length=256, leading_dense_block_count=1, expert_weights_scale=1.0,
                       attention__q_lora_rank=256, attention__kv_lora_rank=256, attention__key_length=96,
                       attention__value_length=64, rope__dimension_count=32, expert_group_count=1,
                       rope__scaling__yarn_log_multiplier=0.1),
                  dense(10, 256, 0, 256, 0, ends(256, 512), attn_q=None, attn_k=None, attn_v=None,
                        attn_q_a=(256, 256), attn_q_b=(256, 768), attn_kv_a_mqa=(256, 288),
                        attn_kv_b=(256, 1024), **experts(256, 256, 64), ffn_gate_shexp=(256, 512),
                        ffn_up_shexp=(256, 512), ffn_down_shexp=(512, 256))),
    "gpt-oss": (keys("gpt-oss", 12, 8, 2, 256, expert_count=32, expert_used_count=4,
                     expert_feed_forward_length=256, attention__sliding_window=128),
                dense(12, 256, 0, 256, 64, ends(256, 512), **experts(256, 256, 32), attn_sinks=(8,))),
    "bert": (keys("bert", 6, 12, 12, 384, ff=1536, attention__causal=False),
             [("token_embd.weight", (384, 512)), ("position_embd.weight", (384, 512)), ("token_types.weight", (384, 2)),
              ("token_embd_norm.weight", (384,))]
             + dense(6, 384, 0, 384, 384, ffn_up=(384, 1536), ffn_down=(1536, 384), attn_output_norm=(384,))),
    "mamba": (keys("mamba", 8, 0, 0, 256, ssm__conv_kernel=4, ssm__inner_size=512, ssm__state_size=16,
                   ssm__time_step_rank=32),
              ends(256, 512) + [(f"blk.{n}.{p}", s) for n in range(8) for p, s in [
                  ("attn_norm.weight", (256,)), ("ssm_in.weight", (256, 1024)), ("ssm_conv1d.weight", (4, 512)),
                  ("ssm_x.weight", (512, 64)), ("ssm_dt.weight", (32, 512)), ("ssm_a", (16, 512)), ("ssm_d", (512,)),
                  ("ssm_out.weight", (512, 256))]]),
    "gemma3n-like-names": (keys("llama", 6, 8, 2, 256),
                           dense(6, 256, 512, 256, 64,
                                 ends(256, 512) + [("per_layer_token_embd.weight", (256, 512)),
                                                   ("per_layer_model_proj.weight", (256, 256)),
                                                   ("altup_proj.weight", (256, 256, 3))],
                                 laurel_l=(256, 64), altup_router=(256, 4), attn_rel_b=(256, 4))),
}
RUNS = [dict(), dict(importance=True), dict(pure=True), dict(leave_output=True), dict(output="q8_0"),
        dict(embedding="q5_k"), dict(override="ffn_down=q8_0"), dict(override="blk\\.[02]\\.attn_v=q3_k", importance=True)]
# The options matter little to each other, so only these models meet all of them.
ALL_RUNS = ["llama-8-experts", "llama-tied", "gemma3n-like-names"]


def write(path, arch, kv, tensors):
    w = gguf.GGUFWriter(path, arch)
    for key, value in kv.items():
        add = {bool: w.add_bool, int: w.add_uint32, float: w.add_float32}[type(value)]
        add(f"{arch}.{key}", value)
    size = 0
    for name, shape in tensors:
        n = int(np.prod(shape)) * 2
        w.add_tensor_info(name, shape[::-1], np.dtype(np.float16), n)
        size += -(-n // 32) * 32
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_ti_data_to_file()
    w.close()
    os.truncate(path, -(-os.path.getsize(path) // 32) * 32 + size)


def load(bins):
    one = lambda pattern: C.CDLL(glob.glob(os.path.join(bins, pattern))[0], mode=C.RTLD_GLOBAL)
    one("libggml-base.so")
    one("libggml-cpu-x64.so")
    lib, ggml = one("libllama.v*.so"), one("libggml.v*.so")
    ggml.ggml_backend_load_all_from_path(bins.encode())
    lib.llama_backend_init()
    lib.llama_model_quantize_default_params.restype = Params
    lib.llama_model_quantize.argtypes = [C.c_char_p, C.c_char_p, C.POINTER(Params)]
    lib.llama_model_quantize.restype = C.c_uint32
    return lib


def one_model(bins, path, names, runs):
    """Child process: every file type and run of one model, printed as golden lines."""
    lib = load(bins)
    log = []
    callback = C.CFUNCTYPE(None, C.c_int, C.c_char_p, C.c_void_p)(lambda _l, text, _u: log.append(text.decode()))
    lib.llama_log_set(callback, None)
    ones = (C.c_float * 1)(1.0)
    for ftype in FTYPES:
        for run in runs:
            p = lib.llama_model_quantize_default_params()
            p.nthread, p.ftype, p.dry_run = 1, ftype, True
            label = [gguf_name(ftype)]
            if run.get("importance"):
                p.imatrix = C.cast((Importance * 2)(Importance(b"none", ones, 1), Importance()), C.c_void_p)
                label.append("importance")
            if run.get("pure"):
                p.pure = True
                label.append("pure")
            if run.get("leave_output"):
                p.quantize_output = False
                label.append("leave-output")
            for option, field in (("output", "output_type"), ("embedding", "embed_type")):
                if option in run:
                    setattr(p, field, TYPE[run[option]])
                    label.append(f"{option}={run[option]}")
            if "override" in run:
                pattern, ty = run["override"].rsplit("=", 1)
                table = (Override * 2)(Override(pattern.encode(), TYPE[ty]), Override())
                p.tt = C.cast(table, C.c_void_p)
                label.append(f"override={run['override']}")
            log.clear()
            rc = lib.llama_model_quantize(path.encode(), b"/dev/null", C.byref(p))
            print("run", *label)
            print("error" if rc else types("".join(log), names))


def gguf_name(ftype):
    special = {38: "MXFP4_MOE", 40: "Q1_0", 41: "Q2_0", 36: "TQ1_0", 37: "TQ2_0"}
    if ftype in special:
        return special[ftype]
    return gguf.LlamaFileType(ftype).name.replace("MOSTLY_", "").replace("ALL_", "")


def types(log, names):
    found = []
    for line in re.findall(r"^\[ *\d+/ *\d+\].*$", log, re.M):
        got = re.search(r"\] +(\S+) .*type = +(\w+), size = .*?(?:\((\w+)\))?$", line)
        found.append((got[1], TYPE[(got[3] or got[2]).lower()]))
    assert sorted(n for n, _ in found) == sorted(names), "llama.cpp lists other tensors"
    out = []
    for _, ty in found:
        if out and out[-1][0] == ty:
            out[-1][1] += 1
        else:
            out.append([ty, 1])
    return " ".join(str(t) if n == 1 else f"{t}*{n}" for t, n in out)


def main():
    if sys.argv[1] == "--one":
        name, bins, path = sys.argv[2:5]
        return one_model(bins, path, [n for n, _ in MODELS[name][1]], RUNS if name in ALL_RUNS else RUNS[:2])
    bins, out = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as tmp, open(out, "w") as golden:
        for name, ((arch, kv), tensors) in MODELS.items():
            path = os.path.join(tmp, f"{name}.gguf")
            write(path, arch, kv, tensors)
            got = subprocess.run([sys.executable, __file__, "--one", name, bins, path], stdout=subprocess.PIPE, text=True)
            if got.returncode:
                sys.exit(f"{name}: the quantizer ended with {got.returncode}")
            print("model", name, f"architecture={arch}", f"layers={kv['block_count']}",
                  f"experts={kv.get('expert_count', 0)}", f"heads={kv['attention.head_count']}",
                  f"heads_kv={kv['attention.head_count_kv']}", file=golden)
            for tensor, shape in tensors:
                print("tensor", tensor, *shape, file=golden)
            golden.write(got.stdout)


if __name__ == "__main__":
    main()
