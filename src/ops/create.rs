//! New tensors: constants, ranges, identities. They are operations without inputs.

use crate::device::create_on;
use crate::ops::pointwise::table::Params;
use crate::ops::prelude::*;

/// What a new tensor holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Content {
    /// One number everywhere, the first of the numbers.
    Full,
    /// `a, a + b, a + 2 b, ...` for the numbers `a` and `b`.
    Range,
    /// Evenly spaced from the first number to the second, both included.
    Between,
    /// Ones on the main diagonal of a matrix, zeros elsewhere.
    Identity,
}

/// A new tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Create {
    /// What it holds.
    pub content: Content,
    /// Two numbers that the content depends on.
    pub numbers: Params,
    /// Its shape: of one axis for both kinds of ranges, of two for the identity.
    pub shape: Shape,
    /// Its dtype.
    pub dtype: DType,
    /// Its device.
    pub device: Device,
}

kernel! {
    Create,
    match self.content {
        Content::Full => "full",
        Content::Range => "arange",
        Content::Between => "linspace",
        Content::Identity => "eye",
    },
    |self, _x| {
        let Create { content, numbers, shape, dtype, device } = *self;
        let ([a, b], at) = (numbers.get(), |i: usize| shape.at(i));
        match content {
            Content::Full => create_on!(device, create::full(shape, a, dtype)),
            Content::Range => create_on!(device, create::arange(a, b, at(0), dtype)),
            Content::Between => create_on!(device, create::linspace(a, b, at(0), dtype)),
            Content::Identity => create_on!(device, create::eye(at(0), at(1), 0, dtype)),
        }
    }
}

impl Discrete for Create {
    fn batch(&self, _x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
        Ok(smallvec![(bind(*self, &[])?, None)])
    }
}

fn create(content: Content, numbers: [f64; 2], shape: Shape, dtype: DType, device: Device) -> Result<Tensor> {
    bind(Create { content, numbers: numbers.into(), shape, dtype, device }, &[])
}

impl Tensor {
    /// A tensor filled with `value`.
    pub fn full(shape: Shape, value: f64, dtype: DType, device: Device) -> Result<Tensor> {
        create(Content::Full, [value, 0.0], shape, dtype, device)
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
        create(Content::Range, [start, step], Shape::new(&[n])?, dtype, device)
    }

    /// `n` evenly spaced numbers from `start` to `stop`, both included.
    pub fn linspace(start: f64, stop: f64, n: usize, dtype: DType, device: Device) -> Result<Tensor> {
        create(Content::Between, [start, stop], Shape::new(&[n])?, dtype, device)
    }

    /// Ones on the main diagonal of a matrix, zeros elsewhere.
    pub fn eye(rows: usize, columns: usize, dtype: DType, device: Device) -> Result<Tensor> {
        create(Content::Identity, [0.0; 2], Shape::new(&[rows, columns])?, dtype, device)
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
