//! Words that have no place in a tracked file.

/// Each word and why it is out. Split so that this list does not find itself.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("shared/", "cases"), "a folder outside the project"),
    (concat!("shared/", "reference"), "a folder outside the project"),
    (concat!("shared/", "tools"), "a folder outside the project"),
    (concat!("crates", ".io"), "a registry's host name"),
    (concat!("pypi", ".org"), "a registry's host name"),
    (concat!("python", "hosted"), "a registry's host name"),
    (concat!("npm", "js."), "a registry's host name"),
    (concat!("deb.", "debian"), "a registry's host name"),
    (concat!("to", "do!("), "unfinished code"),
    (concat!("unimpl", "emented!("), "unfinished code"),
    (concat!("FIX", "ME"), "unfinished code"),
];

/// Written by a tool, which names hosts in it.
const EXEMPT: &[&str] = &["Cargo.lock"];

/// Finds the words of the list and identifiers of test cases that mean nothing to a reader.
pub(super) fn check(path: &str, text: &str, faults: &mut Vec<String>) {
    if path.rsplit('/').next().is_some_and(|name| EXEMPT.contains(&name)) {
        return;
    }
    for (number, line) in text.lines().enumerate() {
        for (word, why) in FORBIDDEN {
            if line.contains(word) {
                faults.push(format!("{path}:{}: `{word}`: {why}", number + 1));
            }
        }
        if let Some(id) = line.split(|c: char| !c.is_ascii_alphanumeric()).find(|w| is_case_id(w)) {
            faults.push(format!("{path}:{}: `{id}`: a case id; cite the public report instead", number + 1));
        }
    }
}

/// `B` and three digits, then at most one small letter.
fn is_case_id(word: &str) -> bool {
    match word.as_bytes() {
        [b'B', digits @ .., last] if digits.len() == 3 => {
            digits.iter().all(u8::is_ascii_digit) && last.is_ascii_lowercase()
        }
        [b'B', digits @ ..] if digits.len() == 3 => {
            digits.iter().all(u8::is_ascii_digit) && digits[0] == b'0'
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn forbidden_words_are_found() {
        let mut faults = Vec::new();
        super::check(
            "x.md",
            concat!("see /wo", "rk/x\nand B", "012a\nbut not B200 or 0xB012\n"),
            &mut faults,
        );
        assert_eq!(faults.len(), 2, "{faults:?}");
    }
}
