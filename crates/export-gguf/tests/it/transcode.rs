//! What comes out, type by type, and what is refused. Each test that follows a public report names it.

use ggml_blocks::Format;
use gguf_format::{Builder, GgmlType, Gguf};

use crate::support::*;

/// One `.weight` of these values.
fn one(dims: &[u64], ty: GgmlType, data: Vec<u8>) -> Vec<u8> {
    model(&[("blk.0.ffn_up.weight", dims, ty, data)])
}

const W: &str = "blk.0.ffn_up.weight";

#[test]
fn every_target_equals_the_codec_row_by_row() {
    let place = Place::new();
    let input = mixed();
    for target in targets() {
        let out = place.export(&input, &["--dtype", &target]);
        let format = Format::of(GgmlType::from_name(&target).unwrap()).unwrap();
        for name in ["token_embd.weight", "blk.0.attn_q.weight", W] {
            let values = values(&input, name);
            let row = Gguf::parse(&input).unwrap().tensor(name).unwrap().row_len() as usize;
            let mut expect = vec![0; values.len() / format.block_len() * format.block_bytes()];
            format.encode_rows(&values, row, None, &mut expect).unwrap();
            assert_eq!(ty(&out, name).to_string(), target, "{name}");
            assert!(data(&out, name) == expect, "{target}: {name}");
        }
        for name in ["blk.0.attn_norm.weight", "blk.0.ffn_up.bias", "blk.0.ids"] {
            assert_eq!(ty(&out, name), ty(&input, name), "{target}: {name}");
            assert!(data(&out, name) == data(&input, name), "{target}: {name}");
        }
    }
}

#[test]
fn threads_and_chunks_do_not_change_a_byte() {
    use export_gguf::{Cancel, emit, plan, run, source};
    let place = Place::new();
    let path = place.write("in.gguf", &mixed());
    for target in targets() {
        let source = source::GgufSource::open(&path, false).unwrap();
        let request = plan::Request { dtype: GgmlType::from_name(&target), ..plan::Request::default() };
        let plan = plan::plan(source::Source::tensors(&source), request, None).unwrap();
        let mut seen: Option<Vec<u8>> = None;
        for (threads, chunk) in [(1, 1 << 20), (1, 256), (2, 512), (5, 1024)] {
            let name = format!("{target}-{threads}-{chunk}.gguf");
            let files = emit::lay_out(&plan, &source, &place.path(&name), None).unwrap();
            let options =
                run::Options { threads: threads.try_into().unwrap(), chunk, ..run::Options::default() };
            run::run(&plan, &files, &source, None, options, &(), &Cancel::default()).unwrap();
            let bytes = place.read(&name);
            assert!(seen.get_or_insert(bytes.clone()) == &bytes, "{name}");
        }
    }
}

#[test]
fn file_type_and_version_are_replaced_in_place_or_appended() {
    let place = Place::new();
    let tensor = || [(W, &[256, 1][..], GgmlType::F16, f16s(weights(256)))];
    let mut b = Builder::new();
    b.set("general.file_type", 1_u32).set("general.architecture", "llama");
    let out = place.export(&whole(b, &tensor()), &["--dtype", "q8_0"]);
    let g = Gguf::parse(&out).unwrap();
    let keys: Vec<_> = g.metadata().map(|kv| kv.key().to_owned()).collect();
    assert_eq!(keys, ["general.file_type", "general.architecture", "general.quantization_version"]);
    assert_eq!(g.get("general.file_type").unwrap().as_u64(), Some(7));
    assert_eq!(g.get("general.quantization_version").unwrap().as_u64(), Some(2));
}

// ggml-org/llama.cpp#8661, #7816, #6841
#[test]
fn values_that_are_not_finite_are_refused_with_their_place() {
    let place = Place::new();
    let mut v: Vec<f32> = weights(512).collect();
    v[300] = f32::NAN;
    let input = one(&[256, 2], GgmlType::F32, f32s(v.clone()));
    insta::assert_snapshot!(place.refuse(&input, &["--dtype", "q8_0"]), @"error: in.gguf: tensor blk.0.ffn_up.weight: NaN at element 300 (row 1, column 44) is not finite and Q8_0 has no form for it; repair the model, or copy it verbatim");
    assert!(place.export(&input, &[]) == input, "a copy is a copy");
    v[300] = 0.0;
    v[511] = f32::NEG_INFINITY;
    let input = one(&[256, 2], GgmlType::BF16, bf16s(v));
    assert!(place.refuse(&input, &["--dtype", "q4_0"]).contains("-inf at element 511 (row 1, column 255)"));
}

// intel/auto-round#1908, ggml-org/llama.cpp#7825
#[test]
fn zeros_stay_zeros_in_every_type() {
    let place = Place::new();
    let input = one(&[256, 2], GgmlType::F16, f16s(std::iter::repeat_n(0.0, 512)));
    for target in targets() {
        let out = place.export(&input, &["--dtype", &target]);
        assert!(values(&out, W).iter().all(|v| *v == 0.0), "{target}");
    }
}

// ggml-org/llama.cpp#13722, #23839, #8240
#[test]
fn overflow_is_refused_clamped_or_kept() {
    let place = Place::new();
    let mut v = vec![1.0; 64];
    (v[3], v[40], v[41]) = (1e38, -70000.0, f32::INFINITY);
    let input = one(&[32, 2], GgmlType::F32, f32s(v));
    insta::assert_snapshot!(place.refuse(&input, &["--dtype", "f16"]), @"error: in.gguf: tensor blk.0.ffn_up.weight: 2 values out of the range of F16 (the largest is 1e38, F16 ends at 6.5504e4) would become infinite; use --dtype bf16 or f32, or choose with --overflow clamp|keep");
    let clamped = values(&place.export(&input, &["--dtype", "f16", "--overflow", "clamp"]), W);
    assert_eq!((clamped[3], clamped[40], clamped[41]), (65504.0, -65504.0, f32::INFINITY));
    let kept = values(&place.export(&input, &["--dtype", "f16", "--overflow", "keep"]), W);
    assert_eq!((kept[3], kept[40]), (f32::INFINITY, f32::NEG_INFINITY));
    place.export(&one(&[32], GgmlType::BF16, bf16s([1e38; 32])), &["--dtype", "f16"]);
    let huge = one(&[32, 1], GgmlType::F32, f32s([3e38; 32]));
    assert!(place.refuse(&huge, &["--dtype", "q8_0"]).contains("too large"), "its scale has no f16");
}

// ggml-org/llama.cpp#7234; ModelCloud/GPTQModel#3058
#[test]
fn q8_0_rounds_half_away_from_zero() {
    let place = Place::new();
    let mut v = [0.0_f32; 32];
    v[..8].copy_from_slice(&[127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.499_999_97]);
    let out = place.export(&one(&[32, 1], GgmlType::F32, f32s(v)), &["--dtype", "q8_0"]);
    let q: Vec<i8> = data(&out, W)[2..].iter().map(|b| *b as i8).collect();
    assert_eq!(q[..8], [127, 1, 2, 3, -1, -2, -3, 0]);
}

// ggml-org/llama.cpp#6614, #1921, #1919, #7805, #14996
#[test]
fn rows_that_blocks_do_not_divide_keep_their_type_and_say_so() {
    let place = Place::new();
    let input = mixed();
    let out = place.export(&input, &["--dtype", "q4_k"]);
    assert_eq!(ty(&out, "blk.0.ffn_down.weight"), GgmlType::F16);
    let plan = place.run(&["--from-gguf", "in.gguf", "--dtype", "q4_k", "--dry-run"]).out;
    assert!(plan.contains("kept: row of 288 not divisible by block of 256"), "{plan}");
}

// ggml-org/llama.cpp#8603, #1691
#[test]
fn quantized_sources_are_not_quantized_again_unless_experts() {
    let place = Place::new();
    let q8 = place.export(&one(&[256, 2], GgmlType::F32, f32s(weights(512))), &["--dtype", "q8_0"]);
    insta::assert_snapshot!(place.refuse(&q8, &["--dtype", "q4_k"]), @"error: in.gguf: tensor blk.0.ffn_up.weight: is already quantized (Q8_0); quantizing again would add a second loss; start from the F16, BF16 or F32 file, copy it verbatim (no --dtype), name a type for the experts alone (--experts-dtype), or insist with --allow-requantize");
    assert!(place.export(&q8, &["--dtype", "q8_0"]) == q8, "it has that type");
    let name = "blk.0.ffn_up_exps.weight";
    let moe = model(&[
        (name, &[256, 2, 3], GgmlType::Q8_0, data(&q8, W).repeat(3)),
        (W, &[256, 2], GgmlType::F16, f16s(weights(512))),
    ]);
    let out = place.export(&moe, &["--experts-dtype", "q5_0"]);
    assert_eq!((ty(&out, name), ty(&out, W)), (GgmlType::Q5_0, GgmlType::F16));
    let out = place.export(&moe, &["--experts-dtype", "q5_0", "--dtype", "q4_1"]);
    assert_eq!((ty(&out, name), ty(&out, W)), (GgmlType::Q5_0, GgmlType::Q4_1));
    let out = place.export(&moe, &["--experts-dtype", "verbatim", "--dtype", "q4_1"]);
    assert_eq!((ty(&out, name), ty(&out, W)), (GgmlType::Q8_0, GgmlType::Q4_1));
}

// ikawrakow/ik_llama.cpp#649
#[test]
fn a_scale_that_is_not_finite_is_copied_and_never_decoded() {
    let place = Place::new();
    let name = "blk.0.ffn_up_exps.weight";
    let mut blocks = vec![0; 34 * 16];
    blocks[34 + 1] = 0x7E;
    let input = model(&[(name, &[256, 2], GgmlType::Q8_0, blocks)]);
    assert!(place.export(&input, &[]) == input);
    insta::assert_snapshot!(place.refuse(&input, &["--experts-dtype", "q4_0"]), @"error: in.gguf: tensor blk.0.ffn_up_exps.weight: the Q8_0 scale of block 1 (elements 32..64) is not finite, so its values cannot be quantized again; copy it verbatim");
}

// ggml-org/llama.cpp#24379, #5824, #11345
#[test]
fn names_and_counts_that_do_not_fit_the_keys_are_no_obstacle() {
    let place = Place::new();
    let input = model(&[
        ("token_embd.weight", &[256, 2], GgmlType::F16, f16s(weights(512))),
        ("blk.1.ffn_up.weight", &[256, 2], GgmlType::F16, f16s(weights(512))),
    ]);
    let out = place.export(&input, &["--dtype", "q8_0"]);
    let g = Gguf::parse(&out).unwrap();
    assert_eq!(g.tensors().map(|t| t.ty()).collect::<Vec<_>>(), [GgmlType::Q8_0; 2]);
    assert!(g.tensor("output.weight").is_none(), "a tied head is not invented");
}

// ggml-org/llama.cpp#15193; microsoft/BitNet#616
#[test]
fn ternary_of_dense_weights_reports_its_error() {
    let place = Place::new();
    place.write("in.gguf", &one(&[256, 2], GgmlType::F16, f16s(weights(512))));
    let ran = place.run(&["--from-gguf", "in.gguf", "--out", "o.gguf", "--dtype", "tq2_0"]);
    assert!(ran.code == 0 && ran.out.contains("relative error 0."), "{}{}", ran.out, ran.err);
}

#[test]
fn a_row_longer_than_any_chunk_is_cut_within() {
    let place = Place::new();
    let n = 256 * 5000;
    let out = place.export(&one(&[n, 1], GgmlType::F16, f16s(weights(n as usize))), &["--dtype", "q8_0"]);
    let mut expect = vec![0; n as usize / 32 * 34];
    let values: Vec<f32> = weights(n as usize).map(|v| half::f16::from_f32(v).to_f32()).collect();
    Format::of(GgmlType::Q8_0).unwrap().encode_rows(&values, n as usize, None, &mut expect).unwrap();
    assert!(data(&out, W) == expect);
}

#[test]
fn a_type_that_needs_importance_says_so() {
    let place = Place::new();
    let input = one(&[256, 2], GgmlType::F16, f16s(weights(512)));
    let error = place.refuse(&input, &["--dtype", "iq2_xxs"]);
    assert!(error.contains("IQ2_XXS needs an importance matrix"), "{error}");
}
