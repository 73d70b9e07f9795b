//! Conversions between dtypes.

use super::drive::{LoopFn, kernel};
use super::fused::ElementFn;
use super::map::into_fresh;
use super::narrow::{narrow, widen};
use crate::array::dtype::Truth;
use crate::cpu::prelude::*;

/// Converts the elements to `dtype`, in row-major order: floats truncate toward zero to integers, and become
/// `true` if nonzero. An array of that dtype is only made contiguous.
pub fn cast(x: &Array, dtype: DType) -> Result<Array> {
    if x.dtype() == dtype { contiguous(x) } else { contiguous(&converted(x, dtype)?) }
}

/// Converts the elements to another dtype; the result has the layout of `x` if that is dense.
fn converted(x: &Array, dtype: DType) -> Result<Array> {
    let (kernel, rule, computes) = kernel_of(x.dtype(), dtype)?;
    // SAFETY: the kernel was chosen by both dtypes, and its rule is the one that it reads, if any.
    unsafe { into_fresh(&[x], dtype, kernel, (&raw const rule).cast(), computes) }
}

/// The loop from one dtype to another, neither of them complex.
pub fn cast_fn(from: DType, dtype: DType) -> Option<ElementFn> {
    if from.is_complex() || dtype.is_complex() || from == dtype {
        return None;
    }
    let (kernel, rule, computes) = kernel_of(from, dtype).ok()?;
    // SAFETY: the kernel was chosen by both dtypes, and its rule is the one that it reads, if any.
    let found = unsafe { ElementFn::new(kernel, rule, dtype) };
    Some(if computes { found.computing() } else { found })
}

/// The kernel from one dtype to another, the dtype that it reads as a rule, if any, and whether it is for the
/// dtypes in which these are computed.
fn kernel_of(from: DType, dtype: DType) -> Result<(LoopFn, DType, bool)> {
    let is_half = dtype.is_float() && dtype.compute() != dtype;
    let (mut rule, mut computes) = (dtype, false);
    let kernel: LoopFn = match (from, dtype) {
        _ if from.compute() == dtype => {
            rule = from;
            widen_kernel
        }
        _ if dtype.compute() == from => narrow_kernel,
        (DType::Bool, DType::U8 | DType::I8) => cast_kernel::<Truth, u8>,
        (DType::U8 | DType::I8, DType::Bool) => cast_kernel::<u8, Truth>,
        _ => {
            // The driver widens and narrows. Dtypes wider than `f32` are first rounded to odd on the way to
            // halves, so that they are not rounded twice.
            computes = true;
            match from.compute() {
                DType::I32 if is_half => odd_kernel::<i32>,
                DType::I64 if is_half => odd_kernel::<i64>,
                DType::U64 if is_half => odd_kernel::<u64>,
                DType::F64 if is_half => odd_kernel::<f64>,
                from => dispatch_computed!(from, A => dispatch_computed!(dtype, B => cast_kernel::<A, B>)),
            }
        }
    };
    Ok((kernel, rule, computes))
}

/// Converts the elements to the dtype that kernels compute `x` in, in row-major order.
pub fn computed(x: &Array) -> Result<Array> {
    cast(x, x.dtype().compute())
}

/// A kernel that widens; the rule is the dtype to widen from.
pub unsafe fn widen_kernel(from: *const u8, x: *const *const u8, out: *mut u8, n: usize) {
    // SAFETY: `ElementLoop` calls a kernel with the operands it was made for, which do not overlap.
    unsafe { widen(*from.cast::<DType>(), *x, out, n) }
}

/// A kernel that narrows; the rule is the dtype to narrow to.
unsafe fn narrow_kernel(to: *const u8, x: *const *const u8, out: *mut u8, n: usize) {
    // SAFETY: as above.
    unsafe { narrow(*to.cast::<DType>(), *x, out, n) }
}

kernel! {
    fn cast_kernel<A: Element, B: Element>(; x: A; out: B) by run_widest {
        for (y, &x) in out.iter_mut().zip(x) {
            *y = match (A::DTYPE, B::DTYPE) {
                (DType::U64, DType::F32 | DType::F64) => B::from_f64(rounded_once::<B>(x.to_i64() as u64)),
                (from, DType::I32) if from.is_float() => B::from_i64(truncated_i32(x.to_f64()).into()),
                (from, DType::I64) if from.is_float() => B::from_i64(truncated_i64(x.to_f64())),
                (from, _) if from.is_float() => B::from_f64(x.to_f64()),
                (_, _) => B::from_i64(x.to_i64()),
            };
        }
    }
}

/// Returns `value as i32`, which the compiler vectorises only with the limits spelled out.
#[inline(always)]
#[allow(clippy::eq_op)] // `value == value` is the NaN test that vectorises
fn truncated_i32(value: f64) -> i32 {
    let value = if value == value { value } else { 0.0 };
    let low = if value > -2147483648.0 { value } else { -2147483648.0 };
    let inside = if low < 2147483647.0 { low } else { 2147483647.0 };
    // SAFETY: `inside` is not NaN and lies between the limits.
    unsafe { inside.to_int_unchecked() }
}

/// [`truncated_i32`] for `i64`.
#[inline(always)]
#[allow(clippy::eq_op)] // `value == value` is the NaN test that vectorises
fn truncated_i64(value: f64) -> i64 {
    /// 2^63, the first number that is too large; `LAST` is the one before it.
    const EDGE: f64 = 9223372036854775808.0;
    const LAST: f64 = 9223372036854774784.0;
    let value = if value == value { value } else { 0.0 };
    let low = if value > -EDGE { value } else { -EDGE };
    let inside = if low < LAST { low } else { LAST };
    // SAFETY: `inside` is not NaN and lies between the limits.
    let truncated = unsafe { inside.to_int_unchecked() };
    if value >= EDGE { i64::MAX } else { truncated }
}

/// Returns `value` as an `f64` that converts to `B` without double rounding: for `f32`, the last bit that
/// fits is set if any lost bit was.
#[inline(always)]
fn rounded_once<B: Element>(value: u64) -> f64 {
    if B::DTYPE == DType::F64 || value >> 53 == 0 {
        return value as f64;
    }
    let lost = value & 0x7ff;
    ((value - lost) | (((lost != 0) as u64) << 11)) as f64
}

/// Rounds `value` to an `f32` whose last bit is set if `value` lies between two: rounding that again, to a
/// shorter type, equals rounding once.
#[inline(always)]
fn round_to_odd(value: f64) -> f32 {
    let near = value as f32;
    let back = near as f64;
    let below = near.to_bits() - (back.abs() > value.abs()) as u32;
    f32::from_bits(below | ((back != value) & !value.is_nan()) as u32)
}

kernel! {
    fn odd_kernel<A: Element>(; x: A; out: f32) by run_widest {
        for (y, &x) in out.iter_mut().zip(x) {
            *y = round_to_odd(match A::DTYPE {
                DType::U64 => rounded_once::<f32>(x.to_i64() as u64),
                DType::I64 => {
                    let size = rounded_once::<f32>(x.to_i64().unsigned_abs());
                    if x.to_i64() < 0 { -size } else { size }
                }
                _ => x.to_f64(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_between_all_pairs() -> Result<()> {
        for x in all_layouts(parts(), &[&[3, 171]])? {
            // Negative floats have no unsigned value.
            for to in parts().filter(|to| !(x.dtype().is_float() && to.is_unsigned())) {
                let expected: Vec<f64> = values(&x).iter().map(|&v| rounded(v, to)).collect();
                assert_eq!(values(&cast(&x, to)?), expected, "{x:?} to {to}");
            }
        }
        Ok(())
    }

    #[test]
    fn casts_to_halves_round_once() -> Result<()> {
        // Just above the midpoint of two halves, but on it once rounded to f32.
        for (dtype, unit) in [(DType::F16, 2f64.powi(-11)), (DType::BF16, 2f64.powi(-8))] {
            for sign in [1.0, -1.0] {
                let x = Array::full(shape(&[3]), sign * (1.0 + unit + 1e-12), DType::F64)?;
                assert_eq!(values(&cast(&x, dtype)?), [sign * (1.0 + 2.0 * unit); 3]);
                let x = Array::full(shape(&[1]), sign * (1.0 + unit), DType::F64)?;
                assert_eq!(values(&cast(&x, dtype)?), [sign]);
            }
        }
        let x = Array::from_slice(&[f64::INFINITY, f64::NAN, 1e300, 0.0, 1e-300], shape(&[5]))?;
        let got = values(&cast(&x, DType::F16)?);
        assert!(got[0] == f64::INFINITY && got[1].is_nan() && got[2] == f64::INFINITY);
        assert_eq!(got[3..], [0.0, 0.0]);
        Ok(())
    }

    #[test]
    fn numbers_beyond_the_range_of_integers_stop_at_its_ends() -> Result<()> {
        let wild = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, 2147483647.5, -2147483648.9];
        let more = [9.3e18, -9.3e18, 9223372036854774784.0, 0.9, -0.9, 2147483648.0];
        let all: Vec<f64> = wild.into_iter().chain(more).cycle().take(200).collect();
        let x = Array::from_slice(&all, shape(&[200]))?;
        let single = cast(&x, DType::F32)?;
        let (i32s, i64s) = (cast(&x, DType::I32)?, cast(&x, DType::I64)?);
        for (i, &v) in all.iter().enumerate() {
            assert_eq!((i32s.slice::<i32>()?[i], i64s.slice::<i64>()?[i]), (v as i32, v as i64), "{v}");
        }
        let (i32s, i64s) = (cast(&single, DType::I32)?, cast(&single, DType::I64)?);
        for (i, &v) in single.slice::<f32>()?.iter().enumerate() {
            assert_eq!((i32s.slice::<i32>()?[i], i64s.slice::<i64>()?[i]), (v as i32, v as i64), "{v}");
        }
        Ok(())
    }
}
