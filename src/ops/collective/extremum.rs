//! The extremum over a named axis: of what all members have, element by element.

use super::{Exchange, Members, exchange, outside};
use crate::ops::prelude::*;

/// The largest or smallest among the members. NaN wins; ties share the gradient evenly.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CollectiveExtremum {
    /// Whether it is the largest, rather than the smallest.
    pub largest: bool,
    /// The members; examples are those of the batch that the second operand has.
    pub members: Members,
}

kernel! {
    CollectiveExtremum,
    if self.largest { "pmax" } else { "pmin" },
    |self, x| match &self.members {
        Members::Processes(group) => exchange::extremum(self.name(), self.largest, &*group.0, x[0]),
        Members::Examples(_) => Err(outside(self.name())),
    }
}

impl Composite for CollectiveExtremum {
    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let all = x[0].collective(Exchange::Gather { axis: 0 }, self.members.clone(), x.get(1).copied())?;
        let found = if self.largest { all.amax(Some(&[0]), false) } else { all.amin(Some(&[0]), false) };
        Ok(smallvec![found?])
    }
}

impl Tensor {
    /// The extremum among the members of an axis: the examples of the batch of `index`, or the processes of a
    /// group.
    pub fn collective_extremum(
        &self, largest: bool, members: Members, index: Option<&Tensor>,
    ) -> Result<Tensor> {
        let op = CollectiveExtremum { largest, members };
        match index {
            Some(index) => bind(op, &[self, index]),
            None => bind(op, &[self]),
        }
    }
}
