//! Errors in units in the last place; shared by the table (`main.rs`) and the test
//! (`tests/math_ulp.rs`).

use std::fmt;
use wengert::internals::cpu::vector::{self, Number};
use wengert::internals::cpu::{self as isa, Isa};
use wengert::internals::math::Pointwise;
use wengert::internals::ops::Binary;
use wengert::internals::ops::{Fun, Visit};
use wengert::internals::ops::{Parametric, Unary};

/// Runs a rule over slices.
struct Run<'a, T> {
    isa: Isa,
    x: &'a [&'a [T]],
    out: &'a mut [T],
}

impl<T: Number> Visit for Run<'_, T> {
    type Out = ();
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) {
        assert!(self.x.len() == N && self.x.iter().all(|x| x.len() == self.out.len()));
        let x = std::array::from_fn(|k| self.x[k].as_ptr());
        // SAFETY: all slices have the length of the result.
        unsafe { vector::map_on(self.isa, rule, x, self.out.as_mut_ptr(), self.out.len()) }
    }
}

/// The values of a row of the tables, computed with the given instructions.
pub fn values<T: Number>(row: Fun, isa: Isa, x: &[&[T]]) -> Vec<T> {
    let mut out = x[0].to_vec();
    row.value(ATTRIBUTES, Run { isa, x, out: &mut out });
    out
}

/// What the rows with attributes get: softplus with slope 1, linear from 20 on.
const ATTRIBUTES: [f64; 2] = [1.0, 20.0];

/// Every function of one number whose values are rounded.
pub fn functions() -> impl Iterator<Item = Fun> {
    Unary::ALL.iter().map(|&f| Fun::Unary(f)).chain([Fun::Parametric(Parametric::Softplus)])
}

/// The largest error found and where.
#[derive(Default)]
pub struct Worst {
    /// Units in the last place; infinite where a NaN, an infinity or the sign of a zero is wrong.
    pub ulp: f64,
    at: (f32, f32),
    got: f32,
    want: f64,
}

impl fmt::Display for Worst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Worst { ulp, at: (x, y), got, want } = self;
        write!(f, "{ulp:.2} | ({x:e}, {y:e}): {got:e}, exactly {want:e} |")
    }
}

impl Worst {
    /// Take one more result into account.
    fn add(&mut self, at: (f32, f32), got: f32, want: f64) {
        let ulp = error(got, want);
        if ulp > self.ulp {
            *self = Worst { ulp, at, got, want };
        }
    }
}

/// The distance between `got` and `want` in units in the last place of an `f32` of that size.
fn error(got: f32, want: f64) -> f64 {
    let nearest = want as f32;
    if want.is_nan() || got.is_nan() {
        return if want.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if nearest.is_infinite() || got.is_infinite() || want == 0.0 {
        return if got.to_bits() == nearest.to_bits() { 0.0 } else { f64::INFINITY };
    }
    let exponent = ((want.abs().to_bits() >> 52) as i32 - 1023).max(-126);
    (f64::from(got) - want).abs() / f64::powi(2.0, exponent - 23)
}

/// The bits of floats from `from` on, every `step`-th, until `count` or until there are no more.
fn floats(from: u64, step: u64, count: u64) -> Vec<f32> {
    (0..count)
        .map(|i| from + i * step)
        .take_while(|&b| b < 1 << 32)
        .map(|b| f32::from_bits(b as u32))
        .collect()
}

/// The largest error of a row over every `step`-th of all bit patterns, against the same row in double
/// precision.
pub fn worst(row: Fun, isa: Isa, step: u64) -> Worst {
    const PIECE: u64 = 1 << 16;
    let mut found = Worst::default();
    for start in (0..1 << 32).step_by((PIECE * step) as usize) {
        let x = floats(start, step, PIECE);
        let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
        let got = values(row, isa, &[&x]);
        let want = values(row, isa::isa(), &[&wide]);
        for ((&x, got), want) in x.iter().zip(got).zip(want) {
            found.add((x, 0.0), got, want);
        }
    }
    found
}

/// The largest error of `pow` over `count` pairs whose powers spread over all floats: any base, bases between
/// 1/2 and 2, bases near 1.
pub fn powers(isa: Isa, count: usize) -> Worst {
    let mut found = Worst::default();
    let (mut bases, mut exponents) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut state = 1_u64;
    let mut uniform = move || {
        // Knuth's linear congruential generator; its upper half is good enough for choosing samples.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    for i in 0..count {
        let (bits, unit) = (uniform(), f64::from(uniform()) / 4_294_967_296.0);
        let x = match i % 3 {
            0 => f32::from_bits(bits & 0x7fff_ffff),
            1 => (0.5 + unit * 1.5) as f32,
            _ => (1.0 + (unit - 0.5) * 0.01) as f32,
        };
        let y = ((f64::from(uniform()) / 4_294_967_296.0 - 0.5) * 300.0 / f64::from(x).log2()) as f32;
        bases.push(x);
        exponents.push(y);
    }
    let got = values(Fun::Binary(Binary::Pow), isa, &[&bases, &exponents]);
    for ((&x, &y), got) in bases.iter().zip(&exponents).zip(got) {
        found.add((x, y), got, f64::from(x).powf(f64::from(y)));
    }
    found
}

/// `(x, y, pow(x, y), C's pow)` for every pair of remarkable numbers.
pub fn special_powers(isa: Isa) -> Vec<(f32, f32, f32, f32)> {
    let positive = [
        0.0,
        1e-45,
        1.2e-38,
        0.5,
        0.999_999_94,
        1.0,
        1.000_000_1,
        2.0,
        3.0,
        127.0,
        128.0,
        149.0,
        150.0,
        151.0,
        8_388_607.5,
        16_777_215.0,
        16_777_216.0,
        1e10,
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
    ];
    let numbers: Vec<f32> = positive.iter().flat_map(|&x| [x, -x]).collect();
    let x: Vec<f32> = numbers.iter().flat_map(|&x| numbers.iter().map(move |_| x)).collect();
    let y: Vec<f32> = numbers.iter().flat_map(|_| numbers.iter().copied()).collect();
    let got = values(Fun::Binary(Binary::Pow), isa, &[&x, &y]);
    let want = |x: f32, y: f32| f64::from(x).powf(f64::from(y)) as f32;
    x.iter().zip(&y).zip(got).map(|((&x, &y), got)| (x, y, got, want(x, y))).collect()
}
