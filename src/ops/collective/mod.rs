//! Collective operations: what the members of a named axis do together. Under `vmap` a member is an example
//! of the batch, under MPI it is a process; the operation, its transpose and its batching rule are the same.
//!
//! All are linear, and the derivative is that of the whole map, over all members at once: the transpose of a
//! sum over the axis is a sum over the axis.
//!
//! An operation over a batch has a second operand, the position along the axis, which only this batch has:
//! where several batches are nested, it tells which of them is meant.

mod batch;
mod exchange;
mod extremum;
pub mod window;

pub use extremum::CollectiveExtremum;

use crate::arguments::group::SharedGroup;
use crate::ops::prelude::*;
use crate::ops::views::join::cat;
use std::sync::Arc;

/// What the members do. An axis is one of the tensor that a member has, and as long as there are members.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Exchange {
    /// All get the sum.
    Sum,
    /// The sum at one member, zeros at the others.
    SumAt {
        /// The member.
        root: usize,
    },
    /// The sum, of which each member keeps its part along an axis, without that axis.
    SumScatter {
        /// The axis that goes.
        axis: usize,
    },
    /// All get the values of all along a new axis.
    Gather {
        /// The axis that comes.
        axis: usize,
    },
    /// Part `i` along an axis goes to member `i`; what comes from there is part `i` along a new axis.
    AllToAll {
        /// The axis that goes.
        split: usize,
        /// The axis that comes.
        concat: usize,
    },
    /// The value of the first of each pair goes to the second; who gets none has zeros.
    Permute {
        /// No member is twice the first, or twice the second.
        pairs: Arc<[(usize, usize)]>,
    },
    /// All get the value of one member.
    Broadcast {
        /// The member.
        root: usize,
    },
}

/// The members.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Members {
    /// So many examples of the batch that the second operand has.
    Examples(usize),
    /// Processes.
    Processes(SharedGroup),
}

impl Members {
    /// Their number.
    pub fn count(&self) -> usize {
        match self {
            Members::Examples(count) => *count,
            Members::Processes(group) => group.0.size(),
        }
    }
}

/// A collective operation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Collective {
    /// What is done.
    pub exchange: Exchange,
    /// By whom.
    pub members: Members,
    /// Whether it is the transpose of what a program asked for: ranks that disagree tell them apart.
    pub transposed: bool,
}

impl Collective {
    /// The shape of the result for an operand of this shape.
    pub fn shape(&self, x: Shape) -> Result<Shape> {
        match self.exchange {
            Exchange::SumScatter { axis } => Ok(x.removed(axis)),
            Exchange::Gather { axis } => x.inserted(axis, self.members.count()),
            Exchange::AllToAll { split, concat } => x.removed(split).inserted(concat, self.members.count()),
            _ => Ok(x),
        }
    }

    /// The same among the same members, of tensors with the axis of another batch in front.
    fn batched(&self) -> Collective {
        let exchange = match &self.exchange {
            Exchange::SumScatter { axis } => Exchange::SumScatter { axis: axis + 1 },
            Exchange::Gather { axis } => Exchange::Gather { axis: axis + 1 },
            Exchange::AllToAll { split, concat } => {
                Exchange::AllToAll { split: split + 1, concat: concat + 1 }
            }
            other => other.clone(),
        };
        Collective { exchange, ..self.clone() }
    }
}

kernel! {
    Collective,
    match &self.exchange {
        Exchange::Sum | Exchange::SumAt { .. } => "psum",
        Exchange::SumScatter { .. } => "psum_scatter",
        Exchange::Gather { .. } => "all_gather",
        Exchange::AllToAll { .. } => "all_to_all",
        Exchange::Permute { .. } => "ppermute",
        Exchange::Broadcast { .. } => "pbroadcast",
    },
    |self, x| match &self.members {
        Members::Processes(group) => exchange::run(self, &*group.0, x[0]),
        Members::Examples(_) => Err(outside(self.name())),
    },
    /// One for each value that is added to the first.
    flops |x, _y| match &self.exchange {
        Exchange::Sum | Exchange::SumAt { .. } | Exchange::SumScatter { .. } => {
            x[0].numel() as u64 * (self.members.count() as u64).saturating_sub(1)
        }
        _ => 0,
    }
}

/// The error for an axis of a batch that ended, or of which a computation is no part.
#[cold]
fn outside(name: &str) -> Error {
    Error::value(format!(
        "{name}: the batch of this axis is not that of the computation; use the axis inside of the function \
         that vmap runs"
    ))
}

impl Linear for Collective {
    const TRANSPOSE: &'static str = "psum for psum; all_gather and psum_scatter are each other's; the others \
                                     send g back";
    const READS: Saves = Saves::input(1);

    fn transpose(&self, _wrt: usize, g: &Tensor, c: &Vjp) -> Result<Tensor> {
        let exchange = match &self.exchange {
            Exchange::Sum => Exchange::Sum,
            Exchange::SumAt { root } => Exchange::Broadcast { root: *root },
            Exchange::Broadcast { root } => Exchange::SumAt { root: *root },
            Exchange::SumScatter { axis } => Exchange::Gather { axis: *axis },
            Exchange::Gather { axis } => Exchange::SumScatter { axis: *axis },
            Exchange::AllToAll { split, concat } => Exchange::AllToAll { split: *concat, concat: *split },
            Exchange::Permute { pairs } => {
                Exchange::Permute { pairs: pairs.iter().map(|&(from, to)| (to, from)).collect() }
            }
        };
        let op = Collective { exchange, members: self.members.clone(), transposed: !self.transposed };
        match self.members {
            Members::Examples(_) => bind(op, &[g, c.input(1)?]),
            Members::Processes(_) => bind(op, &[g]),
        }
    }
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        match x.get(1) {
            Some(Batched { axis: Some(_), .. }) => batch::over_members(&self.exchange, &x[0], size),
            _ => first_in_front(self.batched(), x, size),
        }
    }
}

/// The sum over processes of the elements of tensors of one dtype, as one vector; without derivatives.
pub fn sum_joined(parts: &[Tensor], group: &SharedGroup) -> Result<Tensor> {
    let parts = parts.iter().map(Tensor::detach).collect::<Vec<_>>();
    if let Some(sum) = exchange::sum_joined(&*group.0, &parts)? {
        return Ok(sum.into());
    }
    let flat = |x: &Tensor| x.reshape(&Shape::new(&[x.numel()])?);
    let joined = cat(&parts.iter().map(flat).collect::<Result<Vec<_>>>()?, 0)?;
    joined.collective(Exchange::Sum, Members::Processes(group.clone()), None)
}

impl Tensor {
    /// A collective operation among the members of an axis: the examples of the batch of `index`, or the
    /// processes of a group.
    pub fn collective(&self, exchange: Exchange, members: Members, index: Option<&Tensor>) -> Result<Tensor> {
        let op = Collective { exchange, members, transposed: false };
        let (count, rank) = (op.members.count(), self.rank());
        let is_whole = |axis: usize| axis < rank && self.shape().at(axis) == count;
        let fits = match &op.exchange {
            Exchange::SumScatter { axis } => is_whole(*axis),
            Exchange::Gather { axis } => *axis <= rank,
            Exchange::AllToAll { split, concat } => is_whole(*split) && *concat < rank,
            Exchange::SumAt { root } | Exchange::Broadcast { root } => *root < count,
            Exchange::Permute { pairs } => {
                let distinct = |of: fn(&(usize, usize)) -> usize| {
                    let mut seen = vec![false; count];
                    pairs
                        .iter()
                        .map(of)
                        .all(|member| member < count && !std::mem::replace(&mut seen[member], true))
                };
                distinct(|pair| pair.0) && distinct(|pair| pair.1)
            }
            Exchange::Sum => true,
        };
        if !fits {
            let (name, what, shape) = (op.name(), &op.exchange, self.shape());
            return Err(Error::value(format!(
                "{name}: {what:?} does not fit {count} members and shape {shape}"
            )));
        }
        match index {
            Some(index) => bind(op, &[self, index]),
            None => bind(op, &[self]),
        }
    }
}
