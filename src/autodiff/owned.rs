//! What only one owner keeps alive: the walk of the host's garbage collector through the tape.
//!
//! The tape is reference-counted and shared, and the collector of the host language cannot see into it. A
//! part of the tape belongs to one object of the host alone if every reference to it was met on the walk from
//! that object. Entries come up in reverse order of recording, so all who use one were met before it. What
//! the walk misses is kept, never freed too early.

use crate::autodiff::queue::Entry;
use crate::op::Op;
use crate::tape::host_ref::{self, Holder, HostRef, Part};
use crate::tape::node::{Node, Origin};
use crate::tensor::{Payload, Tensor};
use rustc_hash::FxHashMap;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// A walk from the references of one owner.
pub struct Walk<'a> {
    /// How often each shared thing was met.
    met: FxHashMap<*const (), usize>,
    entries: BinaryHeap<Entry>,
    others: VecDeque<Arc<dyn Holder>>,
    see: &'a mut dyn FnMut(&HostRef),
}

/// Shows `see` what of the host language belongs to one owner alone; `begin` names its references. Returns
/// how many entries it went over.
pub fn walk(begin: impl FnOnce(&mut Walk), see: &mut dyn FnMut(&HostRef)) -> u64 {
    if !host_ref::any() {
        return 0;
    }
    let mut walk =
        Walk { met: FxHashMap::default(), entries: BinaryHeap::new(), others: VecDeque::new(), see };
    begin(&mut walk);
    walk.run();
    walk.met.len() as u64
}

impl Walk<'_> {
    /// The owner holds this tensor.
    pub fn tensor(&mut self, t: &Tensor) {
        let Some(traced) = t.traced().filter(|traced| Arc::strong_count(traced) == 1) else { return };
        match &traced.payload {
            Payload::Taped { primal, node, .. } => {
                self.entry(node.entry());
                self.tensor(primal);
            }
            Payload::Dual { primal, tangent } => {
                self.tensor(primal);
                tangent.iter().for_each(|t| self.tensor(t));
            }
            Payload::Batched { value, .. } | Payload::Staged { value, .. } => self.tensor(value),
        }
    }

    /// The owner holds this entry of the tape.
    pub fn entry(&mut self, node: &Arc<Node>) {
        if self.meet(Arc::as_ptr(node).cast()) {
            self.entries.push(Entry(node.clone()));
        }
    }

    /// The owner holds this operation.
    pub fn rules(&mut self, op: &Op) {
        if let Op::Custom(custom) = op {
            self.part(Part::Shared(custom.rules()));
        }
    }

    /// Counts a reference; whether it is the first to this thing.
    fn meet(&mut self, thing: *const ()) -> bool {
        let met = self.met.entry(thing).or_insert(0);
        *met += 1;
        *met == 1
    }

    /// Whether all references to a thing, one of which the walk itself holds, were met.
    fn alone(&self, thing: *const (), references: usize) -> bool {
        self.met.get(&thing).is_some_and(|met| met + 1 == references)
    }

    fn run(&mut self) {
        loop {
            if let Some(Entry(node)) = self.entries.pop() {
                if self.alone(Arc::as_ptr(&node).cast(), Arc::strong_count(&node)) {
                    self.open(&node);
                }
            } else if let Some(other) = self.others.pop_front() {
                if self.alone(Arc::as_ptr(&other).cast(), Arc::strong_count(&other)) {
                    other.parts(&mut |part| self.part(part));
                }
            } else {
                return;
            }
        }
    }

    fn part(&mut self, part: Part<'_>) {
        match part {
            Part::Host(held) => (self.see)(held),
            Part::Tensor(t) => self.tensor(t),
            Part::Shared(other) => {
                if self.meet(Arc::as_ptr(&other).cast()) {
                    self.others.push_back(other);
                }
            }
        }
    }

    /// Goes on to what an entry holds. What is locked is being used, and so not garbage.
    fn open(&mut self, node: &Node) {
        if let Some(hooks) = node.hooks() {
            hooks.held(&mut *self.see);
        }
        node.edges.iter().flatten().for_each(|edge| self.entry(&edge.node));
        match &node.origin {
            Origin::Leaf { grad, .. } => {
                if let Ok(grad) = grad.try_lock() {
                    grad.iter().for_each(|g| self.tensor(g));
                }
            }
            Origin::Op { op, saved } => {
                self.rules(op);
                if let Ok(saved) = saved.try_lock() {
                    saved.iter().flatten().for_each(|kept| self.part(kept.part()));
                }
            }
        }
    }
}
