//! Memory with a single owner. Inside `vmap` and `jvp` a write produces a new value, but it may write in
//! place where nothing else refers to the memory. If another tensor, a view or a saved tensor refers to it,
//! the write makes a copy. Read next: `src/ops/writes/inplace.rs`.

use crate::ops::prelude::*;
use crate::tensor::{Payload, Traced};
use std::sync::Arc;

/// The arrays of a value: its own, and those of its tangents.
pub type Memory = SmallVec<[Array; 2]>;

/// Returns the memory of `t` to which nothing refers except `handles` handles to `t`.
pub fn memory(t: &Tensor, handles: usize) -> Memory {
    let mut found = Memory::new();
    collect(t, handles, &mut found);
    found
}

fn collect(t: &Tensor, handles: usize, found: &mut Memory) {
    match t {
        Tensor::Array(a) if handles == 1 && a.is_alone() => found.push(a.clone()),
        Tensor::Traced(traced) if Arc::strong_count(traced) <= handles => match &traced.payload {
            Payload::Dual { primal, tangent } => {
                collect(primal, 1, found);
                tangent.iter().for_each(|tangent| collect(tangent, 1, found));
            }
            _ => collect(traced.inner(), 1, found),
        },
        _ => {}
    }
}

/// Returns a placeholder for `t`, without memory, for use where elements are not read: it has the shape,
/// dtype, device and levels of `t`.
pub fn stand_in(t: &Tensor) -> Result<Tensor> {
    let traced = match t {
        Tensor::Array(a) => {
            let one = Array::empty(Shape::SCALAR, a.dtype(), a.device())?;
            return Ok(one.expand(&a.shape())?.into());
        }
        Tensor::Traced(traced) => traced,
    };
    let inner = stand_in(traced.inner())?;
    let Payload::Dual { tangent: Some(tangent), .. } = &traced.payload else {
        return Ok(traced.with_inner(inner));
    };
    let payload = Payload::Dual { primal: inner, tangent: Some(stand_in(tangent)?) };
    Ok(Tensor::Traced(Arc::new(Traced { tag: traced.tag, aval: traced.aval, payload })))
}
