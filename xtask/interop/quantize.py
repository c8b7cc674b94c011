"""quantize.py LIBRARY [WORD...]: llama-quantize by way of llama_model_quantize. LIBRARY is one shared library
that has it, or the folder of llama.cpp's prebuilt ones. With words, they are the command line of one run.
Without, command lines come from standard input, each a JSON array on a line, and each is answered with a line
of JSON: "code" is what the library answered, "log" its last words if it failed, "types" (with --dry-run) what
each tensor would become.
"""

import argparse
import ctypes as C
import json
import os
import re
import sys

import numpy as np

from llama import TYPES, Importance, Override, importance_file, llama

FILE_TYPES = {
    "f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9, "q2_k": 10, "q3_k_s": 11,
    "q3_k_m": 12, "q3_k": 12, "q3_k_l": 13, "q4_k_s": 14, "q4_k_m": 15, "q4_k": 15, "q5_k_s": 16, "q5_k_m": 17,
    "q5_k": 17, "q6_k": 18, "iq2_xxs": 19, "iq2_xs": 20, "q2_k_s": 21, "iq3_xs": 22, "iq3_xxs": 23, "iq1_s": 24,
    "iq4_nl": 25, "iq3_s": 26, "iq3_m": 27, "iq2_s": 28, "iq2_m": 29, "iq4_xs": 30, "iq1_m": 31, "bf16": 32,
    "tq1_0": 36, "tq2_0": 37, "mxfp4_moe": 38, "q1_0": 40, "q2_0": 41,
}
# What an override's text is called, and its tag and field.
KINDS = {"int": (0, int), "float": (1, float), "bool": (2, lambda text: text == "true"), "str": (3, str)}
CUT = 127


class Value(C.Union):
    _fields_ = [("int", C.c_int64), ("float", C.c_double), ("bool", C.c_bool), ("str", C.c_char * 128)]


class KeyValue(C.Structure):
    """llama_model_kv_override."""

    _fields_ = [("tag", C.c_int), ("key", C.c_char * 128), ("value", Value)]

    @classmethod
    def of(cls, key, kind, value):
        tag, convert = KINDS[kind]
        made = cls(tag, key.encode())
        value = convert(value)
        setattr(made.value, kind, value.encode()[:CUT] if kind == "str" else value)
        return made


def arguments():
    """The options of llama-quantize."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for flag in ("allow-requantize", "leave-output-tensor", "pure", "keep-split", "dry-run"):
        parser.add_argument(f"--{flag}", action="store_true")
    for option in ("include-weights", "exclude-weights", "tensor-type", "override-kv"):
        parser.add_argument(f"--{option}", action="append", default=[])
    for option in ("imatrix", "output-tensor-type", "token-embedding-type", "tensor-type-file", "prune-layers"):
        parser.add_argument(f"--{option}")
    for word in ("source", "target", "type"):
        parser.add_argument(word)
    return parser


def overrides(options):
    """Patterns are lower-cased, and a file's stand behind the others."""
    words = list(options.tensor_type)
    if options.tensor_type_file:
        with open(options.tensor_type_file) as file:
            words += file.read().split()
    for word in words:
        pattern, _, kind = word.partition("=")
        yield Override(pattern.lower().encode(), TYPES[kind.lower()][0])


def weighed(options):
    """Importance after the lists of names, and the keys that say where it is from."""
    if not options.imatrix:
        return {}, []
    entries, datasets, chunks = importance_file(options.imatrix)
    among = lambda name, subs: any(sub in name for sub in subs)
    entries = {
        name: values for name, values in entries.items()
        if not among(name, options.exclude_weights)
        and (not options.include_weights or among(name, options.include_weights))
    }
    if not entries:
        return {}, []
    keys = [KeyValue.of("quantize.imatrix.file", "str", options.imatrix)]
    keys += [KeyValue.of("quantize.imatrix.dataset", "str", name) for name in datasets[:1]]
    keys.append(KeyValue.of("quantize.imatrix.entries_count", "int", len(entries)))
    keys += [KeyValue.of("quantize.imatrix.chunks_count", "int", chunks)] if chunks > 0 else []
    return entries, keys


def table(kind, rows, end):
    """A C array with its terminator, as an address; None if there is nothing."""
    return (kind * (len(rows) + 1))(*rows, end) if rows else None


def types(log):
    """What a dry run says of each tensor."""
    found = {}
    for line in re.findall(r"^\[ *\d+/ *\d+\].*$", log, re.M):
        name, old, new = re.search(r"\] +(\S+) .*type = +(\w+), size = .*?(?:\((\w+)\))?$", line).groups()
        found[name] = (new or old).lower()
    return found


def quantize(library, words, log):
    """One run."""
    options = arguments().parse_args(words)
    entries, keys = weighed(options)
    params = library.llama_model_quantize_default_params()
    params.nthread = 2
    params.only_copy = options.type.lower() == "copy"
    params.ftype = params.ftype if params.only_copy else FILE_TYPES[options.type.lower()]
    for name in ("allow_requantize", "pure", "keep_split", "dry_run"):
        setattr(params, name, getattr(options, name))
    params.quantize_output = not options.leave_output_tensor
    if options.output_tensor_type:
        params.output_type = TYPES[options.output_tensor_type.lower()][0]
    if options.token_embedding_type:
        params.embedding_type = TYPES[options.token_embedding_type.lower()][0]
    words = [word.partition("=") for word in options.override_kv]
    keys = [KeyValue.of(key, *value.split(":", 1)) for key, _, value in words] + keys
    pruned = sorted({int(n) for n in options.prune_layers.split(",")}) if options.prune_layers else []
    kept = {name: np.ascontiguousarray(values, dtype=np.float32) for name, values in entries.items()}
    rows = [Importance(name.encode(), values.ctypes.data, values.size) for name, values in kept.items()]
    tables = {
        "imatrix": table(Importance, rows, Importance()),
        "kv": table(KeyValue, keys, KeyValue()),
        "overrides": table(Override, list(overrides(options)), Override()),
        "prune": table(C.c_int32, pruned, -1),
    }
    for field, made in tables.items():
        setattr(params, field, C.cast(made, C.c_void_p) if made is not None else None)
    target = options.target
    if options.keep_split:
        target = target.replace(".gguf", "")
    log.clear()
    code = library.llama_model_quantize(options.source.encode(), target.encode(), C.byref(params))
    answer = {"code": code}
    if code:
        answer["log"] = "".join(log)[-500:]
    elif options.dry_run:
        answer["types"] = types("".join(log))
    return answer


def main():
    # The library may print to standard output, which is for answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    library = llama(sys.argv[1])
    log = []
    callback = C.CFUNCTYPE(None, C.c_int, C.c_char_p, C.c_void_p)(
        lambda _level, text, _data: log.append(text.decode("utf-8", "replace"))
    )
    library.llama_log_set(callback, None)
    if sys.argv[2:]:
        answer = quantize(library, sys.argv[2:], log)
        sys.exit(answer.get("log"))
    for line in sys.stdin:
        print(json.dumps(quantize(library, json.loads(line), log)), file=answers, flush=True)


main()
