//! Softmax, layer normalisation and cross entropy on the GPU; the counterpart of `src/cpu/rows/norm.rs`.
//!
//! A row is kept in the registers of 16, 64 or 256 threads and read once; a workgroup loops over longer rows.

use super::copy::{flat, from_start};
use super::pieces::{Arrays, fit, in_halves, joined, limit};
use super::prelude::*;
use super::reduce::Fold;
use crate::gpu::status;
use smallvec::smallvec;

/// The distribution of rows over threads.
#[derive(Clone, Copy)]
struct Rows {
    /// The number of rows.
    rows: usize,
    /// Elements per row.
    cols: usize,
    /// Threads per row.
    lanes: usize,
    /// Whether a row fits into the registers of its threads.
    fits: bool,
}

impl Rows {
    /// The rows of `x` over its last `axes` axes.
    fn of(x: &Array, axes: usize) -> Rows {
        let cols: usize = x.shape().iter().rev().take(axes).product();
        let rows = x.numel().checked_div(cols).unwrap_or(0);
        let lanes = [16, 64].into_iter().find(|lanes| cols <= 16 * lanes).unwrap_or(256);
        Rows { rows, cols, lanes, fits: cols <= 16 * lanes }
    }

    /// The number of workgroups for all rows.
    fn groups(&self) -> usize {
        self.rows.div_ceil(256 / self.lanes)
    }

    /// A dispatch of a row kernel with the entry points `rows` and `wide`.
    fn dispatch<'a>(&self, name: &'a str, source: &'static str) -> Dispatch<'a> {
        let mut run = Dispatch::new(name, source, DType::F32);
        run.entry(if self.fits { "rows" } else { "wide" });
        run.number("LANES", self.lanes).number("RADIX", self.lanes.isqrt());
        run
    }

    /// Whether rows that follow each other start at multiples of four elements; they are bound by vectors.
    fn are_fours(&self) -> bool {
        self.cols.is_multiple_of(4)
    }

    /// Binds rows as input `name`.
    fn input<'a>(&self, run: &mut Dispatch<'a>, name: &'static str, x: &'a Array) {
        match self.are_fours() {
            true => run.text.load_fours(name, x.dtype()),
            false => run.text.load(name, x.dtype()),
        };
        run.reads(x);
    }

    /// Binds rows as output `name`.
    fn result<'a>(&self, run: &mut Dispatch<'a>, name: &'static str, x: &'a Array) {
        match self.are_fours() {
            true => run.text.store_fours(name, x.dtype()),
            false => run.text.store(name, x.dtype()),
        };
        run.writes(x).flag("FOURS", self.are_fours());
    }

    /// An array for the result of rows of `x`.
    fn output(&self, x: &Array) -> Result<Array> {
        like(x, dtype_of_rows(x.dtype(), &[self.cols]))
    }
}

/// The longest of the axes before the last `axes`, along which rows that kernels cannot bind are cut.
fn longest(x: &Array, axes: usize) -> Option<usize> {
    (0..x.rank() - axes).max_by_key(|&i| (x.dim(i), std::cmp::Reverse(i)))
}

/// Results of two halves of rows one behind the other, along the axis that was cut.
fn behind(axis: Option<usize>, a: &Array, b: &Array) -> Result<Array> {
    joined(a, b, axis.unwrap_or(0))
}

/// An operation with one result on rows that kernels cannot bind.
fn by_rows(name: &str, x: &[&Array], axes: usize, run: &dyn Fn(&[&Array]) -> Result<Array>) -> Result<Array> {
    let axis = longest(x[0], axes);
    let mut out = in_halves(name, x, axis, &|x| Ok(smallvec![run(x)?]), &|_, a, b| behind(axis, a, b))?;
    Ok(out.remove(0))
}

/// Softmax along the last axis, or its logarithm.
pub fn softmax(x: &Array, log: bool) -> Result<Array> {
    if !fit([x])? {
        return by_rows("softmax", &[x], 1, &|x| softmax(x[0], log));
    }
    let x = from_start(x)?;
    let rows = Rows::of(&x, 1);
    let out = rows.output(&x)?;
    let mut run = rows.dispatch("softmax", shader!("softmax"));
    rows.input(&mut run, "x", &x);
    rows.result(&mut run, "out", &out);
    run.flag("LOG", log);
    run.words([rows.rows, rows.cols, 0, rows.cols, rows.cols]);
    run.launch(rows.groups())?;
    cast(&out, x.dtype())
}

/// The VJP of [`softmax`]: `y * (g - sum(g * y))`, or `g - exp(y) * sum(g)` for the logarithm.
pub fn softmax_vjp(g: &Array, y: &Array, log: bool) -> Result<Array> {
    if !fit([g, y])? {
        return by_rows("softmax", &[g, y], 1, &|x| softmax_vjp(x[0], x[1], log));
    }
    let (g, y) = (from_start(g)?, from_start(y)?);
    let rows = Rows::of(&y, 1);
    let out = rows.output(&y)?;
    let mut run = rows.dispatch("softmax_vjp", shader!("softmax_backward"));
    rows.input(&mut run, "y", &y);
    rows.input(&mut run, "g", &g);
    rows.result(&mut run, "out", &out);
    run.flag("LOG", log);
    run.words([rows.rows]).words([rows.cols; 4]);
    run.launch(rows.groups())?;
    cast(&out, y.dtype())
}

/// Normalises the last `axes` axes to mean 0 and variance 1, then scales and shifts. Returns the result and,
/// in float32, the mean and the reciprocal standard deviation of each row.
pub fn layer_norm(
    x: &Array, weight: Option<&Array>, bias: Option<&Array>, axes: usize, eps: f64,
) -> Result<(Array, Array, Array)> {
    if !fit([x])? {
        let axis = longest(x, axes);
        let run = |x: &[&Array]| {
            layer_norm(x[0], weight, bias, axes, eps).map(|(y, mean, rstd)| smallvec![y, mean, rstd])
        };
        return triple(in_halves("layer_norm", &[x], axis, &run, &|_, a, b| behind(axis, a, b))?);
    }
    let x = from_start(x)?;
    let rows = Rows::of(&x, axes);
    let out = rows.output(&x)?;
    let lead = x.shape().part(0, x.rank() - axes);
    let mean = Array::empty(lead, DType::F32, x.device())?;
    let rstd = Array::empty(lead, DType::F32, x.device())?;
    // Placeholders for absent buffers; the flags tell that they are not read.
    let scale = weight.map_or(Ok(x.clone()), from_start)?;
    let shift = bias.map_or(Ok(x.clone()), from_start)?;
    let mut run = rows.dispatch("layer_norm", shader!("layernorm"));
    for (name, x) in [("x", &x), ("weight", &scale), ("bias", &shift)] {
        rows.input(&mut run, name, x);
    }
    rows.result(&mut run, "out", &out);
    run.writes(&mean).writes(&rstd);
    let flags = usize::from(weight.is_some()) | usize::from(bias.is_some()) << 1;
    run.words([rows.rows, rows.cols, 0, rows.cols, rows.cols, flags]).floats([eps]);
    run.launch(rows.groups())?;
    Ok((cast(&out, x.dtype())?, mean, rstd))
}

/// Three results by name.
fn triple(mut all: Arrays) -> Result<(Array, Array, Array)> {
    match (all.pop(), all.pop(), all.pop()) {
        (Some(c), Some(b), Some(a)) => Ok((a, b, c)),
        _ => Err(Error::shape("internal: an operation of three results")),
    }
}

/// The number of rows whose partial sums of the weight's gradient are kept separately.
const SLOTS: usize = 512;

/// The VJP of [`layer_norm`]: the cotangents of `x`, weight and bias (the last two in the shape of the
/// normalised axes, and in the weight's dtype, or that of `x` without a weight).
pub fn layer_norm_vjp(
    g: &Array, x: &Array, weight: Option<&Array>, mean: &Array, rstd: &Array, axes: usize,
) -> Result<(Array, Array, Array)> {
    if !fit([g, x])? {
        let axis = longest(x, axes);
        let run = |x: &[&Array]| {
            layer_norm_vjp(x[0], x[1], weight, x[2], x[3], axes).map(|(dx, dw, db)| smallvec![dx, dw, db])
        };
        let join = |i: usize, a: &Array, b: &Array| match i {
            0 => behind(axis, a, b),
            _ => Fold::Sum.combine(a, b),
        };
        return triple(in_halves("layer_norm", &[g, x, mean, rstd], axis, &run, &join)?);
    }
    let (g, x, mean, rstd) = (from_start(g)?, from_start(x)?, from_start(mean)?, from_start(rstd)?);
    let rows = Rows::of(&x, axes);
    let out = rows.output(&x)?;
    let scale = weight.map_or(Ok(x.clone()), from_start)?;
    let per_group = 256 / rows.lanes;
    // Even without rows, one workgroup writes the sums, which are zero.
    let most = SLOTS.min(limit(&x)? / (8 * rows.cols).max(1));
    let groups = rows.groups().min(most / per_group).max(1);
    let slots = groups * per_group;
    let partial = Array::empty(Shape::new(&[slots, 2, rows.cols])?, DType::F32, x.device())?;
    let mut run = rows.dispatch("layer_norm_vjp", shader!("layernorm_backward"));
    for (name, x) in [("x", &x), ("g", &g), ("weight", &scale)] {
        rows.input(&mut run, name, x);
    }
    run.reads(&mean).reads(&rstd);
    rows.result(&mut run, "out", &out);
    run.writes(&partial);
    run.words([rows.rows]).words([rows.cols; 4]).words([usize::from(weight.is_some()) | 8, groups]);
    run.launch(groups)?;
    let tail = x.shape().part(x.rank() - axes, x.rank());
    let (dweight, dbias) = add_slots(&partial, tail, slots, scale.dtype())?;
    Ok((cast(&out, x.dtype())?, dweight, dbias))
}

/// Adds the partial sums of the gradients of weight and bias.
fn add_slots(partial: &Array, shape: Shape, slots: usize, dtype: DType) -> Result<(Array, Array)> {
    let dweight = Array::empty(shape, dtype, partial.device())?;
    let dbias = Array::empty(shape, dtype, partial.device())?;
    let mut run = Dispatch::new("layer_norm_columns", shader!("layernorm_columns"), DType::F32);
    run.reads(partial).output("dweight", &dweight).output("dbias", &dbias).words([slots, shape.numel()]);
    run.launch(words_of(&dweight).div_ceil(8))?;
    Ok((dweight, dbias))
}

/// Checks that the classes are int32; returns them from the start of a buffer.
fn labels(target: &Array) -> Result<Array> {
    if target.dtype() != DType::I32 {
        return Err(Error::dtype(format!("internal: class indices on a gpu are int32, got {target:?}")));
    }
    from_start(target)
}

/// The label to ignore; no row has one outside of int32.
fn ignored(ignore_index: i64) -> usize {
    i32::try_from(ignore_index).unwrap_or(i32::MIN) as usize
}

/// Cross entropy of the rows of `logits [n, c]` against the classes `target [n]`. Returns the loss and
/// log-sum-exp of each row, in float32. A class outside of `0..c` raises at the next read-back.
pub fn cross_entropy(logits: &Array, target: &Array, ignore_index: i64) -> Result<(Array, Array)> {
    if !fit([logits])? {
        let run = |x: &[&Array]| cross_entropy(x[0], x[1], ignore_index).map(|(y, z)| smallvec![y, z]);
        let mut out =
            in_halves("cross_entropy", &[logits, target], Some(0), &run, &|_, a, b| joined(a, b, 0))?;
        return Ok((out.remove(0), out.remove(0)));
    }
    let (x, target) = (from_start(logits)?, labels(target)?);
    let rows = Rows::of(&x, 1);
    let shape = Shape::new(&[x.dim(0)])?;
    let loss = Array::empty(shape, DType::F32, x.device())?;
    let terms = Array::empty(Shape::new(&[x.dim(0), 2])?, DType::F32, x.device())?;
    let report = status(index_of(&x)?, "cross_entropy", rows.cols, false)?;
    let mut run = rows.dispatch("cross_entropy", shader!("cross_entropy"));
    run.entry("main").input("x", &x).reads(&target).writes(&loss).writes(&terms).reports(&report);
    run.number("EPW", per_word(x.dtype()));
    run.words([rows.rows, rows.cols, 0, rows.cols, ignored(ignore_index)]).floats([0.0]);
    run.launch(rows.groups())?;
    Ok((loss, terms))
}

/// The VJP of [`cross_entropy`]: `g[r] * (softmax(x) - onehot(target[r]))`, zero on ignored rows.
pub fn cross_entropy_vjp(
    g: &Array, logits: &Array, target: &Array, terms: &Array, ignore_index: i64,
) -> Result<Array> {
    if !fit([logits])? {
        let run = |x: &[&Array]| cross_entropy_vjp(x[1], x[0], x[2], x[3], ignore_index);
        return by_rows("cross_entropy", &[logits, g, target, terms], 1, &run);
    }
    let (g, x, target, terms) =
        (flat(g, DType::F32)?, from_start(logits)?, labels(target)?, from_start(terms)?);
    let rows = Rows::of(&x, 1);
    let out = rows.output(&x)?;
    let fours = rows.cols.div_ceil(4);
    let mut run = Dispatch::new("cross_entropy_vjp", shader!("cross_entropy_backward"), DType::F32);
    rows.input(&mut run, "x", &x);
    run.reads(&target).reads(&terms).reads(&g);
    rows.result(&mut run, "out", &out);
    run.words([rows.rows, rows.cols, fours, 0, rows.cols, 1, rows.cols, ignored(ignore_index)]);
    run.floats([0.0, 1.0]);
    run.launch((rows.rows * fours).div_ceil(256))?;
    cast(&out, x.dtype())
}
