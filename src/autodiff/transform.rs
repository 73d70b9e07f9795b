//! Transforms of functions: `vjp`, `jvp`, `vmap`. All others (`grad`, jacobians, hessians) are made of them.

use super::prelude::*;
use crate::autodiff::backward::{self, Options};
use crate::autodiff::finished::FinishedTape;
use crate::autodiff::seeds;
use crate::interp::{Interp, InterpGuard, Kind, Randomness, batch, dual};
use crate::op::Batched;

/// The backward pass of a function at a point; it can run with any cotangents, any number of times.
#[derive(Default)]
pub struct Pullback {
    outputs: Vec<Option<Edge>>,
    inputs: Vec<Edge>,
    /// The tape of the transform, which has finished.
    tape: Option<FinishedTape>,
}

impl Pullback {
    /// The nodes that it holds.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.outputs.iter().flatten().chain(&self.inputs).map(|edge| &edge.node)
    }

    /// Returns the cotangents of the inputs, zeros for an input without influence. Runs under the
    /// interpreters current at the call, so it can be batched or differentiated itself.
    pub fn call(&self, cotangents: &[Option<Tensor>], retain: bool) -> Result<Vec<Tensor>> {
        let mut roots = Vec::new();
        for (edge, g) in self.outputs.iter().zip(cotangents) {
            if let (Some(edge), Some(g)) = (edge, g) {
                seeds::check(g, edge.aval())?;
                roots.push((edge.clone(), g.clone()));
            }
        }
        let options = Options { retain_graph: retain, ..Options::default() };
        let found = backward::run(roots, Some(&self.inputs), options, self.tape.as_ref())?;
        found
            .into_iter()
            .zip(&self.inputs)
            .map(|(g, edge)| match g {
                Some(g) => Ok(g),
                None => Tensor::zeros(edge.aval().shape, edge.aval().dtype, edge.aval().device),
            })
            .collect()
    }
}

/// Unwraps `y` to the level of `transform` or below; levels above it are detached. Compares positions in the
/// chain as well as tags, because a batch that was reentered lies above levels younger than itself.
pub fn unwrap_to_level(y: &Tensor, transform: &Arc<Interp>) -> Tensor {
    y.peeled(|tag| tag > transform.tag && !transform.contains(tag))
}

/// Runs and records `f` at `primals`. Returns its outputs and its pullback.
pub fn vjp<F>(f: F, primals: &[Tensor]) -> Result<(Vec<Tensor>, Pullback)>
where
    F: FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
{
    let (tape, guard) = interp::push(Kind::Tape { ambient: false });
    let leaves: Vec<Tensor> = primals.iter().map(|x| Node::leaf_tensor(tape.tag, x.clone())).collect();
    let recorded = FinishedTape::of(&interp::current());
    let outputs = f(&leaves)?;
    drop(guard);
    let inputs = leaves.iter().filter_map(Tensor::edge).collect();
    let parts = |y: &Tensor| {
        let y = unwrap_to_level(y, &tape);
        match y.owned_by(tape.tag) {
            Some(t) => (t.inner().clone(), y.edge()),
            None => (y, None),
        }
    };
    let (values, outputs) = outputs.iter().map(parts).unzip();
    Ok((values, Pullback { outputs, inputs, tape: Some(recorded) }))
}

/// Runs `f` at `primals` and pushes `tangents` through it (`None` is zero). Returns its outputs and their
/// tangents, zeros for outputs that depend on no tangent.
pub fn jvp<F>(f: F, primals: &[Tensor], tangents: &[Option<Tensor>]) -> Result<(Vec<Tensor>, Vec<Tensor>)>
where
    F: FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
{
    let (level, guard) = interp::push(Kind::Dual);
    let mut inputs = Vec::new();
    for (x, t) in primals.iter().zip(tangents) {
        if let Some(t) = t {
            check_tangent("jvp", t, &x.aval())?;
        }
        inputs.push(dual::wrap(&level, x.clone(), t.clone()));
    }
    let outputs = f(&inputs)?;
    drop(guard);
    let parts = |y: &Tensor| {
        let y = unwrap_to_level(y, &level);
        let (primal, tangent) = dual::split(&level, &y);
        let tangent = tangent.map_or_else(|| primal.zeros_like(), |t| Ok(t.clone()))?;
        Ok((primal.clone(), tangent))
    };
    outputs.iter().map(parts).collect()
}

/// Raises for a tangent of another shape or dtype than its primal, on behalf of `transform`.
pub fn check_tangent(transform: &str, t: &Tensor, primal: &Aval) -> Result<()> {
    if t.has_shape(&primal.shape) && t.dtype() == primal.dtype {
        return Ok(());
    }
    let kind = if t.has_shape(&primal.shape) { Error::dtype } else { Error::shape };
    Err(kind(format!(
        "{transform}: a tangent is {}{}, expected {}{} as its primal",
        t.dtype(),
        t.shape(),
        primal.dtype,
        primal.shape
    )))
}

/// Enters the batching interpreter of a [`vmap`]; `randomness` says what random numbers mean inside.
pub fn batching(size: usize, randomness: Randomness) -> (Arc<Interp>, InterpGuard) {
    interp::push(Kind::Batch { size, randomness })
}

/// Reenters the ended batch of this tag on top of the current chain, without random numbers: its values are
/// those of one example again. Enters a new batch if the chain still contains the tag.
pub fn batching_again(tag: Tag, size: usize) -> (Arc<Interp>, InterpGuard) {
    let current = interp::current();
    if current.contains(tag) {
        return batching(size, Randomness::Error);
    }
    interp::reenter(&Interp::tagged(tag, &current, Kind::Batch { size, randomness: Randomness::Error }))
}

/// Runs `f` once for a whole batch, under the interpreter entered by [`batching`]. `in_axes` gives the batch
/// axis of each input (`None`: shared). Returns each output with its batch axis, `None` if it has none.
pub fn vmap<F>(
    (level, guard): (Arc<Interp>, InterpGuard), f: F, inputs: &[Tensor], in_axes: &[Option<usize>],
) -> Result<Vec<(Tensor, Option<usize>)>>
where
    F: FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
{
    let operands: Vec<Tensor> =
        inputs.iter().zip(in_axes).map(|(x, axis)| batch::wrap(&level, x.clone(), *axis)).collect();
    let outputs = f(&operands)?;
    drop(guard);
    outputs.iter().map(|y| batch::unwrap(&level, &unwrap_to_level(y, &level))).collect()
}

/// [`vmap`] in a new batch of `size`, with the batch axes of the outputs in front; an output without one is
/// repeated.
pub fn vmap_in_front<F>(
    size: usize, randomness: Randomness, f: F, inputs: &[Tensor], in_axes: &[Option<usize>],
) -> Result<Vec<Tensor>>
where
    F: FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
{
    let outputs = vmap(batching(size, randomness), f, inputs, in_axes)?.into_iter();
    outputs.map(|(value, axis)| Batched { value, axis }.materialized(size)).collect()
}
