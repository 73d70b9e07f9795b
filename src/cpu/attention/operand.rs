//! Strided operands of attention, and their copies to and from transposed blocks.

use super::product::Number;
use crate::arguments::attention::{inverse, memory_order};
use crate::array::Array;
use crate::array::dtype::{DType, Element};
use crate::array::shape::MAX_RANK;
use crate::cpu::pointwise::copy::{cast, transpose_panel};
use crate::cpu::run::threads::Shared;
use crate::error::Result;

/// A batch of matrices: the last two axes are rows and columns. Axes of length 1 broadcast, with stride 0.
#[derive(Clone, Copy)]
pub struct Operand<T> {
    start: Shared<T>,
    batch: [isize; MAX_RANK],
    row: isize,
    column: isize,
}

/// One matrix of a batch, from some row on.
#[derive(Clone, Copy)]
pub struct View<T> {
    /// The first element.
    pub data: Shared<T>,
    /// Elements from one row to the next.
    pub row: isize,
    /// Elements from one column to the next.
    pub column: isize,
}

impl<T: Element> Operand<T> {
    /// Returns the operand in `x`, which has at least two axes.
    pub fn new(x: &Array) -> Operand<T> {
        let rank = x.rank();
        // An axis of length 1 is broadcast, so its stride is 0 whatever the array says.
        let stride = |i: usize| if x.dim(i) == 1 { 0 } else { x.stride(i) };
        let mut batch = [0; MAX_RANK];
        batch[..rank - 2].iter_mut().enumerate().for_each(|(i, s)| *s = stride(i));
        Operand { start: Shared::new(x.ptr::<T>()), batch, row: stride(rank - 2), column: stride(rank - 1) }
    }

    /// Returns the matrix at these coordinates of the batch.
    pub fn at(&self, coordinates: &[usize; MAX_RANK]) -> View<T> {
        let offset: isize = coordinates.iter().zip(&self.batch).map(|(&c, &s)| c as isize * s).sum();
        View {
            data: Shared::new(self.start.get().wrapping_offset(offset)),
            row: self.row,
            column: self.column,
        }
    }
}

impl<T: Copy> View<T> {
    /// Returns the matrix from row `i` on.
    pub fn skipping(self, i: usize) -> View<T> {
        View { data: Shared::new(self.data.get().wrapping_offset(i as isize * self.row)), ..self }
    }

    /// Returns the strides of rows and columns.
    pub fn strides(self) -> (isize, isize) {
        (self.row, self.column)
    }

    /// Returns the strides of the transpose.
    pub fn transposed(self) -> (isize, isize) {
        (self.column, self.row)
    }

    /// Returns the element in row `i` and column `j`.
    ///
    /// # Safety
    /// The element exists.
    #[inline(always)]
    pub unsafe fn get(self, i: usize, j: usize) -> T {
        // SAFETY: the caller guarantees that the element exists.
        unsafe { *self.data.get().offset(i as isize * self.row + j as isize * self.column) }
    }
}

impl<T: Number> View<T> {
    /// Sets `to[column * width + row] = scale * self[row, column]` for the first `rows` rows, and 0 for the
    /// other `width - rows`: rows become vector lanes.
    ///
    /// # Safety
    /// The matrix has that many rows and columns; `to` has capacity for `columns * width` elements.
    pub unsafe fn transpose_into(self, to: *mut T, rows: usize, width: usize, columns: usize, scale: f64) {
        // SAFETY: the caller guarantees these sizes (`# Safety`).
        unsafe {
            if self.column == 1 {
                transpose_panel(to, width as isize, self.data.get().cast_const(), self.row, columns, rows);
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

    /// Sets `to[row * pitch + column] = scale * self[row, column]` for the first `rows` rows, and 0 in the
    /// rows up to `width` and in the columns up to `pitch`.
    ///
    /// # Safety
    /// The matrix has that many rows and columns; `to` has capacity for `width * pitch` elements.
    pub unsafe fn copy_into(
        self,
        to: *mut T,
        rows: usize,
        width: usize,
        columns: usize,
        pitch: usize,
        scale: f64,
    ) {
        // SAFETY: the caller guarantees these sizes (`# Safety`).
        unsafe {
            for i in 0..rows {
                let line = to.add(i * pitch);
                if self.column == 1 {
                    let from = self.data.get().offset(i as isize * self.row);
                    std::ptr::copy_nonoverlapping(from.cast_const(), line, columns);
                } else {
                    (0..columns).for_each(|j| *line.add(j) = self.get(i, j));
                }
                (columns..pitch).for_each(|j| *line.add(j) = T::default());
            }
            (rows * pitch..width * pitch).for_each(|at| *to.add(at) = T::default());
            scaled(to, rows * pitch, scale);
        }
    }

    /// Sets `self[row, column] = from[column * width + row]` for `rows` rows; undoes `transpose_into`.
    ///
    /// # Safety
    /// The matrix has that many rows and columns, and only the caller writes them.
    pub unsafe fn transpose_from(self, from: *const T, rows: usize, width: usize, columns: usize) {
        // SAFETY: the caller guarantees these sizes and sole access (`# Safety`).
        unsafe {
            if self.column == 1 {
                return transpose_panel(self.data.get(), self.row, from, width as isize, rows, columns);
            }
            for i in 0..rows {
                for j in 0..columns {
                    *self.data.get().offset(i as isize * self.row + j as isize * self.column) =
                        *from.add(j * width + i);
                }
            }
        }
    }
}

/// Multiplies `n` elements at `to` by `scale`.
///
/// # Safety
/// The elements exist, and only the caller accesses them.
unsafe fn scaled<T: Number>(to: *mut T, n: usize, scale: f64) {
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
