//! Writes down every operation that runs on arrays, to be run again (`src/watch/program.rs`).
//!
//! A script holds what passed `bind` during a region, what became of the gradients of leaves, which elements
//! the program looked at, and which functions of the host it called. Memory is told apart by its address:
//! whatever reads or writes a parameter, a buffer of a layer or a closed-over tensor names its memory, so
//! nothing of a program's state need be declared. Writing is a mode of a thread (`Modes::SCRIPT`); without
//! it, nothing of this file runs.

mod facts;
mod kept;
mod notes;
mod parts;

pub use facts::{Fact, Measure};
use kept::Kept;
pub use kept::{added_to, keep, replaced, undo};
pub use notes::{
    INSTEAD, before_write, begin, called, cleared, derived, end, idled, is_on, left, ran, refuse, refuse_at,
    refuse_of_argument, returned, touched, whole, wrote,
};
pub use parts::{
    Along, Part, Pulled, Rows, begin_part, end_part, first_node, is_cotangent, is_kept_elsewhere, pulled,
    selected,
};

use crate::array::Array;
use crate::array::buffer::{Buffer, Device, released};
use crate::array::dtype::DType;
use crate::array::random::{self, State};
use crate::array::shape::Shape;
use crate::error::{Error, Result};
use crate::op::{Kernel, Op};
use crate::tape::location::{self, Location};
use crate::tape::node::Node;
use crate::tensor::Tensor;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

/// Memory made during a script begins with a version of its own, a multiple of this: it tells the memory from
/// other memory at the same address, before or after it.
const VERSIONS: u32 = 1 << 12;

/// So much memory has versions of its own.
pub const MOST: usize = u32::MAX as usize / VERSIONS as usize;

/// How an array lies in the memory with this number.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct View {
    /// The memory.
    pub memory: usize,
    /// Shape, strides, first element and dtype of the array.
    pub shape: Shape,
    /// In elements.
    pub strides: SmallVec<[isize; 4]>,
    /// In elements.
    pub offset: usize,
    /// Of the elements.
    pub dtype: DType,
}

/// What a region did.
#[derive(Clone)]
pub enum Step {
    /// An operation ran. If `into`, its outputs were written into memory that existed.
    Ran { op: Box<Op>, inputs: Vec<View>, outputs: Vec<View>, into: bool },
    /// The gradient of the leaf with this number was dropped, or replaced by an array.
    Gradient { leaf: usize, value: Option<View> },
    /// A function of the host was called, with this number.
    Called(usize),
    /// The program looked at an element, whose value decided what followed.
    Looked { at: View, value: f64 },
}

/// Where memory of a script comes from.
#[derive(Clone)]
pub enum Origin {
    /// It existed before. It lives as long as the script.
    Outside(Buffer),
    /// It was made by no operation: a number, data from outside. Beside it what it held before the region
    /// wrote to it, as bytes, if it did.
    Constant(Buffer, Option<Array>),
    /// The argument with this number.
    Argument(usize),
    /// The gradient that the leaf with this number had before the region.
    Gradient(usize),
    /// An operation made it; whether it is still there.
    Made(bool),
}

/// What a function of the host left.
pub struct Called {
    /// Where the stream of random numbers was before and after the call.
    pub random: [State; 2],
    /// Which of the leaves that were touched before had a gradient afterwards.
    pub gradients: Vec<bool>,
}

/// Where the gradient of a leaf lay before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In memory that nothing else in the region names.
    Own,
    /// In the memory with this number of its buffer, which the region finds elsewhere.
    Found(usize),
    /// In that of the gradient of the leaf with this number.
    With(usize),
}

/// A leaf whose gradient the region read or changed.
pub struct Touched {
    /// The leaf.
    pub node: Weak<Node>,
    /// Whether it had a gradient before, if that mattered.
    pub had: Option<bool>,
    /// That gradient, if it lay in memory of its own.
    pub before: Option<View>,
    /// Where it lay.
    pub place: Place,
    /// The gradient as the steps so far leave it; the outer `None` is that of before.
    now: Option<Option<View>>,
}

/// The operations of a region, in the order in which they ran.
pub struct Script {
    /// What happened, in order.
    pub steps: Vec<Step>,
    /// What is known of a step beside, by its number.
    pub facts: FxHashMap<usize, Fact>,
    /// All memory that the steps read and wrote.
    pub memory: Vec<Origin>,
    /// Leaves in the order in which they were touched.
    pub leaves: Vec<Touched>,
    /// Leaves that the region made.
    own: Vec<Weak<Node>>,
    /// The number of the first node of the region.
    first: u64,
    /// Where the stream of random numbers was.
    pub random: State,
    /// Why the region cannot be run again, if so.
    pub refusal: Option<(String, Option<Location>)>,
    /// The device of each piece of memory.
    pub devices: Vec<Device>,
    /// The functions of the host that were called, in order.
    pub calls: Vec<Called>,
    /// The backward of the results, if they have a history.
    pub pulled: Option<Pulled>,
    /// Whether derivatives were taken with respect to tensors of before.
    pub derives: bool,
    /// Whether one that writes to memory of outside in other runs did not in this one.
    idle: bool,
    /// What the region changed outside, as it was.
    kept: Kept,
    /// The memory of the arguments, which is not released while others take its number.
    held: Vec<Buffer>,
    /// The number of the memory at an address, and the version in which it was last seen.
    known: FxHashMap<usize, (usize, u32)>,
}

impl Default for Script {
    fn default() -> Script {
        Script {
            steps: Vec::new(),
            facts: FxHashMap::default(),
            memory: Vec::new(),
            leaves: Vec::new(),
            own: Vec::new(),
            first: Node::next_seq(),
            random: random::state(),
            refusal: None,
            devices: Vec::new(),
            calls: Vec::new(),
            pulled: None,
            derives: false,
            idle: false,
            kept: Kept::default(),
            held: Vec::new(),
            known: FxHashMap::default(),
        }
    }
}

impl Script {
    /// Numbers memory.
    fn add(&mut self, x: &Array, origin: Origin) -> usize {
        let number = self.memory.len();
        self.known.insert(x.buffer().id(), (number, x.buffer().root_version()));
        self.memory.push(origin);
        self.devices.push(x.device());
        number
    }

    /// Numbers memory that an operation made.
    fn made(&mut self, y: &Array) {
        y.buffer().set_version((self.memory.len() as u32 + 1).wrapping_mul(VERSIONS));
        self.add(y, Origin::Made(true));
    }

    /// Forgets what lay at the addresses of released memory.
    fn forget_released(&mut self) {
        let Script { known, memory, .. } = self;
        released(|id| {
            if let Some((at, _)) = known.remove(&id)
                && let Origin::Made(alive) = &mut memory[at]
            {
                *alive = false;
            }
        });
    }

    fn views<'a>(&mut self, arrays: impl IntoIterator<Item = &'a Array>) -> Vec<View> {
        arrays.into_iter().map(|x| self.view(x)).collect()
    }

    /// How an array lies in memory.
    pub fn view(&mut self, x: &Array) -> View {
        let (id, version) = (x.buffer().id(), x.buffer().root_version());
        let seen = self.known.get_mut(&id).filter(|(memory, last)| {
            !matches!(self.memory[*memory], Origin::Made(_)) || version.wrapping_sub(*last) < VERSIONS
        });
        let memory = match seen {
            Some((memory, last)) => {
                *last = version;
                *memory
            }
            None => self.add(x, Origin::Constant(x.buffer().clone(), None)),
        };
        let strides = (0..x.rank()).map(|i| x.stride(i)).collect();
        View { memory, shape: x.shape(), strides, offset: x.offset(), dtype: x.dtype() }
    }

    /// Refuses work on memory of outside behind a call that was idle.
    fn check_idle(&mut self, inputs: &[View]) {
        let outside = |view: &View| matches!(self.memory[view.memory], Origin::Outside(_));
        if self.idle && self.refusal.is_none() && inputs.iter().any(outside) {
            let what = "work on parameters after a step that changed nothing, as it does in other calls";
            self.refusal = Some((what.into(), location::now()));
        }
    }

    /// The number of a leaf whose gradient is `slot`; none for one that the region made, which another run
    /// does not find.
    fn leaf(&mut self, node: &Arc<Node>, slot: &Option<Tensor>, matters: bool) -> Option<usize> {
        if node.seq >= self.first {
            self.own.push(Arc::downgrade(node));
            return None;
        }
        if let Some(known) = self.leaves.iter().position(|leaf| leaf.node.as_ptr() == Arc::as_ptr(node)) {
            return Some(known);
        }
        let leaf = self.leaves.len();
        let (mut before, mut place) = (None, Place::Own);
        match slot {
            Some(Tensor::Array(array)) if !self.known.contains_key(&array.buffer().id()) => {
                self.add(array, Origin::Gradient(leaf));
                before = Some(self.view(array));
            }
            Some(Tensor::Array(array)) => {
                let id = array.buffer().id();
                let known = self.known.get(&id).map(|&(memory, _)| &self.memory[memory]);
                place = match known {
                    Some(Origin::Gradient(of)) => Place::With(*of),
                    _ => Place::Found(id),
                };
            }
            Some(Tensor::Traced(_)) if matters => {
                self.refusal.get_or_insert(("a gradient with a history".into(), None));
            }
            _ => {}
        }
        let had = matters.then_some(slot.is_some());
        // No reference that would count as an edge: a walk stores a gradient once its last edge was followed.
        self.leaves.push(Touched { node: Arc::downgrade(node), had, before, place, now: None });
        Some(leaf)
    }

    /// The memory of the gradients of leaves that the region made.
    pub fn own_gradients(&mut self) -> Vec<usize> {
        let own = std::mem::take(&mut self.own);
        let slots = own.iter().filter_map(|node| node.upgrade()?.grad()?.as_ref()?.concrete().cloned());
        let arrays: Vec<Array> = slots.collect();
        self.views(&arrays).into_iter().map(|view| view.memory).collect()
    }

    /// Writes down what became of the gradients of leaves.
    pub fn settle(&mut self) {
        for leaf in 0..self.leaves.len() {
            let node = self.leaves[leaf].node.upgrade();
            let slot = node.and_then(|node| node.grad().and_then(|slot| slot.clone()));
            let value = match &slot {
                None => None,
                Some(Tensor::Array(array)) => Some(self.view(array)),
                Some(Tensor::Traced(_)) => {
                    self.refusal.get_or_insert(("a gradient with a history".into(), None));
                    continue;
                }
            };
            let untouched = self.leaves[leaf].now.is_none()
                && value.as_ref().map_or(
                    self.leaves[leaf].had == Some(false),
                    |view| matches!(self.memory[view.memory], Origin::Gradient(of) if of == leaf),
                );
            if untouched || self.leaves[leaf].now.as_ref() == Some(&value) {
                continue;
            }
            self.leaves[leaf].now = Some(value.clone());
            self.steps.push(Step::Gradient { leaf, value });
        }
    }

    /// The names of the operations, in order.
    pub fn names(&self) -> Vec<&'static str> {
        let name = |step: &Step| if let Step::Ran { op, .. } = step { Some(op.name()) } else { None };
        self.steps.iter().filter_map(name).collect()
    }

    /// Runs all operations again on the memory that they read and wrote, each after `change` edited a copy.
    pub fn run(&self, change: impl Fn(&mut Op)) -> Result<()> {
        let kept = |origin: &Origin| match origin {
            Origin::Outside(buffer) | Origin::Constant(buffer, _) => Some(buffer.clone()),
            _ => None,
        };
        let mut memory: Vec<Option<Buffer>> = self.memory.iter().map(kept).collect();
        let arrays = |memory: &[Option<Buffer>], views: &[View]| -> Result<Vec<Array>> {
            views.iter().map(|view| view.of(memory)).collect()
        };
        for step in &self.steps {
            let Step::Ran { op, inputs, outputs, into } = step else { continue };
            let (mut op, x) = (op.clone(), arrays(&memory, inputs)?);
            change(&mut op);
            let x: Vec<&Array> = x.iter().collect();
            if *into {
                let out = arrays(&memory, outputs)?;
                op.eval_into(&x, &out.iter().collect::<Vec<_>>())?;
                out.iter().for_each(|out| out.buffer().written_by(op.name()));
                continue;
            }
            for (view, y) in outputs.iter().zip(op.eval(&x)?) {
                if !matches!(self.memory[view.memory], Origin::Outside(_) | Origin::Constant(..)) {
                    memory[view.memory] = Some(y.buffer().clone());
                }
            }
        }
        Ok(())
    }
}

impl View {
    fn of(&self, memory: &[Option<Buffer>]) -> Result<Array> {
        let buffer = memory[self.memory].clone().ok_or_else(|| {
            Error::value(format!("internal: memory {} of a script is read before it is made", self.memory))
        })?;
        Array::strided(buffer, self.shape, &self.strides, self.offset, self.dtype)
    }
}
