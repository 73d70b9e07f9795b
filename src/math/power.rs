//! `pow` on CPUs, in both precisions. The logarithm is a sum of two floats; in double precision it has about
//! 65 good bits: for the largest powers, ten of them are before the binary point.
//!
//! GPUs use `src/math/pow.rs`, which needs neither tables nor fused multiply-adds.

use super::pow::edges;
use super::special::Precision;
use super::{INFINITY, Lane, normal, polynomial, split};
use crate::math::wide::Wide;

/// The constants and polynomials of a precision.
pub trait Powers: Precision + Copy + 'static {
    /// Centres `c` of 16 parts of the mantissas from `sqrt(1/2)` to `sqrt(2)`; 1 for the part with 1 inside.
    const CENTRE: &'static [Self; 16];
    /// `log2(c)`, rounded to so few bits that adding an exponent is exact.
    const LOG2_HIGH: &'static [Self; 16];
    /// `log2(c) - LOG2_HIGH`.
    const LOG2_LOW: &'static [Self; 16];
    /// Beyond this exponent a power of 2 is infinite, below its negative 0.
    const END: f64;
    /// Up to here, the rounding error of the product of a logarithm and the exponent stays below 1/8.
    const LARGE: f64;
    /// From here on every power but that of 1 is 0 or infinite.
    const HUGE: f64;
    /// `2 / log(2) * atanh(s + s_low)` as a sum.
    fn log_ratio<L: Lane>(s: L, s_low: L) -> (L, L);
    /// `2^f` for `|f| <= 1/2`.
    fn exp2_near<L: Lane>(f: L) -> L;
}

impl Powers for f32 {
    const CENTRE: &'static [f32; 16] = &[
        0.72265625, 0.75390625, 0.78515625, 0.81640625, 0.84765625, 0.87890625, 0.91015625, 0.94140625,
        0.97265625, 1.0, 1.0703125, 1.1328125, 1.1953125, 1.2578125, 1.3203125, 1.3828125,
    ];
    // Multiples of `2^-14`.
    const LOG2_HIGH: &'static [f32; 16] = &[
        -0.46862793, -0.40753174, -0.348938, -0.29266357, -0.23846436, -0.18621826, -0.13580322, -0.08709717,
        -0.039978027, 0.0, 0.09802246, 0.17993164, 0.25738525, 0.33093262, 0.4008789, 0.46759033,
    ];
    const LOG2_LOW: &'static [f32; 16] = &[
        9.390204e-06, -1.1224451e-05, -1.032054e-05, 2.27063e-05, 1.5587913e-05, -5.470642e-07,
        -1.063269e-05, -1.3495801e-05, -2.0040588e-05, 0.0, 9.622023e-06, -2.255061e-05, 2.5887864e-06,
        -1.5739073e-05, 5.300322e-07, 1.5218052e-05,
    ];
    const END: f64 = 160.0;
    const LARGE: f64 = 8192.0;
    const HUGE: f64 = 4_294_967_296.0;

    #[inline(always)]
    fn log_ratio<L: Lane>(s: L, s_low: L) -> (L, L) {
        /// `2 / log(2)` as a sum.
        const TWO_OVER_LN2: [f64; 2] = [2.885_390_043_258_667, 3.851_925_98e-8];
        /// `(atanh(s) - s) / s^3` in `s^2` for `|s| <= 0.01923`.
        const LOG_RATIO: [f64; 2] = [0.3333333432674408, 0.19999931752681732];
        let square = s * s;
        let rest = (s * square).mul_add(polynomial(square, &LOG_RATIO), s_low);
        let main = s * TWO_OVER_LN2[0];
        let lost = s.mul_add(L::lit(TWO_OVER_LN2[0]), -main);
        (main, s.mul_add(L::lit(TWO_OVER_LN2[1]), rest.mul_add(L::lit(TWO_OVER_LN2[0]), lost)))
    }

    #[inline(always)]
    fn exp2_near<L: Lane>(f: L) -> L {
        /// `2^f` for `|f| <= 1/2`.
        const EXP2: [f64; 7] = [
            1.0, 0.6931471824645996, 0.24022650718688965, 0.055503275245428085, 0.009618003852665424,
            0.0013400319730862975, 0.00015476334374397993,
        ];
        polynomial(f, &EXP2)
    }
}

impl Powers for f64 {
    const CENTRE: &'static [f64; 16] = &[
        0.72265625, 0.75390625, 0.78515625, 0.81640625, 0.84765625, 0.87890625, 0.91015625, 0.94140625,
        0.97265625, 1.0, 1.0703125, 1.1328125, 1.1953125, 1.2578125, 1.3203125, 1.3828125,
    ];
    // Multiples of `2^-30`.
    const LOG2_HIGH: &'static [f64; 16] = &[
        -0.46861853916198015, -0.40754296258091927, -0.3489483091980219, -0.2926408676430583,
        -0.23844876792281866, -0.1862188084051013, -0.13581385556608438, -0.08711066376417875,
        -0.039998067542910576, 0.0, 0.09803208336234093, 0.17990908958017826, 0.25738784298300743,
        0.330916877835989, 0.40087943617254496, 0.4676055498421192,
    ];
    const LOG2_LOW: &'static [f64; 16] = &[
        -3.2170771814174945e-10, -1.5100031461562512e-10, 3.769505031159261e-10, -2.76058949988807e-10,
        3.672979769841769e-10, -3.7786164206599457e-10, 2.2036462193666857e-10, -5.859628117097128e-12,
        -3.8900848631993423e-10, 0.0, -4.018142113283718e-10, 4.347562077868701e-10, -2.9035565986872956e-10,
        2.7862798132303165e-10, 1.0963936458634991e-10, 2.4087822334220055e-10,
    ];
    const END: f64 = 1100.0;
    // `y` times the lower half of a logarithm, which is below `2^-31`, counts, too.
    const LARGE: f64 = (1_u64 << 28) as f64;
    const HUGE: f64 = (1_u128 << 64) as f64;

    #[inline(always)]
    fn log_ratio<L: Lane>(s: L, s_low: L) -> (L, L) {
        /// `2 / log(2)` as a sum.
        const TWO_OVER_LN2: [f64; 2] = [2.885_390_081_777_926_8, 4.071_054_748_186_206_6e-17];
        /// `(atanh(s) - s) / s^3` in `s^2` for `|s| <= 0.01923`.
        const LOG_RATIO: [f64; 4] =
            [0.3333333333333333, 0.2000000000014739, 0.14285712451187418, 0.11118417587791596];
        let square = s * s;
        let term = (s * square) * polynomial(square, &LOG_RATIO);
        let atanh = s + term;
        let atanh_low = ((s - atanh) + term) + s_low;
        let main = atanh * TWO_OVER_LN2[0];
        let lost = atanh.mul_add(L::lit(TWO_OVER_LN2[0]), -main);
        let low = atanh_low.mul_add(L::lit(TWO_OVER_LN2[0]), lost);
        (main, atanh.mul_add(L::lit(TWO_OVER_LN2[1]), low))
    }

    #[inline(always)]
    fn exp2_near<L: Lane>(f: L) -> L {
        /// `2^f` for `|f| <= 1/2`.
        #[allow(clippy::approx_constant, reason = "the second coefficient is log(2)")]
        const EXP2: [f64; 12] = [
            1.0, 0.6931471805599453, 0.24022650695910133, 0.05550410866482174, 0.009618129107593229,
            0.0013333558146379264, 0.00015403530458224843, 1.5252733867368208e-05, 1.3215434738223881e-06,
            1.0178046517766133e-07, 7.0738746344446576e-09, 4.45738062235615e-10,
        ];
        polynomial(f, &EXP2)
    }
}

/// `log2(m) + e` as `(high, low)` for the parts of a normal number.
///
/// With the centre `c` next to `m`: `log2(m) = log2(c) + 2/log(2) * atanh(s)` for `s = (m - c)/(m + c)`. From
/// the third power of `s` on, the precision itself suffices.
#[inline(always)]
fn log2_pair<P: Powers, L: Wide<Number = P>>(e: L, m: L) -> (L, L) {
    let part = (m.bits() - L::int(P::ROOT_HALF)) >> (L::MANTISSA - 4);
    let centre = L::lookup(part, P::CENTRE);
    let start = e + L::lookup(part, P::LOG2_HIGH);
    let (difference, sum) = (m - centre, m + centre);
    let sum_low = m - (sum - centre);
    let inverse = L::lit(1.0) / sum;
    let s = difference * inverse;
    let s_low = difference.minus_product(s, sum).minus_product(s, sum_low) * inverse;
    let (main, main_low) = P::log_ratio(s, s_low);
    let high = start + main;
    (high, ((start - high) + main) + (main_low + L::lookup(part, P::LOG2_LOW)))
}

/// `2^((high + low) * y)`.
#[inline(always)]
fn exp2_of_product<P: Powers, L: Wide<Number = P>>((high, low): (L, L), y: L, large: bool) -> L {
    let product = high * y;
    let rest = low.mul_add(y, high.mul_add(y, -product));
    let held = product.clamp(-P::END, P::END);
    // The rounding error of the product is only small as long as the product is.
    let rest = if large { L::select(held.eq(product), rest, L::lit(0.0)) } else { rest };
    let (turns, n) = held.nearest_int();
    P::exp2_near((held - turns) + rest).scale(turns, n)
}

/// `x` to the power `y`, as C's `pow`.
#[inline(always)]
pub fn pow<P: Powers, L: Wide<Number = P>>(x: L, y: L) -> L {
    let (e, m) = split::<P, L>(x);
    let value = exp2_of_product(log2_pair(L::from_int(e), m), y, false);
    let positive = x.ge(L::lit(P::SMALLEST)) & x.lt(x.special(INFINITY));
    let ordinary = positive & y.abs().lt(L::lit(P::LARGE));
    if !L::may_hold(!ordinary) {
        return value;
    }
    let (size, shift) = normal::<P, L>(x.abs());
    let (e, m) = split::<P, L>(size);
    let value = exp2_of_product(log2_pair(L::from_int(e) - shift, m), y.clamp(-P::HUGE, P::HUGE), true);
    edges(x, y, value)
}
