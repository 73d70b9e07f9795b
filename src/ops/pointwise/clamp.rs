//! Values limited to bounds.

use super::binary::Binary;
use super::elementwise::Map;
use super::operand::Operand;
use super::unary::Parametric;
use crate::ops::prelude::*;
use crate::ops::reduce::index_type;

impl Operand<'_> {
    /// A real number as a float.
    fn float(self) -> Result<f64> {
        match self.among_floats() {
            Operand::Float(v) => Ok(v),
            Operand::Int(v) => Ok(v as f64),
            Operand::Bool(v) => Ok(f64::from(v)),
            Operand::Tensor(_) | Operand::Complex(..) => {
                Err(Error::dtype("clamp: a bound is a real number or a tensor"))
            }
        }
    }
}

/// A bound that is an integer; none stays none, and any other number is an error.
fn whole(bound: Option<Operand>) -> std::result::Result<Option<i128>, ()> {
    match bound {
        None => Ok(None),
        Some(Operand::Int(v)) => Ok(Some(v)),
        Some(Operand::Bool(v)) => Ok(Some(v.into())),
        Some(_) => Err(()),
    }
}

impl Tensor {
    /// Values limited to `[min, max]`, which are numbers; the derivative at a bound is 1. If `min > max`, all
    /// become `max` and the derivative is 0; a bound that is NaN makes all NaN. Bounds that are integers
    /// leave integers what they are.
    pub fn clamp(&self, min: Option<Operand>, max: Option<Operand>) -> Result<Tensor> {
        if min.is_none() && max.is_none() {
            return Err(Error::value("clamp: give min, max or both"));
        }
        if !self.dtype().is_differentiable()
            && let (Ok(low), Ok(high)) = (whole(min), whole(max))
        {
            return self.clamp_integers(low, high);
        }
        let (min, max) = (min.map(|v| v.float()).transpose()?, max.map(|v| v.float()).transpose()?);
        if [min, max].into_iter().flatten().any(f64::is_nan) {
            return self.mul(0.0)?.add(f64::NAN);
        }
        match (min, max) {
            (Some(low), Some(high)) if low > high => {
                self.detach().bounded(Parametric::Clamp, [high, high])?.with_nothing_of(self)
            }
            (Some(low), Some(high)) => self.bounded(Parametric::Clamp, [low, high]),
            (Some(low), None) => self.bounded(Parametric::ClampMin, [low, 0.0]),
            (None, high) => self.bounded(Parametric::ClampMax, [high.unwrap_or(f64::INFINITY), 0.0]),
        }
    }

    /// Integers limited to `[low, high]`, exactly. A bound beyond the range of their dtype is the end of that
    /// range.
    fn clamp_integers(&self, low: Option<i128>, high: Option<i128>) -> Result<Tensor> {
        if self.dtype() == DType::Bool {
            return self.cast(index_type(self.device()))?.clamp_integers(low, high);
        }
        let (least, most) = self.dtype().range();
        let mut out = self.clone();
        for (bound, fun) in [(low, Binary::Maximum), (high, Binary::Minimum)] {
            let Some(bound) = bound.map(|v| v.clamp(least, most)) else { continue };
            out = bind(Map::binary(fun), &[&out, &self.integer_like(bound)?])?;
        }
        Ok(out)
    }
}
