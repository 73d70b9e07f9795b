//! Which steps are elementwise loops, and how these read their operands.

use super::{Fusion, Loop, Member};
use crate::arguments::chain::{ElementRule, Feed};
use crate::arguments::logic::Logic;
use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::cpu::pointwise::fused::ElementFn;
use crate::device::chain_limits;
use crate::op::{Kernel, Op};
use crate::watch::program::Source;
use crate::watch::program::act::Act;
use crate::watch::script::View;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Whether an array is dense and row-major.
pub fn is_contiguous(view: &View) -> bool {
    let mut stride = 1;
    (0..view.shape.rank()).rev().all(|i| {
        let fits = view.shape.at(i) == 1 || view.strides[i] == stride;
        stride *= view.shape.at(i) as isize;
        fits
    })
}

/// An elementwise operation of a GPU on operands of these dtypes. All numbers are float32 there; of integers
/// no chains are made.
pub fn on_gpu(op: &Op, dtypes: &[DType]) -> Option<ElementFn> {
    let computed = |&dtype: &DType| match dtype {
        DType::Bool => Some(DType::Bool),
        dtype => dtype.is_float().then_some(DType::F32),
    };
    let computed: SmallVec<[DType; 8]> = dtypes.iter().map(computed).collect::<Option<_>>()?;
    match op {
        Op::Cast(cast) => {
            let fits = cast.dtype.is_float() || cast.dtype == DType::Bool;
            return fits.then(|| ElementFn::elsewhere(|| ElementRule::Same, cast.dtype));
        }
        Op::Logical(op) if op.logic == Logic::Not => {
            return Some(ElementFn::elsewhere(|| ElementRule::Logical(Logic::Not), DType::Bool));
        }
        _ => {}
    }
    let mut run = op.element_fn(&computed).filter(ElementFn::is_read)?;
    if run.out != DType::Bool {
        run.out = DType::of_rule(dtypes.iter().copied().filter(|&dtype| dtype != DType::Bool))?;
    }
    Some(run)
}

impl Fusion<'_> {
    /// Where a value lies.
    pub fn device(&self, value: u32) -> Device {
        self.devices[self.view(value).memory]
    }

    /// What steps of one group share, if a step is a loop: where it runs, how many elements it has, and
    /// whether it can be read. One loop of machine code is made of those that can; others run tile by tile.
    pub fn kind(&self, step: usize) -> Option<(Device, usize, bool)> {
        self.loops[step].as_ref().map(|(run, _, to)| (self.device(*to), self.sizes[step], run.is_read()))
    }

    /// Whether a kernel takes the whole of a value.
    fn fits(&self, value: u32) -> bool {
        let view = self.view(self.root(value));
        chain_limits(self.device(value)).is_some_and(|limits| view.shape.numel() * 4 <= limits.bytes)
    }

    /// Whether a member changes a value.
    pub fn writes(&self, member: &Member) -> bool {
        matches!(self.steps[member.step].act, Act::Write { .. })
    }

    /// Members on one element of a GPU, or `all`, as groups of those that need each other; others are parts
    /// of one launch anyway.
    pub fn apart(&self, members: Vec<Member>, all: bool) -> Vec<Vec<Member>> {
        // All members have one device and one size.
        let is_number =
            |member: &Member| self.sizes[member.step] == 1 && self.device(member.to) != Device::Cpu;
        if !all && !members.first().is_some_and(is_number) {
            return vec![members];
        }
        // The first member that each is tied to, and who makes a value.
        let mut tied: Vec<usize> = (0..members.len()).collect();
        let mut maker = FxHashMap::default();
        let first = |tied: &[usize], mut i: usize| {
            while tied[i] != i {
                i = tied[i];
            }
            i
        };
        for (i, member) in members.iter().enumerate() {
            for value in member.from.iter().chain([&member.to]) {
                if let Some(&made) = maker.get(value) {
                    let (a, b) = (first(&tied, i), first(&tied, made));
                    tied[a.max(b)] = a.min(b);
                    tied[i] = a.min(b);
                }
            }
            maker.insert(member.to, i);
        }
        let mut parts: BTreeMap<usize, Vec<Member>> = BTreeMap::new();
        for (i, member) in members.into_iter().enumerate() {
            parts.entry(first(&tied, i)).or_default().push(member);
        }
        let mut parts: Vec<Vec<Member>> = parts.into_values().collect();
        parts.iter_mut().for_each(|part| part.sort_by_key(|member| member.step));
        parts
    }

    /// The members of a group as groups that one kernel each can take, in order.
    pub fn parted(&self, members: Vec<Member>) -> Vec<Vec<Member>> {
        let Some(first) = members.first() else { return Vec::new() };
        let Some(limits) = chain_limits(self.device(first.to)) else { return vec![members] };
        let fit = |members: &[Member]| {
            let made: FxHashSet<u32> = members.iter().map(|member| member.to).collect();
            let read = members.iter().flat_map(|member| &member.from).copied();
            let inputs: FxHashSet<u32> = read.filter(|value| !made.contains(value)).collect();
            let outputs = self.shown(members).len();
            // Each input takes four words, and as many for each axis; each operation two, in fours.
            let words =
                8 + inputs.iter().map(|&value| 4 + 4 * self.axes(value)).sum::<usize>() + 2 * members.len();
            words <= limits.words
                && inputs.len().max(outputs) <= limits.lists
                && inputs.len() + outputs <= limits.arrays
        };
        if members.len() < 2 || fit(&members) {
            return vec![members];
        }
        // As many as fit, at least one.
        let count = (2..members.len()).take_while(|&n| fit(&members[..n])).last().unwrap_or(1);
        let mut members = members;
        let second = members.split_off(count);
        if members.iter().chain(&second).any(|member| self.writes(member)) {
            // What changes a value may be apart from what makes it, and then is no part of a group.
            let mut parts = self.parted(members);
            parts.extend(second.into_iter().map(|member| vec![member]));
            return parts;
        }
        let mut parts = self.parted(members);
        parts.extend(self.parted(second));
        parts
    }

    /// The value that has the same elements in the same order and place, where one lies in another's memory.
    pub fn whole(&self, value: u32) -> u32 {
        let root = self.root(value);
        let (view, all) = (self.view(value), self.view(root));
        let alike = view.dtype == all.dtype
            && view.offset == all.offset
            && view.shape.numel() == all.shape.numel()
            && is_contiguous(view)
            && is_contiguous(all);
        if alike { root } else { value }
    }

    /// How a value is read by a loop over `n` elements, if it does so in order.
    pub fn feed(&self, value: u32, n: usize) -> Option<Feed> {
        let view = self.view(value);
        match view.shape.numel() {
            count if count == n && is_contiguous(view) => Some(Feed::Dense),
            1 => Some(Feed::Single),
            count if count == n && view.strides.iter().all(|&stride| stride == 0) => Some(Feed::Single),
            _ => None,
        }
    }

    /// The loop that a step is, what it reads and what it makes; `None` if it is none.
    pub fn loop_of(&self, act: &Act) -> Option<Loop> {
        let on = |value: &u32| self.device(*value) != Device::Cpu && self.fits(*value);
        if act.reads().iter().chain(&act.makes()).all(on)
            && let Some(found) = self.part_of(act)
        {
            return Some(found);
        }
        let (op, inputs, to) = match act {
            Act::Run { op, inputs, outputs, draw: None } => (op, inputs, (*outputs.first()?)?),
            Act::Write { op, inputs, outputs, .. } => (op, inputs, *outputs.first()?),
            _ => return None,
        };
        let view = self.view(to);
        let count = view.shape.numel();
        if !is_contiguous(view) || !matches!(self.values[to as usize].source, Source::Step) {
            return None;
        }
        let dtypes: SmallVec<[DType; 8]> = inputs.iter().map(|&value| self.view(value).dtype).collect();
        let device = self.device(to);
        if inputs.iter().any(|&value| self.device(value) != device || !self.fits(value)) || !self.fits(to) {
            return None;
        }
        let run = match device {
            Device::Cpu => op.element_fn(&dtypes),
            Device::Gpu(_) => on_gpu(op, &dtypes),
        };
        let run = run.filter(|run| run.out == view.dtype)?;
        let read = |&value: &u32| {
            let whole = self.whole(value);
            self.feed(whole, count).map(|_| whole).or_else(|| self.broadcast(value, &view.shape))
        };
        let from: SmallVec<[u32; 4]> = inputs.iter().map(read).collect::<Option<_>>()?;
        Some((run, from, to))
    }
}
