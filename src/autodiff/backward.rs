//! The backward walk: from the youngest entry to the oldest, no recursion, gradients summed as they meet.
//! Here is what is asked of it; `backward/walk.rs` visits entries in the order of `queue.rs`,
//! `backward/leaves.rs` completes the gradients of leaves.
//!
//! The rules run under whatever chain of interpreters is current, so a backward inside `vmap` is batched and
//! one inside `grad` is recorded by the outer tape. With `create_graph` the saved values are put back on
//! their own tape, so that this tape records its own backward.

mod leaves;
mod walk;

use crate::autodiff::finished::FinishedTape;
use crate::autodiff::seeds;
use crate::error::{Error, Result};
use crate::interp::{self, Tag};
use crate::tape::node::{Edge, Node};
use crate::tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;
use walk::Walk;

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

/// Sends `roots`' gradients back through the tape. With `targets`, only what leads to them is visited, and
/// their gradients are returned in order (`None`: the roots do not depend on it); without, every leaf is
/// reached.
pub fn run(
    roots: Vec<(Edge, Tensor)>,
    targets: Option<&[Edge]>,
    options: Options,
) -> Result<Vec<Option<Tensor>>> {
    run_finished(roots, targets, options, None)
}

/// [`run`] for the tape of a transform, which may have finished: hooks and custom rules run on it
/// nevertheless.
pub fn run_finished(
    roots: Vec<(Edge, Tensor)>,
    targets: Option<&[Edge]>,
    options: Options,
    tape: Option<&FinishedTape>,
) -> Result<Vec<Option<Tensor>>> {
    // As the operations did, each in its own precision, whatever region the walk is in.
    let _region = interp::leave_autocast();
    // Rules and hooks compute without recording, unless that is asked for. Where there are other tapes, they
    // go on recording: they are what differentiates this very walk.
    let outermost = interp::is_plain() && roots.iter().all(|(e, _)| e.node.tag == interp::ambient().tag);
    let _mode = outermost.then(|| interp::recording(options.create_graph));
    Walk::run(roots, targets, options, tape.filter(|tape| !tape.is_current()))
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
                "backward: inputs[{i}], a {} tensor of shape {}, does not require a gradient; call \
                 requires_grad_() on it before computing with it, or leave it out",
                x.dtype(),
                x.shape()
            ))
        })?;
        targets.push(edge);
    }
    across(outputs, gradients, &targets, options)?;
    Ok(())
}

/// Walks from `outputs` to `targets`, which may be on other tapes than the outputs. Inside a transform there
/// are two: a leaf made there is on the inner one, which then has the last word on what is computed from it,
/// and the argument of the function is on the outer one, which recorded all of it.
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
