//! Conversions that keep the values: of dtype, device, memory layout. All are linear.

use crate::ops::prelude::*;
use crate::tensor::Payload;

/// Conversion to another dtype. Float to integer truncates toward zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cast {
    /// The dtype to convert to.
    pub dtype: DType,
}

kernel! { Cast, "cast", |self, x| on_device!(x[0], copy::cast(x[0], self.dtype)) }

impl Linear for Cast {
    const TRANSPOSE: &'static str = "g, converted back";

    transpose!(|self, g, c| g.cast(c.aval(0)?.dtype));
    batch!(in_place: |self| *self);
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

impl Tensor {
    /// Converts to `dtype`; returns the tensor itself if it has that dtype.
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        if dtype.is_complex() {
            return crate::ops::complex::cast(self, dtype);
        }
        bind(Cast { dtype }, &[self])
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
                Payload::Staged { var, program, .. } => return program.detach(&t, *var),
                Payload::Batched { value, .. } => return t.with_inner(value.detach()),
            };
        }
        at
    }
}
