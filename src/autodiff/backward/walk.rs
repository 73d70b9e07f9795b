//! The backward walk itself: visits one node after another.
//! Read next: `src/autodiff/backward/leaves.rs`.

use super::leaves::PartialSum;
use super::{Options, relevant};
use crate::autodiff::accumulate;
use crate::autodiff::finished::FinishedTape;
use crate::autodiff::queue::{Queue, Slots};
use crate::autodiff::running::{self, Nodes};
use crate::error::Result;
use crate::interp::{self, tape};
use crate::op::{Grads, Needs, Op};
use crate::process::interrupt::InterruptBudget;
use crate::tape::hooks::Hooks;
use crate::tape::node::{Edge, Node, Origin, Saved, Vjp};
use crate::tensor::{Aval, Tensor};
use crate::watch::{cost, debug, script};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use std::rc::Rc;
use std::sync::Arc;

/// In the place of a node: the cotangents that a walk begins with.
pub const ROOTS: u64 = u64::MAX;

/// A gradient on its way to a target.
pub struct Contribution {
    /// The number of the target.
    pub target: usize,
    /// The node that it comes from, and the number of the edge there; [`ROOTS`], and which of them.
    pub from: (u64, usize),
    /// The gradient, fitted to the target; `None` where it is zero everywhere.
    pub gradient: Option<Tensor>,
}

/// One backward walk.
pub(super) struct Walk<'a> {
    pub(super) options: Options,
    /// The tape that is walked, if the current chain of interpreters does not contain it.
    finished: Option<&'a FinishedTape>,
    /// The targets by node: the output of the node, and the index in `found`.
    targets: FxHashMap<*const Node, SmallVec<[(u32, usize); 1]>>,
    /// With targets: the nodes from which a target can be reached.
    relevant: Option<Nodes>,
    queue: Queue,
    /// The leaves that wait for further gradients.
    pub(super) leaves: FxHashMap<*const Node, PartialSum>,
    found: Vec<Option<Tensor>>,
    /// The gradients that reached targets, each by itself, if they are to be kept apart.
    apart: Option<Vec<Contribution>>,
    /// The debugging tools, if any mode is on.
    tools: Option<debug::Backward>,
    interrupts: InterruptBudget,
    /// Where a script is written, whose backward runs.
    scopes: Option<cost::Backward>,
    /// Where a script is written, the first node of its region: another run does not find those before it.
    first: u64,
}

impl Walk<'_> {
    /// Walks from `roots`, to `targets` if given, and returns the gradients of the targets.
    pub(super) fn run(
        roots: Vec<(Edge, Tensor)>, targets: Option<&[Edge]>, options: Options,
        finished: Option<&FinishedTape>,
    ) -> Result<Vec<Option<Tensor>>> {
        Walk::walked(roots, targets, options, finished, None).map(|walk| walk.found)
    }

    /// Walks from `roots` to `targets`, which it does not visit, and returns what reaches them.
    pub(super) fn run_apart(
        roots: Vec<(Edge, Tensor)>, targets: &[Edge], options: Options,
    ) -> Result<Vec<Contribution>> {
        let walk = Walk::walked(roots, Some(targets), options, None, Some(Vec::new()))?;
        Ok(walk.apart.unwrap_or_default())
    }

    fn walked<'a>(
        roots: Vec<(Edge, Tensor)>, targets: Option<&[Edge]>, options: Options,
        finished: Option<&'a FinishedTape>, apart: Option<Vec<Contribution>>,
    ) -> Result<Walk<'a>> {
        let relevant = targets.map(|t| Rc::new(relevant(&roots, t)));
        let _running = running::enter(roots.iter().map(|(e, _)| e.node.clone()).collect(), relevant.clone());
        let mut indices: FxHashMap<*const Node, SmallVec<[(u32, usize); 1]>> = FxHashMap::default();
        for (index, target) in targets.unwrap_or(&[]).iter().enumerate() {
            indices.entry(Arc::as_ptr(&target.node)).or_default().push((target.index, index));
        }
        let mut walk = Walk {
            options,
            finished,
            targets: indices,
            relevant,
            queue: Queue::default(),
            leaves: FxHashMap::default(),
            found: vec![None; targets.map_or(0, <[Edge]>::len)],
            apart,
            tools: debug::Backward::begin(&roots, options.accumulate, options.create_graph)?,
            interrupts: InterruptBudget::default(),
            scopes: script::is_on().then(cost::Backward::begin),
            first: if script::is_on() { script::first_node() } else { 0 },
        };
        for (i, (edge, g)) in roots.into_iter().enumerate() {
            let mut g = Some(g);
            if walk.apart.is_none() || !walk.keep_apart((ROOTS, i), &edge, &mut g)? {
                g.into_iter().try_for_each(|g| walk.send(&edge, g))?;
            }
        }
        while let Some((node, g)) = walk.queue.pop() {
            walk.visit(&node, g)?;
        }
        walk.complete_leaves()?;
        running::finish()?;
        Ok(walk)
    }

    /// Whether a target can be reached from a node; true without targets.
    #[inline]
    fn is_relevant(&self, node: &Arc<Node>) -> bool {
        self.relevant.as_ref().is_none_or(|relevant| relevant.contains(&Arc::as_ptr(node)))
    }

    /// Sends a gradient along an edge, fitted to the shape and dtype of the value there.
    #[inline]
    fn send(&mut self, edge: &Edge, mut g: Tensor) -> Result<()> {
        if !self.is_relevant(&edge.node) {
            return Ok(());
        }
        self.interrupts.spend(g.numel())?;
        accumulate::fit(&mut g, edge.aval())?;
        if edge.node.is_leaf() {
            return self.add_to_leaf(&edge.node, Some(g), false);
        }
        let slot = &mut self.queue.slots(&edge.node)[edge.index as usize];
        add_to(slot, g, self.options.create_graph)
    }

    /// Processes an edge without a gradient. A gradient that is zero everywhere (`is_zero`) is not computed
    /// with, but its node counts as reached.
    #[cold]
    fn send_none(&mut self, edge: &Edge, is_zero: bool) -> Result<()> {
        if !self.is_relevant(&edge.node) {
            return Ok(());
        }
        self.interrupts.spend(0)?;
        if edge.node.is_leaf() {
            return self.add_to_leaf(&edge.node, None, is_zero);
        }
        if is_zero {
            let slot = &mut self.queue.slots(&edge.node)[edge.index as usize];
            // With several outputs, the slot must show which one was reached.
            if slot.is_none() && edge.node.outputs.len() > 1 {
                *slot = Some(zeros(edge.aval())?);
            }
        }
        Ok(())
    }

    /// Visits a node: runs hooks, captures targets, and accumulates into a leaf or applies the reverse rule.
    #[inline]
    pub(super) fn visit(&mut self, node: &Arc<Node>, g: Slots) -> Result<()> {
        if let [None] = &g[..] { self.visit_zero(node) } else { self.visit_value(node, g) }
    }

    /// Visits a node of one output that only zero gradients have reached. They are made explicit for targets,
    /// leaves and hooks; otherwise they pass on symbolically.
    #[cold]
    fn visit_zero(&mut self, node: &Arc<Node>) -> Result<()> {
        let is_target = self.targets.contains_key(&Arc::as_ptr(node));
        if is_target || node.is_leaf() || node.hooks().is_some() {
            return self.visit_value(node, smallvec![Some(zeros(&node.outputs[0])?)]);
        }
        let edges = node.edges.iter().enumerate();
        edges.filter_map(|(i, edge)| Some((i, edge.as_ref()?))).try_for_each(|(i, edge)| {
            let is_apart = self.apart.is_some() && self.keep_apart((node.seq, i), edge, &mut None)?;
            if is_apart { Ok(()) } else { self.send_none(edge, true) }
        })
    }

    #[inline]
    fn visit_value(&mut self, node: &Arc<Node>, mut g: Slots) -> Result<()> {
        if let Some(hooks) = node.hooks() {
            self.show_to_hooks(node, hooks, &mut g)?;
        }
        if !self.targets.is_empty() {
            for &(output, index) in self.targets.get(&Arc::as_ptr(node)).into_iter().flatten() {
                self.found[index] = g[output as usize].clone();
            }
        }
        match &node.origin {
            Origin::Leaf { .. } => self.accumulate(node, g),
            Origin::Op { op, .. } => self.pull_back(node, op, g),
        }
    }

    /// Runs the hooks on the gradient of each output, and stores it for `retain_grad`.
    #[inline(never)]
    fn show_to_hooks(&self, node: &Node, hooks: &Hooks, g: &mut Slots) -> Result<()> {
        for (i, slot) in g.iter_mut().enumerate() {
            let Some(value) = slot.take() else { continue };
            let value = {
                let _tape = self.finished.map(FinishedTape::enter);
                self.unrecorded(node, hooks.on_grad(i as u32, value)?)
            };
            accumulate::into_kept(hooks, i as u32, &value, self.options.create_graph)?;
            *slot = Some(value);
        }
        Ok(())
    }

    /// Unwraps what a hook or custom rule returned to its value below the walked tape; with `create_graph`,
    /// only if that tape has finished.
    fn unrecorded(&self, node: &Node, g: Tensor) -> Tensor {
        let g = match self.finished {
            Some(tape) => tape.below(g),
            None => g,
        };
        match g.owned_by(node.tag) {
            Some(traced) if !self.options.create_graph => traced.inner().clone(),
            _ => g,
        }
    }

    /// [`Walk::unrecorded`] for the gradient of each input.
    fn all_unrecorded(&self, node: &Node, grads: Grads) -> Grads {
        grads.into_iter().map(|slot| slot.map(|g| self.unrecorded(node, g))).collect()
    }

    /// Runs the hooks before a node.
    #[inline]
    pub(super) fn before(&self, node: &Node, g: &mut Slots) -> Result<()> {
        let Some(hooks) = node.hooks() else { return Ok(()) };
        let _tape = self.finished.map(FinishedTape::enter);
        // Hidden outputs of custom functions are not shown to hooks.
        hooks.before(&mut g[..node.visible()])?;
        g.iter_mut().for_each(|slot| *slot = slot.take().map(|g| self.unrecorded(node, g)));
        Ok(())
    }

    /// Runs the hooks after a node, on gradients fitted to the shapes and dtypes of the inputs.
    #[inline(never)]
    fn after(&self, node: &Node, hooks: &Hooks, grads: Grads, g: &Slots) -> Result<Grads> {
        let mut given = grads.into_iter();
        let mut grads = Grads::new();
        for edge in &node.edges {
            grads.push(match (edge, given.next().flatten()) {
                (Some(edge), Some(g)) => Some(accumulate::fitted(g, edge.aval())?),
                _ => None,
            });
        }
        let _tape = self.finished.map(FinishedTape::enter);
        hooks.after(&mut grads, &g[..node.visible()])?;
        Ok(self.all_unrecorded(node, grads))
    }

    /// Applies the reverse rule of a node, with the hooks before and after, and sends the results on.
    fn pull_back(&mut self, node: &Arc<Node>, op: &Op, mut g: Slots) -> Result<()> {
        let mut needs = Needs::default();
        for (i, edge) in node.edges.iter().enumerate() {
            if edge.as_ref().is_some_and(|edge| self.is_relevant(&edge.node)) {
                needs.add(i);
            }
        }
        if needs == Needs::default() && self.relevant.is_some() {
            return Ok(());
        }
        if node.seq < self.first {
            script::refuse(|| "a backward through what was computed before the call".into());
        }
        if let Some(scopes) = &self.scopes {
            scopes.at(node.seq);
        }
        self.before(node, &mut g)?;
        let retain = self.options.retain_graph || self.options.create_graph;
        let is_custom = matches!(op, Op::Custom(_));
        // A user's rule may differentiate what it saved, under `enable_grad`, by any of it.
        let attached =
            self.options.create_graph || is_custom && self.finished.is_none() && interp::is_plain();
        let mut saved = Saved::new();
        node.unpack(retain, attached, &g, &mut saved)?;
        let context = Vjp { node, saved: &saved, needs, recorded: self.options.create_graph };
        if op.selects() && self.add_selected(node, op, &context, &g)? {
            return Ok(());
        }
        let mut grads =
            if is_custom { self.pull_custom(op, &context, &g)? } else { self.pull(op, &context, &g)? };
        drop(saved);
        if let Some(hooks) = node.hooks() {
            grads = self.after(node, hooks, grads, &g)?;
        }
        let given: SmallVec<[bool; 4]> =
            if is_custom { g.iter().map(Option::is_some).collect() } else { SmallVec::new() };
        // If a rule passes its cotangent through, this leaves the gradient with a single owner.
        drop(g);
        for (i, edge) in node.edges.iter().enumerate() {
            let Some(edge) = edge else { continue };
            let mut g = grads.get_mut(i).and_then(Option::take);
            // A rule of the core returns `None` where the derivative is zero everywhere. An input that a
            // custom function leaves out is not reached, unless it says so.
            let is_zero = || if let Op::Custom(custom) = op { custom.is_zero(i, &given) } else { true };
            let is_zero = g.is_none() && is_zero();
            let is_reached = g.is_some() || is_zero;
            if self.apart.is_some() && is_reached && self.keep_apart((node.seq, i), edge, &mut g)? {
                continue;
            }
            match g {
                Some(g) => self.send(edge, g)?,
                None => self.send_none(edge, is_zero)?,
            }
        }
        Ok(())
    }

    /// Keeps a gradient that goes to a target; returns whether it does.
    #[cold]
    fn keep_apart(&mut self, from: (u64, usize), edge: &Edge, g: &mut Option<Tensor>) -> Result<bool> {
        let targets = self.targets.get(&Arc::as_ptr(&edge.node));
        let Some(&(_, target)) = targets.into_iter().flatten().find(|(output, _)| *output == edge.index)
        else {
            return Ok(false);
        };
        let gradient = g.take().map(|g| accumulate::fitted(g, edge.aval())).transpose()?;
        self.apart.get_or_insert_default().push(Contribution { target, from, gradient });
        Ok(true)
    }

    /// Adds the gradient of an operation that selects elements of its first input to the sum that waits
    /// there, in place; returns whether it did. Else each of a thousand slices would fill a whole tensor.
    #[inline(never)]
    fn add_selected(&mut self, node: &Node, op: &Op, context: &Vjp, g: &Slots) -> Result<bool> {
        let (Some(Some(edge)), [Some(Tensor::Array(g))]) = (node.edges.first(), &g[..]) else {
            return Ok(false);
        };
        let told = self.tools.as_ref().is_some_and(debug::Backward::is_told);
        if node.hooks().is_some() || self.options.create_graph || told {
            return Ok(false);
        }
        let leaf = edge.node.is_leaf();
        let total = if leaf {
            self.leaves.get(&Arc::as_ptr(&edge.node)).and_then(|sum| sum.total.as_ref())
        } else {
            self.queue.slots(&edge.node)[edge.index as usize].as_ref()
        };
        let Some(Tensor::Array(total)) = total else { return Ok(false) };
        if self.apart.is_some() && adds_rows(op) && script::is_cotangent(total) {
            // Another run may find it in memory that nobody else has.
            script::refuse(|| "rows by index of what is a result, or has the gradient of one".into());
        }
        let fits = total.is_exclusive() && total.dtype() == g.dtype() && !g.dtype().is_complex();
        if !fits || g.numel() > 0 && !op.add_transpose(total, g, context)? {
            return Ok(false);
        }
        self.interrupts.spend(g.numel())?;
        if leaf {
            self.add_to_leaf(&edge.node, None, false)?;
        }
        Ok(true)
    }

    /// Applies a reverse rule, through the debugging tools if there are any.
    #[inline(always)]
    fn pull(&mut self, op: &Op, context: &Vjp, g: &Slots) -> Result<Grads> {
        match &mut self.tools {
            None => tape::pull_back(op, context, g),
            Some(tools) => tools.pull(op, context, g),
        }
    }

    /// Applies a custom function's reverse rule on the finished tape, as it may use tensors from there.
    #[inline(never)]
    fn pull_custom(&mut self, op: &Op, context: &Vjp, g: &Slots) -> Result<Grads> {
        let grads = {
            let _tape = self.finished.map(FinishedTape::enter);
            self.pull(op, context, g)?
        };
        Ok(self.all_unrecorded(context.node, grads))
    }
}

/// Whether the gradient of an operation that selects elements may meet one of them several times, so that the
/// sum depends on what it is added to.
pub fn adds_rows(op: &Op) -> bool {
    matches!(op, Op::Take(take) if take.axis == 0)
}

/// A zero gradient: an expanded scalar.
fn zeros(aval: &Aval) -> Result<Tensor> {
    Tensor::scalar(0.0, aval.dtype, aval.device)?.expand(&aval.shape)
}

/// Adds `g` to the gradient in `slot`, if any.
#[inline]
pub(super) fn add_to(slot: &mut Option<Tensor>, g: Tensor, recorded: bool) -> Result<()> {
    match slot {
        Some(total) => accumulate::add(total, &g, recorded),
        None => {
            *slot = Some(g);
            Ok(())
        }
    }
}
