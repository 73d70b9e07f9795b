//! Tensors inside `vmap` and `jvp` under an outer tape: finds their node on that tape, and runs their hooks
//! on its gradients, one example at a time.

use super::prelude::*;
use crate::autodiff::transform::{batching_again, vmap};
use crate::tape::hooks::Gradients;

/// One `vmap` around a tensor: its tag, the batch axis of the tensor just outside it, and the batch size.
#[derive(Clone, Copy)]
pub struct Level {
    tag: Tag,
    axis: usize,
    size: usize,
}

/// The `vmap` levels between a tensor and its tape, outermost first.
pub type Levels = SmallVec<[Level; 1]>;

/// The gradients that a hook returned, or `None` to leave those it was given unchanged.
pub type Returned = Option<Vec<Option<Tensor>>>;

/// The edge on the nearest tape that recorded a tensor, below `vmap` and `jvp`, and the batch levels between.
pub fn behind(t: &Tensor) -> Option<(Edge, Levels)> {
    let (mut at, mut levels) = (t, Levels::new());
    loop {
        let traced = at.traced()?;
        match &traced.payload {
            Payload::Taped { .. } => {
                levels.reverse();
                return at.edge().map(|edge| (edge, levels));
            }
            Payload::Dual { primal, .. } | Payload::Linearized { value: primal, .. } => at = primal,
            Payload::Batched { value, axis, .. } => {
                levels.push(Level { tag: traced.tag, axis: *axis, size: value.shape().at(*axis) });
                at = value;
            }
            Payload::Donated { .. } => return None,
        }
    }
}

/// The edge that [`behind`] returns.
pub fn edge_behind(t: &Tensor) -> Option<Edge> {
    behind(t).map(|(edge, _)| edge)
}

/// Moves the axes of all batches of a gradient on the tape to the front, outermost first.
pub fn stacked(g: Tensor, levels: &Levels) -> Result<Tensor> {
    // The axis of an inner batch does not count the axes of the batches around it.
    levels.iter().enumerate().try_fold(g, |g, (i, level)| g.move_axis(level.axis + i, i))
}

/// `f` of the gradients, which sees them inside the batches of each (`levels`), its result as seen outside.
pub fn within(
    g: &Gradients, levels: &[&[Level]], f: &dyn Fn(&Gradients) -> Result<Returned>,
) -> Result<Returned> {
    let Some(outer) = levels.iter().filter_map(|l| l.first()).min_by_key(|l| l.tag).copied() else {
        return f(g);
    };
    let axis = |i: usize| Some(levels.get(i)?.first().filter(|l| l.tag == outer.tag)?.axis);
    let inner: Vec<&[Level]> =
        levels.iter().enumerate().map(|(i, l)| if axis(i).is_some() { &l[1..] } else { l }).collect();
    let (present, axes): (Vec<Tensor>, Vec<Option<usize>>) =
        g.iter().enumerate().filter_map(|(i, g)| g.clone().map(|g| (g, axis(i)))).unzip();
    let mut returned: Option<Vec<bool>> = None;
    let one = |x: &[Tensor]| {
        let mut x = x.iter().cloned();
        let seen: Vec<Option<Tensor>> = g.iter().map(|g| g.as_ref().and_then(|_| x.next())).collect();
        let out = within(&seen, &inner, f)?;
        returned = out.as_ref().map(|out| out.iter().map(Option::is_some).collect());
        Ok(out.into_iter().flatten().flatten().collect())
    };
    // Reuses the tag: tensors of the batched function belong to its batch, which has ended.
    let mut out = vmap(batching_again(outer.tag, outer.size), one, &present, &axes)?.into_iter();
    let Some(returned) = returned else { return Ok(None) };
    let back = |(i, there): (usize, bool)| match if there { out.next() } else { None } {
        Some((new, at)) => put_back(new, at, axis(i), outer.size).map(Some),
        None => Ok(None),
    };
    returned.into_iter().enumerate().map(back).collect::<Result<_>>().map(Some)
}

/// Moves the batch axis of a gradient that a hook returned from `at` to `axis`.
fn put_back(new: Tensor, at: Option<usize>, axis: Option<usize>, size: usize) -> Result<Tensor> {
    match (at, axis) {
        (Some(at), Some(axis)) => new.move_axis(at, axis),
        (None, Some(axis)) => new.unsqueeze(axis as i64)?.expand(&new.shape().inserted(axis, size)?),
        (None, None) => Ok(new),
        (Some(_), None) => Err(Error::autodiff(
            "a hook inside vmap returned gradients that differ between the examples for a tensor that they \
             share; return one that does not depend on the example, or None to leave the gradient as it is",
        )),
    }
}
