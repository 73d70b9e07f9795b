//! Scans: cumulative sums and products, running extremes, and the first-order recurrence behind most of them.
//!
//! `s[i] = decay[i] * s[i-1] + x[i]` is its own derivative: a tangent follows the same recurrence, a
//! cotangent the same one in reverse. A cumulative product is a recurrence whose decays are its factors. Its
//! derivatives are therefore exact at zeros, where dividing the product by each factor would fail.

use crate::array::shape::normalize_axis;
use crate::ops::complex::join;
use crate::ops::prelude::*;
use crate::ops::views::join::cat;
use std::f64::consts::TAU;

/// Cumulative sum along an axis, from the front or from the back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CumSum {
    /// The axis.
    pub axis: u8,
    /// Whether to sum from the last element backwards: the transpose.
    pub reverse: bool,
}

kernel! {
    CumSum, "cumsum", |self, x| {
        let axis = self.axis as usize;
        if !self.reverse {
            return on_device!(x[0], scan::cumsum(x[0], axis));
        }
        let flipped = flip_view(x[0], axis)?;
        let sums = on_device!(x[0], scan::cumsum(&flipped, axis))?;
        flip_view(&sums, axis)
    },
    /// inputs - rows.
    flops |x, _y| cost::scanned(x, self.axis, 1)
}

/// Returns a view of the array reversed along one axis.
fn flip_view(x: &Array, axis: usize) -> Result<Array> {
    let shape = x.shape();
    let mut starts = vec![0; shape.rank()];
    let mut steps = vec![1; shape.rank()];
    starts[axis] = shape.at(axis).saturating_sub(1);
    steps[axis] = -1;
    x.slice_view(&starts, &steps, &shape)
}

impl Linear for CumSum {
    const TRANSPOSE: &'static str = "the cumulative sum of g from the other end";

    transpose!(|self, g| bind(CumSum { reverse: !self.reverse, ..*self }, &[g]));
    batch!(in_front: |self| CumSum { axis: self.axis + 1, ..*self });
}

/// Cumulative product along an axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CumProd {
    /// The axis.
    pub axis: u8,
}

kernel! {
    CumProd, "cumprod", |self, x| on_device!(x[0], scan::cumprod(x[0], self.axis as usize)),
    /// inputs - rows.
    flops |x, _y| cost::scanned(x, self.axis, 1)
}

impl Composite for CumProd {
    const OWN: Own = Own { batch: true, ..Own::NONE };

    /// A recurrence whose decays are the factors and whose start is the first factor.
    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let (axis, length) = (self.axis as i64, x[0].shape().at(self.axis as usize));
        if length == 0 {
            return one!(x[0].copied());
        }
        one!(x[0].accumulated(|x| {
            let start = after(&x.narrow(axis, 0, 1)?, self.axis as usize, length - 1)?;
            bind(Recurrence { axis: self.axis, reverse: false }, &[x, &start])
        }))
    }
    batch!(in_front: |self| CumProd { axis: self.axis + 1 });
}

/// Appends `count` zeros to `x` along an axis.
fn after(x: &Tensor, axis: usize, count: usize) -> Result<Tensor> {
    let mut widths = vec![(0, 0); x.rank()];
    widths[axis] = (0, count as i64);
    x.pad(&widths, 0.0)
}

/// Shifts `x` by one along an axis, to the end or to the front, and fills with a zero.
fn moved_by_one(x: &Tensor, axis: usize, to_end: bool) -> Result<Tensor> {
    let length = x.shape().at(axis);
    let mut widths = vec![(0, 0); x.rank()];
    widths[axis] = if to_end { (1, 0) } else { (0, 1) };
    x.narrow(axis as i64, if to_end { 0 } else { 1 }, length - 1)?.pad(&widths, 0.0)
}

/// `s[i] = decay[i] * s[i-1] + x[i]` along an axis, from the front or from the back. The first decay is not
/// used. Inputs: decay, x, of one shape. Floats accumulate in float64 on the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Recurrence {
    /// The axis.
    pub axis: u8,
    /// Whether it runs from the last element backwards.
    pub reverse: bool,
}

impl Recurrence {
    /// The values that the decays multiply: those of the previous step.
    fn before(&self, s: &Tensor) -> Result<Tensor> {
        moved_by_one(s, self.axis as usize, !self.reverse)
    }
}

kernel! {
    Recurrence, "linear_recurrence", |self, x| {
        let axis = self.axis as usize;
        if !self.reverse {
            return on_device!(x[0], recurrence::recurrence(x[0], x[1], axis));
        }
        let (decay, term) = (flip_view(x[0], axis)?, flip_view(x[1], axis)?);
        let sums = on_device!(x[0], recurrence::recurrence(&decay, &term, axis))?;
        flip_view(&sums, axis)
    },
    /// 2 (inputs - rows).
    flops |x, _y| cost::scanned(x, self.axis, 2)
}

impl General for Recurrence {
    const VJP: &'static str =
        "s = the same recurrence of g from the other end: s for x, s * (o of the step before) for decay";
    const JVP: &'static str = "the same recurrence of t_x + t_decay * (o of the step before)";

    fn saves(&self, needs: Needs, _inputs: usize) -> Saves {
        Saves::input(0).and(Saves::OUTPUTS.when(needs.has(0)))
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(Some(g)) = g.first() else { return Ok(Grads::new()) };
        if g.shape().at(self.axis as usize) == 0 {
            return Ok(smallvec![Some(g.clone()), Some(g.clone())]);
        }
        // Each step passes its cotangent to the previous one, times its decay.
        let decay = moved_by_one(c.input(0)?, self.axis as usize, self.reverse)?;
        let back = Recurrence { reverse: !self.reverse, ..*self };
        let total = bind(back, &[&decay, g])?;
        let decays = if c.needs(0) { Some(total.mul(&self.before(c.output(0)?)?)?) } else { None };
        Ok(smallvec![decays, Some(total)])
    }
    fn jvp(&self, x: &[&Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        if x[0].shape().at(self.axis as usize) == 0 {
            return Ok(smallvec![None]);
        }
        let moved = t[0].as_ref().map(|t| t.mul(&self.before(&y[0])?)).transpose()?;
        let Some(term) = added(moved, t[1].clone())? else { return Ok(smallvec![None]) };
        Ok(smallvec![Some(bind(*self, &[x[0], &term])?)])
    }
    batch!(in_front: |self| Recurrence { axis: self.axis + 1, ..*self });
}

/// Index of the largest or smallest element so far along an axis: int64 on the CPU, int32 on GPUs. The last
/// of equal ones; NaN is the extreme.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ArgScan {
    /// The axis.
    pub axis: u8,
    /// Whether it is the maximum, rather than the minimum.
    pub largest: bool,
}

kernel! {
    ArgScan, if self.largest { "cummax" } else { "cummin" }, |self, x| {
        on_device!(x[0], recurrence::running_extreme(x[0], self.axis as usize, self.largest))
    }
}

impl Discrete for ArgScan {
    batch!(in_front: |self| ArgScan { axis: self.axis + 1, ..*self });
}

/// The full turns to add to the angles of `total`, the logarithms of sums of `exp(x)` along an axis, so that
/// each is next to that of the sum before, or to that of `x` where its term is the larger of the two.
fn turns(x: &Tensor, total: &Tensor, axis: usize) -> Result<Tensor> {
    let nearest = |angle: &Tensor| angle.div(TAU)?.round()?.mul(TAU);
    let (own, angle) = (x.imag()?, total.imag()?);
    let size = total.real()?;
    // Before the first sum there is none.
    let first = Tensor::full(size.shape().with(axis, 1), f64::NEG_INFINITY, size.dtype(), size.device())?;
    let last = size.shape().at(axis) - 1;
    let before = cat(&[first, size.narrow(axis as i64, 0, last)?], axis as i64)?;
    let is_new = x.real()?.gt(&before)?;
    let step = is_new.select(&angle.sub(&own)?, &angle.sub(&moved_by_one(&angle, axis, true)?)?)?;
    let step = step.sub(&nearest(&step)?)?;
    let start = is_new.select(&own.add(&step)?, &step)?;
    let goes_on = is_new.logical_not()?.cast(angle.dtype())?;
    let followed = start.linear_recurrence(&goes_on, axis as i64, false)?;
    nearest(&followed.sub(&angle)?)
}

impl Tensor {
    /// The scan that `along` makes of an axis; a copy of a number.
    fn scanned<O>(&self, name: &str, axis: i64, along: impl FnOnce(u8) -> O) -> Result<Tensor>
    where
        O: Operation<Out = Tensor>,
    {
        let axis = normalize_axis(axis, self.rank().max(1), name)?;
        let x = self.widened()?;
        if self.rank() == 0 { x.copied() } else { bind(along(axis as u8), &[&x]) }
    }

    /// Cumulative sum along `axis`.
    pub fn cumsum(&self, axis: i64) -> Result<Tensor> {
        self.scanned("cumsum", axis, |axis| CumSum { axis, reverse: false })
    }

    /// Cumulative product along `axis`. Its gradient is exact at zeros.
    pub fn cumprod(&self, axis: i64) -> Result<Tensor> {
        self.scanned("cumprod", axis, |axis| CumProd { axis })
    }

    /// `s[i] = decay[i] * s[i-1] + self[i]` along `axis`, or from the back with `reverse`. The two broadcast.
    pub fn linear_recurrence(&self, decay: &Tensor, axis: i64, reverse: bool) -> Result<Tensor> {
        let dtype = self.dtype().promote(decay.dtype());
        if !dtype.is_float() {
            return Err(Error::dtype(format!(
                "linear_recurrence: floating point tensors expected, got {} and {}; convert with .float() \
                 first",
                self.dtype(),
                decay.dtype()
            )));
        }
        let shape = self.shape().broadcast(&decay.shape()).ok_or_else(|| {
            Error::shape(format!(
                "linear_recurrence: shapes {} and {} do not broadcast together",
                self.shape(),
                decay.shape()
            ))
        })?;
        let axis = shape.axis(axis, "linear_recurrence")? as u8;
        let (decay, x) = (decay.cast(dtype)?.expand(&shape)?, self.cast(dtype)?.expand(&shape)?);
        bind(Recurrence { axis, reverse }, &[&decay, &x])
    }

    fn running(&self, axis: i64, largest: bool) -> Result<(Tensor, Tensor)> {
        let name = if largest { "cummax" } else { "cummin" };
        if self.rank() == 0 {
            normalize_axis(axis, 1, name)?;
            let (value, index) = self.unsqueeze(0)?.running(0, largest)?;
            return Ok((value.reshape(&self.shape())?, index.reshape(&self.shape())?));
        }
        let axis = self.shape().axis(axis, name)?;
        let index = bind(ArgScan { axis: axis as u8, largest }, &[self])?;
        Ok((self.gather(axis as i64, &index)?, index))
    }

    /// The largest element so far along `axis`, and its index: the last of equal ones. Gradients go there.
    pub fn cummax(&self, axis: i64) -> Result<(Tensor, Tensor)> {
        self.running(axis, true)
    }

    /// The smallest element so far along `axis`, and its index: the last of equal ones. Gradients go there.
    pub fn cummin(&self, axis: i64) -> Result<(Tensor, Tensor)> {
        self.running(axis, false)
    }

    /// `log(cumsum(exp(x)))` along `axis`, without overflow: sums relative to the largest so far. Of complex
    /// numbers, the angles follow the sums without jumps, as adding one after the other gives them.
    pub fn logcumsumexp(&self, axis: i64) -> Result<Tensor> {
        let x = self.cast(self.dtype().to_float())?;
        if x.rank() == 0 || x.numel() == 0 {
            normalize_axis(axis, x.rank().max(1), "logcumsumexp")?;
            return x.copied();
        }
        let axis = x.shape().axis(axis, "logcumsumexp")?;
        x.accumulated(|x| {
            // The shift cancels, so no gradient flows through it. An infinite maximum is not subtracted.
            let top = x.real()?.detach().cummax(axis as i64)?.0;
            let shift = top.abs()?.eq(f64::INFINITY)?.select(0.0, &top)?;
            let growth = shift.sub(&moved_by_one(&shift, axis, true)?)?;
            let decay = growth.maximum(0.0)?.neg()?.exp()?;
            let sums = |x: &Tensor| x.linear_recurrence(&decay, axis as i64, false);
            let terms = x.sub(&shift)?.exp()?;
            if !x.dtype().is_complex() {
                return sums(&terms)?.log()?.add(&shift);
            }
            let total = join(&sums(&terms.real()?)?, &sums(&terms.imag()?)?)?.log()?.add(&shift)?;
            let turns = turns(&x.detach(), &total.detach(), axis)?;
            join(&total.real()?, &total.imag()?.add(&turns)?)
        })
    }
}
