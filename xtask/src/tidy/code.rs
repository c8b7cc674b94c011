//! Rules about source text: where `unsafe` stands, and how often.

/// Files with `unsafe` in them and exactly how many times it stands there, outside comments and
/// strings. Any other file has none. The second list is test code.
const UNSAFE: &[(&str, usize)] = &[
    ("crates/ggml-blocks/src/simd.rs", 1),
    ("crates/ggml-kernels/src/isa.rs", 1),
    ("crates/ggml-kernels/src/isa/neon.rs", 1),
    ("crates/ggml-kernels/src/level.rs", 1),
    ("crates/gguf-mmap/src/mapping.rs", 1),
    ("crates/gguf-mmap/src/hint.rs", 1),
];
const UNSAFE_IN_TESTS: &[(&str, usize)] =
    &[("crates/ggml-kernels/tests/it/emulator.rs", 5), ("crates/ggml-kernels/tests/it/vnni.rs", 1)];

/// The crates whose `lib.rs` may `deny` instead of `forbid`, because a line above opts out.
const OPT_OUT: &[&str] = &["ggml-blocks", "ggml-kernels", "gguf-mmap"];

/// Compares the counts with the lists, both ways.
pub(super) fn check_unsafe(sources: &[(String, String)], faults: &mut Vec<String>) {
    let allowed = |path: &str| {
        UNSAFE.iter().chain(UNSAFE_IN_TESTS).find(|(p, _)| *p == path).map_or(0, |(_, count)| *count)
    };
    for (path, code) in sources {
        let count = words(code).filter(|w| *w == "unsafe").count();
        if count != allowed(path) {
            faults.push(format!("{path}: {count} `unsafe`, {} listed in tidy", allowed(path)));
        }
        let Some(name) = path.strip_prefix("crates/").and_then(|p| p.strip_suffix("/src/lib.rs")) else {
            continue;
        };
        let attribute =
            if OPT_OUT.contains(&name) { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" };
        if !code.contains(attribute) {
            faults.push(format!("{path}: no {attribute}"));
        }
    }
    for (path, _) in UNSAFE.iter().chain(UNSAFE_IN_TESTS) {
        if !sources.iter().any(|(p, _)| p == path) {
            faults.push(format!("{path}: listed in tidy, not in the tree"));
        }
    }
}

/// Identifiers and keywords of a text.
fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty())
}

/// The text without comments and without the insides of string and character literals.
pub(super) fn strip(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let rest = &bytes[i..];
        let end = if rest.starts_with(b"//") {
            find(rest, b"\n").unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            block_comment(rest)
        } else if let Some(end) = raw_string(rest, out.last().copied()) {
            end
        } else if rest[0] == b'"' {
            string(rest)
        } else if let Some(end) = character(rest) {
            end
        } else {
            out.push(rest[0]);
            1
        };
        i += end.max(1);
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|w| w == needle)
}

fn block_comment(bytes: &[u8]) -> usize {
    let (mut depth, mut i) = (0, 0);
    while i < bytes.len() {
        match bytes[i..] {
            [b'/', b'*', ..] => (depth, i) = (depth + 1, i + 2),
            [b'*', b'/', ..] => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    i
}

fn string(bytes: &[u8]) -> usize {
    let mut i = 1;
    while i < bytes.len() && bytes[i] != b'"' {
        i += if bytes[i] == b'\\' { 2 } else { 1 };
    }
    i + 1
}

/// `r"…"`, `r#"…"#` and so on: the length, `None` if there is none here.
fn raw_string(bytes: &[u8], before: Option<u8>) -> Option<usize> {
    let inside_word = before.is_some_and(|b| b.is_ascii_alphanumeric() && b != b'b' || b == b'_');
    if bytes[0] != b'r' || inside_word {
        return None;
    }
    let hashes = bytes[1..].iter().take_while(|b| **b == b'#').count();
    if bytes.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let close = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    let body = &bytes[2 + hashes..];
    Some(2 + hashes + find(body, &close).map_or(body.len(), |n| n + close.len()))
}

/// `'x'`, `'\n'`, `'\u{1f}'`: the length, `None` for a lifetime.
fn character(bytes: &[u8]) -> Option<usize> {
    if bytes[0] != b'\'' {
        return None;
    }
    if bytes.get(1) == Some(&b'\\') {
        return find(&bytes[3..], b"'").map(|n| n + 4);
    }
    let text = std::str::from_utf8(&bytes[1..bytes.len().min(5)]);
    let first = match text {
        Ok(t) => t.chars().next(),
        Err(e) => std::str::from_utf8(&bytes[1..1 + e.valid_up_to()]).ok().and_then(|t| t.chars().next()),
    }?;
    (bytes.get(1 + first.len_utf8()) == Some(&b'\'')).then(|| 2 + first.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_go() {
        let text =
            "a /* unsafe /* x */ */ b // unsafe\n\"unsafe \\\" \" r#\"unsafe \"x\"# '\"' 'unsafe_lt b'\\'' c";
        let kept = strip(text);
        assert_eq!(words(&kept).collect::<Vec<_>>(), ["a", "b", "unsafe_lt", "b", "c"]);
    }

    #[test]
    fn a_wrong_count_is_found() {
        let path = UNSAFE[0].0.to_owned();
        let count = |code: &str| {
            let mut faults = Vec::new();
            check_unsafe(&[(path.clone(), code.to_owned())], &mut faults);
            faults.iter().any(|f| f.starts_with(&path))
        };
        assert!(!count("unsafe { a() }"));
        assert!(count("unsafe { a() } unsafe { b() }"));
        assert!(count(""));
    }
}
