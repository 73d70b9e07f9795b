//! Elements of two words on the GPU: complex numbers, which are pairs of float32, the real part first, and
//! 64-bit integers, the lower word first. Kernels that move elements are given the pairs as a last axis, or
//! one part after the other; the product of complex numbers has a rule for each part. The counterpart of
//! `src/cpu/pointwise/complex.rs`.

pub mod fft;
pub mod long;

use super::copy::copy_into;
use super::map::pointwise;
use super::prelude::*;
use crate::arguments::complex::Gate;
use crate::array::shape::MAX_RANK;
use crate::math::real::{Pointwise, Real};

/// Whether elements are pairs.
pub fn is_paired(x: &Array) -> bool {
    x.dtype() == DType::C64 || is_long(x.dtype())
}

/// The dtype of the parts of `x`.
fn dtype_of_parts(x: &Array) -> DType {
    if is_long(x.dtype()) { DType::I32 } else { DType::F32 }
}

/// The pairs of `x`, as numbers along a new last axis.
fn pairs_of(x: &Array) -> Result<Array> {
    let mut strides: Vec<isize> = x.strides().iter().map(|s| 2 * s).collect();
    strides.push(1);
    let shape = x.shape().inserted(x.rank(), 2)?;
    Array::strided(x.buffer().clone(), shape, &strides, 2 * x.offset(), dtype_of_parts(x))
}

/// What `kernel` makes of the pairs of `x`, whose axis it leaves the last one, as elements of the dtype of
/// `x`.
pub fn paired(x: &Array, kernel: impl FnOnce(&Array) -> Result<Array>) -> Result<Array> {
    let pairs = kernel(&pairs_of(x)?)?;
    let last = pairs.rank() - 1;
    let strides: Vec<isize> = pairs.strides()[..last].iter().map(|s| s / 2).collect();
    if pairs.stride(last) != 1
        || pairs.offset() % 2 != 0
        || pairs.strides()[..last].iter().any(|s| s % 2 != 0)
    {
        return Err(Error::shape("internal: a gpu kernel tears pairs apart"));
    }
    let (shape, offset) = (pairs.shape().removed(last), pairs.offset() / 2);
    Array::strided(pairs.buffer().clone(), shape, &strides, offset, x.dtype())
}

/// The first parts of `x`, or the second ones: real and imaginary, or lower and upper.
fn part(x: &Array, second: bool) -> Result<Array> {
    part_as(x, second, dtype_of_parts(x))
}

/// [`part`] as elements of this dtype.
pub fn part_as(x: &Array, second: bool, dtype: DType) -> Result<Array> {
    let strides: Vec<isize> = x.strides().iter().map(|s| 2 * s).collect();
    let offset = 2 * x.offset() + usize::from(second);
    Array::strided(x.buffer().clone(), x.shape(), &strides, offset, dtype)
}

/// What `kernel` makes of both parts of `x`, as elements of the dtype of `x`.
pub fn by_parts(x: &Array, kernel: impl Fn(&Array) -> Result<Array>) -> Result<Array> {
    let parts = [kernel(&part(x, false)?)?, kernel(&part(x, true)?)?];
    let out = Array::empty(parts[0].shape(), x.dtype(), x.device())?;
    for (own, second) in parts.iter().zip([false, true]) {
        copy_into(&part(&out, second)?, own)?;
    }
    Ok(out)
}

/// Copies `src` into the view `dst`, whose elements are pairs.
pub fn copy_pairs(dst: &Array, src: &Array) -> Result<()> {
    if dst.rank() < MAX_RANK && src.rank() < MAX_RANK {
        return copy_into(&pairs_of(dst)?, &pairs_of(src)?);
    }
    // Without room for another axis.
    copy_into(&part(dst, false)?, &part(src, false)?)?;
    copy_into(&part(dst, true)?, &part(src, true)?)
}

/// Computes `x * y`, or `x * conj(y)`, of operands of one shape.
pub fn product(x: &Array, y: &Array, conjugate: bool, gate: Gate) -> Result<Array> {
    let out = like(x, DType::C64)?;
    let [a, b, c, d] = [part(x, false)?, part(x, true)?, part(y, false)?, part(y, true)?];
    for imaginary in [false, true] {
        let rule = Product { imaginary, conjugate, gate };
        let key = [u64::from(imaginary) << 1 | u64::from(conjugate), gate as u64];
        copy_into(&part(&out, imaginary)?, &pointwise("complex_mul", key, [&a, &b, &c, &d], rule)?)?;
    }
    Ok(out)
}

/// A part of the product of `a + ib` and `c + id`.
#[derive(Clone, Copy)]
struct Product {
    imaginary: bool,
    conjugate: bool,
    gate: Gate,
}

impl Pointwise<4> for Product {
    #[inline(always)]
    fn apply<R: Real>(&self, [a, b, c, d]: [R; 4]) -> R {
        let im = if self.conjugate { -d } else { d };
        let z = if self.imaginary { a * im + b * c } else { a * c - b * im };
        let gated = |re: R, im: R| {
            let own = if self.imaginary { im } else { re };
            let zero = R::lit(0.0);
            R::select(re.eq(zero), R::select(im.eq(zero), own, z), z)
        };
        match self.gate {
            Gate::Open => z,
            Gate::Left => gated(a, b),
            Gate::Right => gated(c, d),
        }
    }
}
