//! Array creation from a formula of the index: ranges, identity and triangular matrices, constants.

use crate::cpu::pointwise::copy::{copy_into, duplicate};
use crate::cpu::prelude::*;

/// Returns a new array filled with `value`.
pub fn full(shape: Shape, value: f64, dtype: DType) -> Result<Array> {
    if shape.numel().saturating_mul(dtype.size()) < LARGE {
        return Array::full(shape, value, dtype);
    }
    let out = Array::empty(shape, dtype, Device::Cpu)?;
    fill(&out, value)?;
    Ok(out)
}

/// Bytes from which on an array is filled by all threads.
const LARGE: usize = 1 << 20;

/// Writes `value` to every element of `to`, through any strides.
pub fn fill(to: &Array, value: f64) -> Result<()> {
    copy_into(to, &Array::full(Shape::SCALAR, value, to.dtype())?)
}

/// Returns `start + i * step` for `i < n`. Integers are exact if `start` and `step` are whole.
pub fn arange(start: f64, step: f64, n: usize, dtype: DType) -> Result<Array> {
    if !dtype.is_float() && start.fract() == 0.0 && step.fract() == 0.0 {
        let (start, step) = (start as i64, step as i64);
        let value = |i: usize| start.wrapping_add(step.wrapping_mul(i as i64));
        return match dtype {
            DType::I32 => generate(n, |i| value(i) as i32),
            _ => cast(&generate(n, value)?, dtype),
        };
    }
    floats(n, dtype, |i| start + step * i as f64)
}

/// Returns `n` evenly spaced values from `start` to `stop`, both included.
pub fn linspace(start: f64, stop: f64, n: usize, dtype: DType) -> Result<Array> {
    let step = (stop - start) / n.saturating_sub(1).max(1) as f64;
    let value = |i: usize| {
        if i > 0 && i + 1 == n { stop } else { start + step * i as f64 }
    };
    floats(n, dtype, value)
}

/// Returns the values of a formula, computed in float64.
fn floats(n: usize, dtype: DType, value: impl Fn(usize) -> f64 + Sync) -> Result<Array> {
    match dtype {
        DType::F32 => generate(n, |i| value(i) as f32),
        _ => cast(&generate(n, value)?, dtype),
    }
}

/// Returns a matrix with ones where `column - row == diagonal`, zeros elsewhere.
pub fn eye(rows: usize, columns: usize, diagonal: i64, dtype: DType) -> Result<Array> {
    let mut out = Array::full(Shape::new(&[rows, columns])?, 0.0, dtype)?;
    dispatch!(dtype, T => {
        let to = out.slice_mut::<T>()?;
        for row in 0..rows {
            let column = row as i64 + diagonal;
            if (0..columns as i64).contains(&column) {
                to[row * columns + column as usize] = T::from_f64(1.0);
            }
        }
    });
    Ok(out)
}

/// Returns the upper (`column - row >= diagonal`) or lower (`<=`) triangle of the last two axes, else 0.
pub fn tri(x: &Array, diagonal: i64, upper: bool) -> Result<Array> {
    let out = duplicate(x)?;
    let rank = x.rank();
    if rank < 2 || x.numel() == 0 {
        return Ok(out);
    }
    let (rows, columns, size) = (x.dim(rank - 2), x.dim(rank - 1), x.dtype().size());
    let bytes = Shared::new(out.buffer().ptr().wrapping_add(out.offset() * size));
    parallel_for(x.numel() / columns, GRAIN.div_ceil(columns), |range| {
        for line in range {
            let edge = ((line % rows) as i64).saturating_add(diagonal);
            let (from, to) = if upper { (0, edge) } else { (edge.saturating_add(1), columns as i64) };
            let clamp = |c: i64| c.clamp(0, columns as i64) as usize;
            let (from, to) = (clamp(from), clamp(to));
            // SAFETY: columns `from..to` lie in this line, which only this range writes; zero bytes are 0.
            unsafe { bytes.part((line * columns + from) * size, to.saturating_sub(from) * size) }.fill(0);
        }
    });
    Ok(out)
}

fn generate<T: Element>(n: usize, value: impl Fn(usize) -> T + Sync) -> Result<Array> {
    let out = Array::empty(Shape::new(&[n])?, T::DTYPE, Device::Cpu)?;
    let to = Shared::new(out.ptr::<T>());
    parallel_for(n, GRAIN, |range| {
        // SAFETY: ranges are disjoint and inside the array.
        let part = unsafe { to.part(range.start, range.len()) };
        part.iter_mut().zip(range).for_each(|(y, i)| *y = value(i));
    });
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_matrices() -> Result<()> {
        assert_eq!(values(&arange(5.0, -2.0, 3, DType::I64)?), [5., 3., 1.]);
        assert_eq!(values(&arange(0.0, 0.5, 3, DType::F16)?), [0., 0.5, 1.]);
        assert_eq!(values(&linspace(0.0, 1.0, 5, DType::F64)?), [0., 0.25, 0.5, 0.75, 1.]);
        assert_eq!(values(&linspace(3.0, 1.0, 1, DType::F32)?), [3.]);
        assert_eq!(values(&eye(2, 3, 1, DType::F32)?), [0., 1., 0., 0., 0., 1.]);
        assert_eq!(values(&eye(2, 2, -1, DType::Bool)?), [0., 0., 1., 0.]);
        same_for_any_threads(|| arange(0.0, 1.0, 200_000, DType::F32))?;
        Ok(())
    }

    #[test]
    fn triangles_and_filling() -> Result<()> {
        for x in layouts(&[2, 3, 4], DType::F16)? {
            for diagonal in -4..=5 {
                for upper in [true, false] {
                    let got = values(&tri(&x, diagonal, upper)?);
                    for (i, v) in values(&x).into_iter().enumerate() {
                        let distance = (i % 4) as i64 - (i / 4 % 3) as i64;
                        let kept = if upper { distance >= diagonal } else { distance <= diagonal };
                        assert_eq!(got[i], if kept { v } else { 0.0 });
                    }
                }
            }
        }
        for to in layouts(&[5, 3], DType::I32)?.into_iter().take(3) {
            fill(&to, 7.0)?;
            assert_eq!(values(&to), [7.0; 15]);
        }
        Ok(())
    }
}
