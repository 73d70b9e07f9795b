//! Products by the same right operand many times: it is packed once, and nothing is planned afterwards.

use super::blocks::{COPY, DEPTH, WORK};
use super::mac::{Baseline, Kernels};
use super::pack::Strip;
use super::tile::Tile;
#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{MatrixRef, Multiply};
use crate::cpu::prelude::*;
use crate::cpu::run::isa::{Isa, isa};
use crate::cpu::run::scratch::Scratch;

/// Rows that a right operand is read for at least: with fewer it takes as long to read as to multiply.
const READ: usize = 8;

/// A right operand in the order in which tiles read it.
pub trait Packed<T>: Sync {
    /// Computes `rows` rows of a product, on as many threads as pay, and adds them to the result if `add`.
    /// Rows of the left operand are `left.1` elements apart, those of the result have no gaps.
    ///
    /// # Safety
    /// Operands and result exist in these sizes, and no other thread writes them.
    unsafe fn multiply(&self, left: (*const T, usize), out: *mut T, rows: usize, add: bool);
}

/// Floats whose products can have a packed operand.
pub trait Pack: Multiply {
    /// Packs the right operand, with `k` rows and `n` columns, of products with up to `rows` rows.
    ///
    /// # Safety
    /// It exists in this size, and no other thread writes it.
    unsafe fn packed(
        right: MatrixRef<Self>, k: usize, n: usize, rows: usize,
    ) -> Result<Box<dyn Packed<Self>>>;
}

macro_rules! pack {
    ($($t:ty: $avx512:ident, $avx2:ident, $lanes:literal;)*) => {
        $(impl Pack for $t {
            unsafe fn packed(
                right: MatrixRef<$t>, k: usize, n: usize, rows: usize,
            ) -> Result<Box<dyn Packed<$t>>> {
                // SAFETY: the caller guarantees the operand; `isa` found the CPU features.
                unsafe {
                    Ok(match isa() {
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx512 => Box::new(Strips::<x86::$avx512>::new(right, k, n, rows)?),
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx2 => Box::new(Strips::<x86::$avx2>::new(right, k, n, rows)?),
                        _ => Box::new(Strips::<Baseline<$t, $lanes>>::new(right, k, n, rows)?),
                    })
                }
            }
        })*
    };
}

pack! {
    f32: F32x16, F32x8, 4;
    f64: F64x8, F64x4, 2;
}

/// Strips of columns, one behind the other.
struct Strips<M: Kernels> {
    /// Where they lie.
    at: Shared<M::In>,
    _memory: Scratch<M::In>,
    k: usize,
    n: usize,
    /// Columns of a strip.
    width: usize,
}

impl<M: Kernels> Strips<M> {
    /// Packs an operand; sums and elements are of one type, and steps are single.
    ///
    /// # Safety
    /// As for [`Pack::packed`], and the processor has the instructions of `M`.
    unsafe fn new(right: MatrixRef<M::Stored>, k: usize, n: usize, rows: usize) -> Result<Strips<M>> {
        let few = M::TILES.iter().take_while(|tiles| tiles[3].is_some()).count();
        let width = if rows <= few { 4 } else { 2 } * M::LANES;
        let strips = n.div_ceil(width);
        let mut memory = Scratch::<M::In>::new(strips * width * k)?;
        let at = memory.shared();
        parallel_for(strips, COPY.div_ceil(width * k.max(1)), |range| {
            for strip in range {
                let (from, to) = (right.at(strip * width, 0), at.get().wrapping_add(strip * width * k));
                let (lane, step, lanes) = (right.free, right.depth, width.min(n - strip * width));
                // SAFETY: the caller guarantees the operand, and every strip has its own part of the memory.
                unsafe { M::PACK(&Strip { from, lane, step, lanes, k, to, width }) };
            }
        });
        Ok(Strips { at, _memory: memory, k, n, width })
    }
}

impl<T: Element, M: Kernels<Stored = T, In = T, Out = T>> Packed<T> for Strips<M> {
    unsafe fn multiply(&self, (left, a_row): (*const T, usize), out: *mut T, rows: usize, add: bool) {
        let Strips { k, n, width, .. } = *self;
        let (down, depth, to) = (rows.div_ceil(M::ROWS), DEPTH / size_of::<T>(), Shared::new(out));
        let left = MatrixRef { data: left, free: a_row as isize, depth: 1 };
        let grain = WORK.div_ceil((rows.max(READ) * width * k).max(1));
        parallel_for(n.div_ceil(width), grain, |range| {
            for strip in range {
                let j = strip * width;
                let columns = width.min(n - j);
                for from in (0..k).step_by(depth) {
                    let b = self.at.get().wrapping_add((strip * k + from) * width).cast_const();
                    for s in 0..down {
                        // Strips of about equal heights, since low ones are slow.
                        let (top, end) = (s * rows / down, (s + 1) * rows / down);
                        let tile = Tile {
                            k: depth.min(k - from),
                            a: left.at(top, from),
                            a_row: left.free,
                            a_step: 1,
                            b,
                            b_step: width as isize,
                            out: to.get().wrapping_add(top * n + j),
                            out_row: n as isize,
                            columns,
                            add: add || from > 0,
                        };
                        if let Some(compute) = M::TILES[end - top - 1][columns.div_ceil(M::LANES) - 1] {
                            // SAFETY: the caller guarantees operands, result and instructions; tiles are
                            // disjoint.
                            unsafe { compute(&tile) };
                        }
                    }
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_products_are_products() -> Result<()> {
        // Integers, so that every order of summation gives the same.
        for (m, k, n) in [(1, 1, 1), (1, 32, 128), (7, 5, 67), (13, 600, 33), (25, 9, 300), (48, 1100, 16)] {
            let left: Vec<f64> = (0..m * k).map(|i| (i * 7 % 11) as f64 - 5.0).collect();
            let right: Vec<f64> = (0..k * n).map(|i| (i * 5 % 13) as f64 - 6.0).collect();
            for (free, depth) in [(1, n), (k, 1)] {
                let of = MatrixRef { data: right.as_ptr(), free: free as isize, depth: depth as isize };
                let mut out = vec![3.0; m * n];
                // SAFETY: the vectors have these sizes.
                unsafe {
                    let packed = f64::packed(of, k, n, m)?;
                    packed.multiply((left.as_ptr(), k), out.as_mut_ptr(), m, false);
                    packed.multiply((left.as_ptr(), k), out.as_mut_ptr(), m, true)
                };
                for (at, &found) in out.iter().enumerate() {
                    let (i, j) = (at / n, at % n);
                    let sum = (0..k).map(|l| left[i * k + l] * right[j * free + l * depth]).sum::<f64>();
                    assert_eq!(found, 2.0 * sum, "{m} {k} {n}, element {i}, {j}");
                }
            }
        }
        Ok(())
    }
}
