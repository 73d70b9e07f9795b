//! Discrete Fourier transforms along one axis: of complex numbers, pairs along the last axis, and of reals.
//!
//! `rustfft` and `realfft` transform single lines, in the dtype of the input; this module batches the lines.
//! Contiguous lines are transformed directly. Along another axis a few adjacent lines at a time are gathered,
//! transformed and scattered, so that no whole array is transposed. The shape alone decides which lines go
//! together, so that the number of threads changes no bit.
//!
//! Read next: `src/cpu/fft/plans.rs`, the cache of plans; `src/cpu/fft/lines.rs`, the transforms of lines.

mod lines;
mod plans;

pub(crate) use plans::{PlansLock, lock_plans};

use crate::arguments::complex::Half;
use crate::cpu::pointwise::copy::transpose_panel;
use crate::cpu::prelude::*;
use crate::cpu::reduce::axis::around;
use crate::cpu::rows::norm::with_float;
use bytemuck::Zeroable;
use lines::{Complexes, FromReal, Lines, ToReal};
use num_complex::Complex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Elements that are transformed together, in whole lines, where there are that many.
const TOGETHER: usize = 4096;
/// Minimal bytes across the adjacent lines that are gathered together: two cache lines.
const BESIDE: usize = 128;

/// Returns the shape of the pairs along the last axis, after which `axis` may not come.
fn shape_of_pairs(x: &Array, axis: usize) -> Result<Shape> {
    if axis + 1 < x.rank() && x.dim(x.rank() - 1) == 2 {
        return Ok(x.shape().removed(x.rank() - 1));
    }
    Err(Error::shape(format!("internal: fft along axis {axis} of pairs of shape {}", x.shape())))
}

/// Returns the transform along `axis` of pairs (real part, imaginary part) along the last axis, times
/// `scale`; `inverse` negates the exponent.
pub fn fft(x: &Array, axis: usize, inverse: bool, scale: f64) -> Result<Array> {
    let shape = shape_of_pairs(x, axis)?;
    with_float!(x.dtype(), T => all(x, &shape, axis, x.shape(), || {
        Complexes::<T>::new(x.dim(axis), inverse, scale)
    }))
}

/// Returns the first half of the transform of real numbers along `axis`, as pairs along a new last axis.
pub fn from_real(x: &Array, axis: usize, half: Half) -> Result<Array> {
    let to = x.shape().with(axis, half.n / 2 + 1).inserted(x.rank(), 2)?;
    with_float!(x.dtype(), T => all(x, &x.shape(), axis, to, || FromReal::<T>::new(half)))
}

/// Returns the real part of the transform along `axis` of pairs, given its first half.
pub fn to_real(x: &Array, axis: usize, half: Half) -> Result<Array> {
    let shape = shape_of_pairs(x, axis)?;
    with_float!(x.dtype(), T => all(x, &shape, axis, shape.with(axis, half.n), || ToReal::<T>::new(half)))
}

/// Returns an array of shape `to` with all lines along `axis` transformed; `shape` counts pairs as elements.
/// `lines` is called only if there are any.
fn all<L: Lines>(
    x: &Array, shape: &Shape, axis: usize, to: Shape, lines: impl FnOnce() -> Result<L>,
) -> Result<Array> {
    let mut out = Array::empty(to, x.dtype(), Device::Cpu)?;
    if out.numel() == 0 {
        return Ok(out);
    }
    let (lines, x, (before, _, after)) = (&lines()?, contiguous(x)?, around(shape, axis));
    let from = bytemuck::cast_slice::<L::Part, L::From>(x.slice()?);
    let to = bytemuck::cast_slice_mut::<L::Part, L::To>(out.slice_mut()?);
    let (n, m) = lines.lengths();
    if from.len() != before * n * after || to.len() != before * m * after {
        return Err(Error::shape(format!("internal: fft of {} numbers to {}", from.len(), to.len())));
    }
    let to = Shared::new(to.as_mut_ptr());
    let failed = AtomicBool::new(false);
    let run = |from: &[L::From], to: &mut [L::To], scratch: &mut [Complex<L::Part>]| {
        if !lines.run(from, to, scratch) {
            failed.store(true, Ordering::Relaxed);
        }
    };
    let longest = n.max(m);
    let steps = longest * (usize::BITS - longest.leading_zeros()) as usize;
    if after == 1 {
        let together = (TOGETHER / longest).clamp(1, before);
        let grain = (GRAIN / (together * steps)).max(1);
        try_parallel_for(before.div_ceil(together), grain, |range| {
            let mut scratch = filled(Complex::zeroed(), lines.scratch())?;
            for piece in range {
                let first = piece * together;
                let count = together.min(before - first);
                // SAFETY: pieces have disjoint lines, and the length of `to` was checked above.
                let to = unsafe { to.part(first * m, count * m) };
                run(&from[first * n..][..count * n], to, &mut scratch);
            }
            Ok(())
        })?;
    } else {
        beside(lines, (before, after), from, to, steps, run)?;
    }
    match failed.into_inner() {
        true => Err(Error::value("internal: fft of lines of a length that its plan is not for")),
        false => Ok(out),
    }
}

/// Transforms adjacent lines, whose elements are `after` apart.
fn beside<L: Lines>(
    lines: &L, (before, after): (usize, usize), from: &[L::From], to: Shared<L::To>, steps: usize,
    run: impl Fn(&[L::From], &mut [L::To], &mut [Complex<L::Part>]) + Sync,
) -> Result<()> {
    let (n, m) = lines.lengths();
    let width = (BESIDE / size_of::<L::From>().max(size_of::<L::To>())).max(TOGETHER / n.max(m)).min(after);
    let groups = after.div_ceil(width);
    let grain = (GRAIN / (width * steps)).max(1);
    try_parallel_for(before * groups, grain, |range| {
        let mut scratch = filled(Complex::zeroed(), lines.scratch())?;
        let mut given = filled(L::From::zeroed(), width * n)?;
        let mut found = filled(L::To::zeroed(), width * m)?;
        for piece in range {
            let (block, first) = (piece / groups, piece % groups * width);
            let count = width.min(after - first);
            let (given, found) = (&mut given[..count * n], &mut found[..count * m]);
            // SAFETY: `all` checked that the lines are inside the arrays; those of pieces are disjoint.
            unsafe {
                let from = from.as_ptr().add(block * n * after + first);
                transpose_panel(given.as_mut_ptr(), n as isize, from, after as isize, count, n);
                run(given, found, &mut scratch);
                let to = to.get().add(block * m * after + first);
                transpose_panel(to, after as isize, found.as_ptr(), m as isize, m, count);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    /// `exp(-+ 2 pi i t / n)`.
    fn root(t: usize, n: usize, inverse: bool) -> Complex<f64> {
        Complex::cis(if inverse { 1.0 } else { -1.0 } * TAU * (t % n) as f64 / n as f64)
    }

    fn complexes(x: &Array) -> Vec<Complex<f64>> {
        values(x).chunks(2).map(|p| Complex::new(p[0], p[1])).collect()
    }

    fn check(got: f64, expected: f64, n: usize, dtype: DType) {
        let tolerance = if dtype == DType::F32 { 1e-6 } else { 2e-15 } * (n as f64 + 20.0).sqrt();
        assert!((got - expected).abs() < tolerance * 10.0, "{n} {dtype}: {got} {expected}");
    }

    const LENGTHS: [usize; 14] = [1, 2, 3, 4, 5, 8, 15, 16, 31, 37, 64, 101, 148, 243];
    const AROUND: [(usize, usize); 4] = [(1, 1), (3, 1), (2, 3), (1, 37)];

    #[test]
    fn every_length_is_the_sum_of_its_definition() -> Result<()> {
        for dtype in [DType::F32, DType::F64] {
            for n in LENGTHS {
                for (before, after) in AROUND {
                    let x = sample(&[before, n, after, 2], dtype)?;
                    for inverse in [false, true] {
                        let (v, got) = (complexes(&x), complexes(&fft(&x, 1, inverse, 0.5)?));
                        for i in (0..before * n * after).step_by(7) {
                            let (b, k, a) = (i / (n * after), i / after % n, i % after);
                            let terms = (0..n).map(|t| v[(b * n + t) * after + a] * root(t * k, n, inverse));
                            let sum: Complex<f64> = terms.sum::<Complex<f64>>() * 0.5;
                            check(got[i].re, sum.re, n, dtype);
                            check(got[i].im, sum.im, n, dtype);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn real_numbers_and_back_are_parts_of_the_transform() -> Result<()> {
        for dtype in [DType::F32, DType::F64] {
            for n in LENGTHS {
                for (before, after) in AROUND {
                    for (inverse, doubled) in [(false, false), (true, true)] {
                        let (m, half) = (n / 2 + 1, Half { n, inverse, doubled, scale: 0.5 });
                        let x = sample(&[before, n, after], dtype)?;
                        let v = values(&x);
                        let weight = |k: usize| if doubled && k > 0 && 2 * k < n { 1.0 } else { 0.5 };
                        for (i, got) in complexes(&from_real(&x, 1, half)?).iter().enumerate() {
                            let (b, k, a) = (i / (m * after), i / after % m, i % after);
                            let terms = (0..n).map(|t| root(t * k, n, inverse) * v[(b * n + t) * after + a]);
                            let sum = terms.sum::<Complex<f64>>() * weight(k);
                            check(got.re, sum.re, n, dtype);
                            check(got.im, sum.im, n, dtype);
                        }
                        let y = sample(&[before, m, after, 2], dtype)?;
                        let v = complexes(&y);
                        for (i, &got) in values(&to_real(&y, 1, half)?).iter().enumerate() {
                            let (b, t, a) = (i / (n * after), i / after % n, i % after);
                            let term = |k: usize| v[(b * m + k) * after + a] * root(t * k, n, inverse);
                            check(got, (0..m).map(|k| term(k).re * weight(k)).sum(), n, dtype);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn any_layout_and_any_number_of_threads() -> Result<()> {
        for x in layouts(&[3, 5, 2], DType::F64)? {
            let dense = crate::cpu::pointwise::copy::duplicate(&x)?;
            assert_eq!(values(&fft(&x, 0, false, 1.0)?), values(&fft(&dense, 0, false, 1.0)?));
        }
        for dims in [[64, 1000, 2], [1000, 64, 2], [5000, 16, 2], [3, 70000, 2]] {
            for dtype in [DType::F32, DType::F64] {
                let x = sample(&dims, dtype)?;
                let half = |n: usize| Half { n, inverse: false, doubled: true, scale: 0.3 };
                same_for_any_threads(|| fft(&x, 0, false, 1.0))?;
                same_for_any_threads(|| fft(&x, 1, true, 0.3))?;
                same_for_any_threads(|| from_real(&x, 1, half(dims[1])))?;
                same_for_any_threads(|| to_real(&x, 0, half(2 * dims[0] - 1)))?;
            }
        }
        Ok(())
    }

    #[test]
    fn infinities_and_nan_are_numbers_like_others() -> Result<()> {
        for n in [1, 2, 16, 17, 1000, 10007] {
            for bad in [f64::INFINITY, f64::NAN] {
                let mut x = sample(&[n, 2], DType::F64)?;
                x.slice_mut::<f64>()?.fill(bad);
                assert!(values(&fft(&x, 0, false, 1.0)?).iter().all(|v| !v.is_finite()));
                let half = Half { n: 2 * n - 1, inverse: true, doubled: true, scale: 1.0 };
                assert!(values(&to_real(&x, 0, half)?).iter().all(|v| !v.is_finite()));
            }
        }
        Ok(())
    }
}
