//! New tensors on the GPU: constants, identity matrices, triangles; the counterpart of `src/cpu/create.rs`.

use super::complex::{by_parts, is_paired};
use super::copy::{convert, copy_into};
use super::parts::part_of;
use super::pieces::{by_lines, fit_wide, halves, in_line, is_small, joined};
use super::prelude::*;
use crate::array::buffer::Device;
use crate::cpu;
use crate::gpu::{scalar, storage_bytes, upload};

/// Sets every element of the view `dst` to `value`.
pub fn fill(dst: &Array, value: f64) -> Result<()> {
    copy_into(dst, &scalar(index_of(dst)?, value, dst.dtype())?)
}

/// A new array filled with `value`: always a copy, even if a shared constant has the same layout.
pub fn full(index: u8, shape: Shape, value: f64, dtype: DType) -> Result<Array> {
    convert(&scalar(index, value, dtype)?.expand(&shape)?, dtype)
}

/// `start + i * step` for `i < n`. Where both devices would not hold the same bits, the host computes it.
pub fn arange(index: u8, start: f64, step: f64, n: usize, dtype: DType) -> Result<Array> {
    storage_bytes(index, n, dtype)?;
    // Whole numbers that an int32 and, on the way to halves, a float32 hold.
    let most = f64::from(if dtype.is_float() { 1 << 24 } else { i32::MAX });
    let is_whole = |x: f64| x.fract() == 0.0 && x.abs() <= most && x.to_bits() != (-0f64).to_bits();
    if [start, step, start + step * n as f64].into_iter().all(is_whole) {
        let out = Array::empty(Shape::new(&[n])?, DType::I32, Device::Gpu(index))?;
        let (start, step) = (start as i64, step as i64);
        in_line(&out, &|first, piece| {
            let mut run = Dispatch::new("iota", shader!("iota"), DType::I32);
            let start = start + first as i64 * step;
            run.writes(piece).words([piece.numel(), start as usize, step as usize]);
            run.launch(piece.numel().div_ceil(256))
        })?;
        return cast(&out, dtype);
    }
    upload(&cpu::create::arange(start, step, n, dtype)?, index)
}

/// `n` evenly spaced values from `start` to `stop`, both included; computed on the host.
pub fn linspace(index: u8, start: f64, stop: f64, n: usize, dtype: DType) -> Result<Array> {
    storage_bytes(index, n, dtype)?;
    upload(&cpu::create::linspace(start, stop, n, dtype)?, index)
}

/// Uniform integers from the first bound to before the second, drawn on the host.
pub fn drawn(
    index: u8, shape: Shape, dtype: DType, [low, high]: [i64; 2], seed: u64, offset: u64,
) -> Result<Array> {
    storage_bytes(index, shape.numel(), dtype)?;
    upload(&cpu::random::randint(shape, dtype, low, high, seed, offset)?, index)
}

/// A matrix with ones where `column - row == diagonal` and zeros elsewhere.
pub fn eye(index: u8, rows: usize, columns: usize, diagonal: i64, dtype: DType) -> Result<Array> {
    let out = full(index, Shape::new(&[rows, columns])?, 0.0, dtype)?;
    let (first_row, first_column) = ((-diagonal).max(0) as usize, diagonal.max(0) as usize);
    let length = rows.saturating_sub(first_row).min(columns.saturating_sub(first_column));
    if length > 0 {
        let offset = first_row * columns + first_column;
        fill(&out.with_layout(Shape::new(&[length])?, &[columns as isize + 1], offset)?, 1.0)?;
    }
    Ok(out)
}

/// `x` with zeros above (`upper` false) or below (`upper` true) the given diagonal of the last two axes.
pub fn tri(x: &Array, diagonal: i64, upper: bool) -> Result<Array> {
    if is_paired(x) {
        return by_parts(x, |part| tri(part, diagonal, upper));
    }
    if !fit_wide(&[x])? {
        let (rows, columns) = (x.rank() - 2, x.rank());
        if is_small(x)? || x.numel() > x.dim(rows) * x.dim(rows + 1) {
            return by_lines("tri", &[x], rows..columns, &|x| tri(x[0], diagonal, upper));
        }
        let [a, b] =
            halves(x.dim(rows), 1).map(|part| tri(&part_of(x, rows, part)?, diagonal + part.0 as i64, upper));
        return joined(&a?, &b?, rows);
    }
    let out = like(x, x.dtype())?;
    let mut run = Dispatch::new("tri", shader!("tri"), x.dtype());
    run.lines(x, x.dim(x.rank() - 1), &x.strides(), true).fours(&out).flag("UPPER", upper);
    run.lengths(&x.shape()).strides(x).words([x.rank(), x.numel(), x.offset()]);
    run.words([diagonal.clamp(-(1 << 30), 1 << 30) as usize]);
    run.launch(x.numel().div_ceil(1024))?;
    Ok(out)
}
