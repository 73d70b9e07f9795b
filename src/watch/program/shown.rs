//! What a program says of itself: its values and steps, what they cost, and the memory that a run takes.

use super::act::Act;
use super::{Leaf, Program, Source};
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::tape::location::Location;
use crate::tensor::Tensor;
use crate::watch::script::View;

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Memory with this number ([`crate::array::buffer::Buffer::id`]), which every run finds again.
    Fixed(usize),
    /// The argument with this number.
    Argument(usize),
    /// The gradient that the leaf with this number has before.
    Gradient(usize),
    /// A step makes it.
    Step,
    /// A view of the value with this number.
    Within(u32),
}

/// A value of a program.
pub struct Shown {
    /// What it is.
    pub kind: Kind,
    /// Its shape.
    pub shape: Shape,
    /// Its dtype.
    pub dtype: DType,
}

/// A step of a program.
pub struct ShownStep {
    /// `run`, `write`, `group`, `copy`, `gradient`, `call` or `look`.
    pub kind: &'static str,
    /// The operations: one, those of a group, or none.
    pub names: Vec<&'static str>,
    /// The values that it reads.
    pub inputs: Vec<u32>,
    /// The values that it makes or writes; none for an output that is a view of an input.
    pub outputs: Vec<Option<u32>>,
    /// Which leaf or function of the host.
    pub number: usize,
    /// What a look must find.
    pub value: f64,
    /// Whether it draws random numbers.
    pub draws: bool,
    /// The line of the user's program.
    pub place: Option<Location>,
    /// The number of the module that ran it, or whose backward it is.
    pub scope: u32,
    /// Floating point operations.
    pub flops: u64,
    /// Bytes of the distinct elements that it reads and writes.
    pub traffic: (u64, u64),
}

/// The host memory that a run takes.
pub struct Memory {
    /// The most bytes that tensors hold beyond what they held before it.
    pub peak: i64,
    /// The step that takes them, if any takes some.
    pub at: Option<usize>,
    /// What is held after each step.
    pub after: Vec<i64>,
}

/// Bytes of the distinct elements of an array.
fn bytes(view: &View) -> u64 {
    let distinct = view.shape.iter().zip(&view.strides).filter(|(_, stride)| **stride != 0);
    distinct.map(|(length, _)| length as u64).product::<u64>()
        * view.dtype.size() as u64
        * u64::from(view.shape.numel() > 0)
}

impl Program {
    /// The values, in the order of their numbers.
    pub fn shown_values(&self) -> Vec<Shown> {
        let shown = |value: &super::Value| {
            let kind = match &value.source {
                Source::Fixed(array) | Source::Constant(array) => Kind::Fixed(array.buffer().id()),
                Source::Argument(i) => Kind::Argument(*i),
                Source::Gradient(leaf, _) => Kind::Gradient(*leaf),
                Source::Step => Kind::Step,
                Source::Within(base) => Kind::Within(*base),
            };
            Shown { kind, shape: value.view.shape, dtype: value.view.dtype }
        };
        self.values.iter().map(shown).collect()
    }

    /// The steps, in order.
    pub fn shown_steps(&self) -> Vec<ShownStep> {
        self.steps.iter().enumerate().map(|(i, step)| self.shown_step(i, &step.act)).collect()
    }

    /// The values that are returned.
    pub fn shown_outputs(&self) -> Vec<u32> {
        self.outputs.clone()
    }

    /// The sequence numbers of the leaves whose gradients it reads or changes; none for one that is gone.
    pub fn shown_leaves(&self) -> Vec<Option<u64>> {
        self.leaves.iter().map(|leaf| leaf.node.upgrade().map(|node| node.seq)).collect()
    }

    fn shown_step(&self, i: usize, act: &Act) -> ShownStep {
        let fact = &self.steps[i].fact;
        let mut step = ShownStep {
            kind: "run",
            names: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            number: 0,
            value: 0.0,
            draws: false,
            place: fact.place,
            scope: fact.scope,
            flops: fact.flops,
            traffic: (0, 0),
        };
        let view = |value: u32| &self.values[value as usize].view;
        match act {
            Act::Run { op, inputs, outputs, draw } => {
                (step.names, step.draws) = (vec![op.name()], draw.is_some());
                (step.inputs, step.outputs) = (inputs.to_vec(), outputs.to_vec());
            }
            Act::Write { op, inputs, outputs, draw, .. } => {
                (step.kind, step.names, step.draws) = ("write", vec![op.name()], draw.is_some());
                (step.inputs, step.outputs) = (inputs.to_vec(), outputs.iter().copied().map(Some).collect());
            }
            Act::Group(group) => {
                (step.kind, step.names) = ("group", group.ops.iter().map(|op| op.name()).collect());
                step.inputs = group.inputs.to_vec();
                step.outputs = group.outputs.iter().copied().map(Some).collect();
            }
            Act::Copy { to, .. } => {
                (step.kind, step.outputs) = ("copy", vec![Some(*to)]);
                step.traffic.0 = bytes(view(*to));
            }
            Act::Gradient { leaf, value } => {
                (step.kind, step.number, step.inputs) = ("gradient", *leaf, value.iter().copied().collect());
                return step;
            }
            Act::Call(number) => (step.kind, step.number) = ("call", *number),
            Act::Look { at, value } => {
                (step.kind, step.inputs, step.value) = ("look", vec![*at], *value);
            }
        }
        step.traffic.0 += step.inputs.iter().map(|&value| bytes(view(value))).sum::<u64>();
        step.traffic.1 = step.outputs.iter().flatten().map(|&value| bytes(view(value))).sum();
        step
    }

    /// The memory that a run takes beyond what tensors hold now, from the lifetimes of the values: every
    /// array is dropped after its last reader, and a gradient that is replaced or dropped is free, unless
    /// somebody else holds it.
    pub fn memory(&self) -> Memory {
        let mut walk = Walk::new(self);
        let mut memory = Memory { peak: 0, at: None, after: Vec::with_capacity(self.steps.len()) };
        for i in 0..self.steps.len() {
            let high = walk.step(i);
            if high > memory.peak {
                (memory.peak, memory.at) = (high, Some(i));
            }
            memory.after.push(walk.live);
        }
        memory
    }
}

/// Memory whose lifetime is followed: its bytes, and how many places hold it.
#[derive(Clone, Copy)]
struct Held {
    bytes: i64,
    holders: u32,
}

/// A walk through the steps of a program.
struct Walk<'a> {
    program: &'a Program,
    live: i64,
    held: Vec<Held>,
    /// Which of them a value holds, and the gradient of a leaf.
    of_value: Vec<Option<usize>>,
    of_leaf: Vec<Option<usize>>,
    /// Gradients that were dropped before the last look, which may give them back.
    cleared: Vec<usize>,
}

impl Walk<'_> {
    fn new(program: &Program) -> Walk<'_> {
        let (values, leaves) = (vec![None; program.values.len()], vec![None; program.leaves.len()]);
        let mut walk = Walk {
            program,
            live: 0,
            held: Vec::new(),
            of_value: values,
            of_leaf: leaves,
            cleared: Vec::new(),
        };
        for (leaf, Leaf { node, .. }) in program.leaves.iter().enumerate() {
            let Some(node) = node.upgrade() else { continue };
            let Some(slot) = node.grad() else { continue };
            if let Some(Tensor::Array(array)) = &*slot
                && array.buffer().is_unique()
            {
                walk.of_leaf[leaf] = Some(walk.held.len());
                walk.held.push(Held { bytes: array.buffer().bytes() as i64, holders: 1 });
            }
        }
        for (i, value) in program.values.iter().enumerate() {
            if let Source::Gradient(leaf, true) = value.source
                && let Some(held) = walk.of_leaf[leaf]
            {
                walk.held[held].holders += 1;
                walk.of_value[i] = Some(held);
            }
            if let Some(donation) = program.donation(i as u32) {
                // It counts as held before the run.
                walk.make(i as u32, donation.bytes);
                walk.live -= donation.bytes;
            }
        }
        walk
    }

    fn make(&mut self, value: u32, bytes: i64) {
        self.of_value[value as usize] = Some(self.held.len());
        self.held.push(Held { bytes, holders: 1 });
        self.live += bytes;
    }

    fn release(&mut self, held: usize) {
        let memory = &mut self.held[held];
        memory.holders -= 1;
        if memory.holders == 0 {
            self.live -= memory.bytes;
        }
    }

    /// Runs a step; the most bytes held meanwhile.
    fn step(&mut self, i: usize) -> i64 {
        let program = self.program;
        let fact = &program.steps[i].fact;
        let mut high = self.live + fact.above.max(0);
        match &program.steps[i].act {
            Act::Run { outputs, .. } => {
                for (value, &bytes) in outputs.iter().zip(&fact.made) {
                    if let Some(value) = value {
                        self.make(*value, bytes);
                    }
                }
            }
            Act::Group(group) => {
                group.outputs.iter().zip(&fact.made).for_each(|(&value, &bytes)| self.make(value, bytes));
            }
            Act::Copy { from, to } => self.make(*to, from.numel() as i64),
            Act::Gradient { leaf, value } => {
                let base = value.map(|value| program.base(value));
                let new = base.and_then(|base| self.of_value[base as usize]);
                new.into_iter().for_each(|held| self.held[held].holders += 1);
                let before = std::mem::replace(&mut self.of_leaf[*leaf], new);
                match before {
                    Some(before) if i < program.stops => self.cleared.push(before),
                    before => before.into_iter().for_each(|before| self.release(before)),
                }
            }
            Act::Write { outputs, .. }
                if i < program.stops && program.writes_outside(&program.steps[i].act) =>
            {
                let bytes = |&value: &u32| {
                    let view = &program.values[value as usize].view;
                    (view.shape.numel() * view.dtype.size()) as i64
                };
                let kept = outputs.iter().map(bytes).sum();
                self.cleared.push(self.held.len());
                self.held.push(Held { bytes: kept, holders: 1 });
                self.live += kept;
            }
            Act::Write { .. } | Act::Call(_) | Act::Look { .. } => {}
        }
        high = high.max(self.live);
        if i + 1 == program.stops {
            std::mem::take(&mut self.cleared).into_iter().for_each(|held| self.release(held));
            let done = program.steps[..i].iter().flat_map(|step| &step.done);
            done.for_each(|&value| self.drop_last_read(value));
        }
        for &value in program.steps[i].done.iter().filter(|&&value| program.is_dropped(i, value)) {
            self.drop_last_read(value);
        }
        high
    }

    /// Drops a value after its last reader.
    fn drop_last_read(&mut self, value: u32) {
        if let Some(held) = self.of_value[value as usize].take() {
            self.release(held);
        }
    }
}
