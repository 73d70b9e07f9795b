//! Transforms of contiguous lines, with the scaling of their elements before and after.

use super::Half;
use super::plans::{FftFloat, FftPlan, Kind, plan};
use crate::cpu::prelude::*;
use bytemuck::{Pod, cast_slice_mut};
use num_complex::Complex;
use std::ops::Range;

/// A transform of lines.
pub trait Lines: Sync {
    /// The type of real and imaginary parts.
    type Part: FftFloat;
    /// The element type of the input.
    type From: Pod + Send + Sync;
    /// The element type of the output.
    type To: Pod + Send + Sync;

    /// Returns the lengths of an input line and an output line.
    fn lengths(&self) -> (usize, usize);
    /// Returns the length of the scratch buffer that `run` needs, for any number of lines.
    fn scratch(&self) -> usize;
    /// Transforms lines; returns false if their lengths do not fit the plan.
    fn run(&self, from: &[Self::From], to: &mut [Self::To], scratch: &mut [Complex<Self::Part>]) -> bool;
}

/// The transform of complex numbers to complex numbers.
pub struct Complexes<T> {
    n: usize,
    plan: FftPlan<T>,
    scale: f64,
}

impl<T: FftFloat> Complexes<T> {
    /// Returns the transform of `n` numbers.
    pub fn new(n: usize, inverse: bool, scale: f64) -> Result<Complexes<T>> {
        let kind = if inverse { Kind::Inverse } else { Kind::Forward };
        Ok(Complexes { n, plan: plan(kind, n)?, scale })
    }
}

impl<T: FftFloat> Lines for Complexes<T> {
    type Part = T;
    type From = Complex<T>;
    type To = Complex<T>;

    fn lengths(&self) -> (usize, usize) {
        (self.n, self.n)
    }
    fn scratch(&self) -> usize {
        self.plan.scratch()
    }
    fn run(&self, from: &[Complex<T>], to: &mut [Complex<T>], scratch: &mut [Complex<T>]) -> bool {
        let FftPlan::Complex(plan) = &self.plan else { return false };
        plan.process_immutable_with_scratch(from, to, scratch);
        multiply::<T>(cast_slice_mut(to), self.scale);
        true
    }
}

/// Converts a factor to the dtype of what it multiplies.
fn part<T: FftFloat>(factor: f64) -> T {
    <T as Element>::from_f64(factor)
}

/// Multiplies every number by `scale`, without a pass over them if it is 1.
fn multiply<T: FftFloat>(x: &mut [T], scale: f64) {
    if scale != 1.0 {
        let scale = part(scale);
        x.iter_mut().for_each(|x| *x = *x * scale);
    }
}

/// Multiplies real parts by `re` and imaginary parts by `im`.
fn multiply_parts<T: FftFloat>(x: &mut [Complex<T>], re: f64, im: f64) {
    if (re, im) != (1.0, 1.0) {
        let [re, im] = [re, im].map(part);
        x.iter_mut().for_each(|x| *x = Complex::new(x.re * re, x.im * im));
    }
}

impl Half {
    /// Length of the first half.
    fn half(&self) -> usize {
        self.n / 2 + 1
    }
    /// Indices in the first half of the elements that stand for themselves and their mirror image.
    fn inner(&self) -> Range<usize> {
        1..self.n.div_ceil(2)
    }
    /// Indices of the others, which are real: the first, and the last of an even length.
    fn ends(&self) -> impl Iterator<Item = usize> {
        std::iter::once(0).chain(self.n.is_multiple_of(2).then_some(self.n / 2))
    }
    /// Returns the sign of the imaginary parts relative to those of a plan with direction `inverse`.
    fn exponent_sign(&self, inverse: bool) -> f64 {
        if self.inverse == inverse { 1.0 } else { -1.0 }
    }
}

/// The transform of real numbers, of which it computes the first half.
pub struct FromReal<T> {
    half: Half,
    plan: FftPlan<T>,
}

impl<T: FftFloat> FromReal<T> {
    /// Returns the transform of `half.n` numbers.
    pub fn new(half: Half) -> Result<FromReal<T>> {
        Ok(FromReal { half, plan: plan(Kind::FromReal, half.n)? })
    }
}

impl<T: FftFloat> Lines for FromReal<T> {
    type Part = T;
    type From = T;
    type To = Complex<T>;

    fn lengths(&self) -> (usize, usize) {
        (self.half.n, self.half.half())
    }
    fn scratch(&self) -> usize {
        self.half.half() + self.plan.scratch()
    }
    fn run(&self, from: &[T], to: &mut [Complex<T>], scratch: &mut [Complex<T>]) -> bool {
        let FftPlan::FromReal(plan) = &self.plan else { return false };
        let half = self.half;
        let (line, scratch) = scratch.split_at_mut(half.half());
        // The plan writes to its input.
        let line = &mut cast_slice_mut::<Complex<T>, T>(line)[..half.n];
        let (sign, twice) = (half.exponent_sign(false), if half.doubled { 2.0 } else { 1.0 });
        for (from, to) in from.chunks_exact(half.n).zip(to.chunks_exact_mut(half.half())) {
            line.copy_from_slice(from);
            if plan.process_with_scratch(line, to, scratch).is_err() {
                return false;
            }
            multiply_parts(&mut to[half.inner()], twice * half.scale, sign * twice * half.scale);
            half.ends().for_each(|k| to[k].re = to[k].re * part(half.scale));
        }
        true
    }
}

/// The transform to real numbers, given the first half of its input.
pub struct ToReal<T> {
    half: Half,
    plan: FftPlan<T>,
}

impl<T: FftFloat> ToReal<T> {
    /// Returns the transform to `half.n` numbers.
    pub fn new(half: Half) -> Result<ToReal<T>> {
        Ok(ToReal { half, plan: plan(Kind::ToReal, half.n)? })
    }
}

impl<T: FftFloat> Lines for ToReal<T> {
    type Part = T;
    type From = Complex<T>;
    type To = T;

    fn lengths(&self) -> (usize, usize) {
        (self.half.half(), self.half.n)
    }
    fn scratch(&self) -> usize {
        self.half.half() + self.plan.scratch()
    }
    fn run(&self, from: &[Complex<T>], to: &mut [T], scratch: &mut [Complex<T>]) -> bool {
        let FftPlan::ToReal(plan) = &self.plan else { return false };
        let half = self.half;
        let (line, scratch) = scratch.split_at_mut(half.half());
        // The plan adds the mirror images; if they are not wanted, an element counts half.
        let (sign, once) = (half.exponent_sign(true), if half.doubled { 1.0 } else { 0.5 });
        for (from, to) in from.chunks_exact(half.half()).zip(to.chunks_exact_mut(half.n)) {
            line.copy_from_slice(from);
            multiply_parts(&mut line[half.inner()], once, sign * once);
            // Imaginary parts without a mirror image do not contribute to the real part of the sum.
            half.ends().for_each(|k| line[k].im = T::zero());
            if plan.process_with_scratch(line, to, scratch).is_err() {
                return false;
            }
        }
        multiply(to, half.scale);
        true
    }
}
