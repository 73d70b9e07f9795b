//! Real or complex matrices: the conversion between arrays and `faer`.
//!
//! Every kernel is written once for both fields. Arrays hold matrices row-major. `faer` works on columns, in
//! memory that it aligns, so that the bits of a result cannot depend on the address of an array.

use super::Cost;
use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::dtype::{DType, Element};
use crate::array::shape::Shape;
use crate::cpu::pointwise::copy::cast;
use crate::cpu::run::threads::Shared;
use crate::error::{Error, Result};
use bytemuck::Pod;
use faer::linalg::matmul::matmul;
use faer::prelude::*;
use faer::traits::ComplexField;
use faer::{Accum, Par};
use std::marker::PhantomData;

/// A number that kernels write, and the array elements that it is stored as.
pub trait Stored: Pod + Send + Sync {
    /// Element type of the arrays that store it.
    type Part: Element + Pod;
    /// Elements per number.
    const PARTS: usize;
}

impl Stored for f64 {
    type Part = f64;
    const PARTS: usize = 1;
}
impl Stored for c64 {
    type Part = f64;
    const PARTS: usize = 2;
}
impl Stored for i32 {
    type Part = i32;
    const PARTS: usize = 1;
}
impl Stored for i64 {
    type Part = i64;
    const PARTS: usize = 1;
}

/// The numbers that factorisations compute with.
pub trait Field: Stored<Part = f64> + ComplexField<Real = f64> {
    /// Returns the real part.
    fn re(self) -> f64;
    /// Returns the product with a real number.
    fn scaled(self, by: f64) -> Self;
    /// Returns the complex conjugate.
    fn conj(self) -> Self;
    /// Returns the absolute value.
    fn size(self) -> f64;
    /// Returns the same number as a complex one.
    fn wide(self) -> c64;
}

impl Field for f64 {
    fn re(self) -> f64 {
        self
    }
    fn scaled(self, by: f64) -> f64 {
        self * by
    }
    fn conj(self) -> f64 {
        self
    }
    fn size(self) -> f64 {
        self.abs()
    }
    fn wide(self) -> c64 {
        c64::new(self, 0.0)
    }
}

impl Field for c64 {
    fn re(self) -> f64 {
        self.re
    }
    fn scaled(self, by: f64) -> c64 {
        self * by
    }
    fn conj(self) -> c64 {
        c64::new(self.re, -self.im)
    }
    fn size(self) -> f64 {
        self.norm()
    }
    fn wide(self) -> c64 {
        self
    }
}

/// Calls a kernel for the field of an array's dtype.
macro_rules! in_field {
    ($x:expr, $kernel:ident($($argument:expr),*)) => {
        if $x.dtype().is_complex() { $kernel::<c64>($($argument),*) } else { $kernel::<f64>($($argument),*) }
    };
}
pub(super) use in_field;

/// The matrices of an array.
pub struct Matrices<T> {
    /// Their numbers as contiguous `f64`, one matrix after another.
    array: Array,
    /// The batch axes.
    pub batch: Shape,
    /// Rows of each matrix.
    pub m: usize,
    /// Columns of each matrix.
    pub n: usize,
    /// The dtype that results are rounded to.
    pub dtype: DType,
    field: PhantomData<T>,
}

impl<T: Field> Matrices<T> {
    /// Returns the matrices in the last two axes.
    pub fn of(x: &Array) -> Result<Matrices<T>> {
        let rank = x.rank();
        if rank < 2 {
            return Err(Error::shape(format!("internal: a matrix expected, got shape {}", x.shape())));
        }
        let parts = if x.dtype().is_complex() { x.as_real()? } else { x.clone() };
        if x.dtype().is_complex() != (T::PARTS == 2) {
            return Err(Error::dtype(format!("internal: matrices of {} in another field", x.dtype())));
        }
        Ok(Matrices {
            array: cast(&parts, DType::F64)?,
            batch: x.shape().part(0, rank - 2),
            m: x.dim(rank - 2),
            n: x.dim(rank - 1),
            dtype: x.dtype(),
            field: PhantomData,
        })
    }

    /// Returns the numbers of all matrices.
    pub fn all(&self) -> Result<Rows<'_, T>> {
        Ok(Rows { all: bytemuck::cast_slice(self.array.slice::<f64>()?), m: self.m, n: self.n })
    }

    /// Returns a new array with the batch axes and these axes after them.
    pub fn fresh<S: Stored>(&self, axes: &[usize]) -> Result<Output<S>> {
        Output::new(&self.batch, axes)
    }

    /// Returns the cost of a factorisation that takes `work` times the work of an elimination, and memory for
    /// `matrices` complex matrices, both as measured.
    pub fn cost(&self, work: usize, matrices: usize) -> Cost {
        Cost::new(work * self.m * self.n * self.m.min(self.n), matrices, self.m * self.n)
    }
}

/// The numbers of matrices, one matrix after another.
#[derive(Clone, Copy)]
pub struct Rows<'a, T> {
    all: &'a [T],
    m: usize,
    n: usize,
}

impl<'a, T: Field> Rows<'a, T> {
    /// Returns matrix `i`.
    pub fn matrix(&self, i: usize) -> MatRef<'a, T> {
        let size = self.m * self.n;
        MatRef::from_row_major_slice(&self.all[i * size..(i + 1) * size], self.m, self.n)
    }
}

/// An array that is written matrix by matrix.
pub struct Output<S: Stored> {
    array: Array,
    to: Shared<S::Part>,
    size: usize,
}

impl<S: Stored> Output<S> {
    /// Returns an array of this batch with these axes after it.
    fn new(batch: &Shape, axes: &[usize]) -> Result<Output<S>> {
        let mut shape = *batch;
        for &length in axes {
            shape = shape.inserted(shape.rank(), length)?;
        }
        if S::PARTS > 1 {
            shape = shape.inserted(shape.rank(), S::PARTS)?;
        }
        let mut array = Array::empty(shape, S::Part::DTYPE, Device::Cpu)?;
        let to = Shared::new(array.slice_mut::<S::Part>()?.as_mut_ptr());
        Ok(Output { array, to, size: axes.iter().product() })
    }

    /// Returns the elements of matrix `i`, for the kernel that computes it to write.
    #[allow(clippy::mut_from_ref, reason = "each matrix is written by one piece of the loop over the batch")]
    pub fn matrix(&self, i: usize) -> &mut [S] {
        let size = self.size * S::PARTS;
        // SAFETY: the array has this matrix, and `each` calls its kernel once per matrix, so none is shared.
        bytemuck::cast_slice_mut(unsafe { self.to.part(i * size, size) })
    }

    /// Returns the array, rounded to the dtype of the matrices, or to its real dtype for real numbers.
    pub fn finish(self, dtype: DType) -> Result<Array> {
        if S::PARTS == 1 {
            return cast(&self.array, dtype.real());
        }
        cast(&self.array, dtype.real())?
            .as_complex()?
            .ok_or_else(|| Error::shape("internal: pairs do not lie as such"))
    }

    /// Returns the array without rounding.
    pub fn exact(self) -> Array {
        self.array
    }
}

impl<T: Field> Output<T> {
    /// Writes matrix `i`.
    pub fn put(&self, i: usize, from: MatRef<'_, T>) {
        MatMut::from_row_major_slice_mut(self.matrix(i), from.nrows(), from.ncols()).copy_from(from);
    }
}

/// Returns the largest magnitude, or `None` if an element is not finite.
pub fn magnitude<T: Field>(a: MatRef<'_, T>) -> Option<f64> {
    let mut most = 0.0f64;
    for i in 0..a.nrows() {
        for j in 0..a.ncols() {
            let size = a[(i, j)].size();
            if !size.is_finite() {
                return None;
            }
            most = most.max(size);
        }
    }
    Some(most)
}

/// Returns a power of two that scales this magnitude to about 1 where its square would overflow or underflow.
pub fn scale(magnitude: f64) -> f64 {
    match magnitude {
        0.0 => 1.0,
        size if (1e-100..1e100).contains(&size) => 1.0,
        size => 2.0f64.powi(-(size.log2().floor() as i32).clamp(-1000, 1000)),
    }
}

/// Scales the upper or lower triangle of `t`, and the right-hand sides `b`, to about 1 where they are far
/// from it. Returns the factors of the solution, to be multiplied one after the other.
pub fn graded<T: Field>(mut t: MatMut<'_, T>, upper: bool, b: &mut Mat<T>) -> [f64; 2] {
    let inside = |i: usize, j: usize| if upper { i <= j } else { j <= i };
    let n = t.nrows();
    let places = || (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|&(i, j)| inside(i, j));
    let most = places().fold(0.0f64, |most, at| most.max(t[at].size()));
    let matrix = if most.is_finite() { scale(most) } else { 1.0 };
    let right = magnitude(b.as_ref()).map_or(1.0, scale);
    if matrix != 1.0 {
        places().for_each(|at| t[at] = t[at].scaled(matrix));
    }
    if right != 1.0 {
        rescale(b, [right, 1.0]);
    }
    let both = matrix / right;
    if both.is_normal() { [both, 1.0] } else { [matrix, 1.0 / right] }
}

/// Multiplies a matrix by powers of two, one after the other.
pub fn rescale<T: Field>(x: &mut Mat<T>, factors: [f64; 2]) {
    for by in factors.into_iter().filter(|&by| by != 1.0) {
        for j in 0..x.ncols() {
            (0..x.nrows()).for_each(|i| x[(i, j)] = x[(i, j)].scaled(by));
        }
    }
}

/// Returns `a b`.
pub fn product<T: Field>(a: MatRef<'_, T>, b: MatRef<'_, T>) -> Mat<T> {
    let mut out = Mat::zeros(a.nrows(), b.ncols());
    matmul(out.as_mut(), Accum::Replace, a, b, T::one_impl(), Par::Seq);
    out
}
