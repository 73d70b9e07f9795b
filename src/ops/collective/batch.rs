//! Collective operations among the examples of a batch: each moves the batch axis, or adds over it. Results
//! have memory of their own, as those of processes have.

use super::Exchange;
use crate::ops::prelude::*;
use crate::ops::views::join::cat;
use crate::ops::views::region::Region;

/// The operation, where `x` has the batch of `size` members or is the same for all of them.
pub(super) fn over_members(exchange: &Exchange, x: &Batched, size: usize) -> Result<BatchedOutputs> {
    let (y, axis) = match exchange {
        Exchange::Sum => (sum(x, size)?, None),
        Exchange::SumAt { root } => {
            let mut widths = vec![(0, 0); x.value.rank() + usize::from(x.axis.is_none())];
            widths[0] = (*root as i64, (size - 1 - root) as i64);
            (sum(x, size)?.unsqueeze(0)?.pad(&widths, 0.0)?, Some(0))
        }
        Exchange::SumScatter { axis } => (sum(x, size)?, Some(*axis)),
        Exchange::Gather { axis } => (x.materialized(size)?.move_axis(0, *axis)?.copied()?, None),
        Exchange::AllToAll { split, concat } => {
            // The axis that is split becomes the batch, and the batch the axis that comes.
            let moved = x.materialized(size)?.move_axis(split + 1, 0)?.move_axis(1, concat + 1)?;
            (moved.copied()?, Some(0))
        }
        Exchange::Permute { pairs } => (permuted(&x.materialized(size)?, pairs)?, Some(0)),
        Exchange::Broadcast { root } => match x.axis {
            Some(axis) => (x.value.select_index(axis as i64, *root as i64)?.copied()?, None),
            None => (x.value.copied()?, None),
        },
    };
    Ok(smallvec![(y, axis)])
}

/// The sum over the members.
fn sum(x: &Batched, size: usize) -> Result<Tensor> {
    let total = add_rows(&x.materialized(size)?)?;
    if size == 1 { total.copied() } else { Ok(total) }
}

/// The sum over the first axis, with the dtype of the operand: the rows are added in pairs, these in pairs,
/// and so on. One tree of additions for every element, wherever it lies, is what gives a batch and processes
/// the same bits.
pub(super) fn add_rows(rows: &Tensor) -> Result<Tensor> {
    let dtype = rows.dtype();
    if matches!(dtype, DType::F16 | DType::BF16) {
        return add_rows(&rows.cast(DType::F32)?)?.cast(dtype);
    }
    let count = rows.shape().at(0);
    let Some(digits) = count.checked_ilog2() else { return rows.sum(Some(&[0]), false)?.cast(dtype) };
    let whole = 1 << digits;
    let mut tree = rows.narrow(0, 0, whole)?;
    for _ in 0..digits {
        tree = every_other(&tree, 0)?.add(&every_other(&tree, 1)?)?;
    }
    let total = tree.select_index(0, 0)?;
    if whole == count { Ok(total) } else { total.add(&add_rows(&rows.narrow(0, whole, count - whole)?)?) }
}

/// Every second row of an even number of them.
fn every_other(x: &Tensor, start: usize) -> Result<Tensor> {
    let mut region = Region::whole(&x.shape());
    region.starts[0] = start;
    region.steps[0] = 2;
    region.lengths = region.lengths.with(0, x.shape().at(0) / 2);
    x.slice(region)
}

/// The rows of `x` where the pairs send them; zeros elsewhere.
fn permuted(x: &Tensor, pairs: &[(usize, usize)]) -> Result<Tensor> {
    let count = x.shape().at(0);
    let mut from = vec![None; count];
    pairs.iter().for_each(|&(source, to)| from[to] = Some(source));
    let mut parts = Vec::new();
    let mut start = 0;
    while start < count {
        let follows = |&i: &usize| match from[start] {
            Some(first) => from[i] == Some(first + i - start),
            None => from[i].is_none(),
        };
        let length = (start + 1..count).take_while(follows).count() + 1;
        parts.push(match from[start] {
            Some(first) => x.narrow(0, first, length)?,
            None => x.narrow(0, start, length)?.zeros_like()?,
        });
        start += length;
    }
    if parts.is_empty() { Ok(x.clone()) } else { cat(&parts, 0) }
}
