//! Models of one file and of several: one directory, hand-off, lifetimes.

use crate::make::{Folder, gguf, le, part};
use gguf_mmap::{Bytes, Model, OpenOptions};

const FIRST: &str = "m-00001-of-00003.gguf";

/// ggml-org/llama.cpp#6187: a complete set of three parts.
fn set() -> Folder {
    Folder::with(&[
        (FIRST, &part(0, 3, 3, &[("a.weight", &[1.0, 2.0])])),
        ("m-00002-of-00003.gguf", &part(1, 3, 3, &[("b.weight", &[3.0, 4.0])])),
        ("m-00003-of-00003.gguf", &part(2, 3, 3, &[("c.weight", &[5.0])])),
    ])
}

#[test]
fn a_single_file_is_a_model() {
    let folder = Folder::with(&[("m.gguf", &gguf(&[("a", &[1.0]), ("b", &[2.0])], |_| {}))]);
    let model = Model::open(folder.path("m.gguf")).unwrap();
    assert!(!model.is_split());
    let listed: Vec<_> = model.tensors().map(|t| (t.part, t.info.name().to_string())).collect();
    assert_eq!(listed, [(0, "a".to_string()), (0, "b".to_string())]);
    assert_eq!(model.tensor_bytes("b").as_deref(), Some(&*le(&[2.0])));
}

#[test]
fn a_split_set_has_one_directory() {
    let folder = set();
    for heap in [false, true] {
        let model = Model::open_with(folder.path(FIRST), OpenOptions::default().heap(heap)).unwrap();
        assert!(model.is_split());
        assert_eq!(model.parts().len(), 3);
        let listed: Vec<_> = model.tensors().map(|t| (t.part, t.info.name().to_string())).collect();
        assert_eq!(listed, [(0, "a.weight"), (1, "b.weight"), (2, "c.weight")].map(|(p, n)| (p, n.into())));
        for (name, values) in [("a.weight", &[1.0, 2.0][..]), ("b.weight", &[3.0, 4.0]), ("c.weight", &[5.0])]
        {
            let tensor = model.tensor(name).unwrap();
            model.prefetch(&tensor);
            model.release(&tensor);
            assert_eq!(model.data(&tensor), Some(&*le(values)));
            assert_eq!(model.bytes(&tensor).as_deref(), Some(&*le(values)));
        }
        assert!(model.tensor("d.weight").is_none());
        assert_eq!(model.gguf().get("split.no").unwrap().as_u64(), Some(0));
    }
}

#[test]
fn the_mappings_of_a_split_set_can_be_taken() {
    let folder = set();
    let mut model = Model::open(folder.path(FIRST)).unwrap();
    let b = model.tensor_bytes("b.weight").unwrap();
    let mappings = model.take_mappings();
    assert_eq!(mappings.len(), 3);
    assert!(model.take_mappings().is_empty());

    assert_eq!(model.tensors().count(), 3);
    let c = model.tensor("c.weight").unwrap();
    assert!(model.data(&c).is_none() && model.bytes(&c).is_none());
    model.prefetch(&c);
    model.release(&c);
    let start = c.info.file_offset();
    let c = mappings[c.part].range(start..start + c.info.byte_len()).unwrap();

    drop(mappings);
    drop(model);
    assert_eq!((&*b, &*c), (&*le(&[3.0, 4.0]), &*le(&[5.0])));
}

#[test]
fn models_and_handles_are_shared_by_threads() {
    fn assert_shareable<T: Send + Sync + 'static>() {}
    assert_shareable::<Model>();
    let folder = set();
    let model = Model::open(folder.path(FIRST)).unwrap();
    let handles: Vec<Bytes> = model.tensors().filter_map(|t| model.bytes(&t)).collect();
    let last = std::thread::scope(|s| s.spawn(|| model.tensor_bytes("c.weight").unwrap()).join().unwrap());
    drop(model);
    let sums: Vec<usize> =
        handles.into_iter().map(|h| std::thread::spawn(move || h.len())).map(|t| t.join().unwrap()).collect();
    assert_eq!(sums, [8, 8, 4]);
    assert_eq!(*last, *le(&[5.0]));
}

/// A handle into one part of a set leaves no other part mapped.
#[cfg(target_os = "linux")]
#[test]
fn a_handle_keeps_just_its_own_part() {
    let folder = set();
    let model = Model::open(folder.path(FIRST)).unwrap();
    let b = model.tensor_bytes("b.weight").unwrap();
    drop(model);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mapped: Vec<bool> = (1..=3)
        .map(|no| folder.path(format!("m-0000{no}-of-00003.gguf")).canonicalize().unwrap())
        .map(|path| maps.contains(path.to_str().unwrap()))
        .collect();
    assert_eq!(mapped, [false, true, false]);
    assert_eq!(*b, *le(&[3.0, 4.0]));
}
