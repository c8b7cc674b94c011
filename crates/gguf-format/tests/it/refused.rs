//! Files that must be refused, after public reports, and the exact text of every refusal.
//!
//! One snapshot lists them all: what is wrong, who reported it, and what this crate says in strict
//! and, where it differs, in lenient mode.

use std::fmt::Write as _;

use gguf_format::{Gguf, ParseOptions};

use crate::raw::{Raw, string};

/// What is wrong, who reported it, the file.
type Case = (&'static str, &'static str, Vec<u8>);

const LENIENT: ParseOptions = ParseOptions { lenient: true, bounds: gguf_format::Bounds::Whole };

#[test]
fn every_refusal_says_what_and_where() {
    let mut text = String::new();
    for (what, source, file) in all() {
        let error = Gguf::parse(&file).expect_err(what);
        writeln!(text, "{what} ({source})\n    {error}").unwrap();
        match Gguf::parse_with(&file, &LENIENT) {
            Ok(gguf) => {
                for finding in gguf.findings() {
                    writeln!(text, "    lenient: {finding}").unwrap();
                }
            }
            Err(e) if e == error => {}
            Err(e) => writeln!(text, "    lenient: {e}").unwrap(),
        }
    }
    insta::assert_snapshot!("refused", text);
}

fn all() -> Vec<Case> {
    [foreign(), versions(), counts(), lengths(), keys(), alignment(), shapes(), types(), places(), cut()]
        .concat()
}

fn foreign() -> Vec<Case> {
    let source = "ggml-org/llama.cpp#3889, #8094; abetlen/llama-cpp-python#755";
    let pad = |text: &[u8]| [text, &[b' '; 40]].concat();
    let mut swapped = Raw::small();
    swapped.magic = *b"FUGG";
    vec![
        ("empty file", "ggml-org/llama.cpp#2629, #9498", vec![]),
        ("git lfs pointer", source, pad(b"version https://git-lfs.github.com/spec/v1\noid sha256:0")),
        ("web page", source, pad(b"\n<!DOCTYPE html><html>")),
        ("error page of a storage", source, pad(b"<?xml version=\"1.0\"?><Error>")),
        ("json", source, pad(b"{\"error\": \"not found\"}")),
        ("ggml", source, pad(b"lmgg")),
        ("ggmf", source, pad(b"fmgg\x01")),
        ("ggjt", source, pad(b"tjgg\x03")),
        ("ggla", source, pad(b"algg\x01")),
        ("safetensors", source, pad(b"\x38\0\0\0\0\0\0\0{\"a\":{")),
        ("zip", source, pad(b"PK\x03\x04")),
        ("gzip", source, pad(b"\x1f\x8b\x08")),
        ("magic backwards", source, swapped.bytes()),
        ("zeros", source, vec![0; 64]),
        ("anything else", source, pad(b"\x80\x02\n\"")),
        ("shorter than the magic", source, b"ab".to_vec()),
    ]
}

fn versions() -> Vec<Case> {
    let version = |version| Raw { version, ..Raw::small() }.bytes();
    let source = "nomic-ai/gpt4all#1586; ggml-org/llama.cpp#3908";
    vec![
        ("version 1", "ggml-org/llama.cpp#3901; huggingface/huggingface.js#568", version(1)),
        ("version 0", source, version(0)),
        ("version 4", source, version(4)),
        ("version 4294967295", source, version(u32::MAX)),
        ("big-endian", "ollama/ollama#4938; ggml-org/llama.cpp#3957", version(3_u32.swap_bytes())),
    ]
}

fn counts() -> Vec<Case> {
    let claims = |tensors, keys| Raw::small().claims(tensors, keys).bytes();
    vec![
        ("2^64-1 tensors", "CVE-2024-21836", claims(u64::MAX, 1)),
        ("2^60 tensors", "CVE-2024-21836", claims(1 << 60, 1)),
        ("2^32+1 tensors", "CVE-2024-21836", claims((1 << 32) + 1, 1)),
        ("2^63 keys", "CVE-2024-21836", claims(1, 1 << 63)),
        ("one key too many", "gittensor-ai-lab/sparkinfer#5", claims(1, 2)),
        ("one key too few", "gittensor-ai-lab/sparkinfer#5", claims(1, 0)),
        ("one tensor too many", "gittensor-ai-lab/sparkinfer#5", claims(2, 1)),
    ]
}

fn lengths() -> Vec<Case> {
    let len = |n: u64| n.to_le_bytes();
    let mut key_max = Raw::new();
    key_max.keys.push(len(u64::MAX).to_vec());
    let mut name_max = Raw::new();
    name_max.infos.push(len(u64::MAX).to_vec());
    let array = |element, n, bytes: &[u8]| Raw::new().array("k.a", element, n, bytes).bytes();
    let value = |payload: &[u8]| Raw::new().key(b"general.name", 8, payload).bytes();
    let name = |n| Raw::new().info(&"x".repeat(n), &[8], 0, 0).data(32).bytes();
    vec![
        ("key length 2^64-1", "CVE-2024-23496", key_max.bytes()),
        ("tensor name length 2^64-1", "CVE-2024-23496", name_max.bytes()),
        ("string length 2^63", "CVE-2024-23496", value(&len(1 << 63))),
        ("string length 2^30+1", "ggml-org/llama.cpp#19856", value(&len((1 << 30) + 1))),
        ("string one byte beyond the end", "CVE-2024-23496", value(&[&len(4)[..], b"abc"].concat())),
        ("u64 array that wraps to 8 bytes", "CVE-2024-21825", array(10, (1 << 61) + 1, &[0; 8])),
        ("f32 array that wraps to 0 bytes", "CVE-2024-21825", array(6, 1 << 62, &[])),
        ("array of 2^64-1 strings", "CVE-2024-21825", array(8, u64::MAX, &[0; 16])),
        ("array of 2^40 bytes", "CVE-2024-21825", array(0, 1 << 40, &[0; 16])),
        ("array of 2^30 bytes", "CVE-2024-21825", array(0, 1 << 30, &[0; 16])),
        ("array of 2^30 strings", "CVE-2024-21825", array(8, 1 << 30, &[0; 16])),
        ("key of 70000 bytes", "GGUF specification", Raw::new().u32(&"k".repeat(70_000), 1).bytes()),
        ("tensor name of 70000 bytes", "ggml-org/llama.cpp#10100", name(70_000)),
    ]
}

fn keys() -> Vec<Case> {
    let sparkinfer = "gittensor-ai-lab/sparkinfer#5, #6, #9";
    let file = |ty, payload: &[u8]| Raw::small().key(b"k.x", ty, payload).bytes();
    let nested = [&9_u32.to_le_bytes()[..], &1_u64.to_le_bytes(), &4_u32.to_le_bytes(), &[0; 8]].concat();
    vec![
        ("empty key", "ggml-org/llama.cpp#24884, #20873", Raw::small().u32("", 1).bytes()),
        ("key twice", "ggml-org/llama.cpp#6905", Raw::small().u32("k", 1).u32("l", 1).u32("k", 2).bytes()),
        ("key not UTF-8", "rustformers/llm#11", Raw::small().key(b"k.\xff", 0, &[1]).bytes()),
        ("value type 13", sparkinfer, file(13, &[0; 8])),
        ("value type 4294967295", sparkinfer, file(u32::MAX, &[0; 8])),
        ("array of type 13", sparkinfer, Raw::small().array("k.x", 13, 1, &[0; 8]).bytes()),
        ("empty array of unknown type", sparkinfer, Raw::small().array("k.x", u32::MAX, 0, &[]).bytes()),
        ("array of arrays", "ooples/AiDotNet.Tensors#208", file(9, &nested)),
        ("key with line breaks", "quoted in errors", Raw::small().key(b"a\n\x1b[2J", 13, &[]).bytes()),
    ]
}

fn alignment() -> Vec<Case> {
    let wire = "ggml-org/llama.cpp#24988, #25596, #5136, #26318";
    let zero = "huggingface/candle#3876; antirez/gguf-tools#27";
    let large = "ggml-org/ggml#1516; ggml-org/llama.cpp#24997";
    let typed = |ty, payload: &[u8]| Raw::small().key(b"general.alignment", ty, payload).bytes();
    let mut short = Raw::small();
    short = short.u32("general.alignment", 1 << 31);
    vec![
        ("alignment as i32", wire, typed(5, &[32, 0, 0, 0])),
        ("alignment as u64", wire, typed(10, &[32, 0, 0, 0, 0, 0, 0, 0])),
        ("alignment as string", wire, typed(8, &string(b"32"))),
        ("alignment as array", wire, Raw::small().array("general.alignment", 4, 1, &[32, 0, 0, 0]).bytes()),
        ("alignment 0", zero, typed(4, &[0; 4])),
        ("alignment 0 without tensors", zero, Raw::new().u32("general.alignment", 0).bytes()),
        ("alignment 3", zero, typed(4, &[3, 0, 0, 0])),
        ("alignment 2^31 in a small file", large, short.bytes()),
    ]
}

fn shapes() -> Vec<Case> {
    let file = |dims: &[u64], ty| Raw::new().info("a.weight", dims, ty, 0).data(256).bytes();
    let five = "CVE-2024-21802; antirez/gguf-tools#25";
    let wrap = "CVE-2026-33298; zackshen/gguf#15";
    let minus = "ggml-org/llama.cpp#24263";
    let block = "ggml-org/llama.cpp#4950, #1921";
    let f32_ = 0;
    let many = Raw::new().info_as(b"a.weight", u32::MAX, &[1; 4], 0, 0).data(32);
    vec![
        ("five dimensions", five, file(&[1; 5], f32_)),
        ("2^32-1 dimensions", five, many.bytes()),
        ("[2^64-1, 2]", wrap, file(&[u64::MAX, 2], f32_)),
        ("2^64 elements", wrap, file(&[1 << 32, 1 << 32], f32_)),
        ("elements that wrap to 32", wrap, file(&[(1 << 62) + 8, 4], f32_)),
        ("elements that overflow before a zero", wrap, file(&[1 << 62, 4, 0], f32_)),
        ("bytes that overflow", wrap, file(&[1 << 62], 28)),
        ("dimension 2^63", minus, file(&[1 << 63], f32_)),
        ("dimension -1", minus, file(&[8, u64::MAX], f32_)),
        ("row of 100 in Q4_K", block, file(&[100], 12)),
        ("rows of 16 in Q8_0, 32 in all", block, file(&[16, 2], 8)),
        ("row of 33 in Q8_0", block, file(&[33], 8)),
    ]
}

fn types() -> Vec<Case> {
    let removed = "ggml-org/llama.cpp#10446, #10757";
    let unknown = "ggml-org/llama.cpp#19856; gpustack/gguf-parser-go#38";
    let file = |ty| Raw::new().info("a.weight", &[32, 2], ty, 0).data(64).bytes();
    vec![
        ("Q4_2", removed, file(4)),
        ("Q4_3", removed, file(5)),
        ("Q4_0_4_4", removed, file(31)),
        ("Q4_0_4_8", removed, file(32)),
        ("Q4_0_8_8", removed, file(33)),
        ("IQ4_NL_4_4", removed, file(36)),
        ("IQ4_NL_4_8", removed, file(37)),
        ("IQ4_NL_8_8", removed, file(38)),
        ("type 43", unknown, file(43)),
        ("type 137", unknown, file(137)),
        ("type 255", unknown, file(255)),
        ("type -1", unknown, file(u32::MAX)),
    ]
}

fn places() -> Vec<Case> {
    let two = |a: (&[u64], u64), b: (&[u64], u64), data| {
        Raw::new().info("a.weight", a.0, 0, a.1).info("b.weight", b.0, 0, b.1).data(data).bytes()
    };
    let sum = "CVE-2025-53630; ggml-org/llama.cpp#18674";
    let tight = "ollama/ollama#8456; ggml-org/ggml#1092";
    let alias = "Krako-Labs/KORA#310";
    let half = [1 << 61];
    let half_and_more =
        Raw::new().info("a", &half, 0, 0).info("b", &half, 0, 1 << 63).info("c", &[8], 0, 0).data(32);
    vec![
        ("tensor twice", "ggml-org/llama.cpp#6836, #6490", {
            Raw::new().info("a", &[8], 0, 0).info("b", &[8], 0, 32).info("a", &[8], 0, 64).data(96).bytes()
        }),
        ("tensor name not UTF-8", "rustformers/llm#11", {
            Raw::new().info_as(b"a.\xff", 1, &[8], 0, 0).data(32).bytes()
        }),
        ("sizes that add up to 2^64", sum, half_and_more.bytes()),
        (
            "offset that exceeds 2^64 with its size",
            "CVE-2026-27940",
            two((&[8], 0), (&[8], u64::MAX - 31), 64),
        ),
        (
            "next tensor 64 bytes too early",
            "ikawrakow/ik_llama.cpp#2437",
            two((&[272], 0), (&[8], 1024), 1120),
        ),
        ("two tensors at one offset", alias, two((&[8], 0), (&[8], 0), 64)),
        ("two tensors half on each other", alias, two((&[16], 0), (&[16], 32), 128)),
        (
            "data in another order",
            "ollama/ollama#5422; arcee-ai/mergekit#143",
            two((&[8], 32), (&[8], 0), 64),
        ),
        ("gap", "Krako-Labs/KORA#310", two((&[8], 0), (&[8], 64), 96)),
        ("offset 20", tight, two((&[5], 0), (&[8], 20), 64)),
        ("odd offset", tight, two((&[8], 0), (&[8], 35), 96)),
        ("overlap behind a gap", alias, two((&[16], 0), (&[8], 60), 96)),
    ]
}

fn cut() -> Vec<Case> {
    let header = "ggml-org/ggml#709";
    let data = "ggml-org/llama.cpp#6774, #6885; janhq/jan#3521";
    let file = Raw::small().info("b.weight", &[8], 0, 32).data(64);
    let (whole, infos) = (file.bytes(), file.header().len());
    let cut = |len: usize| whole[..len].to_vec();
    let start = whole.len() - 64;
    vec![
        ("cut inside the magic", header, cut(3)),
        ("cut after the magic", header, cut(4)),
        ("cut after the version", header, cut(8)),
        ("cut after the tensor count", header, cut(16)),
        ("cut in the key count", header, cut(23)),
        ("cut in the first key's length", header, cut(30)),
        ("cut in the first key", header, cut(40)),
        ("cut in the first value's type", header, cut(54)),
        ("cut in the first value", header, cut(68)),
        ("cut in a tensor name", header, cut(infos - 30)),
        ("cut in the last offset", header, cut(infos - 1)),
        ("cut after the tensor infos", header, cut(infos)),
        ("cut before the first tensor", data, cut(start)),
        ("cut in the first tensor", data, cut(start + 5)),
        ("cut before the last tensor", data, cut(start + 32)),
        ("last byte missing", data, cut(start + 63)),
        ("2 MiB declared, 32 bytes there", "CVE-2026-7482", {
            Raw::new().info("a.weight", &[1 << 19], 0, 0).data(32).bytes()
        }),
        ("total near 2^64", "CVE-2026-27940; ggml-org/llama.cpp#19856", {
            Raw::new().info("a", &[(1 << 62) - 16], 0, 0).data(32).bytes()
        }),
    ]
}
