//! What a program does, step by step.

use super::groups::Group;
use crate::array::Array;
use crate::op::Op;
use crate::watch::script::Fact;
use smallvec::{SmallVec, smallvec};

/// Where an operation reads random numbers: in which segment of the stream, between calls of the host, and
/// how many numbers after its start.
pub type Draw = (usize, u64);

/// A step.
#[derive(Clone)]
pub enum Act {
    /// Runs an operation; an output that lies in an input is none of its own.
    Run { op: Box<Op>, inputs: SmallVec<[u32; 4]>, outputs: SmallVec<[Option<u32>; 1]>, draw: Option<Draw> },
    /// Runs it and writes what exists; `shown` if others than the program see that memory.
    Write {
        op: Box<Op>,
        inputs: SmallVec<[u32; 4]>,
        outputs: SmallVec<[u32; 2]>,
        draw: Option<Draw>,
        shown: bool,
    },
    /// Runs elementwise operations as one.
    Group(Box<Group>),
    /// Copies memory that was made by no operation, as a run begins.
    Copy { from: Array, to: u32 },
    /// Drops the gradient of a leaf, or replaces it.
    Gradient { leaf: usize, value: Option<u32> },
    /// Calls a function of the host.
    Call(usize),
    /// Goes on if this element is what it was.
    Look { at: u32, value: f64 },
}

impl Act {
    /// The values that it reads or changes.
    pub fn reads(&self) -> SmallVec<[u32; 8]> {
        match self {
            Act::Run { inputs, .. } => inputs.iter().copied().collect(),
            Act::Write { inputs, outputs, .. } => {
                let changed = outputs.iter().filter(|value| !inputs.contains(value));
                inputs.iter().chain(changed).copied().collect()
            }
            Act::Group(group) => group.inputs.iter().copied().collect(),
            Act::Gradient { value, .. } => value.iter().copied().collect(),
            Act::Look { at, .. } => smallvec![*at],
            Act::Copy { .. } | Act::Call(_) => SmallVec::new(),
        }
    }

    /// The values that it makes.
    pub fn makes(&self) -> SmallVec<[u32; 8]> {
        match self {
            Act::Run { outputs, .. } => outputs.iter().flatten().copied().collect(),
            Act::Group(group) => group.outputs.iter().copied().collect(),
            Act::Copy { to, .. } => smallvec![*to],
            _ => SmallVec::new(),
        }
    }

    /// Does something with every value that it names.
    pub fn each_mut(&mut self, mut f: impl FnMut(&mut u32)) {
        match self {
            Act::Run { inputs, outputs, .. } => {
                inputs.iter_mut().for_each(&mut f);
                outputs.iter_mut().flatten().for_each(f);
            }
            Act::Write { inputs, outputs, .. } => inputs.iter_mut().chain(outputs).for_each(f),
            Act::Group(group) => group.inputs.iter_mut().chain(&mut group.outputs).for_each(f),
            Act::Gradient { value, .. } => value.iter_mut().for_each(f),
            Act::Look { at, .. } => f(at),
            Act::Copy { to, .. } => f(to),
            Act::Call(_) => {}
        }
    }

    /// Where it reads random numbers, if it does.
    pub fn draw(&self) -> Option<Draw> {
        match self {
            Act::Run { draw, .. } | Act::Write { draw, .. } => *draw,
            _ => None,
        }
    }
}

/// A step in its place.
#[derive(Clone)]
pub struct Planned {
    pub act: Act,
    /// What is known of it beside.
    pub fact: Fact,
    /// The values that nobody reads afterwards.
    pub done: SmallVec<[u32; 2]>,
}

impl Planned {
    /// A step before its place is known.
    pub fn new(act: Act, fact: Fact) -> Planned {
        Planned { act, fact, done: SmallVec::new() }
    }
}
