//! Double precision: the functions that the C library lacks, and the reduction of angles that single precision needs.

use std::f64::consts::FRAC_PI_2;

/// The error function.
///
/// `erf(x) = 2/sqrt(pi) * exp(-x*x) * sum of 2^n x^(2n+1) / (2n+1)!!`, a series of positive terms, so nothing cancels;
/// beyond 6 the result rounds to 1.
pub fn erf(x: f64) -> f64 {
    let magnitude = x.abs();
    if magnitude >= 6.0 {
        return 1.0_f64.copysign(x);
    }
    if x.is_nan() {
        return x;
    }
    let square = x * x;
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term.abs() > sum.abs() * 1e-17 {
        n += 1.0;
        term *= 2.0 * square / (2.0 * n + 1.0);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-square).exp() * sum
}

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

/// `(r, n)` with `x = r + n * pi/2`, `|r| <= pi/4` and `n` modulo 4, for `x` that came from an `f32`.
///
/// After M. Payne and R. Hanek (1983): of the product of `x` and `2/pi`, the pieces that are multiples of 4 in whole are
/// never computed, and four pieces from there on leave more than 80 bits behind the binary point. No branches.
#[inline(always)]
pub fn quarter_turns(x: f64) -> (f64, i32) {
    // Adding and subtracting these rounds to a multiple of 4 and of 1.
    const TO_FOUR: f64 = 1.5 * (1_u64 << 54) as f64;
    const TO_ONE: f64 = 1.5 * (1_u64 << 52) as f64;
    let size = x.abs();
    let past = [
        size >= (1_u64 << 52) as f64,
        size >= TWO_79,
        size >= TWO_106,
    ];
    let product = |k: usize| {
        let piece = if past[0] {
            TWO_OVER_PI[k + 1]
        } else {
            TWO_OVER_PI[k]
        };
        let piece = if past[1] { TWO_OVER_PI[k + 2] } else { piece };
        x * if past[2] { TWO_OVER_PI[k + 3] } else { piece }
    };
    let first = product(0);
    let first = first - ((first + TO_FOUR) - TO_FOUR);
    let second = product(1);
    let second = second - ((second + TO_FOUR) - TO_FOUR);
    let small = product(2) + product(3);
    let turns = (first + second + small) + TO_ONE;
    let rest = ((first - (turns - TO_ONE)) + second) + small;
    (rest * FRAC_PI_2, turns.to_bits() as i32)
}

/// `2^79`.
const TWO_79: f64 = (1_u128 << 79) as f64;
/// `2^106`.
const TWO_106: f64 = (1_u128 << 106) as f64;
