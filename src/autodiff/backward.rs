//! Entry points of the backward walk, which visits nodes from the youngest to the oldest, without recursion,
//! and sums gradients that reach the same node.
//!
//! The rules run under the current chain of interpreters, so a backward inside `vmap` is batched and one
//! inside `grad` is recorded by the outer tape. With `create_graph` the saved tensors are put back on their
//! own tape, so that this tape records its own backward.
//! Read next: `src/autodiff/backward/walk.rs`, the visits; `src/autodiff/queue.rs`, their order.

mod leaves;
mod walk;

use crate::autodiff::finished::FinishedTape;
use crate::autodiff::seeds;
use crate::error::{Error, Result};
use crate::interp::{self, Tag};
use crate::tape::ancestors::ancestors;
use crate::tape::location;
use crate::tape::node::{Edge, Node};
use crate::tensor::Tensor;
use crate::watch::script;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::sync::Arc;
use walk::Walk;
pub use walk::{Contribution, ROOTS, adds_rows};

/// Options of a backward walk.
#[derive(Clone, Copy, Default)]
pub struct Options {
    /// Keep the saved tensors, so that another backward can follow.
    pub retain_graph: bool,
    /// Record the backward itself.
    pub create_graph: bool,
    /// Add the gradients of leaves to their slots.
    pub accumulate: bool,
}

/// Propagates the gradients of `roots` back through the tape. With `targets`, visits only nodes that lead to
/// them and returns their gradients in order (`None`: no root depends on it). Without, reaches every leaf.
/// `tape` is that of a transform: if it has finished, hooks and custom rules run on it nevertheless.
pub fn run(
    roots: Vec<(Edge, Tensor)>, targets: Option<&[Edge]>, options: Options, tape: Option<&FinishedTape>,
) -> Result<Vec<Option<Tensor>>> {
    // Autocast is left, so that each rule runs in the precision of its operation.
    let _region = interp::leave_autocast();
    // Rules and hooks run without recording, unless `create_graph` is on. Other tapes, if there are any,
    // still record, because they differentiate this walk.
    let outermost = interp::is_plain() && roots.iter().all(|(e, _)| e.node.tag == interp::ambient().tag);
    let _mode = outermost.then(|| interp::recording(options.create_graph));
    let _held = script::is_on().then(location::hold);
    if script::is_on() {
        script::derived(targets.unwrap_or(&[]).iter().map(|target| &*target.node));
    }
    Walk::run(roots, targets, options, tape.filter(|tape| !tape.is_current()))
}

/// The nodes between `roots` and `targets`.
fn relevant(roots: &[(Edge, Tensor)], targets: &[Edge]) -> FxHashSet<*const Node> {
    // A node older than every target cannot lead to one.
    let oldest = targets.iter().map(|t| t.node.seq).min().unwrap_or(u64::MAX);
    let mut order = ancestors(roots.iter().map(|(e, _)| &e.node), oldest);
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
        &self, gradient: Option<&Tensor>, options: Options, inputs: Option<&[Tensor]>,
    ) -> Result<()> {
        backward(std::slice::from_ref(self), &[gradient.cloned()], options, inputs)
    }
}

/// Back-propagates from all `outputs` in one walk and adds the gradients of all leaves, or of `inputs`, to
/// their slots. `gradients` holds the cotangents, one per output.
pub fn backward(
    outputs: &[Tensor], gradients: &[Option<Tensor>], options: Options, inputs: Option<&[Tensor]>,
) -> Result<()> {
    let options = Options { accumulate: true, ..options };
    let Some(inputs) = inputs else {
        run(seeds::roots(outputs, gradients)?, None, options, None)?;
        return Ok(());
    };
    let missing = |i: usize, x: &Tensor| {
        format!(
            "backward: inputs[{i}], a {} tensor of shape {}, does not require a gradient; call \
             requires_grad_() on it before computing with it, or leave it out",
            x.dtype(),
            x.shape()
        )
    };
    across(outputs, gradients, &edges(inputs, missing)?, options)?;
    Ok(())
}

/// Walks from `outputs` to `targets`, which may be on other tapes than the outputs. Inside a transform there
/// are two tapes. A leaf made there is on the inner tape, which then wraps everything computed from it. The
/// argument of the function is on the outer tape, which recorded all operations.
fn across(
    outputs: &[Tensor], gradients: &[Option<Tensor>], targets: &[Edge], options: Options,
) -> Result<Vec<Option<Tensor>>> {
    let roots = seeds::roots(outputs, gradients)?;
    let mut tapes: SmallVec<[Tag; 2]> = targets.iter().map(|t| t.node.tag).collect();
    tapes.sort_unstable_by_key(|tag| std::cmp::Reverse(*tag));
    tapes.dedup();
    if roots.iter().all(|(edge, _)| tapes.iter().all(|tag| *tag == edge.node.tag)) {
        return run(roots, Some(targets), options, None);
    }
    let mut found = vec![None; targets.len()];
    for tape in tapes {
        let begin = outputs.iter().zip(&roots);
        let begin = begin.filter_map(|(y, (_, g))| Some((seeds::on_tape(y, tape)?, g.clone()))).collect();
        let (places, own): (Vec<usize>, Vec<Edge>) =
            targets.iter().cloned().enumerate().filter(|(_, t)| t.node.tag == tape).unzip();
        for (place, g) in places.into_iter().zip(run(begin, Some(&own), options, None)?) {
            found[place] = g;
        }
    }
    Ok(found)
}

/// Gradients of `outputs` with respect to `inputs`, without touching any `.grad`.
///
/// `gradients`: the cotangents, one per output. The result has `None` for an input without effect.
pub fn grad(
    outputs: &[Tensor], inputs: &[Tensor], gradients: &[Option<Tensor>], options: Options,
) -> Result<Vec<Option<Tensor>>> {
    let missing = |i: usize, _: &Tensor| {
        format!("grad: input {i} does not require a gradient; call requires_grad_() on it first")
    };
    let options = Options { accumulate: false, ..options };
    across(outputs, gradients, &edges(inputs, missing)?, options)
}

/// The gradients that reach `targets` from `outputs`, each by itself, in the order in which a walk adds them.
pub fn apart(
    outputs: &[Tensor], gradients: &[Option<Tensor>], targets: &[Edge],
) -> Result<Vec<Contribution>> {
    let _region = interp::leave_autocast();
    let _mode = interp::recording(false);
    let _held = script::is_on().then(location::hold);
    let options = Options { retain_graph: true, ..Options::default() };
    Walk::run_apart(seeds::roots(outputs, gradients)?, targets, options)
}

/// The edge of each input; `missing` words the error for one without.
fn edges(inputs: &[Tensor], missing: impl Fn(usize, &Tensor) -> String) -> Result<Vec<Edge>> {
    let edge = |(i, x): (usize, &Tensor)| x.edge().ok_or_else(|| Error::autodiff(missing(i, x)));
    inputs.iter().enumerate().map(edge).collect()
}
