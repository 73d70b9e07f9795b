//! Reductions over axes: sum, product, extrema and their indices. Read next: `src/ops/reduce/moments.rs`,
//! composed of them; `src/ops/reduce/scan.rs`, cumulative reductions.

pub mod folding;
pub mod mean;
pub mod moments;
pub mod scan;
pub mod search;
pub mod sort;
pub mod truth;

use crate::array::shape::{Axes, normalize_axis};
use crate::ops::prelude::*;
use crate::ops::reduce::mean::Spread;

/// Sum over axes. Halves accumulate in float32; on the CPU, bools and integers below 64 bits give int64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sum {
    /// The axes to sum over.
    pub axes: Axes,
    /// Whether to keep them with length 1.
    pub keepdim: bool,
}

kernel! {
    Sum, "sum", |self, x| {
        if x[0].device() == Device::Cpu {
            return crate::cpu::reduce::counted(x[0], self.axes, self.keepdim);
        }
        on_device!(x[0], reduce::sum(x[0], self.axes, self.keepdim))
    },
    /// inputs - outputs.
    flops |x, y| cost::folded(x, y)
}

impl Linear for Sum {
    const TRANSPOSE: &'static str = "g, stretched over the axes";

    transpose!(|self, g, c| spread(g, self.axes, self.keepdim, &c.aval(0)?.shape));
    batch!(in_front: |self| Sum { axes: self.axes.shifted(), ..*self });
}

/// Broadcasts a reduced tensor back over the axes it lost.
fn spread(g: &Tensor, axes: Axes, keepdim: bool, shape: &Shape) -> Result<Tensor> {
    bind(Spread { axes, keepdim, shape: *shape, mean: false }, &[g])
}

/// Product over axes. On the CPU, bools and integers of less than 64 bits give int64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Prod {
    /// The axes to multiply over.
    pub axes: Axes,
    /// Whether to keep them with length 1.
    pub keepdim: bool,
}

kernel! {
    Prod, "prod", |self, x| on_device!(x[0], reduce::prod(x[0], self.axes, self.keepdim)),
    /// inputs - outputs.
    flops |x, y| cost::folded(x, y)
}

impl Composite for Prod {
    const OWN: Own = Own { batch: true, ..Own::NONE };

    /// A tree of products: its derivatives are exact at zeros, unlike quotients by factors.
    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        one!(x[0].accumulated(|x| self.tree(x)))
    }
    batch!(in_front: |self| Prod { axes: self.axes.shifted(), ..*self });
}

impl Prod {
    /// Multiplies pairs, then pairs of the products, and so on.
    fn tree(&self, x: &Tensor) -> Result<Tensor> {
        let shape = x.shape();
        let kept = (0..shape.rank()).filter(|&i| !self.axes.contains(i));
        let order: Vec<i64> = kept.chain(self.axes.iter()).map(|i| i as i64).collect();
        let outer = shape.reduced(self.axes, false);
        let mut n = mean::count(&shape, self.axes);
        if n == 1 {
            return x.copied()?.reshape(&shape.reduced(self.axes, self.keepdim));
        }
        let mut factors = x.permute(&order)?.reshape(&outer.inserted(outer.rank(), n)?)?;
        if n == 0 {
            // The empty sum: formally depends on x.
            return bind(Sum { axes: self.axes, keepdim: self.keepdim }, &[x])?.add(1.0);
        }
        while n > 1 {
            let half = n / 2;
            let pairs = factors.narrow(-1, 0, half)?.mul(&factors.narrow(-1, half, half)?)?;
            factors = if n.is_multiple_of(2) {
                pairs
            } else {
                crate::ops::views::join::cat(&[pairs, factors.narrow(-1, n - 1, 1)?], -1)?
            };
            n = n.div_ceil(2);
        }
        factors.reshape(&shape.reduced(self.axes, self.keepdim))
    }
}

/// Maximum or minimum over axes. NaN wins. Tied elements (or several NaN) share the gradient evenly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extremum {
    /// The axes to reduce.
    pub axes: Axes,
    /// Whether to keep them with length 1.
    pub keepdim: bool,
    /// Whether it is the maximum, rather than the minimum.
    pub largest: bool,
}

impl Extremum {
    /// The share of each element in the gradient: 1 / (number of ties) if it attains the extremum, else 0.
    fn shares(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let kept = if self.keepdim { y.clone() } else { y.reshape(&x.shape().reduced(self.axes, true))? };
        let mut hit = x.eq(&kept)?;
        if x.dtype().is_float() {
            // A NaN is the extremum, but not equal to itself.
            hit = hit.logical(&x.ne(x)?, crate::ops::pointwise::compare::Logic::Or)?;
        }
        let hit = hit.cast(x.dtype().accumulator())?;
        let ties = bind(Sum { axes: self.axes, keepdim: true }, &[&hit])?;
        hit.div(&ties)?.cast(x.dtype())
    }
}

kernel! {
    Extremum, if self.largest { "amax" } else { "amin" }, |self, x| {
        if self.largest {
            on_device!(x[0], reduce::max(x[0], self.axes, self.keepdim))
        } else {
            on_device!(x[0], reduce::min(x[0], self.axes, self.keepdim))
        }
    }
}

impl General for Extremum {
    const VJP: &'static str = "g, shared evenly among the elements that attain o";
    const JVP: &'static str = "the mean of t over the elements that attain o";

    fn saves(&self, _needs: Needs, _inputs: usize) -> Saves {
        Saves::input(0).and(Saves::OUTPUTS)
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let (Some(Some(g)), x) = (g.first(), c.input(0)?) else { return Ok(Grads::new()) };
        let shares = self.shares(x, c.output(0)?)?;
        Ok(smallvec![Some(spread(g, self.axes, self.keepdim, &x.shape())?.mul(&shares)?)])
    }
    fn jvp(&self, x: &[&Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let Some(t) = &t[0] else { return Ok(smallvec![None]) };
        let moved = t.mul(&self.shares(x[0], &y[0])?)?;
        Ok(smallvec![Some(bind(Sum { axes: self.axes, keepdim: self.keepdim }, &[&moved])?)])
    }
    batch!(in_front: |self| Extremum { axes: self.axes.shifted(), ..*self });
}

/// Index of the first maximum or minimum along an axis: int64 on the CPU, int32 on GPUs. NaN is the extremum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ArgExtremum {
    /// The axis to search.
    pub axis: u8,
    /// Whether to keep it with length 1.
    pub keepdim: bool,
    /// Whether it is the maximum, rather than the minimum.
    pub largest: bool,
}

kernel! {
    ArgExtremum, if self.largest { "argmax" } else { "argmin" }, |self, x| {
        let axis = self.axis as usize;
        match self.largest {
            true => on_device!(x[0], reduce::argmax(x[0], axis, self.keepdim)),
            false => on_device!(x[0], reduce::argmin(x[0], axis, self.keepdim)),
        }
    }
}

impl Discrete for ArgExtremum {
    batch!(in_front: |self| ArgExtremum { axis: self.axis + 1, ..*self });
}

/// The dtype of positions and counts on a device, and of sums of what is no wider.
pub(crate) fn index_type(device: Device) -> DType {
    if device == Device::Cpu { DType::I64 } else { DType::I32 }
}

impl Tensor {
    pub(crate) fn widened(&self) -> Result<Tensor> {
        // The type of sums cannot hold these.
        let stays = match self.dtype() {
            DType::U64 => true,
            DType::U32 | DType::I64 => self.device() != Device::Cpu,
            dtype => dtype.is_differentiable(),
        };
        if stays { Ok(self.clone()) } else { self.cast(index_type(self.device())) }
    }

    /// The operand of a sum or product; the CPU kernels widen element by element themselves.
    fn summand(&self) -> Result<Tensor> {
        if self.device() == Device::Cpu { Ok(self.clone()) } else { self.widened() }
    }

    /// Sum over `axes` (all when `None`). Integers and bools are summed as int64, uint64 as uint64.
    pub fn sum(&self, axes: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        let axes = self.shape().axes(axes, "sum")?;
        bind(Sum { axes, keepdim }, &[&self.summand()?])
    }

    /// Sums over the axes along which `shape` was broadcast to this tensor's shape.
    pub fn sum_to(&self, shape: &Shape) -> Result<Tensor> {
        let own = self.shape();
        if own == *shape {
            return Ok(self.clone());
        }
        let Some(lead) = own.rank().checked_sub(shape.rank()) else {
            return Err(Error::shape(format!("sum_to: shape {own} cannot be summed to {shape}")));
        };
        let axes: Axes =
            (0..own.rank()).filter(|&i| i < lead || (shape.at(i - lead) == 1 && own.at(i) != 1)).collect();
        if axes == Axes::first(lead) {
            return bind(Sum { axes, keepdim: false }, &[self]);
        }
        bind(Sum { axes, keepdim: true }, &[self])?.reshape(shape)
    }

    /// Makes this constant a function of `x` with derivative zero: adds the empty sum of elements of `x`.
    pub(crate) fn depending_on(&self, x: &Tensor) -> Result<Tensor> {
        if x.traced().is_none() || !x.dtype().is_differentiable() || !self.dtype().is_differentiable() {
            return Ok(self.clone());
        }
        self.add(&x.flatten(0, -1)?.narrow(0, 0, 0)?.sum(None, false)?)
    }

    /// Product over `axes` (all when `None`).
    pub fn prod(&self, axes: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        let axes = self.shape().axes(axes, "prod")?;
        bind(Prod { axes, keepdim }, &[&self.summand()?])
    }

    fn extremum(&self, axes: Option<&[i64]>, keepdim: bool, largest: bool) -> Result<Tensor> {
        let (name, shape) = (if largest { "amax" } else { "amin" }, self.shape());
        let axes = shape.axes(axes, name)?;
        if let Some(i) = axes.iter().find(|&i| shape.at(i) == 0) {
            let text = format!("{name}: axis {i} of shape {shape} is empty and has no extremum");
            return Err(Error::value(text));
        }
        bind(Extremum { axes, keepdim, largest }, &[self])
    }

    /// Maximum over `axes` (all when `None`); ties share the gradient evenly.
    pub fn amax(&self, axes: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        self.extremum(axes, keepdim, true)
    }

    /// Minimum over `axes` (all when `None`); ties share the gradient evenly.
    pub fn amin(&self, axes: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
        self.extremum(axes, keepdim, false)
    }

    fn arg_extremum(&self, axis: Option<i64>, keepdim: bool, largest: bool) -> Result<Tensor> {
        let name = if largest { "argmax" } else { "argmin" };
        let flat;
        let (x, axis) = match axis {
            Some(axis) if self.rank() > 0 => (self, self.shape().axis(axis, name)?),
            _ => {
                if let Some(axis) = axis {
                    normalize_axis(axis, 1, name)?;
                }
                flat = self.reshape(&Shape::new(&[self.numel()])?)?;
                (&flat, 0)
            }
        };
        if x.shape().at(axis) == 0 {
            return Err(Error::value(format!("{name}: axis {axis} of shape {} is empty", x.shape())));
        }
        let whole = x.rank() != self.rank();
        let op = ArgExtremum { axis: axis as u8, keepdim: keepdim && !whole, largest };
        let out = bind(op, &[x])?;
        if whole && keepdim {
            return out.reshape(&self.shape().reduced(Axes::first(self.rank()), true));
        }
        Ok(out)
    }

    /// Index of the first maximum along `axis`, or in the flattened tensor.
    pub fn argmax(&self, axis: Option<i64>, keepdim: bool) -> Result<Tensor> {
        self.arg_extremum(axis, keepdim, true)
    }

    /// Index of the first minimum along `axis`, or in the flattened tensor.
    pub fn argmin(&self, axis: Option<i64>, keepdim: bool) -> Result<Tensor> {
        self.arg_extremum(axis, keepdim, false)
    }

    /// Maximum along one axis with its index; the gradient goes to the first maximum.
    pub fn max_along(&self, axis: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        self.pick_along(axis, keepdim, true)
    }

    /// Minimum along one axis with its index; the gradient goes to the first minimum.
    pub fn min_along(&self, axis: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
        self.pick_along(axis, keepdim, false)
    }

    fn pick_along(&self, axis: i64, keepdim: bool, largest: bool) -> Result<(Tensor, Tensor)> {
        if self.rank() == 0 {
            normalize_axis(axis, 1, if largest { "max" } else { "min" })?;
            return Ok((self.copied()?, self.detach().cast(index_type(self.device()))?.mul(0i64)?));
        }
        let index = self.arg_extremum(Some(axis), true, largest)?;
        let value = self.gather(axis, &index)?;
        if keepdim {
            return Ok((value, index));
        }
        let shape = self.shape().removed(self.shape().axis(axis, "max")?);
        Ok((value.reshape(&shape)?, index.reshape(&shape)?))
    }
}
