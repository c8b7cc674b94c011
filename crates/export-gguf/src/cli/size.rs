//! Sizes and counts as arguments: `500M`, `4G`.

use std::num::{NonZeroU64, NonZeroUsize};

use crate::run::MAX_THREADS;

/// Parses a positive number with an optional suffix K, M, G or T: powers of 1000, as
/// llama-gguf-split has them.
pub(super) fn parse_size(text: &str) -> Result<NonZeroU64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, suffix)) if !suffix.is_ascii_digit() => {
            let power = match suffix.to_ascii_uppercase() {
                'K' => 1,
                'M' => 2,
                'G' => 3,
                'T' => 4,
                _ => return Err(format!("{suffix:?} is no unit; use K, M, G or T, as in 4G")),
            };
            (&text[..at], 1000_u64.pow(power))
        }
        _ => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{digits:?} is no number; write it as in 500M"))?;
    let size = number.checked_mul(unit).ok_or_else(|| format!("{text} is too large"))?;
    NonZeroU64::new(size).ok_or_else(|| "it must be more than 0".to_owned())
}

/// Parses a number of threads.
pub(crate) fn parse_threads(text: &str) -> Result<NonZeroUsize, String> {
    let threads: NonZeroUsize = text.parse().map_err(|e: std::num::ParseIntError| e.to_string())?;
    if threads.get() > MAX_THREADS {
        return Err(format!("at most {MAX_THREADS} threads"));
    }
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_some_but_not_any_number() {
        assert_eq!(parse_threads("256").map(NonZeroUsize::get), Ok(MAX_THREADS));
        assert_eq!(parse_threads("257"), Err("at most 256 threads".to_owned()));
        assert!(parse_threads("0").is_err() && parse_threads("-1").is_err());
    }

    #[test]
    fn units_are_powers_of_a_thousand() {
        assert_eq!(parse_size("4G").unwrap().get(), 4_000_000_000);
        assert_eq!(parse_size("500m").unwrap().get(), 500_000_000);
        assert_eq!(parse_size("12").unwrap().get(), 12);
        for bad in ["", "G", "4X", "0M", "-1M", "99999999999G", "1.5G", "4é"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
