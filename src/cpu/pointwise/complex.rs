//! The product of complex numbers, the only complex operation that is worth a loop of its own. The others are
//! composed of operations on real and imaginary parts (`src/ops/complex/`): beside an exponential, an
//! additional pass over memory is negligible.

use crate::arguments::complex::Gate;
use crate::array::complex::Complex;
use crate::cpu::prelude::*;
use std::ops::{Add, Mul, Neg, Sub};

/// Computes `x * y`, or `x * conj(y)`, of operands of one shape.
pub fn product(x: &Array, y: &Array, conjugate: bool, gate: Gate) -> Result<Array> {
    match common_dtype(&[x, y])? {
        DType::C64 => typed::<f32>(x, y, conjugate, gate),
        DType::C128 => typed::<f64>(x, y, conjugate, gate),
        other => Err(wrong_dtype("complex product", other)),
    }
}

/// The type of the real and imaginary part of a complex number.
pub(super) trait ComponentFloat
where
    Self: Copy + PartialEq + Default + Send + Sync + Neg<Output = Self>,
    Self: Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>,
{
}
impl ComponentFloat for f32 {}
impl ComponentFloat for f64 {}

fn typed<T: ComponentFloat>(x: &Array, y: &Array, conjugate: bool, gate: Gate) -> Result<Array>
where
    Complex<T>: Element,
{
    let out = Array::empty(x.shape(), x.dtype(), Device::Cpu)?;
    let ((x, dx), (y, dy)) = (steady(x)?, steady(y)?);
    let (left, right) = (x.ptr::<Complex<T>>(), y.ptr::<Complex<T>>());
    let (left, right) = (Shared::new(left), Shared::new(right));
    let to = Shared::new(out.ptr::<Complex<T>>());
    parallel_for(out.numel(), GRAIN / 4, |range| {
        // SAFETY: an operand has as many elements as the result or, with step 0, one; ranges are disjoint.
        run_plain(unsafe {
            Run {
                x: left.get().add(range.start * dx),
                y: right.get().add(range.start * dy),
                out: std::slice::from_raw_parts_mut(to.get().add(range.start), range.len()),
                steps: (dx, dy),
                conjugate,
                gate,
            }
        });
    });
    Ok(out)
}

/// Returns an operand as a row of elements and the step between them: 0 for one element that repeats.
fn steady(x: &Array) -> Result<(Array, usize)> {
    if x.is_contiguous() {
        return Ok((x.clone(), 1));
    }
    let repeats = (0..x.rank()).all(|axis| x.stride(axis) == 0 || x.dim(axis) == 1);
    if repeats && x.numel() > 0 { Ok((x.clone(), 0)) } else { Ok((x.copied()?, 1)) }
}

struct Run<'a, T> {
    x: *const Complex<T>,
    y: *const Complex<T>,
    out: &'a mut [Complex<T>],
    steps: (usize, usize),
    conjugate: bool,
    gate: Gate,
}

impl<T: ComponentFloat> PlainBody for Run<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        match (self.steps, self.conjugate) {
            ((1, 1), false) => self.each::<1, 1, false>(),
            ((1, 1), true) => self.each::<1, 1, true>(),
            ((1, 0), false) => self.each::<1, 0, false>(),
            ((1, 0), true) => self.each::<1, 0, true>(),
            ((0, 1), false) => self.each::<0, 1, false>(),
            ((0, 1), true) => self.each::<0, 1, true>(),
            (_, false) => self.each::<0, 0, false>(),
            (_, true) => self.each::<0, 0, true>(),
        }
    }
}

impl<T: ComponentFloat> Run<'_, T> {
    #[inline(always)]
    fn each<const DX: usize, const DY: usize, const CONJUGATE: bool>(self) {
        match self.gate {
            Gate::Open => self.fill::<DX, DY, CONJUGATE>(|_, _, z| z),
            Gate::Left => self.fill::<DX, DY, CONJUGATE>(|x, _, z| if is_zero(x) { x } else { z }),
            Gate::Right => self.fill::<DX, DY, CONJUGATE>(|_, y, z| if is_zero(y) { y } else { z }),
        }
    }

    #[inline(always)]
    fn fill<const DX: usize, const DY: usize, const CONJUGATE: bool>(
        self, gate: impl Fn(Complex<T>, Complex<T>, Complex<T>) -> Complex<T>,
    ) {
        for (i, out) in self.out.iter_mut().enumerate() {
            // SAFETY: the operands have as many elements as the output, or repeat one.
            let (x, y) = unsafe { (*self.x.add(i * DX), *self.y.add(i * DY)) };
            let im = if CONJUGATE { -y.im } else { y.im };
            *out = gate(x, y, Complex { re: x.re * y.re - x.im * im, im: x.re * im + x.im * y.re });
        }
    }
}

#[inline(always)]
fn is_zero<T: ComponentFloat>(z: Complex<T>) -> bool {
    z.re == T::default() && z.im == T::default()
}
