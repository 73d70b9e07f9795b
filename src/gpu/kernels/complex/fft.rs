//! Discrete Fourier transforms on the GPU; the counterpart of `src/cpu/fft/mod.rs`.
//!
//! A length that is a power of two takes one launch, beyond 2048 two: columns, then rows. Any other is a
//! convolution of such a length with a chirp (L. I. Bluestein, IEEE Trans. Audio Electroacoust. 18, 1970).
//! Real numbers are transformed as complex ones.

use super::{part, product};
use crate::arguments::complex::{Gate, Half};
use crate::gpu::kernels::copy::{convert, copy_into, from_start};
use crate::gpu::kernels::create::fill;
use crate::gpu::kernels::gather::pad;
use crate::gpu::kernels::map::pointwise;
use crate::gpu::kernels::parts::part_of;
use crate::gpu::kernels::prelude::*;
use crate::gpu::{Constant, constant, upload};
use crate::math::real::{Pointwise, Real};
use std::f64::consts::PI;

/// The logarithm of the most numbers of a line in one launch.
const LONGEST: u32 = 11;

/// Returns the transform along `axis` of pairs (real part, imaginary part) along the last axis, times
/// `scale`; `inverse` negates the exponent.
pub fn fft(x: &Array, axis: usize, inverse: bool, scale: f64) -> Result<Array> {
    let longest = 1 << (2 * LONGEST);
    match x.dim(axis) {
        n if n > longest || (2 * n > longest && !n.is_power_of_two()) => Err(Error::unsupported(format!(
            "fft: on a gpu lines of at most {longest} numbers, or half of that where it is no power of two, \
             are transformed, got {n}; use device='cpu'"
        ))),
        _ if x.numel() == 0 => like(x, DType::F32),
        n if n.is_power_of_two() => power_of_two(x, axis, inverse, scale),
        n => bluestein(x, axis, n, inverse, scale),
    }
}

/// Returns the first half of the transform of real numbers along `axis`, as pairs along a new last axis.
pub fn from_real(x: &Array, axis: usize, half: Half) -> Result<Array> {
    let z = Array::empty(x.shape(), DType::C64, x.device())?;
    copy_into(&part(&z, false)?, x)?;
    fill(&part(&z, true)?, 0.0)?;
    let y = fft(&z.as_real()?, axis, half.inverse, half.scale)?;
    doubled(&part_of(&y, axis, (0, half.n / 2 + 1))?, axis, half)
}

/// Returns the real part of the transform along `axis` of pairs, given its first half.
pub fn to_real(x: &Array, axis: usize, half: Half) -> Result<Array> {
    let (x, shape) = (doubled(x, axis, half)?, x.shape().with(axis, half.n));
    let wide = pad(&x, &shape, &vec![0; x.rank()], &vec![1; x.rank()], 0.0)?;
    let y = complex(&fft(&wide, axis, half.inverse, half.scale)?)?;
    convert(&part(&y, false)?, DType::F32)
}

/// A copy in which, if `half` says so, elements that have a mirror image are doubled.
fn doubled(x: &Array, axis: usize, half: Half) -> Result<Array> {
    let out = convert(x, DType::F32)?;
    let mirrored = half.n.saturating_sub(1) / 2;
    if half.doubled && mirrored > 0 {
        let within = part_of(&out, axis, (1, mirrored))?;
        copy_into(&within, &pointwise("double", [0; 2], [&within], Double)?)?;
    }
    Ok(out)
}

#[derive(Clone, Copy)]
struct Double;

impl Pointwise<1> for Double {
    #[inline(always)]
    fn apply<R: Real>(&self, [x]: [R; 1]) -> R {
        x + x
    }
}

/// Pairs as complex numbers.
fn complex(pairs: &Array) -> Result<Array> {
    pairs.as_complex()?.ok_or_else(|| Error::shape("internal: dense pairs are no complex numbers"))
}

/// A launch: how many lines there are, by three indices, and the steps of these indices and along a line.
struct Pass {
    bits: u32,
    lines: [usize; 3],
    x: [usize; 4],
    out: [usize; 4],
    /// The logarithm of the length of which this is the first of two launches, else 0.
    whole: u32,
    inverse: bool,
    scale: f64,
}

impl Pass {
    fn launch(&self, x: &Array, out: &Array) -> Result<()> {
        let table = twiddles(index_of(x)?, self.whole)?;
        let mut run = Dispatch::new("fft", shader!("fft"), DType::F32);
        run.number("BITS", self.bits as usize).number("WHOLE", self.whole as usize);
        run.flag("INVERSE", self.inverse).flag("ACROSS_X", self.x[3] != 1);
        run.flag("ACROSS_OUT", self.out[3] != 1);
        let lines = self.lines.iter().product::<usize>();
        run.reads(x).reads(&table).writes(out).words([lines, self.lines[1], self.lines[2]]);
        run.words(self.x).words(self.out).floats([self.scale]);
        run.flops((5 * lines * self.bits as usize) << self.bits);
        run.launch(lines.div_ceil(1 << (LONGEST - self.bits)))
    }
}

/// A transform whose length is a power of two.
fn power_of_two(x: &Array, axis: usize, inverse: bool, scale: f64) -> Result<Array> {
    let (x, out, n) = (from_start(x)?, like(x, DType::F32)?, x.dim(axis));
    let inner = x.shape().iter().skip(axis + 1).product::<usize>() / 2;
    let (outer, bits) = (x.numel() / (2 * n * inner), n.ilog2());
    if bits <= LONGEST {
        let steps = [n * inner, 0, 1, inner];
        let pass = Pass { bits, lines: [outer, 1, inner], x: steps, out: steps, whole: 0, inverse, scale };
        return pass.launch(&x, &out).map(|()| out);
    }
    // Number t = t1 b + t2, result k = k1 + a k2: first over t1, for each t2, then over t2, for each k1.
    let (first, second) = (bits.div_ceil(2), bits / 2);
    let (a, b) = (1 << first, 1 << second);
    let (columns, between) = ([n * inner, inner, 1, b * inner], like(&x, DType::F32)?);
    let lines = [outer, b, inner];
    Pass { bits: first, lines, x: columns, out: columns, whole: bits, inverse, scale: 1.0 }
        .launch(&x, &between)?;
    let (rows, turned) = ([n * inner, b * inner, 1, inner], [n * inner, inner, 1, a * inner]);
    let lines = [outer, a, inner];
    Pass { bits: second, lines, x: rows, out: turned, whole: 0, inverse, scale }.launch(&between, &out)?;
    Ok(out)
}

/// A transform of any length: `t k = (t^2 + k^2 - (k - t)^2) / 2`.
fn bluestein(x: &Array, axis: usize, n: usize, inverse: bool, scale: f64) -> Result<Array> {
    let (index, m) = (index_of(x)?, (2 * n - 1).next_power_of_two());
    let x = complex(&from_start(x)?)?;
    // A table along the axis, the same for all lines.
    let times = |x: &Array, table: &Array| {
        let strides: Vec<isize> = (0..x.rank()).map(|i| isize::from(i == axis)).collect();
        let table = complex(table)?.with_layout(x.shape(), &strides, 0)?;
        product(x, &table, inverse, Gate::Open)
    };
    let chirp = chirp(index, n)?;
    let turned = times(&x, &chirp)?;
    let wide = x.shape().with(axis, m);
    let wide = pad(&turned, &wide, &vec![0; x.rank()], &vec![1; x.rank()], 0.0)?.as_real()?;
    let wide = times(&complex(&power_of_two(&wide, axis, false, 1.0)?)?, &filter(index, n, m)?)?.as_real()?;
    let y = complex(&power_of_two(&wide, axis, true, scale / m as f64)?)?;
    times(&part_of(&y, axis, (0, n))?, &chirp)?.as_real()
}

/// `cos` and `sin` of angles in units of `pi`, as pairs on the host.
fn circle(angles: impl Iterator<Item = f64>) -> Result<Array> {
    let pair = |angle: f64| [(PI * angle).cos() as f32, (PI * angle).sin() as f32];
    let pairs: Vec<f32> = angles.flat_map(pair).collect();
    Array::from_slice(&pairs, Shape::new(&[pairs.len() / 2, 2])?)
}

/// The twiddle factors that `shaders/fft.wgsl` reads.
fn twiddles(index: u8, whole: u32) -> Result<Array> {
    let factors = |n: f64| (0..1 << LONGEST).map(move |t| -2.0 * f64::from(t) / n);
    let own = factors(f64::from(1u32 << LONGEST));
    constant(index, Constant::Twiddles(whole), || match whole {
        0 => circle(own),
        _ => circle(own.chain(factors(f64::from(1u32 << whole)))),
    })
}

/// `t^2 / n` modulo 2, exact before it is rounded.
fn squared(t: usize, n: usize) -> f64 {
    ((t as u128 * t as u128) % (2 * n as u128)) as f64 / n as f64
}

/// `exp(-i pi t^2 / n)` for `t < n`.
fn chirp(index: u8, n: usize) -> Result<Array> {
    constant(index, Constant::Chirp(n), || circle((0..n).map(|t| -squared(t, n))))
}

/// The transform of `exp(i pi t^2 / n)` for `-n < t < n`, which repeats after `m` numbers.
fn filter(index: u8, n: usize, m: usize) -> Result<Array> {
    constant(index, Constant::ChirpFilter(n), || {
        let mut wave = circle((0..m).map(|t| squared(t.min(m - t), n)))?;
        wave.slice_mut::<f32>()?[2 * n..2 * (m + 1 - n)].fill(0.0);
        power_of_two(&upload(&wave, index)?, 0, false, 1.0)
    })
}
