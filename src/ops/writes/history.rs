//! Merges a new value into the history of an old one: the effect of a write inside `vmap` and `jvp`, where a
//! tensor is not memory and the new value replaces the old. Level by level, it takes over the old value's
//! nodes. Read next: `src/ops/writes/inplace.rs`, which writes memory and keeps the tensor's levels.

use crate::error::Result;
use crate::interp::{self, Tag};
use crate::tensor::{Payload, Tensor, Traced};
use std::sync::Arc;

/// Which history of the old value is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// That of tapes that are not recording; recording tapes and forward modes take the new value's.
    Unrecorded,
    /// All of it, tangents included; the new value's history is dropped.
    All,
}

impl Keep {
    /// Whether the node on `tape` is kept.
    fn has(self, tape: Tag) -> bool {
        self == Keep::All || tape < interp::grad_threshold()
    }
}

/// Returns the elements of `new`, of the shape of `old`, with the history of `old` that `keep` retains.
pub fn kept(old: &Tensor, new: &Tensor, keep: Keep) -> Result<Tensor> {
    merged(Some(old), new, keep)
}

/// [`kept`]; without an old history, drops from `new` the history that does not count.
fn merged(old: Option<&Tensor>, new: &Tensor, keep: Keep) -> Result<Tensor> {
    let old = old.and_then(Tensor::traced);
    match (old, new.traced()) {
        (None, None) => Ok(new.clone()),
        (Some(was), Some(is)) if was.tag == is.tag => level(was, is, keep),
        (Some(was), is) if is.is_none_or(|is| is.tag < was.tag) => lost(was, new, keep),
        (was, Some(is)) => gained(was.map(|was| Tensor::Traced(was.clone())), is, keep),
        (Some(was), None) => lost(was, new, keep),
    }
}

/// Builds a value at the level of `like` with this tangent.
fn dual(like: &Traced, primal: Tensor, tangent: Option<Tensor>) -> Tensor {
    let payload = Payload::Dual { primal, tangent };
    Tensor::Traced(Arc::new(Traced { tag: like.tag, aval: like.aval, payload }))
}

/// Merges where old and new value share a level.
fn level(was: &Arc<Traced>, is: &Arc<Traced>, keep: Keep) -> Result<Tensor> {
    match (&was.payload, &is.payload) {
        (Payload::Taped { primal, .. }, Payload::Taped { primal: next, .. }) => {
            let value = kept(primal, next, keep)?;
            Ok(if keep.has(was.tag) { was } else { is }.with_inner(value))
        }
        (Payload::Dual { primal, tangent }, Payload::Dual { primal: next, tangent: moved }) => {
            let tangent = match (keep, tangent, moved) {
                (Keep::All, tangent, _) => tangent.clone(),
                (_, Some(tangent), Some(moved)) => Some(kept(tangent, moved, keep)?),
                (_, None, Some(moved)) => Some(merged(None, moved, keep)?),
                (_, _, None) => None,
            };
            Ok(dual(is, kept(primal, next, keep)?, tangent))
        }
        (Payload::Batched { value, axis, .. }, Payload::Batched { value: next, axis: from, .. }) => {
            let next = if axis == from { next.clone() } else { next.move_axis(*from, *axis)? };
            Ok(was.with_inner(kept(value, &next, keep)?))
        }
        (Payload::Linearized { .. }, _) if keep == Keep::All => lost(was, is.inner(), keep),
        _ => Ok(Tensor::Traced(is.clone())),
    }
}

/// Merges where the old value has a level that the new one lacks.
fn lost(was: &Arc<Traced>, new: &Tensor, keep: Keep) -> Result<Tensor> {
    match &was.payload {
        Payload::Taped { primal, .. } => {
            let value = kept(primal, new, keep)?;
            Ok(if keep.has(was.tag) { was.with_inner(value) } else { value })
        }
        Payload::Dual { primal, .. } => {
            let primal = kept(primal, new, keep)?;
            Ok(if keep == Keep::All { was.with_inner(primal) } else { primal })
        }
        Payload::Batched { value, .. } if value.traced().is_none() && keep == Keep::Unrecorded => {
            merged(None, new, keep)
        }
        Payload::Batched { value, axis, .. } => {
            // All examples get the same value.
            let each = new.unsqueeze(*axis as i64)?.expand(&value.shape())?;
            Ok(was.with_inner(kept(value, &each, keep)?))
        }
        Payload::Linearized { value, .. } if keep == Keep::All => Ok(was.with_inner(kept(value, new, keep)?)),
        Payload::Linearized { .. } | Payload::Donated { .. } => merged(None, new, keep),
    }
}

/// Merges where the new value has a level that the old one lacks.
fn gained(was: Option<Tensor>, is: &Arc<Traced>, keep: Keep) -> Result<Tensor> {
    let below = |next: &Tensor| merged(was.as_ref(), next, keep);
    match &is.payload {
        Payload::Taped { primal, .. } => {
            let value = below(primal)?;
            Ok(if keep.has(is.tag) { value } else { is.with_inner(value) })
        }
        Payload::Dual { primal, .. } if keep == Keep::All => below(primal),
        Payload::Dual { primal, tangent } => {
            let tangent = tangent.as_ref().map(|t| merged(None, t, keep)).transpose()?;
            Ok(dual(is, below(primal)?, tangent))
        }
        Payload::Batched { value, axis, .. } => {
            // The value that all examples shared becomes one per example, with the shared history.
            let each = match &was {
                Some(was) => Some(interp::with_grad(|| was.unsqueeze(*axis as i64)?.expand(&value.shape()))?),
                None => None,
            };
            Ok(is.with_inner(merged(each.as_ref(), value, keep)?))
        }
        Payload::Linearized { .. } | Payload::Donated { .. } => Ok(Tensor::Traced(is.clone())),
    }
}

/// Whether the history of `t` includes a tape that is recording.
pub fn is_recorded(t: &Tensor) -> bool {
    let threshold = interp::grad_threshold();
    t.levels().any(|t| matches!(t.payload, Payload::Taped { .. }) && t.tag >= threshold)
}
