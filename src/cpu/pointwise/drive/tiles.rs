//! Copies elements between an operand of any layout and a tile, which is contiguous.
//!
//! Rows of a few elements, such as coordinates of points, are copied by loops over rows, in which the length
//! of a row is a constant: a loop within each of them would cost more than its elements.

use crate::array::nest::Nest;
use crate::cpu::pointwise::copy::strided;
use crate::cpu::run::isa::{PlainBody, run_plain};

/// The longest rows that are copied so.
pub(super) const SHORT_ROW: usize = 8;
/// The most elements of a block of several short axes, whose places are looked up in a table.
const BLOCK: usize = 64;

/// Whether a loop over rows pays for elements of `size` bytes: float16 and complex128 have no such loops.
pub(in crate::cpu::pointwise) fn is_short(nest: &Nest, size: usize) -> bool {
    nest.rank > 1 && nest.inner() <= SHORT_ROW && matches!(size, 1 | 4 | 8)
}

/// Copies the `n` elements from row-major index `at` on of operand `k`, which begins at `operand`, to a tile
/// if `IN`, else those of the tile to the operand.
///
/// # Safety
/// The operand and the tile have these elements, and do not overlap.
#[inline(never)]
pub(in crate::cpu::pointwise) unsafe fn copy_tile<T: Copy, const IN: bool>(
    nest: &Nest, k: usize, at: usize, n: usize, operand: *mut T, tile: *mut T,
) {
    let inner = nest.inner();
    // SAFETY: guaranteed by the caller; rows, and what is before and behind them, make up the elements.
    unsafe {
        if n < 4 * inner || !is_short(nest, size_of::<T>()) {
            return runs::<T, IN>(nest, k, at, n, operand, tile);
        }
        let above = nest.dims[nest.rank - 2];
        if IN && nest.rank > 2 && above <= SHORT_ROW && n >= 4 * above * inner {
            return blocks(nest, k, at, n, operand, tile);
        }
        let head = (inner - at % inner) % inner;
        let rows = (n - head) / inner;
        runs::<T, IN>(nest, k, at, head, operand, tile);
        macro_rules! of_length {
            ($($length:literal $wide:literal)*) => {
                match inner {
                    $($length => {
                        let (first, tile) = ((at + head) / inner, tile.add(head));
                        short_rows::<T, IN, $length, $wide>(nest, k, first, rows, operand, tile)
                    })*
                    _ => {}
                }
            };
        }
        of_length!(2 2 3 4 4 4 5 8 6 8 7 8 8 8);
        let done = head + rows * inner;
        runs::<T, IN>(nest, k, at + done, n - done, operand, tile.add(done));
    }
}

/// [`copy_tile`] into a tile by blocks of the two innermost axes.
///
/// # Safety
/// As for [`copy_tile`].
unsafe fn blocks<T: Copy>(nest: &Nest, k: usize, at: usize, n: usize, operand: *mut T, tile: *mut T) {
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
    let outer = Nest { rank: last - 1, ..*nest };
    let mut walk = outer.walk([k], (at + head) / size, count);
    // SAFETY: the blocks and what surrounds them lie inside operand and tile, by the caller's word.
    unsafe {
        runs::<T, true>(nest, k, at, head, operand, tile);
        let mut to = tile.add(head);
        while let Some(([position], blocks)) = walk.step() {
            for i in 0..blocks {
                let operand = operand.offset(position + i as isize * down);
                for (j, &place) in places[..size].iter().enumerate() {
                    *to.add(j) = *operand.offset(place);
                }
                to = to.add(size);
            }
        }
        let done = head + count * size;
        runs::<T, true>(nest, k, at + done, n - done, operand, tile.add(done));
    }
}

/// [`copy_tile`] for any length of rows.
///
/// # Safety
/// As for [`copy_tile`].
#[inline(never)]
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
                0 if IN => fill(tile, length, *operand),
                _ if IN => strided(tile, 1, operand, stride, length),
                _ => strided(operand, stride, tile, 1, length),
            }
        }
    });
}

/// Writes `value` to `n` elements of a tile.
///
/// # Safety
/// The tile has them.
pub(super) unsafe fn fill<T: Copy>(tile: *mut T, n: usize, value: T) {
    // SAFETY: guaranteed by the caller.
    run_plain(Fill { to: unsafe { std::slice::from_raw_parts_mut(tile, n) }, value });
}

/// One value in all elements of a part of a tile.
struct Fill<'a, T> {
    to: &'a mut [T],
    value: T,
}

impl<T: Copy> PlainBody for Fill<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.to.fill(self.value);
    }
}

/// [`copy_tile`] for `count` whole rows of `LENGTH` elements, from row `first` on. A row that repeats one
/// element is written as `WIDE` of them, the next power of two, before the next row.
///
/// # Safety
/// As for [`copy_tile`].
unsafe fn short_rows<T: Copy, const IN: bool, const LENGTH: usize, const WIDE: usize>(
    nest: &Nest, k: usize, first: usize, count: usize, operand: *mut T, mut tile: *mut T,
) {
    let (step, down) = (nest.strides[k][nest.rank - 1], nest.strides[k][nest.rank - 2]);
    let outer = Nest { rank: nest.rank - 1, ..*nest };
    let mut walk = outer.walk([k], first, count);
    while let Some(([position], rows)) = walk.step() {
        // SAFETY: the rows lie inside the operand and the tile, by the caller's word.
        unsafe {
            let operand = operand.offset(position);
            let row =
                |i: usize| (operand.offset(i as isize * down), tile.add(i * LENGTH).cast::<[T; LENGTH]>());
            let each = |(x, t): (*mut T, *mut [T; LENGTH])| {
                if IN {
                    t.write(std::array::from_fn(|j| *x.offset(j as isize * step)));
                } else {
                    (0..LENGTH).for_each(|j| *x.offset(j as isize * step) = (*t)[j]);
                }
            };
            match step {
                1 if IN => (0..rows).map(row).for_each(|(x, t)| t.write(x.cast::<[T; LENGTH]>().read())),
                1 => (0..rows).map(row).for_each(|(x, t)| x.cast::<[T; LENGTH]>().write(t.read())),
                0 if IN => {
                    // What a wide row writes behind it, later rows of this run overwrite.
                    let wide = rows.saturating_sub(WIDE);
                    run_plain(WideRows::<T, LENGTH, WIDE> { from: operand, down, to: tile, count: wide });
                    (wide..rows).map(row).for_each(each);
                }
                _ => (0..rows).map(row).for_each(each),
            }
            tile = tile.add(rows * LENGTH);
        }
    }
}

/// `count` rows of `WIDE` times the same element, `LENGTH` elements apart.
struct WideRows<T, const LENGTH: usize, const WIDE: usize> {
    from: *const T,
    down: isize,
    to: *mut T,
    count: usize,
}

impl<T: Copy, const LENGTH: usize, const WIDE: usize> PlainBody for WideRows<T, LENGTH, WIDE> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for i in 0..self.count {
            // SAFETY: [`short_rows`] leaves room for the last of them.
            unsafe {
                let value = *self.from.offset(i as isize * self.down);
                self.to.add(i * LENGTH).cast::<[T; WIDE]>().write([value; WIDE]);
            }
        }
    }
}
