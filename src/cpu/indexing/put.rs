//! Writes to elements of an array's memory that an index or a mask selects, at the cost of the written part.

use super::gather::{by_stretch, positions};
use crate::array::buffer::collect_at_most;
use crate::array::dtype::Truth;
use crate::cpu::pointwise::layout::overlaps;
use crate::cpu::prelude::*;
use crate::dispatch_width;

/// Minimum number of elements for which rows are written by several threads.
const MANY: usize = 4 * GRAIN;
/// Minimum width of rows for which distributing them among threads pays.
const WIDE: usize = 32;
/// Number of stretches (ranges of rows) that threads take.
const STRETCHES: usize = 64;

/// Memory viewed as adjacent rows of equal width.
struct Table {
    start: Shared<u8>,
    count: usize,
    width: usize,
}

impl Table {
    /// Views the elements of a contiguous array as rows.
    fn of(array: &Array, width: usize) -> Table {
        let start = array.buffer().ptr().wrapping_add(array.offset() * array.dtype().size());
        Table { start: Shared::new(start), count: array.numel() / width.max(1), width }
    }
}

/// Whether [`rows`] adds in this dtype: halves are better summed in float32 first, and bools are not added.
pub fn adds(dtype: DType) -> bool {
    !matches!(dtype, DType::Bool | DType::F16 | DType::BF16)
}

/// Writes the `n` rows of `width` elements of `value` to the rows of `to`, a contiguous array, that `index`,
/// `[n]`, selects, in order: the last write wins, or with `add` all are added.
pub fn rows(to: &Array, width: usize, value: &Array, index: &Array, add: bool) -> Result<()> {
    if !to.is_contiguous() {
        return Err(Error::value(format!(
            "internal: rows of {to:?}, which is not contiguous, are to be written"
        )));
    }
    let table = Table::of(to, width);
    let rows = positions(index, table.count)?;
    let value = contiguous(value)?;
    if value.numel() == 0 {
        return Ok(());
    }
    // A value in the table's memory is copied, so that it is not overwritten while it is read.
    let (to, value) = (&table, if overlaps(to, &value) { value.copied()? } else { value });
    match (add, value.dtype()) {
        (false, dtype) => dispatch_width!(dtype.size(), T => write::<T>(to, &value, &rows, 1, |_, s| s)),
        (true, DType::F32) => write::<f32>(to, &value, &rows, 1, |t, s| t + s),
        (true, DType::F64) => write::<f64>(to, &value, &rows, 1, |t, s| t + s),
        (true, DType::C64) => write::<f32>(to, &value, &rows, 2, |t, s| t + s),
        (true, DType::C128) => write::<f64>(to, &value, &rows, 2, |t, s| t + s),
        (true, DType::I64 | DType::U64) => write::<i64>(to, &value, &rows, 1, i64::wrapping_add),
        (true, DType::I32 | DType::U32) => write::<i32>(to, &value, &rows, 1, i32::wrapping_add),
        (true, DType::I16 | DType::U16) => write::<i16>(to, &value, &rows, 1, i16::wrapping_add),
        (true, _) => write::<i8>(to, &value, &rows, 1, i8::wrapping_add),
    }
}

/// Writes rows whose elements consist of `parts` numbers of type `T`.
fn write<T: Copy>(
    to: &Table, value: &Array, rows: &[usize], parts: usize, join: impl Fn(T, T) -> T + Copy + Sync,
) -> Result<()> {
    let width = to.width * parts;
    let from = Shared::new(value.buffer().ptr().cast::<T>().wrapping_add(value.offset() * parts));
    let to_start = Shared::new(to.start.get().cast::<T>());
    let one = |k: usize| {
        // SAFETY: positions were checked, `value` has as many rows, and one thread alone writes the row.
        unsafe {
            let (to, from) = (to_start.get().add(rows[k] * width), from.get().add(k * width));
            for i in 0..width {
                *to.add(i) = join(*to.add(i), *from.add(i));
            }
        }
    };
    if rows.len() * width < MANY || width < WIDE {
        (0..rows.len()).for_each(one);
        return Ok(());
    }
    let each = to.count.div_ceil(STRETCHES);
    let (order, starts) = by_stretch(rows, to.count, each)?;
    parallel_for(starts.len() - 1, 1, |stretches| {
        stretches.for_each(|s| order[starts[s]..starts[s + 1]].iter().copied().for_each(one));
    });
    Ok(())
}

/// Writes the only element of `value` to the elements of `to` where `mask`, of its shape, is true.
pub fn fill_where(to: &Array, mask: &Array, value: &Array) -> Result<()> {
    let (value, mask) = (contiguous(value)?, if overlaps(to, mask) { mask.copied()? } else { mask.clone() });
    let nest = Nest::in_memory_order(&to.shape(), &[to, &mask]);
    let last = nest.rank - 1;
    let (step, mask_step) = (nest.strides[0][last], nest.strides[1][last]);
    let truth = Shared::new(mask.buffer().ptr().wrapping_add(mask.offset()));
    dispatch_width!(to.dtype().size(), T => {
        // SAFETY: `value` has one element.
        let value = unsafe { value.buffer().ptr().cast::<T>().add(value.offset()).read() };
        let start = Shared::new(to.buffer().ptr().cast::<T>().wrapping_add(to.offset()));
        parallel_for(to.numel(), GRAIN, |range| {
            nest.runs([0, 1], range.start, range.len(), |&[t, m], _, run| {
                // SAFETY: runs stay inside both arrays, and ranges write disjoint elements.
                unsafe {
                    let (to, truth) = (start.get().offset(t), truth.get().cast_const().offset(m));
                    if step == 1 && mask_step == 1 {
                        let to = std::slice::from_raw_parts_mut(to, run);
                        let truth = std::slice::from_raw_parts(truth, run);
                        to.iter_mut().zip(truth).for_each(|(to, &m)| *to = if m != 0 { value } else { *to });
                    } else {
                        for i in 0..run as isize {
                            if *truth.offset(i * mask_step) != 0 {
                                *to.offset(i * step) = value;
                            }
                        }
                    }
                }
            });
        });
    });
    Ok(())
}

/// Returns, for each line along the last axis, which elements are the last occurrence of their value.
pub fn is_last(index: &Array) -> Result<Array> {
    let index = cast(index, DType::I64)?;
    let mut out = Array::full(index.shape(), 1.0, DType::Bool)?;
    let length = index.shape().iter().next_back().unwrap_or(1).max(1);
    let to = out.slice_mut::<Truth>()?.chunks_exact_mut(length);
    let mut places: Vec<(i64, usize)> = Vec::new();
    for (line, to) in index.slice::<i64>()?.chunks_exact(length).zip(to) {
        if line.is_sorted_by(|a, b| a < b) {
            continue;
        }
        if places.is_empty() {
            places = filled((0, 0), length)?;
        }
        places.iter_mut().zip(line.iter().zip(0..)).for_each(|(to, (&place, k))| *to = (place, k));
        places.sort_unstable();
        places.windows(2).filter(|w| w[0].0 == w[1].0).for_each(|w| to[w[0].1] = false.into());
    }
    Ok(out)
}

/// Returns the offsets of the elements over axes of these lengths and strides, in row-major order.
pub fn offsets(axes: &[(usize, isize)]) -> Result<Vec<i64>> {
    let mut all = filled(0i64, 1)?;
    for &(length, stride) in axes {
        let count = all.len().saturating_mul(length);
        let steps = |from: i64| (0..length as i64).map(move |i| from + i * stride as i64);
        all = collect_at_most(count, all.iter().copied().flat_map(steps))?;
    }
    Ok(all)
}

/// Returns `first[i] + second[j] + third[k]` in row-major order.
pub fn sums(first: &[i64], second: &[i64], third: &[i64]) -> Result<Array> {
    let count = first.len() * second.len() * third.len();
    let mut out = Array::empty(Shape::new(&[count])?, DType::I64, Device::Cpu)?;
    let lines = out.slice_mut::<i64>()?.chunks_exact_mut(third.len().max(1));
    let starts = first.iter().flat_map(|a| second.iter().map(move |b| a + b));
    for (start, to) in starts.zip(lines) {
        to.iter_mut().zip(third).for_each(|(to, c)| *to = start + c);
    }
    Ok(out)
}

/// Returns `first[i] + second[i, j, k] + third[k]` in row-major order, with `each` values of `j`.
pub fn sums_of_parts(first: &[i64], second: &[i64], each: usize, third: &[i64]) -> Result<Array> {
    let mut out = Array::empty(Shape::new(&[second.len()])?, DType::I64, Device::Cpu)?;
    let width = third.len().max(1);
    let lines = out.slice_mut::<i64>()?.chunks_exact_mut(width).zip(second.chunks_exact(width));
    for (line, (to, own)) in lines.enumerate() {
        let start = first[line / each.max(1)];
        to.iter_mut().zip(own.iter().zip(third)).for_each(|(to, (b, c))| *to = start + b + c);
    }
    Ok(out)
}
