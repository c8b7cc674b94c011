//! The older form: little-endian, no magic.
//!
//! ```text
//! i32 number of entries, then per entry
//!     i32 length, name    i32 calls    i32 number of values, f32 values
//! optionally: i32 chunks, i32 length, name of the text file
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Contents, Divisors, Entry, Problem};

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, need: u64, what: &'static str) -> Result<Range<usize>, Problem> {
        let have = self.bytes.len() - self.at;
        match usize::try_from(need) {
            Ok(n) if n <= have => {
                let range = self.at..self.at + n;
                self.at += n;
                Ok(range)
            }
            _ => Err(Problem::Truncated { at: self.at, what, need, have }),
        }
    }

    fn i32(&mut self, what: &'static str) -> Result<i32, Problem> {
        let range = self.take(4, what)?;
        let bytes = self.bytes[range].try_into().unwrap_or_default();
        Ok(i32::from_le_bytes(bytes))
    }

    /// A count of at least `min`.
    fn count(&mut self, what: &'static str, min: i32) -> Result<u64, Problem> {
        let at = self.at;
        let value = self.i32(what)?;
        if value < min {
            return Err(Problem::Count { at, what, value });
        }
        u64::try_from(value).map_err(|_| Problem::Count { at, what, value })
    }

    fn text(&mut self, what: &'static str) -> Result<&'a str, Problem> {
        let len = self.count("length of a name", 0)?;
        let range = self.take(len, what)?;
        let at = range.start;
        std::str::from_utf8(&self.bytes[range]).map_err(|_| Problem::Name { at })
    }
}

pub(super) fn parse(bytes: &[u8]) -> Result<Contents, Problem> {
    let mut r = Reader { bytes, at: 0 };
    let count = r.count("number of entries", 1)?;
    let mut entries = BTreeMap::new();
    for _ in 0..count {
        let name = r.text("name of a tensor")?;
        let calls = r.i32("number of calls")?;
        let values = r.count("number of values", 1)?;
        let sums = r.take(4 * values, "values of a tensor")?;
        let entry = Entry { sums, divisors: Divisors::Calls(calls) };
        if entries.insert(name.to_owned(), entry).is_some() {
            return Err(Problem::Duplicate(name.into()));
        }
    }
    let mut contents = Contents { entries, datasets: Vec::new(), chunks: 0 };
    if r.at < bytes.len() {
        contents.chunks = u32::try_from(r.count("number of chunks", 0)?).unwrap_or_default();
    }
    if r.at < bytes.len() {
        let dataset = r.text("name of the text file")?;
        contents.datasets.extend((!dataset.is_empty()).then(|| dataset.to_owned()));
    }
    Ok(contents)
}
