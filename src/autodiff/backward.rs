//! The backward walk: a max-heap over sequence numbers, no recursion, gradients summed as they meet.
//!
//! The rules run under whatever chain of interpreters is current, so a backward inside `vmap` is batched and
//! one inside `grad` is recorded by the outer tape. With `create_graph` the saved values are put back on
//! their own tape, so that this tape records its own backward.

use crate::autodiff::accumulate;
use crate::autodiff::node::{Edge, Node, Vjp};
use crate::error::{Error, Result};
use crate::interp::tape;
use crate::op::{Needs, Op};
use crate::tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// What a backward walk does besides walking.
#[derive(Clone, Copy, Default)]
pub struct Options {
    /// Keep the saved values, so that another backward can follow.
    pub retain_graph: bool,
    /// Record the backward itself.
    pub create_graph: bool,
    /// Add the gradients of leaves to their slots.
    pub accumulate: bool,
}

struct Entry(Arc<Node>);

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.0.seq == other.0.seq
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        self.0.seq.cmp(&other.0.seq)
    }
}

/// Gradients of the outputs of one entry.
type Slots = SmallVec<[Option<Tensor>; 1]>;

struct Walk<'a> {
    options: Options,
    targets: &'a [Edge],
    /// With targets: the entries from which a target can be reached.
    relevant: Option<FxHashSet<*const Node>>,
    gradients: FxHashMap<*const Node, Slots>,
    heap: BinaryHeap<Entry>,
    found: Vec<Option<Tensor>>,
}

/// Sends `roots`' gradients back through the tape. With `targets`, only what leads to them is visited, and
/// their gradients are returned in order (`None`: the roots do not depend on it); without, every leaf is
/// reached.
pub fn run(
    roots: Vec<(Edge, Tensor)>,
    targets: Option<&[Edge]>,
    options: Options,
) -> Result<Vec<Option<Tensor>>> {
    let mut walk = Walk {
        options,
        targets: targets.unwrap_or(&[]),
        relevant: targets.map(|t| relevant(&roots, t)),
        gradients: FxHashMap::default(),
        heap: BinaryHeap::new(),
        found: vec![None; targets.map_or(0, <[Edge]>::len)],
    };
    for (edge, g) in roots {
        walk.send(&edge, g)?;
    }
    while let Some(Entry(node)) = walk.heap.pop() {
        walk.visit(&node)?;
    }
    Ok(walk.found)
}

impl Walk<'_> {
    /// Adds `g` to the gradient that waits at `edge`.
    fn send(&mut self, edge: &Edge, g: Tensor) -> Result<()> {
        let key = Arc::as_ptr(&edge.node);
        if self.relevant.as_ref().is_some_and(|r| !r.contains(&key)) {
            return Ok(());
        }
        let g = accumulate::fit(g, edge.aval())?;
        let heap = &mut self.heap;
        let slots = self.gradients.entry(key).or_insert_with(|| {
            heap.push(Entry(edge.node.clone()));
            smallvec![None; edge.node.outputs.len()]
        });
        let slot = &mut slots[edge.index as usize];
        *slot = Some(match slot.take() {
            Some(total) => accumulate::add(total, &g, self.options.create_graph)?,
            None => g,
        });
        Ok(())
    }

    /// Runs hooks, captures targets, accumulates into leaves or applies the reverse rule.
    fn visit(&mut self, node: &Arc<Node>) -> Result<()> {
        let Some(mut g) = self.gradients.remove(&Arc::as_ptr(node)) else { return Ok(()) };
        if let Some(hooks) = node.hooks() {
            for (i, slot) in g.iter_mut().enumerate() {
                if let Some(value) = slot.take() {
                    let value = hooks.on_grad(i as u32, value)?;
                    hooks.set_retained(i as u32, Some(value.clone()));
                    *slot = Some(value);
                }
            }
        }
        for (target, found) in self.targets.iter().zip(&mut self.found) {
            if Arc::ptr_eq(&target.node, node) {
                *found = g[target.index as usize].clone();
            }
        }
        match &node.origin {
            crate::autodiff::node::Origin::Leaf { .. } => self.accumulate(node, g),
            crate::autodiff::node::Origin::Op { op, .. } => self.pull_back(node, op, &g),
        }
    }

    fn accumulate(&self, node: &Arc<Node>, mut g: Slots) -> Result<()> {
        let Some(g) = g[0].take().filter(|_| self.options.accumulate) else { return Ok(()) };
        let Some(mut slot) = node.grad() else { return Ok(()) };
        accumulate::into_slot(&mut slot, g, self.options.create_graph)?;
        if let Some(hooks) = node.hooks() {
            let total = slot.clone();
            drop(slot);
            if let Some(total) = total {
                hooks.run_after_accumulate(&total)?;
            }
        }
        Ok(())
    }

    fn pull_back(&mut self, node: &Arc<Node>, op: &Op, g: &Slots) -> Result<()> {
        let mut needs = Needs::default();
        for (i, edge) in node.edges.iter().enumerate() {
            let wanted = |e: &crate::autodiff::node::Edge| {
                self.relevant.as_ref().is_none_or(|r| r.contains(&Arc::as_ptr(&e.node)))
            };
            if edge.as_ref().is_some_and(wanted) {
                needs.0 |= 1 << i;
            }
        }
        if needs == Needs::default() && self.relevant.is_some() {
            return Ok(());
        }
        let retain = self.options.retain_graph || self.options.create_graph;
        let saved = node.unpack(retain, self.options.create_graph)?;
        let context = Vjp { node, saved: &saved, needs };
        let grads = tape::pull_back(op, &context, g)?;
        drop(saved);
        for (edge, g) in node.edges.iter().zip(grads) {
            if let (Some(edge), Some(g)) = (edge, g) {
                self.send(edge, g)?;
            }
        }
        Ok(())
    }
}

/// The entries between `roots` and `targets`.
fn relevant(roots: &[(Edge, Tensor)], targets: &[Edge]) -> FxHashSet<*const Node> {
    let mut seen: FxHashMap<*const Node, Arc<Node>> = FxHashMap::default();
    let mut stack: Vec<Arc<Node>> = roots.iter().map(|(e, _)| e.node.clone()).collect();
    let oldest = targets.iter().map(|t| t.node.seq).min().unwrap_or(u64::MAX);
    while let Some(node) = stack.pop() {
        // An entry older than every target cannot lead to one.
        if node.seq < oldest || seen.insert(Arc::as_ptr(&node), node.clone()).is_some() {
            continue;
        }
        stack.extend(node.edges.iter().flatten().map(|e| e.node.clone()));
    }
    let mut order: Vec<&Arc<Node>> = seen.values().collect();
    order.sort_unstable_by_key(|n| n.seq);
    let mut relevant: FxHashSet<*const Node> = targets.iter().map(|t| Arc::as_ptr(&t.node)).collect();
    for node in order {
        if node.edges.iter().flatten().any(|e| relevant.contains(&Arc::as_ptr(&e.node))) {
            relevant.insert(Arc::as_ptr(node));
        }
    }
    relevant
}

impl Tensor {
    /// Back-propagates from this tensor and adds the gradients of all leaves to their slots.
    ///
    /// `gradient` is the cotangent, of this tensor's shape; it may be left out for a tensor with one element.
    pub fn backward(
        &self,
        gradient: Option<&Tensor>,
        options: Options,
        inputs: Option<&[Tensor]>,
    ) -> Result<()> {
        let root = self.edge().ok_or_else(|| no_graph(self))?;
        let seed = seed(self, gradient)?;
        let options = Options { accumulate: true, ..options };
        let Some(inputs) = inputs else {
            run(vec![(root, seed)], None, options)?;
            return Ok(());
        };
        let mut targets = Vec::new();
        for x in inputs {
            targets.push(x.edge().filter(|e| e.node.is_leaf()).ok_or_else(|| {
                Error::autodiff("backward: inputs= takes leaf tensors that require a gradient")
            })?);
        }
        run(vec![(root, seed)], Some(&targets), options)?;
        Ok(())
    }
}

/// Gradients of `outputs` with respect to `inputs`, without touching any `.grad`.
///
/// `gradients` holds the cotangents, one per output. The result has `None` where no output depends on an
/// input.
pub fn grad(
    outputs: &[Tensor],
    inputs: &[Tensor],
    gradients: &[Option<Tensor>],
    options: Options,
) -> Result<Vec<Option<Tensor>>> {
    let mut roots = Vec::new();
    for (i, y) in outputs.iter().enumerate() {
        let edge = y.edge().ok_or_else(|| no_graph(y))?;
        roots.push((edge, seed(y, gradients.get(i).and_then(Option::as_ref))?));
    }
    let mut targets = Vec::new();
    for (i, x) in inputs.iter().enumerate() {
        targets.push(x.edge().ok_or_else(|| {
            Error::autodiff(format!(
                "grad: input {i} does not require a gradient; call requires_grad_() on it first"
            ))
        })?);
    }
    run(roots, Some(&targets), Options { accumulate: false, ..options })
}

/// The cotangent that backward starts with.
fn seed(y: &Tensor, gradient: Option<&Tensor>) -> Result<Tensor> {
    match gradient {
        None if y.numel() == 1 => y.ones_like(),
        None => Err(Error::autodiff(format!(
            "backward: a tensor of shape {} has no single gradient; reduce it first, as in y.sum().backward(), \
             or pass gradient= of the same shape",
            y.shape()
        ))),
        Some(g) if g.shape() != y.shape() => Err(Error::autodiff(format!(
            "backward: gradient= has shape {}, expected {} as the tensor it belongs to",
            g.shape(),
            y.shape()
        ))),
        Some(g) if g.dtype() != y.dtype() => g.cast(y.dtype()),
        Some(g) => Ok(g.clone()),
    }
}

#[cold]
fn no_graph(y: &Tensor) -> Error {
    Error::autodiff(format!(
        "backward: the {} tensor of shape {} has no graph: no input of its computation requires a gradient, it was \
         computed under no_grad(), or it was detached; call requires_grad_() on an input before computing it",
        y.dtype(),
        y.shape()
    ))
}
