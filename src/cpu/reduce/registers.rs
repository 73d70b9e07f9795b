//! Sums and products of floats in vector registers, and extremes of floats as integers.
//!
//! The compiler may not reorder the additions of a sum, so the registers are explicit: four of sixteen `f32`
//! (eight `f64`) lanes each, or pairs of half as long ones, which give the same bits. Extremes do not need
//! that: as integers, floats of one sign are ordered, and the compiler vectorises integers.

#![allow(clippy::assign_op_pattern)] // the operator is a parameter of the macro

use crate::cpu::run::isa::{Isa, isa};

macro_rules! folds {
    // Folds the lanes from each of `starts` on, as many as a register has.
    (
        @registers $name:ident $feature:literal, $starts:expr, $t:ty, $n:literal, $start:literal,
        $load:ident $join:ident $store:ident
    ) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $feature)]
        fn $name(x: &[[[$t; $n]; 4]]) -> [$t; $n] {
            let mut out = [$start; $n];
            for lane in $starts {
                // SAFETY: an array is at least as long as the registers that it is loaded to.
                unsafe {
                    let start = $load([$start; $n].as_ptr());
                    let (mut a, mut b, mut c, mut d) = (start, start, start, start);
                    for group in x {
                        a = $join(a, $load(group[0].as_ptr().add(lane)));
                        b = $join(b, $load(group[1].as_ptr().add(lane)));
                        c = $join(c, $load(group[2].as_ptr().add(lane)));
                        d = $join(d, $load(group[3].as_ptr().add(lane)));
                    }
                    $store(out.as_mut_ptr().add(lane), $join($join(a, b), $join(c, d)));
                }
            }
            out
        }
    };
    ($($name:ident: $t:ty, $n:literal, $start:literal $op:tt,
        [$load:ident $join:ident $store:ident],
        [$half_load:ident $half_join:ident $half_store:ident];
    )*) => {$(
        /// Folds a block, which should fit into the L1 cache.
        #[inline(always)]
        pub fn $name(x: &[$t]) -> $t {
            let (vectors, last) = x.as_chunks::<$n>();
            let (groups, rest) = vectors.as_chunks::<4>();
            let mut lanes = if groups.is_empty() { [$start; $n] } else { $name::groups(groups) };
            for vector in rest {
                for i in 0..$n {
                    lanes[i] = lanes[i] $op vector[i];
                }
            }
            let mut width = $n / 2;
            if !vectors.is_empty() {
                while width > 0 {
                    for i in 0..width {
                        lanes[i] = lanes[i] $op lanes[i + width];
                    }
                    width /= 2;
                }
            }
            last.iter().fold(lanes[0], |a, &b| a $op b)
        }

        mod $name {
            use super::*;
            #[cfg(target_arch = "x86_64")]
            use std::arch::x86_64::*;

            /// Folds the lanes of all registers into those of one.
            pub fn groups(x: &[[[$t; $n]; 4]]) -> [$t; $n] {
                match isa() {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: `isa` found these features on this processor.
                    Isa::Avx512 => unsafe { whole(x) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: as above.
                    Isa::Avx2 => unsafe { halves(x) },
                    _ => plain(x),
                }
            }

            folds!(@registers whole "avx512f", [0], $t, $n, $start, $load $join $store);
            folds!(@registers halves "avx2", [0, $n / 2], $t, $n, $start, $half_load $half_join $half_store);

            /// [`groups`] on other processors.
            pub fn plain(x: &[[[$t; $n]; 4]]) -> [$t; $n] {
                let mut lanes = [[$start; $n]; 4];
                for group in x {
                    for (a, b) in lanes.as_flattened_mut().iter_mut().zip(group.as_flattened()) {
                        *a = *a $op *b;
                    }
                }
                let [a, b, c, d] = lanes;
                std::array::from_fn(|i| (a[i] $op b[i]) $op (c[i] $op d[i]))
            }

            #[test]
            #[cfg(target_arch = "x86_64")]
            fn all_registers_give_the_same_bits() {
                let x: Vec<$t> = (0..40 * $n).map(|i| 1.0 + ((i * 7919) % 1000) as $t * 1e-4).collect();
                let groups = x.as_chunks::<$n>().0.as_chunks::<4>().0;
                if isa() >= Isa::Avx2 {
                    // SAFETY: `isa` found these features on this processor.
                    assert_eq!(plain(groups), unsafe { halves(groups) });
                }
                if isa() == Isa::Avx512 {
                    // SAFETY: as above.
                    assert_eq!(plain(groups), unsafe { whole(groups) });
                }
            }
        }
    )*};
}

folds! {
    sum_f32: f32, 16, 0.0 +,
        [_mm512_loadu_ps _mm512_add_ps _mm512_storeu_ps], [_mm256_loadu_ps _mm256_add_ps _mm256_storeu_ps];
    prod_f32: f32, 16, 1.0 *,
        [_mm512_loadu_ps _mm512_mul_ps _mm512_storeu_ps], [_mm256_loadu_ps _mm256_mul_ps _mm256_storeu_ps];
    sum_f64: f64, 8, 0.0 +,
        [_mm512_loadu_pd _mm512_add_pd _mm512_storeu_pd], [_mm256_loadu_pd _mm256_add_pd _mm256_storeu_pd];
    prod_f64: f64, 8, 1.0 *,
        [_mm512_loadu_pd _mm512_mul_pd _mm512_storeu_pd], [_mm256_loadu_pd _mm256_mul_pd _mm256_storeu_pd];
}

macro_rules! extremes {
    ($($max:ident $min:ident: $t:ty, $signed:ty, $unsigned:ty;)*) => {$(
        /// Returns the largest of a block, NaN if there is one.
        #[inline(always)]
        pub fn $max(x: &[$t]) -> $t {
            let (top, low, high) = bounds!(x, $signed, $unsigned);
            if high > <$t>::NEG_INFINITY.to_bits() {
                <$t>::NAN
            } else if top >= 0 {
                // A positive number, or a positive NaN, whose bits are larger than those of infinity.
                <$t>::from_bits(top as $unsigned)
            } else {
                <$t>::from_bits(low)
            }
        }

        /// Returns the smallest of a block, NaN if there is one.
        #[inline(always)]
        pub fn $min(x: &[$t]) -> $t {
            let (top, low, high) = bounds!(x, $signed, $unsigned);
            if top > <$t>::INFINITY.to_bits() as $signed {
                <$t>::NAN
            } else if (high as $signed) < 0 {
                <$t>::from_bits(high)
            } else {
                <$t>::from_bits(low)
            }
        }
    )*};
}

/// The bits of floats: the largest as signed integers, then the smallest and largest as unsigned ones.
macro_rules! bounds {
    ($x:ident, $signed:ty, $unsigned:ty) => {
        $x.iter().fold((<$signed>::MIN, <$unsigned>::MAX, 0), |(top, low, high), v| {
            let bits = v.to_bits();
            (<$signed>::max(top, bits as $signed), low.min(bits), high.max(bits))
        })
    };
}

extremes! {
    max_f32 min_f32: f32, i32, u32;
    max_f64 min_f64: f64, i64, u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_of_all_signs() {
        let cases: [(&[f32], f32, f32); 6] = [
            (&[1.0, -2.0, 3.0], 3.0, -2.0),
            (&[-1.0, -2.0, -0.5], -0.5, -2.0),
            (&[4.0, 2.0], 4.0, 2.0),
            (&[f32::NEG_INFINITY, -1.0], -1.0, f32::NEG_INFINITY),
            (&[f32::INFINITY, 0.0, -0.0], f32::INFINITY, 0.0),
            (&[f32::INFINITY, f32::NEG_INFINITY], f32::INFINITY, f32::NEG_INFINITY),
        ];
        for (x, max, min) in cases {
            assert_eq!((max_f32(x), min_f32(x)), (max, min));
            let wide: Vec<f64> = x.iter().map(|&v| v.into()).collect();
            assert_eq!((max_f64(&wide), min_f64(&wide)), (max.into(), min.into()));
            for nan in [f32::NAN, -f32::NAN] {
                let mut with = x.to_vec();
                with.push(nan);
                assert!(max_f32(&with).is_nan() && min_f32(&with).is_nan());
                let wide: Vec<f64> = with.iter().map(|&v| v.into()).collect();
                assert!(max_f64(&wide).is_nan() && min_f64(&wide).is_nan());
            }
        }
    }

    #[test]
    fn sums_of_every_length() {
        for n in 0..300usize {
            let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            assert_eq!(sum_f32(&x), (n * n.saturating_sub(1) / 2) as f32);
            let ones = vec![2f64; n];
            assert_eq!(prod_f64(&ones), 2f64.powi(n as i32));
        }
    }
}
