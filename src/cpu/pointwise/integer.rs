//! The integer types that kernels compute in: `i32`, `i64` and `u64`, wrapping. Narrower ones are widened.

use crate::math::lane::methods;
use crate::math::real::Integer;

macro_rules! integer {
    ($($t:ty, $signed:expr;)*) => {
        $(#[allow(unused_comparisons)]
        impl Integer for $t {
            methods! {
                lit(value: i64) -> Self = value as $t;
                abs(self) -> Self = if self < 0 { self.wrapping_neg() } else { self };
                sign(self) -> Self = ((self > 0) as $t).wrapping_sub((self < 0) as $t);
                add(self, other: Self) -> Self = self.wrapping_add(other);
                sub(self, other: Self) -> Self = self.wrapping_sub(other);
                mul(self, other: Self) -> Self = self.wrapping_mul(other);
                fmod(self, divisor: Self) -> Self = if divisor == 0 { 0 } else { self.wrapping_rem(divisor) };
                and(self, other: Self) -> Self = self & other;
                or(self, other: Self) -> Self = self | other;
                xor(self, other: Self) -> Self = self ^ other;
            }
            #[inline(always)]
            fn floor_div(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let quotient = self.wrapping_div(other);
                let exact = self.wrapping_rem(other) == 0;
                if !exact && (self < 0) != (other < 0) { quotient.wrapping_sub(1) } else { quotient }
            }
            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let rest = self.wrapping_rem(other);
                if rest != 0 && (rest < 0) != (other < 0) { rest.wrapping_add(other) } else { rest }
            }
            #[inline(always)]
            fn pow(self, exponent: Self) -> Self {
                if exponent < 0 {
                    let odd = exponent & 1 == 1;
                    let minus_one = (0 as $t).wrapping_sub(1);
                    return match self {
                        1 => 1,
                        x if $signed && x == minus_one => if odd { x } else { 1 },
                        _ => 0,
                    };
                }
                let (mut base, mut left, mut product) = (self, exponent, 1 as $t);
                while left > 0 {
                    if left & 1 == 1 {
                        product = product.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    left >>= 1;
                }
                product
            }
            #[inline(always)]
            fn shl(self, count: Self) -> Self {
                let inside = count >= 0 && (count as u64) < u64::from(<$t>::BITS);
                if inside { self.wrapping_shl(count as u32) } else { 0 }
            }
            #[inline(always)]
            fn shr(self, count: Self) -> Self {
                let inside = count >= 0 && (count as u64) < u64::from(<$t>::BITS);
                let sign = if self < 0 { (0 as $t).wrapping_sub(1) } else { 0 };
                if inside { self.wrapping_shr(count as u32) } else { sign }
            }
            #[inline(always)]
            fn gcd(self, other: Self) -> Self {
                let (mut x, mut y) = (self, other);
                while y != 0 {
                    (x, y) = (y, x.wrapping_rem(y));
                }
                Integer::abs(x)
            }
        })*
    };
}

integer! {
    i32, true;
    i64, true;
    u64, false;
}

#[cfg(test)]
mod tests {
    use crate::math::real::Integer;

    #[test]
    fn division_rounds_down_and_never_traps() {
        assert_eq!((Integer::floor_div(-7i32, 2), Integer::remainder(-7i32, 2)), (-4, 1));
        assert_eq!((Integer::floor_div(7i64, -2), Integer::remainder(7i64, -2)), (-4, -1));
        assert_eq!((Integer::floor_div(7i32, 0), Integer::remainder(7i32, 0)), (0, 0));
        assert_eq!((Integer::floor_div(i32::MIN, -1), Integer::remainder(i32::MIN, -1)), (i32::MIN, 0));
        assert_eq!((Integer::fmod(-7i32, 2), Integer::fmod(7i64, -2), Integer::fmod(7u64, 0)), (-1, 1, 0));
        assert_eq!(
            (Integer::pow(3u64, 41), Integer::pow(2i32, -1), Integer::pow(-1i64, -3)),
            (18026252303461234787, 0, -1)
        );
    }

    #[test]
    fn shifts_beyond_the_bits_leave_the_sign() {
        assert_eq!((Integer::shl(3u64, 6), Integer::shl(3u64, 64), Integer::shl(1i32, -1)), (192, 0, 0));
        assert_eq!((Integer::shr(-8i64, 1), Integer::shr(-8i64, 64), Integer::shr(200u64, 9)), (-4, -1, 0));
        assert_eq!((Integer::gcd(-12i32, 18), Integer::gcd(0u64, 5), Integer::gcd(0i64, 0)), (6, 5, 0));
        assert_eq!(Integer::gcd(i64::MIN, -1), 1);
    }
}
