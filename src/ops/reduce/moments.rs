//! Variance, deviation and logsumexp, composed of reductions; halves accumulate in float32.

use crate::cpu::pointwise::copy::contiguous;
use crate::ops::pointwise::compare::Logic;
use crate::ops::prelude::*;
use crate::ops::reduce::mean::count;
use crate::tensor::Payload;
use crate::watch::debug::{self, Modes};

impl Tensor {
    /// Applies `f` to the values in the dtype of accumulation, and rounds its result once to their own dtype.
    /// Functions composed of reductions need it: a sum of halves may overflow where its mean, root or
    /// logarithm does not. Under autocast, where reductions return float32, nothing is rounded.
    pub(crate) fn accumulated(&self, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let wide = self.dtype().accumulator();
        if wide == self.dtype() {
            return f(self);
        }
        let out = f(&self.cast(wide)?)?;
        if crate::interp::autocasting() { Ok(out) } else { out.cast(self.dtype()) }
    }

    /// Applies `f`, the root of a sum of squares, with value 0 and derivative 0 at 0.
    pub(crate) fn rooted(&self, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let zero = self.eq(0i64)?;
        zero.select(0.0, &f(&zero.select(1.0, self)?)?)
    }

    /// Applies `f`, homogeneous of `degree` 1 or 2, which sums the powers `order` of absolute values over
    /// `axes` and also returns the sum. If the sum overflows in float32 or loses digits to underflow, applies
    /// `f` to the values over one power of two per sum, and multiplies by the power again. Sums of float64,
    /// as in NumPy, and on GPUs are not checked.
    pub(crate) fn homogeneous(
        &self, axes: Option<&[i64]>, degree: u32, order: f64, f: impl Fn(&Tensor) -> Result<(Tensor, Tensor)>,
    ) -> Result<Tensor> {
        let (out, total) = f(self)?;
        if self.numel() == 0 || !has_lost(&total)? {
            return Ok(out);
        }
        let size = self.detach().abs()?;
        let size = if order < 0.0 { size.amin(axes, true)? } else { size.amax(axes, true)? };
        let is_scale = size.gt(0.0)?.logical(&size.lt(f64::INFINITY)?, Logic::And)?;
        // A root of the size remains, whose power is in range; so is the cotangent times the power of two.
        let share = if order < 0.0 { 1.0 } else { 1.0 - 0.5 / order.max(2.0) };
        let power = is_scale.select(&size, 1.0)?.log2()?.mul(share)?.floor()?.exp2()?;
        let scaled = f(&self.div(&power)?)?.0;
        let power = power.reshape(&out.shape())?;
        (0..degree).try_fold(scaled, |out, _| out.mul(&power))
    }

    /// Raises unless these are floats or complex numbers, which have means.
    pub(crate) fn check_inexact(&self, op: &str) -> Result<()> {
        if self.dtype().is_differentiable() {
            return Ok(());
        }
        Err(Error::dtype(format!(
            "{op}: a floating point tensor expected, got {}; convert with .float() first",
            self.dtype()
        )))
    }

    /// Variance over `axes`: squared deviations (for complex numbers, squared distances) from the mean,
    /// summed and divided by `n - correction`.
    pub fn var(&self, axes: Option<&[i64]>, correction: f64, keepdim: bool) -> Result<Tensor> {
        self.about_mean("var", axes, correction, keepdim, 2, Tensor::div)
    }

    /// Standard deviation: the square root of [`Tensor::var`]. Its gradient at 0 is 0; where the variance
    /// divides by 0, the deviation is infinite and its gradient NaN.
    pub fn std(&self, axes: Option<&[i64]>, correction: f64, keepdim: bool) -> Result<Tensor> {
        self.about_mean("std", axes, correction, keepdim, 1, |squares, divisor| match divisor {
            0.0 => squares.sqrt()?.div(0.0),
            _ => squares.div(divisor)?.rooted(Tensor::sqrt),
        })
    }

    /// What `f`, homogeneous of this degree, makes of the sum of squared deviations, and of its divisor.
    fn about_mean(
        &self, op: &str, axes: Option<&[i64]>, correction: f64, keepdim: bool, degree: u32,
        f: impl Fn(&Tensor, f64) -> Result<Tensor>,
    ) -> Result<Tensor> {
        self.check_inexact(op)?;
        let moment = |x: &Tensor| {
            let count = count(&x.shape(), x.shape().axes(axes, "var")?);
            let mut centred = x.sub(&x.mean(axes, true)?)?;
            if centred.dtype().is_complex() {
                centred = centred.abs()?;
            }
            let squares = centred.square()?.sum(axes, keepdim)?;
            Ok((f(&squares, (count as f64 - correction).max(0.0))?, squares))
        };
        self.accumulated(|x| x.homogeneous(axes, degree, 2.0, moment))
    }

    /// `log(sum(exp(x)))` over `axes`, without overflow; of complex numbers the principal value.
    pub fn logsumexp(&self, axes: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        self.cast(self.dtype().to_float())?.accumulated(|x| {
            if x.numel() == 0 {
                return x.exp()?.sum(axes, keepdim)?.log();
            }
            // The shift cancels, so no gradient flows through it. An infinite maximum is not subtracted.
            let top = x.real()?.amax(axes, true)?.detach();
            let shift = top.abs()?.eq(f64::INFINITY)?.select(0.0, &top)?;
            let sum = x.sub(&shift)?.exp()?.sum(axes, true)?.log()?.add(&shift)?;
            if keepdim {
                return Ok(sum);
            }
            sum.reshape(&x.shape().reduced(x.shape().axes(axes, "logsumexp")?, false))
        })
    }
}

/// Whether any float32 sum of powers is infinite, or so small that its terms may be subnormal.
fn has_lost(total: &Tensor) -> Result<bool> {
    let array = match total {
        Tensor::Array(array) => array,
        // The operations of a linear map must not depend on the values that it was written down with.
        Tensor::Traced(t) if matches!(t.payload, Payload::Linearized { .. }) => return Ok(false),
        Tensor::Traced(t) => return has_lost(t.inner()),
    };
    if array.device() != Device::Cpu || array.dtype() != DType::F32 {
        return Ok(false);
    }
    let least = f32::MIN_POSITIVE / f32::EPSILON;
    if debug::modes().has(Modes::SCRIPT) {
        // A decision that each call of the program makes again.
        let total = Tensor::Array(array.clone());
        let lost = total.lt(f64::from(least))?.logical(&total.eq(f64::INFINITY)?, Logic::Or)?;
        return Ok(lost.any(None, false)?.item()? != 0.0);
    }
    Ok(contiguous(array)?.slice::<f32>()?.iter().any(|&v| v < least || v == f32::INFINITY))
}
