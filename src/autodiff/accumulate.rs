//! Adding up gradients: the first to reach a slot is moved there, later ones are added, in place where nobody
//! looks.

use crate::buffer::Device;
use crate::error::Result;
use crate::ops::elementwise::add_in_place;
use crate::tensor::Tensor;

/// `total + g`. Writes into `total`'s memory if this is the only handle to it and the sum need not be
/// recorded.
pub fn add(total: Tensor, g: &Tensor, recorded: bool) -> Result<Tensor> {
    match (total, g) {
        (Tensor::Array(sum), Tensor::Array(g))
            if !recorded
                && sum.device() == Device::Cpu
                && sum.is_exclusive()
                && sum.dtype() == g.dtype()
                && sum.same_shape(g) =>
        {
            add_in_place(&sum, g)?;
            crate::cost::accumulated(g.numel());
            Ok(sum.into())
        }
        (total, g) => total.add(g),
    }
}

/// Sums `g` over broadcast axes and converts it so that it has exactly this shape and dtype.
#[inline]
pub fn fit(g: Tensor, aval: &crate::tensor::Aval) -> Result<Tensor> {
    let g = if g.has_shape(&aval.shape) { g } else { g.sum_to(&aval.shape)? };
    if g.dtype() == aval.dtype { Ok(g) } else { g.cast(aval.dtype) }
}

/// Puts `g` into the gradient slot of a leaf.
pub fn into_slot(slot: &mut Option<Tensor>, g: Tensor, recorded: bool) -> Result<()> {
    *slot = Some(match slot.take() {
        Some(total) => add(total, &g, recorded)?,
        None if recorded => g,
        None => own(g)?,
    });
    Ok(())
}

/// A gradient that shares no memory with anything else: users may write into `.grad`.
fn own(g: Tensor) -> Result<Tensor> {
    match g {
        Tensor::Array(a) if a.is_exclusive() => Ok(a.into()),
        Tensor::Array(a) => Tensor::Array(a).copied(),
        traced => Ok(traced),
    }
}
