//! The innermost loop of a product: a tile of the result whose sums stay in registers.
//!
//! One step of the depth loads `V` vectors of the right operand and, for each of `R` rows, one element of the
//! left one into all lanes: `R + V` loads for `R V` multiply-adds, which keeps a core's multipliers busy.

use super::mac::{Kernels, Mac};
use super::vector::Vector;
use super::{Product, Target};

/// Operands and result of a tile.
pub struct Tile<M: Mac> {
    /// Depth, in packed elements.
    pub k: usize,
    /// The first element of the left operand.
    pub a: *const M::In,
    /// Row stride of the left operand.
    pub a_row: isize,
    /// Stride of the left operand from one step of the depth to the next.
    pub a_step: isize,
    /// The first element of the right operand, whose columns are adjacent.
    pub b: *const M::In,
    /// Stride of the right operand from one step of the depth to the next.
    pub b_step: isize,
    /// The first element of the result, whose columns are adjacent.
    pub out: *mut M::Out,
    /// Row stride of the result.
    pub out_row: isize,
    /// Columns: at least one in the last vector of a row.
    pub columns: usize,
    /// Whether the tile is added to the result instead of replacing it.
    pub add: bool,
}

/// A function that computes a tile; the pointers of the [`Tile`] must be valid for its size.
pub type TileFn<M> = unsafe fn(&Tile<M>);

/// Computes a tile of `R` rows and `V` vectors per row.
///
/// # Safety
/// As for [`Mac`]: operands and result of the [`Tile`] exist in this size; no other thread writes the result.
#[inline(always)]
pub unsafe fn tile<M: Kernels, const R: usize, const V: usize>(t: &Tile<M>) {
    let full = t.columns == V * M::LANES;
    // SAFETY: the caller guarantees operands, result and instructions.
    unsafe {
        if V == 2 && R == M::ROWS && full && (t.a_row, t.a_step) == (1, R as isize) {
            sums::<M, R, V, false, true>(t);
        } else if M::Operands::MASKS || !full {
            sums::<M, R, V, true, false>(t);
        } else {
            sums::<M, R, V, false, false>(t);
        }
    }
}

/// [`tile`], whose last vectors are incomplete if `PART`; the left operand is packed if `PACKED`: strides
/// that the compiler knows leave the loop nothing but loads and multiply-adds.
///
/// # Safety
/// As for [`tile`].
#[inline(always)]
unsafe fn sums<M: Kernels, const R: usize, const V: usize, const PART: bool, const PACKED: bool>(
    t: &Tile<M>,
) {
    let (a_row, a_step) = if PACKED { (1, R as isize) } else { (t.a_row, t.a_step) };
    let tail = (V - 1) * M::LANES;
    let last = t.columns - tail;
    // A pointer for every third row: indexed addresses reach the two after it, so six registers do.
    let mut a = [t.a; 4];
    for i in 1..4 {
        a[i] = a[i - 1].wrapping_offset(3 * a_row);
    }
    let mut b = t.b;
    // SAFETY: the caller guarantees the tile; pointers beyond the operands are computed, but not read.
    unsafe {
        let mut sums = [[M::Sums::zero(); V]; R];
        for i in 0..R {
            fetch(t.out.offset(i as isize * t.out_row));
        }
        for _ in 0..t.k {
            let end = if PART {
                M::Operands::load_first(b.add(tail), last)
            } else {
                M::Operands::load(b.add(tail))
            };
            let mut y = [end; V];
            for (v, y) in y[..V - 1].iter_mut().enumerate() {
                *y = M::Operands::load(b.add(v * M::LANES));
            }
            if V == 4 {
                // Few rows: only this tile reads these columns, so the next ones are prefetched.
                (V..2 * V).for_each(|v| fetch(b.wrapping_add(v * M::LANES)));
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let x = M::Operands::splat(*a[i / 3].offset((i % 3) as isize * a_row));
                for v in 0..V {
                    sums[v] = M::mac(sums[v], x, y[v]);
                }
            }
            for a in &mut a[..R.div_ceil(3)] {
                *a = a.wrapping_offset(a_step);
            }
            b = b.wrapping_offset(t.b_step);
        }
        for (i, sums) in sums.iter().enumerate() {
            let row = t.out.offset(i as isize * t.out_row);
            for (v, &sum) in sums[..V - 1].iter().enumerate() {
                let to = row.add(v * M::LANES);
                M::Sums::store(to, if t.add { M::Sums::plus(M::Sums::load(to), sum) } else { sum });
            }
            let (to, sum) = (row.add(tail), sums[V - 1]);
            if PART {
                let sum = if t.add { M::Sums::plus(M::Sums::load_first(to, last), sum) } else { sum };
                M::Sums::store_first(to, sum, last);
            } else {
                M::Sums::store(to, if t.add { M::Sums::plus(M::Sums::load(to), sum) } else { sum });
            }
        }
    }
}

/// Computes a product that is a single tile directly on its operands and result, since planning would take
/// longer than the arithmetic. Returns whether it was a single tile.
///
/// # Safety
/// As for [`super::Number::multiply`], and the processor has the instructions of `M`.
pub unsafe fn single<M: Kernels>(p: &Product<M::Stored, M::Out>) -> bool {
    let fits = p.m <= M::ROWS && p.n <= 2 * M::LANES && p.k <= 4 * M::LANES;
    let Target::Memory(out, out_row, None) = p.target else { return false };
    if !fits || p.right.free != 1 || M::STEP > 1 {
        return false;
    }
    let Some(compute) = M::TILES[p.m - 1][p.n.div_ceil(M::LANES) - 1] else { return false };
    let (k, a, a_row, a_step) = (p.k, p.left.data.cast(), p.left.free, p.left.depth);
    let (b, b_step, columns) = (p.right.data.cast(), p.right.depth, p.n);
    let tile = Tile { k, a, a_row, a_step, b, b_step, out, out_row, columns, add: false };
    // SAFETY: the caller guarantees operands, result and instructions; the product fits the tile.
    unsafe { compute(&tile) };
    true
}

/// Prefetches the cache line of `at`.
#[inline(always)]
fn fetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint that never faults, whatever the address; every x86-64 has it.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
