//! JSON and nothing but: walks a text for syntax and for keys that stand twice in one object, at any level.
//! `serde_json` alone lets the last one win.

use super::{fault_of, locate};
use crate::{Error, ErrorKind};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::{borrow::Cow, collections::HashSet, fmt};

/// The first syntax error of a text that begins at byte `base` of its file, or else its first duplicate key.
pub(crate) fn check(text: &str, base: u64) -> Result<(), Error> {
    let mut walk = Walk { text, inside: None, duplicate: None };
    let mut json = serde_json::Deserializer::from_str(text);
    let value = Value { walk: &mut walk, top_level: true };
    let result = value.deserialize(&mut json).and_then(|()| json.end());
    match (result, walk.duplicate) {
        (Err(error), _) => Err(fault_of(text, base, None, &error)),
        (Ok(()), Some((kind, at))) => Err(Error::new(base.saturating_add(at as u64), kind)),
        (Ok(()), None) => Ok(()),
    }
}

struct Walk<'t> {
    text: &'t str,
    /// The top-level key whose value is walked, and where it stands.
    inside: Option<(Cow<'t, str>, usize)>,
    duplicate: Option<(ErrorKind, usize)>,
}

impl<'t> Walk<'t> {
    fn duplicate(&mut self, key: &str, top_level: bool) {
        let inside = self.inside.as_ref().filter(|_| !top_level);
        let at = locate(self.text, key).or(inside.map(|&(_, at)| at)).unwrap_or(0);
        let inside = inside.map(|(name, _)| Box::from(&**name));
        self.duplicate.get_or_insert((ErrorKind::DuplicateKey { key: key.into(), inside }, at));
    }
}

struct Value<'w, 't> {
    walk: &'w mut Walk<'t>,
    top_level: bool,
}

impl<'de> DeserializeSeed<'de> for Value<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { walk, top_level } = self;
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key_seed(Key)? {
            if seen.contains(&key) {
                walk.duplicate(&key, top_level);
            }
            if top_level {
                walk.inside = Some((key.clone(), locate(walk.text, &key).unwrap_or(0)));
            }
            seen.insert(key);
            map.next_value_seed(Value { walk: &mut *walk, top_level: false })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { walk, .. } = self;
        while seq.next_element_seed(Value { walk: &mut *walk, top_level: false })?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// A key, borrowed where it has no escapes.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.into()))
    }
}
