//! `nextafter`, on the bits of floats: in every format, the next larger magnitude is the next integer.

use super::drive::kernel;
use super::map::into_fresh;
use crate::cpu::prelude::*;

/// The bits of a float format.
trait Format: Copy {
    /// Returns the next number after `x` towards `y`, where `infinity` has these bits.
    fn next(x: Self, y: Self, infinity: Self) -> Self;
}

macro_rules! format {
    ($($t:ty)*) => {$(
        impl Format for $t {
            #[inline(always)]
            fn next(x: $t, y: $t, infinity: $t) -> $t {
                const SIGN: $t = 1 << (<$t>::BITS - 1);
                let (size_x, size_y) = (x & !SIGN, y & !SIGN);
                if size_x > infinity {
                    return x;
                }
                if size_y > infinity || x == y || (size_x | size_y) == 0 {
                    return y;
                }
                if size_x == 0 {
                    return (y & SIGN) | 1;
                }
                // Away from 0 if y has the same sign and a larger magnitude.
                let away = (x ^ y) & SIGN == 0 && size_y > size_x;
                if away { x + 1 } else { x - 1 }
            }
        }
    )*};
}

format!(u16 u32 u64);

kernel! {
    fn next_kernel<T: Format>(infinity: T; x: T, y: T; out: T) by run_plain {
        for ((o, &x), &y) in out.iter_mut().zip(x).zip(y) {
            *o = T::next(x, y, infinity);
        }
    }
}

/// Returns the next number after each of `x` towards `y`, for broadcast floats of one dtype.
pub fn next_after(x: &Array, y: &Array) -> Result<Array> {
    macro_rules! run {
        ($t:ty, $infinity:expr) => {{
            let infinity: $t = $infinity;
            // SAFETY: the operands have numbers of this format, the bits of which are a `$t`.
            unsafe { into_fresh(&[x, y], x.dtype(), next_kernel::<$t>, (&raw const infinity).cast(), false) }
        }};
    }
    match common_dtype(&[x, y])? {
        DType::F16 => run!(u16, 0x7c00),
        DType::BF16 => run!(u16, 0x7f80),
        DType::F32 => run!(u32, f32::INFINITY.to_bits()),
        DType::F64 => run!(u64, f64::INFINITY.to_bits()),
        other => Err(wrong_dtype("nextafter", other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_cross_zero_and_reach_infinity() {
        let next =
            |x: f32, y: f32| f32::from_bits(Format::next(x.to_bits(), y.to_bits(), f32::INFINITY.to_bits()));
        assert_eq!(next(1.0, 2.0), 1.0 + f32::EPSILON);
        assert_eq!(next(1.0, -2.0), 1.0 - f32::EPSILON / 2.0);
        assert_eq!(next(0.0, -1.0), -f32::from_bits(1));
        assert_eq!(next(f32::from_bits(1), -1.0), 0.0);
        assert_eq!(next(f32::MAX, f32::INFINITY), f32::INFINITY);
        assert_eq!(next(f32::INFINITY, 0.0), f32::MAX);
        assert!(next(f32::NAN, 1.0).is_nan() && next(1.0, f32::NAN).is_nan());
        assert_eq!(next(0.0, -0.0).to_bits(), (-0.0_f32).to_bits());
    }
}
