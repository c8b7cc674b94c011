//! Models as trit-planes, and back.

use export_gguf::ptqtp::{Options, quantize_matrix};
use ggml_blocks::Format;
use gguf_format::{Builder, GgmlType, Gguf};

use crate::support::*;

/// A model with everything that the rules tell apart, two stacks of experts among it.
fn moe() -> Vec<u8> {
    model(&[
        ("token_embd.weight", &[256, 40], GgmlType::F16, f16s(weights(256 * 40))),
        ("blk.0.attn_norm.weight", &[256], GgmlType::F32, f32s(weights(256))),
        ("blk.0.attn_q.weight", &[256, 33], GgmlType::BF16, bf16s(weights(256 * 33))),
        ("blk.0.attn_output.weight", &[512, 7], GgmlType::F32, f32s(weights(512 * 7))),
        ("blk.0.ffn_down.weight", &[288, 4], GgmlType::F16, f16s(weights(288 * 4))),
        ("blk.0.ffn_up_exps.weight", &[512, 5, 3], GgmlType::Q8_0, q8_0(512 * 15)),
        ("blk.0.ffn_gate_exps.weight", &[256, 2, 4], GgmlType::F16, f16s(weights(2048))),
        ("blk.0.ffn_up.bias", &[256, 2], GgmlType::F32, f32s(weights(512))),
        ("output.weight", &[256, 8], GgmlType::F32, f32s(weights(2048))),
    ])
}

fn q8_0(n: usize) -> Vec<u8> {
    let format = Format::of(GgmlType::Q8_0).unwrap();
    let mut out = vec![0; format.row_bytes(n).unwrap()];
    format.encode_rows(&weights(n).collect::<Vec<_>>(), n, None, &mut out).unwrap();
    out
}

fn names(file: &[u8]) -> Vec<String> {
    Gguf::parse(file).unwrap().tensors().map(|t| t.name().to_owned()).collect()
}

/// Keys that begin with `fucina.`, and their values.
fn keys(file: &[u8]) -> Vec<(String, u64)> {
    let g = Gguf::parse(file).unwrap();
    let found = g.metadata().filter(|kv| kv.key().starts_with("fucina."));
    found.map(|kv| (kv.key().to_owned(), kv.value().as_u64().unwrap())).collect()
}

const VERSION: (&str, u64) = ("fucina.ptqtp.version", 1);
const TIED: (&str, u64) = ("fucina.ptqtp.tie_scales", 1);

fn owned(keys: &[(&str, u64)]) -> Vec<(String, u64)> {
    keys.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect()
}

/// The planes of a tensor as the library makes them, matrix by matrix.
fn planes(input: &[u8], name: &str, options: &Options) -> Vec<Vec<u8>> {
    let g = Gguf::parse(input).unwrap();
    let dims = g.tensor(name).unwrap().dims().to_vec();
    let row_len = dims[0] as usize;
    let mut out = vec![Vec::new(); options.planes];
    for matrix in values(input, name).chunks(row_len * dims[1] as usize) {
        let found = quantize_matrix(matrix, row_len, options).unwrap();
        for (out, blocks) in out.iter_mut().zip(&found.planes) {
            for block in blocks {
                out.extend(block.qs);
                out.extend(block.d.to_bits().to_le_bytes());
            }
        }
    }
    out
}

#[test]
fn planes_take_the_place_of_their_tensor() {
    let place = Place::new();
    let input = moe();
    let out = place.export(&input, &["--ptqtp"]);
    assert_eq!(
        names(&out),
        [
            "token_embd.weight",
            "blk.0.attn_norm.weight",
            "blk.0.attn_q.weight.ptqtp0",
            "blk.0.attn_q.weight.ptqtp1",
            "blk.0.attn_output.weight.ptqtp0",
            "blk.0.attn_output.weight.ptqtp1",
            "blk.0.ffn_down.weight",
            "blk.0.ffn_up_exps.weight.ptqtp0",
            "blk.0.ffn_up_exps.weight.ptqtp1",
            "blk.0.ffn_gate_exps.weight.ptqtp0",
            "blk.0.ffn_gate_exps.weight.ptqtp1",
            "blk.0.ffn_up.bias",
            "output.weight",
        ]
    );
    assert_eq!(keys(&out), owned(&[VERSION]));
    for name in ["token_embd.weight", "blk.0.ffn_down.weight", "blk.0.ffn_up.bias", "output.weight"] {
        assert!(data(&input, name) == data(&out, name), "{name}");
    }
    for name in ["blk.0.attn_q.weight", "blk.0.ffn_up_exps.weight", "blk.0.ffn_gate_exps.weight"] {
        for (p, bytes) in planes(&input, name, &Options::default()).into_iter().enumerate() {
            let plane = format!("{name}.ptqtp{p}");
            let (before, after) = (Gguf::parse(&input).unwrap(), Gguf::parse(&out).unwrap());
            assert_eq!(before.tensor(name).unwrap().dims(), after.tensor(&plane).unwrap().dims());
            assert_eq!(ty(&out, &plane), GgmlType::TQ2_0);
            assert!(data(&out, &plane) == bytes, "{plane}");
        }
    }
    assert!(place.export(&out, &["--ptqtp"]) == out, "nothing is left to be decomposed");
    assert!(place.export(&input, &["--ptqtp=2", "--threads", "3"]) == out);
    assert!(place.export(&input, &["--ptqtp-planes", "2"]) == out);
    let ran = place.run(&["verify", "out.gguf"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
}

#[test]
fn tied_planes_say_so_only_when_all_are() {
    let place = Place::new();
    let input = moe();
    let tied = place.export(&input, &["--ptqtp=3", "--ptqtp-tie", "--ptqtp-exclude", "exps,attn_q"]);
    assert_eq!(keys(&tied), owned(&[VERSION, TIED]));
    let options = Options { tie_scales: true, ..Options::with_planes(3) };
    let wanted = planes(&input, "blk.0.attn_output.weight", &options);
    assert!(data(&tied, "blk.0.attn_output.weight.ptqtp2") == wanted[2]);
    let more = place.export(&tied, &["--ptqtp", "--ptqtp-tie", "--ptqtp-include", "up_exps"]);
    assert_eq!(keys(&more), owned(&[VERSION, TIED]));
    let free = place.export(&more, &["--ptqtp", "--ptqtp-exclude", "attn_q"]);
    assert_eq!(keys(&free), owned(&[VERSION]), "the last ones are free");
    assert!(names(&free).contains(&"blk.0.ffn_gate_exps.weight.ptqtp1".to_owned()));
    assert!(names(&free).contains(&"blk.0.attn_q.weight".to_owned()));
    let late = place.export(&free, &["--ptqtp", "--ptqtp-tie"]);
    assert_eq!(keys(&late), owned(&[VERSION]), "the others are free");
    let none = place.export(&input, &["--ptqtp", "--ptqtp-include", "_norm"]);
    assert!(none == input, "no planes, no key");
    let ends =
        place.export(&input, &["--ptqtp-include", "token_embd,output.weight", "--ptqtp-exclude", "attn"]);
    assert_eq!(names(&ends).iter().filter(|n| n.contains(".ptqtp")).count(), 4);
}

#[test]
fn sums_of_planes_are_plain_tensors_again() {
    let place = Place::new();
    let input = moe();
    let out = place.export(&input, &["--ptqtp=3"]);
    place.write("planes.gguf", &out);
    let back = |more: &[&str]| {
        let ran = place.run(
            &[&["--from-ptqtp", "planes.gguf", "--out", "back.gguf", "--force", "--quiet"], more].concat(),
        );
        assert_eq!(ran.code, 0, "{}", ran.err);
        place.read("back.gguf")
    };
    let plain = back(&[]);
    assert_eq!(names(&plain), names(&input));
    assert!(keys(&plain).is_empty());
    for name in ["blk.0.attn_q.weight", "blk.0.ffn_up_exps.weight"] {
        let [a, b, c] = [0, 1, 2].map(|p| values(&out, &format!("{name}.ptqtp{p}")));
        let sum: Vec<f32> = (0..a.len()).map(|i| a[i] + b[i] + c[i]).collect();
        assert_eq!((ty(&plain, name), values(&plain, name) == sum), (GgmlType::F32, true), "{name}");
    }
    assert!(data(&plain, "token_embd.weight") == data(&input, "token_embd.weight"));
    let small = back(&["--dtype", "q8_0"]);
    assert_eq!(ty(&small, "blk.0.attn_q.weight"), GgmlType::Q8_0);
    assert_eq!(ty(&small, "token_embd.weight"), GgmlType::F16, "what is no sum stays");
    let direct = place.export(&plain, &["--dtype", "q8_0"]);
    assert!(data(&direct, "blk.0.ffn_up_exps.weight") == data(&small, "blk.0.ffn_up_exps.weight"));
    let refused = place.run(&["--from-ptqtp", "in.gguf", "--out", "x.gguf"]);
    assert_eq!((refused.code, refused.err.lines().count()), (1, 1), "{}", refused.err);
}

#[test]
fn a_split_set_has_its_planes_where_they_fit() {
    let place = Place::new();
    let whole = place.export(&moe(), &["--ptqtp"]);
    place.write("in.gguf", &moe());
    let ran = place.run(&[
        "--from-gguf",
        "in.gguf",
        "--out",
        "set.gguf",
        "--ptqtp",
        "--split-max-tensors",
        "3",
        "--quiet",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ran = place.run(&["verify", "set-00001-of-00005.gguf"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    place.write("planes.gguf", &whole);
    let merged = place.run(&["--from-gguf", "set-00001-of-00005.gguf", "--out", "merged.gguf", "--quiet"]);
    assert_eq!(merged.code, 0, "{}", merged.err);
    assert!(place.read("merged.gguf") == whole);
}

#[test]
fn the_plan_and_the_summary_speak_of_planes() {
    let place = Place::new();
    place.write("in.gguf", &moe());
    let base = ["--from-gguf", "in.gguf", "--ptqtp", "--ptqtp-tie", "--ptqtp-exclude", "attn_q"];
    insta::assert_snapshot!(place.run(&[&base[..], &["--dry-run"]].concat()).out);
    let json = place.run(&[&base[..], &["--dry-run", "--json"]].concat()).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["keys"]["fucina.ptqtp.tie_scales"], 1);
    assert_eq!(json["tensors"][3]["name"], "blk.0.attn_output.weight.ptqtp0");
    let ran = place.run(&[&base[..], &["--out", "out.gguf"]].concat());
    let lines: Vec<&str> = ran.out.lines().filter(|l| l.contains("unconverged")).collect();
    assert_eq!(lines.len(), 4, "{}", ran.out);
    assert!(
        lines[1].starts_with("blk.0.ffn_up_exps.weight") && lines[1].contains("3 experts"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("peak RSS"), "{}", ran.out);
    let json = place.run(&[&base[..], &["--out", "out.gguf", "--force", "--json"]].concat()).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["ptqtp"][1]["matrices"], &json["ptqtp"][1]["tied"]), (&3.into(), &true.into()));
    assert!(json["ptqtp"][1]["relative_error_max"].as_f64() >= json["ptqtp"][1]["relative_error"].as_f64());
    let shown = place.run(&["tensors", "out.gguf"]).out;
    assert!(shown.contains("trit-planes: 3 tensors, 4.12 bits per weight, tied"), "{shown}");
    let info = place.run(&["info", "out.gguf", "--json"]).out;
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    let weights: u64 = Gguf::parse(&moe()).unwrap().tensors().map(|t| t.elements()).sum();
    assert_eq!((&info["parameters"], &info["trit_planes"]["tensors"]), (&weights.into(), &3.into()));
}

#[test]
fn senseless_requests_are_refused() {
    let place = Place::new();
    let input = moe();
    place.write("in.gguf", &input);
    let mut said = String::new();
    for more in [
        &["--ptqtp", "--dtype", "q8_0"][..],
        &["--ptqtp", "--experts-dtype", "q8_0"],
        &["--ptqtp=2", "--mix", "q4_k_m"],
        &["--ptqtp", "--adapters", "a"],
        &["--ptqtp=4"],
        &["--ptqtp=2", "--ptqtp-planes", "3"],
        &["--ptqtp=1", "--ptqtp-tie"],
        &["--ptqtp-include", ""],
        &["--ptqtp", "--from-ptqtp", "in.gguf"],
    ] {
        let ran = place.run(&[&["--from-gguf", "in.gguf", "--out", "refused.gguf"], more].concat());
        assert_eq!(ran.code, 2, "{more:?}: {}", ran.err);
        said += &format!("{}\n", ran.err.lines().next().unwrap_or_default());
    }
    assert_eq!(place.names(), ["in.gguf"]);
    insta::assert_snapshot!(said);
}

#[test]
fn faults_of_plane_sets_are_named() {
    let place = Place::new();
    let file = |version: Option<u32>, tie: Option<u32>, tensors: &[(&str, u64, GgmlType)]| {
        let mut b = Builder::new();
        b.set("general.architecture", "x");
        version.map(|v| b.set("fucina.ptqtp.version", v));
        tie.map(|v| b.set("fucina.ptqtp.tie_scales", v));
        let all: Vec<_> = tensors
            .iter()
            .map(|&(name, rows, ty)| {
                (name, [256, rows], ty, vec![0; (ty.row_bytes(256).unwrap() * rows) as usize])
            })
            .collect();
        let all: Vec<Data<'_>> = all.iter().map(|(n, d, t, b)| (*n, &d[..], *t, b.clone())).collect();
        whole(b, &all)
    };
    let (t, q) = (GgmlType::TQ2_0, GgmlType::Q8_0);
    let cases = [
        file(Some(2), None, &[("a.weight.ptqtp0", 1, t)]),
        file(None, None, &[("a.weight.ptqtp0", 1, t)]),
        file(Some(1), Some(0), &[("a.weight.ptqtp0", 1, t)]),
        file(Some(1), Some(1), &[("a.weight.ptqtp0", 1, t)]),
        file(Some(1), None, &[("a.weight.ptqtp0", 1, t), ("a.weight.ptqtp2", 1, t)]),
        file(Some(1), None, &[("a.weight.ptqtp1", 1, t), ("b.weight.ptqtp3", 1, t)]),
        file(Some(1), None, &[("a.weight.ptqtp0", 1, t), ("a.weight.ptqtp1", 2, q), ("a.weight", 1, q)]),
    ];
    let mut said = String::new();
    for case in &cases {
        place.write("x.gguf", case);
        let verify = place.run(&["verify", "x.gguf", "--no-values"]);
        assert_eq!(verify.code, 1, "{}", verify.out);
        let faults: Vec<&str> =
            verify.out.lines().filter_map(|l| l.strip_prefix("x.gguf: fault: ")).collect();
        for command in ["info", "tensors"] {
            let shown = place.run(&[command, "x.gguf"]).out;
            let named: Vec<&str> = shown.lines().filter_map(|l| l.strip_prefix("fault: ")).collect();
            assert_eq!(named, faults, "{command}");
        }
        said += &format!("{}\n", faults.join("\n"));
        let back = place.run(&["--from-ptqtp", "x.gguf", "--out", "y.gguf"]);
        assert_eq!(back.code, 1, "{}", back.err);
    }
    insta::assert_snapshot!(said);
    place.write("in.gguf", &cases[0]);
    let ran = place.run(&["--from-gguf", "in.gguf", "--out", "y.gguf", "--ptqtp"]);
    assert_eq!(ran.code, 1, "a newer version is not added to: {}", ran.err);
}

#[test]
fn what_is_not_finite_becomes_zero_and_nothing_else() {
    let place = Place::new();
    let mut w: Vec<f32> = weights(512).collect();
    w[3] = f32::NAN;
    w[300] = f32::INFINITY;
    let input = model(&[("blk.0.a.weight", &[256, 2], GgmlType::F32, f32s(w.iter().copied()))]);
    let out = place.export(&input, &["--ptqtp"]);
    let again = ["--from-gguf", "in.gguf", "--out", "out.gguf", "--force", "--ptqtp"];
    let said = place.run(&again).out;
    assert!(said.contains("2 weights not finite: taken as 0"), "{said}");
    let json: serde_json::Value =
        serde_json::from_str(&place.run(&[&again[..], &["--json"]].concat()).out).unwrap();
    assert_eq!(json["ptqtp"][0]["not_finite"], 2);
    for p in 0..2 {
        let plane = values(&out, &format!("blk.0.a.weight.ptqtp{p}"));
        assert!(plane.iter().all(|x| x.is_finite()) && plane[3] == 0.0 && plane[300] == 0.0);
        assert!(plane.iter().filter(|x| **x != 0.0).count() > 200);
    }
}

#[test]
fn a_choice_of_nothing_is_refused() {
    let place = Place::new();
    place.write("in.gguf", &moe());
    for flag in ["--ptqtp-include", "--ptqtp-exclude"] {
        let ran =
            place.run(&["--from-gguf", "in.gguf", "--out", "out.gguf", "--ptqtp", flag, "attn_q,nonesuch"]);
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains(&format!("{flag} nonesuch: it occurs in no tensor's name")), "{}", ran.err);
    }
}
