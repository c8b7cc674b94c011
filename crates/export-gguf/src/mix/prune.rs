//! `--prune-layers`: leaving out whole blocks and numbering the rest anew.

use std::collections::{BTreeMap, BTreeSet};

use crate::Error;

/// Which block gets which number.
#[derive(Debug, Default)]
pub(super) struct Pruning {
    layers: BTreeSet<u32>,
    /// What was decided about each block met so far; `None` is left out.
    mapped: BTreeMap<u32, Option<u32>>,
    next: u32,
}

impl Pruning {
    pub(super) fn new(layers: &[u32]) -> Self {
        Self { layers: layers.iter().copied().collect(), ..Self::default() }
    }

    /// The tensor's name in the output, `None` if its block is left out. Blocks are numbered as they come.
    pub(super) fn rename(&mut self, name: &str) -> Option<String> {
        let Some(&first) = self.layers.first() else { return Some(name.to_owned()) };
        let Some((before, layer, after)) = block(name) else { return Some(name.to_owned()) };
        let (layers, next) = (&self.layers, &mut self.next);
        let to = *self.mapped.entry(layer).or_insert_with(|| {
            if layers.contains(&layer) {
                return None;
            }
            let number = if layer < first { layer } else { *next };
            *next = number + 1;
            Some(number)
        });
        to.map(|n| format!("{before}{n}{after}"))
    }

    /// That all blocks to leave out were there, once all tensors were renamed.
    pub(super) fn check(&self) -> Result<(), Error> {
        let absent: Vec<String> =
            self.layers.iter().filter(|l| !self.mapped.contains_key(l)).map(u32::to_string).collect();
        if absent.is_empty() {
            return Ok(());
        }
        let last = self.mapped.keys().next_back();
        let there = last.map_or_else(|| "there are none".to_owned(), |last| format!("the last is {last}"));
        Err(Error::Refused(format!("--prune-layers: no block {}; {there}", absent.join(", "))))
    }

    /// The number of blocks that are left, once all tensors were renamed; `None` if nothing was asked for.
    pub(super) fn block_count(&self) -> Option<u32> {
        (!self.layers.is_empty()).then_some(self.next)
    }
}

/// Cuts a name around the number in its first `blk.N.`.
fn block(name: &str) -> Option<(&str, u32, &str)> {
    name.match_indices("blk.").find_map(|(at, found)| {
        let digits = &name[at + found.len()..];
        let end = digits.find(|c: char| !c.is_ascii_digit())?;
        let number = digits[..end].parse().ok()?;
        digits[end..].starts_with('.').then(|| (&name[..at + found.len()], number, &digits[end..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_behind_a_gap_move_up() {
        let mut p = Pruning::new(&[1, 3]);
        let names = ["output.weight", "blk.0.a", "blk.1.a", "blk.2.a", "blk.2.b", "blk.3.a", "blk.4.a"];
        let got: Vec<Option<String>> = names.iter().map(|n| p.rename(n)).collect();
        let expect = [
            Some("output.weight"),
            Some("blk.0.a"),
            None,
            Some("blk.1.a"),
            Some("blk.1.b"),
            None,
            Some("blk.2.a"),
        ];
        assert_eq!(got, expect.map(|n| n.map(str::to_owned)));
        assert_eq!(p.block_count(), Some(3));
        assert!(p.check().is_ok());
        assert_eq!(Pruning::new(&[]).block_count(), None);
        let mut p = Pruning::new(&[1, 7]);
        names.iter().for_each(|n| drop(p.rename(n)));
        assert_eq!(p.check().unwrap_err().to_string(), "--prune-layers: no block 7; the last is 4");
    }
}
