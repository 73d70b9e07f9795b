//! Arguments of the kernels of attention and its derivatives.

use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::random::State;
use crate::array::shape::Shape;
use crate::error::Result;

/// How scores become attention weights.
#[derive(Clone, Copy)]
pub struct Settings {
    /// The factor on the scores.
    pub scale: f64,
    /// Whether query `i` sees only the keys up to `i`.
    pub causal: bool,
    /// Dropout of the weights, if any.
    pub dropout: Option<Dropout>,
}

/// Dropout: random number `(b * queries + i) * keys + j` decides about weight `(i, j)` of batch element `b`.
#[derive(Clone, Copy)]
pub struct Dropout {
    /// The probability of dropping a weight.
    pub p: f64,
    /// The stream, and the position of its first number.
    pub state: State,
    /// The batch axes (bit `i` for axis `i`) along which all elements share their numbers.
    pub shared: u16,
}

/// The operands. Queries `[..., L, E]` have the full batch shape. Keys `[..., S, E]` and values `[..., S, V]`
/// share one, whose axes of length 1 broadcast to the queries. The mask broadcasts to `[..., L, S]`.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// Queries.
    pub q: &'a Array,
    /// Keys.
    pub k: &'a Array,
    /// Values.
    pub v: &'a Array,
    /// The mask: bool, or float and added to the scores.
    pub mask: Option<&'a Array>,
    /// How scores become attention weights.
    pub settings: &'a Settings,
}

/// The outputs of the forward pass.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// The result.
    pub out: &'a Array,
    /// The logsumexp of each query's scores, `[..., L, 1]`.
    pub log_sum: &'a Array,
}

/// A value for each operand.
#[derive(Clone, Copy, Default)]
pub struct Each<T> {
    /// Of the queries.
    pub q: T,
    /// Of the keys.
    pub k: T,
    /// Of the values.
    pub v: T,
    /// Of an added mask.
    pub mask: T,
}

/// The tangents of the operands that have one.
pub type Tangents<'a> = Each<Option<&'a Array>>;

/// Which gradients are wanted.
pub type Wanted = Each<bool>;

/// The additional arguments of a second derivative.
#[derive(Clone, Copy)]
pub struct OutputTangents<'a> {
    /// The tangents.
    pub tangents: Tangents<'a>,
    /// The tangent of the result.
    pub out: &'a Array,
    /// The mean of the scores' tangents under the attention weights, `[..., L, 1]`.
    pub mean: &'a Array,
}

/// Allocates an uninitialised array of `shape` and `dtype` with the memory order of the axes of `like` (of
/// the same rank). So a result keeps the layout of its operand, such as a view of interleaved heads.
pub fn laid_out_as(shape: Shape, like: &Array, dtype: DType) -> Result<Array> {
    let order = memory_order(like);
    let dims: Vec<usize> = order.iter().map(|&i| shape.at(i as usize)).collect();
    Array::empty(Shape::new(&dims)?, dtype, like.device())?.permute(&inverse(&order))
}

/// Returns the axes of `x` in memory order, outermost first. Returns them in index order if the last axis is
/// not innermost or an axis is stretched.
pub(crate) fn memory_order(x: &Array) -> Vec<u8> {
    let rank = x.rank();
    // An axis of length 1 may have any stride: keep it before the next axis.
    let mut strides = x.strides();
    for i in (0..rank.saturating_sub(1)).rev().filter(|&i| x.dim(i) == 1) {
        strides[i] = strides[i + 1];
    }
    let own: Vec<u8> = (0..rank as u8).collect();
    let mut order = own.clone();
    order.sort_by_key(|&i| std::cmp::Reverse(strides[i as usize]));
    let stretched = (0..rank).any(|i| x.dim(i) > 1 && strides[i] <= 0);
    if stretched || order.last() != own.last() { own } else { order }
}

/// Returns the inverse permutation of `order`.
pub(crate) fn inverse(order: &[u8]) -> Vec<u8> {
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &axis)| back[axis as usize] = at as u8);
    back
}
