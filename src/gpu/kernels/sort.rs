//! The order of elements on the GPU; the counterpart of `src/cpu/reduce/sort.rs`.
//!
//! Elements become whole numbers with their order (`shaders/lib/order.wgsl`). Short lines are sorted in the
//! memory of a workgroup, in one dispatch. Of long ones whose first elements alone are wanted, tiles keep as
//! many, until these fit. Others take a radix sort: for every four bits of the keys, count the digits of each
//! tile, add up the counts, and move keys and positions to their places.

use super::complex::part_as;
use super::gather::gather;
use super::parts::part_of;
use super::pieces::{by_lines, fit_wide, halves, in_a_piece, is_small, joined};
use super::prelude::*;
use super::reduce::Fold;
use super::scan::cumsum;
use crate::gpu::scalar;

/// The most elements of a line that a workgroup sorts, and the elements of a tile.
pub(super) const TILE: usize = 2048;
/// The digits of four bits.
const DIGITS: usize = 16;

/// The number of a dtype in `shaders/lib/order.wgsl`, and the bits of its keys that differ.
pub(super) fn kind_of(dtype: DType) -> (usize, std::ops::Range<usize>) {
    match dtype {
        DType::Bool => (0, 0..1),
        DType::U32 => (0, 0..32),
        DType::F32 => (2, 0..32),
        DType::BF16 => (3, 16..32),
        DType::F16 => (4, 16..32),
        _ => (1, 0..32),
    }
}

/// The dtype of the upper words of integers of two.
pub(super) fn upper_of(dtype: DType) -> DType {
    if dtype == DType::U64 { DType::U32 } else { DType::I32 }
}

/// Returns the positions of the first `count` elements along `axis` in ascending or descending order, as
/// int32. Equal elements keep their order; NaN counts as the largest.
pub fn argsort(x: &Array, axis: usize, descending: bool, count: usize) -> Result<Array> {
    let (length, shape) = (x.dim(axis), x.shape().with(axis, count));
    if !fit_wide(&[x])? {
        if x.numel() == length && !is_small(x)? && 2 * count <= in_a_piece(x)? {
            return of_two(x, axis, descending, count);
        }
        return by_lines("sort", &[x], axis..axis + 1, &|x| argsort(x[0], axis, descending, count));
    }
    if is_long(x.dtype()) {
        // By the lower words, and those in their order by the upper ones.
        let by_lower = argsort(&part_as(x, false, DType::U32)?, axis, descending, length)?;
        let upper = part_as(x, true, upper_of(x.dtype()))?;
        let order = argsort(&gather(&upper, &by_lower, axis)?, axis, descending, count)?;
        return gather(&by_lower, &order, axis);
    }
    if length <= TILE || count <= MOST_KEPT || shape.numel() == 0 {
        let out = Array::empty(shape, DType::I32, x.device())?;
        if out.numel() == 0 {
            return Ok(out);
        }
        first_of(x, &out, axis, descending)?;
        return Ok(out);
    }
    // The axis is moved to the end, and back from there.
    let last = x.rank() - 1;
    let mut order: Vec<u8> = (0..x.rank() as u8).collect();
    order[axis..].rotate_left(1);
    let x = &x.permute(&order)?;
    let keys = like(x, DType::I32)?;
    let mut run = Dispatch::new("sort", SORT, DType::I32);
    run.entry("keys").reads(x).reads(x).writes(&keys).writes(&keys);
    run.number("KIND", kind_of(x.dtype()).0).flag("GIVEN", false);
    lines_of(&mut run, x, &keys, last, length);
    run.words([0, 0, flip(descending), 1, length]);
    run.launch(x.numel().div_ceil(256))?;
    let sorted = radix(keys, length, kind_of(x.dtype()).1)?;
    let first = sorted.with_layout(x.shape().with(last, count), &sorted.strides()[..=last], 0)?;
    order.sort_unstable();
    order[axis..].rotate_right(1);
    contiguous(&first.permute(&order)?)
}

/// [`argsort`] of one line, of which little is wanted, by the first elements of both halves.
fn of_two(x: &Array, axis: usize, descending: bool, count: usize) -> Result<Array> {
    let [a, b] = halves(x.dim(axis), 1).map(|part| {
        let x = part_of(x, axis, part)?;
        let order = argsort(&x, axis, descending, count.min(part.1))?;
        let start = scalar(index_of(&x)?, part.0 as f64, DType::I32)?;
        Ok((gather(&x, &order, axis)?, Fold::Sum.combine(&order, &start)?))
    });
    let ((a, a_at), (b, b_at)) = (a?, b?);
    let order = argsort(&joined(&a, &b, axis)?, axis, descending, count)?;
    gather(&joined(&a_at, &b_at, axis)?, &order, axis)
}

/// All ones to invert the keys of a descending order, not the positions.
fn flip(descending: bool) -> usize {
    if descending { u32::MAX as usize } else { 0 }
}

const SORT: &str = shader!("lib/order", "lib/lines", "sort");

/// The most elements that a tile of a long line keeps.
const MOST_KEPT: usize = TILE / 2;

/// Writes the positions of the first elements along `axis` to `out`, as many as it is long.
fn first_of(x: &Array, out: &Array, axis: usize, descending: bool) -> Result<()> {
    let (count, lines) = (out.dim(axis), x.numel() / x.dim(axis));
    let mut whole = x.dim(axis);
    // Keys and positions that tiles have kept.
    let mut kept: Option<[Array; 2]> = None;
    loop {
        let tiles = whole.div_ceil(TILE);
        let (length, is_last) = (whole.div_ceil(tiles), tiles == 1);
        let size = length.next_power_of_two();
        let make = || Array::empty(Shape::new(&[lines, tiles * count])?, DType::I32, x.device());
        let next = if is_last { [out.clone(), out.clone()] } else { [make()?, make()?] };
        let mut run = Dispatch::new("sort", SORT, DType::I32);
        match &kept {
            Some([keys, positions]) => run.reads(keys).reads(positions),
            None => run.reads(x).reads(x),
        };
        let (kind, flip) = match kept {
            Some(_) => (0, 0),
            None => (kind_of(x.dtype()).0, flip(descending)),
        };
        run.entry("short").writes(&next[1]).writes(&next[0]);
        run.number("KIND", kind).flag("GIVEN", kept.is_some());
        lines_of(&mut run, x, out, axis, length);
        run.words([size, count, flip, tiles, whole]);
        run.launch((lines * tiles).div_ceil(TILE / size))?;
        if is_last {
            return Ok(());
        }
        (kept, whole) = (Some(next), tiles * count);
    }
}

/// Adds the parameters of the lines along `axis`, of tiles of this length.
fn lines_of(run: &mut Dispatch, x: &Array, out: &Array, axis: usize, length: usize) {
    let kept = Nest::over(&x.shape(), &[x, out], (0..x.rank()).filter(|&i| i != axis));
    run.nest(&kept, 2).words([kept.rank, kept.numel(), length, x.offset(), x.stride(axis) as usize]);
    run.words([out.offset(), out.stride(axis) as usize]);
}

/// The positions that sort a vector of int32 from `0..=most`, contiguous from the start of its buffer.
pub(super) fn order_up_to(x: &Array, most: usize) -> Result<Array> {
    let length = x.numel();
    if length <= TILE {
        return argsort(x, 0, false, length);
    }
    radix(x.clone(), length, 0..(usize::BITS - most.leading_zeros()) as usize)
}

/// Sorts the lines of `keys`, along its last axis, by these bits; returns the positions.
fn radix(mut keys: Array, length: usize, bits: std::ops::Range<usize>) -> Result<Array> {
    let lines = keys.numel() / length;
    let blocks = length.div_ceil(TILE);
    let (mut positions, mut is_first) = (keys.clone(), true);
    for shift in bits.step_by(4) {
        let (counts, tiles) = count(&keys, lines, length, shift)?;
        let ends = cumsum(&counts, 1)?;
        let (keys_out, positions_out) = (like(&keys, DType::I32)?, like(&keys, DType::I32)?);
        let mut run = Dispatch::new("radix_move", shader!("lib/totals", "radix_move"), DType::I32);
        run.reads(&keys)
            .reads(&positions)
            .reads(&ends)
            .writes(&keys_out)
            .writes(&positions_out)
            .flag("FIRST", is_first)
            .words([lines, length, tiles, shift, blocks]);
        run.launch(lines * blocks)?;
        (keys, positions, is_first) = (keys_out, positions_out, false);
    }
    Ok(positions)
}

/// How often each digit from bit `shift` on is in each tile of each line, `[lines, DIGITS * tiles]`, and the
/// number of tiles, some of which may be behind the end.
pub(super) fn count(keys: &Array, lines: usize, length: usize, shift: usize) -> Result<(Array, usize)> {
    let tiles = length.div_ceil(TILE);
    // Many counts are added up in whole blocks.
    let tiles = if tiles > 256 { tiles.next_multiple_of(64) } else { tiles };
    let counts = Array::empty(Shape::new(&[lines, DIGITS * tiles])?, DType::I32, keys.device())?;
    let mut run = Dispatch::new("radix_count", shader!("radix_count"), DType::I32);
    run.reads(keys).writes(&counts).words([lines, length, tiles, shift]);
    run.launch(lines * tiles)?;
    Ok((counts, tiles))
}
