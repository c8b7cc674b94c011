//! The visitors of the common path: text in, tables out, faults at the first value that breaks the schema.

use super::{Entry, Fault, Span, Tables, locate};
use crate::{Dtype, ErrorKind, Found};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) tables: Tables,
    pub(super) fault: Option<Fault>,
    /// Whether a field was skipped, and with it keys that may stand twice.
    pub(super) unknown_fields: bool,
}

impl Reader<'_> {
    fn fail<E: serde::de::Error>(&mut self, kind: ErrorKind, at: Option<usize>) -> E {
        self.fault = Some(Fault { kind, at });
        E::custom("broken rule")
    }
}

/// Methods of a visitor that take every kind of JSON value but the right one to its `wrong`.
macro_rules! wrong {
    ($($kind:ident)+) => { $(wrong!(@ $kind);)+ };
    (@ bool) => { fn visit_bool<E: serde::de::Error>(self, v: bool) -> Result<Self::Value, E> { Err(self.wrong(Found::Bool(v))) } };
    (@ u64) => { fn visit_u64<E: serde::de::Error>(self, v: u64) -> Result<Self::Value, E> { Err(self.wrong(Found::Unsigned(v))) } };
    (@ i64) => { fn visit_i64<E: serde::de::Error>(self, v: i64) -> Result<Self::Value, E> { Err(self.wrong(Found::Negative(v))) } };
    (@ f64) => { fn visit_f64<E: serde::de::Error>(self, v: f64) -> Result<Self::Value, E> { Err(self.wrong(Found::Float(v))) } };
    (@ str) => { fn visit_str<E: serde::de::Error>(self, v: &str) -> Result<Self::Value, E> { Err(self.wrong(Found::Text(v.into()))) } };
    (@ null) => { fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> { Err(self.wrong(Found::Null)) } };
    (@ seq) => { fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> { Err(self.wrong(Found::Array)) } };
    (@ map) => { fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> { Err(self.wrong(Found::Object)) } };
}

/// A seed that lets its visitor see whatever stands there.
macro_rules! seed {
    ($name:ident) => {
        impl<'de> DeserializeSeed<'de> for $name<'_, '_> {
            type Value = <Self as Visitor<'de>>::Value;

            fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
                json.deserialize_any(self)
            }
        }
    };
}

/// The whole header.
pub(super) struct Top<'r, 't>(pub(super) &'r mut Reader<'t>);
seed!(Top);

impl<'de> Visitor<'de> for Top<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(reader) = self;
        while let Some(name) = map.next_key_seed(Text { reader: &mut *reader, wanted: Wanted::Key })? {
            if reader.tables.text(name.span) != "__metadata__" {
                map.next_value_seed(Tensor { reader: &mut *reader, name })?;
            } else if reader.tables.metadata.is_none() {
                reader.tables.metadata = Some(Vec::new());
                map.next_value_seed(Metadata(&mut *reader))?;
            } else {
                let kind = ErrorKind::DuplicateKey { key: "__metadata__".into(), inside: None };
                return Err(reader.fail(kind, name.at));
            }
        }
        Ok(())
    }
}

/// A string that goes into the pool, and where it was.
#[derive(Clone, Copy)]
struct Pooled {
    span: Span,
    /// `None` if it was escaped.
    at: Option<usize>,
}

enum Wanted {
    /// A key: JSON has only strings here.
    Key,
    /// The value of this metadata key.
    Value(Span),
}

struct Text<'r, 't> {
    reader: &'r mut Reader<'t>,
    wanted: Wanted,
}
seed!(Text);

impl Text<'_, '_> {
    fn wrong<E: serde::de::Error>(self, found: Found) -> E {
        let field = match self.wanted {
            Wanted::Key => "",
            Wanted::Value(key) => self.reader.tables.text(key),
        };
        let (inside, field) = ("__metadata__".into(), field.into());
        self.reader.fail(ErrorKind::WrongType { inside, field, expected: "a string", found }, None)
    }
}

impl<'de> Visitor<'de> for Text<'_, '_> {
    type Value = Pooled;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<Pooled, E> {
        let at = locate(self.reader.text, text);
        Ok(Pooled { span: self.reader.tables.push_text(text), at })
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Pooled, E> {
        Ok(Pooled { span: self.reader.tables.push_text(text), at: None })
    }

    wrong!(bool u64 i64 f64 null seq map);
}

struct Metadata<'r, 't>(&'r mut Reader<'t>);
seed!(Metadata);

impl Metadata<'_, '_> {
    fn wrong<E: serde::de::Error>(self, found: Found) -> E {
        let (inside, field) = ("__metadata__".into(), "".into());
        let expected = "an object of strings";
        self.0.fail(ErrorKind::WrongType { inside, field, expected, found }, None)
    }
}

impl<'de> Visitor<'de> for Metadata<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(reader) = self;
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key_seed(Text { reader: &mut *reader, wanted: Wanted::Key })? {
            let wanted = Wanted::Value(key.span);
            let value = map.next_value_seed(Text { reader: &mut *reader, wanted })?;
            pairs.push((key, value.span));
        }
        if let Some(key) = twice(&reader.tables, &pairs) {
            let inside = Some("__metadata__".into());
            let kind = ErrorKind::DuplicateKey { key: reader.tables.text(key.span).into(), inside };
            return Err(reader.fail(kind, key.at));
        }
        reader.tables.metadata = Some(pairs.into_iter().map(|(key, value)| (key.span, value)).collect());
        Ok(())
    }

    wrong!(bool u64 i64 f64 str null seq);
}

/// A key that stands twice: sorted, so that many keys cost no more than their sorting.
fn twice(tables: &Tables, pairs: &[(Pooled, Span)]) -> Option<Pooled> {
    let mut keys: Vec<Pooled> = pairs.iter().map(|&(key, _)| key).collect();
    keys.sort_by_key(|key| tables.text(key.span));
    keys.windows(2).find_map(|pair| match pair {
        [a, b] if tables.text(a.span) == tables.text(b.span) => Some(*b),
        _ => None,
    })
}

struct Tensor<'r, 't> {
    reader: &'r mut Reader<'t>,
    name: Pooled,
}
seed!(Tensor);

impl<'t> Tensor<'_, 't> {
    fn name(&self) -> Box<str> {
        self.reader.tables.text(self.name.span).into()
    }

    fn wrong<E: serde::de::Error>(self, found: Found) -> E {
        let (inside, field) = (self.name(), "".into());
        self.reader.fail(ErrorKind::WrongType { inside, field, expected: "an object", found }, None)
    }

    fn once<T, E: serde::de::Error>(
        &mut self,
        slot: &Option<T>,
        key: &str,
        at: Option<usize>,
    ) -> Result<(), E> {
        if slot.is_none() {
            return Ok(());
        }
        let kind = ErrorKind::DuplicateKey { key: key.into(), inside: Some(self.name()) };
        Err(self.reader.fail(kind, at))
    }

    fn given<T, E: serde::de::Error>(&mut self, slot: Option<T>, field: &'static str) -> Result<T, E> {
        slot.ok_or_else(|| {
            let kind = ErrorKind::MissingField { tensor: self.name(), field };
            self.reader.fail(kind, self.name.at)
        })
    }

    fn field(&mut self, field: &'static str) -> Field<'_, 't> {
        Field { tensor: self.name, reader: &mut *self.reader, field }
    }
}

impl<'de> Visitor<'de> for Tensor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let (mut dtype, mut shape, mut offsets) = (None, None, None);
        while let Some(Key { which, at }) = map.next_key_seed(KeySeed(self.reader.text))? {
            self.name.at = self.name.at.or(at);
            match which {
                Which::Dtype => {
                    self.once(&dtype, "dtype", at)?;
                    dtype = Some(map.next_value_seed(DtypeTag(self.field("dtype")))?);
                }
                Which::Shape => {
                    self.once(&shape, "shape", at)?;
                    shape = Some(map.next_value_seed(Shape(self.field("shape")))?);
                }
                Which::Offsets => {
                    self.once(&offsets, "data_offsets", at)?;
                    offsets = Some(map.next_value_seed(Offsets(self.field("data_offsets")))?);
                }
                Which::Unknown => {
                    self.reader.unknown_fields = true;
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let dtype = self.given(dtype, "dtype")?;
        let shape = self.given(shape, "shape")?;
        let (begin, end) = self.given(offsets, "data_offsets")?;
        let (name, at) = (self.name.span, self.name.at.unwrap_or(0));
        self.reader.tables.entries.push(Entry { name, shape, begin, end, at, dtype });
        Ok(())
    }

    wrong!(bool u64 i64 f64 str null seq);
}

enum Which {
    Dtype,
    Shape,
    Offsets,
    Unknown,
}

struct Key {
    which: Which,
    at: Option<usize>,
}

/// The key of a field of a tensor.
struct KeySeed<'t>(&'t str);

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Key, D::Error> {
        json.deserialize_identifier(self)
    }
}

impl<'de> Visitor<'de> for KeySeed<'_> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Key, E> {
        let which = match key {
            "dtype" => Which::Dtype,
            "shape" => Which::Shape,
            "data_offsets" => Which::Offsets,
            _ => Which::Unknown,
        };
        Ok(Key { which, at: locate(self.0, key) })
    }
}

/// The value of a known field of a tensor.
struct Field<'r, 't> {
    reader: &'r mut Reader<'t>,
    tensor: Pooled,
    field: &'static str,
}

impl Field<'_, '_> {
    fn name(&self) -> Box<str> {
        self.reader.tables.text(self.tensor.span).into()
    }

    fn wrong<E: serde::de::Error>(&mut self, expected: &'static str, found: Found) -> E {
        let (inside, field) = (self.name(), self.field.into());
        self.reader.fail(ErrorKind::WrongType { inside, field, expected, found }, None)
    }
}

struct DtypeTag<'r, 't>(Field<'r, 't>);
seed!(DtypeTag);

impl DtypeTag<'_, '_> {
    fn wrong<E: serde::de::Error>(mut self, found: Found) -> E {
        self.0.wrong("a dtype tag", found)
    }
}

impl<'de> Visitor<'de> for DtypeTag<'_, '_> {
    type Value = Dtype;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a dtype tag")
    }

    fn visit_str<E: serde::de::Error>(self, tag: &str) -> Result<Dtype, E> {
        Dtype::from_tag(tag).ok_or_else(|| {
            let kind = ErrorKind::UnknownDtype { tensor: self.0.name(), tag: tag.into() };
            let at = locate(self.0.reader.text, tag);
            self.0.reader.fail(kind, at)
        })
    }

    wrong!(bool u64 i64 f64 null seq map);
}

struct Shape<'r, 't>(Field<'r, 't>);
seed!(Shape);

impl Shape<'_, '_> {
    fn wrong<E: serde::de::Error>(mut self, found: Found) -> E {
        self.0.wrong("an array of unsigned integers", found)
    }
}

impl<'de> Visitor<'de> for Shape<'_, '_> {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of unsigned integers")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Span, A::Error> {
        let start = self.0.reader.tables.dims.len();
        while let Some(dim) = seq.next_element_seed(Number(&mut self.0))? {
            self.0.reader.tables.dims.push(dim);
        }
        Ok(Span { start, end: self.0.reader.tables.dims.len() })
    }

    wrong!(bool u64 i64 f64 str null map);
}

struct Offsets<'r, 't>(Field<'r, 't>);
seed!(Offsets);

impl Offsets<'_, '_> {
    fn wrong<E: serde::de::Error>(mut self, found: Found) -> E {
        self.0.wrong("a pair of unsigned integers", found)
    }
}

impl<'de> Visitor<'de> for Offsets<'_, '_> {
    type Value = (u64, u64);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pair of unsigned integers")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(u64, u64), A::Error> {
        let mut pair = [None, None];
        let mut count = 0u64;
        while let Some(offset) = seq.next_element_seed(Number(&mut self.0))? {
            if let Some(slot) = usize::try_from(count).ok().and_then(|i| pair.get_mut(i)) {
                *slot = Some(offset);
            }
            count = count.saturating_add(1);
        }
        match (pair, count) {
            ([Some(begin), Some(end)], 2) => Ok((begin, end)),
            _ => {
                let kind = ErrorKind::OffsetCount { tensor: self.0.name(), count };
                Err(self.0.reader.fail(kind, None))
            }
        }
    }

    wrong!(bool u64 i64 f64 str null map);
}

/// One number of a shape or of the offsets.
struct Number<'f, 'r, 't>(&'f mut Field<'r, 't>);

impl Number<'_, '_, '_> {
    fn wrong<E: serde::de::Error>(self, found: Found) -> E {
        self.0.wrong("unsigned integers of at most 64 bits", found)
    }
}

impl<'de> DeserializeSeed<'de> for Number<'_, '_, '_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<u64, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Number<'_, '_, '_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an unsigned integer")
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<u64, E> {
        Ok(value)
    }

    wrong!(bool i64 f64 str null seq map);
}
