//! What attention and its derivatives are given.

use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::random::State;
use crate::array::shape::Shape;
use crate::error::Result;

/// How scores become weights.
#[derive(Clone, Copy)]
pub struct Settings {
    /// The factor of the scores.
    pub scale: f64,
    /// Whether query `i` sees only the keys up to `i`.
    pub causal: bool,
    /// Dropout of the weights.
    pub dropout: Option<Dropout>,
}

/// Random dropout of weights: weight `(i, j)` of batch element `b` is decided by number
/// `(b * queries + i) * keys + j` of a stream.
#[derive(Clone, Copy)]
pub struct Dropout {
    /// The probability of a weight to be dropped.
    pub p: f64,
    /// Where in which stream.
    pub state: State,
    /// The batch axes (bit `i` for axis `i`) along which all elements have the same numbers.
    pub shared: u16,
}

/// The operands: queries `[..., L, E]` with the whole batch, keys `[..., S, E]` and values `[..., S, V]` with
/// one batch shape, whose axes of length 1 are shared by the queries, and a mask that broadcasts to
/// `[..., L, S]`.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// Queries.
    pub q: &'a Array,
    /// Keys.
    pub k: &'a Array,
    /// Values.
    pub v: &'a Array,
    /// The mask: bool, or added to the scores.
    pub mask: Option<&'a Array>,
    /// How scores become weights.
    pub settings: &'a Settings,
}

/// What the forward pass returned.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// The result.
    pub out: &'a Array,
    /// The logarithm of the sum of exponentials, `[..., L, 1]`.
    pub log_sum: &'a Array,
}

/// Which operands have tangents, and those.
#[derive(Clone, Copy, Default)]
pub struct Tangents<'a> {
    /// Of the queries.
    pub q: Option<&'a Array>,
    /// Of the keys.
    pub k: Option<&'a Array>,
    /// Of the values.
    pub v: Option<&'a Array>,
    /// Of an added mask.
    pub mask: Option<&'a Array>,
}

/// What a second derivative needs beside the operands.
#[derive(Clone, Copy)]
pub struct Moved<'a> {
    /// The tangents.
    pub tangents: Tangents<'a>,
    /// The tangent of the result.
    pub out: &'a Array,
    /// The mean of the tangents of the scores, `[..., L, 1]`.
    pub mean: &'a Array,
}

/// Which gradients are wanted.
#[derive(Clone, Copy)]
pub struct Wanted {
    /// Of the queries.
    pub q: bool,
    /// Of the keys.
    pub k: bool,
    /// Of the values.
    pub v: bool,
    /// Of an added mask.
    pub mask: bool,
}

/// Uninitialised memory of `shape` and `dtype` with the axes in the order in which `like`, of the same rank,
/// has them in memory, so that what was a view of heads beside each other stays one.
pub fn laid_out_as(shape: Shape, like: &Array, dtype: DType) -> Result<Array> {
    let order = memory_order(like);
    let dims: Vec<usize> = order.iter().map(|&i| shape.at(i as usize)).collect();
    Array::empty(Shape::new(&dims)?, dtype, like.device())?.permute(&inverse(&order))
}

/// The axes of `x` in the order in which they lie in memory, outermost first; their own order where the last
/// axis is not innermost or an axis is stretched.
pub(crate) fn memory_order(x: &Array) -> Vec<u8> {
    let rank = x.rank();
    // An axis of length 1 may have any stride: it stays before the axis that follows it.
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

/// Where each axis went in `order`.
pub(crate) fn inverse(order: &[u8]) -> Vec<u8> {
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &axis)| back[axis as usize] = at as u8);
    back
}
