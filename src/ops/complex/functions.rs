//! The elementary functions of complex numbers, composed of real ones. Branch cuts, and values at infinities
//! and NaN, are those of C99's annex G and NumPy: on a cut the sign of a zero decides, and a part of the
//! result that is determined despite a NaN keeps its value.

use super::number::{ComplexSym, read, read_real};
use super::product::multiply;
use super::{Lower, undefined};
use crate::math::real::Real;
use crate::ops::pointwise::elementwise::Map;
use crate::ops::pointwise::formulas::magnitude;
use crate::ops::pointwise::sym::{Sym, SymMask};
use crate::ops::pointwise::table::ComplexRule;
use crate::ops::prelude::*;
use std::f64::consts::{FRAC_PI_2, LN_2, LN_10, PI};

impl Lower for Map {
    /// As the row's column for complex numbers says.
    fn lower(&self, x: &[&Tensor]) -> Result<Tensor> {
        match self.fun.columns().complex {
            ComplexRule::Undefined => Err(undefined(self.fun.name(), x)),
            ComplexRule::Parts => {
                let parts = x.iter().map(|x| x.view_as_real()).collect::<Result<SmallVec<[Tensor; 2]>>>()?;
                bind(*self, &parts.iter().collect::<SmallVec<[&Tensor; 2]>>())?.view_as_complex()
            }
            ComplexRule::Product => multiply(x[0], x[x.len() - 1]),
            ComplexRule::Real(f) => read_real(x, f),
            ComplexRule::Fresh(f) if x[0].traced().is_some() => read(&[&x[0].copied()?], |[z]| f(z)),
            ComplexRule::One(f) | ComplexRule::Fresh(f) => read(x, |[z]| f(z)),
            ComplexRule::Two(f) => read(x, |[z, w]| f(z, w)),
        }
    }
}

impl Tensor {
    /// The angle from the positive real axis: of complex numbers in `[-pi, pi]`; of real ones 0 or pi.
    pub fn angle(&self) -> Result<Tensor> {
        if self.dtype().is_complex() {
            return read_real(&[self], ComplexSym::angle);
        }
        let x = self.cast(self.dtype().to_float())?;
        // 0 or pi; NaN for NaN.
        let zero = x.ne(&x)?.select(&x, 0.0)?;
        x.lt(0.0)?.select(PI, &zero)
    }
}

/// `size * cos`; `size` alone where `cos` is NaN and `settled` holds.
fn spread(settled: SymMask, size: Sym, cos: Sym) -> Sym {
    Sym::select(settled & cos.ne(cos), size, size * cos)
}

/// Functions that are others, of this number or of another.
macro_rules! composed {
    ($($name:ident |$z:ident| $value:expr;)*) => {
        impl ComplexSym {
            $(pub fn $name(self) -> ComplexSym {
                let $z = self;
                $value
            })*
        }
    };
}

composed! {
    exp2 |z| (z * LN_2).exp();
    log |z| ComplexSym { re: z.log_size(), im: z.angle() };
    log2 |z| z.log() * (1.0 / LN_2);
    log10 |z| z.log() * (1.0 / LN_10);
    rsqrt |z| z.sqrt().reciprocal();
    sigmoid |z| ((-z).exp() + 1.0).reciprocal();
    silu |z| z * z.sigmoid();
    sin |z| z.times_i().sinh().times_minus_i();
    cos |z| z.times_i().cosh();
    tan |z| z.times_i().tanh().times_minus_i();
    asinh |z| z.times_i().asin().times_minus_i();
    atan |z| z.times_i().atanh().times_minus_i();
}

impl ComplexSym {
    /// Where a part is infinite.
    fn is_infinite(self) -> SymMask {
        let infinite = Sym::lit(f64::INFINITY);
        self.re.abs().eq(infinite) | self.im.abs().eq(infinite)
    }

    /// Where the imaginary part is NaN and the real part 0.
    fn is_lost_beside_zero(self) -> SymMask {
        self.im.ne(self.im) & self.re.eq(Sym::lit(0.0))
    }

    /// The square root whose real part is not negative.
    pub fn sqrt(self) -> ComplexSym {
        let (re, im) = (self.re, self.im);
        let steep = im.abs().eq(Sym::lit(f64::INFINITY));
        // Both terms are nonnegative, so there is no cancellation.
        let main = Sym::select(steep, im.abs(), (0.5 * self.size() + 0.5 * magnitude(re)).sqrt());
        let other = Sym::select(steep | main.eq(Sym::lit(0.0)), im, im / (2.0 * main));
        let (left, side) = (re.lt(Sym::lit(0.0)), Sym::lit(1.0).copysign(im));
        ComplexSym { re: Sym::select(left, other * side, main), im: Sym::select(left, main * side, other) }
    }

    pub fn exp(self) -> ComplexSym {
        let (size, cos, sin) = (self.re.exp(), self.im.cos(), self.im.sin());
        // On the real axis the result is real, even if its size is infinite or NaN.
        let im = sin.times(size);
        let none = im.ne(im) & self.re.eq(Sym::lit(f64::NEG_INFINITY));
        let settled = self.re.abs().eq(Sym::lit(f64::INFINITY));
        ComplexSym { re: spread(settled, size, cos), im: Sym::select(none, size, im) }
    }

    pub fn expm1(self) -> ComplexSym {
        let (half, cos, all) = ((0.5 * self.im).sin(), self.im.cos(), self.exp());
        let near = self.re.expm1() * cos + (0.0 - 2.0 * half * half);
        ComplexSym { re: Sym::select(cos.ne(cos), all.re - 1.0, near), im: all.im }
    }

    /// The logarithm of the absolute value; accurate where that is near 1.
    fn log_size(self) -> Sym {
        let (a, b) = (magnitude(self.re), magnitude(self.im));
        let steep = b.gt(a);
        let (top, low) = (Sym::select(steep, b, a), Sym::select(steep, a, b));
        let near = top.gt(Sym::lit(0.5)) & top.lt(Sym::lit(2.0));
        // The branch not selected must not overflow either, or its derivative would be NaN.
        let (t, l) = (Sym::select(near, top, Sym::lit(1.0)), Sym::select(near, low, Sym::lit(0.0)));
        Sym::select(near, 0.5 * ((t - 1.0) * (t + 1.0) + l * l).log1p(), self.size().log())
    }

    pub fn log1p(self) -> ComplexSym {
        let moved = self + 1.0;
        let small = self.re.abs().lt(Sym::lit(0.5)) & self.im.abs().lt(Sym::lit(0.5));
        let (a, b) = (Sym::select(small, self.re, Sym::lit(0.0)), Sym::select(small, self.im, Sym::lit(0.0)));
        let near = 0.5 * (a * (a + 2.0) + b * b).log1p();
        ComplexSym { re: Sym::select(small, near, moved.log_size()), im: moved.angle() }
    }

    pub fn sinh(self) -> ComplexSym {
        let (cosh, sinh, cos, sin) = (self.re.cosh(), self.re.sinh(), self.im.cos(), self.im.sin());
        // At zero or infinity.
        let settled = self.re.eq(self.re + self.re);
        ComplexSym { re: spread(settled, sinh, cos), im: sin.times(cosh) }
    }

    pub fn cosh(self) -> ComplexSym {
        let (cosh, sinh, cos, sin) = (self.re.cosh(), self.re.sinh(), self.im.cos(), self.im.sin());
        // The result is real on both axes.
        let (im, zero) = (sinh.times(sin), Sym::lit(0.0));
        let real = Sym::select(sinh.lt(zero), -sin, sin);
        let settled = self.re.abs().eq(Sym::lit(f64::INFINITY));
        ComplexSym { re: spread(settled, cosh, cos), im: Sym::select(im.ne(im) & sin.eq(zero), real, im) }
    }

    /// `sin(pi z) / (pi z)`; by its series near 0, so that its derivatives keep their digits there.
    pub fn sinc(self) -> ComplexSym {
        let near = self.re.abs().lt(Sym::lit(0.25)) & self.im.abs().lt(Sym::lit(0.25));
        let zero = Sym::lit(0.0);
        let angle = ComplexSym::select(near, self, ComplexSym { re: zero, im: zero }) * PI;
        let square = angle * angle;
        let mut series = ComplexSym { re: zero, im: zero };
        for k in (1..=10u32).rev() {
            // 1 - z^2 / (2 3) (1 - z^2 / (4 5) (1 - ...))
            let one_less = series + 1.0;
            series = square * one_less * (-1.0 / f64::from(2 * k * (2 * k + 1)));
        }
        let far = ComplexSym::select(near, ComplexSym { re: Sym::lit(1.0), im: zero }, self);
        let turns = ComplexSym { re: far.re - 2.0 * (0.5 * far.re).round(), im: far.im } * PI;
        ComplexSym::select(near, series + 1.0, turns.times_i().sinh().times_minus_i() / (far * PI))
    }

    /// `self * log(shift + other)`; 0 where a factor 0 multiplies the pole of the logarithm.
    pub fn times_log(self, other: ComplexSym, shift: f64) -> ComplexSym {
        let is_zero_times_pole = self.is_zero() & (other + shift).is_zero();
        let safe =
            ComplexSym { re: Sym::select(is_zero_times_pole, Sym::lit(1.0 - shift), other.re), im: other.im };
        self * if shift == 0.0 { safe.log() } else { safe.log1p() }
    }

    /// `log(exp(self) + exp(other))`, whose imaginary part is that of the operand with the larger real part
    /// plus an angle of at most a quarter turn.
    pub fn log_add_exp(self, other: ComplexSym) -> ComplexSym {
        let is_less = self.re.lt(other.re);
        let (top, low) = (ComplexSym::select(is_less, other, self), ComplexSym::select(is_less, self, other));
        // Two infinities of one sign have no difference.
        let equal = top.re.eq(low.re) & top.re.abs().eq(Sym::lit(f64::INFINITY));
        let re = Sym::select(equal, Sym::lit(0.0), low.re - top.re);
        top + ComplexSym { re, im: low.im - top.im }.exp().log1p()
    }

    /// Numerator and denominator of `sinh / cosh`, both over `cosh(re)^2`.
    pub fn tanh(self) -> ComplexSym {
        // At an infinite real part the angle, even an infinite one, does not matter.
        let far = self.re.abs().eq(Sym::lit(f64::INFINITY));
        let angle = Sym::select(far, Sym::lit(0.0).copysign(self.im), self.im);
        let (sin, cos, tanh) = (angle.sin(), angle.cos(), self.re.tanh());
        let flat = 1.0 / self.re.cosh();
        let scale = cos * cos + tanh * tanh * (sin * sin);
        ComplexSym { re: tanh.over(scale), im: (sin * cos).times(flat * flat / scale) }
    }

    /// Kahan, "Branch cuts for complex elementary functions", 1987; as are the next two.
    pub fn asin(self) -> ComplexSym {
        let (left, right) = (self.one_minus().sqrt(), (self + 1.0).sqrt());
        let near = ComplexSym { re: self.re.atan2((left * right).re), im: (left.conj() * right).im.asinh() };
        let far =
            ComplexSym { re: self.re.atan2(self.im.abs()), im: Sym::lit(f64::INFINITY).copysign(self.im) };
        let out = ComplexSym::select(self.is_infinite(), far, near);
        ComplexSym { re: Sym::select(self.is_lost_beside_zero(), self.re, out.re), ..out }
    }

    pub fn acos(self) -> ComplexSym {
        let (left, right) = (self.one_minus().sqrt(), (self + 1.0).sqrt());
        let near = ComplexSym { re: 2.0 * left.re.atan2(right.re), im: (right.conj() * left).im.asinh() };
        let far =
            ComplexSym { re: self.im.abs().atan2(self.re), im: -Sym::lit(f64::INFINITY).copysign(self.im) };
        let out = ComplexSym::select(self.is_infinite(), far, near);
        ComplexSym { re: Sym::select(self.is_lost_beside_zero(), Sym::lit(FRAC_PI_2), out.re), ..out }
    }

    pub fn acosh(self) -> ComplexSym {
        let (left, right) = ((self + -1.0).sqrt(), (self + 1.0).sqrt());
        let near = ComplexSym { re: (left.conj() * right).re.asinh(), im: 2.0 * left.im.atan2(right.re) };
        let far = ComplexSym { re: Sym::lit(f64::INFINITY), im: self.angle() };
        let out = ComplexSym::select(self.is_infinite(), far, near);
        ComplexSym { im: Sym::select(self.is_lost_beside_zero(), Sym::lit(FRAC_PI_2), out.im), ..out }
    }

    pub fn atanh(self) -> ComplexSym {
        let (a, b) = (self.re, self.im);
        // Uses the absolute value of `a` (odd in `a`): at the left, the log of a difference is poor near -1.
        let left = a.lt(Sym::lit(0.0));
        let size = Sym::select(left, -a, a);
        let side = 1.0 - size;
        let re = 0.25 * (4.0 * size / (side * side + b * b)).log1p();
        let im = 0.5 * (2.0 * b).atan2(side * (1.0 + size) - b * b);
        let near = ComplexSym { re: Sym::select(left, -re, re), im };
        let turn = Sym::select(b.ne(b), b, Sym::lit(FRAC_PI_2).copysign(b));
        let far = ComplexSym { re: Sym::lit(0.0).copysign(a), im: turn };
        let out = ComplexSym::select(self.is_infinite(), far, near);
        ComplexSym { re: Sym::select(self.is_lost_beside_zero(), a, out.re), ..out }
    }

    /// `exp(w log z)`. Anything to the power 0 is 1; 0 to a power with a positive real part is 0.
    pub fn pow(self, exponent: ComplexSym) -> ComplexSym {
        let at_zero = self.is_zero();
        let base = ComplexSym { re: Sym::select(at_zero, Sym::lit(1.0), self.re), im: self.im };
        let power = (exponent * base.log()).exp();
        let (zero, nan) = (exponent.re * 0.0, Sym::lit(f64::NAN));
        let one = ComplexSym { re: Sym::lit(1.0), im: Sym::lit(0.0) };
        // To a power with a negative real part it is infinite in no direction; to an imaginary one, none.
        let is_pole = exponent.re.le(Sym::lit(0.0));
        let size = Sym::select(exponent.re.lt(Sym::lit(0.0)), Sym::lit(f64::INFINITY), nan);
        let limit = ComplexSym { re: Sym::select(is_pole, size, zero), im: Sym::select(is_pole, nan, zero) };
        let limit = ComplexSym::select(exponent.is_zero(), one, limit);
        let is_nan = self.re.ne(self.re) | self.im.ne(self.im);
        let power = ComplexSym::select(is_nan & exponent.is_zero(), one, power);
        ComplexSym::select(at_zero, limit, power)
    }
}
