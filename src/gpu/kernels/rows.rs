//! The distribution of rows over threads in the row kernels (softmax, normalisation, cross entropy).

use super::dispatch::{Dispatch, like};
use crate::array::Array;
use crate::array::dtype::DType;
use crate::error::Result;
use crate::gpu::shader::template::per_word;

/// The distribution of rows over threads.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// The number of rows.
    pub rows: usize,
    /// Elements per row.
    pub cols: usize,
    /// Threads per row.
    pub lanes: usize,
    /// Whether a row fits into the registers of its threads.
    fits: bool,
}

impl Rows {
    /// The rows of `x` over its last `axes` axes.
    pub fn of(x: &Array, axes: usize) -> Rows {
        let cols: usize = x.shape().iter().rev().take(axes).product();
        let rows = x.numel().checked_div(cols).unwrap_or(0);
        let lanes = if cols <= 16 * 16 {
            16
        } else if cols <= 16 * 64 {
            64
        } else {
            256
        };
        Rows { rows, cols, lanes, fits: cols <= 16 * lanes }
    }

    /// The number of workgroups for all rows.
    pub fn groups(&self) -> usize {
        self.rows.div_ceil(256 / self.lanes)
    }

    /// A dispatch of a row kernel with the entry points `rows` and `wide`.
    pub fn dispatch<'a>(&self, name: &'a str, source: &'static str) -> Dispatch<'a> {
        let mut run = Dispatch::new(name, source, DType::F32);
        run.entry(if self.fits { "rows" } else { "wide" });
        run.number("LANES", self.lanes).number("RADIX", self.lanes.isqrt());
        run
    }

    /// An array for the result of rows of `x`. Packed rows must start on whole words, or are written in
    /// float32.
    pub fn output(&self, x: &Array) -> Result<Array> {
        like(x, if self.cols.is_multiple_of(per_word(x.dtype())) { x.dtype() } else { DType::F32 })
    }
}
