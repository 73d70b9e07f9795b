//! Strided operands of attention, and their copies to and from transposed blocks.

use super::product::TileFloat;
use super::{Block, Tile};
use crate::arguments::attention::{inverse, memory_order};
use crate::cpu::pointwise::copy::transpose_panel;
use crate::cpu::prelude::*;

/// A batch of matrices: the last two axes are rows and columns. Axes of length 1 broadcast, with stride 0.
pub struct MatrixBatch<T> {
    /// The array, which keeps the memory.
    pub array: Array,
    start: Shared<T>,
    batch: [isize; MAX_RANK],
    row: isize,
    column: isize,
}

/// One matrix of a batch, from some row on.
#[derive(Clone, Copy)]
pub struct View<T> {
    /// The first element.
    pub data: *mut T,
    /// Elements from one row to the next.
    pub row: isize,
    /// Elements from one column to the next.
    pub column: isize,
}

impl<T: Element> MatrixBatch<T> {
    /// Returns the operand in `x`, which has at least two axes.
    pub fn new(x: &Array) -> MatrixBatch<T> {
        let rank = x.rank();
        // An axis of length 1 is broadcast, so its stride is 0 whatever the array says.
        let stride = |i: usize| if x.dim(i) == 1 { 0 } else { x.stride(i) };
        let mut batch = [0; MAX_RANK];
        batch[..rank - 2].iter_mut().enumerate().for_each(|(i, s)| *s = stride(i));
        let (row, column) = (stride(rank - 2), stride(rank - 1));
        MatrixBatch { array: x.clone(), start: Shared::new(x.ptr::<T>()), batch, row, column }
    }

    /// Returns `x` as an operand, converted to the compute dtype.
    pub fn read(x: &Array) -> Result<MatrixBatch<T>> {
        Ok(MatrixBatch::new(&converted(x, T::DTYPE)?))
    }

    /// Returns the matrix at these coordinates of the batch.
    pub fn at(&self, coordinates: &[usize; MAX_RANK]) -> View<T> {
        let offset: isize = coordinates.iter().zip(&self.batch).map(|(&c, &s)| c as isize * s).sum();
        View { data: self.start.get().wrapping_offset(offset), row: self.row, column: self.column }
    }

    /// Returns the matrix from the first query of a block on.
    pub fn queries(&self, block: &Block) -> View<T> {
        self.at(&block.at).skipping(block.query)
    }

    /// Returns the matrix from the first key of a tile on.
    pub fn keys(&self, tile: &Tile) -> View<T> {
        self.at(&tile.block.at).skipping(tile.key)
    }
}

impl<T: Copy> View<T> {
    /// Returns the matrix from row `i` on.
    fn skipping(self, i: usize) -> View<T> {
        View { data: self.data.wrapping_offset(i as isize * self.row), ..self }
    }

    /// Returns the transpose.
    pub fn transposed(self) -> View<T> {
        View { row: self.column, column: self.row, ..self }
    }

    /// Returns a pointer to the element in row `i` and column `j`.
    ///
    /// # Safety
    /// The element exists.
    #[inline(always)]
    pub unsafe fn place(self, i: usize, j: usize) -> *mut T {
        // SAFETY: the caller guarantees that the element exists.
        unsafe { self.data.offset(i as isize * self.row + j as isize * self.column) }
    }

    /// Returns the element in row `i` and column `j`.
    ///
    /// # Safety
    /// The element exists.
    #[inline(always)]
    pub unsafe fn get(self, i: usize, j: usize) -> T {
        // SAFETY: the caller guarantees that the element exists.
        unsafe { *self.place(i, j) }
    }
}

impl<T: TileFloat> View<T> {
    /// Sets `to[column * width + row] = scale * self[row, column]` for the queries of a block, and 0 for the
    /// other `width - queries`: rows become vector lanes.
    ///
    /// # Safety
    /// The matrix has that many rows and columns; `to` has capacity for `columns * width` elements.
    pub unsafe fn transpose_into(self, to: *mut T, block: &Block, columns: usize, scale: f64) {
        let Block { queries: rows, width, .. } = *block;
        // SAFETY: the caller guarantees these sizes (`# Safety`).
        unsafe {
            if self.column == 1 {
                transpose_panel(to, width as isize, self.data.cast_const(), self.row, columns, rows);
            } else {
                for j in 0..columns {
                    (0..rows).for_each(|i| *to.add(j * width + i) = self.get(i, j));
                }
            }
            for j in 0..columns {
                (rows..width).for_each(|i| *to.add(j * width + i) = T::default());
            }
            scaled(to, columns * width, scale);
        }
    }

    /// Sets `to[row * pitch + column] = scale * self[row, column]` for the queries of a block, and 0 in the
    /// rows up to `width` and in the columns up to `pitch`.
    ///
    /// # Safety
    /// The matrix has that many rows and columns; `to` has capacity for `width * pitch` elements.
    pub unsafe fn copy_into(self, to: *mut T, block: &Block, columns: usize, pitch: usize, scale: f64) {
        let Block { queries: rows, width, .. } = *block;
        // SAFETY: the caller guarantees these sizes (`# Safety`).
        unsafe {
            for i in 0..rows {
                let line = to.add(i * pitch);
                if self.column == 1 {
                    std::ptr::copy_nonoverlapping(self.place(i, 0).cast_const(), line, columns);
                } else {
                    (0..columns).for_each(|j| *line.add(j) = self.get(i, j));
                }
                (columns..pitch).for_each(|j| *line.add(j) = T::default());
            }
            (rows * pitch..width * pitch).for_each(|at| *to.add(at) = T::default());
            scaled(to, rows * pitch, scale);
        }
    }

    /// Sets `self[row, column] = from[column * width + row]` for a block's queries; undoes `transpose_into`.
    ///
    /// # Safety
    /// The matrix has that many rows and columns, and only the caller writes them.
    pub unsafe fn transpose_from(self, from: *const T, block: &Block, columns: usize) {
        let Block { queries: rows, width, .. } = *block;
        // SAFETY: the caller guarantees these sizes and sole access (`# Safety`).
        unsafe {
            if self.column == 1 {
                return transpose_panel(self.data, self.row, from, width as isize, rows, columns);
            }
            for i in 0..rows {
                (0..columns).for_each(|j| *self.place(i, j) = *from.add(j * width + i));
            }
        }
    }
}

/// Multiplies `n` elements at `to` by `scale`.
///
/// # Safety
/// The elements exist, and only the caller accesses them.
unsafe fn scaled<T: TileFloat>(to: *mut T, n: usize, scale: f64) {
    if scale != 1.0 {
        let (scale, zero) = (T::from_f64(scale), T::default());
        for i in 0..n {
            // SAFETY: the caller guarantees the elements.
            unsafe { *to.add(i) = scale.multiply_add::<false>(*to.add(i), zero) };
        }
    }
}

/// Returns `x` converted to `dtype`, in its memory order.
pub fn converted(x: &Array, dtype: DType) -> Result<Array> {
    if x.dtype() == dtype {
        return Ok(x.clone());
    }
    let order = memory_order(x);
    cast(&x.permute(&order)?, dtype)?.permute(&inverse(&order))
}
