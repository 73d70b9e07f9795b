//! Conversions that keep the values: of dtype, device, memory layout. All are linear.

use crate::cpu::pointwise::cast::cast_fn;
use crate::ops::prelude::*;
use crate::tensor::Payload;

/// Conversion to another dtype. Float to integer truncates toward zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cast {
    /// The dtype to convert to.
    pub dtype: DType,
}

kernel! {
    Cast, "cast", |self, x| on_device!(x[0], copy::cast(x[0], self.dtype)),
    element_fn |dtypes| { cast_fn(*dtypes.first()?, self.dtype) }
}

impl Linear for Cast {
    const TRANSPOSE: &'static str = "g, converted back";

    transpose!(|self, g, c| g.cast(c.aval(0)?.dtype));
    batch!(in_place: |self| *self);
}

/// The same bytes as another dtype, a view where the layout allows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bitcast {
    /// The dtype to read the bytes as.
    pub dtype: DType,
}

kernel! {
    Bitcast, "view", |self, x| {
        if let Some(view) = x[0].bitcast(self.dtype)? {
            return Ok(view);
        }
        let dense = x[0].copied()?.bitcast(self.dtype)?;
        dense.ok_or_else(|| Error::shape("internal: dense bytes cannot be read as another dtype"))
    }
}

impl Discrete for Bitcast {
    batch!(in_front: |self| *self);
}

/// A copy on another device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Transfer {
    /// The device to copy to.
    pub device: Device,
}

kernel! { Transfer, "to", |self, x| x[0].to_device(self.device) }

impl Linear for Transfer {
    const TRANSPOSE: &'static str = "g, sent back";

    transpose!(|self, g, c| g.to_device(c.aval(0)?.device));
    batch!(in_place: |self| *self);
}

/// A new copy in row-major order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Contiguous;

kernel! { Contiguous, "clone", |self, x| x[0].copied(), into |out| { out[0].assign(x[0]) } }

impl Linear for Contiguous {
    const TRANSPOSE: &'static str = "g";

    transpose!(|self, g| Ok(g.clone()));
    batch!(in_place: |self| *self);
}

/// The error for bytes that are no whole number of elements of `dtype`.
#[cold]
fn unreadable(own: DType, shape: &Shape, dtype: DType) -> Error {
    let why = match shape.rank().checked_sub(1) {
        None => "a tensor without axes must keep the size of its element; give it an axis with \
                 unsqueeze(-1), or convert the value with .to(dtype)"
            .into(),
        Some(last) => {
            let bytes = shape.at(last) * own.size();
            format!("the last axis holds {bytes} bytes, which must be a multiple of {}", dtype.size())
        }
    };
    let unit = |n: usize| if n == 1 { "byte" } else { "bytes" };
    Error::shape(format!(
        "view: {own} of shape {shape}, {} {} an element, cannot be read as {dtype}, {} {} an element: {why}",
        own.size(),
        unit(own.size()),
        dtype.size(),
        unit(dtype.size())
    ))
}

impl Tensor {
    /// Converts to `dtype`; returns the tensor itself if it has that dtype.
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        if dtype == DType::C128 && self.device() != Device::Cpu {
            let device = self.device();
            return Err(Error::dtype(format!("{device} has no {dtype}; use complex64, or device='cpu'")));
        }
        if dtype.is_complex() {
            return crate::ops::complex::cast(self, dtype);
        }
        bind(Cast { dtype }, &[self])
    }

    /// Reads the same bytes as `dtype`; returns the tensor itself if it has that dtype. The last axis becomes
    /// longer or shorter where the sizes differ. Differentiable between complex numbers and their parts.
    pub fn bitcast(&self, dtype: DType) -> Result<Tensor> {
        let (own, shape) = (self.dtype(), self.shape());
        if own == dtype {
            return Ok(self.clone());
        }
        if dtype == DType::Bool {
            return Err(Error::dtype(format!(
                "view: not every byte of {own} is a bool; use x != 0, which copies"
            )));
        }
        let words = [DType::F32, DType::I32, DType::U32, DType::I64, DType::U64];
        if self.device() != Device::Cpu && !(words.contains(&own) && words.contains(&dtype)) {
            return Err(Error::dtype(format!(
                "view: {} reads float32 and integers of 32 and 64 bits as each other, got {own} as {dtype}; \
                 move it to the cpu first",
                self.device()
            )));
        }
        let last = shape.rank().checked_sub(1);
        let Some(last) = last.filter(|&i| (shape.at(i) * own.size()).is_multiple_of(dtype.size())) else {
            if own.size() == dtype.size() {
                return bind(Bitcast { dtype }, &[self]);
            }
            return Err(unreadable(own, &shape, dtype));
        };
        let length = shape.at(last) * own.size() / dtype.size();
        if own.is_complex() && dtype == own.real() {
            return self.view_as_real()?.reshape(&shape.removed(last).inserted(last, length)?);
        }
        if own == dtype.real() && dtype.is_complex() {
            let pairs = shape.removed(last).inserted(last, length)?.inserted(last + 1, 2)?;
            return self.reshape(&pairs)?.view_as_complex();
        }
        bind(Bitcast { dtype }, &[self])
    }

    /// Copies to `device`; returns the tensor itself if it is there.
    pub fn to_device(&self, device: Device) -> Result<Tensor> {
        if self.device() == device {
            return Ok(self.clone());
        }
        bind(Transfer { device }, &[self])
    }

    /// Returns a new copy, through which gradients flow.
    pub fn copied(&self) -> Result<Tensor> {
        bind(Contiguous, &[self])
    }

    /// Returns the tensor in row-major order: itself if it is so already.
    pub fn contiguous(&self) -> Result<Tensor> {
        match self.concrete() {
            Some(a) if a.is_contiguous() => Ok(self.clone()),
            _ => self.copied(),
        }
    }

    /// Returns the same value without any history, at every level of differentiation.
    pub fn detach(&self) -> Tensor {
        let mut at = self.clone();
        while let Some(t) = at.traced().cloned() {
            at = match &t.payload {
                Payload::Taped { primal, .. } | Payload::Dual { primal, .. } => primal.clone(),
                Payload::Linearized { var, map, .. } => return map.detach(&t, *var),
                Payload::Donated { .. } => return at,
                Payload::Batched { value, .. } => return t.with_inner(value.detach()),
            };
        }
        at
    }
}
