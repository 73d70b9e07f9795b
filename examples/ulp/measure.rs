//! Errors in units in the last place; shared by the table (`main.rs`) and the test
//! (`tests/math_ulp.rs`).

use std::fmt;
use wengert::cpu::lane::{F32, F32Fma, F64};
use wengert::real::Real;

/// A function of one number and its reference.
pub struct Function {
    /// Its name in `Real`.
    pub name: &'static str,
    /// With products and sums rounded separately.
    pub separate: fn(f32) -> f32,
    /// With fused multiply-adds.
    pub fused: fn(f32) -> f32,
    /// In double precision.
    pub reference: fn(f64) -> f64,
}

/// The list of functions, from their names.
macro_rules! functions {
    ($($name:ident),*) => {
        [$(Function {
            name: stringify!($name),
            separate: |x| F32(x).$name().0,
            fused: |x| F32Fma(x).$name().0,
            reference: |x| F64(x).$name().0,
        }),*]
    };
}

/// All functions of one number.
pub const FUNCTIONS: [Function; 10] = functions!(exp, expm1, log, log1p, sin, cos, tanh, erf, floor, round);

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
        write!(f, "{ulp:.3} ULP at ({x:e}, {y:e}): {got:e}, exactly {want:e}")
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

/// The largest error over every `step`-th of all bit patterns.
pub fn worst(run: fn(f32) -> f32, reference: fn(f64) -> f64, step: usize) -> Worst {
    let mut found = Worst::default();
    for bits in (0..=u32::MAX).step_by(step) {
        let x = f32::from_bits(bits);
        found.add((x, 0.0), run(x), reference(f64::from(x)));
    }
    found
}

/// `x` to the power `y` by both lanes.
fn both(x: f32, y: f32) -> [f32; 2] {
    [F32(x).pow(F32(y)).0, F32Fma(x).pow(F32Fma(y)).0]
}

/// The largest errors of `pow` over `count` pairs whose powers spread over all floats: any base,
/// bases between 1/2 and 2, bases near 1.
pub fn powers(count: usize) -> [Worst; 2] {
    let mut found: [Worst; 2] = Default::default();
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
        let want = f64::from(x).powf(f64::from(y));
        for (found, got) in found.iter_mut().zip(both(x, y)) {
            found.add((x, y), got, want);
        }
    }
    found
}

/// `(x, y, pow(x, y), C's pow)` for every pair of remarkable numbers.
pub fn special_powers() -> Vec<(f32, f32, f32, f32)> {
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
    let mut pairs = Vec::new();
    for &x in &numbers {
        for &y in &numbers {
            let want = f64::from(x).powf(f64::from(y)) as f32;
            pairs.extend(both(x, y).map(|got| (x, y, got, want)));
        }
    }
    pairs
}
