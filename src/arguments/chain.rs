//! Chains of elementwise operations, as kernels that run them at once are made of them.

use super::logic::{Logic, Relation};
use crate::array::dtype::DType;
use crate::array::nest::Nest;
use crate::array::shape::Axes;
use crate::math::terms::Terms;
use smallvec::SmallVec;

/// What an elementwise operation computes of an element of each operand.
pub enum ElementRule {
    /// A number by a rule.
    Terms(Terms),
    /// Whether two numbers are in this relation.
    Compare(Relation),
    /// A function of two truth values.
    Logical(Logic),
    /// The second operand where the first one is true, else the third.
    Select,
    /// The operand, in another dtype.
    Same,
}

/// How an operand of a chain lies in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feed {
    /// As many elements as the chain has, in order.
    Dense,
    /// One element, for all.
    Single,
    /// Where this nest of the chain says: it broadcasts.
    Nest(u32),
    /// Only in this part of the chain, on a GPU.
    Part(u32),
}

/// Which of the elements of a chain, taken as those of a dense array, an operand has: perhaps none.
#[derive(Clone, PartialEq)]
pub struct Part {
    /// Where it lies along each axis of the array.
    pub axes: SmallVec<[Span; 4]>,
    /// Whether it is added to something, which stays as it is elsewhere: -0 is added there. Else 0 is there.
    pub adds: bool,
}

/// Where a part lies along an axis.
#[derive(Clone, Copy, PartialEq)]
pub struct Span {
    /// The length of the axis.
    pub length: usize,
    /// The first index of the part.
    pub start: usize,
    /// How many it has.
    pub count: usize,
    /// The stride of the operand.
    pub stride: isize,
}

/// One operation of a chain: it reads and writes slots.
pub struct Link {
    /// What it computes.
    pub rule: ElementRule,
    /// The dtype of its result.
    pub out: DType,
    /// The slots of its operands.
    pub from: SmallVec<[u32; 4]>,
    /// That of its result.
    pub to: u32,
}

/// A chain of operations on the same elements. Its slots are numbered: operands first, then outputs, then
/// values between.
pub struct Chain {
    /// How many elements each value has.
    pub n: usize,
    /// How the operands lie in memory, and their dtypes.
    pub operands: Vec<(Feed, DType)>,
    /// Where operands lie that broadcast.
    pub nests: Vec<Nest>,
    /// Those that are parts.
    pub parts: Vec<Part>,
    /// The dtypes of the outputs.
    pub outputs: Vec<DType>,
    /// The operations, in order.
    pub links: Vec<Link>,
}

/// What one kernel of a chain takes at most.
pub struct ChainLimits {
    /// Inputs and outputs together.
    pub arrays: usize,
    /// Inputs, and outputs.
    pub lists: usize,
    /// Words of parameters.
    pub words: usize,
    /// Bytes of an array.
    pub bytes: usize,
}

/// What a reduction over `axes` does with the elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Folding {
    /// Their sum, the largest or the smallest.
    pub how: How,
    /// The axes to reduce.
    pub axes: Axes,
    /// Whether to keep them with length 1.
    pub keepdim: bool,
}

/// How two elements are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// Their sum.
    Sum,
    /// The larger.
    Max,
    /// The smaller.
    Min,
}
