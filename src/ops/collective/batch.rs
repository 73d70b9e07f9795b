//! Collective operations among the examples of a batch: each moves the batch axis, or adds over it.

use super::Exchange;
use crate::ops::prelude::*;
use crate::ops::views::join::cat;

/// The operation, where `x` has the batch of `size` members or is the same for all of them.
pub(super) fn among(exchange: &Exchange, x: &Batched, size: usize) -> Result<BatchedOutputs> {
    let (y, axis) = match exchange {
        Exchange::Sum => (sum(x, size)?, None),
        Exchange::SumAt { root } => {
            let mut widths = vec![(0, 0); x.value.rank() + usize::from(x.axis.is_none())];
            widths[0] = (*root as i64, (size - 1 - root) as i64);
            (sum(x, size)?.unsqueeze(0)?.pad(&widths, 0.0)?, Some(0))
        }
        Exchange::SumScatter { axis } => (sum(x, size)?, Some(*axis)),
        Exchange::Gather { axis } => (x.materialized(size)?.move_axis(0, *axis)?, None),
        Exchange::AllToAll { split, concat } => {
            // The axis that is split becomes the batch, and the batch the axis that comes.
            (x.materialized(size)?.move_axis(split + 1, 0)?.move_axis(1, concat + 1)?, Some(0))
        }
        Exchange::Permute { pairs } => (permuted(&x.materialized(size)?, pairs)?, Some(0)),
        Exchange::Broadcast { root } => match x.axis {
            Some(axis) => (x.value.select_index(axis as i64, *root as i64)?, None),
            None => (x.value.clone(), None),
        },
    };
    Ok(smallvec![(y, axis)])
}

/// The sum over the members, in their order, with the dtype of the operand. The order of additions may depend
/// on how elements lie in memory: they lie as those that processes exchange.
fn sum(x: &Batched, size: usize) -> Result<Tensor> {
    let rows = x.materialized(size)?.contiguous()?;
    rows.sum(Some(&[0]), false)?.cast(x.value.dtype())
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
