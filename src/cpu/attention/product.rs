//! Small matrix products without packing, for tiles that fit in the first-level cache.
//!
//! The left operand is read one number at a time and broadcast over a vector, so it may have any strides: a
//! transposed matrix costs nothing. The rows of the right operand and of the result are vectors. A block of
//! the result stays in registers over the whole depth, and each of its numbers is summed in the order of the
//! depth, so its bits do not depend on how the result is cut.

use super::LANE;
use super::operand::View;
use crate::cpu::run::isa::{Isa, Scalar, isa};

/// `c (+)= a b`: `a` is any `m x k`, `b` a contiguous `k x n`, `c` an `m x n` of contiguous rows.
#[derive(Clone, Copy)]
pub struct Product<T> {
    /// Rows of `a` and `c`.
    pub m: usize,
    /// Columns of `b` and `c`: a multiple of [`LANE`].
    pub n: usize,
    /// The depth: columns of `a`, rows of `b`.
    pub k: usize,
    /// The left operand.
    pub a: View<T>,
    /// The right operand.
    pub b: *const T,
    /// The result.
    pub c: *mut T,
    /// Row stride of `c`.
    pub c_stride: usize,
    /// Whether the product is added to `c` instead of replacing it.
    pub add: bool,
}

/// A float type of tiles.
pub trait TileFloat: Scalar + Default {
    /// Returns `a * b + c`, rounded once if `FUSED`.
    fn multiply_add<const FUSED: bool>(self, b: Self, c: Self) -> Self;
    /// Computes a product.
    ///
    /// # Safety
    /// The operands exist in these sizes, and no other thread writes the result.
    unsafe fn product(p: &Product<Self>);
}

impl<T: TileFloat> Product<T> {
    /// Computes columns `j..j + N` from row `i` on, in blocks of `M` rows; returns the first row left over.
    ///
    /// # Safety
    /// As for [`TileFloat::product`].
    #[inline(always)]
    unsafe fn blocks<const M: usize, const N: usize, const FUSED: bool>(
        &self, mut i: usize, j: usize,
    ) -> usize {
        while i + M <= self.m {
            // SAFETY: the caller guarantees the operands, and the block lies inside the result.
            unsafe { self.block::<M, N, FUSED>(i, j) };
            i += M;
        }
        i
    }

    /// Computes the `M x N` block of the result at row `i` and column `j`.
    ///
    /// # Safety
    /// As for [`TileFloat::product`].
    #[inline(always)]
    unsafe fn block<const M: usize, const N: usize, const FUSED: bool>(&self, i: usize, j: usize) {
        // SAFETY: the caller guarantees the operands and that the block lies inside the result.
        unsafe {
            let c = self.c.add(i * self.c_stride + j);
            let mut sums = [[T::default(); N]; M];
            if self.add {
                for (r, line) in sums.iter_mut().enumerate() {
                    *line = c.add(r * self.c_stride).cast::<[T; N]>().read();
                }
            }
            let a = self.a.data.offset(i as isize * self.a.row);
            for l in 0..self.k {
                let right = self.b.add(l * self.n + j).cast::<[T; N]>().read();
                for (r, line) in sums.iter_mut().enumerate() {
                    let left = *a.offset(r as isize * self.a.row + l as isize * self.a.column);
                    for (sum, &right) in line.iter_mut().zip(&right) {
                        *sum = left.multiply_add::<FUSED>(right, *sum);
                    }
                }
            }
            for (r, line) in sums.iter().enumerate() {
                c.add(r * self.c_stride).cast::<[T; N]>().write(*line);
            }
        }
    }

    /// Computes all blocks: `M x N`, and smaller ones at the ends of the result.
    ///
    /// # Safety
    /// As for [`TileFloat::product`].
    #[inline(always)]
    unsafe fn cut<const M: usize, const N: usize, const FUSED: bool>(&self) {
        let mut j = 0;
        // SAFETY: the caller guarantees the operands; `LANE` divides `n`, so all blocks lie in the result.
        unsafe {
            while j + N <= self.n {
                let i = self.blocks::<M, N, FUSED>(0, j);
                let i = self.blocks::<2, N, FUSED>(i, j);
                self.blocks::<1, N, FUSED>(i, j);
                j += N;
            }
            while j < self.n {
                let i = self.blocks::<M, LANE, FUSED>(0, j);
                self.blocks::<1, LANE, FUSED>(i, j);
                j += LANE;
            }
        }
    }
}

/// Compiles the product once per instruction set, with the block size that fits into its registers.
macro_rules! number {
    ($float:ty, $wide:literal) => {
        impl TileFloat for $float {
            #[inline(always)]
            fn multiply_add<const FUSED: bool>(self, b: $float, c: $float) -> $float {
                if FUSED { self.mul_add(b, c) } else { self * b + c }
            }

            unsafe fn product(p: &Product<$float>) {
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
                unsafe fn avx512(p: &Product<$float>) {
                    // SAFETY: the caller of `product` guarantees its operands.
                    unsafe { p.cut::<8, $wide, true>() }
                }
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx2,fma,f16c")]
                unsafe fn avx2(p: &Product<$float>) {
                    // SAFETY: the caller of `product` guarantees its operands.
                    unsafe { p.cut::<4, LANE, true>() }
                }
                // SAFETY: the caller guarantees the operands; `isa` found the features on this processor.
                unsafe {
                    match isa() {
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx512 => avx512(p),
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx2 => avx2(p),
                        _ => p.cut::<4, LANE, { cfg!(target_arch = "aarch64") }>(),
                    }
                }
            }
        }
    };
}

number!(f32, 32);
number!(f64, 16);

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the product by definition, in `f64`.
    fn check<T: TileFloat>(m: usize, n: usize, k: usize, transposed: bool, add: bool, tolerance: f64) {
        let value = |i: usize| ((i * 7919 + 13) % 257) as f64 / 128.0 - 1.0;
        let make = |count: usize, from: usize| -> Vec<T> {
            (0..count).map(|i| T::from_f64(value(i + from))).collect()
        };
        let (mut left, b, start) = (make(m * k, 0), make(k * n, 1000), make(m * n, 5000));
        let mut c = start.clone();
        let (row, column) = if transposed { (1, m) } else { (k, 1) };
        let a = View { data: left.as_mut_ptr(), row: row as isize, column: column as isize };
        // SAFETY: the three vectors have these sizes.
        unsafe { T::product(&Product { m, n, k, a, b: b.as_ptr(), c: c.as_mut_ptr(), c_stride: n, add }) };
        for (at, got) in c.iter().enumerate() {
            let (i, j) = (at / n, at % n);
            let term = |l: usize| left[i * row + l * column].to_f64() * b[l * n + j].to_f64();
            let want = (0..k).map(term).sum::<f64>() + if add { start[at].to_f64() } else { 0.0 };
            let close = (got.to_f64() - want).abs() <= tolerance * (k as f64 + 1.0);
            assert!(close, "{m} {n} {k} at {i} {j}");
        }
    }

    #[test]
    fn every_remainder_of_rows_and_columns() {
        for m in [1, 2, 3, 7, 8, 13, 16] {
            for n in [16, 32, 48, 64] {
                for k in [0, 1, 5, 33] {
                    for on in [false, true] {
                        check::<f32>(m, n, k, on, on, 1e-6);
                        check::<f64>(m, n, k, on, on, 1e-14);
                    }
                }
            }
        }
    }
}
