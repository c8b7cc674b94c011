"""Makes the models that the check starts from: MODEL_DIR (all-MiniLM-L6-v2 as safetensors) to OUT_DIR.

minilm-f16.gguf   the model as llama.cpp's own converter lays it out: matrices F16, the rest F32; only
                  the type embedding, of which the model ever takes row 0, is added to the position
                  table, because llama.cpp adds it to activations and refuses it in blocks
recut-f16.gguf    the same matrices cut into rows of 256, so that every block format divides them;
                  nothing runs it, but it is all that a quantizer needs
*.imatrix.gguf    importance for both, by the rules of llama.cpp's format: sums of squares and counts
"""

import json
import struct
import sys
from pathlib import Path

import gguf
import numpy as np

import importance

NAMES = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
TYPES, POSITIONS = "token_types.weight", "position_embd.weight"
SPECIAL = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}


def tensors(path):
    """Every F32 tensor of a safetensors file."""
    data = np.fromfile(path, dtype=np.uint8)
    (size,) = struct.unpack("<Q", data[:8].tobytes())
    for name, entry in json.loads(data[8 : 8 + size].tobytes()).items():
        if entry.get("dtype") == "F32":
            begin, end = (8 + size + o for o in entry["data_offsets"])
            yield name, data[begin:end].view(np.float32).reshape(entry["shape"])


def renamed(name):
    """llama.cpp's name, or None for the pooler, which it has no use for."""
    stem, _, kind = name.rpartition(".")
    block = ""
    if stem.startswith("encoder.layer."):
        number, _, stem = stem.removeprefix("encoder.layer.").partition(".")
        block = f"blk.{number}."
    return f"{block}{NAMES[stem]}.{kind}" if stem in NAMES else None


def head(writer, folder):
    """Metadata and vocabulary."""
    config = json.loads((folder / "config.json").read_text())
    writer.add_type("model")
    writer.add_name("all-MiniLM-L6-v2")
    writer.add_license("apache-2.0")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)

    words = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")[: config["vocab_size"]]
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    # WordPiece marks what continues a word; llama.cpp marks what starts one.
    mark = lambda w: w if w in SPECIAL else w[2:] if w.startswith("##") else "\u2581" + w
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("jina-v2-en")
    writer.add_token_list([mark(w) for w in words])
    writer.add_token_types([control if w in SPECIAL else normal for w in words])
    writer.add_token_type_count(config["type_vocab_size"])
    writer.add_pad_token_id(words.index("[PAD]"))
    writer.add_unk_token_id(words.index("[UNK]"))
    writer.add_bos_token_id(words.index("[CLS]"))
    writer.add_eos_token_id(words.index("[SEP]"))
    writer.add_sep_token_id(words.index("[SEP]"))
    writer.add_mask_token_id(words.index("[MASK]"))
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)


def close(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    folder, out = map(Path, sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    writers = {name: gguf.GGUFWriter(out / f"{name}-f16.gguf", "bert") for name in ("minilm", "recut")}
    rows = {"minilm": [], "recut": []}
    for writer in writers.values():
        head(writer, folder)
    named = {renamed(name): data for name, data in tensors(folder / "model.safetensors")}
    del named[None]
    named[POSITIONS] = named[POSITIONS] + named.pop(TYPES)[0]
    for name, data in named.items():
        matrix = data.ndim == 2 and name != POSITIONS
        writers["minilm"].add_tensor(name, data.astype(np.float16) if matrix else data)
        if matrix:
            rows["minilm"].append((name, data.shape[1]))
        if data.ndim == 2:
            data = data.astype(np.float16).reshape(-1, 256)
            rows["recut"].append((name, 256))
        writers["recut"].add_tensor(name, data)
    for name, writer in writers.items():
        close(writer)
        importance.write(out / f"{name}.imatrix.gguf", rows[name])


main()
