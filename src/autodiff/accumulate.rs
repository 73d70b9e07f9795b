//! Accumulation of gradients: the first moves into its slot, later ones are added, in place if unshared.

use super::prelude::*;
use crate::array::buffer::Device;
use crate::ops::pointwise::elementwise::add_into;
use crate::ops::writes::{inplace, writable};
use crate::tape::hooks::Hooks;

/// `total += g`. Adds in place if `total` is the only handle to its memory and the sum need not be recorded.
pub fn add(total: &mut Tensor, g: &Tensor, recorded: bool) -> Result<()> {
    match (&*total, g) {
        (Tensor::Array(sum), Tensor::Array(g))
            if !recorded
                && sum.device() == Device::Cpu
                && sum.is_exclusive()
                && !sum.dtype().is_complex()
                && sum.dtype() == g.dtype()
                && sum.same_shape(g) =>
        {
            add_into(sum, g)
        }
        (before, g) => {
            *total = before.add(g)?;
            Ok(())
        }
    }
}

/// Sums `g` over broadcast axes and casts it, so that it has exactly this shape and dtype.
#[inline(always)]
pub fn fit(g: &mut Tensor, aval: &Aval) -> Result<()> {
    if !g.has_shape(&aval.shape) {
        *g = g.sum_to(&aval.shape)?;
    }
    if g.dtype() != aval.dtype {
        *g = g.cast(aval.dtype)?;
    }
    Ok(())
}

/// [`fit`] by value.
pub fn fitted(mut g: Tensor, aval: &Aval) -> Result<Tensor> {
    fit(&mut g, aval).map(|()| g)
}

/// Stores `g` in the gradient slot of a leaf, or adds it to the gradient there, in place even if that memory
/// is shared: an assigned gradient may be a view of a larger buffer.
pub fn into_slot(slot: &mut Option<Tensor>, g: Tensor, recorded: bool) -> Result<()> {
    let Some(total) = slot else {
        *slot = Some(if recorded { g } else { own(g)? });
        return Ok(());
    };
    match (&*total, &g) {
        (Tensor::Array(sum), Tensor::Array(_)) if !recorded && !sum.is_exclusive() => {
            let memory = sum.clone();
            add(total, &g, recorded)?;
            // A gradient that cannot be written (an expanded tensor) is replaced instead.
            if writable::check_writable(WRITER, &memory).is_ok()
                && let Tensor::Array(new) = &*total
                && new.dtype() == memory.dtype()
                && new.same_shape(&memory)
            {
                inplace::store(WRITER, &memory, &memory, new)?;
                *total = memory.into();
            }
            Ok(())
        }
        _ => add(total, &g, recorded),
    }
}

/// Adds `g` to the `retain_grad` slot of output `index` of the node with these hooks, if there is one.
pub fn into_kept(hooks: &Hooks, index: u32, g: &Tensor, recorded: bool) -> Result<()> {
    let Some(keep) = hooks.retained(index) else { return Ok(()) };
    let mut slot = keep.get();
    into_slot(&mut slot, g.clone(), recorded)?;
    keep.set(slot);
    Ok(())
}

/// The writer of gradients, as messages name it.
const WRITER: &str = "accumulate_grad";

/// Copies a gradient that shares memory, because users may write into `.grad`.
fn own(g: Tensor) -> Result<Tensor> {
    match g {
        Tensor::Array(a) if a.is_exclusive() => Ok(a.into()),
        Tensor::Array(a) => Tensor::Array(a).copied(),
        traced => Ok(traced),
    }
}
