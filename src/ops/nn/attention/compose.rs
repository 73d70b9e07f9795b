//! Attention and its derivatives composed of other operations: their definition, and the path for derivatives
//! beyond the second order. The scores are materialised.

use super::{Given, Settings, Which};
use crate::ops::prelude::*;
use crate::ops::random;

/// The operands in the dtype of computation, with scores and weights.
struct Weights {
    /// Queries, keys, values.
    x: [Tensor; 3],
    /// The scores; a low finite number where masked out.
    scores: Tensor,
    /// Their softmax; 0 where masked out.
    weights: Tensor,
    /// Dropout's factors of the weights.
    keep: Option<Tensor>,
    scale: f64,
}

fn transposed(x: &Tensor) -> Result<Tensor> {
    x.transpose(-2, -1)
}

/// Sums over the keys.
fn over_keys(x: &Tensor) -> Result<Tensor> {
    x.sum(Some(&[-1]), true)
}

impl Weights {
    fn new(given: &Given<Tensor>, settings: &Settings) -> Result<Weights> {
        let dtype = given.operand(0)?.dtype().compute();
        let wide = |i| given.operand(i)?.cast(dtype);
        let x = [wide(0)?, wide(1)?, wide(2)?];
        let scale = settings.scale();
        let scores = x[0].mul(scale)?.matmul(&transposed(&x[1])?)?;
        let keep = keep(&scores, settings)?;
        let low = low(dtype);
        let Some((scores, counts)) = masked(&scores, given.x[3], settings, low)? else {
            let weights = scores.softmax(-1)?;
            return Ok(Weights { x, scores, weights, keep, scale });
        };
        // A low finite score, not -infinity, keeps rows that are all masked finite, and their derivatives.
        let scores = counts.select(&scores, low)?;
        let weights = counts.select(&scores.softmax(-1)?, 0.0)?;
        Ok(Weights { x, scores, weights, keep, scale })
    }

    /// Multiplies `x` by dropout's factors.
    fn kept(&self, x: Tensor) -> Result<Tensor> {
        match &self.keep {
            Some(keep) => x.mul(keep),
            None => Ok(x),
        }
    }

    /// `P D`: the weights after dropout.
    fn kept_weights(&self) -> Result<Tensor> {
        self.kept(self.weights.clone())
    }

    /// `scale (TQ K' + Q TK') + tmask` for the tangents in `t`.
    fn score_tangents(&self, t: &[Option<Tensor>; 4]) -> Result<Tensor> {
        let scaled = |x: &Tensor| x.mul(self.scale);
        let terms = [
            t[0].as_ref().map(|tq| scaled(tq)?.matmul(&transposed(&self.x[1])?)).transpose()?,
            t[1].as_ref().map(|tk| scaled(&self.x[0])?.matmul(&transposed(tk)?)).transpose()?,
            t[3].clone(),
        ];
        terms
            .into_iter()
            .try_fold(None, added)?
            .map_or_else(|| self.scores.zeros_like(), |moved| moved.expand(&self.scores.shape()))
    }

    /// Cotangents times values, with dropout: the cotangents of the weights.
    fn adjoint(&self, g: &Tensor, values: &Tensor) -> Result<Tensor> {
        self.kept(g.matmul(&transposed(values)?)?)
    }
}

/// The score of masked positions.
fn low(dtype: DType) -> f64 {
    let largest = if dtype == DType::F64 { f64::MAX } else { f64::from(f32::MAX) };
    -largest / 2.0
}

/// Applies the mask to the scores. Returns them and which of them count, or `None` if all do.
fn masked(
    scores: &Tensor, mask: Option<&Tensor>, settings: &Settings, low: f64,
) -> Result<Option<(Tensor, Tensor)>> {
    let (rank, device) = (scores.rank(), scores.device());
    let mut scores = scores.clone();
    let mut counts = None;
    if settings.causal {
        let position = |axis| Tensor::arange(0.0, 1.0, scores.shape().at(rank - axis), DType::F32, device);
        counts = Some(position(2)?.unsqueeze(-1)?.ge(&position(1)?)?);
    }
    if let Some(mask) = mask {
        let taken = if mask.dtype() == DType::Bool {
            mask.clone()
        } else {
            scores = scores.add(&mask.cast(scores.dtype())?)?;
            scores.gt(low)?
        };
        counts = Some(match counts {
            Some(counts) => counts.logical(&taken, crate::ops::pointwise::compare::Logic::And)?,
            None => taken,
        });
    }
    Ok(counts.map(|counts| (scores, counts)))
}

/// Returns dropout's factors of the weights.
fn keep(scores: &Tensor, settings: &Settings) -> Result<Option<Tensor>> {
    let Some(dropout) = settings.dropout else { return Ok(None) };
    let p = settings.numbers.get()[1];
    let shape = scores.shape();
    let own = |(i, d): (usize, usize)| {
        if i + 2 < shape.rank() && dropout.shared >> i & 1 == 1 { 1 } else { d }
    };
    let dims: Vec<usize> = shape.iter().enumerate().map(own).collect();
    let uniform = random::uniform_at(Shape::new(&dims)?, dropout.state.0, dropout.since.0, scores.device())?;
    let factor = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
    uniform.ge(p)?.cast(scores.dtype())?.mul(factor).map(Some)
}

/// The result, and the log-sum-exp of the scores.
pub fn attention(given: &Given<Tensor>, settings: &Settings) -> Result<Tensors> {
    let w = Weights::new(given, settings)?;
    let y = w.kept_weights()?.matmul(&w.x[2])?.cast(given.operand(0)?.dtype())?;
    let empty = w.scores.numel() == 0;
    let log_sum = if empty { over_keys(&w.scores)?.log()? } else { w.scores.logsumexp(Some(&[-1]), true)? };
    Ok(smallvec![y, log_sum])
}

/// The tangents in the dtype of computation.
fn wide_tangents(given: &Given<Tensor>, w: &Weights) -> Result<[Option<Tensor>; 4]> {
    let wide = |i: usize| given.t[i].map(|t| t.cast(w.weights.dtype())).transpose();
    Ok([wide(0)?, wide(1)?, wide(2)?, wide(3)?])
}

/// The tangent of the result, and the weighted mean of the tangents of the scores.
pub fn tangent(given: &Given<Tensor>, settings: &Settings) -> Result<Tensors> {
    let w = Weights::new(given, settings)?;
    let t = wide_tangents(given, &w)?;
    let moved = w.score_tangents(&t)?;
    let mean = over_keys(&w.weights.mul(&moved)?)?;
    let weights = w.kept(w.weights.mul(&moved.sub(&mean)?)?)?;
    let direct = t[2].as_ref().map(|tv| w.kept_weights()?.matmul(tv)).transpose()?;
    let y = weights.matmul(&w.x[2])?;
    let y = direct.map_or(Ok(y.clone()), |direct| y.add(&direct))?;
    Ok(smallvec![y.cast(given.operand(0)?.dtype())?, mean])
}

/// Reduces gradients to the shapes and dtypes of the wanted operands.
fn fitted(
    given: &Given<Tensor>, wanted: Which, mut gradient: impl FnMut(usize) -> Result<Tensor>,
) -> Result<Tensors> {
    let fit = |i: usize| {
        let like = given.operand(i)?;
        gradient(i)?.sum_to(&like.shape())?.cast(like.dtype())
    };
    wanted.iter().map(fit).collect()
}

/// The gradients of `<g, out>`, one per wanted operand.
pub fn gradients(given: &Given<Tensor>, settings: &Settings, wanted: Which) -> Result<Tensors> {
    let w = Weights::new(given, settings)?;
    let g = given.g()?.cast(w.weights.dtype())?;
    let adjoint = w.adjoint(&g, &w.x[2])?;
    let delta = over_keys(&w.weights.mul(&adjoint)?)?;
    let scores = w.weights.mul(&adjoint.sub(&delta)?)?;
    fitted(given, wanted, |i| match i {
        0 => scores.matmul(&w.x[1])?.mul(w.scale),
        1 => transposed(&scores)?.matmul(&w.x[0])?.mul(w.scale),
        2 => transposed(&w.kept_weights()?)?.matmul(&g),
        _ => Ok(scores.clone()),
    })
}

/// The gradients of `<g, J(t)>`, one per wanted operand; formulas as in `cpu::attention::tile::Second`.
pub fn second_gradients(given: &Given<Tensor>, settings: &Settings, wanted: Which) -> Result<Tensors> {
    let w = Weights::new(given, settings)?;
    let t = wide_tangents(given, &w)?;
    let g = given.g()?.cast(w.weights.dtype())?;
    let (p, h) = (&w.weights, w.adjoint(&g, &w.x[2])?);
    let moved = w.score_tangents(&t)?;
    let (delta, mean) = (over_keys(&p.mul(&h)?)?, over_keys(&p.mul(&moved)?)?);
    let cross = t[2].as_ref().map(|tv| w.adjoint(&g, tv)).transpose()?;
    let product = h.mul(&moved)?.sub(&delta.mul(&moved)?)?.sub(&mean.mul(&h)?)?;
    let x = cross.map_or(Ok(product.clone()), |cross| product.add(&cross))?;
    let scores = p.mul(&x.sub(&over_keys(&p.mul(&x)?)?)?)?;
    let tangents = p.mul(&h.sub(&delta)?)?;
    let values = w.kept(p.mul(&moved.sub(&mean)?)?)?;
    let both = |direct: Tensor, cross: Option<Tensor>| {
        added(Some(direct), cross)?.map_or(g.mul(0.0), |y| y.mul(w.scale))
    };
    fitted(given, wanted, |i| match i {
        0 => both(scores.matmul(&w.x[1])?, t[1].as_ref().map(|tk| tangents.matmul(tk)).transpose()?),
        1 => {
            let cross = t[0].as_ref().map(|tq| transposed(&tangents)?.matmul(tq)).transpose()?;
            both(transposed(&scores)?.matmul(&w.x[0])?, cross)
        }
        2 => transposed(&values)?.matmul(&g),
        _ => Ok(scores.clone()),
    })
}
