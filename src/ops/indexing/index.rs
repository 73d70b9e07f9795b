//! Selection by index tensors, and the transposes, which add back.
//!
//! `take` selects whole rows of one axis, `gather` one element per index. Every form of advanced indexing
//! becomes a `take` after the indexed axes are merged (`Tensor::index`). Indices out of range raise; negative
//! ones count from the end. Read next: `src/ops/indexing/mod.rs`.

use crate::cpu::indexing::put::adds;
use crate::interp::eval;
use crate::ops::pointwise::compare::Logic;
use crate::ops::prelude::*;
use crate::ops::writes::donated::Donated;
use crate::ops::writes::rows::PutRows;
use crate::tape::saving::bottom;
use crate::watch::{debug, script};

/// `out[.., i.., ..] = x[.., index[i..], ..]` along `axis`. Inputs: x, index (any shape).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Take {
    /// The axis of `x`.
    pub axis: u8,
}

kernel! { Take, "take", |self, x| on_device!(x[0], gather::take(x[0], x[1], self.axis as usize)) }

impl Linear for Take {
    const TRANSPOSE: &'static str = "rows of g added up by index";
    const READS: Saves = Saves::input(1);
    const SELECTS: bool = true;

    transpose!(|self, g, c| bind(TakeAdd { axis: self.axis, shape: c.aval(0)?.shape }, &[g, c.input(1)?]));
    fn add_transpose(&self, total: &Array, g: &Array, c: &Vjp) -> Result<bool> {
        let Tensor::Array(index) = c.input(1)? else { return Ok(false) };
        if self.axis > 0 || total.device() != Device::Cpu || !adds(total.dtype()) {
            return Ok(false);
        }
        let width = total.numel() as u64 / (total.dim(0) as u64).max(1);
        let op = PutRows { width, add: true, over: Donated::default() };
        eval::run(&op, &[total, g, index], &[total][..], debug::modes())?;
        Ok(true)
    }
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        let (value, index) = (x[0].front()?, x[1].front()?);
        let axis = self.axis as usize;
        match (x[0].axis, x[1].axis) {
            (_, None) => {
                let op = Take { axis: self.axis + 1 };
                Ok(smallvec![(bind(op, &[&value, &index])?, Some(0))])
            }
            // The index axes, the batch axis first, replace the taken axis.
            (None, _) => Ok(smallvec![(bind(*self, &[&value, &index])?, Some(axis))]),
            (Some(_), Some(_)) => {
                // Merge the batch into the taken axis; each batch element indexes its own range of rows.
                let rows = value.move_axis(axis + 1, 1)?;
                let n = rows.shape().at(1);
                let merged = rows.flatten(0, 1)?;
                let index = offset_index(&index, size, n)?;
                let out = bind(Take { axis: 0 }, &[&merged, &index])?;
                // [batch, index.., rest..] -> [batch, before.., index.., after..]
                Ok(smallvec![(out.move_axes(1, index.rank() - 1, 1 + axis)?, Some(0))])
            }
        }
    }
}

/// Converts indices into each of `size` ranges of length `n` (batch axis first) to those into all as one.
fn offset_index(index: &Tensor, size: usize, n: usize) -> Result<Tensor> {
    let from_front = index_from_front(index, 0, n)?;
    let mut dims = vec![1; index.rank()];
    dims[0] = size;
    let starts = Tensor::arange(0.0, n as f64, size, from_front.dtype(), index.device())?;
    from_front.add(&starts.reshape(&Shape::new(&dims)?)?)
}

/// Checks an index into an axis of length `size` and makes negative elements count from the front. Casts to
/// integers that can hold positions in merged axes of its device.
pub(crate) fn index_from_front(index: &Tensor, axis: usize, size: usize) -> Result<Tensor> {
    check_range(index, axis, size)?;
    let is_wide = index.device() == Device::Cpu || index.dtype().size() == 8;
    let index = index.cast(if is_wide { DType::I64 } else { DType::I32 })?;
    index.lt(0i64)?.select(&index.add(size as i64)?, &index)
}

/// The transpose of [`Take`]: rows of `g` added into zeros. Inputs: g, index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TakeAdd {
    /// The axis of the output.
    pub axis: u8,
    /// The shape of the output.
    pub shape: Shape,
}

kernel! {
    TakeAdd, "take_add", |self, x| {
        on_device!(x[0], gather::take_add(x[0], x[1], self.axis as usize, &self.shape))
    },
    /// One per input.
    flops |x, _y| cost::each(x, 1)
}

impl Linear for TakeAdd {
    const TRANSPOSE: &'static str = "rows of g taken by index";
    const READS: Saves = Saves::input(1);

    transpose!(|self, g, c| bind(Take { axis: self.axis }, &[g, c.input(1)?]));
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        let axis = self.axis as usize;
        let g = x[0].materialized(size)?;
        if x[1].axis.is_none() {
            let op = TakeAdd { axis: self.axis + 1, shape: self.shape.inserted(0, size)? };
            return Ok(smallvec![(bind(op, &[&g, &x[1].value])?, Some(0))]);
        }
        let n = self.shape.at(axis);
        let index = offset_index(&x[1].front()?, size, n)?;
        // [batch, before.., index.., after..] -> [batch, index.., before.., after..]
        let g = g.move_axes(1 + axis, index.rank() - 1, 1)?;
        let rest = self.shape.removed(axis);
        let op = TakeAdd { axis: 0, shape: rest.inserted(0, size * n)? };
        let out = bind(op, &[&g, &index])?;
        let out = out.reshape(&rest.inserted(0, n)?.inserted(0, size)?)?;
        Ok(smallvec![(out.move_axis(1, 1 + axis)?, Some(0))])
    }
}

/// `out[i, j, ..] = x[index[i, j, ..], j, ..]` for axis 0, and so on. Inputs: x, index (same rank).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Gather {
    /// The axis of `x`.
    pub axis: u8,
}

kernel! { Gather, "gather", |self, x| on_device!(x[0], gather::gather(x[0], x[1], self.axis as usize)) }

impl Linear for Gather {
    const TRANSPOSE: &'static str = "elements of g added up by index";
    const READS: Saves = Saves::input(1);

    transpose!(|self, g, c| bind(ScatterAdd { axis: self.axis, shape: c.aval(0)?.shape }, &[g, c.input(1)?]));
    batch!(in_front: |self| Gather { axis: self.axis + 1 });
}

/// The transpose of [`Gather`]: elements of `g` added into zeros. Inputs: g, index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ScatterAdd {
    /// The axis of the output.
    pub axis: u8,
    /// The shape of the output.
    pub shape: Shape,
}

kernel! {
    ScatterAdd, "scatter_add", |self, x| {
        on_device!(x[0], gather::scatter_add(x[0], x[1], self.axis as usize, &self.shape))
    },
    /// One per input.
    flops |x, _y| cost::each(x, 1)
}

impl Linear for ScatterAdd {
    const TRANSPOSE: &'static str = "elements of g gathered by index";
    const READS: Saves = Saves::input(1);

    transpose!(|self, g, c| bind(Gather { axis: self.axis }, &[g, c.input(1)?]));
    batch!(in_front: |self, size| ScatterAdd { axis: self.axis + 1, shape: self.shape.inserted(0, size)? });
}

/// Raises for an index outside `-size..size`. Needed only for merged axes, where it would hit another row.
fn check_range(index: &Tensor, axis: usize, size: usize) -> Result<()> {
    let Some(array) = bottom(index).filter(|array| array.numel() > 0) else { return Ok(()) };
    let all = Tensor::Array(array.clone());
    if script::is_on() && matches!(array.dtype(), DType::I32 | DType::I64) {
        // A decision that each call of a program makes again.
        let wrong = all.lt(-(size as f64))?.logical(&all.ge(size as f64)?, Logic::Or)?;
        if wrong.any(None, false)?.item()? == 0.0 {
            return Ok(());
        }
    }
    script::refuse(|| "a write by an index, whose range the host checks".into());
    let (low, high) = (all.amin(None, false)?.item()?, all.amax(None, false)?.item()?);
    let bad = if low < -(size as f64) { low } else { high };
    if low < -(size as f64) || high >= size as f64 {
        return Err(Error::index(format!("index {bad} is out of range for axis {axis} of length {size}")));
    }
    Ok(())
}
