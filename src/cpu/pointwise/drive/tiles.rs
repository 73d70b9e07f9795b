//! Moves elements between an operand of any layout and a tile, in which they lie one after the other.
//!
//! Rows of a few elements, such as coordinates of points, are moved by loops over rows, in which the length of
//! a row is a constant: a loop within each of them would cost more than its elements.

use crate::array::nest::Nest;

/// The longest rows that are moved so.
const SHORT_ROW: usize = 8;
/// The most elements of a block of several short axes, whose places are looked up in a table.
const BLOCK: usize = 64;

/// Copies the `n` elements from row-major index `at` on of operand `k`, which begins at `from`, to `to`.
///
/// # Safety
/// The operand has these elements; `to` is writable for `n` and does not overlap them.
pub(super) unsafe fn move_into<T: Copy>(
    nest: &Nest, k: usize, at: usize, n: usize, from: *const T, to: *mut T,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { moved::<T, true>(nest, k, at, n, from.cast_mut(), to) }
}

/// Copies `n` elements from `from` to those of operand `k` from row-major index `at` on; it begins at `to`.
///
/// # Safety
/// The operand has these elements, and `from` has `n`; they do not overlap.
pub(super) unsafe fn move_out_of<T: Copy>(
    nest: &Nest, k: usize, at: usize, n: usize, from: *const T, to: *mut T,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { moved::<T, false>(nest, k, at, n, to, from.cast_mut()) }
}

/// Copies from the operand to the tile if `IN`, else from the tile to the operand.
///
/// # Safety
/// As for [`move_into`] and [`move_out_of`].
unsafe fn moved<T: Copy, const IN: bool>(
    nest: &Nest, k: usize, at: usize, n: usize, operand: *mut T, tile: *mut T,
) {
    let inner = nest.inner();
    // SAFETY: guaranteed by the caller; rows, and what is before and behind them, make up the elements.
    unsafe {
        if nest.rank == 1 || inner > SHORT_ROW || n < 4 * inner {
            return runs::<T, IN>(nest, k, at, n, operand, tile);
        }
        let above = nest.dims[nest.rank - 2];
        if nest.rank > 2 && above <= SHORT_ROW && n >= 4 * above * inner {
            return blocks::<T, IN>(nest, k, at, n, operand, tile);
        }
        let head = (inner - at % inner) % inner;
        let rows = (n - head) / inner;
        runs::<T, IN>(nest, k, at, head, operand, tile);
        macro_rules! of_length {
            ($($length:literal)*) => {
                match inner {
                    $($length => {
                        short_rows::<T, IN, $length>(nest, k, (at + head) / inner, rows, operand, tile.add(head))
                    })*
                    _ => {}
                }
            };
        }
        of_length!(2 3 4 5 6 7 8);
        let done = head + rows * inner;
        runs::<T, IN>(nest, k, at + done, n - done, operand, tile.add(done));
    }
}

/// [`moved`] for blocks of the two innermost axes.
///
/// # Safety
/// As for [`moved`].
unsafe fn blocks<T: Copy, const IN: bool>(
    nest: &Nest, k: usize, at: usize, n: usize, operand: *mut T, tile: *mut T,
) {
    let last = nest.rank - 1;
    let (inner, size) = (nest.dims[last], nest.dims[last] * nest.dims[last - 1]);
    let mut places = [0isize; BLOCK];
    for (i, place) in places[..size].iter_mut().enumerate() {
        *place =
            (i / inner) as isize * nest.strides[k][last - 1] + (i % inner) as isize * nest.strides[k][last];
    }
    let head = (size - at % size) % size;
    let count = (n - head) / size;
    let down = nest.strides[k][last - 2];
    let mut walk = nest.outer_walk(last - 1, [k], (at + head) / size, count);
    // SAFETY: the blocks, and what is before and behind them, lie inside the operand and the tile, by the
    // caller's word.
    unsafe {
        runs::<T, IN>(nest, k, at, head, operand, tile);
        let mut to = tile.add(head);
        while let Some(([position], blocks)) = walk.step() {
            for i in 0..blocks {
                let operand = operand.offset(position + i as isize * down);
                for (j, &place) in places[..size].iter().enumerate() {
                    if IN {
                        *to.add(j) = *operand.offset(place);
                    } else {
                        *operand.offset(place) = *to.add(j);
                    }
                }
                to = to.add(size);
            }
        }
        let done = head + count * size;
        runs::<T, IN>(nest, k, at + done, n - done, operand, tile.add(done));
    }
}

/// [`moved`] for any length of rows.
///
/// # Safety
/// As for [`moved`].
unsafe fn runs<T: Copy, const IN: bool>(
    nest: &Nest, k: usize, at: usize, n: usize, operand: *mut T, tile: *mut T,
) {
    let stride = nest.strides[k][nest.rank - 1];
    nest.runs([k], at, n, |&[position], done, length| {
        // SAFETY: the run lies inside the operand and the tile, by the caller's word.
        unsafe {
            let (operand, tile) = (operand.offset(position), tile.add(done));
            match stride {
                1 if IN => std::ptr::copy_nonoverlapping(operand, tile, length),
                1 => std::ptr::copy_nonoverlapping(tile, operand, length),
                0 if IN => std::slice::from_raw_parts_mut(tile, length).fill(*operand),
                _ if IN => (0..length).for_each(|i| *tile.add(i) = *operand.offset(i as isize * stride)),
                _ => (0..length).for_each(|i| *operand.offset(i as isize * stride) = *tile.add(i)),
            }
        }
    });
}

/// [`moved`] for `count` whole rows of `LENGTH` elements, from row `first` on.
///
/// # Safety
/// As for [`moved`].
unsafe fn short_rows<T: Copy, const IN: bool, const LENGTH: usize>(
    nest: &Nest, k: usize, first: usize, count: usize, operand: *mut T, mut tile: *mut T,
) {
    let (step, down) = (nest.strides[k][nest.rank - 1], nest.strides[k][nest.rank - 2]);
    let mut walk = nest.outer_walk(nest.rank - 1, [k], first, count);
    while let Some(([position], rows)) = walk.step() {
        // SAFETY: the rows lie inside the operand and the tile, by the caller's word.
        unsafe {
            let operand = operand.offset(position);
            let row =
                |i: usize| (operand.offset(i as isize * down), tile.add(i * LENGTH).cast::<[T; LENGTH]>());
            match step {
                1 if IN => (0..rows).map(row).for_each(|(x, t)| t.write(x.cast::<[T; LENGTH]>().read())),
                1 => (0..rows).map(row).for_each(|(x, t)| x.cast::<[T; LENGTH]>().write(t.read())),
                0 if IN => (0..rows).map(row).for_each(|(x, t)| t.write([*x; LENGTH])),
                _ if IN => (0..rows).map(row).for_each(|(x, t)| {
                    t.write(std::array::from_fn(|j| *x.offset(j as isize * step)));
                }),
                _ => (0..rows).map(row).for_each(|(x, t)| {
                    let values = t.read();
                    (0..LENGTH).for_each(|j| *x.offset(j as isize * step) = values[j]);
                }),
            }
            tile = tile.add(rows * LENGTH);
        }
    }
}
