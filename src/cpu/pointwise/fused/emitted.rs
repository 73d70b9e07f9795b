//! A chain as one emitted loop, with its values in registers instead of tiles.

use super::Chain;
use crate::arguments::chain::{ElementRule, Feed};
use crate::arguments::logic::{Logic, Relation};
use crate::array::dtype::DType;
use crate::cpu::emit::{Code, Emitted, NONE, Target, Truth, Value, list, push, target};
use crate::cpu::pointwise::drive::TILE;
use crate::cpu::run::scratch::Scratch;
use crate::cpu::run::stream;
use crate::cpu::run::threads::Shared;
use crate::dispatch_width;
use crate::error::Result;
use crate::math::real::Real;
use smallvec::SmallVec;

/// So many times in a piece of work the loop may meet rare arguments; then tiles do the rest.
const PATIENCE: usize = 4;

/// The chains that gain: those of one loop gain nothing.
const LEAST: usize = 2;

/// The value of a rule whose results are of this dtype. A truth value is a [`Value`], too.
fn value(rule: &ElementRule, out: DType, x: &[Value]) -> Value {
    let truth = |i: usize| Truth(x[i].0);
    let holds = match *rule {
        ElementRule::Terms(ref terms) => return terms.read(x),
        ElementRule::Same => return x[0],
        ElementRule::Logical(Logic::Not) => !truth(0),
        ElementRule::Select if out != DType::Bool => return Value::select(truth(0), x[1], x[2]),
        ElementRule::Select => (truth(0) & truth(1)) | (!truth(0) & truth(2)),
        ElementRule::Compare(Relation::Lt) => x[0].lt(x[1]),
        ElementRule::Compare(Relation::Le) => x[0].le(x[1]),
        ElementRule::Compare(Relation::Eq) => x[0].eq(x[1]),
        ElementRule::Compare(Relation::Ne) => x[0].ne(x[1]),
        ElementRule::Compare(Relation::Gt) => x[0].gt(x[1]),
        ElementRule::Compare(Relation::Ge) => x[0].ge(x[1]),
        ElementRule::Logical(Logic::And) => truth(0) & truth(1),
        ElementRule::Logical(Logic::Or) => truth(0) | truth(1),
        ElementRule::Logical(Logic::Xor) => Truth(push(Code::Differ, [x[0].0, x[1].0, NONE], 0)),
    };
    Value(holds.0)
}

impl Chain {
    /// The emitted loop; `None` if there is none.
    pub(super) fn emitted(&self) -> Option<&Emitted> {
        let target = target().filter(|_| self.links.len() >= LEAST)?;
        self.code.get_or_init(|| self.emit(target).map(std::sync::Arc::new)).as_deref()
    }

    /// Reads all its rules and makes the loop of them.
    fn emit(&self, target: Target) -> Option<Emitted> {
        let mut dtypes = self.operands.iter().map(|&(_, dtype)| dtype).chain(self.outputs.iter().copied());
        let size = dtypes.clone().find(|&dtype| dtype != DType::Bool).map_or(4, DType::size);
        let fits = |dtype: DType| dtype == DType::Bool || dtype.size() == size;
        if !matches!(size, 4 | 8) || !dtypes.all(fits) || !self.links.iter().all(|link| fits(link.run.out)) {
            return None;
        }
        let list = list(target, size == 8, || self.read())?;
        Emitted::new(&list, self.pointers().count() + self.outputs.len())
    }

    /// The operands that have pointers, by their numbers.
    fn pointers(&self) -> impl Iterator<Item = usize> {
        self.operands.iter().enumerate().filter(|(_, (feed, _))| *feed != Feed::Single).map(|(k, _)| k)
    }

    /// Writes the rows of all loops.
    fn read(&self) -> Option<()> {
        let mut slots: Vec<Option<Value>> = vec![None; self.tile(self.tiles) as usize];
        let (mut dense, mut single) = (0, 0);
        for (slot, &(feed, dtype)) in slots.iter_mut().zip(&self.operands) {
            let (code, number) = match (feed, dtype) {
                (Feed::Single, DType::Bool) => (Code::SingleTruth, &mut single),
                (Feed::Single, _) => (Code::Single, &mut single),
                (_, DType::Bool) => (Code::DenseTruth, &mut dense),
                _ => (Code::Dense, &mut dense),
            };
            *slot = Some(Value(push(code, [NONE; 3], *number)));
            *number += 1;
        }
        for link in &self.links {
            let rule = Some(&link.run).filter(|run| run.emits)?.read()?;
            let x: SmallVec<[Value; 4]> =
                link.from.iter().map(|&slot| slots[slot as usize]).collect::<Option<_>>()?;
            slots[link.to as usize] = Some(value(&rule, link.run.out, &x));
        }
        for (i, dtype) in self.outputs.iter().enumerate() {
            let code = if *dtype == DType::Bool { Code::StoreTruth } else { Code::Store };
            let value = slots[self.output(i) as usize]?;
            push(code, [value.0, NONE, NONE], dense + i as u64);
        }
        Some(())
    }

    /// Computes the elements `start..end` by the emitted loop.
    ///
    /// # Safety
    /// As for [`Chain::tiled`]; the loop is that of this chain.
    pub(super) unsafe fn looped(
        &self, code: &Emitted, from: &[Shared<u8>], to: &[Shared<u8>], start: usize, end: usize,
        streamed: bool,
    ) -> Result<()> {
        let mut singles: SmallVec<[u64; 8]> = SmallVec::new();
        for (&(feed, dtype), from) in self.operands.iter().zip(from) {
            if feed == Feed::Single {
                let mut bits = 0_u64;
                // SAFETY: the operand has one element.
                unsafe {
                    dispatch_width!(dtype.size(), T => {
                        (&raw mut bits).cast::<T>().write(from.get().cast::<T>().read());
                    });
                }
                singles.push(if dtype == DType::Bool && bits != 0 { u64::MAX } else { bits });
            }
        }
        let mut frame = Scratch::<u8>::new(code.frame)?;
        let sizes = || self.outputs.iter().map(|dtype| dtype.size());
        let copied = |&k: &usize| matches!(self.operands[k].0, Feed::Nest(_));
        let room: usize = self.pointers().filter(copied).map(|k| self.operands[k].1.size()).sum();
        let streams = if streamed { sizes().sum::<usize>() } else { 0 };
        let mut tiles = Scratch::<u8>::new((room + streams) * TILE)?;
        let most = if streamed || room > 0 { TILE } else { end - start };
        let (mut at, mut left) = (start, PATIENCE);
        while at < end {
            let n = most.min(end - at);
            let place = |(size, to): (usize, &Shared<u8>)| to.get().wrapping_add(at * size);
            let places = || sizes().zip(to).map(place);
            let mut tile = tiles.ptr();
            let mut pointers: SmallVec<[*mut u8; 16]> = SmallVec::new();
            for k in self.pointers() {
                let (feed, dtype) = self.operands[k];
                pointers.push(match feed {
                    Feed::Nest(nest) => {
                        let to = tile;
                        // SAFETY: the operand has the elements of its nest, the tile room for `n`.
                        unsafe { self.copy(nest, dtype, from[k].get(), at, n, to) };
                        tile = tile.wrapping_add(dtype.size() * TILE);
                        to
                    }
                    _ => place((dtype.size(), &from[k])),
                });
            }
            let first = pointers.len();
            for (i, (size, place)) in sizes().zip(places()).enumerate() {
                let streams = streamed && i < self.stored;
                pointers.push(if streams { tile } else { place });
                tile = tile.wrapping_add(if streams { size * TILE } else { 0 });
            }
            let done = match left {
                0 => 0,
                // SAFETY: guaranteed by the caller, and `target` asked the processor.
                _ => unsafe { code.run(&pointers, &singles, n, frame.ptr()) },
            };
            if streamed && done == n {
                for ((place, size), &tile) in places().zip(sizes()).zip(&pointers[first..]).take(self.stored)
                {
                    // SAFETY: both have `n` elements of the result.
                    unsafe { stream::stream(place, tile, n * size) };
                }
            } else if done < n {
                left = left.saturating_sub(1);
                let next = if streamed { at } else { at + done };
                let last = if left == 0 { end } else { end.min(next + TILE) };
                // SAFETY: guaranteed by the caller.
                unsafe { self.tiled(from, to, next, last, streamed)? };
                at = last;
                continue;
            }
            at += n;
        }
        if streamed {
            stream::fence();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
