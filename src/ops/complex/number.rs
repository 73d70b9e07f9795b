//! Complex numbers with symbolic parts, and their arithmetic.

use crate::array::complex::Complex;
use crate::error::Result;
use crate::math::real::Real;
use crate::ops::pointwise::sym::{Sym, record};
use crate::tensor::Tensor;

/// A complex number in a formula.
pub type ComplexSym = Complex<Sym>;

/// Applies a formula of complex numbers to the tensors `x`.
pub fn read<const N: usize>(
    x: &[&Tensor], formula: impl FnOnce([ComplexSym; N]) -> ComplexSym,
) -> Result<Tensor> {
    let [re, im] = record(&parts(x)?, |all| {
        let out = formula(std::array::from_fn(|i| ComplexSym { re: all[2 * i], im: all[2 * i + 1] }));
        [out.re, out.im]
    })?;
    super::join(&re, &im)
}

/// Applies a formula with a real result.
pub fn read_real(x: &[&Tensor], formula: impl FnOnce(ComplexSym) -> Sym) -> Result<Tensor> {
    let [out] = record(&parts(x)?, |all| [formula(ComplexSym { re: all[0], im: all[1] })])?;
    Ok(out)
}

fn parts(x: &[&Tensor]) -> Result<Vec<Tensor>> {
    let mut all = Vec::with_capacity(2 * x.len());
    for x in x {
        all.push(x.real()?);
        all.push(x.imag()?);
    }
    Ok(all)
}

/// The operators that have no branches.
macro_rules! operators {
    ($($trait:ident $method:ident $other:ty: |$z:ident, $w:ident| $re:expr, $im:expr;)*) => {$(
        impl std::ops::$trait<$other> for ComplexSym {
            type Output = ComplexSym;
            fn $method(self, other: $other) -> ComplexSym {
                let ($z, $w) = (self, other);
                ComplexSym { re: $re, im: $im }
            }
        }
    )*};
}

operators! {
    Add add ComplexSym: |z, w| z.re + w.re, z.im + w.im;
    Sub sub ComplexSym: |z, w| z.re - w.re, z.im - w.im;
    Mul mul ComplexSym: |z, w| z.re * w.re - z.im * w.im, z.re * w.im + z.im * w.re;
    Add add f64: |z, w| z.re + w, z.im;
    Mul mul f64: |z, w| z.re * w, z.im * w;
}

impl std::ops::Neg for ComplexSym {
    type Output = ComplexSym;
    fn neg(self) -> ComplexSym {
        ComplexSym { re: -self.re, im: -self.im }
    }
}

impl std::ops::Div for ComplexSym {
    type Output = ComplexSym;
    /// Avoids overflow of squares: Smith, "Algorithm 116: complex division", 1962.
    fn div(self, other: ComplexSym) -> ComplexSym {
        let Scaled { wide, ratio, scale } = other.scaled();
        let re = Sym::select(wide, self.re + self.im * ratio, self.re * ratio + self.im);
        let im = Sym::select(wide, self.im - self.re * ratio, self.im * ratio - self.re);
        ComplexSym { re: re / scale, im: im / scale }
    }
}

/// A divisor, scaled by its larger part.
struct Scaled {
    /// Whether the real part is the larger.
    wide: <Sym as Real>::Mask,
    /// The smaller part over the larger.
    ratio: Sym,
    /// The squared absolute value over the larger part.
    scale: Sym,
}

impl ComplexSym {
    fn scaled(self) -> Scaled {
        let wide = self.re.abs().ge(self.im.abs());
        let (top, low) = (Sym::select(wide, self.re, self.im), Sym::select(wide, self.im, self.re));
        let ratio = Sym::select(top.eq(Sym::lit(0.0)), Sym::lit(0.0), low / top);
        Scaled { wide, ratio, scale: top + low * ratio }
    }

    /// `1 / z`.
    pub fn reciprocal(self) -> ComplexSym {
        let Scaled { wide, ratio, scale } = self.scaled();
        ComplexSym {
            re: Sym::select(wide, Sym::lit(1.0), ratio) / scale,
            im: Sym::select(wide, -ratio, Sym::lit(-1.0)) / scale,
        }
    }

    /// The conjugate.
    pub fn conj(self) -> ComplexSym {
        ComplexSym { re: self.re, im: -self.im }
    }

    /// `i z`.
    pub fn times_i(self) -> ComplexSym {
        ComplexSym { re: -self.im, im: self.re }
    }

    /// `-i z`.
    pub fn times_minus_i(self) -> ComplexSym {
        ComplexSym { re: self.im, im: -self.re }
    }

    /// `1 - z`; also negates a zero imaginary part.
    pub fn one_minus(self) -> ComplexSym {
        ComplexSym { re: 1.0 - self.re, im: -self.im }
    }

    /// The absolute value; its gradient at 0 is 0.
    pub fn size(self) -> Sym {
        self.re.hypot(self.im)
    }

    /// The angle from the positive real axis, in `[-pi, pi]`; its gradient at 0 is 0.
    pub fn angle(self) -> Sym {
        self.im.atan2(self.re)
    }

    /// `z / |z|`, and 0 at 0, where its gradient is 0 too.
    pub fn sign(self) -> ComplexSym {
        let size = self.size();
        let at_zero = size.eq(Sym::lit(0.0));
        let part = |x: Sym| Sym::select(at_zero, Sym::lit(0.0), x / size);
        ComplexSym { re: part(self.re), im: part(self.im) }
    }

    /// `yes` where `mask` holds, `no` elsewhere.
    pub fn select(mask: <Sym as Real>::Mask, yes: ComplexSym, no: ComplexSym) -> ComplexSym {
        ComplexSym { re: Sym::select(mask, yes.re, no.re), im: Sym::select(mask, yes.im, no.im) }
    }

    /// Where both parts are 0.
    pub fn is_zero(self) -> <Sym as Real>::Mask {
        self.re.eq(Sym::lit(0.0)) & self.im.eq(Sym::lit(0.0))
    }
}
