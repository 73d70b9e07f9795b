//! A script as a program: planned once, run many times with other arguments. The script is the trace of a
//! region, which is a call of a jitted function; the host is Python; a look is a guard.
//!
//! A run does what the region did, kernel by kernel and in its order, so its bits are those of the region.
//! What nobody reads is left out, as is what repeats a step before it, and every array is dropped after its
//! last reader. Arguments, the gradients that leaves have, the position of random numbers and what functions
//! of the host do are found anew at each run; all other memory is that of the region.

mod act;
mod backward;
mod calls;
mod donation;
mod groups;
mod needs;
mod plan;
mod run;
mod shown;
mod simplify;

use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::random;
use crate::op::Kernel;
use crate::tape::location::Location;
use crate::tape::node::Node;
use crate::watch::script::{MOST, Place, Script, Step, Touched, View};
use act::{Act, Draw, Planned};
pub use backward::{Recorded, recorded};
use calls::AfterCall;
pub use donation::Donation;
use needs::{is_inner, needed, outlasting, postpone, survivors, unwritten};
use plan::Plan;
use rustc_hash::FxHashSet;
pub use shown::{Kind, ShownStep};
use smallvec::SmallVec;
use std::sync::Weak;

/// Where a value of the program comes from.
#[derive(Clone)]
enum Source {
    /// Memory of the region.
    Fixed(Array),
    /// Memory of the region that nobody changes.
    Constant(Array),
    /// An argument.
    Argument(usize),
    /// The gradient of a leaf, and whether a step reads it.
    Gradient(usize, bool),
    /// A step makes it.
    Step,
    /// It lies in the memory of another value.
    Within(u32),
}

#[derive(Clone)]
struct Value {
    source: Source,
    view: View,
}

/// How a run ended.
pub enum Outcome {
    /// With these outputs.
    Done(Vec<Array>),
    /// An element that decided what followed, or the gradients, are not what they were; nothing has changed.
    Changed,
    /// An operation failed for the values that it met; nothing has changed. The function itself raises it.
    Failed,
}

/// A leaf whose gradient the program reads or changes.
#[derive(Clone)]
struct Leaf {
    node: Weak<Node>,
    /// Whether it has a gradient, if that matters.
    had: Option<bool>,
    /// Where that gradient lies.
    place: Place,
}

/// A region that can be run again.
#[derive(Clone)]
pub struct Program {
    steps: Vec<Planned>,
    values: Vec<Value>,
    outputs: Vec<u32>,
    leaves: Vec<Leaf>,
    /// The memory that the program finds as it was, by its numbers.
    found: FxHashSet<usize>,
    /// How many steps can be undone: all before the first that changes something outside, and those up to the
    /// last that may stop the run before the host is called.
    undone: usize,
    /// How many steps come before that one: what they change is kept meanwhile.
    stops: usize,
    /// How many numbers of the random stream a run takes before each call of the host, and after the last.
    draws: Vec<u64>,
    /// What calls of the host left, in order.
    calls: Vec<AfterCall>,
    /// The arguments whose memory a run gives up when it has read them last.
    pub donated: Vec<Donation>,
}

/// Why there is no program, and where.
pub type Refusal = (String, Option<Location>);

/// The value whose memory a value lies in.
fn within(values: &[Value], value: u32) -> u32 {
    match values[value as usize].source {
        Source::Within(base) => base,
        _ => value,
    }
}

/// Which segment of the stream begins last before this offset, and how long before it.
fn drawn(segments: &[u64], offset: u64) -> Option<Draw> {
    let segment = segments.iter().rposition(|&start| start <= offset)?;
    Some((segment, offset - segments[segment]))
}

impl Program {
    /// Plans the script of a region with these arguments and outputs, which handles errors itself if it
    /// `catches` them. Returns why not, if it did what another run would not repeat.
    pub fn new(
        mut script: Script, arguments: &[Array], outputs: &[Array], catches: bool, donated: Vec<Donation>,
    ) -> std::result::Result<Program, Refusal> {
        script.settle();
        let outputs: Vec<View> = outputs.iter().map(|y| script.view(y)).collect();
        let arguments: Vec<View> = arguments.iter().map(|x| script.view(x)).collect();
        Program::planned(script, arguments, outputs, catches, donated)
    }

    /// [`Program::new`] of views.
    fn planned(
        mut script: Script, arguments: Vec<View>, outputs: Vec<View>, catches: bool, donated: Vec<Donation>,
    ) -> std::result::Result<Program, Refusal> {
        if let Some(refusal) = script.refusal {
            return Err(refusal);
        }
        if script.memory.len() > MOST {
            return Err((format!("more than {MOST} pieces of memory"), None));
        }
        let (start, end) = (script.random, random::state());
        let mut last = start;
        for state in script.calls.iter().flat_map(|call| call.random).chain([end]) {
            if state.seed != start.seed || state.offset < last.offset {
                return Err(("a new seed of the random numbers".into(), None));
            }
            last = state;
        }
        let (mut segments, mut draws) = (vec![start.offset], Vec::new());
        postpone(&mut script);
        let outlasts = outlasting(&script, &outputs);
        let own = script.own_gradients();
        survivors(&script, &outlasts, &own)?;
        let needed = needed(&script, outlasts.clone());
        let inner: Vec<bool> = script.memory.iter().map(is_inner).collect();
        let stays = unwritten(&script, &outlasts);
        let mut plan = Plan::new(script.memory);
        let before = script.leaves.iter().filter_map(|leaf| leaf.before.as_ref());
        arguments.iter().chain(before).for_each(|view| {
            plan.value(view);
        });
        let mut steps = plan.copies(&outlasts)?;
        let mut called = false;
        let all = script.steps.into_iter().zip(needed).enumerate();
        for (i, (step, _)) in all.filter(|(_, (_, needed))| *needed) {
            let fact = script.facts.remove(&i).unwrap_or_default();
            let act = match step {
                Step::Ran { mut op, inputs, outputs, into } => {
                    let state = op.random_state().map(|state| *state);
                    if state.is_some_and(|state| state.seed != start.seed) {
                        return Err(("a generator of the program's own".into(), None));
                    }
                    // Its error is raised by the function itself, run as Python.
                    if catches && called && op.may_fail() {
                        let what = format!(
                            "{}, which may fail, after a call such as the step of an optimiser, in a \
                             function that handles errors",
                            op.name()
                        );
                        return Err((what, fact.place));
                    }
                    let draw = state.and_then(|state| drawn(&segments, state.offset));
                    if state.is_some() != draw.is_some() {
                        return Err(("random numbers from before".into(), None));
                    }
                    let inputs: SmallVec<[u32; 4]> = inputs.iter().map(|view| plan.value(view)).collect();
                    if into {
                        let shown = outputs.iter().any(|view| !inner[view.memory] || outlasts[view.memory]);
                        let outputs = outputs.iter().map(|view| plan.value(view)).collect();
                        Act::Write { op, inputs, outputs, draw, shown }
                    } else {
                        let outputs: SmallVec<[Option<u32>; 1]> =
                            outputs.iter().map(|view| plan.made(view)).collect();
                        let is_view = outputs.iter().all(Option::is_none);
                        let mut folds = || draw.is_none() && plan.folds(&op, &inputs, &outputs, &stays);
                        if !op.may_fail() && (is_view || folds()) {
                            continue;
                        }
                        Act::Run { op, inputs, outputs, draw }
                    }
                }
                Step::Gradient { leaf, value } => {
                    Act::Gradient { leaf, value: value.map(|view| plan.value(&view)) }
                }
                Step::Called(number) => {
                    let [before, after] = script.calls[number].random;
                    draws.push(before.offset - segments[number]);
                    segments.push(after.offset);
                    called = true;
                    Act::Call(number)
                }
                Step::Looked { at, value } => {
                    if called {
                        let what = "a value that is looked at after a call such as the step of an optimiser; \
                                    look before it";
                        return Err((what.into(), fact.place));
                    }
                    Act::Look { at: plan.value(&at), value }
                }
            };
            steps.push(Planned::new(act, fact));
        }
        let outputs: Vec<u32> = outputs.iter().map(|view| plan.value(view)).collect();
        let leaf = |leaf: &Touched| Leaf { node: leaf.node.clone(), had: leaf.had, place: leaf.place };
        let leaves = script.leaves.iter().map(leaf).collect();
        draws.push(end.offset - segments[draws.len()]);
        let values = plan.values;
        let fixed = |value: &Value| match &value.source {
            Source::Fixed(array) | Source::Constant(array) => Some(array.buffer().id()),
            _ => None,
        };
        let found = values.iter().filter_map(fixed).collect();
        let (undone, stops, calls) = (0, 0, Vec::new());
        let program = Program { steps, values, outputs, leaves, found, undone, stops, draws, calls, donated };
        // A step that may fail keeps its place where the function handles errors.
        let devices = (!catches).then_some(script.devices);
        let mut program = program.simplified(|program| program.arranged(devices.as_deref()));
        program.calls = program.after_calls(script.calls);
        Ok(program)
    }

    /// The program with groups, where the `devices` of its memory are given, and with what a run must know of
    /// its steps.
    fn arranged(mut self, devices: Option<&[Device]>) -> Program {
        if let Some(devices) = devices {
            let steps = std::mem::take(&mut self.steps);
            self.steps = groups::fuse(steps, &self.values, &self.outputs, devices, &self.given_up());
        }
        self.find_undone();
        self.renumber();
        self.schedule();
        self
    }

    /// The value whose memory a value lies in.
    fn base(&self, value: u32) -> u32 {
        within(&self.values, value)
    }

    /// Whether a step writes to memory of outside.
    fn writes_outside(&self, act: &Act) -> bool {
        let outside = |&value: &u32| !matches!(self.values[self.base(value) as usize].source, Source::Step);
        matches!(act, Act::Write { outputs, .. } if outputs.iter().any(outside))
    }

    /// Finds which steps can be undone.
    fn find_undone(&mut self) {
        let is_call = |step: &Planned| matches!(step.act, Act::Call(_));
        let changes = |step: &Planned| {
            matches!(step.act, Act::Call(_) | Act::Gradient { .. }) || self.writes_outside(&step.act)
        };
        let may_stop = |step: &Planned| match &step.act {
            Act::Run { op, .. } | Act::Write { op, .. } => op.may_fail(),
            act => matches!(act, Act::Look { .. }),
        };
        let called = self.steps.iter().position(is_call).unwrap_or(self.steps.len());
        let changed = self.steps.iter().position(changes).unwrap_or(self.steps.len());
        self.stops = self.steps[..called].iter().rposition(may_stop).map_or(0, |last| last + 1);
        self.undone = changed.max(self.stops);
    }

    /// Forgets the values that no step names: those between the steps of a group.
    fn renumber(&mut self) {
        let gradient = |value: &Value| matches!(value.source, Source::Gradient(..));
        let mut kept: Vec<bool> = self.values.iter().map(gradient).collect();
        let named = self.steps.iter().flat_map(|step| step.act.reads().into_iter().chain(step.act.makes()));
        for value in named.chain(self.outputs.iter().copied()) {
            kept[value as usize] = true;
            if let Source::Within(base) = self.values[value as usize].source {
                kept[base as usize] = true;
            }
        }
        let mut count = 0;
        let number = |&kept: &bool| {
            count += u32::from(kept);
            count.wrapping_sub(1)
        };
        let numbers: Vec<u32> = kept.iter().map(number).collect();
        let mut keep = kept.into_iter();
        self.values.retain(|_| keep.next() == Some(true));
        let renumber = |value: &mut u32| *value = numbers[*value as usize];
        self.steps.iter_mut().for_each(|step| step.act.each_mut(renumber));
        self.outputs.iter_mut().for_each(renumber);
        for value in &mut self.values {
            if let Source::Within(base) = &mut value.source {
                renumber(base);
            }
        }
    }

    /// Computes which values each step is the last to read or make.
    fn schedule(&mut self) {
        let mut last = vec![None; self.values.len()];
        for (i, step) in self.steps.iter().enumerate() {
            let mut uses = step.act.reads();
            uses.extend(step.act.makes());
            for value in uses {
                last[value as usize] = Some(i);
                if let Source::Within(base) = self.values[value as usize].source {
                    last[base as usize] = Some(i);
                }
            }
        }
        let is_read: Vec<bool> = last.iter().map(Option::is_some).collect();
        for (value, is_read) in self.values.iter_mut().zip(is_read) {
            if let Source::Gradient(_, read) = &mut value.source {
                *read = is_read;
            }
        }
        for &value in &self.outputs {
            let base = self.base(value);
            for kept in [value, base] {
                last[kept as usize] = None;
                if let Source::Gradient(_, read) = &mut self.values[kept as usize].source {
                    *read = true;
                }
            }
        }
        for (value, step) in last.iter().enumerate() {
            if let Some(step) = *step {
                self.steps[step].done.push(value as u32);
            }
        }
    }

    /// The names of the operations of each group, in order.
    pub fn groups(&self) -> Vec<Vec<&'static str>> {
        let ops = |step: &Planned| match &step.act {
            Act::Group(group) => Some(group.ops.iter().map(|op| op.name()).collect()),
            _ => None,
        };
        self.steps.iter().filter_map(ops).collect()
    }

    /// The names of the operations, in order.
    pub fn names(&self) -> Vec<&'static str> {
        let ops = |step: &Planned| match &step.act {
            Act::Run { op, .. } | Act::Write { op, .. } => vec![op.name()],
            Act::Group(group) => group.ops.iter().map(|op| op.name()).collect(),
            _ => Vec::new(),
        };
        self.steps.iter().flat_map(ops).collect()
    }
}
