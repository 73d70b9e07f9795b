//! Vector mathematics written once for CPU lanes and WGSL.

/// The error function of an `f64`.
///
/// `erf(x) = 2/sqrt(pi) * exp(-x*x) * sum of 2^n x^(2n+1) / (2n+1)!!`, a series of positive terms, so nothing cancels;
/// beyond 6 the result rounds to 1.
pub fn erf64(x: f64) -> f64 {
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
