//! Where in the base a piece goes.

use std::ops::Range;

use super::super::adapter::{Change, Part, Piece, Target};
use super::super::names::{self, Architecture, Share, Slot};
use super::{Base, Order, sides};

/// Rows of one tensor, and the order in which an adapter has them.
pub(super) struct Place {
    pub(super) tensor: usize,
    pub(super) rows: Range<u64>,
    pub(super) order: Order,
    /// What is added to values that replace others.
    pub(super) plus: f32,
}

impl Base<'_> {
    pub(super) fn place(&self, piece: &Piece) -> Result<Place, String> {
        let place = match &piece.target {
            Target::Tensor(name) => self.by_tensor(name),
            Target::Module(module, part) => self.by_module(module, *part),
        }?;
        let replaced = matches!(piece.change, Change::Replace(_));
        self.not_tied(&self.tensors[place.tensor].name, replaced)?;
        Ok(place)
    }

    /// A tensor by its own name, or one matrix of it: `NAME[3]`.
    fn by_tensor(&self, name: &str) -> Result<Place, String> {
        let indexed = name.strip_suffix(']').and_then(|n| n.rsplit_once('['));
        let (name, slot) = match indexed.and_then(|(n, x)| Some((n, x.parse().ok()?))) {
            Some((name, expert)) => (name, Slot::Expert(expert)),
            None => (name, Slot::Whole),
        };
        let block = name.split('.').find_map(|s| s.parse().ok());
        self.find(name, slot, block, false)
    }

    fn by_module(&self, module: &str, part: Part) -> Result<Place, String> {
        let table = self.facts.architecture.and_then(names::architecture);
        let unknown = || {
            let architecture = self.facts.architecture.unwrap_or("unknown");
            format!("{architecture} has no such module as {}", module.escape_debug())
        };
        let table: &Architecture = table.ok_or_else(unknown)?;
        let found = table.find(module).ok_or_else(unknown)?;
        let name = format!("{}.{}", found.tensor, part.name());
        let place = self.find(&name, found.slot, found.block, table.paired_heads)?;
        let norm = part == Part::Weight && found.tensor.ends_with("norm");
        Ok(Place { plus: if norm { table.norm_plus } else { 0.0 }, ..place })
    }

    /// The rows of a slot, in the tensor of that name or in the one it was fused into.
    fn find(&self, name: &str, slot: Slot, block: Option<u32>, paired: bool) -> Result<Place, String> {
        let (tensor, share) = match self.by_name.get(name) {
            Some(&i) => (i, None),
            None => {
                let fused =
                    names::fused(name).and_then(|(n, share)| Some((*self.by_name.get(n.as_str())?, share)));
                let (i, share) = fused.ok_or_else(|| self.absent(name))?;
                (i, Some(share))
            }
        };
        let t = &self.tensors[tensor];
        let (rows, _) = sides(&t.dims);
        let mut range = match slot {
            Slot::Whole | Slot::Q | Slot::K => 0..rows,
            Slot::FirstHalf => 0..rows / 2,
            Slot::SecondHalf => rows / 2..rows,
            Slot::Expert(x) => {
                let [_, each, experts] = t.dims[..] else {
                    return Err(format!("{} holds no stack of experts", t.name));
                };
                if x >= experts {
                    return Err(format!("expert {x} of {experts} in {}", t.name));
                }
                x * each..(x + 1) * each
            }
        };
        if let Some(share) = share {
            range = self.share(share, &t.name, range, block)?;
        }
        let order = if paired { self.order(slot, block, range.end - range.start)? } else { Order::Same };
        Ok(Place { tensor, rows: range, order, plus: 0.0 })
    }

    /// The rows of one part of a fused tensor.
    fn share(
        &self,
        share: Share,
        name: &str,
        all: Range<u64>,
        block: Option<u32>,
    ) -> Result<Range<u64>, String> {
        let len = all.end - all.start;
        let (from, to) = match share {
            Share::FirstHalf => (0, len / 2),
            Share::SecondHalf => (len / 2, len),
            Share::Q | Share::K | Share::V => {
                let rows = block.and_then(|b| self.facts.heads(b)).and_then(super::Heads::rows);
                let Some([q, k, v]) = rows else {
                    return Err(format!("the base does not say how many heads share {name}"));
                };
                if q.checked_add(k).and_then(|n| n.checked_add(v)) != Some(len) {
                    return Err(format!("{name} has {len} rows, and the base's heads take {q} + {k} + {v}"));
                }
                match share {
                    Share::Q => (0, q),
                    Share::K => (q, q + k),
                    _ => (q + k, len),
                }
            }
        };
        Ok(all.start + from..all.start + to)
    }

    /// How the heads of Q and K are ordered in a base whose rotated pairs stand together.
    fn order(&self, slot: Slot, block: Option<u32>, rows: u64) -> Result<Order, String> {
        if !matches!(slot, Slot::Q | Slot::K) {
            return Ok(Order::Same);
        }
        let Some(heads) = block.and_then(|b| self.facts.heads(b)) else {
            return Err(
                "the base does not say how many heads it has, by which the rows of Q and K are ordered"
                    .into(),
            );
        };
        let heads = if slot == Slot::Q { heads.q } else { heads.kv };
        if !heads.checked_mul(2).is_some_and(|n| rows.is_multiple_of(n)) {
            return Err(format!("{rows} rows are not {heads} heads of pairs"));
        }
        Ok(Order::Paired(rows / heads))
    }

    fn absent(&self, name: &str) -> String {
        if name == "output.weight" && self.by_name.contains_key("token_embd.weight") {
            return "no such tensor in the base: output.weight; its head is tied to token_embd.weight, and \
                    merging there would change the embedding too"
                .into();
        }
        format!("no such tensor in the base: {}", name.escape_debug())
    }

    /// Refuses to change an embedding that is the head as well: the adapter was trained with the one changed
    /// and the other not.
    fn not_tied(&self, name: &str, replaced: bool) -> Result<(), String> {
        let table = self.facts.architecture.and_then(names::architecture);
        let tied = table.is_none_or(|a| a.tied_head) && !self.by_name.contains_key("output.weight");
        if name != "token_embd.weight" || !tied {
            return Ok(());
        }
        let verb = if replaced { "replacing" } else { "merging into" };
        Err(format!(
            "the base has no output.weight, so its head is tied to token_embd.weight, and {verb} the embedding \
             would change the head too"
        ))
    }
}
