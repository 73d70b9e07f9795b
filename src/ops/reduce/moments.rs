//! What is composed of reductions: variance, deviation, the logarithm of a sum of exponentials; and how such
//! a function computes with halves.

use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::cpu::pointwise::copy::contiguous;
use crate::error::{Error, Result};
use crate::ops::pointwise::compare::Logic;
use crate::tensor::{Payload, Tensor};

impl Tensor {
    /// `f` of the values in the type that sums are kept in, rounded to their own type once. What is composed
    /// of reductions runs so: a sum of halves may be too large for them where a mean, a root or a logarithm
    /// of it is not. Under autocast, where reductions give float32, nothing is rounded.
    pub(crate) fn accumulated(&self, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let wide = self.dtype().accumulator();
        if wide == self.dtype() {
            return f(self);
        }
        let out = f(&self.cast(wide)?)?;
        if crate::interp::autocasting() { Ok(out) } else { out.cast(self.dtype()) }
    }

    /// `f` of a sum that cannot be negative, with the value 0 and the slope 0 at 0: the root of a sum of
    /// squares.
    pub(crate) fn rooted(&self, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        let zero = self.eq(0i64)?;
        zero.select(0.0, &f(&zero.select(1.0, self)?)?)
    }

    /// `f`, of `degree` 1 or 2, which adds the powers `order` of sizes over `axes` and returns the sum as
    /// well. Where that overflows in float32, or loses digits to underflow, `f` is taken of the values over
    /// powers of two, one for each sum, and multiplied by these again. Nobody looks at sums of float64, which
    /// are NumPy's, and on GPUs.
    pub(crate) fn homogeneous(
        &self,
        axes: Option<&[i64]>,
        degree: u32,
        order: f64,
        f: impl Fn(&Tensor) -> Result<(Tensor, Tensor)>,
    ) -> Result<Tensor> {
        let (out, total) = f(self)?;
        if self.numel() == 0 || !has_lost(&total)? {
            return Ok(out);
        }
        let size = self.detach().abs()?;
        let size = if order < 0.0 { size.amin(axes, true)? } else { size.amax(axes, true)? };
        let is_scale = size.gt(0.0)?.logical(&size.lt(f64::INFINITY)?, Logic::And)?;
        // A root of the size remains, whose power is in range: then the cotangent that meets the power of two
        // is, too.
        let share = if order < 0.0 { 1.0 } else { 1.0 - 0.5 / order.max(2.0) };
        let power = is_scale.select(&size, 1.0)?.log2()?.mul(share)?.floor()?.exp2()?;
        let scaled = f(&self.div(&power)?)?.0;
        let power = power.reshape(&out.shape())?;
        (0..degree).try_fold(scaled, |out, _| out.mul(&power))
    }

    pub(crate) fn check_float(&self, op: &str) -> Result<()> {
        if self.dtype().is_float() {
            return Ok(());
        }
        Err(Error::dtype(format!(
            "{op}: a floating point tensor expected, got {}; convert with .float() first",
            self.dtype()
        )))
    }

    /// Variance over `axes`: squared deviations from the mean, summed and divided by `n - correction`; of
    /// complex numbers their squared distances.
    pub fn var(&self, axes: Option<&[i64]>, correction: f64, keepdim: bool) -> Result<Tensor> {
        if !self.dtype().is_complex() {
            self.check_float("var")?;
        }
        self.accumulated(|x| {
            x.homogeneous(axes, 2, 2.0, |x| {
                let (squares, divisor) = x.squares_about_mean(axes, correction, keepdim)?;
                Ok((squares.div(divisor)?, squares))
            })
        })
    }

    /// The sum of squared deviations from the mean, and what the variance divides it by.
    fn squares_about_mean(
        &self,
        axes: Option<&[i64]>,
        correction: f64,
        keepdim: bool,
    ) -> Result<(Tensor, f64)> {
        let set = self.shape().axes(axes, "var")?;
        let count: usize = set.iter().map(|i| self.shape().at(i)).product();
        let mut centred = self.sub(&self.mean(axes, true)?)?;
        if centred.dtype().is_complex() {
            centred = centred.abs()?;
        }
        Ok((centred.square()?.sum(axes, keepdim)?, (count as f64 - correction).max(0.0)))
    }

    /// Standard deviation: the square root of [`Tensor::var`]. Its gradient at 0 is 0; that of an infinite
    /// deviation, whose variance divides by 0, is NaN.
    pub fn std(&self, axes: Option<&[i64]>, correction: f64, keepdim: bool) -> Result<Tensor> {
        if !self.dtype().is_complex() {
            self.check_float("std")?;
        }
        self.accumulated(|x| {
            x.homogeneous(axes, 1, 2.0, |x| {
                let (squares, divisor) = x.squares_about_mean(axes, correction, keepdim)?;
                let out = match divisor {
                    0.0 => squares.sqrt()?.div(0.0)?,
                    _ => squares.div(divisor)?.rooted(Tensor::sqrt)?,
                };
                Ok((out, squares))
            })
        })
    }

    /// `log(sum(exp(x)))` over `axes`, without overflow.
    pub fn logsumexp(&self, axes: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        self.cast(self.dtype().to_float())?.accumulated(|x| x.log_of_sum(axes, keepdim))
    }

    fn log_of_sum(&self, axes: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        let x = self;
        if x.numel() == 0 {
            return x.exp()?.sum(axes, keepdim)?.log();
        }
        // The shift cancels, so no gradient flows through it. An infinite maximum is not subtracted.
        let top = x.amax(axes, true)?.detach();
        let shift = top.abs()?.eq(f64::INFINITY)?.select(0.0, &top)?;
        let sum = x.sub(&shift)?.exp()?.sum(axes, true)?.log()?.add(&shift)?;
        if keepdim {
            Ok(sum)
        } else {
            sum.reshape(&x.shape().reduced(x.shape().axes(axes, "logsumexp")?, false))
        }
    }
}

/// Whether a sum of powers in float32, or one of several, is infinite, or so small that its terms may be
/// below the normal numbers.
fn has_lost(total: &Tensor) -> Result<bool> {
    let array = match total {
        Tensor::Array(array) => array,
        // What is written down must not depend on the values with which it was.
        Tensor::Traced(t) if matches!(t.payload, Payload::Staged { .. }) => return Ok(false),
        Tensor::Traced(t) => return has_lost(t.inner()),
    };
    if array.device() != Device::Cpu || array.dtype() != DType::F32 {
        return Ok(false);
    }
    let least = f32::MIN_POSITIVE / f32::EPSILON;
    Ok(contiguous(array)?.slice::<f32>()?.iter().any(|&v| v < least || v == f32::INFINITY))
}
