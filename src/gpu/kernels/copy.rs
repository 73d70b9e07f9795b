//! Copies and casts on the GPU; the counterpart of `src/cpu/pointwise/copy.rs`.

use super::complex::{copy_pairs, is_paired, paired};
use super::map::lay_out;
use super::pieces::{by_pieces, by_views, fit};
use super::prelude::*;
use super::reduce::add_to;
use crate::array::buffer::Device;
use crate::array::shape::MAX_RANK;
use crate::gpu::runtime::pool::window_of;
use crate::gpu::shader::template::HALF;

/// The GPU that holds `x`; an internal error for an array on the CPU.
pub fn index_of(x: &Array) -> Result<u8> {
    match x.device() {
        Device::Gpu(index) => Ok(index),
        Device::Cpu => Err(Error::device(format!("internal: {x:?} given to a gpu kernel"))),
    }
}

/// Returns `x` if it is contiguous, else a contiguous copy.
pub fn contiguous(x: &Array) -> Result<Array> {
    cast(x, x.dtype())
}

/// Converts `x` to `dtype`: floats truncate to integers, and convert to bool by `!= 0`.
pub fn cast(x: &Array, dtype: DType) -> Result<Array> {
    if x.dtype() == dtype && x.is_contiguous() { Ok(x.clone()) } else { convert(x, dtype) }
}

/// Whether `x` holds `dtype`, contiguous from the start of its buffer.
pub fn is_flat(x: &Array, dtype: DType) -> bool {
    x.dtype() == dtype && x.is_contiguous() && x.offset() == 0
}

/// Returns `x`, or a copy, as `dtype` and contiguous from the start of its buffer.
pub fn flat(x: &Array, dtype: DType) -> Result<Array> {
    if is_flat(x, dtype) { Ok(x.clone()) } else { convert(x, dtype) }
}

/// Returns `x`, or a copy, contiguous from the start of its buffer.
pub fn from_start(x: &Array) -> Result<Array> {
    flat(x, x.dtype())
}

/// A new contiguous array with the elements of `x` as `dtype`.
pub fn convert(x: &Array, dtype: DType) -> Result<Array> {
    if is_paired(x) && dtype == x.dtype() && x.rank() < MAX_RANK {
        return paired(x, |pairs| convert(pairs, pairs.dtype()));
    }
    if x.dtype().is_float() && dtype.is_integer() && dtype.compute() != dtype {
        // The lower bits of a wider integer, as on the CPU.
        return convert(&convert(x, dtype.compute())?, dtype);
    }
    let out = like(x, dtype)?;
    convert_to(&out, x)?;
    Ok(out)
}

/// Writes `x`, broadcast to the shape of `out`, to `out`, which is contiguous from the start of its buffer
/// and fills it.
fn convert_to(out: &Array, x: &Array) -> Result<()> {
    by_pieces(out, &[x], &|out, x| convert_piece(out, x[0]))
}

/// [`convert_to`] for arrays that a kernel can bind.
fn convert_piece(out: &Array, x: &Array) -> Result<()> {
    let dtype = out.dtype();
    // Without a change of dtype, copy the bits, so that NaN payloads and -0 survive.
    let bits = if per_word(dtype) == 1 { DType::I32 } else { HALF };
    let keeps = x.dtype() == dtype && !is_long(dtype);
    let (from, to) = if keeps { (bits, bits) } else { (x.dtype(), dtype) };
    let long = [to, from].into_iter().find(|dtype| is_long(*dtype));
    let other = if from.is_float() || to.is_float() { DType::F32 } else { DType::I32 };
    let compute = long.unwrap_or(other);
    if let Some(plane) = Plane::of(out, x).filter(|_| long.is_none()) {
        let mut run = Dispatch::new("transpose", shader!("transpose"), compute);
        run.text.load("x", from).store("out", to);
        run.reads(x).writes(out);
        return plane.launch(run, x.offset());
    }
    let mut run = Dispatch::new("cast", shader!("map1"), compute);
    let nest = lay_out(&mut run, &out.shape(), &[x], &[from]);
    run.text.store_fours("out", to);
    run.writes(out).flows().nest(&nest, 1).words([nest.rank, out.numel(), x.offset()]).floats([0.0; 2]);
    run.launch(out.numel().div_ceil(1024))
}

/// The matrices of which a copy exchanges the axes.
struct Plane {
    /// The axes besides the two, with the strides of input and output.
    outer: Nest,
    rows: usize,
    columns: usize,
    /// The strides of a column in the input and of a row in the output.
    steps: [usize; 2],
}

/// The shortest axes that are worth tiles.
const TILED: usize = 8;

impl Plane {
    /// The plane of the output's last axis and the one along which the input has neighbours, if these differ
    /// and rows of the output start on words.
    fn of(out: &Array, x: &Array) -> Option<Plane> {
        let nest = Nest::new(&out.shape(), &[x, out]);
        let (last, columns) = (nest.rank - 1, nest.inner());
        let row = (0..last).find(|&i| nest.strides[0][i] == 1)?;
        let rows = nest.dims[row];
        if rows < TILED || columns < TILED || !columns.is_multiple_of(per_word(out.dtype())) {
            return None;
        }
        let mut outer = Nest::empty();
        for i in (0..last).filter(|&i| i != row) {
            outer.push(nest.dims[i], &[nest.strides[0][i], nest.strides[1][i]]);
        }
        let steps = [nest.strides[0][last] as usize, nest.strides[1][row] as usize];
        Some(Plane { outer, rows, columns, steps })
    }

    /// Adds the parameters and launches.
    fn launch(&self, mut run: Dispatch, offset: usize) -> Result<()> {
        let (across, down) = (self.columns.div_ceil(32), self.rows.div_ceil(32));
        let matrices = self.outer.numel();
        run.nest(&self.outer, 2).words([self.outer.rank, self.rows, self.columns]).words(self.steps);
        run.words([offset, across, down, matrices]);
        run.launch(across * down * matrices)
    }
}

/// Copies `src`, broadcast to the shape of `dst`, into the view `dst`. Both have the same dtype.
pub fn copy_into(dst: &Array, src: &Array) -> Result<()> {
    if src.dtype() != dst.dtype() {
        return Err(Error::dtype(format!("internal: copy of {src:?} into {dst:?}")));
    }
    if is_paired(dst) {
        return copy_pairs(dst, src);
    }
    let packed;
    let src = if src.buffer().same(dst.buffer()) {
        packed = convert(src, src.dtype())?;
        &packed
    } else {
        src
    };
    if is_whole(dst) {
        return convert_to(dst, src);
    }
    by_views(dst, src, &|dst, src| write_piece(dst, src, false))
}

/// Whether an array is the whole of its buffer: its last elements may be written together with the padding
/// behind them. Half a word may belong to another view.
pub(super) fn is_whole(x: &Array) -> bool {
    is_flat(x, x.dtype())
        && x.numel().is_multiple_of(per_word(x.dtype()))
        && 4 * words_of(x) == x.buffer().bytes()
        && window_of(x.buffer()).is_none()
}

/// Adds `x` to `sum` where that lies. Returns whether there is a kernel for it: they are floats of one dtype,
/// and do not overlap but by being the same.
pub fn add_into(sum: &Array, x: &Array) -> Result<bool> {
    let overlaps = x.buffer().same(sum.buffer()) && !x.is(sum);
    if sum.dtype() != x.dtype() || !sum.dtype().is_float() || sum.numel() == 0 || overlaps {
        return Ok(false);
    }
    if is_whole(sum) && fit([sum, x])? {
        return add_to(sum, x).map(|()| true);
    }
    if sum.dtype() != DType::F32 || x.is(sum) {
        return Ok(false);
    }
    by_views(sum, x, &|sum, x| write_piece(sum, x, true)).map(|()| true)
}

/// Writes to views that a kernel can bind, or adds float32 elements.
fn write_piece(dst: &Array, src: &Array, adds: bool) -> Result<()> {
    let nest = Nest::new(&dst.shape(), &[dst, src]);
    let (name, source) = match per_word(dst.dtype()) {
        1 if adds => ("add_into", shader!("lib/strided", "copy_into")),
        1 => ("copy_into", shader!("lib/strided", "copy_into")),
        _ => ("copy_into_halves", shader!("lib/strided", "copy_into_halves")),
    };
    let mut run = Dispatch::new(name, source, DType::F32);
    if adds {
        run.flag("ADD", true);
    }
    run.reads(src).writes(dst).nest(&nest, 2).words([nest.rank, dst.numel(), dst.offset(), src.offset()]);
    run.launch(dst.numel().div_ceil(256))
}
