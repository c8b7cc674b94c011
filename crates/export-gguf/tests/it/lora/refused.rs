//! Adapters that do not fit: everything is named at once, and nothing is written.

use gguf_format::GgmlType;
use serde_json::json;

use super::make::*;
use crate::support::*;

const F32: GgmlType = GgmlType::F32;
const V: &str = "model.layers.0.self_attn.v_proj";

fn refuses(pieces: &[Piece]) -> String {
    let place = Place::new();
    peft(&place, "adapter", &config(json!({})), pieces);
    place.refuse(&base("qwen3", F32), &["--adapters", "adapter"])
}

#[test]
fn a_folder_without_configuration_says_no_scale() {
    let place = Place::new();
    peft(&place, "adapter", &config(json!({})), &pair(V, 2, 4, 8));
    std::fs::remove_file(place.path("adapter/adapter_config.json")).unwrap();
    let said = place.refuse(&base("qwen3", F32), &["--adapters", "adapter"]);
    assert!(said.contains("no adapter_config.json") && said.contains("scale is unknown"), "{said}");
}

/// ymcui/Chinese-LLaMA-Alpaca#302, #618: ranks that differ from each other or from the configuration.
#[test]
fn ranks_that_disagree() {
    let [a, _] = pair(V, 2, 4, 8);
    let [_, b] = pair(V, 3, 4, 8);
    let said = refuses(&[a, b]);
    assert!(said.contains("shapes [2, 8] and [4, 3]") && said.contains("their ranks differ"), "{said}");
    let said = refuses(&pair(V, 4, 4, 8));
    assert!(said.contains("rank 4, and adapter_config.json says 2"), "{said}");
}

/// unslothai/unsloth-zoo#779, allenai/open-instruct#190: shapes that are another model's.
#[test]
fn shapes_that_do_not_fit() {
    let said = refuses(&pair(V, 2, 5, 8));
    assert!(said.contains("make no change of 4 rows of 8 in blk.0.attn_v.weight"), "{said}");

    let module = "model.layers.0.self_attn.o_proj";
    let [a, b] = pair(module, 2, 8, 8);
    let said = refuses(&[(a.0, vec![8, 2], a.2), (b.0, vec![2, 8], b.2)]);
    assert!(said.contains("they are transposed"), "{said}");

    // What ZeRO-3 leaves of parameters that were not gathered: OpenRLHF/OpenRLHF#436.
    let [a, b] = pair(V, 2, 4, 8);
    let said = refuses(&[a, (b.0, vec![0], vec![])]);
    assert!(said.contains("[0]") && said.contains("not those of two matrices"), "{said}");
    let [a, b] = pair(V, 2, 4, 8);
    let said = refuses(&[(a.0, vec![0, 8], vec![]), (b.0, vec![4, 0], vec![])]);
    assert!(said.contains("of rank 0"), "{said}");
}

/// ggml-org/llama.cpp#1631, unslothai/unsloth-zoo#812: nothing is dropped.
#[test]
fn halves_and_empty_adapters() {
    let [a, b] = pair(V, 2, 4, 8);
    assert!(refuses(&[a]).contains("v_proj.lora_A.weight: its lora_B is missing"));
    assert!(refuses(&[b]).contains("v_proj.lora_B.weight: its lora_A is missing"));
    assert!(refuses(&[]).contains("the adapter is empty"));
}

#[test]
fn all_that_does_not_fit_is_named_at_once() {
    let mut pieces = pair("model.layers.7.self_attn.v_proj", 2, 4, 8).to_vec();
    pieces.extend(pair("model.layers.0.mlp.no_proj", 2, 4, 8));
    pieces.extend(pair(V, 2, 5, 8));
    pieces.extend(pair("model.layers.0.self_attn.k_proj", 2, 4, 8));
    let said = refuses(&pieces);
    assert!(said.starts_with("error: 3 problems with the adapters: adapter: "), "{said}");
    for part in ["blk.7.attn_v.weight", "no such module as model.layers.0.mlp.no_proj", "4 rows of 8"] {
        assert!(said.contains(part), "{said}");
    }
    // Faults inside an adapter are gathered as well.
    let alone = (format!("base_model.model.{V}.lora_magnitude_vector"), vec![4], vec![1.0; 4]);
    let odd = ("base_model.model.x.trainable_tokens_delta".to_owned(), vec![4], vec![1.0; 4]);
    let said = refuses(&[alone, odd, pair("model.layers.0.self_attn.q_proj", 2, 8, 8)[0].clone()]);
    assert!(said.starts_with("error: 3 problems") && said.contains("trainable_tokens_delta"), "{said}");
}

/// paiml/aprender#2189: NaN in a factor would be NaN in a whole row.
#[test]
fn values_that_are_no_numbers() {
    let [a, mut b] = pair(V, 2, 4, 8);
    b.2[5] = f32::NAN;
    let said = refuses(&[a, b]);
    assert!(said.contains("lora_B.weight: NaN at element 5 is not finite"), "{said}");
}

/// Finite factors whose product is not would make a whole tensor infinite, in any target type.
#[test]
fn merges_that_leave_the_numbers() {
    let place = Place::new();
    let large = pair(V, 2, 4, 8).map(|(name, shape, v)| (name, shape, v.iter().map(|_| 1e20).collect()));
    peft(&place, "adapter", &config(json!({})), &large);
    for more in [&[][..], &["--dtype", "f16"], &["--overflow", "clamp"], &["--mix", "bf16"], &["--dry-run"]] {
        let said = place.refuse(&base("qwen3", F32), &[&["--adapters", "adapter"], more].concat());
        assert!(
            said.contains("blk.0.attn_v.weight: inf in row 0, column 0 after the merge"),
            "{more:?}: {said}"
        );
    }
    let mut broken = base("qwen3", F32);
    let at = {
        let gguf = gguf_format::Gguf::parse(&broken).unwrap();
        gguf.tensor("blk.0.attn_v.weight").unwrap().file_offset() as usize + 4 * 9
    };
    broken[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    peft(&place, "small", &config(json!({})), &pair(V, 2, 4, 8));
    let said = place.refuse(&broken, &["--adapters", "small"]);
    assert!(said.contains("NaN in row 1, column 1 in the base"), "{said}");
}

/// ggml-org/llama.cpp#5824, huggingface/peft#2405: where the head is the embedding, one cannot change alone.
#[test]
fn tied_heads() {
    let tied = with(keys("qwen3"), F32, &DECODER[..11]);
    let place = Place::new();
    peft(&place, "head", &config(json!({})), &pair("lm_head", 2, 16, 8));
    let said = place.refuse(&tied, &["--adapters", "head"]);
    assert!(said.contains("output.weight; its head is tied to token_embd.weight"), "{said}");

    let module = "base_model.model.model.embed_tokens";
    let lora = [
        (format!("{module}.lora_embedding_A"), vec![2, 16], numbers(32, 1)),
        (format!("{module}.lora_embedding_B"), vec![8, 2], numbers(16, 1)),
    ];
    peft(&place, "embedding", &config(json!({})), &lora);
    let said = place.refuse(&tied, &["--adapters", "embedding"]);
    assert!(said.contains("merging into the embedding would change the head too"), "{said}");
    let saved = [(format!("{module}.weight"), vec![16, 8], numbers(128, 1))];
    peft(&place, "saved", &config(json!({"modules_to_save": ["embed_tokens"]})), &saved);
    let said = place.refuse(&tied, &["--adapters", "saved"]);
    assert!(said.contains("replacing the embedding would change the head too"), "{said}");
}

#[test]
fn the_same_rows_twice() {
    let mut pieces = pair(V, 2, 4, 8).to_vec();
    pieces.extend(pair("layers.0.self_attn.v_proj", 2, 4, 8));
    let said = refuses(&pieces);
    assert!(said.contains("changes rows of blk.0.attn_v.weight that"), "{said}");
}

#[test]
fn gguf_adapters_for_other_models() {
    let [a, b] = pair("x", 2, 4, 8);
    let pieces = [
        ("blk.0.attn_v.weight.lora_a".to_owned(), a.1, a.2),
        ("blk.0.attn_v.weight.lora_b".to_owned(), b.1, b.2),
    ];
    let (place, base) = (Place::new(), base("qwen3", F32));
    let refuses = |file: &[u8]| {
        place.write("adapter.gguf", file);
        place.refuse(&base, &["--adapters", "adapter.gguf"])
    };
    let said = refuses(&gguf_adapter("llama", Some(4.0), &pieces));
    assert!(said.contains("made for the architecture llama, and the base's is qwen3"), "{said}");
    let said = refuses(&gguf_adapter("qwen3", None, &pieces));
    assert!(said.contains("adapter.lora.alpha: missing"), "{said}");
    let said = refuses(&gguf_adapter("qwen3", Some(0.0), &pieces));
    assert!(said.contains("adapter.lora.alpha: 0 gives no scale"), "{said}");
    let said = refuses(&gguf_adapter("qwen3", Some(4.0), &pieces[..1]));
    assert!(said.contains("blk.0.attn_v.weight.lora_a: its lora_b is missing"), "{said}");
    let other = [("blk.0.attn_v.weight".to_owned(), vec![4, 8], numbers(32, 1))];
    let said = refuses(&gguf_adapter("qwen3", Some(4.0), &other));
    assert!(said.contains("neither .lora_a nor .lora_b"), "{said}");
    let said = refuses(&base);
    assert!(said.contains("general.type: missing: no LoRA adapter"), "{said}");
}

#[test]
fn places_without_an_adapter() {
    let (place, base) = (Place::new(), base("qwen3", F32));
    assert!(place.refuse(&base, &["--adapters", "nowhere"]).contains("cannot open nowhere"));
    std::fs::create_dir_all(place.path("empty")).unwrap();
    assert!(place.refuse(&base, &["--adapters", "empty"]).contains("no adapter in this folder"));
    place.write("empty/adapter_model.bin", b"pickle");
    assert!(place.refuse(&base, &["--adapters", "empty"]).contains("adapter_model.bin is a pickle"));
    place.write("empty/adapter_model.safetensors", &safetensors(&[]));
    place.write("empty/adapters.safetensors", &safetensors(&[]));
    assert!(place.refuse(&base, &["--adapters", "empty"]).contains("name the file that is meant"));
}

#[test]
fn architectures_without_a_table() {
    let place = Place::new();
    peft(&place, "adapter", &config(json!({})), &pair(V, 2, 4, 8));
    let said = place.refuse(&base("mamba", F32), &["--adapters", "adapter"]);
    assert!(said.contains("no table of names for the architecture mamba (there are: llama"), "{said}");
}

/// MLX names its tensors nearly so, and saves them transposed: ml-explore/mlx#1186.
#[test]
fn names_of_other_trainers() {
    let (place, base) = (Place::new(), base("qwen3", F32));
    let name = "model.layers.0.self_attn.q_proj";
    let file = safetensors(&[
        (format!("{name}.lora_a"), vec![8, 2], numbers(16, 1)),
        (format!("{name}.lora_b"), vec![2, 8], numbers(16, 2)),
    ]);
    place.write("adapters.safetensors", &file);
    let said = place.refuse(&base, &["--adapters", "adapters.safetensors", "--alpha", "4"]);
    assert!(said.contains("MLX"), "{said}");
}
