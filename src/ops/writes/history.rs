//! Values that change while a history stands: what a write makes of a tensor inside `vmap` and `jvp`, where a
//! value is not memory and takes the place of the old one. Level by level, the new value is put under the
//! tape entries of the old. Read next: `src/ops/writes/inplace.rs`, where memory is written and the tensor's
//! levels stay as they are.

use crate::error::Result;
use crate::interp::{self, Tag};
use crate::tensor::{Payload, Tensor, Traced};
use std::sync::Arc;

/// Which history of the old value stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// That of tapes which do not record now; recording tapes and forward modes see the new value's.
    Unrecorded,
    /// All of it, tangents included; the new value's does not count.
    All,
}

impl Keep {
    /// Whether the entry of a tape stays.
    fn has(self, tape: Tag) -> bool {
        self == Keep::All || tape < interp::grad_threshold()
    }
}

/// The numbers of `new`, of the shape of `old`, with the history of `old` that stays.
pub fn kept(old: &Tensor, new: &Tensor, keep: Keep) -> Result<Tensor> {
    merged(Some(old), new, keep)
}

/// [`kept`] without an old history: `new` without what does not count of its own.
fn bare(new: &Tensor, keep: Keep) -> Result<Tensor> {
    merged(None, new, keep)
}

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

/// A value of the level of `like` with this payload.
fn on(like: &Traced, payload: Payload) -> Tensor {
    Tensor::Traced(Arc::new(Traced { tag: like.tag, aval: like.aval, payload }))
}

/// `value` as an output of the tape entry that made `like`.
fn entry(like: &Traced, value: Tensor) -> Tensor {
    match &like.payload {
        Payload::Taped { node, index, .. } => {
            on(like, Payload::Taped { primal: value, node: node.clone(), index: *index })
        }
        _ => value,
    }
}

/// Old and new value have a level in common.
fn level(was: &Arc<Traced>, is: &Arc<Traced>, keep: Keep) -> Result<Tensor> {
    match (&was.payload, &is.payload) {
        (Payload::Taped { primal, .. }, Payload::Taped { primal: next, .. }) => {
            let value = kept(primal, next, keep)?;
            Ok(entry(if keep.has(was.tag) { was } else { is }, value))
        }
        (Payload::Dual { primal, tangent }, Payload::Dual { primal: next, tangent: moved }) => {
            let tangent = match (keep, tangent, moved) {
                (Keep::All, tangent, _) => tangent.clone(),
                (_, Some(tangent), Some(moved)) => Some(kept(tangent, moved, keep)?),
                (_, None, Some(moved)) => Some(bare(moved, keep)?),
                (_, _, None) => None,
            };
            Ok(on(is, Payload::Dual { primal: kept(primal, next, keep)?, tangent }))
        }
        (Payload::Batched { value, axis }, Payload::Batched { value: next, axis: from }) => {
            let next = if axis == from { next.clone() } else { next.move_axis(*from, *axis)? };
            Ok(on(was, Payload::Batched { value: kept(value, &next, keep)?, axis: *axis }))
        }
        (Payload::Staged { .. }, _) if keep == Keep::All => lost(was, is.inner(), keep),
        _ => Ok(Tensor::Traced(is.clone())),
    }
}

/// The old value has a level that the new one has not.
fn lost(was: &Arc<Traced>, new: &Tensor, keep: Keep) -> Result<Tensor> {
    match &was.payload {
        Payload::Taped { primal, .. } => {
            let value = kept(primal, new, keep)?;
            Ok(if keep.has(was.tag) { entry(was, value) } else { value })
        }
        Payload::Dual { primal, tangent } => {
            let primal = kept(primal, new, keep)?;
            Ok(match keep {
                Keep::All => on(was, Payload::Dual { primal, tangent: tangent.clone() }),
                Keep::Unrecorded => primal,
            })
        }
        Payload::Batched { value, .. } if value.traced().is_none() && keep == Keep::Unrecorded => {
            bare(new, keep)
        }
        Payload::Batched { value, axis } => {
            // The same for all examples.
            let each = new.unsqueeze(*axis as i64)?.expand(&value.shape())?;
            Ok(on(was, Payload::Batched { value: kept(value, &each, keep)?, axis: *axis }))
        }
        Payload::Staged { value, var, program } => match keep {
            Keep::All => {
                let value = kept(value, new, keep)?;
                Ok(on(was, Payload::Staged { value, var: *var, program: program.clone() }))
            }
            Keep::Unrecorded => bare(new, keep),
        },
    }
}

/// The new value has a level that the old one has not.
fn gained(was: Option<Tensor>, is: &Arc<Traced>, keep: Keep) -> Result<Tensor> {
    let below = |next: &Tensor| merged(was.as_ref(), next, keep);
    match &is.payload {
        Payload::Taped { primal, .. } => {
            let value = below(primal)?;
            Ok(if keep.has(is.tag) { value } else { entry(is, value) })
        }
        Payload::Dual { primal, .. } if keep == Keep::All => below(primal),
        Payload::Dual { primal, tangent } => {
            let tangent = tangent.as_ref().map(|t| bare(t, keep)).transpose()?;
            Ok(on(is, Payload::Dual { primal: below(primal)?, tangent }))
        }
        Payload::Batched { value, axis } => {
            // What all examples shared is one of each now, with the history of the one.
            let each = match &was {
                Some(was) => Some(interp::with_grad(|| was.unsqueeze(*axis as i64)?.expand(&value.shape()))?),
                None => None,
            };
            Ok(on(is, Payload::Batched { value: merged(each.as_ref(), value, keep)?, axis: *axis }))
        }
        Payload::Staged { .. } => Ok(Tensor::Traced(is.clone())),
    }
}

/// Whether a tape that records now is anywhere in the history of `t`.
pub fn is_recorded(t: &Tensor) -> bool {
    let mut at = t;
    while let Some(traced) = at.traced() {
        if matches!(traced.payload, Payload::Taped { .. }) && traced.tag >= interp::grad_threshold() {
            return true;
        }
        at = traced.inner();
    }
    false
}
