//! Gathers of elements by index, and their transposes, which add elements by index.
//!
//! An array is viewed as contiguous `[before, length, after]` around the indexed axis. Additions happen in
//! index order: the output is cut into chunks, and each chunk's thread adds every contribution to it.

use crate::array::buffer::{collect_at_most, with_capacity};
use crate::array::dtype::Truth;
use crate::cpu::pointwise::copy::copy_into;
use crate::cpu::prelude::*;
use crate::cpu::product::vector::Arithmetic;
use crate::cpu::reduce::axis::around;
use crate::dispatch_width;
use std::sync::atomic::{AtomicBool, Ordering};

/// Minimum number of elements per thread.
const GRAIN: usize = 1 << 15;
/// Maximum number of stretches (ranges of rows) that an axis is cut into; one thread adds into each.
const STRETCHES: usize = 64;

/// Returns the indices as positions in `0..length`; negative ones count from the end.
pub fn positions(index: &Array, length: usize) -> Result<Vec<usize>> {
    let unsigned = index.dtype().is_unsigned();
    let index = cast(index, DType::I64)?;
    let given = index.slice::<i64>()?;
    let n = length as i64;
    // An unsigned index that is negative as int64 is too large, so it is not wrapped.
    let wrap = if unsigned { 0 } else { n };
    let mut found = with_capacity(given.len())?;
    let to = Shared::new(found.as_mut_ptr());
    let outside = AtomicBool::new(false);
    parallel_for(given.len(), GRAIN, |range| {
        // SAFETY: ranges are disjoint and within the capacity.
        let to = unsafe { to.part(range.start, range.len()) };
        let mut inside = true;
        for (to, &i) in to.iter_mut().zip(&given[range]) {
            let wrapped = if i < 0 { i.wrapping_add(wrap) } else { i };
            inside &= wrapped >= 0 && wrapped < n;
            *to = wrapped as usize;
        }
        outside.fetch_or(!inside, Ordering::Relaxed);
    });
    // SAFETY: the capacity is large enough, and the ranges above wrote all elements.
    unsafe { found.set_len(given.len()) };
    if !outside.into_inner() {
        return Ok(found);
    }
    let first = given.iter().find(|&&i| i >= n || i < -wrap).copied().unwrap_or_default();
    let first = if unsigned { i128::from(first as u64) } else { first.into() };
    Err(Error::index(format!("index {first} is out of range for an axis of length {length}")))
}

/// Returns a tensor of `fill` that contains `x`: `out[start + step * i] = x[i]` on every axis.
pub fn pad(x: &Array, shape: &Shape, starts: &[usize], steps: &[isize], fill: f64) -> Result<Array> {
    let out = Array::full(*shape, fill, x.dtype())?;
    copy_into(&out.slice_view(starts, steps, &x.shape())?, x)?;
    Ok(out)
}

/// Computes `out[.., i.., ..] = x[.., index[i..], ..]`: the index's axes replace `axis`.
pub fn take(x: &Array, index: &Array, axis: usize) -> Result<Array> {
    let rows = positions(index, x.dim(axis))?;
    let mut dims = x.shape().to_vec();
    dims.splice(axis..=axis, index.shape().iter());
    let out = Array::empty(Shape::new(&dims)?, x.dtype(), Device::Cpu)?;
    let x = contiguous(x)?;
    let (before, length, after) = around(&x.shape(), axis);
    let bytes = after * x.dtype().size();
    if before * rows.len() * bytes == 0 {
        return Ok(out);
    }
    let (from, to) = (Shared::new(x.buffer().ptr()), Shared::new(out.buffer().ptr()));
    let first = x.offset() * x.dtype().size();
    parallel_for(before * rows.len(), (GRAIN / after).max(1), |range| {
        for k in range {
            let source = (k / rows.len() * length + rows[k % rows.len()]) * bytes + first;
            // SAFETY: positions were checked, so both rows lie inside their buffers; `k` writes its own row.
            unsafe { std::ptr::copy_nonoverlapping(from.get().add(source), to.get().add(k * bytes), bytes) };
        }
    });
    Ok(out)
}

/// The transpose of [`take`]: adds the rows of `g` into zeros of `shape`.
pub fn take_add(g: &Array, index: &Array, axis: usize, shape: &Shape) -> Result<Array> {
    let rows = positions(index, shape.at(axis))?;
    let wide = cast(g, accumulator(g.dtype()))?;
    let mut out = Array::empty(*shape, wide.dtype(), Device::Cpu)?;
    let sizes = around(shape, axis);
    dispatch!(@ wide.dtype(), T, add_rows::<T>(&wide, &mut out, &rows, sizes)?;
        DType::F64 => f64, DType::F32 => f32, _ => i64);
    cast(&out, g.dtype())
}

/// Returns the dtype that sums accumulate in.
fn accumulator(dtype: DType) -> DType {
    if dtype.is_float() { dtype.compute() } else { DType::I64 }
}

/// Returns the indices of `rows`, stably sorted by stretch of `each` rows, and where each stretch begins.
pub(crate) fn by_stretch(rows: &[usize], length: usize, each: usize) -> Result<(Vec<usize>, Vec<usize>)> {
    let count = length.div_ceil(each);
    let mut starts = filled(0, count + 1)?;
    rows.iter().for_each(|row| starts[row / each + 1] += 1);
    (1..=count).for_each(|i| starts[i] += starts[i - 1]);
    let mut next = collect_at_most(starts.len(), starts.iter().copied())?;
    let mut order = filled(0, rows.len())?;
    for (k, row) in rows.iter().enumerate() {
        order[next[row / each]] = k;
        next[row / each] += 1;
    }
    Ok((order, starts))
}

/// Adds rows of `g` into a cleared `out`, in order. Each chunk owns some columns of a stretch of output rows:
/// it clears them and adds to them. So memory is traversed once, threads never write the same element, and
/// sums do not depend on how the output is cut.
fn add_rows<T: Element + Arithmetic>(
    g: &Array, out: &mut Array, rows: &[usize], (before, length, after): (usize, usize, usize),
) -> Result<()> {
    if before * length * after == 0 {
        return Ok(());
    }
    let from = g.slice::<T>()?;
    let to = Shared::new(out.slice_mut::<T>()?.as_mut_ptr());
    let each = length.div_ceil(STRETCHES).max(GRAIN / after).clamp(1, length);
    let (order, starts) = by_stretch(rows, length, each)?;
    let stretches = starts.len() - 1;
    // If there are few stretches, their columns are cut, too.
    let blocks = if before * stretches < STRETCHES / 4 { after.div_ceil(GRAIN / 4) } else { 1 };
    let columns = after.div_ceil(blocks);
    parallel_for(before * stretches * blocks, 1, |range| {
        for piece in range {
            let (block, stretch) = (piece % blocks, piece / blocks % stretches);
            let b = piece / blocks / stretches;
            let (first, count) = (block * columns, columns.min(after - (block * columns).min(after)));
            // SAFETY: the rows lie inside `out`, and only this chunk writes these columns of them.
            let row = |row: usize| unsafe { to.part((b * length + row) * after + first, count) };
            let (start, end) = (stretch * each, length.min((stretch + 1) * each));
            if count == after {
                // SAFETY: as above; the rows are adjacent.
                unsafe { to.part((b * length + start) * after, (end - start) * after) }.fill(T::default());
            } else {
                (start..end).for_each(|r| row(r).fill(T::default()));
            }
            for &k in &order[starts[stretch]..starts[stretch + 1]] {
                let source = &from[(b * rows.len() + k) * after + first..][..count];
                row(rows[k]).iter_mut().zip(source).for_each(|(t, &s)| *t = T::plus(*t, s));
            }
        }
    });
    Ok(())
}

/// Returns the shape of the part of an array of `shape` that `index` can reach: `index` but for `axis`.
fn reached(shape: &Shape, index: &Shape, axis: usize) -> Shape {
    index.with(axis, shape.at(axis))
}

/// Returns a view of the first elements of `x` along every axis, as many as `shape` says.
fn corner(x: &Array, shape: &Shape) -> Result<Array> {
    x.slice_view(&vec![0; shape.rank()], &vec![1; shape.rank()], shape)
}

/// Computes `out[i, j, ..] = x[index[i, j, ..], j, ..]` for axis 0, and so on.
pub fn gather(x: &Array, index: &Array, axis: usize) -> Result<Array> {
    let x = corner(x, &reached(&x.shape(), &index.shape(), axis))?;
    let picks = positions(index, x.dim(axis))?;
    let out = Array::empty(index.shape(), x.dtype(), Device::Cpu)?;
    if !x.is_contiguous() && picks.len() < x.numel() {
        pick_where_it_lies(&x, &picks, axis, &out)?;
        return Ok(out);
    }
    let x = contiguous(&x)?;
    let (_, length, after) = around(&x.shape(), axis);
    let count = index.dim(axis);
    dispatch_width!(x.dtype().size(), T => {
        let start = |a: &Array| a.buffer().ptr().cast::<T>().wrapping_add(a.offset());
        // SAFETY: `x` is contiguous, with elements of this size.
        let from = unsafe { std::slice::from_raw_parts(start(&x), x.numel()) };
        let to = Shared::new(start(&out));
        parallel_for(picks.len() / after.max(1), (GRAIN / 4).div_ceil(after.max(1)), |range| {
            for line in range {
                let block = line / count * length;
                // SAFETY: every line is in bounds and written once.
                let to = unsafe { to.part(line * after, after) };
                for (column, (to, &pick)) in to.iter_mut().zip(&picks[line * after..]).enumerate() {
                    *to = from[(block + pick) * after + column];
                }
            }
        });
    });
    Ok(out)
}

/// [`gather`] without making a strided `x` contiguous, for fewer elements than `x` has.
fn pick_where_it_lies(x: &Array, picks: &[usize], axis: usize, out: &Array) -> Result<()> {
    let mut strides = x.strides();
    let along = std::mem::take(&mut strides[axis]);
    let line = x.with_layout(out.shape(), &strides, x.offset())?;
    let nest = Nest::in_memory_order(&out.shape(), &[out, &line]);
    let (step, line_step) = (nest.strides[0][nest.rank - 1], nest.strides[1][nest.rank - 1]);
    dispatch_width!(x.dtype().size(), T => {
        let from = Shared::new(x.buffer().ptr().cast::<T>().wrapping_add(x.offset()));
        let to = Shared::new(out.buffer().ptr().cast::<T>().wrapping_add(out.offset()));
        parallel_for(picks.len(), GRAIN / 4, |range| {
            nest.runs([0, 1], range.start, range.len(), |&[place, start], _, run| {
                for i in 0..run as isize {
                    let place = place + i * step;
                    // SAFETY: positions were checked; `out` is contiguous, so `place` is an index of `picks`.
                    unsafe {
                        let pick = picks[place as usize] as isize * along;
                        *to.get().offset(place) = *from.get().offset(start + i * line_step + pick);
                    }
                }
            });
        });
    });
    Ok(())
}

/// The transpose of [`gather`]: adds the elements of `g` into zeros of `shape`.
pub fn scatter_add(g: &Array, index: &Array, axis: usize, shape: &Shape) -> Result<Array> {
    let picks = positions(index, shape.at(axis))?;
    let part = reached(shape, &index.shape(), axis);
    let wide = cast(g, accumulator(g.dtype()))?;
    let mut sums = Array::empty(part, wide.dtype(), Device::Cpu)?;
    let (_, length, after) = around(&part, axis);
    let sizes = [length, index.dim(axis), after];
    dispatch!(@ wide.dtype(), T, add_each::<T>(&wide, &mut sums, &picks, sizes)?;
        DType::F64 => f64, DType::F32 => f32, _ => i64);
    let sums = cast(&sums, g.dtype())?;
    if part == *shape {
        return Ok(sums);
    }
    let out = Array::full(*shape, 0.0, g.dtype())?;
    copy_into(&corner(&out, &part)?, &sums)?;
    Ok(out)
}

/// Adds elements of `g` into cleared `sums`. A chunk owns blocks before the axis or, if few, a stretch of it.
fn add_each<T: Element + Arithmetic>(
    g: &Array, sums: &mut Array, picks: &[usize], [length, count, after]: [usize; 3],
) -> Result<()> {
    if length * after == 0 {
        return Ok(());
    }
    let from = g.slice::<T>()?;
    let to = sums.slice_mut::<T>()?;
    let blocks = to.len() / (length * after);
    let stretches = if blocks < STRETCHES / 4 { (length * after / GRAIN).clamp(1, STRETCHES / 4) } else { 1 };
    let each = length.div_ceil(stretches);
    let to = Shared::new(to.as_mut_ptr());
    let work = (length + count) * after / stretches;
    parallel_for(blocks * stretches, GRAIN.div_ceil(work), |range| {
        for piece in range {
            let (block, first) = (piece / stretches, (piece % stretches * each).min(length));
            let own = each.min(length - first);
            // SAFETY: the stretch lies inside `sums`, and no other chunk owns it.
            let to = unsafe { to.part((block * length + first) * after, own * after) };
            to.fill(T::default());
            let all = block * count * after..(block + 1) * count * after;
            let lines = picks[all.clone()].chunks_exact(after).zip(from[all].chunks_exact(after));
            for (picks, values) in lines {
                for (column, (&pick, &value)) in picks.iter().zip(values).enumerate() {
                    if let Some(row) = pick.checked_sub(first).filter(|&row| row < own) {
                        let slot = &mut to[row * after + column];
                        *slot = T::plus(*slot, value);
                    }
                }
            }
        }
    });
    Ok(())
}

/// Returns the positions of true elements in row-major order: int64 `[count, rank]`.
pub fn nonzero(mask: &Array) -> Result<Array> {
    let (mask, rank) = (contiguous(mask)?, mask.rank());
    let truth = mask.slice::<Truth>()?;
    let count = truth.iter().filter(|m| m.is_true()).count();
    let mut found = Array::empty(Shape::new(&[count, rank])?, DType::I64, Device::Cpu)?;
    let mut to = found.slice_mut::<i64>()?.chunks_exact_mut(rank.max(1));
    for (i, _) in truth.iter().enumerate().filter(|(_, m)| m.is_true() && rank > 0) {
        let Some(place) = to.next() else { break };
        place.iter_mut().zip(mask.shape().coordinates(i)).for_each(|(to, at)| *to = at as i64);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<T: Element>(values: &[T], dims: &[usize]) -> Result<Array> {
        Array::from_slice(values, Shape::new(dims)?)
    }

    #[test]
    fn take_and_its_transpose() -> Result<()> {
        let x = of(&[0f32, 1., 2., 3., 4., 5.], &[2, 3])?;
        let index = of(&[2i64, -3, 2], &[3])?;
        assert_eq!(take(&x, &index, 1)?.slice::<f32>()?, [2., 0., 2., 5., 3., 5.]);
        let back = take_add(&of(&[1f32; 6], &[2, 3])?, &index, 1, &x.shape())?;
        assert_eq!(back.slice::<f32>()?, [1., 0., 2., 1., 0., 2.]);
        assert!(take(&x, &of(&[3i64], &[1])?, 1).is_err());
        assert!(take(&x.permute(&[1, 0])?, &of(&[1i64], &[])?, 0)?.slice::<f32>()? == [1., 4.]);
        Ok(())
    }

    #[test]
    fn gather_and_its_transpose() -> Result<()> {
        let x = of(&[0f32, 1., 2., 3., 4., 5.], &[2, 3])?;
        let index = of(&[1i64, 0, 0, 1], &[2, 2])?;
        assert_eq!(gather(&x, &index, 0)?.slice::<f32>()?, [3., 1., 0., 4.]);
        let back = scatter_add(&of(&[1f32, 2., 3., 4.], &[2, 2])?, &index, 0, &x.shape())?;
        assert_eq!(back.slice::<f32>()?, [3., 2., 0., 1., 4., 0.]);
        assert_eq!(gather(&x, &of(&[-1i64, 0], &[2, 1])?, 1)?.slice::<f32>()?, [2., 3.]);
        Ok(())
    }

    #[test]
    fn positions_of_true_elements() -> Result<()> {
        let mask = of(&[true, false, false, true].map(Truth::from), &[2, 2])?;
        assert_eq!(nonzero(&mask)?.slice::<i64>()?, [0, 0, 1, 1]);
        Ok(())
    }
}
