//! `clamp` with bounds that are numbers or tensors.

use crate::error::Named;
use crate::ops::pointwise::compare::{Logic, Relation};
use crate::py::args::{Arg, run};
use crate::py::prelude::*;
use crate::py::relative::Compared;

/// Limits values to bounds that are numbers or tensors.
pub fn clamp(py: Python<'_>, x: &Tensor, min: Option<Compared>, max: Option<Compared>) -> PyResult<Tensor> {
    let (min, max) = (min.map(|bound| bound.0), max.map(|bound| bound.0));
    if ![&min, &max].iter().any(|bound| matches!(bound, Some(Arg::Tensor(_) | Arg::Complex(..)))) {
        let (low, high) = (min.as_ref().map(Arg::operand), max.as_ref().map(Arg::operand));
        return run(py, x.numel(), || x.clamp(low, high).named("clamp"));
    }
    // A tensor bound receives the gradient where it is the result.
    let mut out = x.clone();
    for (bound, relation) in [(&min, Relation::Lt), (&max, Relation::Gt)] {
        if let Some(bound) = bound {
            out = beyond(&out, bound, relation).named("clamp")?.select(bound.operand(), &out)?;
        }
    }
    Ok(out)
}

/// Mask of elements where `x` is beyond a bound, or the bound is NaN.
fn beyond(x: &Tensor, bound: &Arg, relation: Relation) -> Result<Tensor> {
    let mask = x.compare(bound.operand(), relation)?;
    match bound {
        Arg::Tensor(t) if t.dtype().is_float() => mask.logical(&t.ne(t)?, Logic::Or),
        Arg::Float(v) if v.is_nan() => mask.logical(&mask.logical_not()?, Logic::Or),
        _ => Ok(mask),
    }
}
