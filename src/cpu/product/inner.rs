//! Inner products of a few rows and a few columns, both contiguous along the depth.
//!
//! For results too thin for tiles: operands are loaded once, in whole vectors, and nothing is packed.

use super::mac::{Factor, Mac, Sum};
use super::vector::{Square, Vector};
use std::mem::MaybeUninit;

/// Operands and results of some inner products.
pub struct Inner<M: Mac> {
    /// Depth, in packed elements.
    pub k: usize,
    /// The first row, whose elements are adjacent.
    pub a: *const M::In,
    /// Bytes from one row to the next.
    pub a_row: isize,
    /// The first column, whose elements are adjacent.
    pub b: *const M::In,
    /// Bytes from one column to the next.
    pub b_column: isize,
    /// The first result.
    pub out: *mut M::Out,
    /// Row stride of the results.
    pub out_row: isize,
    /// Column stride of the results.
    pub out_column: isize,
}

/// A function that computes some inner products.
pub type InnerFn<M> = unsafe fn(&Inner<M>);

/// Computes `R` rows by `C` columns, each in `U` partial sums, so that additions are independent.
///
/// # Safety
/// As for [`Mac`]: operands and result exist in this size, and no other thread writes the result.
#[inline(always)]
pub unsafe fn inner<M: Mac, const R: usize, const C: usize, const U: usize>(t: &Inner<M>) {
    // SAFETY: the caller guarantees operands, result and instructions.
    unsafe {
        let mut sums = [[[M::Sums::zero(); U]; C]; R];
        let mut at = 0;
        while at + U * M::LANES <= t.k {
            for u in 0..U {
                add::<M, R, C, U>(t, &mut sums, u, at + u * M::LANES, None);
            }
            at += U * M::LANES;
        }
        while at + M::LANES <= t.k {
            add::<M, R, C, U>(t, &mut sums, 0, at, None);
            at += M::LANES;
        }
        if at < t.k {
            add::<M, R, C, U>(t, &mut sums, 0, at, Some(t.k - at));
        }
        // Loops, not closures: only inlined code is compiled for the instructions of `M`.
        let mut vectors = [const { MaybeUninit::<M::Out>::uninit() }; ROOM];
        let mut totals = [const { MaybeUninit::<M::Out>::uninit() }; LIMIT];
        let (to, total) = (vectors.as_mut_ptr().cast::<M::Out>(), totals.as_mut_ptr().cast::<M::Out>());
        for (i, sums) in sums.as_flattened().iter().enumerate() {
            let mut sum = sums[0];
            for &more in &sums[1..] {
                sum = M::Sums::plus(sum, more);
            }
            M::Sums::store(to.add(i * M::LANES), sum);
        }
        for first in (0..R * C).step_by(M::LANES) {
            add_up::<M>(to.add(first * M::LANES), (R * C - first).min(M::LANES), total.add(first));
        }
        for i in 0..R {
            for j in 0..C {
                let to = t.out.offset(i as isize * t.out_row + j as isize * t.out_column);
                *to = *total.add(i * C + j);
            }
        }
    }
}

/// Maximal number of inner products at a time, a multiple of all `LANES`; [`ROOM`] is for their vectors.
const LIMIT: usize = 16;
const ROOM: usize = LIMIT * 16;

/// Adds up the lanes of each of `count` vectors, at most `LANES`. Transposes them and adds lane by lane,
/// which takes far fewer instructions than adding up each vector.
///
/// # Safety
/// As for [`inner`]; the vectors are contiguous, and `to` has capacity for a vector.
#[inline(always)]
unsafe fn add_up<M: Mac>(vectors: *const M::Out, count: usize, to: *mut M::Out) {
    let mut transposed = [const { MaybeUninit::<M::Out>::uninit() }; ROOM];
    let stride = (M::LANES * size_of::<M::Out>()) as isize;
    let from = transposed.as_mut_ptr().cast::<M::Out>();
    // SAFETY: the caller guarantees the vectors, and the array has capacity for `LANES` vectors.
    unsafe {
        let square = Square { from: vectors.cast(), stride, lanes: count, steps: M::LANES };
        M::Sums::transpose(square, from, M::LANES);
        let mut sum = M::Sums::load(from);
        for l in 1..M::LANES {
            sum = M::Sums::plus(sum, M::Sums::load(from.add(l * M::LANES)));
        }
        M::Sums::store(to, sum);
    }
}

/// Adds the products of one vector of the depth to the partial sums `u`.
///
/// # Safety
/// As for [`inner`].
#[inline(always)]
unsafe fn add<M: Mac, const R: usize, const C: usize, const U: usize>(
    t: &Inner<M>, sums: &mut [[[Sum<M>; U]; C]; R], u: usize, at: usize, first: Option<usize>,
) {
    // SAFETY: the caller guarantees the operands and that the vector lies inside the depth.
    unsafe {
        let mut y = [load::<M>(t.b, 0, at, first); C];
        for (j, y) in y.iter_mut().enumerate().skip(1) {
            *y = load::<M>(t.b, j as isize * t.b_column, at, first);
        }
        for (i, sums) in sums.iter_mut().enumerate() {
            let x = load::<M>(t.a, i as isize * t.a_row, at, first);
            for j in 0..C {
                sums[j][u] = M::mac(sums[j][u], x, y[j]);
            }
        }
    }
}

/// Loads the vector at index `at`, or its first lanes, of the row or column `bytes` behind `from`.
///
/// # Safety
/// As for [`inner`].
#[inline(always)]
unsafe fn load<M: Mac>(from: *const M::In, bytes: isize, at: usize, first: Option<usize>) -> Factor<M> {
    // SAFETY: the caller guarantees the operands and that the vector lies inside the depth.
    unsafe {
        let from = from.byte_offset(bytes).add(at);
        match first {
            Some(n) => M::Operands::load_first(from, n),
            None => M::Operands::load(from),
        }
    }
}
