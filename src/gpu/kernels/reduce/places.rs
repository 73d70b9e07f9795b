//! The places of extremes along an axis.

use super::{Fold, Task, reduce};
use crate::arguments::logic::{Logic, Relation};
use crate::array::shape::Axes;
use crate::gpu::kernels::gather::gather;
use crate::gpu::kernels::logic::{compare, logical, select};
use crate::gpu::kernels::pieces::{Cut, cut, fit, joined};
use crate::gpu::kernels::prelude::*;
use crate::gpu::scalar;

impl Task<'_> {
    /// Writes the place of the best element of each output to `out`; reads or writes pairs of key and place.
    fn find<'a>(&'a self, name: &'a str, out: &'a Array, [reads, writes]: [bool; 2]) -> Result<()> {
        let entry = self.entry(self.count());
        let mut run = Dispatch::new(name, shader!("argreduce"), self.x.dtype());
        self.input(&mut run, !reads && self.is_in_fours());
        run.entry(entry.name).writes(out);
        run.flag("SMALLEST", name == "argmin").flag("PAIRS_IN", reads).flag("PAIRS_OUT", writes);
        self.write(&mut run);
        run.words(self.cut);
        run.launch((self.count() as usize).div_ceil(entry.words as usize))
    }
}

/// Index of the largest element along `axis`, int32; the first of equal ones, and NaN is the largest.
pub fn argmax(x: &Array, axis: usize, keepdim: bool) -> Result<Array> {
    argreduce("argmax", x, axis, keepdim)
}

/// Index of the smallest element along `axis`, int32; the first of equal ones, and NaN is the smallest.
pub fn argmin(x: &Array, axis: usize, keepdim: bool) -> Result<Array> {
    argreduce("argmin", x, axis, keepdim)
}

fn argreduce(name: &'static str, x: &Array, axis: usize, keepdim: bool) -> Result<Array> {
    if !fit([x])? {
        let (places, _) = argreduce_pieces(name, x, axis)?;
        return Ok(if keepdim { places } else { places.without(Axes::one(axis)) });
    }
    if is_long(x.dtype()) {
        let extreme = if name == "argmax" { Fold::Max } else { Fold::Min };
        let best = reduce(x.dtype(), extreme, x, Axes::one(axis), true)?;
        return argreduce("argmax", &compare(x, &best, Relation::Eq)?, axis, keepdim);
    }
    let out = Array::empty(x.shape().reduced(Axes::one(axis), keepdim), DType::I32, x.device())?;
    let mut task = Task::over(Fold::Max, x, Axes::one(axis));
    let (count, parts) = (task.count() as usize, task.parts() as usize);
    if parts < 2 {
        task.find(name, &out, [false, false])?;
        return Ok(out);
    }
    let parts = task.cut_into(parts);
    let pairs = Array::empty(Shape::new(&[parts, count, 2])?, DType::U32, x.device())?;
    task.find(name, &pairs, [false, true])?;
    // Strides of pairs, as the shader counts them.
    let of_parts = pairs.with_layout(Shape::new(&[parts, count])?, &[count as isize, 1], 0)?;
    Task::over(Fold::Max, &of_parts, Axes::one(0)).find(name, &out, [true, false])?;
    Ok(out)
}

/// [`argreduce`] of an array that kernels cannot bind, with the axis kept: the places and the elements there.
fn argreduce_pieces(name: &'static str, x: &Array, axis: usize) -> Result<(Array, Array)> {
    let (cut_axis, [a, b]) = match cut(x)? {
        Cut::Whole(x) => {
            let places = argreduce(name, &x, axis, true)?;
            let found = gather(&x, &places, axis)?;
            return Ok((places, found));
        }
        Cut::Halves(axis, halves) => (axis, halves),
    };
    let ((a_at, a_is), (b_at, b_is)) = (argreduce_pieces(name, &a, axis)?, argreduce_pieces(name, &b, axis)?);
    if cut_axis != axis {
        return Ok((joined(&a_at, &b_at, cut_axis)?, joined(&a_is, &b_is, cut_axis)?));
    }
    let start = scalar(index_of(x)?, a.dim(axis) as f64, DType::I32)?;
    let b_at = Fold::Sum.combine(&b_at, &start)?;
    // A NaN wins, and the first of equal ones.
    let relation = if name == "argmax" { Relation::Gt } else { Relation::Lt };
    let is_nan = |x: &Array, relation| compare(x, x, relation);
    let only_b = logical(Logic::And, &[&is_nan(&b_is, Relation::Ne)?, &is_nan(&a_is, Relation::Eq)?])?;
    let is_b = logical(Logic::Or, &[&compare(&b_is, &a_is, relation)?, &only_b])?;
    Ok((select(&is_b, &b_at, &a_at)?, select(&is_b, &b_is, &a_is)?))
}
