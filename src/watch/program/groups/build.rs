//! From the members of a group to its chain: operands, results, and tiles for what lies between.

use super::operands::Lie;
use super::{FoldStep, Fusion, Group, Member};
use crate::arguments::chain::Feed;
use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::cpu::pointwise::cast::cast_fn;
use crate::cpu::pointwise::fused::{Chain, ElementFn};
use crate::device::Fused;
use crate::op::Op;
use crate::watch::program::act::Act;
use crate::watch::script::Fact;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

/// Tiles whose values nobody reads any more, and how many tiles there are.
#[derive(Default)]
struct Free {
    tiles: Vec<u32>,
    count: usize,
}

impl Free {
    /// One of them, or a new one.
    fn take(&mut self, chain: &Chain) -> u32 {
        self.tiles.pop().unwrap_or_else(|| {
            self.count += 1;
            chain.tile(self.count - 1)
        })
    }
}

/// Adds a loop to a chain. One that computes in wider dtypes reads tiles of widened operands, and its result
/// is narrowed at once, as memory would narrow it.
///
/// # Safety
/// As for [`Chain::push`], of operands in these slots that have these dtypes.
unsafe fn push(
    chain: &mut Chain, run: ElementFn, operands: SmallVec<[(u32, DType); 4]>, to: u32, free: &mut Free,
) {
    let mut wide = SmallVec::<[u32; 4]>::new();
    let mut from = SmallVec::<[u32; 4]>::new();
    let is_narrow = |dtype: DType| run.computes && dtype.compute() != dtype;
    for (slot, dtype) in operands {
        let widen = if is_narrow(dtype) { cast_fn(dtype, dtype.compute()) } else { None };
        from.push(match widen {
            Some(widen) => {
                let tile = free.take(chain);
                // SAFETY: the operand has this dtype, and nobody needs the tile.
                unsafe { chain.push(widen, SmallVec::from_slice(&[slot]), tile) };
                wide.push(tile);
                tile
            }
            None => slot,
        });
    }
    let narrow = if is_narrow(run.out) { cast_fn(run.out.compute(), run.out) } else { None };
    // SAFETY: the operands are now such as the loop reads, and what it makes goes where it is wanted.
    unsafe {
        match narrow {
            Some(narrow) => {
                let tile = free.take(chain);
                chain.push(run, from, tile);
                chain.push(narrow, SmallVec::from_slice(&[tile]), to);
                wide.push(tile);
            }
            None => chain.push(run, from, to),
        }
    }
    free.tiles.extend(wide);
}

impl Fusion<'_> {
    /// What is known of a group: where its first member is, and the memory of its outputs; the last is that
    /// of the step that folds, if there is one.
    pub fn fact(&self, members: &[Member], fold: Option<FoldStep>) -> Fact {
        let of = |member: &Member| &self.steps[member.step].fact;
        let made = |value: u32| {
            let maker = members.iter().find(|member| member.to == value);
            maker.and_then(|member| of(member).made.first().copied()).unwrap_or(0)
        };
        let mut all: SmallVec<[i64; 1]> = self.stored(members, fold).into_iter().map(made).collect();
        let fold = fold.map(|fold| &self.steps[fold.step].fact);
        all.extend(fold.and_then(|fact| fact.made.first().copied()));
        Fact {
            place: members.first().and_then(|member| of(member).place),
            scope: members.first().map_or(0, |member| of(member).scope),
            flops: members.iter().map(|member| of(member).flops).chain(fold.map(|fact| fact.flops)).sum(),
            above: 0,
            made: all,
        }
    }

    /// The values that a group stores: those that others read, but for the one that is folded.
    fn stored(&self, members: &[Member], fold: Option<FoldStep>) -> SmallVec<[u32; 4]> {
        let mut stored = self.shown(members);
        stored.retain(|value| fold.is_none_or(|fold| fold.value != *value));
        stored
    }

    /// The group of these members.
    pub fn group(&self, members: Vec<Member>, fold: Option<FoldStep>) -> Group {
        let n = members.first().map_or(0, |member| self.sizes[member.step]);
        let device = members.first().map_or(Device::Cpu, |member| self.device(member.to));
        let mut outputs = self.stored(&members, fold);
        outputs.extend(fold.map(|fold| fold.value));
        let mut last: FxHashMap<u32, usize> = FxHashMap::default();
        let made: FxHashSet<u32> = members.iter().map(|member| member.to).collect();
        let mut inputs = SmallVec::<[u32; 8]>::new();
        let mut known = FxHashSet::default();
        for (i, member) in members.iter().enumerate() {
            for &value in &member.from {
                if made.contains(&value) {
                    last.insert(value, i);
                } else if known.insert(value) {
                    inputs.push(value);
                }
            }
        }
        let (mut nests, mut parts) = (Vec::new(), Vec::new());
        let operands = inputs.iter().map(|&value| {
            let feed = match self.lie(value) {
                Some(Lie::Nest(nest)) => {
                    nests.push(*nest);
                    Feed::Nest((nests.len() - 1) as u32)
                }
                Some(Lie::Part(part)) => {
                    parts.push(part);
                    Feed::Part((parts.len() - 1) as u32)
                }
                None => self.feed(value, n).unwrap_or(Feed::Single),
            };
            (feed, self.view(value).dtype)
        });
        let operands = operands.collect();
        let dtypes = outputs.iter().map(|&value| self.view(value).dtype).collect();
        let mut chain = Chain::new(n, operands, nests, dtypes, fold.is_some());
        let mut slots: FxHashMap<u32, u32> = FxHashMap::default();
        inputs.iter().enumerate().for_each(|(i, &value)| {
            slots.insert(value, i as u32);
        });
        outputs.iter().enumerate().for_each(|(i, &value)| {
            slots.insert(value, chain.output(i));
        });
        let mut free = Free::default();
        let mut ops = Vec::with_capacity(members.len());
        for (i, Member { step, run, from, to }) in members.into_iter().enumerate() {
            let size = run.out.size();
            let read: SmallVec<[u32; 4]> = from.iter().map(|value| slots[value]).collect();
            let mut dying: SmallVec<[u32; 4]> = smallvec![];
            for &value in from.iter().filter(|value| last.get(value) == Some(&i)) {
                if !outputs.contains(&value) && !dying.contains(&value) && value != to {
                    dying.push(value);
                }
            }
            // A loop may write where it reads, if elements are as large; those of integers are slower then.
            let over = |value: &u32| !run.computes && self.view(*value).dtype.size() == size;
            if !slots.contains_key(&to) {
                let slot = match dying.iter().position(over) {
                    Some(k) => slots[&dying.swap_remove(k)],
                    None => free.take(&chain),
                };
                slots.insert(to, slot);
            }
            let dtypes = from.iter().map(|&value| self.view(value).dtype);
            let operands = read.into_iter().zip(dtypes).collect();
            // SAFETY: the loop is for the dtypes of its operands, which are inputs or were made before; what
            // is written is an output of its dtype, or a tile that no other value needs.
            unsafe { push(&mut chain, run, operands, slots[&to], &mut free) };
            free.tiles.extend(dying.iter().map(|value| slots[value]));
            if let Act::Run { op, .. } | Act::Write { op, .. } = &self.steps[step].act {
                ops.push(Op::clone(op));
            }
        }
        let fused = match device {
            Device::Cpu => {
                chain.prepare();
                None
            }
            _ => chain.described(parts).and_then(|chain| {
                let folds = fold.map(|fold| &self.steps[fold.step].act);
                let folds = folds.and_then(|act| match act {
                    Act::Run { op, .. } => Some(op.name()),
                    _ => None,
                });
                let names: Vec<&str> = ops.iter().map(|op| op.name()).chain(folds).collect();
                Fused::new(chain, &names)
            }),
        };
        inputs.iter_mut().for_each(|value| *value = self.value(*value));
        let fold = fold.and_then(|fold| match &self.steps[fold.step].act {
            Act::Run { op, inputs, outputs, .. } => {
                Some((op, self.view(*inputs.first()?).shape, (*outputs.first()?)?))
            }
            _ => None,
        });
        let fold = fold.map(|(op, shape, to)| {
            ops.push(Op::clone(op));
            if let Some(last) = outputs.last_mut() {
                *last = to;
            }
            (op.clone(), shape)
        });
        Group { device, chain, fused, inputs, outputs, ops, fold }
    }
}
