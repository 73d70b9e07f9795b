//! Derivatives of Bessel functions, of `erfcx` and of spherical waves: where two terms nearly cancel, a
//! series stands for their difference, as in `src/ops/pointwise/smooth.rs`.

use crate::ops::pointwise::formulas::{bessel_gap, polynomial};
use crate::ops::pointwise::smooth::{FAR_BELOW, mills, wave_slope};
use crate::rule;
use std::f64::consts::{FRAC_2_SQRT_PI, SQRT_2};

/// `J1(x) / x` in `(x / 2)^2`: coefficients `(-1)^k / (2 k! (k + 1)!)`.
const J1_OVER: [f64; 13] = [
    0.5, -0.25, 0.041666666666666664, -0.003472222222222222, 0.00017361111111111112, -5.787037037037037e-06,
    1.3778659611992944e-07, -2.460474930713026e-09, 3.417326292656981e-11, -3.7970292140633116e-13,
    3.451844740057556e-15, -2.615033893982997e-17, 1.676303778194229e-19,
];
/// From here on the scaled functions of the second kind are so close that their difference is a series.
const GAP: f64 = 30.0;

rule! {
    /// The derivative of `J1`, by the series of `J1(x) / x` near 0.
    pub fn bessel_j1_slope(x) {
        let near = x.abs().lt(R::lit(2.0));
        let half = 0.5 * R::select(near, x, R::lit(0.0));
        let far = R::select(near, R::lit(2.0), x);
        x.bessel_j0() - R::select(near, polynomial(half * half, &J1_OVER), far.bessel_j1() / far)
    }

    /// The derivative of `Y1`.
    pub fn bessel_y1_slope(x) { x.bessel_y0() - x.bessel_y1() / x }

    /// The derivative of the modified function of the second kind, of order 1.
    pub fn modified_k1_slope(x) { -(x.modified_bessel_k0() + x.modified_bessel_k1() / x) }

    /// The derivative of `exp(x) K0(x)`.
    pub fn scaled_k0_slope(x) {
        let far = x.gt(R::lit(GAP));
        let gap = bessel_gap(-R::select(far, x, R::lit(GAP)));
        let value = x.scaled_modified_bessel_k0();
        R::select(far, value * gap, value - x.scaled_modified_bessel_k1())
    }

    /// The derivative of `exp(x) K1(x)`.
    pub fn scaled_k1_slope(x) {
        let far = x.gt(R::lit(GAP));
        let outside = R::select(far, x, R::lit(GAP));
        let gap = bessel_gap(-outside);
        let (zeroth, value) = (x.scaled_modified_bessel_k0(), x.scaled_modified_bessel_k1());
        let away = -(zeroth * (gap + (R::lit(1.0) - gap) / outside));
        R::select(far, away, value - zeroth - value / x)
    }

    /// The derivative of `exp(x^2) erfc(x)`, by an asymptotic series far out.
    pub fn erfcx_slope(x) {
        let far = (SQRT_2 * x).gt(R::lit(-FAR_BELOW));
        let outside = R::select(far, SQRT_2 * x, R::lit(-FAR_BELOW));
        R::select(far, FRAC_2_SQRT_PI * mills(-outside), 2.0 * (x * x.erfcx()) - FRAC_2_SQRT_PI)
    }

    /// `sin(x) / x`, 1 at 0 and 0 at infinity.
    pub fn spherical_j0(x) {
        let (zero, infinite) = (x.eq(R::lit(0.0)), x.abs().eq(R::lit(f64::INFINITY)));
        let inside = R::select(zero | infinite, R::lit(1.0), x);
        R::select(zero, R::lit(1.0), R::select(infinite, R::lit(0.0), inside.sin() / inside))
    }

    /// Its derivative.
    pub fn spherical_j0_slope(x) {
        let infinite = x.abs().eq(R::lit(f64::INFINITY));
        let inside = R::select(infinite, R::lit(1.0), x);
        let near = inside.abs().lt(R::lit(1.5));
        let small = R::select(near, inside, R::lit(0.0));
        let far = R::select(near, R::lit(2.0), inside);
        let away = (far.cos() - far.sin() / far) / far;
        R::select(infinite, R::lit(0.0), R::select(near, wave_slope(small), away))
    }
}
