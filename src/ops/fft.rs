//! The discrete Fourier transform, of pairs (real, imaginary part) along the last axis and of real numbers.
//!
//! The transform is linear and its matrix symmetric. As a function of real numbers, its transpose is
//! therefore the transform with the other sign, so one operation serves as forward, inverse, and their
//! derivatives. A transform from or to real numbers is half the work; its transpose goes to or from real
//! numbers, so these two are one operation too.

use crate::arguments::complex::Half;
use crate::ops::pointwise::table::Params;
use crate::ops::prelude::*;

/// `y[k] = scale * sum over t of x[t] exp(-2 pi i t k / n)` along an axis; with `+` if inverse.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fft {
    /// The axis; not the last, which holds the pairs.
    pub axis: u8,
    /// Whether the sign of the exponent is `+`.
    pub inverse: bool,
    /// The first number is the scale; the second is unused.
    pub scale: Params,
}

kernel! {
    Fft, if self.inverse { "ifft" } else { "fft" }, |self, x| {
        on_device!(x[0], fft::fft(x[0], self.axis as usize, self.inverse, self.scale.get()[0]))
    },
    /// 5 n log2(n) per line of n numbers, the logarithm rounded up.
    flops |x, _y| {
        let length = x[0].dim(self.axis as usize).max(1);
        5 * (x[0].numel() as u64 / 2) * length.next_power_of_two().ilog2() as u64
    }
}

impl Linear for Fft {
    const TRANSPOSE: &'static str = "the transform of g with the other sign";

    transpose!(|self, g| bind(Fft { inverse: !self.inverse, ..*self }, &[g]));
    batch!(in_front: |self| Fft { axis: self.axis + 1, ..*self });
}

/// Without `back`: the first half of the transform of `n` real numbers along an axis, with `+` if inverse,
/// `y[k] = w[k] scale * sum over t of x[t] exp(-2 pi i t k / n)` for `k <= n / 2`, as pairs along a new last
/// axis. With `back`: real numbers, `x[t] = scale * Re(sum over k of w[k] y[k] exp(-2 pi i t k / n))`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RealFft {
    /// Whether it maps pairs to real numbers.
    pub back: bool,
    /// The axis; not that of the pairs.
    pub axis: u8,
    /// Whether the sign of the exponent is `+`.
    pub inverse: bool,
    /// Whether `w` is 2 where an element stands for itself and its mirror image; else `w` is 1 throughout.
    pub doubled: bool,
    /// The number of real numbers.
    pub n: u32,
    /// The first number is the scale; the second is unused.
    pub scale: Params,
}

kernel! {
    RealFft, if self.back { "irfft" } else { "rfft" }, |self, x| {
        let RealFft { inverse, doubled, scale, .. } = *self;
        let half = Half { n: self.n as usize, inverse, doubled, scale: scale.get()[0] };
        let axis = self.axis as usize;
        match self.back {
            true => on_device!(x[0], fft::to_real(x[0], axis, half)),
            false => on_device!(x[0], fft::from_real(x[0], axis, half)),
        }
    },
    /// 5/2 n log2(n) per line of n real numbers, the logarithm rounded up.
    flops |x, _y| {
        let n = (self.n as u64).max(1);
        let lines = x[0].numel() as u64 / if self.back { 2 * (n / 2 + 1) } else { n };
        5 * lines * n * n.next_power_of_two().ilog2() as u64 / 2
    }
}

impl Linear for RealFft {
    const TRANSPOSE: &'static str = "the transform of g the other way, with the other sign";

    transpose!(|self, g| bind(RealFft { back: !self.back, inverse: !self.inverse, ..*self }, &[g]));
    batch!(in_front: |self| RealFft { axis: self.axis + 1, ..*self });
}

/// Raises unless the dtype is a real one that can be transformed.
fn check_dtype(name: &str, what: &str, x: &Tensor) -> Result<()> {
    if matches!(x.dtype(), DType::F32 | DType::F64) || crate::interp::autocasting() {
        return Ok(());
    }
    Err(Error::dtype(format!(
        "{name}: float32 or float64 {what} expected, got {}; convert with .float()",
        x.dtype()
    )))
}

/// Checks that pairs lie along the last axis; returns the other axis `axis`, counted from the front.
fn axis_of_pairs(name: &str, x: &Tensor, axis: i64) -> Result<usize> {
    let axis = x.shape().axis(axis, name)?;
    if axis + 1 < x.rank() && x.shape().at(x.rank() - 1) == 2 {
        return Ok(axis);
    }
    Err(Error::shape(format!(
        "{name}: pairs of real and imaginary parts along the last axis expected, and another axis to \
         transform, got axis {axis} of shape {}",
        x.shape()
    )))
}

impl Tensor {
    /// `scale` times the discrete Fourier transform along `axis` of pairs (real, imaginary) on the last axis.
    pub fn fft_of_pairs(&self, axis: i64, inverse: bool, scale: f64) -> Result<Tensor> {
        let name = if inverse { "ifft" } else { "fft" };
        let axis = axis_of_pairs(name, self, axis)?;
        check_dtype(name, "parts", self)?;
        bind(Fft { axis: axis as u8, inverse, scale: [scale, 0.0].into() }, &[self])
    }

    /// The first half, `n / 2 + 1` pairs along a new last axis, of the transform along `axis` of `n` real
    /// numbers, times `scale`.
    pub fn rfft_to_pairs(&self, axis: i64, inverse: bool, scale: f64) -> Result<Tensor> {
        let axis = self.shape().axis(axis, "rfft")?;
        check_dtype("rfft", "numbers", self)?;
        let (n, scale) = (self.shape().at(axis) as u32, [scale, 0.0].into());
        if n == 0 {
            return Err(Error::value("rfft: a length of at least 1 expected, got 0"));
        }
        bind(RealFft { back: false, axis: axis as u8, inverse, doubled: false, n, scale }, &[self])
    }

    /// The `n` real numbers, times `scale`, whose transform along `axis` begins with these `n / 2 + 1` pairs.
    pub fn irfft_of_pairs(&self, axis: i64, n: usize, inverse: bool, scale: f64) -> Result<Tensor> {
        let axis = axis_of_pairs("irfft", self, axis)?;
        check_dtype("irfft", "parts", self)?;
        let length = self.shape().at(axis);
        if n == 0 || length != n / 2 + 1 {
            return Err(Error::shape(format!(
                "irfft: n / 2 + 1 pairs for n real numbers expected, got {length} pairs for {n}"
            )));
        }
        let scale = [scale, 0.0].into();
        bind(RealFft { back: true, axis: axis as u8, inverse, doubled: true, n: n as u32, scale }, &[self])
    }
}
