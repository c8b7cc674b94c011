//! What a file is that does not start with `GGUF`: the mix-ups people report, each told apart.

use core::fmt;

/// What a file that is not GGUF appears to be, judged from its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Foreign {
    /// A Git LFS pointer text: the model itself was never fetched.
    LfsPointer,
    /// A web page, usually the error or login page of a failed download.
    Html,
    /// JSON text.
    Json,
    /// A model of the formats before GGUF; the four bytes are its magic as written in ggml's source.
    LegacyGgml([u8; 4]),
    /// A safetensors file.
    Safetensors,
    /// A zip archive, which is also what `PyTorch` checkpoints are.
    Zip,
    /// A gzip archive.
    Gzip,
    /// `GGUF` backwards: the bytes of every word are swapped.
    ByteSwapped,
    /// Zeros where the header should be.
    Zeros,
    /// None of these: the first bytes, zero-filled if there are fewer than four.
    Unknown([u8; 4]),
}

impl Foreign {
    /// Judges bytes that do not start with `GGUF`.
    pub(crate) fn sniff(bytes: &[u8]) -> Self {
        let head = bytes.get(..24).unwrap_or(bytes);
        let mut magic = [0; 4];
        for (to, from) in magic.iter_mut().zip(head) {
            *to = *from;
        }
        let text = bytes.get(..512).unwrap_or(bytes).trim_ascii_start();
        let starts = |prefix: &str| {
            text.get(..prefix.len()).is_some_and(|t| t.eq_ignore_ascii_case(prefix.as_bytes()))
        };
        match &magic {
            _ if head.iter().all(|b| *b == 0) => Self::Zeros,
            b"FUGG" => Self::ByteSwapped,
            b"PK\x03\x04" => Self::Zip,
            [0x1f, 0x8b, ..] => Self::Gzip,
            [a, b, b'g', b'g'] if matches!(&[*b, *a], b"ml" | b"mf" | b"jt" | b"la") => {
                Self::LegacyGgml([b'g', b'g', *b, *a])
            }
            _ if head.get(8) == Some(&b'{') && head.get(6..8) == Some(&[0, 0]) => Self::Safetensors,
            _ if starts("version https://git-lfs") => Self::LfsPointer,
            _ if starts("<!doctype") || starts("<html") || starts("<?xml") || starts("<head") => Self::Html,
            _ if starts("{") || starts("[{") => Self::Json,
            _ => Self::Unknown(magic),
        }
    }
}

impl Foreign {
    /// What to do about it.
    pub(crate) const fn hint(self) -> Option<&'static str> {
        Some(match self {
            Self::LfsPointer => "fetch the model itself with `git lfs pull`",
            Self::Html | Self::Json => "the download gave a message instead of the model",
            Self::LegacyGgml(_) => "convert it, or fetch a GGUF of the model",
            Self::Safetensors => "convert it to GGUF first",
            Self::Zip => "unpack it, or convert it to GGUF if it is a PyTorch checkpoint",
            Self::Gzip => "unpack it first",
            Self::ByteSwapped => "convert it to little-endian",
            Self::Zeros => "the download was never filled in",
            Self::Unknown(_) => return None,
        })
    }
}

/// A noun phrase.
impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LfsPointer => "a Git LFS pointer",
            Self::Html => "a web page",
            Self::Json => "JSON text",
            Self::LegacyGgml(magic) => {
                let name = str::from_utf8(magic).unwrap_or("ggml");
                return write!(f, "a legacy {name} model from before GGUF");
            }
            Self::Safetensors => "a safetensors file",
            Self::Zip => "a zip archive",
            Self::Gzip => "a gzip archive",
            Self::ByteSwapped => "a byte-swapped (big-endian) copy with the magic \"FUGG\"",
            Self::Zeros => "zeros where the header should be",
            Self::Unknown(magic) => {
                return write!(f, "an unknown format with the magic \"{}\"", magic.escape_ascii());
            }
        })
    }
}
