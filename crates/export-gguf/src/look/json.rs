//! JSON that a hostile file cannot spoil: metadata values in a fixed form, printed so that a terminal
//! is as safe as a parser.
//!
//! A value is its JSON counterpart where there is one. What JSON lacks: NaN and infinities are the
//! strings `"NaN"`, `"Infinity"`, `"-Infinity"`; a string that is not UTF-8 is `{"bytes": "ff00"}`,
//! in hex.

use std::io::{self, Write};

use gguf_format::{Array, KeyValue, Str, Value};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter};

use crate::Error;

/// Writes `value` as indented JSON and a line feed.
pub(crate) fn write(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Error> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Safe(PrettyFormatter::new()));
    value.serialize(&mut serializer).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}

/// Indented, with everything escaped that [`Text`](super::text::Text) would escape.
struct Safe(PrettyFormatter<'static>);

impl Formatter for Safe {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut plain = 0;
        for (at, c) in fragment.char_indices() {
            // What JSON itself must escape never comes here; a combining mark is left alone.
            if c.is_ascii() && c != '\x7f' || c.is_alphanumeric() || is_printable(c) {
                continue;
            }
            out.write_all(&fragment.as_bytes()[plain..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            plain = at + c.len_utf8();
        }
        out.write_all(&fragment.as_bytes()[plain..])
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, out: &mut W, escape: CharEscape) -> io::Result<()> {
        self.0.write_char_escape(out, escape)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

/// Whether a string of `a` and then `c` is shown as it is; the letter is there because a mark that
/// combines is escaped only where it has nothing to combine with.
fn is_printable(c: char) -> bool {
    let text = String::from_iter(['a', c]);
    text.escape_debug().eq(text.chars())
}

/// For `serialize_with`: pairs as an object.
pub(crate) fn map<S: Serializer, V: Serialize>(pairs: &[(&str, V)], s: S) -> Result<S::Ok, S::Error> {
    s.collect_map(pairs.iter().map(|(k, v)| (k, v)))
}

/// A metadata entry: key, type, value; of an array element type, length, and at most `limit`
/// elements.
pub(crate) struct Entry<'a> {
    pub(crate) kv: KeyValue<'a>,
    pub(crate) limit: usize,
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("key", self.kv.key())?;
        map.serialize_entry("type", self.kv.value_type().name())?;
        let value = self.kv.value();
        if let Value::Array(array) = value {
            map.serialize_entry("element_type", array.element_type().name())?;
            map.serialize_entry("len", &array.len())?;
            if array.len() > self.limit {
                map.serialize_entry("shown", &self.limit)?;
            }
            map.serialize_entry("value", &Elements { array, limit: self.limit })?;
        } else {
            map.serialize_entry("value", &Scalar(value))?;
        }
        map.end()
    }
}

struct Elements<'a> {
    array: Array<'a>,
    limit: usize,
}

impl Serialize for Elements<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut seq = s.serialize_seq(None)?;
        for value in self.array.iter().take(self.limit) {
            seq.serialize_element(&Scalar(value))?;
        }
        seq.end()
    }
}

/// Any value but an array.
struct Scalar<'a>(Value<'a>);

impl Serialize for Scalar<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::U8(v) => s.serialize_u8(v),
            Value::I8(v) => s.serialize_i8(v),
            Value::U16(v) => s.serialize_u16(v),
            Value::I16(v) => s.serialize_i16(v),
            Value::U32(v) => s.serialize_u32(v),
            Value::I32(v) => s.serialize_i32(v),
            Value::U64(v) => s.serialize_u64(v),
            Value::I64(v) => s.serialize_i64(v),
            Value::Bool(v) => s.serialize_bool(v),
            Value::F32(v) if v.is_finite() => s.serialize_f32(v),
            Value::F64(v) if v.is_finite() => s.serialize_f64(v),
            Value::F32(v) => s.serialize_str(non_finite(v.into())),
            Value::F64(v) => s.serialize_str(non_finite(v)),
            Value::String(v) => Bytes(v.as_bytes()).serialize(s),
            // The format has no arrays in arrays; the only other kind is one added later.
            _ => s.serialize_none(),
        }
    }
}

fn non_finite(v: f64) -> &'static str {
    match (v.is_nan(), v > 0.0) {
        (true, _) => "NaN",
        (false, true) => "Infinity",
        (false, false) => "-Infinity",
    }
}

/// A string of the file: text, or hex if it is not UTF-8.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if let Some(text) = Str::new(self.0).as_str() {
            return s.serialize_str(text);
        }
        let hex: String = self.0.iter().map(|b| format!("{b:02x}")).collect();
        let mut map = s.serialize_map(Some(1))?;
        map.serialize_entry("bytes", &hex)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: &impl Serialize) -> String {
        let mut out = Vec::new();
        write(&mut out, value).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn output_is_json_and_safe_to_print() {
        let text = "\x1b[2J\u{9b}31m \u{202e}\u{7f}\u{1f600}\u{e0001} Gru\u{308}ße \"q\" \\ 日本";
        let shown = json(&[text]);
        assert!(shown.contains(r"\u001b[2J\u009b31m \u202e\u007f"), "{shown}");
        assert!(shown.contains("\u{1f600}\\udb40\\udc01 Gru\u{308}ße \\\"q\\\" \\\\ 日本"), "{shown}");
        let parsed: Vec<String> = serde_json::from_str(&shown).unwrap();
        assert_eq!(parsed, [text]);
    }

    #[test]
    fn what_json_lacks_has_a_form() {
        let values = [
            Value::F32(f32::NAN),
            Value::F64(f64::NEG_INFINITY),
            Value::F32(0.1),
            Value::U64(u64::MAX),
            Value::String(Str::new(b"\xff\x00")),
        ];
        let shown: Vec<String> =
            values.into_iter().map(|v| json(&Scalar(v)).split_whitespace().collect()).collect();
        assert_eq!(
            shown,
            ["\"NaN\"", "\"-Infinity\"", "0.1", "18446744073709551615", "{\"bytes\":\"ff00\"}"]
        );
    }
}
