//! Names from a file, made safe to print: short, escaped, in quotes.

use alloc::string::String;
use core::fmt;

/// A name out of a file as error texts show it. At most 80 bytes are kept, so an error stays small
/// however long the name was.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Name {
    text: String,
    cut: bool,
}

impl Name {
    const KEPT: usize = 80;

    /// Takes the name from its bytes; what is not UTF-8 becomes U+FFFD.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let kept = bytes.get(..Self::KEPT).unwrap_or(bytes);
        let cut = kept.len() < bytes.len();
        let mut text = String::from_utf8_lossy(kept).into_owned();
        // The cut may fall inside a character; its remains are not the file's fault.
        if cut && text.ends_with('\u{fffd}') {
            text.pop();
        }
        Self { text, cut }
    }

    /// The name, without what was cut off.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The name in single quotes with control characters escaped, `...` after it if it was cut.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'{}", self.text.escape_debug(), if self.cut { "..." } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_are_escaped_and_cut() {
        assert_eq!(Name::new(b"a\n\xff").to_string(), "'a\\n\u{fffd}'");
        let long = "x".to_string() + &"ä".repeat(70);
        let shown = Name::new(long.as_bytes()).to_string();
        assert_eq!(shown, alloc::format!("'x{}'...", "ä".repeat(39)));
    }
}
