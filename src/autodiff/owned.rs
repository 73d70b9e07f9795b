//! The walk of Python's garbage collector through the tape: finds what a single owner keeps alive.
//!
//! The tape is reference-counted and shared, and Python's collector cannot see into it. A part of the tape
//! belongs to one Python object alone if the walk from that object meets every reference to it. Nodes are
//! opened in reverse order of recording, so that all users of a node are met before it. Parts that the walk
//! misses are kept alive, never freed too early.

use super::prelude::*;
use crate::op::Op;
use crate::tape::host_ref::{self, HeldPart, Holder, HostRef};
use crate::tape::node::Origin;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};

/// A walk from the references of one owner.
pub struct HolderWalk<'a> {
    /// The number of references met to each shared object.
    met: FxHashMap<*const (), usize>,
    /// The nodes met and not yet visited, by sequence number.
    nodes: BTreeMap<u64, Arc<Node>>,
    others: VecDeque<Arc<dyn Holder>>,
    see: &'a mut dyn FnMut(&HostRef),
}

/// Shows `see` the Python objects that belong to one owner alone; `begin` names the owner's references.
/// Returns the number of shared objects met.
pub fn walk(begin: impl FnOnce(&mut HolderWalk), see: &mut dyn FnMut(&HostRef)) -> u64 {
    if !host_ref::any() {
        return 0;
    }
    let (met, nodes, others) = (FxHashMap::default(), BTreeMap::new(), VecDeque::new());
    let mut walk = HolderWalk { met, nodes, others, see };
    begin(&mut walk);
    walk.run();
    walk.met.len() as u64
}

impl HolderWalk<'_> {
    /// Walks a tensor that the owner holds.
    pub fn tensor(&mut self, t: &Tensor) {
        let Some(traced) = t.traced().filter(|traced| Arc::strong_count(traced) == 1) else { return };
        match &traced.payload {
            Payload::Taped { primal, node, .. } => {
                self.node(node.node());
                self.tensor(primal);
            }
            Payload::Dual { primal, tangent } => {
                self.tensor(primal);
                tangent.iter().for_each(|t| self.tensor(t));
            }
            Payload::Batched { .. } | Payload::Linearized { .. } | Payload::Donated { .. } => {
                self.tensor(traced.inner());
            }
        }
    }

    /// Counts a node that the owner holds.
    pub fn node(&mut self, node: &Arc<Node>) {
        if self.meet(Arc::as_ptr(node).cast()) {
            self.nodes.insert(node.seq, node.clone());
        }
    }

    /// Walks the rules of an operation that the owner holds.
    pub fn rules(&mut self, op: &Op) {
        if let Op::Custom(custom) = op {
            self.part(HeldPart::Shared(custom.rules()));
        }
    }

    /// Counts a reference; returns whether it is the first to this object.
    fn meet(&mut self, thing: *const ()) -> bool {
        let met = self.met.entry(thing).or_insert(0);
        *met += 1;
        *met == 1
    }

    /// Whether all references to an object were met, except the one that the walk itself holds.
    fn alone(&self, thing: *const (), references: usize) -> bool {
        self.met.get(&thing).is_some_and(|met| met + 1 == references)
    }

    fn run(&mut self) {
        loop {
            if let Some((_, node)) = self.nodes.pop_last() {
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

    fn part(&mut self, part: HeldPart<'_>) {
        match part {
            HeldPart::Host(held) => (self.see)(held),
            HeldPart::Tensor(t) => self.tensor(t),
            HeldPart::Shared(other) => {
                if self.meet(Arc::as_ptr(&other).cast()) {
                    self.others.push_back(other);
                }
            }
        }
    }

    /// Walks the fields of a node. Locked ones are skipped: they are in use, so not garbage.
    fn open(&mut self, node: &Node) {
        if let Some(hooks) = node.hooks() {
            hooks.held(&mut *self.see);
        }
        node.edges.iter().flatten().for_each(|edge| self.node(&edge.node));
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
