//! The mean, and `Spread`, the transpose of sum and mean.
//!
//! Both could be composed (a sum and a quotient; a reshape, an expansion and a quotient). As single
//! operations they cost one node of the tape and one dispatch per level of transforms.

use crate::array::shape::Axes;
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::elementwise::Map;
use crate::ops::pointwise::table::pointwise_rule;
use crate::ops::prelude::*;
use crate::ops::reduce::Sum;

/// Arithmetic mean over axes; NaN of no elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mean {
    /// The axes to average over.
    pub axes: Axes,
    /// Whether to keep them with length 1.
    pub keepdim: bool,
}

/// Expands a tensor without `axes` (or with length 1 there, if `keepdim`) over them, to `shape`; if `mean`,
/// divides by the number of elements that each is expanded to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Spread {
    /// The axes.
    pub axes: Axes,
    /// Whether the input has the axes, with length 1.
    pub keepdim: bool,
    /// The shape of the result.
    pub shape: Shape,
    /// Whether to divide by the number of elements that each is expanded to.
    pub mean: bool,
}

/// The number of elements of `shape` along `axes`.
pub fn count(shape: &Shape, axes: Axes) -> usize {
    axes.iter().map(|i| shape.at(i)).product()
}

/// So many contiguous float32 or float64 numbers are divided right here; others by a loop of elementwise
/// operations, in parallel.
const DIVIDED_HERE: usize = 64;

/// `x / n`; writes over `x` if nothing else refers to it.
pub fn divided(mut x: Array, n: usize) -> Result<Array> {
    let p = [n as f64, 0.0];
    if x.numel() <= DIVIDED_HERE && x.device() == Device::Cpu && x.is_exclusive() {
        match x.dtype() {
            DType::F32 => {
                x.slice_mut::<f32>()?.iter_mut().for_each(|v| *v /= n as f32);
                return Ok(x);
            }
            DType::F64 => {
                x.slice_mut::<f64>()?.iter_mut().for_each(|v| *v /= n as f64);
                return Ok(x);
            }
            _ => {}
        }
    }
    if x.device() == Device::Cpu && x.dtype().is_float() && x.is_exclusive() {
        // SAFETY: nothing else refers to this memory.
        unsafe {
            crate::cpu::pointwise::map::pointwise_into(&x, [&x], pointwise_rule!(p; [x] => x / p.a()))?
        };
        return Ok(x);
    }
    let n = Tensor::operand(n as f64, x.dtype(), x.device())?;
    Map::binary(Binary::Div).eval_one(&[&x, n.array("mean")?])
}

/// Converts `x` to `dtype`; returns it unchanged if it has that dtype.
fn rounded(x: Array, dtype: DType) -> Result<Array> {
    if x.dtype() == dtype { Ok(x) } else { on_device!(x, copy::cast(&x, dtype)) }
}

kernel! {
    Mean, "mean", |self, x| {
        let total = on_device!(x[0], reduce::total(x[0], self.axes, self.keepdim))?;
        rounded(divided(total, count(&x[0].shape(), self.axes))?, x[0].dtype())
    },
    /// One per input.
    flops |x, y| cost::folded(x, y) + cost::each(y, 1)
}

impl Linear for Mean {
    const TRANSPOSE: &'static str = "g / n, stretched over the n elements of the axes";

    fn transpose(&self, _wrt: usize, g: &Tensor, c: &Vjp) -> Result<Tensor> {
        let Mean { axes, keepdim } = *self;
        bind(Spread { axes, keepdim, shape: c.aval(0)?.shape, mean: true }, &[g])
    }
    batch!(in_front: |self| Mean { axes: self.axes.shifted(), ..*self });
}

kernel! {
    Spread, "expand", |self, x| {
        let mut kept = x[0].clone();
        if self.mean {
            let wide = rounded(kept, x[0].dtype().accumulator())?;
            let fresh = if wide.numel() == 1 && !wide.is_exclusive() { wide.copied()? } else { wide };
            kept = rounded(divided(fresh, count(&self.shape, self.axes))?, x[0].dtype())?;
        }
        if !self.keepdim {
            for i in self.axes.iter() {
                kept = kept.with_axis(i)?;
            }
        }
        kept.expand(&self.shape)
    },
    /// None; one per input for the transpose of a mean.
    flops |x, _y| if self.mean { cost::each(x, 1) } else { 0 }
}

impl Linear for Spread {
    const TRANSPOSE: &'static str = "the sum (or the mean) of g over the axes";

    fn transpose(&self, _wrt: usize, g: &Tensor, _c: &Vjp) -> Result<Tensor> {
        let Spread { axes, keepdim, .. } = *self;
        if self.mean {
            return bind(Mean { axes, keepdim }, &[g]);
        }
        bind(Sum { axes, keepdim }, &[g])
    }
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        in_front(Spread { axes: self.axes.shifted(), shape: self.shape.inserted(0, size)?, ..*self }, x, size)
    }
}

impl Tensor {
    /// Arithmetic mean over `axes` (all when `None`); NaN of no elements. Integers raise.
    pub fn mean(&self, axes: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        self.check_inexact("mean")?;
        let axes = self.shape().axes(axes, "mean")?;
        bind(Mean { axes, keepdim }, &[self])
    }
}
