//! Words and numbers from a file, made safe and legible for a terminal.

use std::fmt::{self, Write};

use gguf_format::Value;

/// Bytes out of a file as text that cannot drive a terminal: control characters, direction marks and
/// the like are escaped, bytes that are no UTF-8 become `\xNN`. A backslash is doubled, so the
/// original can be told.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a>(pub(crate) &'a [u8]);

/// The same in double quotes.
#[derive(Clone, Copy)]
pub(crate) struct Quoted<'a>(pub(crate) &'a [u8]);

/// Text that may span lines: as [`Text`], but line feeds and tabs stand.
#[derive(Clone, Copy)]
pub(crate) struct Lines<'a>(pub(crate) &'a [u8]);

fn escape(f: &mut fmt::Formatter<'_>, bytes: &[u8], verbatim: &[char]) -> fmt::Result {
    for chunk in bytes.utf8_chunks() {
        // What is escaped is what `escape_debug` escapes, but for the characters in `verbatim`.
        for piece in chunk.valid().split_inclusive(verbatim) {
            let body = piece.strip_suffix(verbatim).unwrap_or(piece);
            write!(f, "{}{}", body.escape_debug(), &piece[body.len()..])?;
        }
        write!(f, "{}", chunk.invalid().escape_ascii())?;
    }
    Ok(())
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, self.0, &['\'', '"'])
    }
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        escape(f, self.0, &['\''])?;
        f.write_char('"')
    }
}

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, self.0, &['\'', '"', '\n', '\t'])
    }
}

/// A value that is a number or a bool; nothing for others.
pub(crate) struct Number<'a>(pub(crate) Value<'a>);

impl fmt::Display for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::U8(v) => v.fmt(f),
            Value::I8(v) => v.fmt(f),
            Value::U16(v) => v.fmt(f),
            Value::I16(v) => v.fmt(f),
            Value::U32(v) => v.fmt(f),
            Value::I32(v) => v.fmt(f),
            Value::U64(v) => v.fmt(f),
            Value::I64(v) => v.fmt(f),
            // `Debug` is short for the very large and small, and keeps `.0`.
            Value::F32(v) => write!(f, "{v:?}"),
            Value::F64(v) => write!(f, "{v:?}"),
            Value::Bool(v) => v.fmt(f),
            _ => Ok(()),
        }
    }
}

/// A number of bytes, such as `1.25 GiB`.
pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, 1024.0, &[" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"])
    }
}

/// A count of weights, such as `1.10 B` for 1.1 billion.
pub(crate) struct Count(pub(crate) u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, 1000.0, &["", " K", " M", " B", " T"])
    }
}

fn scaled(f: &mut fmt::Formatter<'_>, n: u64, step: f64, units: &[&str]) -> fmt::Result {
    if (n as f64) < step {
        return write!(f, "{n}{}", units[0]);
    }
    let mut value = n as f64;
    let mut unit = 0;
    // 999.996 would print as 1000.00.
    while value >= step - 0.005 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    write!(f, "{value:.2}{}", units[unit])
}

/// `1 file`, `2 files`.
pub(crate) fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Bits per weight, 0 for no weights.
pub(crate) fn bits_per_weight(bytes: u64, weights: u64) -> f64 {
    if weights == 0 { 0.0 } else { bytes as f64 * 8.0 / weights as f64 }
}

/// Dimensions as `[4096, 32000]`, the row length first.
pub(crate) fn shape(dims: &[u64]) -> String {
    format!("{dims:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_string_cannot_drive_the_terminal() {
        let hostile = "a\x1b[2J\u{9b}31m\u{202e}\r\n\x07\u{7f}".as_bytes();
        assert_eq!(Text(hostile).to_string(), r"a\u{1b}[2J\u{9b}31m\u{202e}\r\n\u{7}\u{7f}");
        assert_eq!(Lines(b"a\n\tb\r\x1b").to_string(), "a\n\tb\\r\\u{1b}");
    }

    #[test]
    fn text_stays_legible_and_unambiguous() {
        assert_eq!(
            Text("it's \"Gru\u{308}ße\" 日本 \\n".as_bytes()).to_string(),
            "it's \"Gru\u{308}ße\" 日本 \\\\n"
        );
        assert_eq!(Quoted(b"it's \"q\" \xff\xfe").to_string(), r#""it's \"q\" \xff\xfe""#);
        assert_eq!(Quoted(b"").to_string(), "\"\"");
    }

    #[test]
    fn sizes_and_counts_have_fitting_units() {
        let sizes = [0, 1023, 1024, 1 << 20, 668_788_096, u64::MAX].map(|n| Size(n).to_string());
        assert_eq!(sizes, ["0 B", "1023 B", "1.00 KiB", "1.00 MiB", "637.81 MiB", "16.00 EiB"]);
        let counts = [0, 999, 1000, 999_999, 1_100_048_384].map(|n| Count(n).to_string());
        assert_eq!(counts, ["0", "999", "1.00 K", "1.00 M", "1.10 B"]);
        assert_eq!((bits_per_weight(144, 256), bits_per_weight(0, 0)), (4.5, 0.0));
    }
}
