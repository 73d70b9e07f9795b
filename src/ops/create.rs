//! New tensors: constants, ranges, identities. They depend on no input, so they need no rule and no
//! interpreter.

use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::device::create_on;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

impl Tensor {
    /// A tensor filled with `value`.
    pub fn full(shape: Shape, value: f64, dtype: DType, device: Device) -> Result<Tensor> {
        Ok(create_on!(device, create::full(shape, value, dtype))?.into())
    }

    /// A tensor of zeros.
    pub fn zeros(shape: Shape, dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::full(shape, 0.0, dtype, device)
    }

    /// A constant of this shape, dtype and device; stores one element.
    pub fn constant_like(&self, value: f64) -> Result<Tensor> {
        self.scalar_like(value)?.expand(&self.shape())
    }

    /// Zeros of this shape, dtype and device; stores one element.
    pub fn zeros_like(&self) -> Result<Tensor> {
        self.constant_like(0.0)
    }

    /// Ones of this shape, dtype and device; stores one element.
    pub fn ones_like(&self) -> Result<Tensor> {
        self.constant_like(1.0)
    }

    /// `n` numbers: `start, start + step, ...`
    pub fn arange(start: f64, step: f64, n: usize, dtype: DType, device: Device) -> Result<Tensor> {
        Ok(create_on!(device, create::arange(start, step, n, dtype))?.into())
    }

    /// `n` evenly spaced numbers from `start` to `stop`, both included.
    pub fn linspace(start: f64, stop: f64, n: usize, dtype: DType, device: Device) -> Result<Tensor> {
        Ok(create_on!(device, create::linspace(start, stop, n, dtype))?.into())
    }

    /// Ones on the main diagonal of a matrix, zeros elsewhere.
    pub fn eye(rows: usize, columns: usize, dtype: DType, device: Device) -> Result<Tensor> {
        Ok(create_on!(device, create::eye(rows, columns, 0, dtype))?.into())
    }
}

/// The number of elements of `arange(start, stop, step)`.
pub fn arange_length(start: f64, stop: f64, step: f64) -> Result<usize> {
    if step == 0.0 || !step.is_finite() || !start.is_finite() || !stop.is_finite() {
        return Err(Error::value(format!(
            "arange: finite bounds and a non-zero step expected, got start={start}, stop={stop}, step={step}"
        )));
    }
    if (stop - start) * step < 0.0 {
        return Err(Error::value(format!(
            "arange: steps of {step} lead away from {stop}, starting at {start}; change the sign of the \
             step, or the bounds"
        )));
    }
    Ok(((stop - start) / step).ceil().max(0.0) as usize)
}
