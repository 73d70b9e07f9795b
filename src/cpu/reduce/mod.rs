//! Reductions over any set of axes: sum, product, largest, smallest.
//!
//! The input is read in memory order, whatever the order of its axes; `src/cpu/reduce/sweep.rs` has the
//! loops. Read next: `src/cpu/reduce/fold.rs`, and `src/cpu/reduce/axis.rs` for functions along one axis.

pub mod axis;
pub(crate) mod fold;
pub mod folding;
pub(crate) mod lines;
pub(crate) mod plan;
pub mod recurrence;
pub(crate) mod registers;
pub mod scan;
pub mod search;
mod small;
pub mod sort;
pub(crate) mod sweep;
pub mod truth;

use crate::array::dtype::Truth;
use crate::array::shape::Axes;
use crate::cpu::pointwise::cast::widen_kernel;
use crate::cpu::pointwise::copy::duplicate;
use crate::cpu::pointwise::drive::{LoopFn, kernel};
use crate::cpu::prelude::*;
pub use crate::cpu::reduce::axis::{argmax, argmin};
use crate::cpu::reduce::fold::{Fold, Max, Min, Prod, Sum};
use crate::cpu::reduce::plan::{Fill, SweepPlan};
use crate::cpu::reduce::small::Small;
use crate::cpu::reduce::sweep::{From, fold_all};

/// Returns the sum over `axes`, in the dtype of `x`; integers wrap, 0 for no elements.
pub fn sum(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    match x.dtype() {
        DType::I32 => folded::<i32, Sum>(x, None, axes, keepdim),
        DType::U64 => as_int64(x, |x| sum(x, axes, keepdim)),
        dtype if dtype.modular() == dtype => numeric::<Sum>(x, axes, keepdim),
        _ => modular(x, |x| sum(x, axes, keepdim)),
    }
}

/// Applies `f`, a sum or product, to uint64 read as int64, which has the same bits.
fn as_int64(x: &Array, f: impl FnOnce(&Array) -> Result<Array>) -> Result<Array> {
    let read = |x: &Array, dtype| x.bitcast(dtype)?.ok_or_else(|| wrong_dtype("reduction", dtype));
    read(&f(&read(x, DType::I64)?)?, DType::U64)
}

/// [`sum`] in the dtype that it is computed in: float32 for halves, whose range it may exceed.
pub fn total(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    if x.dtype().is_half() {
        converted::<f32, Sum>(x, widen_kernel, axes, keepdim)
    } else {
        sum(x, axes, keepdim)
    }
}

/// [`sum`], as int64 for bools and integers of less than 64 bits.
pub fn counted(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    match x.dtype() {
        DType::U64 => as_int64(x, |x| counted(x, axes, keepdim)),
        dtype => match to_int64(dtype) {
            Some(convert) => converted::<i64, Sum>(x, convert, axes, keepdim),
            None => numeric::<Sum>(x, axes, keepdim),
        },
    }
}

/// Returns the product over `axes`, as int64 for bools and narrower integers, which wrap; 1 for no elements.
pub fn prod(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    match x.dtype() {
        DType::U64 => as_int64(x, |x| prod(x, axes, keepdim)),
        dtype => match to_int64(dtype) {
            Some(convert) => converted::<i64, Prod>(x, convert, axes, keepdim),
            None => zeroed(x, numeric::<Prod>(x, axes, keepdim)?, axes, keepdim),
        },
    }
}

/// Products of floats, 0 where all factors are finite and one is 0, though a part of them is too large.
fn zeroed(x: &Array, found: Array, axes: Axes, keepdim: bool) -> Result<Array> {
    let dtype = found.dtype();
    let is_nan = dispatch!(dtype, T => found.slice::<T>()?.iter().any(|p| p.to_f64().is_nan()));
    if !is_nan {
        return Ok(found);
    }
    let mut products = duplicate(&cast(&found, DType::F64)?)?;
    let mut signs = duplicate(&cast(x, DType::F64)?)?;
    for v in signs.slice_mut::<f64>()?.iter_mut().filter(|v| v.is_finite() && **v != 0.0) {
        *v = v.signum();
    }
    let signs = numeric::<Prod>(&signs, axes, keepdim)?;
    for (p, &sign) in products.slice_mut::<f64>()?.iter_mut().zip(signs.slice::<f64>()?) {
        if p.is_nan() && sign == 0.0 {
            *p = sign;
        }
    }
    cast(&products, dtype)
}

/// Applies `f` to integers in int32 or int64, where sums and products have the same low bits; casts back.
pub(super) fn modular(x: &Array, f: impl FnOnce(&Array) -> Result<Array>) -> Result<Array> {
    match x.dtype().modular() {
        same if same == x.dtype() => f(x),
        wide => cast(&f(&cast(x, wide)?)?, x.dtype()),
    }
}

/// Returns the largest element over `axes`, NaN if there is one; "any" for bools.
pub fn max(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    extreme::<Max>(x, axes, keepdim)
}

/// Returns the smallest element over `axes`, NaN if there is one; "all" for bools.
pub fn min(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    extreme::<Min>(x, axes, keepdim)
}

fn extreme<F>(x: &Array, axes: Axes, keepdim: bool) -> Result<Array>
where
    F: Fold<u8> + Fold<u64> + Fold<i32> + Fold<i64> + Fold<f32> + Fold<f64>,
{
    match x.dtype() {
        DType::Bool | DType::U8 => folded::<u8, F>(x, None, axes, keepdim),
        DType::U64 => folded::<u64, F>(x, None, axes, keepdim),
        DType::I32 => folded::<i32, F>(x, None, axes, keepdim),
        narrow @ (DType::I8 | DType::U16 | DType::I16) => {
            cast(&converted::<i32, F>(x, widen_kernel, axes, keepdim)?, narrow)
        }
        DType::U32 => cast(&converted::<i64, F>(x, widen_kernel, axes, keepdim)?, DType::U32),
        _ => numeric::<F>(x, axes, keepdim),
    }
}

/// Reduces floats and int64 in their own dtype.
fn numeric<F: Fold<i64> + Fold<f32> + Fold<f64>>(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    match x.dtype() {
        DType::I64 => folded::<i64, F>(x, None, axes, keepdim),
        DType::F32 => folded::<f32, F>(x, None, axes, keepdim),
        DType::F64 => folded::<f64, F>(x, None, axes, keepdim),
        half if half.is_half() => cast(&converted::<f32, F>(x, widen_kernel, axes, keepdim)?, half),
        other => Err(wrong_dtype("reduction", other)),
    }
}

/// What converts bools and integers of less than 64 bits to int64.
fn to_int64(dtype: DType) -> Option<LoopFn> {
    Some(dispatch!(@ dtype, S, int64_kernel::<S>;
        DType::Bool => Truth, DType::U8 => u8, DType::I8 => i8, DType::U16 => u16, DType::I16 => i16,
        DType::U32 => u32, DType::I32 => i32;
        _other => return None))
}

/// A narrow integer.
trait Narrow: Copy {
    fn wide(self) -> i64;
}

macro_rules! narrow {
    ($($t:ty)*) => {
        $(impl Narrow for $t {
            #[inline(always)]
            fn wide(self) -> i64 {
                self.into()
            }
        })*
    };
}
narrow!(Truth u8 i8 u16 i16 u32 i32);

kernel! {
    fn int64_kernel<S: Narrow>(; x: S; out: i64) by run_widest {
        for (y, &x) in out.iter_mut().zip(x) {
            *y = x.wide();
        }
    }
}

/// The elements of an array, converted where a reduction reads them.
struct Converted<'a> {
    x: &'a Array,
    kernel: LoopFn,
}

// SAFETY: the array is only read.
unsafe impl Sync for Converted<'_> {}

impl Fill for Converted<'_> {
    unsafe fn fill(&self, from: usize, n: usize, to: *mut u8) {
        let dtype = self.x.dtype();
        let from = self.x.buffer().ptr().wrapping_add(from * dtype.size()).cast_const();
        // SAFETY: guaranteed by the caller; the kernel is for this dtype.
        unsafe { (self.kernel)((&raw const dtype).cast(), &raw const from, to, n) }
    }
}

/// [`folded`] of elements that this kernel converts to `T`; its rule is their dtype.
pub(super) fn converted<T: Element, F: Fold<T>>(
    x: &Array, kernel: LoopFn, axes: Axes, keepdim: bool,
) -> Result<Array> {
    folded::<T, F>(x, Some(kernel), axes, keepdim)
}

/// Reduces, with the result in the dtype of the accumulators. A kernel converts the elements, if need be.
fn folded<T: Element, F: Fold<T>>(
    x: &Array, kernel: Option<LoopFn>, axes: Axes, keepdim: bool,
) -> Result<Array> {
    // Bools reduced as bytes stay bools; when they are counted, they are numbers.
    let dtype = if x.dtype() == DType::Bool && T::DTYPE == DType::U8 { DType::Bool } else { T::DTYPE };
    let out = Array::empty(x.shape().reduced(axes, true), dtype, Device::Cpu)?;
    let small = if F::COMMON && kernel.is_none() { Small::<T, F>::new(x, axes, &out) } else { None };
    if let Some(small) = small {
        run_plain(small);
    } else if x.numel() == 0 {
        let to = out.buffer().ptr().cast::<T>();
        // SAFETY: the array is fresh and contiguous, with elements as large as `T`.
        unsafe { std::slice::from_raw_parts_mut(to, out.numel()) }.fill(F::START);
    } else {
        let dense = Nest::in_memory_order(&x.shape(), &[x]);
        let x = if dense.strides[0][dense.rank - 1] == 1 { x.clone() } else { duplicate(x)? };
        let plan = SweepPlan::new(&x, &out.expand(&x.shape())?);
        match kernel {
            None => fold_all::<T, F>(&plan, From::Memory(&x), &out)?,
            Some(kernel) => {
                fold_all::<T, F>(&plan, From::Fill(&Converted { x: &x, kernel }, x.offset()), &out)?;
            }
        }
    }
    without(out, &x.shape(), axes, keepdim)
}

/// The result without the axes that were reduced, unless they are kept.
fn without(out: Array, shape: &Shape, axes: Axes, keepdim: bool) -> Result<Array> {
    if keepdim {
        return Ok(out);
    }
    let shape = shape.reduced(axes, false);
    out.with_layout(shape, &shape.strides()[..shape.rank()], out.offset())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::dtype::Truth;

    /// Reduces by definition, in `f64`.
    fn naive(x: &Array, axes: Axes, start: f64, join: fn(f64, f64) -> f64) -> Vec<f64> {
        let (s, kept) = (x.shape(), x.shape().reduced(axes, true));
        let mut out = vec![start; kept.numel()];
        for (flat, v) in values(x).into_iter().enumerate() {
            let strides = s.strides();
            let at = (0..s.rank())
                .map(|i| if axes.contains(i) { 0 } else { flat / strides[i] as usize % s.at(i) })
                .zip(kept.strides())
                .map(|(i, stride)| i * stride as usize)
                .sum::<usize>();
            out[at] = join(out[at], v);
        }
        out
    }

    #[test]
    fn every_set_of_axes_agrees_with_the_definition() -> Result<()> {
        let shapes = [&[][..], &[7], &[3, 5], &[4, 3, 40], &[2, 600, 3], &[0, 4]];
        for x in all_layouts(parts().filter(|&d| d != DType::Bool), &shapes)? {
            let (rank, dtype) = (x.rank(), x.dtype());
            for bits in 0..1usize << rank {
                let axes: Axes = (0..rank).filter(|i| bits >> i & 1 == 1).collect();
                let got = sum(&x, axes, false)?;
                assert_eq!(got.shape(), x.shape().reduced(axes, false));
                let want = naive(&x, axes, 0.0, |a, b| a + b);
                for (g, w) in values(&got).iter().zip(&want) {
                    let w = if dtype.is_integer() { rounded(*w, dtype) } else { *w };
                    let tolerance = if dtype.size() == 2 { 0.01 } else { 1e-5 };
                    assert!((g - w).abs() <= tolerance * w.abs().max(20.0), "{x:?} {axes:?} {g} {w}");
                }
                if x.numel() > 0 {
                    let want = naive(&x, axes, f64::NEG_INFINITY, f64::max);
                    assert_eq!(values(&max(&x, axes, true)?), want);
                    let want = naive(&x, axes, f64::INFINITY, f64::min);
                    assert_eq!(values(&min(&x, axes, true)?), want);
                }
            }
        }
        Ok(())
    }

    #[test]
    fn long_sums_are_accurate_and_independent_of_threads() -> Result<()> {
        for (dims, axes) in [
            (&[1_000_003][..], Axes::one(0)),
            (&[1000, 700], Axes::one(0)),
            (&[1000, 700], Axes::one(1)),
            (&[300_000, 3], Axes::one(0)),
            (&[20, 100, 300], [0, 2].into_iter().collect()),
        ] {
            for dtype in [DType::F32, DType::F64, DType::BF16] {
                let x = sample(dims, dtype)?;
                let got = values(&same_for_any_threads(|| sum(&x, axes, false))?);
                for (g, w) in got.iter().zip(naive(&x, axes, 0.0, |a, b| a + b)) {
                    let w = rounded(w, dtype);
                    let tolerance = if dtype == DType::BF16 { 0.01 } else { 1e-5 };
                    let spread = (x.numel() / got.len()) as f64 * 1e-2;
                    assert!((g - w).abs() <= tolerance * w.abs().max(spread), "{dims:?} {dtype} {g} {w}");
                }
            }
        }
        let tenth = Array::full(shape(&[4_000_000]), 0.1, DType::F32)?;
        let got = sum(&tenth, Axes::one(0), false)?.item()?;
        assert!((got / (4e6 * 0.1f32 as f64) - 1.0).abs() < 1e-6, "{got}");
        Ok(())
    }

    #[test]
    fn special_values_empty_sums_and_bools() -> Result<()> {
        let x = Array::from_slice(&[1.0f32, f32::NAN, f32::INFINITY, 3.0], shape(&[2, 2]))?;
        assert!(values(&max(&x, Axes::one(1), false)?)[0].is_nan());
        assert!(values(&min(&x, Axes::one(0), false)?)[1].is_nan());
        assert_eq!(values(&max(&x, Axes::one(0), false)?)[0], f64::INFINITY);
        let inf = Array::from_slice(&[1.0, f64::INFINITY, 2.0], shape(&[3]))?;
        assert_eq!(sum(&inf, Axes::one(0), false)?.item()?, f64::INFINITY);
        let none = sample(&[0, 2], DType::F32)?;
        assert_eq!(values(&sum(&none, Axes::one(0), false)?), [0.0, 0.0]);
        assert_eq!(values(&prod(&none, Axes::one(0), false)?), [1.0, 1.0]);
        let truth = Array::from_slice(&[true, false, true, true].map(Truth::from), shape(&[2, 2]))?;
        assert_eq!(values(&max(&truth, Axes::one(1), false)?), [1.0, 1.0]);
        assert_eq!(values(&min(&truth, Axes::one(1), false)?), [0.0, 1.0]);
        let large = Array::full(shape(&[70_000]), 1.0, DType::F16)?;
        assert_eq!(total(&large, Axes::one(0), false)?.item()?, 70_000.0);
        assert_eq!(sum(&large, Axes::one(0), false)?.item()?, f64::INFINITY);
        let five = Array::from_slice(&[5u8, 100, 3], shape(&[3]))?;
        assert_eq!(prod(&five, Axes::one(0), false)?.item()?, 1500.0);
        Ok(())
    }
}
