//! Complex numbers on the GPU: pairs of float32, the real part first. Kernels that move elements are given
//! the pairs as a last axis, or one part after the other; the product has a rule for each part. The
//! counterpart of `src/cpu/pointwise/complex.rs`.

pub mod fft;

use super::copy::copy_into;
use super::map::pointwise;
use super::prelude::*;
use crate::arguments::complex::Gate;
use crate::math::real::{Pointwise, Real};

/// Whether elements are pairs.
pub fn is_paired(x: &Array) -> bool {
    x.dtype() == DType::C64
}

/// What `kernel` makes of the pairs of `x`, whose axis it leaves the last one, as complex numbers.
pub fn paired(x: &Array, kernel: impl FnOnce(&Array) -> Result<Array>) -> Result<Array> {
    let pairs = kernel(&x.as_real()?)?;
    pairs.as_complex()?.ok_or_else(|| Error::shape("internal: a gpu kernel tears complex numbers apart"))
}

/// The real parts of `x`, or the imaginary ones.
fn part(x: &Array, imaginary: bool) -> Result<Array> {
    let strides: Vec<isize> = (0..x.rank()).map(|i| 2 * x.stride(i)).collect();
    let offset = 2 * x.offset() + usize::from(imaginary);
    Array::strided(x.buffer().clone(), x.shape(), &strides, offset, DType::F32)
}

/// What `kernel` makes of both parts of `x`, as complex numbers of the same shape.
pub fn by_parts(x: &Array, kernel: impl Fn(&Array) -> Result<Array>) -> Result<Array> {
    let out = like(x, DType::C64)?;
    for imaginary in [false, true] {
        copy_into(&part(&out, imaginary)?, &kernel(&part(x, imaginary)?)?)?;
    }
    Ok(out)
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
