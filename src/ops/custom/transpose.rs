//! Derives one rule from the other: both are linear, and each is the transpose of the other.

use crate::autodiff::{accumulate, transform};
use crate::interp::{self, Tag};
use crate::ops::pointwise::compare::Logic;
use crate::ops::prelude::*;
use crate::process::on_drop::OnDrop;
use crate::tensor::Aval;
use std::cell::RefCell;

thread_local! {
    /// The tapes on which this thread is recording maps to be transposed.
    static RUNNING: RefCell<Vec<Tag>> = const { RefCell::new(Vec::new()) };
}

/// Whether the tape `tag` is recording a map to be transposed.
pub fn is_running(tag: Tag) -> bool {
    RUNNING.with_borrow(|tapes| tapes.contains(&tag))
}

/// Applies the transpose of the linear `map` to `seeds`, one per result of the map: the VJP of the map at
/// zero (J. Townsend, "A new trick for calculating Jacobian vector products", 2017). `domain` has the
/// abstract value of each argument that varies; `None` for the others.
pub fn transpose(
    map: impl FnOnce(&[Option<Tensor>]) -> Result<Grads>, domain: &[Option<Aval>], seeds: &[Option<Tensor>],
) -> Result<Grads> {
    let moving = || domain.iter().enumerate().filter_map(|(i, aval)| aval.map(|aval| (i, aval)));
    let zeros =
        moving().map(|(_, a)| Tensor::zeros(a.shape, a.dtype, a.device)).collect::<Result<Vec<_>>>()?;
    let mut weights = Vec::new();
    let run = |leaves: &[Tensor]| {
        let tape = leaves.iter().find_map(|leaf| leaf.traced()).map_or(0, |leaf| leaf.tag);
        RUNNING.with_borrow_mut(|tapes| tapes.push(tape));
        let _running = OnDrop(|| _ = RUNNING.with_borrow_mut(Vec::pop));
        let mut arguments = vec![None; domain.len()];
        for ((i, _), leaf) in moving().zip(leaves) {
            arguments[i] = Some(leaf.clone());
        }
        let mut out = Vec::new();
        for (y, seed) in map(&arguments)?.into_iter().zip(seeds) {
            if let Some(y) = &y {
                check(y)?;
            }
            if let (Some(y), Some(seed)) = (y, seed) {
                // A rule may leave sums over broadcast axes undone.
                out.push(accumulate::fitted(y, &seed.aval())?);
                weights.push(Some(seed.clone()));
            }
        }
        Ok(out)
    };
    let (_, pullback) = transform::vjp(run, &zeros)?;
    let mut out: Grads = domain.iter().map(|_| None).collect();
    for ((i, _), g) in moving().zip(pullback.call(&weights, false)?) {
        out[i] = Some(g);
    }
    Ok(out)
}

/// Raises if the image of zero is not zero: the map is then not linear.
fn check(image: &Tensor) -> Result<()> {
    let Some(array) = image.concrete().filter(|array| array.device() == Device::Cpu && array.numel() > 0)
    else {
        return Ok(());
    };
    let image = Tensor::from(array.clone());
    let image = if image.dtype().is_complex() { image.abs()? } else { image };
    // A coefficient that is not finite maps zero to NaN. A program looks at the answer alone.
    let (largest, is_linear) = interp::no_grad(|| {
        let largest = image.abs()?.amax(None, false)?;
        let wrong = largest.gt(0.0)?.logical(&largest.lt(f64::INFINITY)?, Logic::And)?;
        Ok((largest, wrong.item()? == 0.0))
    })?;
    if !is_linear {
        let largest = largest.item()?;
        return Err(Error::autodiff(format!(
            "the rule is not linear, so it has no transpose: zeros give elements up to {largest}; what it \
             returns must be a multiple of what it is given, such as t * f(x)"
        )));
    }
    Ok(())
}
