//! Conversions between complex tensors and their parts.

use super::{ViewAsComplex, ViewAsReal};
use crate::ops::prelude::*;

impl Array {
    /// Views complex numbers as pairs of real ones along a new last axis.
    pub fn as_real(&self) -> Result<Array> {
        let rank = self.rank();
        let shape = self.shape().inserted(rank, 2)?;
        let mut strides: Vec<isize> = (0..rank).map(|i| 2 * self.stride(i)).collect();
        strides.push(1);
        Array::strided(self.buffer().clone(), shape, &strides, 2 * self.offset(), self.dtype().real())
    }

    /// Views the pairs along the last axis as complex numbers; `None` if strides or alignment prevent it.
    pub fn as_complex(&self) -> Result<Option<Array>> {
        let last = self.rank() - 1;
        let even = |i: usize| self.stride(i) % 2 == 0 || self.dim(i) == 1;
        let address = self.buffer().ptr() as usize + self.offset() * self.dtype().size();
        let fits = self.stride(last) == 1
            && self.offset().is_multiple_of(2)
            && (0..last).all(even)
            && address.is_multiple_of(self.dtype().complex().align());
        if !fits {
            return Ok(None);
        }
        let strides: Vec<isize> = (0..last).map(|i| self.stride(i) / 2).collect();
        let (shape, dtype) = (self.shape().removed(last), self.dtype().complex());
        Array::strided(self.buffer().clone(), shape, &strides, self.offset() / 2, dtype).map(Some)
    }
}

/// `re + i im`, broadcast to one shape; complex128 if either is float64.
pub fn join(re: &Tensor, im: &Tensor) -> Result<Tensor> {
    let dtype = re.dtype().promote(im.dtype()).complex().real();
    let shape = re.shape().broadcast(&im.shape()).ok_or_else(|| {
        Error::shape(format!(
            "complex: real and imaginary parts of shapes {} and {} do not broadcast together",
            re.shape(),
            im.shape()
        ))
    })?;
    let part = |x: &Tensor| x.cast(dtype)?.expand(&shape);
    crate::ops::views::join::stack(&[part(re)?, part(im)?], -1)?.view_as_complex()
}

/// Converts from or to a complex dtype. Real drops the imaginary part; bool is true where it is not 0.
pub fn cast(x: &Tensor, dtype: DType) -> Result<Tensor> {
    match (x.dtype().is_complex(), dtype.is_complex()) {
        (true, true) => x.view_as_real()?.cast(dtype.real())?.view_as_complex(),
        (true, false) if dtype == DType::Bool => x.ne(0.0),
        (true, false) => x.real()?.cast(dtype),
        (false, _) => {
            let re = x.cast(dtype.real())?;
            join(&re, &re.scalar_like(0.0)?)
        }
    }
}

/// `x ** n` by repeated squaring.
pub fn power(x: &Tensor, n: i64) -> Result<Tensor> {
    let (mut base, mut left) = (x.clone(), n.unsigned_abs());
    let mut out: Option<Tensor> = None;
    while left > 0 {
        if left & 1 == 1 {
            out = Some(out.map_or_else(|| Ok(base.clone()), |out| out.mul(&base))?);
        }
        left >>= 1;
        if left > 0 {
            base = base.square()?;
        }
    }
    match out {
        Some(out) if n < 0 => out.reciprocal(),
        Some(out) => Ok(out),
        None => x.scalar_like(1.0)?.expand(&x.shape())?.copied(),
    }
}

impl Tensor {
    /// Views this tensor as pairs of real and imaginary parts along a new last axis.
    pub fn view_as_real(&self) -> Result<Tensor> {
        if !self.dtype().is_complex() {
            let dtype = self.dtype();
            return Err(Error::dtype(format!("view_as_real: a complex tensor expected, got {dtype}")));
        }
        bind(ViewAsReal, &[self])
    }

    /// Makes complex numbers of the pairs along the last axis; a view if the pairs are adjacent.
    pub fn view_as_complex(&self) -> Result<Tensor> {
        let shape = self.shape();
        if shape.rank() == 0 || shape.at(shape.rank() - 1) != 2 {
            return Err(Error::shape(format!(
                "view_as_complex: a last axis of length 2 expected, for real and imaginary part, got shape \
                 {shape}"
            )));
        }
        match self.dtype() {
            DType::F32 | DType::F64 => bind(ViewAsComplex, &[self]),
            other => Err(Error::dtype(format!(
                "view_as_complex: a float32 or float64 tensor expected, got {other}; convert with .float() \
                 first"
            ))),
        }
    }

    fn part(&self, i: usize) -> Result<Tensor> {
        self.view_as_real()?.narrow(-1, i, 1)?.reshape(&self.shape())
    }

    /// The real part, a view; a real tensor itself.
    pub fn real(&self) -> Result<Tensor> {
        if self.dtype().is_complex() { self.part(0) } else { Ok(self.clone()) }
    }

    /// The imaginary part, a view. Real tensors raise.
    pub fn imag(&self) -> Result<Tensor> {
        if !self.dtype().is_complex() {
            return Err(Error::dtype(format!("imag: a complex tensor expected, got {}", self.dtype())));
        }
        self.part(1)
    }

    /// The complex conjugate; a real tensor itself.
    pub fn conj(&self) -> Result<Tensor> {
        if self.dtype().is_complex() { join(&self.real()?, &self.imag()?.neg()?) } else { Ok(self.clone()) }
    }
}
