//! Fusion: elementwise steps over the same number of elements become one chain, which runs tile by tile.
//!
//! Between two steps that write, look or call, the order of steps is free where no value flows. A group
//! takes all elementwise steps of one size that it can reach; what does not depend on it runs before it, and
//! what does runs after it. Values that nobody else reads have no memory. A value that only a sum, mean or
//! extremum reads is folded as it is computed.

mod build;
mod fold;
mod loops;
mod operands;

use super::act::{Act, Planned};
use super::{Source, Value, within};
use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::shape::Shape;
use crate::cpu::pointwise::fused::{Chain, ElementFn};
use crate::device::Fused;
use crate::error::Result;
use crate::op::Op;
use crate::watch::script::View;
use operands::Operand;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::RefCell;

/// So many steps that do not belong to a group are looked at in search of more that do; fewer where that
/// takes more memory.
const REACH: [usize; 4] = [64, 8, 1, 0];

/// So many bytes more at once do not count.
const SLACK: i64 = 1 << 14;

/// Elementwise steps that run together.
#[derive(Clone)]
pub struct Group {
    /// Where they run.
    pub device: Device,
    /// The loops of the steps.
    pub chain: Chain,
    /// The kernel that stands for them on a GPU.
    pub fused: Option<Fused>,
    /// The values that the group reads.
    pub inputs: SmallVec<[u32; 8]>,
    /// The values that it makes and that others read.
    pub outputs: SmallVec<[u32; 4]>,
    /// The operations, in order.
    pub ops: Vec<Op>,
    /// What reduces the last output of the chain, which has this shape, to that of the group.
    pub fold: Option<(Box<Op>, Shape)>,
}

impl Group {
    /// Runs the loops; returns what the last output is folded to.
    ///
    /// # Safety
    /// As for [`Chain::run`], with the outputs that are stored.
    pub unsafe fn run(&self, inputs: &[&Array], stored: &[&Array]) -> Result<Option<Array>> {
        let folding = self.fold.as_ref().and_then(|(op, shape)| Some((op, shape, op.folding()?)));
        if let Some(fused) = &self.fused {
            return match folding {
                None => fused.run(inputs, stored).map(|()| None),
                Some((op, shape, folding)) => {
                    op.of_folded(fused.fold(inputs, &folding, shape)?, shape).map(Some)
                }
            };
        }
        // SAFETY: guaranteed by the caller.
        unsafe {
            match folding {
                None => self.chain.run(inputs, stored).map(|()| None),
                Some((op, shape, folding)) => {
                    op.of_folded(self.chain.fold(inputs, stored, &folding, shape)?, shape).map(Some)
                }
            }
        }
    }
}

/// An elementwise step as a loop, with its number.
struct Member {
    step: usize,
    run: ElementFn,
    from: SmallVec<[u32; 4]>,
    to: u32,
}

/// A loop, what it reads and what it makes.
type Loop = (ElementFn, SmallVec<[u32; 4]>, u32);

/// A step that folds a value which a group makes.
#[derive(Clone, Copy)]
struct FoldStep {
    step: usize,
    value: u32,
}

/// What runs at once: a step, or a group of them.
enum Unit {
    One(usize),
    Group(Vec<Member>, Option<FoldStep>),
}

/// What fusion knows about a plan.
struct Fusion<'a> {
    steps: &'a [Planned],
    values: &'a [Value],
    outputs: &'a [u32],
    /// Arguments that are dropped after their last reader, with their bytes.
    given_up: &'a [(u32, i64)],
    /// How many steps and results read a value, or one that lies in its memory.
    uses: Vec<u32>,
    /// The loop that each step is, if it is one.
    loops: Vec<Option<Loop>>,
    /// The elements of these loops; 0 for other steps.
    sizes: Vec<usize>,
    /// The device of each piece of memory.
    devices: &'a [Device],
    /// Values that loops do not read in order, which have numbers of their own behind those of values.
    operands: RefCell<Vec<Operand>>,
}

/// Fuses what can be in these steps, whose memory is on these devices: as much as does not need more memory
/// at once. Steps that write what others see, look, call or wait for other processes keep their order.
pub fn fuse(
    steps: Vec<Planned>, values: &[Value], outputs: &[u32], devices: &[Device], given_up: &[(u32, i64)],
) -> Vec<Planned> {
    let mut fusion = Fusion {
        steps: &steps,
        values,
        outputs,
        given_up,
        uses: vec![0; values.len()],
        loops: Vec::new(),
        sizes: Vec::new(),
        devices,
        operands: RefCell::default(),
    };
    for value in steps.iter().flat_map(|step| step.act.reads()).chain(outputs.iter().copied()) {
        let root = fusion.root(value);
        fusion.uses[root as usize] += 1;
    }
    fusion.loops = steps.iter().map(|step| fusion.loop_of(&step.act)).collect();
    let size = |found: &Option<Loop>| found.as_ref().map_or(0, |&(_, _, to)| fusion.view(to).shape.numel());
    fusion.sizes = fusion.loops.iter().map(size).collect();
    let most = fusion.peak(&fusion.units(None, false)) + SLACK;
    let fits = |units: &Vec<Unit>| fusion.peak(units) <= most;
    // Loops that need nothing of each other run apart where an argument is dropped between them.
    let ways = [false, true].into_iter().take(1 + usize::from(!given_up.is_empty()));
    let ways = ways.flat_map(|apart| REACH.map(|reach| (reach, apart)));
    let fused = ways.map(|(reach, apart)| fusion.units(Some(reach), apart)).find(fits);
    let units = fusion.fold(fused.unwrap_or_else(|| fusion.units(None, false)));
    let unit = |unit| match unit {
        Unit::One(step) => (Some(step), None),
        Unit::Group(members, fold) => {
            let fact = fusion.fact(&members, fold);
            (None, Some(Planned::new(Act::Group(Box::new(fusion.group(members, fold))), fact)))
        }
    };
    let (order, groups): (Vec<Option<usize>>, Vec<Option<Planned>>) = units.into_iter().map(unit).unzip();
    let mut steps: Vec<Option<Planned>> = steps.into_iter().map(Some).collect();
    let unit = |(step, group): (Option<usize>, Option<Planned>)| match step {
        Some(step) => steps[step].take(),
        None => group,
    };
    order.into_iter().zip(groups).filter_map(unit).collect()
}

impl Fusion<'_> {
    /// The value whose memory a value lies in.
    fn root(&self, value: u32) -> u32 {
        within(self.values, self.value(value))
    }

    fn view(&self, value: u32) -> &View {
        let value = self.value(value);
        &self.values[value as usize].view
    }

    /// Whether a step changes the whole of a value that a step made and nobody outside sees, such as a sum of
    /// gradients; on a GPU also a part of one.
    fn changes(&self, act: &Act) -> bool {
        let Act::Write { inputs, outputs, draw: None, shown: false, .. } = act else { return false };
        let [to] = outputs.as_slice() else { return false };
        let base = if self.device(*to) == Device::Cpu { *to } else { self.root(*to) };
        inputs.first() == Some(to) && matches!(self.values[base as usize].source, Source::Step)
    }

    /// All steps in the order in which they run, with groups that reach so far; without groups, if that is
    /// `None`.
    fn units(&self, reach: Option<usize>, apart: bool) -> Vec<Unit> {
        let mut units = Vec::with_capacity(self.steps.len());
        let Some(reach) = reach else {
            units.extend((0..self.steps.len()).map(Unit::One));
            return units;
        };
        let mut region = Vec::new();
        for (i, step) in self.steps.iter().enumerate() {
            let moves = matches!(&step.act, Act::Run { op, .. } if !op.is_collective());
            if moves || self.changes(&step.act) {
                region.push(Unit::One(i));
                continue;
            }
            self.region(std::mem::take(&mut region), reach, apart, &mut units);
            units.push(Unit::One(i));
        }
        self.region(region, reach, apart, &mut units);
        units
    }

    /// Fuses a region of steps without effects and appends it to `units`.
    fn region(&self, mut waiting: Vec<Unit>, reach: usize, apart: bool, units: &mut Vec<Unit>) {
        waiting.reverse();
        while let Some(unit) = waiting.pop() {
            match unit {
                Unit::One(step)
                    if self.sizes[step] > 0 && matches!(self.steps[step].act, Act::Run { .. }) => {}
                unit => {
                    units.push(unit);
                    continue;
                }
            }
            waiting.push(unit);
            let (before, members, after) = self.reach(&mut waiting, reach);
            waiting.extend(after.into_iter().rev());
            if let [Member { step, .. }] = members.as_slice() {
                units.push(Unit::One(*step));
            } else {
                // Alone it is a group where it would be found again with those that it is parted from.
                let unit = |members: Vec<Member>| match members.as_slice() {
                    [member] if self.writes(member) => Unit::One(member.step),
                    _ => Unit::Group(members, None),
                };
                let parts = self.apart(members, apart).into_iter().flat_map(|part| self.parted(part));
                waiting.extend(parts.collect::<Vec<_>>().into_iter().rev().map(unit));
            }
            waiting.extend(before.into_iter().rev());
        }
    }

    /// The memory that a unit reads.
    fn roots(&self, unit: &Unit) -> SmallVec<[u32; 8]> {
        let of = |step: usize| self.steps[step].act.reads().into_iter().map(|value| self.root(value));
        match unit {
            Unit::One(step) => of(*step).collect(),
            Unit::Group(members, _) => members.iter().flat_map(|member| of(member.step)).collect(),
        }
    }

    /// The memory that a unit makes.
    fn makes(&self, unit: &Unit) -> SmallVec<[u32; 8]> {
        match unit {
            Unit::One(step) => {
                self.steps[*step].act.makes().into_iter().map(|value| self.root(value)).collect()
            }
            Unit::Group(members, _) => members.iter().map(|member| member.to).collect(),
        }
    }

    /// Takes units from the end of `waiting`, where the next one is last: those to run before the group that
    /// begins with the next one, its members, and those to run after it.
    fn reach(&self, waiting: &mut Vec<Unit>, reach: usize) -> (Vec<Unit>, Vec<Member>, Vec<Unit>) {
        let (mut before, mut members, mut after) = (Vec::new(), Vec::<Member>::new(), Vec::new());
        // What the group makes, what depends on it through others, and what others read, and it of others.
        let (mut own, mut late) = (FxHashSet::default(), FxHashSet::default());
        let mut read = FxHashSet::default();
        let kind = match waiting.last() {
            Some(&Unit::One(step)) => self.kind(step),
            _ => None,
        };
        while let Some(unit) = waiting.pop() {
            let roots = self.roots(&unit);
            let depends = roots.iter().any(|root| own.contains(root));
            let is_late = roots.iter().any(|root| late.contains(root));
            let step = match unit {
                Unit::One(step) => Some(step).filter(|_| kind.is_some() && self.kind(step) == kind),
                Unit::Group(..) => None,
            };
            let writes = matches!(&unit, Unit::One(i) if matches!(self.steps[*i].act, Act::Write { .. }));
            // A value that is changed: the group made it, and nobody has read what it was before.
            let is_own = |to: &u32| !writes || (own.contains(to) && !read.contains(to));
            let made_whole = |value: &u32| !own.contains(&self.root(*value)) || own.contains(value);
            let member = step.filter(|_| !is_late).and_then(|step| {
                let (run, from, to) = self.loops[step].clone()?;
                let fits = is_own(&to) && from.iter().all(made_whole);
                fits.then_some(Member { step, run, from, to })
            });
            if let Some(member) = member {
                read.extend(roots.into_iter().filter(|root| !own.contains(root)));
                own.insert(member.to);
                members.push(member);
                continue;
            }
            // A write changes what steps before it read: all others keep their places around it.
            let matters = depends || is_late || roots.iter().any(|root| read.contains(root));
            if before.len() + after.len() == reach || (writes && matters) {
                waiting.push(unit);
                break;
            }
            read.extend(roots);
            if depends || is_late {
                late.extend(self.makes(&unit));
                after.push(unit);
            } else {
                before.push(unit);
            }
        }
        (before, members, after)
    }

    /// The values of a group that others read.
    fn shown(&self, members: &[Member]) -> SmallVec<[u32; 4]> {
        let mut reads: FxHashMap<u32, u32> = members.iter().map(|member| (member.to, 0)).collect();
        for value in members.iter().flat_map(|member| &member.from) {
            reads.entry(*value).and_modify(|count| *count += 1);
        }
        let mut shown = SmallVec::<[u32; 4]>::new();
        for member in members {
            if reads[&member.to] < self.uses[member.to as usize] && !shown.contains(&member.to) {
                shown.push(member.to);
            }
        }
        shown
    }

    /// The bytes that steps have made and that somebody still reads, at most.
    fn peak(&self, units: &[Unit]) -> i64 {
        let mut last = vec![usize::MAX; self.values.len()];
        for (i, unit) in units.iter().enumerate() {
            let is_kept = matches!(unit, Unit::One(i) if matches!(self.steps[*i].act, Act::Gradient { .. }));
            for root in self.roots(unit) {
                last[root as usize] = if is_kept { usize::MAX } else { i };
            }
        }
        self.outputs.iter().for_each(|&value| last[self.root(value) as usize] = usize::MAX);
        let (mut live, mut most) = (0, 0);
        let mut made = vec![0; self.values.len()];
        self.given_up.iter().for_each(|&(value, bytes)| made[value as usize] = bytes);
        for (i, unit) in units.iter().enumerate() {
            let (new, fact): (SmallVec<[Option<u32>; 4]>, _) = match unit {
                Unit::One(step) => match &self.steps[*step] {
                    Planned { act: Act::Run { outputs, .. }, fact, .. } => {
                        (outputs.iter().copied().collect(), fact.clone())
                    }
                    step => (SmallVec::new(), step.fact.clone()),
                },
                Unit::Group(members, _) => {
                    (self.shown(members).into_iter().map(Some).collect(), self.fact(members, None))
                }
            };
            most = most.max(live + fact.above.max(0));
            for (value, &bytes) in new.into_iter().zip(&fact.made) {
                if let Some(value) = value {
                    made[value as usize] = bytes;
                    live += bytes;
                }
            }
            most = most.max(live);
            for root in self.roots(unit) {
                if last[root as usize] == i {
                    live -= std::mem::take(&mut made[root as usize]);
                }
            }
        }
        most
    }
}
