//! Operands and outputs of batching rules, and the rules that many operations share.

use super::{Operation, Outputs};
use crate::array::shape::Shape;
use crate::bind::bind;
use crate::error::Result;
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};

/// Outputs of a batched operation with the position of their batch axis (`None`: one for all examples).
pub type BatchedOutputs = SmallVec<[(Tensor, Option<usize>); 1]>;

/// An operand of a batched operation and where its batch axis is, if it has one.
#[derive(Clone)]
pub struct Batched {
    /// The operand, batch axis included.
    pub value: Tensor,
    /// The batch axis.
    pub axis: Option<usize>,
}

impl Batched {
    /// The operand with its batch axis in front; an unbatched operand is returned as it is.
    pub fn front(&self) -> Result<Tensor> {
        match self.axis {
            Some(axis) if axis > 0 => self.value.move_axis(axis, 0),
            _ => Ok(self.value.clone()),
        }
    }

    /// The operand with a batch axis of `size` in front, repeated if it had none.
    pub fn materialized(&self, size: usize) -> Result<Tensor> {
        match self.axis {
            Some(_) => self.front(),
            None => self.value.expand(&self.value.shape().inserted(0, size)?),
        }
    }
}

/// Batching rule of a function of elements: the batch axes of the operands stand in front.
pub fn aligned(op: impl Operation<Out = Tensor>, x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
    with_front(op, &align(x)?)
}

/// Batching rule of an operation whose attributes count the batch axis: it stands in front of every operand.
pub fn in_front(op: impl Operation, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
    with_front(op, &x.iter().map(|x| x.materialized(size)).collect::<Result<SmallVec<[Tensor; 4]>>>()?)
}

/// [`in_front`] for an operation that takes its operands as they are if they have no batch.
pub fn first_in_front(op: impl Operation, x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
    with_front(op, &x.iter().map(Batched::front).collect::<Result<SmallVec<[Tensor; 4]>>>()?)
}

/// Batching rule of an operation with one operand that leaves the batch axis in its position.
pub fn in_place(op: impl Operation<Out = Tensor>, x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
    Ok(smallvec![(bind(op, &[&x[0].value])?, x[0].axis)])
}

fn with_front(op: impl Operation, x: &[Tensor]) -> Result<BatchedOutputs> {
    let out = bind(op, &x.iter().collect::<SmallVec<[&Tensor; 4]>>())?;
    Ok(out.into_list().into_iter().map(|y| (y, Some(0))).collect())
}

/// The batching rule of this name, as [`in_front`], for the operation that is given.
macro_rules! batch {
    ($rule:ident: |$self:ident| $op:expr) => {
        $crate::op::batch!($rule: |$self, _size| $op);
    };
    ($rule:ident: |$self:ident, $size:ident| $op:expr) => {
        fn batch(
            &$self,
            x: &[$crate::op::Batched],
            $size: usize,
        ) -> $crate::error::Result<$crate::op::BatchedOutputs> {
            $rule($op, x, $size)
        }
    };
}
pub(crate) use batch;

/// Operands of a batched elementwise operation with the batch axis in front of equally many others.
pub fn align(x: &[Batched]) -> Result<SmallVec<[Tensor; 4]>> {
    let rank = x.iter().map(|l| l.value.rank() - l.axis.is_some() as usize).max().unwrap_or(0);
    x.iter()
        .map(|operand| {
            let value = operand.front()?;
            if operand.axis.is_none() || value.rank() == rank + 1 {
                return Ok(value);
            }
            let mut dims = value.shape().to_vec();
            let missing = rank + 1 - dims.len();
            dims.splice(1..1, std::iter::repeat_n(1, missing));
            value.reshape(&Shape::new(&dims)?)
        })
        .collect()
}
