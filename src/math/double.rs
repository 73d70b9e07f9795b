//! Double precision: the functions that the C library lacks, and the reduction of angles that
//! single precision needs.

use std::f64::consts::FRAC_PI_2;

/// The error function: an odd polynomial near 0, `1 - exp(polynomial)` elsewhere.
pub fn erf(x: f64) -> f64 {
    let size = x.abs();
    if size < 0.85 {
        return x + x * polynomial(size * size, &ERF);
    }
    let logarithm = if size < 2.25 {
        polynomial(size - 1.5, &ERF_MIDDLE)
    } else {
        // Beyond 6 the result rounds to 1; NaN stays itself.
        polynomial(if size > 6.0 { 6.0 } else { size } - 3.0, &ERF_TAIL)
    };
    (1.0 - logarithm.exp()).copysign(x)
}

/// The polynomial with these coefficients, lowest power first.
fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

/// `(erf(x) - x) / x` in `x^2`, `|x| <= 0.85`.
const ERF: [f64; 12] = [
    0.1283791670955126,
    -0.3761263890318374,
    0.11283791670954658,
    -0.02686617064501153,
    0.005223977623853908,
    -0.0008548326898857166,
    0.0001205532677093735,
    -1.4925445950265615e-05,
    1.6457608094406058e-06,
    -1.6299793978798798e-07,
    1.4185510826029903e-08,
    -8.826996532297013e-10,
];
/// `log(1 - erf(x))` in `x - 1.5`, `0.84 <= x <= 2.26`.
const ERF_MIDDLE: [f64; 17] = [
    -3.3844920895515527,
    -3.5088008017795276,
    -0.892640330615037,
    -0.025824140633644656,
    0.006006746386453582,
    -0.0012572166868156393,
    0.00021596330486785986,
    -2.2473688218286623e-05,
    -2.646834631457231e-06,
    2.37084175741253e-06,
    -8.187608575299358e-07,
    1.925795351839131e-07,
    -2.7870691187683015e-08,
    -1.0154253120715424e-09,
    2.4001278031670287e-09,
    -1.0605427769288944e-09,
    2.5920838529642355e-10,
];
/// `log(1 - erf(x))` in `x - 3`, `2.24 <= x <= 6`.
const ERF_TAIL: [f64; 13] = [
    -10.720363041981118,
    -6.303753689003068,
    -0.9573942187996036,
    -0.007411891796637655,
    0.0013533104036524642,
    -0.00024569218128401015,
    4.3081955498416706e-05,
    -7.115119634725845e-06,
    1.0691567493605703e-06,
    -1.3692224045170235e-07,
    1.1545803529301331e-08,
    1.2643251311592108e-09,
    -6.439917838954831e-10,
];

/// `2^-k`.
const fn power(k: u64) -> f64 {
    f64::from_bits((1023 - k) << 52)
}

/// `2/pi` in pieces of 27 bits, most significant first: their products with a 24-bit mantissa are exact.
const TWO_OVER_PI: [f64; 7] = [
    85445659.0 * power(27),
    60002565.0 * power(54),
    39057486.0 * power(81),
    92086099.0 * power(108),
    40820845.0 * power(135),
    92952164.0 * power(162),
    126382600.0 * power(189),
];

/// Piece `K`, `K + 1`, `K + 2` or `K + 3`, by the thresholds that an angle is past.
#[inline(always)]
fn piece<const K: usize>(past: [bool; 3]) -> f64 {
    // Constants of their own: a table would be read by slow gather instructions.
    let near = if past[0] { const { TWO_OVER_PI[K + 1] } } else { const { TWO_OVER_PI[K] } };
    let near = if past[1] { const { TWO_OVER_PI[K + 2] } } else { near };
    if past[2] { const { TWO_OVER_PI[K + 3] } } else { near }
}

/// `(r, n)` with `x = r + n * pi/2`, `|r| <= pi/4` and `n` modulo 4, for `x` that came from an `f32`.
///
/// After M. Payne and R. Hanek (1983): of the product of `x` and `2/pi`, the pieces that are
/// multiples of 4 in whole are never computed, and four pieces from there on leave more than 80
/// bits behind the binary point. No branches.
#[inline(always)]
pub fn quarter_turns(x: f64) -> (f64, i32) {
    // Adding and subtracting these rounds to a multiple of 4 and of 1.
    const TO_FOUR: f64 = 1.5 * (1_u64 << 54) as f64;
    const TO_ONE: f64 = 1.5 * (1_u64 << 52) as f64;
    let size = x.abs();
    let past = [size >= (1_u64 << 52) as f64, size >= TWO_79, size >= TWO_106];
    let first = x * piece::<0>(past);
    let first = first - ((first + TO_FOUR) - TO_FOUR);
    let second = x * piece::<1>(past);
    let second = second - ((second + TO_FOUR) - TO_FOUR);
    let small = x * piece::<2>(past) + x * piece::<3>(past);
    let turns = (first + second + small) + TO_ONE;
    let rest = ((first - (turns - TO_ONE)) + second) + small;
    (rest * FRAC_PI_2, turns.to_bits() as i32)
}

/// `2^79`.
const TWO_79: f64 = (1_u128 << 79) as f64;
/// `2^106`.
const TWO_106: f64 = (1_u128 << 106) as f64;
