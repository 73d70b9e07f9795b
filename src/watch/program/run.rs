//! Running a program.

use super::act::{Act, Draw};
use super::donation::Part;
use super::{Leaf, Outcome, Program, Source, Value};
use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::random::{self, State};
use crate::device::{merging, on_device};
use crate::error::{Error, Kind, Result};
use crate::interp::eval;
use crate::op::{Kernel, Op};
use crate::process::interrupt::InterruptBudget;
use crate::tape::node::Node;
use crate::tape::saving;
use crate::tensor::Tensor;
use crate::watch::script::{Place, View};
use smallvec::SmallVec;
use std::sync::Arc;

impl Program {
    /// Runs all steps. `call` calls a function of the host. Donated arguments whose memory the run
    /// has given up are empty afterwards: all that it reads if it is done, maybe some after an error.
    ///
    /// # Errors
    /// Those of the operations (memory that cannot be had, an interrupt) and of the functions.
    pub fn run(&self, arguments: &mut [Array], call: &mut dyn FnMut(usize) -> Result<()>) -> Result<Outcome> {
        merging(|| self.run_steps(arguments, call))
    }

    fn run_steps(
        &self, arguments: &mut [Array], call: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Outcome> {
        let slots = vec![None; self.values.len()];
        let (nodes, parts) = (SmallVec::new(), Vec::new());
        let mut run = Run { program: self, arguments, slots, parts, nodes, undo: Vec::new() };
        if !run.begins()? {
            return Ok(Outcome::Changed);
        }
        run.take_donated()?;
        let outcome = self.run_begun(&mut run, call);
        if !matches!(outcome, Ok(Outcome::Done(_))) {
            run.return_donated()?;
        }
        outcome
    }

    fn run_begun(&self, run: &mut Run, call: &mut dyn FnMut(usize) -> Result<()>) -> Result<Outcome> {
        let take = |draws: u64| if draws > 0 { random::take(draws) } else { State { seed: 0, offset: 0 } };
        let mut draws = self.draws.iter().copied();
        let before = take(draws.next().unwrap_or(0));
        // Where the segments of the stream begin.
        let mut starts = SmallVec::<[State; 4]>::from_slice(&[before]);
        let mut interrupts = InterruptBudget::default();
        for (i, step) in self.steps.iter().enumerate() {
            match run.step(&step.act, i < self.stops, &starts, call, &mut interrupts) {
                Ok(true) => {}
                stopped => {
                    let undone = i < self.undone;
                    if undone {
                        run.restore()?;
                        random::give_back(before, self.draws.first().copied().unwrap_or(0));
                    } else {
                        self.give_back_undrawn(i, &starts);
                    }
                    return match stopped {
                        // The function itself raises it, or handles it.
                        Err(error) if undone && is_of_values(&error) => Ok(Outcome::Failed),
                        stopped => stopped.map(|_| Outcome::Changed),
                    };
                }
            }
            if i + 1 == self.stops {
                run.undo.clear();
                run.drop_kept(i);
            }
            if let Act::Call(_) = step.act {
                starts.push(take(draws.next().unwrap_or(0)));
            }
            for &value in &step.done {
                if self.is_dropped(i, value) {
                    run.slots[value as usize] = None;
                }
            }
        }
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for &value in &self.outputs {
            run.build(value)?;
            outputs.push(run.get(value)?.clone());
        }
        Ok(Outcome::Done(outputs))
    }
}

impl Program {
    /// Gives the random numbers back that steps from `i` on would have drawn from the last segment.
    fn give_back_undrawn(&self, i: usize, starts: &[State]) {
        let segment = starts.len() - 1;
        let draws = self.steps[i..].iter().filter_map(|step| step.act.draw());
        let first = draws.filter(|draw| draw.0 == segment).map(|draw| draw.1).min();
        if let (Some(first), Some(all)) = (first, self.draws.get(segment)) {
            let State { seed, offset } = starts[segment];
            random::give_back(State { seed, offset: offset.wrapping_add(first) }, all.saturating_sub(first));
        }
    }
}

/// What a run changed outside, as it was before.
enum Undo {
    /// The gradient of this leaf.
    Gradient(usize, Option<Tensor>),
    /// What this memory held, and its version.
    Memory { place: Array, held: Array, version: u32 },
}

/// A run of a program.
pub(super) struct Run<'a> {
    pub(super) program: &'a Program,
    pub(super) arguments: &'a mut [Array],
    pub(super) slots: Vec<Option<Array>>,
    /// Arguments that the program owns, in the memory of others.
    pub(super) parts: Vec<Part>,
    /// The leaves, until the host is called: walks count the references to them.
    nodes: SmallVec<[Arc<Node>; 16]>,
    /// What was changed before the last step that may stop the run.
    undo: Vec<Undo>,
}

impl Run<'_> {
    /// Finds the gradients; whether they are where they were, and arguments lie as they lay and elsewhere.
    fn begins(&mut self) -> Result<bool> {
        let Program { leaves, values, found, .. } = self.program;
        // The memory of the gradient of each leaf, and of those gradients that nothing else names.
        let (mut all, mut own) = (SmallVec::<[usize; 16]>::new(), SmallVec::<[usize; 16]>::new());
        for Leaf { node, had, place } in leaves {
            let Some(node) = node.upgrade() else { return Ok(false) };
            let (has, memory) = match node.grad().as_ref().and_then(|slot| slot.as_ref()) {
                Some(slot) => (true, slot.concrete().map_or(0, |x| x.buffer().id())),
                None => (false, 0),
            };
            self.nodes.push(node);
            if had.is_some_and(|had| had != has) {
                return Ok(false);
            }
            all.push(memory);
            // One that is dropped before anything reads it may lie anywhere.
            if had.is_none() || memory == 0 {
                continue;
            }
            let fits = match *place {
                Place::Found(found) => found == memory,
                Place::With(leaf) => all.get(leaf) == Some(&memory),
                Place::Own => {
                    own.push(memory);
                    !found.contains(&memory)
                }
            };
            if !fits {
                return Ok(false);
            }
        }
        own.sort_unstable();
        if own.windows(2).any(|pair| pair[0] == pair[1])
            || self.arguments.iter().any(|x| all.contains(&x.buffer().id()))
        {
            return Ok(false);
        }
        for (i, Value { source, view }) in values.iter().enumerate() {
            let fits = match *source {
                // What a key said of it was before other code ran.
                Source::Argument(k) => self.arguments.get(k).is_some_and(|x| lies_alike(x, view)),
                Source::Within(base) => self.place(base, view).is_none_or(|place| place.is_some()),
                Source::Gradient(leaf, is_read) => {
                    match self.nodes[leaf].grad().as_ref().and_then(|slot| slot.as_ref()) {
                        Some(Tensor::Array(array)) if lies_alike(array, view) => {
                            // Held only for those who read it: the program may drop it early.
                            self.slots[i] = is_read.then(|| array.clone());
                            true
                        }
                        // It is dropped before anything reads it.
                        _ => leaves[leaf].had.is_none(),
                    }
                }
                _ => true,
            };
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs one step, whether or not one that `may_stop` the run follows; whether to go on.
    fn step(
        &mut self, act: &Act, may_stop: bool, starts: &[State], call: &mut dyn FnMut(usize) -> Result<()>,
        interrupts: &mut InterruptBudget,
    ) -> Result<bool> {
        match act {
            Act::Run { op, inputs, outputs, draw } => {
                inputs.iter().try_for_each(|&value| self.build(value))?;
                let made = {
                    let x: SmallVec<[&Array; 4]> =
                        inputs.iter().map(|&value| self.get(value)).collect::<Result<_>>()?;
                    match draw {
                        None => op.eval(&x)?,
                        Some(draw) => at(op, starts, *draw).eval(&x)?,
                    }
                };
                for (value, y) in outputs.iter().zip(made) {
                    interrupts.spend(y.numel())?;
                    if let Some(value) = value {
                        self.slots[*value as usize] = Some(y);
                    }
                }
            }
            Act::Write { op, inputs, outputs, draw, shown } => {
                inputs.iter().chain(outputs).try_for_each(|&value| self.build(value))?;
                if may_stop && self.program.writes_outside(act) {
                    self.keep(outputs)?;
                }
                let x: SmallVec<[&Array; 4]> =
                    inputs.iter().map(|&value| self.get(value)).collect::<Result<_>>()?;
                let out: SmallVec<[&Array; 4]> =
                    outputs.iter().map(|&value| self.get(value)).collect::<Result<_>>()?;
                if *shown {
                    out.iter().copied().try_for_each(saving::before_write)?;
                }
                match draw {
                    None => op.eval_into(&x, &out)?,
                    Some(draw) => at(op, starts, *draw).eval_into(&x, &out)?,
                }
                for y in &out {
                    interrupts.spend(y.numel())?;
                    if *shown {
                        y.buffer().written_by(op.name());
                    }
                }
            }
            Act::Group(group) => {
                group.inputs.iter().try_for_each(|&value| self.build(value))?;
                let mut made = SmallVec::<[Array; 4]>::new();
                let stored = group.outputs.len() - usize::from(group.fold.is_some());
                for &value in &group.outputs[..stored] {
                    made.push(fresh(&self.program.values[value as usize].view, group.device)?);
                }
                let folded = {
                    let mut x = SmallVec::<[&Array; 8]>::new();
                    for &value in &group.inputs {
                        x.push(self.get(value)?);
                    }
                    let y: SmallVec<[&Array; 4]> = made.iter().collect();
                    // SAFETY: the layouts are those of the plan, which `Group` was made for; outputs are new.
                    unsafe { group.run(&x, &y)? }
                };
                made.extend(folded);
                for (&value, y) in group.outputs.iter().zip(made) {
                    interrupts.spend(y.numel())?;
                    self.slots[value as usize] = Some(y);
                }
            }
            Act::Gradient { leaf, value } => {
                let new = match value {
                    Some(value) => {
                        self.build(*value)?;
                        Some(Tensor::Array(self.get(*value)?.clone()))
                    }
                    None => None,
                };
                let put = |node: &Arc<Node>| Some(std::mem::replace(&mut *node.grad()?, new));
                let before = match self.nodes.get(*leaf) {
                    Some(node) => put(node),
                    None => self.program.leaves[*leaf].node.upgrade().as_ref().and_then(put),
                };
                if let Some(before) = before.filter(|_| may_stop) {
                    self.undo.push(Undo::Gradient(*leaf, before));
                }
            }
            Act::Copy { from, to } => self.slots[*to as usize] = Some(eval::copied(from)?),
            Act::Call(number) => {
                self.nodes.clear();
                call(*number)?;
            }
            Act::Look { at, value } => {
                self.build(*at)?;
                return Ok(element(self.get(*at)?)? == *value);
            }
        }
        Ok(true)
    }

    /// Copies what is about to be written.
    fn keep(&mut self, outputs: &[u32]) -> Result<()> {
        for &value in outputs {
            let place = self.get(value)?.clone();
            let (held, version) = (eval::copied(&place)?, place.buffer().root_version());
            self.undo.push(Undo::Memory { place, held, version });
        }
        Ok(())
    }

    /// Makes everything what it was.
    fn restore(&mut self) -> Result<()> {
        for change in self.undo.drain(..).rev() {
            match change {
                Undo::Gradient(leaf, before) => {
                    if let Some(node) = self.program.leaves[leaf].node.upgrade()
                        && let Some(mut slot) = node.grad()
                    {
                        *slot = before;
                    }
                }
                Undo::Memory { place, held, version } => {
                    on_device!(place, copy::copy_into(&place, &held))?;
                    place.buffer().restore_version(version);
                }
            }
        }
        Ok(())
    }

    fn get(&self, value: u32) -> Result<&Array> {
        match (&self.program.values[value as usize].source, &self.slots[value as usize]) {
            (Source::Fixed(array) | Source::Constant(array), _) | (_, Some(array)) => Ok(array),
            (Source::Argument(i), None) => self.arguments.get(*i).ok_or_else(absent),
            _ => Err(absent()),
        }
    }

    /// Where a view begins that lies in the memory of a value, in its own elements; the outer `None` if that
    /// value is not there yet, the inner one between two elements.
    fn place(&self, base: u32, view: &View) -> Option<Option<usize>> {
        let whole = self.get(base).ok()?;
        let start = &self.program.values[base as usize].view;
        let bytes = (whole.offset() as isize - start.offset as isize) * start.dtype.size() as isize
            + (view.offset * view.dtype.size()) as isize;
        let size = view.dtype.size() as isize;
        Some((bytes >= 0 && bytes % size == 0).then_some((bytes / size) as usize))
    }

    /// Makes a value that lies in the memory of another.
    fn build(&mut self, value: u32) -> Result<()> {
        let Value { source, view } = &self.program.values[value as usize];
        if let Source::Within(base) = source
            && self.slots[value as usize].is_none()
        {
            let whole = self.get(*base)?;
            let offset = self.place(*base, view).flatten().ok_or_else(absent)?;
            let part = Array::strided(whole.buffer().clone(), view.shape, &view.strides, offset, view.dtype)?;
            self.slots[value as usize] = Some(part);
        }
        Ok(())
    }
}

/// New memory with the layout of a view, which is contiguous.
fn fresh(view: &View, device: Device) -> Result<Array> {
    let new = Array::empty(view.shape, view.dtype, device)?;
    if lies_alike(&new, view) {
        return Ok(new);
    }
    // An axis of one element has the stride that it had.
    Array::strided(new.buffer().clone(), view.shape, &view.strides, 0, view.dtype)
}

/// Whether an error comes of the values that an operation met.
fn is_of_values(error: &Error) -> bool {
    matches!(error.kind(), Kind::Value | Kind::ZeroDivision | Kind::Index | Kind::LinAlg)
}

/// Whether an array has the layout of a view.
fn lies_alike(array: &Array, view: &View) -> bool {
    array.shape() == view.shape
        && array.dtype() == view.dtype
        && view.strides.iter().enumerate().all(|(i, &stride)| array.stride(i) == stride)
}

/// The operation with the random numbers of `draw`, where segments begin at `starts`.
fn at(op: &Op, starts: &[State], (segment, draw): Draw) -> Op {
    let mut op = op.clone();
    let state = starts[segment];
    if let Some(own) = op.random_state() {
        *own = State { seed: state.seed, offset: state.offset.wrapping_add(draw) };
    }
    op
}

/// The one element of an array, on any device.
fn element(x: &Array) -> Result<f64> {
    Tensor::Array(x.clone()).item()
}

#[cold]
fn absent() -> Error {
    Error::value("internal: a program reads a value that is gone")
}
