//! Inner products: a few rows by a few columns, both of which run along the depth in memory.
//!
//! For results that are too thin for tiles: every element of the operands is loaded once, in whole vectors, and
//! nothing is packed.

use super::mac::Mac;

/// Operands and place of some inner products.
pub struct Inner<M: Mac> {
    /// Depth, in packed elements.
    pub k: usize,
    /// The first row, whose elements lie side by side.
    pub a: *const M::In,
    /// Bytes from one row to the next.
    pub a_row: isize,
    /// The first column, whose elements lie side by side.
    pub b: *const M::In,
    /// Bytes from one column to the next.
    pub b_column: isize,
    /// The first result.
    pub out: *mut M::Out,
    /// Elements from the results of one row to those of the next.
    pub out_row: isize,
    /// Elements from the results of one column to those of the next.
    pub out_column: isize,
    /// Whether the products are added to what is there.
    pub add: bool,
}

/// Computes some inner products.
pub type InnerFn<M> = unsafe fn(&Inner<M>);

/// `R` rows by `C` columns, each in `U` partial sums, so that additions need not wait for each other.
///
/// # Safety
/// See [`Mac`]: operands and result exist in this size, and nobody else writes the result.
#[inline(always)]
pub unsafe fn inner<M: Mac, const R: usize, const C: usize, const U: usize>(t: &Inner<M>) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[[M::zero(); U]; C]; R];
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
        for (i, sums) in sums.iter().enumerate() {
            for (j, sums) in sums.iter().enumerate() {
                let sum = sums[1..].iter().fold(sums[0], |x, &y| M::plus(x, y));
                let to = t.out.offset(i as isize * t.out_row + j as isize * t.out_column);
                let total = M::total(sum);
                *to = if t.add { M::add(*to, total) } else { total };
            }
        }
    }
}

/// Adds the products of one vector of the depth to the partial sums `u`.
///
/// # Safety
/// As [`inner`].
#[inline(always)]
unsafe fn add<M: Mac, const R: usize, const C: usize, const U: usize>(
    t: &Inner<M>,
    sums: &mut [[[M::Y; U]; C]; R],
    u: usize,
    at: usize,
    first: Option<usize>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let load = |from: *const M::In, bytes: isize| {
            let from = from.byte_offset(bytes).add(at);
            match first {
                Some(n) => M::load_first(from, n),
                None => M::load(from),
            }
        };
        let mut y = [load(t.b, 0); C];
        for (j, y) in y.iter_mut().enumerate().skip(1) {
            *y = load(t.b, j as isize * t.b_column);
        }
        for (i, sums) in sums.iter_mut().enumerate() {
            let x = load(t.a, i as isize * t.a_row);
            for j in 0..C {
                sums[j][u] = M::mac(sums[j][u], x, y[j]);
            }
        }
    }
}
