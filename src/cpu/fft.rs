//! Discrete Fourier transforms along one axis, of complex numbers that are pairs along the last axis.
//!
//! A length is taken apart into factors; each pass combines sub-transforms (Stockham's form, which needs no reordering:
//! Van Loan, "Computational frameworks for the fast Fourier transform", 1992, 1.7). A length with a large prime factor
//! becomes a convolution of a length without one (Bluestein, 1970). Everything is computed in `f64` and rounded once.

use super::copy::cast;
use super::isa::{PlainBody, run_widest};
use super::threads::{GRAIN, Shared, parallel_for};
use crate::array::Array;
use crate::buffer::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use std::f64::consts::FRAC_PI_2;

/// A complex number.
type Complex = [f64; 2];
/// Prime factors above this go by a convolution.
const LARGEST: usize = 31;
/// Neighbouring lines that are transformed together.
const LINES: usize = 16;

#[inline(always)]
fn times(a: Complex, b: Complex) -> Complex {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

#[inline(always)]
fn plus(a: Complex, b: Complex) -> Complex {
    [a[0] + b[0], a[1] + b[1]]
}

#[inline(always)]
fn minus(a: Complex, b: Complex) -> Complex {
    [a[0] - b[0], a[1] - b[1]]
}

/// `exp(-2 pi i t / n)` for `t < n`. The angle is reduced in integers, so that its error is that of the last rounding.
fn root(t: usize, n: usize) -> Complex {
    let (quarter, rest) = (4 * t / n, 4 * t % n);
    let angle = |part: usize| FRAC_PI_2 * (part as f64 / n as f64);
    let (c, s) = if 2 * rest <= n {
        (angle(rest).cos(), angle(rest).sin())
    } else {
        (angle(n - rest).sin(), angle(n - rest).cos())
    };
    match quarter {
        0 => [c, -s],
        1 => [-s, -c],
        2 => [-c, s],
        _ => [s, c],
    }
}

/// What a length needs.
struct Plan {
    n: usize,
    /// `exp(-2 pi i t / n)`.
    roots: Vec<Complex>,
    kind: Kind,
}

enum Kind {
    /// Passes with these factors.
    Factors(Vec<usize>),
    /// A convolution: its plan, the chirp, and the transform of what is convolved with.
    Convolution(Box<Plan>, Vec<Complex>, Vec<Complex>),
}

/// The factors of a length, fours first.
fn factors(mut n: usize) -> Vec<usize> {
    let mut found = Vec::new();
    for p in std::iter::once(4).chain(2..) {
        while n.is_multiple_of(p) && n > 1 {
            found.push(p);
            n /= p;
        }
        if n <= 1 {
            break;
        }
        if p > 4 && p * p > n {
            found.push(n);
            break;
        }
    }
    found
}

impl Plan {
    fn new(n: usize) -> Plan {
        let roots: Vec<Complex> = (0..n).map(|t| root(t, n)).collect();
        let parts = factors(n);
        if parts.iter().all(|&p| p <= LARGEST) {
            return Plan { n, roots, kind: Kind::Factors(parts) };
        }
        // t k = (t^2 + k^2 - (k - t)^2) / 2 makes the sum a convolution with a chirp.
        let chirp: Vec<Complex> = (0..n).map(|t| root((t * t) % (2 * n), 2 * n)).collect();
        let length = (2 * n - 1).next_power_of_two();
        let inner = Plan::new(length);
        let mut with = vec![[0.0; 2]; length];
        for (t, c) in chirp.iter().enumerate() {
            with[t] = [c[0], -c[1]];
            with[(length - t) % length] = with[t];
        }
        let mut scratch = with.clone();
        inner.run(&mut with, &mut scratch, 1);
        Plan { n, roots, kind: Kind::Convolution(Box::new(inner), chirp, with) }
    }

    /// Transforms `lines` interleaved lines in place; `scratch` is as long as they are.
    fn run(&self, x: &mut [Complex], scratch: &mut [Complex], lines: usize) {
        match &self.kind {
            Kind::Factors(parts) => {
                let (mut from, mut to) = (&mut *x, &mut *scratch);
                let (mut done, mut left) = (1, self.n);
                for &p in parts {
                    left /= p;
                    let pass = Pass { x: from, y: to, roots: &self.roots, p, done, run: left * lines };
                    run_widest(pass);
                    std::mem::swap(&mut from, &mut to);
                    done *= p;
                }
                if parts.len() % 2 == 1 {
                    x.copy_from_slice(scratch);
                }
            }
            Kind::Convolution(plan, chirp, with) => convolve(x, lines, plan, chirp, with),
        }
    }
}

/// The transform as a convolution.
fn convolve(x: &mut [Complex], lines: usize, plan: &Plan, chirp: &[Complex], with: &[Complex]) {
    let mut long = vec![[0.0; 2]; plan.n * lines];
    let mut scratch = long.clone();
    let row = |t: usize| t * lines..(t + 1) * lines;
    for (t, &c) in chirp.iter().enumerate() {
        long[row(t)].iter_mut().zip(&x[row(t)]).for_each(|(to, &v)| *to = times(v, c));
    }
    plan.run(&mut long, &mut scratch, lines);
    // The inverse transform is the transform between two conjugations.
    for (t, &w) in with.iter().enumerate() {
        long[row(t)].iter_mut().for_each(|v| {
            let [re, im] = times(*v, w);
            *v = [re, -im];
        });
    }
    plan.run(&mut long, &mut scratch, lines);
    let scale = 1.0 / plan.n as f64;
    for (t, &c) in chirp.iter().enumerate() {
        x[row(t)].iter_mut().zip(&long[row(t)]).for_each(|(to, v)| {
            *to = times([v[0] * scale, -v[1] * scale], c);
        });
    }
}

/// One pass with factor `p`: `done` is the product of the factors before it, and `run` numbers lie side by side.
struct Pass<'a> {
    x: &'a [Complex],
    y: &'a mut [Complex],
    roots: &'a [Complex],
    p: usize,
    done: usize,
    run: usize,
}

impl Pass<'_> {
    /// The factor of input `q` in output `j + done r`.
    #[inline(always)]
    fn weight(&self, q: usize, output: usize) -> Complex {
        let step = self.roots.len() / (self.done * self.p);
        self.roots[q * output % (self.done * self.p) * step]
    }
}

impl PlainBody for Pass<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (p, run, done) = (self.p, self.run, self.done);
        for j in 0..done {
            let from = &self.x[j * p * run..(j + 1) * p * run];
            match p {
                2 => {
                    let w = self.weight(1, j);
                    let (low, high) = self.y.split_at_mut(done * run);
                    let (low, high) = (&mut low[j * run..][..run], &mut high[j * run..][..run]);
                    for k in 0..run {
                        let (a, b) = (from[k], times(from[run + k], w));
                        low[k] = plus(a, b);
                        high[k] = minus(a, b);
                    }
                }
                4 => {
                    let w = [self.weight(1, j), self.weight(2, j), self.weight(3, j)];
                    let (half, other) = self.y.split_at_mut(2 * done * run);
                    let (y0, y1) = half.split_at_mut(done * run);
                    let (y2, y3) = other.split_at_mut(done * run);
                    let (y0, y1) = (&mut y0[j * run..][..run], &mut y1[j * run..][..run]);
                    let (y2, y3) = (&mut y2[j * run..][..run], &mut y3[j * run..][..run]);
                    for k in 0..run {
                        let (a, b) = (from[k], times(from[run + k], w[0]));
                        let (c, d) = (times(from[2 * run + k], w[1]), times(from[3 * run + k], w[2]));
                        let (even, odd, sum, gap) = (plus(a, c), minus(a, c), plus(b, d), minus(b, d));
                        // The gap times -i.
                        let turned = [gap[1], -gap[0]];
                        y0[k] = plus(even, sum);
                        y1[k] = plus(odd, turned);
                        y2[k] = minus(even, sum);
                        y3[k] = minus(odd, turned);
                    }
                }
                _ => {
                    for r in 0..p {
                        let to = (j + done * r) * run;
                        self.y[to..to + run].copy_from_slice(&from[..run]);
                        for q in 1..p {
                            let w = self.weight(q, j + done * r);
                            for k in 0..run {
                                self.y[to + k] = plus(self.y[to + k], times(from[q * run + k], w));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The transform along `axis` of pairs (real part, imaginary part) along the last axis, times `scale`; with the sign of
/// the exponent turned if `inverse`.
pub fn fft(x: &Array, axis: usize, inverse: bool, scale: f64) -> Result<Array> {
    let rank = x.rank();
    if axis + 1 >= rank || x.dim(rank - 1) != 2 {
        return Err(Error::shape(format!("internal: fft along axis {axis} of pairs of shape {}", x.shape())));
    }
    let (n, dtype) = (x.dim(axis), x.dtype());
    let before = x.shape().part(0, axis).numel();
    let after = x.shape().part(axis + 1, rank - 1).numel();
    let given = cast(x, DType::F64)?;
    let mut out = Array::empty(x.shape(), DType::F64, Device::Cpu)?;
    if out.numel() == 0 {
        return cast(&out, dtype);
    }
    let plan = Plan::new(n);
    let from = given.slice::<f64>()?.as_chunks::<2>().0;
    let to = Shared::new(out.slice_mut::<f64>()?.as_mut_ptr());
    let groups = after.div_ceil(LINES);
    let sign = if inverse { -1.0 } else { 1.0 };
    let work = n * LINES.min(after) * (usize::BITS - n.leading_zeros()) as usize;
    parallel_for(before * groups, (GRAIN / work.max(1)).max(1), |range| {
        let mut buffer = vec![[0.0; 2]; n * LINES.min(after)];
        let mut scratch = buffer.clone();
        for piece in range {
            let (block, first) = (piece / groups * n * after, piece % groups * LINES);
            let lines = LINES.min(after - first);
            let (buffer, scratch) = (&mut buffer[..n * lines], &mut scratch[..n * lines]);
            // With conjugated numbers before and after, the sign of the exponent turns.
            for t in 0..n {
                let row = &from[block + t * after + first..][..lines];
                buffer[t * lines..][..lines].iter_mut().zip(row).for_each(|(b, v)| *b = [v[0], sign * v[1]]);
            }
            plan.run(buffer, scratch, lines);
            for t in 0..n {
                // SAFETY: every piece has lines of its own.
                let row = unsafe { to.part(2 * (block + t * after + first), 2 * lines) };
                for (pair, v) in row.as_chunks_mut::<2>().0.iter_mut().zip(&buffer[t * lines..]) {
                    *pair = [scale * v[0], sign * scale * v[1]];
                }
            }
        }
    });
    cast(&out, dtype)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{same_for_any_threads, sample, values};
    use super::*;

    #[test]
    fn every_length_is_the_sum_of_its_definition() -> Result<()> {
        for n in (1..=40).chain([64, 67, 96, 101, 128, 37 * 4, 243, 255]) {
            for (before, after) in [(1, 1), (2, 3), (1, 17)] {
                let x = sample(&[before, n, after, 2], DType::F64)?;
                for inverse in [false, true] {
                    let (v, got) = (values(&x), values(&fft(&x, 1, inverse, 0.5)?));
                    for i in (0..before * n * after).step_by(7) {
                        let (b, k, a) = (i / (n * after), i / after % n, i % after);
                        let mut sum = [0.0; 2];
                        for t in 0..n {
                            let at = 2 * ((b * n + t) * after + a);
                            let [c, s] = root(t * k % n, n);
                            let w = [c, if inverse { -s } else { s }];
                            sum = plus(sum, times([v[at], v[at + 1]], w));
                        }
                        for (got, sum) in got[2 * i..2 * i + 2].iter().zip(sum) {
                            assert!((got - 0.5 * sum).abs() < 1e-13 * n as f64, "{n} {i}: {got} {sum}");
                        }
                    }
                }
            }
        }
        same_for_any_threads(|| fft(&sample(&[64, 1000, 2], DType::F64)?, 1, false, 1.0))?;
        Ok(())
    }
}
