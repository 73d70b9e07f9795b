//! The discrete Fourier transform, on pairs of real and imaginary parts along the last axis.
//!
//! The transform is linear, and its matrix symmetric: as a function of real numbers its transpose is the transform with
//! the other sign. So one operation is all of forward, inverse, and their derivatives.

use crate::array::Array;
use crate::autodiff::node::Vjp;
use crate::buffer::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Arrays, BatchedOutputs, Kernel, Lane, Linear};
use crate::ops::one;
use crate::ops::table::Params;
use crate::tensor::Tensor;
use smallvec::smallvec;

/// `y[k] = scale * sum over t of x[t] exp(-2 pi i t k / n)` along an axis; with `+` if inverse.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fft {
    /// The axis; not the last one, which holds the pairs.
    pub axis: u8,
    /// The sign of the exponent is turned.
    pub inverse: bool,
    /// The scale, and nothing.
    pub scale: Params,
}

impl Kernel for Fft {
    fn name(&self) -> &'static str {
        if self.inverse { "ifft" } else { "fft" }
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        if x[0].device() != Device::Cpu {
            return Err(elsewhere(self.name(), x[0].device()));
        }
        one!(crate::cpu::fft::fft(x[0], self.axis as usize, self.inverse, self.scale.get()[0]))
    }
    /// 5 n log2(n) per line of n numbers, the logarithm rounded up.
    fn flops(&self, x: &[&Array], _y: &[Array]) -> u64 {
        let length = x[0].dim(self.axis as usize).max(1);
        5 * (x[0].numel() as u64 / 2) * length.next_power_of_two().ilog2() as u64
    }
}

#[cold]
fn elsewhere(name: &str, device: Device) -> Error {
    Error::device(format!(
        "{name}: runs on the CPU only, got a tensor on {device}; move it with .cpu(), and the result back with .to()"
    ))
}

impl Linear for Fft {
    const TRANSPOSE: &'static str = "the transform of g with the other sign";

    fn transpose(&self, _wrt: usize, g: &Tensor, _c: &Vjp) -> Result<Tensor> {
        crate::bind::bind1(Fft { inverse: !self.inverse, ..*self }, &[g])
    }
    fn batch(&self, x: &[Lane], _size: usize) -> Result<BatchedOutputs> {
        let op = Fft { axis: self.axis + 1, ..*self };
        Ok(smallvec![(crate::bind::bind1(op, &[&x[0].front()?])?, Some(0))])
    }
}

impl Tensor {
    /// The discrete Fourier transform along `axis` of pairs (real part, imaginary part) along the last axis, times
    /// `scale`.
    pub fn fft_of_pairs(&self, axis: i64, inverse: bool, scale: f64) -> Result<Tensor> {
        let name = if inverse { "ifft" } else { "fft" };
        let axis = self.shape().axis(axis, name)?;
        if axis + 1 >= self.rank() || self.shape().at(self.rank() - 1) != 2 {
            return Err(Error::shape(format!(
                "{name}: pairs of real and imaginary parts along the last axis expected, and another axis to transform, \
                 got axis {axis} of shape {}",
                self.shape()
            )));
        }
        if !matches!(self.dtype(), DType::F32 | DType::F64) && !crate::interp::autocasting() {
            return Err(Error::dtype(format!(
                "{name}: float32 or float64 parts expected, got {}; convert with .float()",
                self.dtype()
            )));
        }
        crate::bind::bind1(Fft { axis: axis as u8, inverse, scale: [scale, 0.0].into() }, &[self])
    }
}
