//! Changes to a model's metadata, as data.

use std::fmt;

use gguf_format::Builder;

/// One change. Keys that no edit names pass through byte for byte.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Edit {
    /// Replaces the value where the key stands, or appends the key.
    Set(String, MetaValue),
    /// Appends the key behind all others, wherever it stood: what llama.cpp's setters do.
    Append(String, MetaValue),
    /// Removes the key if it is there.
    Remove(String),
}

/// A value that an edit can write.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum MetaValue {
    /// `u32`
    U32(u32),
    /// `f32`
    F32(f32),
    /// `bool`
    Bool(bool),
    /// A string.
    String(String),
}

impl Edit {
    /// Applies the edit.
    pub fn apply(&self, builder: &mut Builder) {
        match self {
            Self::Set(key, value) => value.set(key, builder),
            Self::Append(key, value) => {
                builder.remove(key);
                value.set(key, builder);
            }
            Self::Remove(key) => {
                builder.remove(key);
            }
        }
    }

    /// The key and what it becomes, `None` for a removal.
    #[must_use]
    pub fn key_value(&self) -> (&str, Option<&MetaValue>) {
        match self {
            Self::Set(key, value) | Self::Append(key, value) => (key, Some(value)),
            Self::Remove(key) => (key, None),
        }
    }
}

impl MetaValue {
    fn set(&self, key: &str, builder: &mut Builder) {
        match self {
            Self::U32(v) => builder.set(key, *v),
            Self::F32(v) => builder.set(key, *v),
            Self::Bool(v) => builder.set(key, *v),
            Self::String(v) => builder.set(key, v.as_str()),
        };
    }

    /// The value in JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        match self {
            Self::U32(v) => (*v).into(),
            Self::F32(v) => (*v).into(),
            Self::Bool(v) => (*v).into(),
            Self::String(v) => v.as_str().into(),
        }
    }
}

impl fmt::Display for MetaValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U32(v) => v.fmt(f),
            Self::F32(v) => v.fmt(f),
            Self::Bool(v) => v.fmt(f),
            Self::String(v) => write!(f, "{v:?}"),
        }
    }
}
