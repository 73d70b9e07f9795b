//! Attention and its derivatives on the GPU, in tiles; the counterpart of `src/cpu/attention/`.
//!
//! All passes share one set of bindings and parameters (`shaders/lib/attention_tiles.wgsl`): passes along the
//! queries for results, tangents and gradients of queries, along the keys for gradients of keys and values,
//! and along an added mask. Operands may have any strides. A tangent shares a buffer with its operand, so
//! that eight buffers suffice.

mod problem;

use super::copy::{convert, flat};
use super::prelude::*;
use crate::arguments::attention::{Inputs, Known, OutputTangents, Tangents, Wanted, laid_out_as};
use problem::{Pass, Problem, SIDE};

const FORWARD: &str = shader!("lib/philox", "lib/attention_tiles", "lib/attention_scores", "attention");
const BACKWARD: &str =
    shader!("lib/philox", "lib/attention_tiles", "lib/attention_scores", "attention_backward");

/// The result `[..., L, V]`, and the log-sum-exp of the scores `[..., L, 1]` in float32. A query that sees no
/// key gets 0 and minus infinity.
pub fn forward(x: &Inputs) -> Result<(Array, Array)> {
    let p = Problem::new(x, &Tangents::default())?;
    let (out, log_sum) = along_queries(&p, "attention", x.q, None, None)?;
    Ok((rounded(&out, x.q.dtype())?, log_sum))
}

/// The tangent of the result, and the weighted mean of the tangents of the scores.
pub fn jvp(x: &Inputs, known: &Known, t: &Tangents) -> Result<(Array, Array)> {
    let p = Problem::new(x, t)?;
    let log_sum = flat(known.log_sum, DType::F32)?;
    let (out, mean) = along_queries(&p, "attention_tangent", x.q, Some(known.out), Some(&log_sum))?;
    Ok((rounded(&out, x.q.dtype())?, mean))
}

/// The wanted gradients of queries, keys, values and mask, for the cotangent `g` of the result. With `moved`,
/// the gradients of `<g, tangent of the result>` instead: the second derivative.
pub fn vjp(
    x: &Inputs, known: &Known, g: &Array, moved: Option<&OutputTangents>, wanted: Wanted,
) -> Result<[Option<Array>; 4]> {
    let p = Problem::new(x, &moved.map(|m| m.tangents).unwrap_or_default())?;
    let back = Back { p: &p, g, stats: statistics(&p, known, g, moved)?, second: moved.is_some() };
    let dq = if wanted.q { Some(back.queries(x.q)?) } else { None };
    let (dk, dv) = back.keys(wanted.k.then_some(x.k), wanted.v.then_some(x.v))?;
    let dmask = x.mask.filter(|_| wanted.mask).map(|mask| back.mask(mask)).transpose()?;
    Ok([dq, dk, dv, dmask])
}

/// Converts `x` to `dtype`; keeps its layout if it has that dtype.
fn rounded(x: &Array, dtype: DType) -> Result<Array> {
    if x.dtype() == dtype { Ok(x.clone()) } else { convert(x, dtype) }
}

/// Runs a pass along the queries: returns a row per query, in the layout of `like`, and a number per query.
fn along_queries(
    p: &Problem, entry: &'static str, like: &Array, known: Option<&Array>, log_sum: Option<&Array>,
) -> Result<(Array, Array)> {
    let (rank, shape) = (like.rank(), like.shape());
    let dtype = dtype_of_rows(like.dtype(), &[p.width]);
    let out = laid_out_as(shape.with(rank - 1, p.width), like, dtype)?;
    let number = Array::empty(shape.with(rank - 1, 1), DType::F32, like.device())?;
    let mut pass = p.pass(known.unwrap_or(like), log_sum.unwrap_or(like), [&out, &number], p.width);
    pass.chunks = pass.chunks.max(1);
    let flops = known.is_none().then_some(2 * (p.depth + p.width));
    p.run(&pass, entry, FORWARD, flops, |_| ())?;
    Ok((out, number))
}

/// Per query: the log-sum-exp, the mean of the cotangents of the weights and, for the second derivative, the
/// means of the tangents of the scores and of the second derivatives.
fn statistics(p: &Problem, known: &Known, g: &Array, moved: Option<&OutputTangents>) -> Result<Array> {
    let rank = g.rank();
    let rows = g.shape().with(rank - 1, 1).numel();
    let out = Array::empty(Shape::new(&[rows, 4])?, DType::F32, g.device())?;
    let lse = flat(known.log_sum, DType::F32)?;
    let (tangent, mean) = match moved {
        Some(moved) => (moved.out, flat(moved.mean, DType::F32)?),
        // A placeholder for the absent buffer; the flag tells that it is not read.
        None => (known.out, lse.clone()),
    };
    let read = [g, known.out, tangent];
    let mut run = Dispatch::new("attention_rows", shader!("attention_rows"), DType::F32);
    run.input("g", g).input("y", known.out).input("moved", tangent).reads(&lse).reads(&mean).writes(&out);
    run.flag("SECOND", moved.is_some()).lengths(&g.shape().part(0, rank - 1));
    for x in read {
        run.eight((0..rank - 1).map(|i| x.stride(i)));
    }
    run.words([rank - 1, rows, p.width]);
    for x in read {
        run.words([x.offset(), x.stride(rank - 1) as usize]);
    }
    run.launch(rows.div_ceil(16))?;
    Ok(out)
}

/// The backward passes.
struct Back<'a> {
    p: &'a Problem<'a>,
    g: &'a Array,
    stats: Array,
    second: bool,
}

/// The batch shape in which workgroups own elements of `x`: axes along which `x` is shared have length 1.
fn owners(batch: &Shape, x: &Array) -> Shape {
    (0..batch.rank()).fold(*batch, |own, i| if x.dim(i) == 1 { own.with(i, 1) } else { own })
}

impl Back<'_> {
    fn run(&self, pass: &Pass, entry: &'static str, wants: usize) -> Result<()> {
        let (second, depth, width) = (self.second, self.p.depth, self.p.width);
        // Scores and the cotangents of weights, then one product for each gradient.
        let keys = if wants & 2 != 0 { depth } else { 0 } + if wants & 4 != 0 { width } else { 0 };
        let own = if entry == "attention_queries" { depth } else { keys };
        let flops = (!second).then_some(2 * (depth + width + own));
        self.p.run(pass, entry, BACKWARD, flops, |run| {
            run.flag("SECOND", second).number("WANTS", wants);
            run.text.store("out2", pass.out2.dtype());
        })
    }

    /// A pass along the queries that writes `out` and `out2` of so many columns.
    fn pass<'b>(&'b self, out: &'b Array, out2: &'b Array, columns: usize) -> Pass<'b> {
        self.p.pass(self.g, &self.stats, [out, out2], columns)
    }

    /// The gradient of the queries `x`.
    fn queries(&self, x: &Array) -> Result<Array> {
        let depth = self.p.depth;
        let out = laid_out_as(x.shape(), x, dtype_of_rows(x.dtype(), &[depth]))?;
        self.run(&self.pass(&out, &out, depth), "attention_queries", 0)?;
        rounded(&out, x.dtype())
    }

    /// The gradients of keys and values, for those that are given.
    fn keys(&self, k: Option<&Array>, v: Option<&Array>) -> Result<(Option<Array>, Option<Array>)> {
        let p = self.p;
        let Some(like) = k.or(v) else { return Ok((None, None)) };
        let dtype = dtype_of_rows(like.dtype(), &[p.depth, p.width]);
        let made = |x: Option<&Array>| x.map(|x| laid_out_as(x.shape(), x, dtype)).transpose();
        let (dk, dv) = (made(k)?, made(v)?);
        let Some(any) = dk.as_ref().or(dv.as_ref()) else { return Ok((None, None)) };
        let columns = k.map_or(0, |_| p.depth).max(v.map_or(0, |_| p.width));
        let (out, out2) = (dk.as_ref().unwrap_or(any), dv.as_ref().unwrap_or(any));
        let pass = Pass {
            own: owners(&p.batch, like),
            tiles: p.keys.div_ceil(SIDE),
            walked: p.queries.div_ceil(SIDE),
            ..self.pass(out, out2, columns)
        };
        let wants = 2 * usize::from(dk.is_some()) + 4 * usize::from(dv.is_some());
        self.run(&pass, "attention_keys", wants)?;
        let each = |x: Option<Array>| x.map(|x| rounded(&x, like.dtype())).transpose();
        Ok((each(dk)?, each(dv)?))
    }

    /// The gradient of the added mask `x`.
    fn mask(&self, x: &Array) -> Result<Array> {
        let (p, rank) = (self.p, x.rank());
        let out = Array::empty(x.shape(), DType::F32, x.device())?;
        let (rows, cols) = (x.dim(rank - 2), x.dim(rank - 1));
        // An axis of length 1 gets the sum over all scores.
        let along = |own: usize, all: usize| if own == 1 { all.div_ceil(SIDE) } else { 1 };
        let pass = Pass {
            own: owners(&p.batch, x),
            tiles: rows.div_ceil(SIDE),
            walked: along(rows, p.queries) * along(cols, p.keys),
            chunks: cols.div_ceil(SIDE),
            blocks: 1,
            mask: Some((rows, cols)),
            ..self.pass(&out, &out, 0)
        };
        self.run(&pass, "attention_mask", 0)?;
        rounded(&out, x.dtype())
    }
}
