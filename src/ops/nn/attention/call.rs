//! The attention function that users call: checks operands, aligns batch axes, and binds the operation.

use super::{Attention, Dropout, Settings};
use crate::op::AtCall;
use crate::ops::pointwise::operand::{join, promote};
use crate::ops::prelude::*;
use crate::ops::random;

/// The public name, for error messages.
const CALL: &str = "scaled_dot_product_attention";

/// Settings of [`Tensor::attention`].
#[derive(Clone, Copy, Default)]
pub struct AttentionOptions<'a> {
    /// Broadcasts to `[..., L, S]`. Bool: true takes part; float: added to the scores.
    pub mask: Option<&'a Tensor>,
    /// The probability that a weight is dropped.
    pub dropout: f64,
    /// Whether query `i` sees only the keys up to `i`.
    pub causal: bool,
    /// The factor of the scores, `1 / sqrt(E)` by default.
    pub scale: Option<f64>,
    /// Whether several heads of the queries (the third axis from the end) share one head of keys and values.
    pub grouped: bool,
}

/// The shape of the axes before the last two.
fn batch_of(x: &Tensor) -> Shape {
    x.shape().part(0, x.rank() - 2)
}

/// The shape of a batch of matrices.
fn matrices(batch: &Shape, rows: usize, columns: usize) -> Result<Shape> {
    batch.inserted(batch.rank(), rows)?.inserted(batch.rank() + 1, columns)
}

/// Broadcasts the batch axes of `x` to `batch`.
fn with_batch(x: &Tensor, batch: &Shape) -> Result<Tensor> {
    let (shape, rank) = (x.shape(), x.rank());
    x.with_rank(batch.rank() + 2, 0)?.expand(&matrices(batch, shape.at(rank - 2), shape.at(rank - 1))?)
}

#[cold]
fn no_batch(q: &Tensor, k: &Tensor, v: &Tensor) -> Error {
    Error::shape(format!(
        "{CALL}: the batch axes of query {}, key {} and value {} do not broadcast; with enable_gqa=True the \
         heads of the query (axis -3) may be a multiple of those of key and value",
        q.shape(),
        k.shape(),
        v.shape()
    ))
}

#[cold]
fn bad_mask(mask: &Tensor, wanted: &Shape) -> Error {
    Error::shape(format!(
        "{CALL}: attn_mask of shape {} does not broadcast to the scores, {wanted}",
        mask.shape()
    ))
}

/// Returns the operands as floats of one dtype, after checking ranks, depths and lengths.
fn operands(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<[Tensor; 3]> {
    let fits = |q: &Shape, k: &Shape, v: &Shape| {
        let (a, b, c) = (q.rank(), k.rank(), v.rank());
        a >= 2 && b >= 2 && c >= 2 && q.at(a - 1) == k.at(b - 1) && k.at(b - 2) == v.at(c - 2)
    };
    if !fits(&q.shape(), &k.shape(), &v.shape()) {
        return Err(Error::shape(format!(
            "{CALL}: query {}, key {}, value {}; expected (..., L, E), (..., S, E), (..., S, V)",
            q.shape(),
            k.shape(),
            v.shape()
        )));
    }
    let dtype = promote(q, k).promote(v.dtype());
    if !dtype.is_float() {
        return Err(Error::dtype(format!(
            "{CALL}: floating point operands expected, got {}, {} and {}; convert with .float()",
            q.dtype(),
            k.dtype(),
            v.dtype()
        )));
    }
    if crate::interp::autocasting() {
        return Ok([q.clone(), k.clone(), v.clone()]);
    }
    Ok([q.cast(dtype)?, k.cast(dtype)?, v.cast(dtype)?])
}

/// Checks the mask; returns it as bool or in the dtype of `like`.
fn mask_of(mask: &Tensor, like: &Tensor, causal: bool) -> Result<Tensor> {
    if causal {
        return Err(Error::value(format!("{CALL}: give attn_mask or is_causal, not both")));
    }
    match mask.dtype() {
        DType::Bool => Ok(mask.clone()),
        dtype if dtype.is_float() => join(mask, like.dtype(), like.device()),
        dtype => Err(Error::dtype(format!(
            "{CALL}: attn_mask must be bool (True takes part) or floating point (added to the scores), got \
             {dtype}; convert with .bool()"
        ))),
    }
}

/// Splits the axis of heads: `[..., heads * groups, L, E]` to `[..., heads, groups, L, E]`.
fn grouped(x: &Tensor, groups: usize) -> Result<Tensor> {
    let axis = x.rank() - 3;
    let shape = x.shape();
    x.reshape(&shape.with(axis, shape.at(axis) / groups).inserted(axis + 1, groups)?)
}

/// Aligns the mask with grouped queries of `heads` heads.
fn grouped_mask(mask: &Tensor, heads: usize, groups: usize) -> Result<Tensor> {
    match mask.rank() {
        rank if rank >= 3 && mask.shape().at(rank - 3) == heads => grouped(mask, groups),
        rank if rank >= 3 => grouped(mask, 1),
        _ => Ok(mask.clone()),
    }
}

impl Tensor {
    /// `softmax(Q K' scale + mask) V` of queries `[..., L, E]` (`self`), keys `[..., S, E]` and values
    /// `[..., S, V]`; batch axes broadcast. Memory beyond operands and result is linear in the lengths. A
    /// query that sees no key gets 0.
    pub fn attention(&self, key: &Tensor, value: &Tensor, options: AttentionOptions) -> Result<Tensor> {
        let [q, k, v] = operands(self, key, value)?;
        let p = options.dropout;
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::value(format!("{CALL}: dropout_p is a probability between 0 and 1, got {p}")));
        }
        let mask = options.mask.map(|mask| mask_of(mask, &q, options.causal)).transpose()?;
        if !options.grouped {
            return attend(&q, &k, &v, mask.as_ref(), &options);
        }
        let heads = |x: &Tensor| if x.rank() < 3 { 0 } else { x.shape().at(x.rank() - 3) };
        let (all, own) = (heads(&q), heads(&k));
        if own == 0 || heads(&v) != own || all % own != 0 {
            return Err(Error::shape(format!(
                "{CALL}: enable_gqa=True with query {}, key {}, value {}; expected an axis of heads (axis \
                 -3) everywhere, as many heads of key as of value, and a multiple of them of query",
                q.shape(),
                k.shape(),
                v.shape()
            )));
        }
        let groups = all / own;
        let mask = mask.map(|mask| grouped_mask(&mask, all, groups)).transpose()?;
        let out = attend(
            &grouped(&q, groups.max(1))?,
            &grouped(&k, 1)?,
            &grouped(&v, 1)?,
            mask.as_ref(),
            &options,
        )?;
        let axis = out.rank() - 4;
        out.flatten(axis as i64, axis as i64 + 1)
    }
}

/// Aligns batch axes and runs the operation.
fn attend(
    q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>, options: &AttentionOptions,
) -> Result<Tensor> {
    let owners = batch_of(k).broadcast(&batch_of(v)).ok_or_else(|| no_batch(q, k, v))?;
    let mut batch = batch_of(q).broadcast(&owners).ok_or_else(|| no_batch(q, k, v))?;
    let (queries, keys) = (q.shape().at(q.rank() - 2), k.shape().at(k.rank() - 2));
    if let Some(mask) = mask {
        let wanted = matrices(&batch, queries, keys)?;
        let shape = mask.shape().broadcast(&wanted).ok_or_else(|| bad_mask(mask, &wanted))?;
        if shape.at(shape.rank() - 2) != queries || shape.at(shape.rank() - 1) != keys {
            return Err(bad_mask(mask, &wanted));
        }
        batch = shape.part(0, shape.rank() - 2);
    }
    let rank = batch.rank() + 2;
    let mut lead = owners;
    while lead.rank() < batch.rank() {
        lead = lead.inserted(0, 1)?;
    }
    let mut q = with_batch(q, &batch)?;
    let (k, v) = (with_batch(k, &lead)?, with_batch(v, &lead)?);
    let mask = mask.map(|mask| mask.with_rank(rank, 0)).transpose()?;
    let mut dropout = None;
    if options.dropout > 0.0 {
        let count = (batch.numel() * queries) as u64 * keys as u64;
        let (state, since) = random::reserve(CALL, count)?;
        dropout = Some(Dropout {
            state: AtCall(state),
            shared: 0,
            since: AtCall(since),
            own: random::own_levels(since).len(),
        });
        q = random::in_own_batches(&q)?;
    }
    let depth = q.shape().at(rank - 1) as f64;
    let scale = options.scale.unwrap_or_else(|| 1.0 / depth.max(1.0).sqrt());
    let numbers = [scale, options.dropout].into();
    let settings = Settings { numbers, causal: options.causal, masked: mask.is_some(), dropout };
    let mut inputs = vec![&q, &k, &v];
    inputs.extend(&mask);
    first(bind(Attention { settings }, &inputs)?)
}
