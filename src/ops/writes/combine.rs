//! Elements that are written to the places that an index names along an axis, replaced or combined.
//!
//! Where several elements go to one place, the last one in the order of the index stays: always the same one.

use crate::ops::pointwise::compare::Logic;
use crate::ops::pointwise::operand::Operand;
use crate::ops::prelude::*;
use crate::ops::reduce::index_type;
use crate::ops::views::join::cat;
use crate::ops::views::strided::Part;
use crate::ops::writes::rows::Rows;

/// A tensor with axes, one of them, and what is written to it at an index along that axis.
pub struct Writes {
    /// The tensor.
    pub x: Tensor,
    /// The axis.
    pub axis: i64,
    /// The places along it.
    pub index: Tensor,
    /// What is written there.
    pub source: Tensor,
}

/// Returns `x` with the elements of `src`, nowhere shorter than `index`, at `index` along `axis`.
pub fn scattered(x: &Tensor, axis: i64, index: &Tensor, src: &Tensor) -> Result<Tensor> {
    let axis = x.scatter_axis("scatter", axis, index, src)?;
    let rows = Rows::of_scatter(&Part::whole(&x.shape()), x.numel(), axis, index)?;
    x.put_rows(&rows, &src.corner(&rows.shape)?.cast(x.dtype())?, false)
}

impl Writes {
    /// An index of slices as one of their elements.
    pub fn of_elements(self) -> Result<Writes> {
        let mut lengths = vec![1; self.x.rank()];
        lengths[self.axis as usize] = self.index.numel();
        let index = self.index.reshape(&Shape::new(&lengths)?)?.expand(&self.source.shape())?;
        Ok(Writes { index, ..self })
    }

    /// The tensor with the elements written.
    pub fn written(&self) -> Result<Tensor> {
        let Writes { x, axis, index, source } = self;
        if index.numel() == 0 {
            return x.copied();
        }
        if x.device() == Device::Cpu {
            return scattered(x, *axis, index, source);
        }
        let last = index.scatter_last(*axis, x.shape().at(*axis as usize))?;
        let written = source.gather(*axis, &last.clamp(Some(Operand::Int(0)), None)?)?;
        let padded = |part: &Tensor, value: f64| {
            let (own, all) = (part.shape(), x.shape());
            let widths: Vec<_> = (0..all.rank()).map(|k| (0, (all.at(k) - own.at(k)) as i64)).collect();
            part.pad(&widths, value)
        };
        padded(&last, -1.0)?.ge(0i64)?.select(&padded(&written, 0.0)?, x)
    }

    /// The tensor with the elements combined; `with_own` says whether what is there takes part.
    pub fn reduced(&self, reduce: &str, with_own: bool) -> Result<Tensor> {
        let Writes { x, axis, index, source } = self;
        let (kind, dtype) = (index_type(x.device()), x.dtype());
        let ones = Tensor::full(index.shape(), 1.0, kind, x.device())?;
        let count = Tensor::zeros(x.shape(), kind, x.device())?.scatter_add(*axis, index, &ones)?;
        let start = |neutral: Operand| match with_own {
            true => Ok(x.clone()),
            false => count.gt(0i64)?.select(neutral, x),
        };
        let sum = || start(Operand::Int(0))?.scatter_add(*axis, index, source);
        match reduce {
            "sum" => sum(),
            "mean" => {
                let least = Some(Operand::Int(1));
                let parts =
                    if with_own { count.add(1i64)? } else { count.clamp(least, None)? }.cast(dtype)?;
                if dtype.is_differentiable() { sum()?.div(&parts) } else { sum()?.floor_divide(&parts) }
            }
            "prod" => {
                let one = x.scalar_like(1.0)?;
                if index.numel() == 0 { x.copied() } else { start((&one).into())?.mul(&self.products(&one)?) }
            }
            _ if dtype.is_complex() => Err(Error::dtype(format!(
                "scatter_reduce: complex numbers have no order, got {dtype}; reduce .real, .imag or .abs()"
            ))),
            _ if dtype == DType::Bool => {
                let number = if x.device() == Device::Cpu { DType::U8 } else { DType::I32 };
                let (x, source) = (x.cast(number)?, source.cast(number)?);
                let bits = Writes { x, axis: *axis, index: index.clone(), source };
                bits.reduced(reduce, with_own)?.cast(DType::Bool)
            }
            _ => {
                let largest = reduce == "amax";
                let (least, most) = dtype.range();
                let start = start(match (dtype.is_float(), largest) {
                    (true, true) => Operand::Float(f64::NEG_INFINITY),
                    (true, false) => Operand::Float(f64::INFINITY),
                    (false, true) => Operand::Int(least),
                    (false, false) => Operand::Int(most),
                })?;
                let out = start.detach().scatter_extreme(*axis, index, &source.detach(), largest)?;
                if !dtype.is_float() {
                    return Ok(out);
                }
                let own = start.eq(&out)?;
                let ours = if with_own { own } else { own.logical(&count.eq(0i64)?, Logic::And)? };
                self.shared(&start, &out, &ours)
            }
        }
    }

    /// The product of what goes to each place, 1 where nothing does.
    ///
    /// Sorted by place, runs of one place are multiplied up in pairs, in pairs of pairs, and so on. Nothing
    /// is multiplied by what belongs to another place, so infinities and NaN stay where they are.
    fn products(&self, one: &Tensor) -> Result<Tensor> {
        let Writes { x, axis, index, source } = self;
        let place = index.remainder(x.shape().at(*axis as usize) as i64)?;
        let order = place.argsort(*axis, false)?;
        let (place, mut factor) = (place.gather(*axis, &order)?, source.gather(*axis, &order)?);
        let (length, mut step) = (index.shape().at(*axis as usize), 1);
        while step < length {
            let part = |x: &Tensor, from: usize| x.narrow(*axis, from, length - step);
            let same = part(&place, step)?.eq(&part(&place, 0)?)?;
            let before = same.select(&part(&factor, 0)?, one)?;
            factor = cat(&[factor.narrow(*axis, 0, step)?, part(&factor, step)?.mul(&before)?], *axis)?;
            step *= 2;
        }
        // The last of a place has them all, and the last one is what stays.
        let x = Tensor::full(x.shape(), 1.0, x.dtype(), x.device())?;
        Writes { x, axis: *axis, index: place, source: factor }.written()
    }

    /// The extremes `out`, for which `ours` tie and elements of the source: they share the gradient evenly,
    /// and the value itself stays exact.
    fn shared(&self, start: &Tensor, out: &Tensor, ours: &Tensor) -> Result<Tensor> {
        let Writes { x, axis, index, source } = self;
        let theirs = source.eq(&out.gather(*axis, index)?)?;
        let ties = ours.cast(x.dtype())?.scatter_add(*axis, index, &theirs.cast(x.dtype())?)?;
        let total = ours.select(start, 0.0)?.scatter_add(*axis, index, &theirs.select(source, 0.0)?)?;
        let share = total.div(&ties)?;
        // An infinite extreme is the share itself; of a finite one only the slope is taken.
        let slope = out.is_finite()?.select(&share.sub(&share.detach())?, 0.0)?;
        out.is_infinite()?.select(&share, &out.add(&slope)?)
    }

    /// Whether so few elements are combined that it is done where they stand rather than in a pass over all.
    pub fn is_part(&self) -> bool {
        let (count, all) = (self.source.numel(), self.x.numel());
        self.x.device() == Device::Cpu && 0 < count && count.saturating_mul(4) <= all
    }

    /// What is there, combined with the elements of the source, at the places in order: each place stands for
    /// itself once, where the sorted index names it first. Also returns these places, one for each element.
    pub fn in_part(&self, reduce: &str, with_own: bool) -> Result<(Tensor, Tensor)> {
        let Writes { x, axis, index, source } = self;
        let place = index.remainder(x.shape().at(*axis as usize) as i64)?;
        let order = place.argsort(*axis, false)?;
        let place = place.gather(*axis, &order)?;
        let length = place.shape().at(*axis as usize);
        let part = |from: usize| place.narrow(*axis, from, length - 1);
        let first = Tensor::full(place.narrow(*axis, 0, 1)?.shape(), 1.0, DType::Bool, place.device())?;
        let begins = cat(&[first, part(1)?.ne(&part(0)?)?], *axis)?;
        let mut lengths = vec![1; place.rank()];
        lengths[*axis as usize] = length;
        let at = Tensor::arange(0.0, 1.0, length, index_type(place.device()), place.device())?
            .reshape(&Shape::new(&lengths)?)?;
        let first = begins.select(&at, 0i64)?.cummax(*axis)?.0;
        let here = x.gather(*axis, index)?.gather(*axis, &order)?;
        let source = source.gather(*axis, &order)?;
        let out = Writes { x: here, axis: *axis, index: first.clone(), source }.reduced(reduce, with_own)?;
        Ok((out.gather(*axis, &first)?, place))
    }
}
