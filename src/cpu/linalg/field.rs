//! Real or complex matrices: the conversion between arrays and `faer`.
//!
//! Every kernel is written once for both fields. Arrays hold matrices row-major. `faer` works on columns, in
//! memory that it aligns, so that the bits of a result cannot depend on the address of an array.

use super::Cost;
use crate::arguments::linalg::Failure;
use crate::array::buffer::with_reserve;
use crate::cpu::prelude::*;
use crate::process::sync::lock;
use bytemuck::Pod;
use faer::linalg::matmul::matmul;
use faer::prelude::*;
use faer::traits::ComplexField;
use faer::{Accum, Par};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Mutex;

/// A number that kernels write, and the array elements that it is stored as.
pub trait Stored: Pod + Send + Sync {
    /// Element type of the arrays that store it.
    type Part: Element + Pod;
    /// Elements per number.
    const PARTS: usize = size_of::<Self>() / size_of::<Self::Part>();
}

macro_rules! stored {
    ($($number:ty: $part:ty),*) => {
        $(impl Stored for $number {
            type Part = $part;
        })*
    };
}
stored!(f64: f64, c64: f64, i32: i32, i64: i64);

/// The numbers that factorisations compute with.
pub trait Field: Stored<Part = f64> + ComplexField<Real = f64> {
    /// Returns the real part.
    fn re(self) -> f64 {
        Self::real_part_impl(&self)
    }
    /// Returns the product with a real number.
    fn scaled(self, by: f64) -> Self {
        Self::mul_real_impl(&self, &by)
    }
    /// Returns the complex conjugate.
    fn conj(self) -> Self {
        Self::conj_impl(&self)
    }
    /// Returns the absolute value.
    fn size(self) -> f64 {
        if Self::IS_REAL { self.re().abs() } else { self.wide().norm() }
    }
    /// Returns the same number as a complex one.
    fn wide(self) -> c64 {
        c64::new(self.re(), Self::imag_part_impl(&self))
    }
}

impl Field for f64 {}
impl Field for c64 {}

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

    /// Returns a function that gives matrix `i`.
    pub fn all<'a>(&'a self) -> Result<impl Fn(usize) -> MatRef<'a, T>> {
        let (all, m, n) = (bytemuck::cast_slice::<f64, T>(self.array.slice()?), self.m, self.n);
        Ok(move |i| MatRef::from_row_major_slice(&all[i * m * n..(i + 1) * m * n], m, n))
    }

    /// Calls `kernel` with every matrix and its number; each chunk of the batch has its own memory, made by
    /// `fresh`. Returns the error of the first matrix that fails.
    pub fn each<M>(
        &self, name: &str, Cost { work, bytes }: Cost, fresh: impl Fn() -> M + Sync,
        kernel: impl Fn(&mut M, MatRef<'_, T>, usize) -> Result<(), Failure> + Sync,
    ) -> Result<()> {
        let (all, first) = (self.all()?, Mutex::new(None::<(usize, Failure)>));
        let piece = |range: Range<usize>| {
            let mut memory = fresh();
            for i in range {
                if let Err(failure) = kernel(&mut memory, all(i), i) {
                    let mut first = lock(&first);
                    if first.is_none_or(|(at, _)| i < at) {
                        *first = Some((i, failure));
                    }
                    return;
                }
            }
        };
        let grain = (GRAIN / work.max(1)).max(1);
        try_parallel_for(self.batch.numel(), grain, |range| with_reserve(bytes, || piece(range)))?;
        let first = *lock(&first);
        first.map_or(Ok(()), |(at, failure)| Err(failure.error(name, at, &self.batch)))
    }

    /// Returns the matrices of this shape that `kernel` computes, each from one of these; see [`Self::each`].
    pub fn map<M>(
        &self, name: &str, cost: Cost, shape: [usize; 2], fresh: impl Fn() -> M + Sync,
        kernel: impl Fn(&mut M, MatRef<'_, T>) -> Result<Mat<T>, Failure> + Sync,
    ) -> Result<Array> {
        let out = self.fresh::<T>(&shape)?;
        self.each(name, cost, fresh, |memory, matrix, i| {
            out.put(i, kernel(memory, matrix)?.as_ref());
            Ok(())
        })?;
        out.finish(self.dtype)
    }

    /// Returns a new array with the batch axes and these axes after them.
    pub fn fresh<S: Stored>(&self, axes: &[usize]) -> Result<Output<S>> {
        let shape =
            axes.iter().try_fold(self.batch, |shape, &length| shape.inserted(shape.rank(), length))?;
        let shape = if S::PARTS > 1 { shape.inserted(shape.rank(), S::PARTS)? } else { shape };
        let mut array = Array::empty(shape, S::Part::DTYPE, Device::Cpu)?;
        let to = Shared::new(array.slice_mut::<S::Part>()?.as_mut_ptr());
        Ok(Output { array, to, size: axes.iter().product() })
    }

    /// Returns the cost of a factorisation that takes `work` times the work of an elimination, and memory for
    /// `matrices` complex matrices, both as measured.
    pub fn cost(&self, work: usize, matrices: usize) -> Cost {
        Cost::new(work * self.m * self.n * self.m.min(self.n), matrices, self.m * self.n)
    }
}

/// An array that is written matrix by matrix.
pub struct Output<S: Stored> {
    array: Array,
    to: Shared<S::Part>,
    size: usize,
}

impl<S: Stored> Output<S> {
    /// Returns the elements of matrix `i`, for the kernel that computes it to write.
    #[allow(clippy::mut_from_ref, reason = "each matrix is written by one piece of the loop over the batch")]
    pub fn matrix(&self, i: usize) -> &mut [S] {
        let size = self.size * S::PARTS;
        // SAFETY: the array has this matrix, and `Matrices::each` calls its kernel once per matrix.
        bytemuck::cast_slice_mut(unsafe { self.to.part(i * size, size) })
    }

    /// Returns the array, rounded to the dtype of the matrices, or to its real dtype for real numbers.
    pub fn finish(self, dtype: DType) -> Result<Array> {
        let parts = cast(&self.array, dtype.real())?;
        if S::PARTS == 1 {
            return Ok(parts);
        }
        parts.as_complex()?.ok_or_else(|| Error::shape("internal: pairs do not lie as such"))
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
    let mut sizes = (0..a.nrows()).flat_map(|i| (0..a.ncols()).map(move |j| a[(i, j)].size()));
    sizes.try_fold(0.0f64, |most, size| size.is_finite().then(|| most.max(size)))
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
    rescale(b, [right]);
    let both = matrix / right;
    if both.is_normal() { [both, 1.0] } else { [matrix, 1.0 / right] }
}

/// Multiplies a matrix by powers of two, one after the other.
pub fn rescale<T: Field, const N: usize>(x: &mut Mat<T>, factors: [f64; N]) {
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
