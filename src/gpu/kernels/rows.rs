//! The distribution of rows over threads in the row kernels (softmax, normalisation, cross entropy).

use super::copy::convert;
use crate::array::Array;
use crate::array::dtype::DType;
use crate::error::Result;
use crate::gpu::shader::template::{Template, per_word};

/// The distribution of rows over threads.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// The number of rows.
    pub rows: usize,
    /// Elements per row.
    pub cols: usize,
    /// Threads per row.
    pub lanes: u32,
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
        Rows { rows, cols, lanes, fits: cols <= 16 * lanes as usize }
    }

    /// The entry point of a row kernel.
    pub fn entry(&self) -> &'static str {
        if self.fits { "rows" } else { "wide" }
    }

    /// The number of workgroups for all rows.
    pub fn groups(&self) -> u64 {
        (self.rows as u64).div_ceil(256 / u64::from(self.lanes))
    }

    /// The part of a kernel's variant that depends on the rows.
    pub fn key(&self) -> u64 {
        u64::from(self.lanes) * 2 + u64::from(self.fits)
    }

    /// Sets the constants of a row kernel.
    pub fn set(&self, text: &mut Template) {
        let radix = [4, 8, 16][self.lanes.ilog2() as usize / 2 - 2];
        text.set("const LANES", format!("const LANES: u32 = {}u;", self.lanes));
        text.set("const RADIX", format!("const RADIX: u32 = {radix}u;"));
    }

    /// The dtype in which rows of `dtype` are written: packed rows must start on whole words.
    pub fn output(&self, dtype: DType) -> DType {
        if self.cols.is_multiple_of(per_word(dtype) as usize) { dtype } else { DType::F32 }
    }
}

/// Returns `x`, or a copy, contiguous from the start of its buffer.
pub(super) fn from_start(x: &Array) -> Result<Array> {
    if x.is_contiguous() && x.offset() == 0 { Ok(x.clone()) } else { convert(x, x.dtype()) }
}

pub(super) fn flag_if(condition: bool, bit: usize) -> usize {
    if condition { bit } else { 0 }
}
