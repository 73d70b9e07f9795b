//! The backward walk: from the youngest entry to the oldest (`queue.rs`), no recursion, gradients summed as they
//! meet.
//!
//! The rules run under whatever chain of interpreters is current, so a backward inside `vmap` is batched and
//! one inside `grad` is recorded by the outer tape. With `create_graph` the saved values are put back on
//! their own tape, so that this tape records its own backward.

use crate::autodiff::accumulate;
use crate::autodiff::debug;
use crate::autodiff::node::{Edge, Node, Origin, Saved, Vjp};
use crate::autodiff::queue::{Queue, Slots};
use crate::autodiff::running::{self, Nodes};
use crate::autodiff::seeds;
use crate::error::{Error, Result};
use crate::interp::{self, Tag, tape};
use crate::interrupt::Patience;
use crate::op::{Grads, Needs, Op};
use crate::tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use std::rc::Rc;
use std::sync::{Arc, Weak};

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

/// What has reached a leaf that more gradients may reach.
struct Sum {
    node: Arc<Node>,
    total: Option<Tensor>,
    /// How many edges have had their turn, with or without a gradient.
    edges: usize,
}

struct Walk {
    options: Options,
    /// Where the gradient of each target is: its entry, its output, its place in the answer.
    targets: FxHashMap<*const Node, SmallVec<[(u32, usize); 1]>>,
    /// With targets: the entries from which a target can be reached.
    relevant: Option<Nodes>,
    queue: Queue,
    /// The leaves that are not complete yet.
    leaves: FxHashMap<*const Node, Sum>,
    found: Vec<Option<Tensor>>,
    /// What the debugging tools do meanwhile.
    tools: Option<debug::Backward>,
    patience: Patience,
}

/// Sends `roots`' gradients back through the tape. With `targets`, only what leads to them is visited, and
/// their gradients are returned in order (`None`: the roots do not depend on it); without, every leaf is
/// reached.
pub fn run(
    roots: Vec<(Edge, Tensor)>,
    targets: Option<&[Edge]>,
    options: Options,
) -> Result<Vec<Option<Tensor>>> {
    // Rules and hooks compute without recording, unless that is asked for. Where there are other tapes, they go
    // on recording: they are what differentiates this very walk.
    let outermost = interp::is_plain() && roots.iter().all(|(e, _)| e.node.tag == interp::ambient().tag);
    let _mode = outermost.then(|| interp::recording(options.create_graph));
    let relevant = targets.map(|t| Rc::new(relevant(&roots, t)));
    let _running = running::enter(roots.iter().map(|(e, _)| e.node.clone()).collect(), relevant.clone());
    let mut places: FxHashMap<*const Node, SmallVec<[(u32, usize); 1]>> = FxHashMap::default();
    for (place, target) in targets.unwrap_or(&[]).iter().enumerate() {
        places.entry(Arc::as_ptr(&target.node)).or_default().push((target.index, place));
    }
    let mut walk = Walk {
        options,
        targets: places,
        relevant,
        queue: Queue::default(),
        leaves: FxHashMap::default(),
        found: vec![None; targets.map_or(0, <[Edge]>::len)],
        tools: debug::Backward::begin(&roots, options)?,
        patience: Patience::default(),
    };
    for (edge, g) in roots {
        walk.send(&edge, Some(g))?;
    }
    while let Some((node, g)) = walk.queue.pop() {
        walk.visit(&node, g)?;
    }
    walk.finish()?;
    running::finish()?;
    Ok(walk.found)
}

impl Walk {
    /// Hands on what the rule of an entry gave for one of its inputs.
    #[inline]
    fn send(&mut self, edge: &Edge, mut g: Option<Tensor>) -> Result<()> {
        if self.relevant.as_ref().is_some_and(|r| !r.contains(&Arc::as_ptr(&edge.node))) {
            return Ok(());
        }
        if let Some(g) = &mut g {
            self.patience.spend(g.numel())?;
            accumulate::fit(g, edge.aval())?;
        }
        if edge.node.is_leaf() {
            return self.reach(edge, g);
        }
        if g.is_some() {
            let slot = &mut self.queue.slots(&edge.node)[edge.index as usize];
            add_to(slot, g, self.options.create_graph)?;
        }
        Ok(())
    }

    /// Adds a gradient to that of a leaf. The leaf is visited as soon as all edges to it have had their turn, so
    /// that its gradient frees what it was computed from; a leaf to which other graphs lead as well, or whose gradient
    /// is still somebody else's memory, is visited at the end.
    fn reach(&mut self, edge: &Edge, g: Option<Tensor>) -> Result<()> {
        let (node, key) = (&edge.node, Arc::as_ptr(&edge.node));
        if node.edges_to(0) == 1 && settled(node, g.as_ref()) {
            return if g.is_some() { self.visit(node, smallvec![g]) } else { Ok(()) };
        }
        let start = || Sum { node: node.clone(), total: None, edges: 0 };
        let sum = self.leaves.entry(key).or_insert_with(start);
        sum.edges += 1;
        add_to(&mut sum.total, g, self.options.create_graph)?;
        // One reference is that of the sum itself.
        if sum.edges >= node.edges_to(1) && settled(node, sum.total.as_ref()) {
            let sum = self.leaves.remove(&key);
            return self.complete(sum);
        }
        Ok(())
    }

    /// Visits the leaves that are left, the youngest first.
    fn finish(&mut self) -> Result<()> {
        let mut left: Vec<Sum> = std::mem::take(&mut self.leaves).into_values().collect();
        left.sort_unstable_by_key(|sum| std::cmp::Reverse(sum.node.seq));
        left.into_iter().try_for_each(|sum| self.complete(Some(sum)))
    }

    /// Visits a leaf that nothing more can reach.
    fn complete(&mut self, sum: Option<Sum>) -> Result<()> {
        match sum {
            Some(Sum { node, total: Some(total), .. }) => self.visit(&node, smallvec![Some(total)]),
            _ => Ok(()),
        }
    }

    /// Runs hooks, captures targets, accumulates into leaves or applies the reverse rule.
    #[inline]
    fn visit(&mut self, node: &Arc<Node>, mut g: Slots) -> Result<()> {
        if let Some(hooks) = node.hooks() {
            for (i, slot) in g.iter_mut().enumerate() {
                if let Some(value) = slot.take() {
                    let value = self.settled(node, hooks.on_grad(i as u32, value)?);
                    hooks.add_retained(i as u32, &value, self.options.create_graph)?;
                    *slot = Some(value);
                }
            }
        }
        if !self.targets.is_empty() {
            for &(index, place) in self.targets.get(&Arc::as_ptr(node)).into_iter().flatten() {
                self.found[place] = g[index as usize].clone();
            }
        }
        match &node.origin {
            Origin::Leaf { .. } => self.accumulate(node, g),
            Origin::Op { op, .. } => self.pull_back(node, op, g),
        }
    }

    /// What a hook returned, without what the walked tape recorded of it, unless that is asked for.
    fn settled(&self, node: &Node, g: Tensor) -> Tensor {
        match g.owned_by(node.tag) {
            Some(traced) if !self.options.create_graph => traced.inner().clone(),
            _ => g,
        }
    }

    /// Runs the hooks before an entry.
    fn before(&self, node: &Node, g: &mut Slots) -> Result<()> {
        let Some(hooks) = node.hooks() else { return Ok(()) };
        // Hidden outputs of custom functions are nobody's business.
        hooks.before(&mut g[..node.visible()])?;
        g.iter_mut().for_each(|slot| *slot = slot.take().map(|g| self.settled(node, g)));
        Ok(())
    }

    /// Runs the hooks after an entry, which see gradients of the shapes of the inputs.
    fn after(&self, node: &Node, grads: Grads, g: &Slots) -> Result<Grads> {
        let mut given = grads.into_iter();
        let mut grads = Grads::new();
        for edge in &node.edges {
            grads.push(match (edge, given.next().flatten()) {
                (Some(edge), Some(g)) => Some(accumulate::fitted(g, edge.aval())?),
                _ => None,
            });
        }
        if let Some(hooks) = node.hooks() {
            hooks.after(&mut grads, &g[..node.visible()])?;
        }
        Ok(grads.into_iter().map(|slot| slot.map(|g| self.settled(node, g))).collect())
    }

    /// Adds the gradient of a leaf to its slot, with the hooks around that.
    fn accumulate(&self, node: &Arc<Node>, mut g: Slots) -> Result<()> {
        if !self.options.accumulate {
            return Ok(());
        }
        if let Some(next) = node.exchanged() {
            return self.hand_on(node, next, g);
        }
        self.before(node, &mut g)?;
        let Some(value) = g[0].take() else { return Ok(()) };
        // Nobody can ask for the gradient of a leaf that is gone.
        let Some(mut slot) = node.grad().filter(|_| node.has_handle()) else { return Ok(()) };
        let Some(hooks) = node.hooks() else {
            return accumulate::into_slot(&mut slot, value, self.options.create_graph);
        };
        // A second reference to the gradient would make the slot copy it.
        let seen = hooks.has_after().then(|| value.clone());
        accumulate::into_slot(&mut slot, value, self.options.create_graph)?;
        let total = slot.clone();
        // Hooks run outside the lock: they may look at the slot.
        drop(slot);
        if let Some(total) = total {
            hooks.accumulated(&total)?;
        }
        if seen.is_some() { hooks.after(&mut [], &[seen]) } else { Ok(()) }
    }

    /// Gives the gradient of a leaf to the one that took its place.
    fn hand_on(&self, node: &Node, next: Weak<Node>, mut g: Slots) -> Result<()> {
        let Some(next) = next.upgrade().filter(|next| next.has_handle()) else { return Ok(()) };
        let (was, now) = (&node.outputs[0], &next.outputs[0]);
        if was.shape != now.shape {
            return Err(Error::autodiff(format!(
                "backward: a leaf of shape {} was given data of shape {} after it was used, so its gradient has no place; \
                 assign .data before the forward, or data of the same shape",
                was.shape, now.shape
            )));
        }
        if let Some(g) = &mut g[0] {
            accumulate::fit(g, now)?;
        }
        self.accumulate(&next, g)
    }

    /// Applies the reverse rule of an entry, with the hooks around it, and sends the results on.
    fn pull_back(&mut self, node: &Arc<Node>, op: &Op, mut g: Slots) -> Result<()> {
        let mut needs = Needs::default();
        for (i, edge) in node.edges.iter().enumerate() {
            let wanted = |e: &Edge| self.relevant.as_ref().is_none_or(|r| r.contains(&Arc::as_ptr(&e.node)));
            if edge.as_ref().is_some_and(wanted) {
                needs.add(i);
            }
        }
        if needs == Needs::default() && self.relevant.is_some() {
            return Ok(());
        }
        self.before(node, &mut g)?;
        let retain = self.options.retain_graph || self.options.create_graph;
        let mut saved = Saved::new();
        node.unpack(retain, self.options.create_graph, &g, &mut saved)?;
        let context = Vjp { node, saved: &saved, needs, recorded: self.options.create_graph };
        let mut grads = match &mut self.tools {
            None => tape::pull_back(op, &context, &g)?,
            Some(tools) => tools.pull(op, &context, &g)?,
        };
        drop(saved);
        if node.hooks().is_some() {
            grads = self.after(node, grads, &g)?;
        }
        // Where a rule passes its cotangent through, this leaves the next entry as its only owner.
        drop(g);
        for (i, edge) in node.edges.iter().enumerate() {
            if let Some(edge) = edge {
                self.send(edge, grads.get_mut(i).and_then(Option::take))?;
            }
        }
        Ok(())
    }
}

/// Adds `g` to the gradient that waits in `slot`.
#[inline]
fn add_to(slot: &mut Option<Tensor>, g: Option<Tensor>, recorded: bool) -> Result<()> {
    match (slot.as_mut(), &g) {
        (Some(total), Some(g)) => accumulate::add(total, g, recorded)?,
        (Some(_), None) => {}
        (None, _) => *slot = g,
    }
    Ok(())
}

/// Whether the gradient of a leaf can go to its slot without a copy that waiting could save.
fn settled(leaf: &Node, g: Option<&Tensor>) -> bool {
    match g {
        Some(Tensor::Array(a)) => a.is_alone() || leaf.grad().is_some_and(|slot| slot.is_some()),
        _ => true,
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
        backward(std::slice::from_ref(self), &[gradient.cloned()], options, inputs)
    }
}

/// Back-propagates from all of `outputs` in one walk and adds the gradients of all leaves, or of `inputs`, to
/// their slots. `gradients` holds the cotangents, one per output.
pub fn backward(
    outputs: &[Tensor],
    gradients: &[Option<Tensor>],
    options: Options,
    inputs: Option<&[Tensor]>,
) -> Result<()> {
    let options = Options { accumulate: true, ..options };
    let Some(inputs) = inputs else {
        run(seeds::roots(outputs, gradients)?, None, options)?;
        return Ok(());
    };
    let mut targets = Vec::new();
    for (i, x) in inputs.iter().enumerate() {
        let edge = x.edge().ok_or_else(|| {
            Error::autodiff(format!(
                "backward: inputs[{i}], a {} tensor of shape {}, does not require a gradient; call requires_grad_() on it \
                 before computing with it, or leave it out",
                x.dtype(),
                x.shape()
            ))
        })?;
        targets.push(edge);
    }
    across(outputs, gradients, &targets, options)?;
    Ok(())
}

/// Walks from `outputs` to `targets`, which may be on other tapes than the outputs. Inside a transform there are two: a
/// leaf made there is on the inner one, which then has the last word on what is computed from it, and the argument of the
/// function is on the outer one, which recorded all of it.
fn across(
    outputs: &[Tensor],
    gradients: &[Option<Tensor>],
    targets: &[Edge],
    options: Options,
) -> Result<Vec<Option<Tensor>>> {
    let roots = seeds::roots(outputs, gradients)?;
    let mut tapes: SmallVec<[Tag; 2]> = targets.iter().map(|t| t.node.tag).collect();
    tapes.sort_unstable_by_key(|tag| std::cmp::Reverse(*tag));
    tapes.dedup();
    if roots.iter().all(|(edge, _)| tapes.iter().all(|tag| *tag == edge.node.tag)) {
        return run(roots, Some(targets), options);
    }
    let mut found = vec![None; targets.len()];
    for tape in tapes {
        let begin = outputs.iter().zip(&roots);
        let begin = begin.filter_map(|(y, (_, g))| Some((seeds::on_tape(y, tape)?, g.clone()))).collect();
        let (places, own): (Vec<usize>, Vec<Edge>) =
            targets.iter().cloned().enumerate().filter(|(_, t)| t.node.tag == tape).unzip();
        for (place, g) in places.into_iter().zip(run(begin, Some(&own), options)?) {
            found[place] = g;
        }
    }
    Ok(found)
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
    let mut targets = Vec::new();
    for (i, x) in inputs.iter().enumerate() {
        targets.push(x.edge().ok_or_else(|| {
            Error::autodiff(format!(
                "grad: input {i} does not require a gradient; call requires_grad_() on it first"
            ))
        })?);
    }
    across(outputs, gradients, &targets, Options { accumulate: false, ..options })
}
