use super::*;
use crate::source::Tensor;

fn tensor(name: &str, dims: &[u64], ty: GgmlType) -> Tensor {
    let bytes = ty.row_bytes(dims.iter().product()).unwrap();
    Tensor { name: name.into(), dims: dims.to_vec(), ty, bytes, decodable: true }
}

fn to(t: GgmlType) -> Request {
    Request { dtype: Some(t), ..Request::default() }
}

#[test]
fn every_rule_has_its_reason() {
    let f16 = GgmlType::F16;
    let cases = [
        ("blk.0.ffn_up.weight", &[256, 4][..], f16, GgmlType::Q4_K, Why::Dtype),
        ("blk.0.ffn_up.weight", &[288, 4], f16, f16, Why::Indivisible(288, 256)),
        ("blk.0.attn_norm.weight", &[256, 4], f16, f16, Why::Norm),
        ("blk.0.ffn_up.bias", &[256, 4], f16, f16, Why::NotWeight),
        ("token_types.weight", &[256, 2], f16, f16, Why::Added),
        ("rope.weight", &[256], f16, f16, Why::Vector),
        ("ffn_gate_tid2eid.weight", &[256, 4], GgmlType::I32, GgmlType::I32, Why::Integers),
        ("output.weight", &[256, 4], GgmlType::Q4_K, GgmlType::Q4_K, Why::Already),
        ("empty.weight", &[256, 0], f16, GgmlType::Q4_K, Why::Dtype),
    ];
    for (name, dims, ty, target, why) in cases {
        let p = plan(&[tensor(name, dims, ty)], to(GgmlType::Q4_K), None).unwrap();
        assert_eq!((p.steps[0].to, p.steps[0].why.clone()), (target, why), "{name}");
        let touched = target != ty;
        assert_eq!(p.keys.is_empty(), !touched, "{name}: keys change only with tensors");
    }
}

#[test]
fn without_a_request_nothing_changes() {
    let all = [tensor("a.weight", &[256, 2], GgmlType::F16), tensor("b.weight", &[32, 2], GgmlType::Q8_0)];
    let p = plan(&all, Request::default(), None).unwrap();
    assert!(p.keys.is_empty() && p.steps.iter().all(|s| s.from == s.to && s.why == Why::NotAsked));
}

#[test]
fn quantized_sources_are_refused_but_for_experts() {
    let all = [
        tensor("blk.0.attn_q.weight", &[256, 2], GgmlType::Q8_0),
        tensor("blk.0.ffn_up_exps.weight", &[256, 2, 2], GgmlType::Q8_0),
    ];
    let error = plan(&all, to(GgmlType::Q4_K), None).unwrap_err().to_string();
    assert!(error.contains("blk.0.attn_q.weight: is already quantized (Q8_0)"), "{error}");
    assert!(error.contains("and so is blk.0.ffn_up_exps.weight (Q8_0)"), "{error}");
    let p = plan(&all, Request { experts: Experts::To(GgmlType::Q4_K), ..Request::default() }, None).unwrap();
    assert_eq!((&p.steps[0].why, &p.steps[1].why), (&Why::NotAsked, &Why::Experts));
    assert_eq!(
        p.keys,
        [
            Edit::Set("general.file_type".into(), MetaValue::U32(14)),
            Edit::Set("general.quantization_version".into(), MetaValue::U32(2)),
        ]
    );
}

#[test]
fn every_target_has_a_file_type() {
    let types: Vec<_> = targets().map(|t| (t, policy::uniform_file_type(t))).collect();
    assert!(types.iter().all(|(_, n)| n.is_some()), "{types:?}");
    for (ty, number) in [("Q4_K", 14), ("Q6_K", 18), ("F16", 1), ("BF16", 32), ("MXFP4", 38), ("NVFP4", 39)] {
        let ty = GgmlType::from_name(ty).unwrap();
        assert_eq!(policy::uniform_file_type(ty), Some(number));
    }
}
