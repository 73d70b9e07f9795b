//! Softmax, layer and RMS normalisation and cross entropy on the GPU; the counterpart of
//! `src/cpu/rows/norm.rs`.
//!
//! A row is kept in the registers of 4 to 256 threads and read once. Wider ones are split into parts, which a
//! first dispatch reduces; a second reads them again and knows what all parts come to.

use super::copy::{flat, from_start};
use super::gather::indices;
use super::pieces::{Arrays, by_lines, fit, in_halves, joined, limit, longest};
use super::prelude::*;
use super::reduce::Fold;
use crate::gpu::runtime::device::subgroup;
use crate::gpu::status;
use smallvec::smallvec;
use std::ops::Range;

/// A split aims at this many workgroups; as many rows of logits are not split.
const ENOUGH: usize = 512;

/// The distribution of rows over threads, determined by their number and length.
#[derive(Clone, Copy)]
struct Rows {
    /// The number of rows.
    rows: usize,
    /// Elements per row.
    cols: usize,
    /// Threads per row, or per part of one.
    lanes: usize,
    /// Fours of elements that a thread holds.
    slots: usize,
    /// The parts of a row.
    parts: usize,
}

impl Rows {
    /// The rows of `x` over its last `axes` axes, for a kernel whose threads hold `most` fours.
    fn of(x: &Array, axes: usize, most: usize) -> Rows {
        let cols: usize = x.shape().iter().rev().take(axes).product();
        let rows = x.numel().checked_div(cols).unwrap_or(0);
        let lanes = [4, 16, 64].into_iter().find(|lanes| cols <= 16 * lanes).unwrap_or(256);
        let sizes = [1, 2, 3, 4, 6, 8, 12, 16].into_iter().filter(|&slots| slots <= most);
        let parts = |slots: &usize| cols.div_ceil(4 * lanes * slots);
        let whole = sizes.clone().find(|slots| parts(slots) <= 1);
        let slots = whole.or_else(|| sizes.rev().find(|slots| rows * parts(slots) >= ENOUGH)).unwrap_or(1);
        Rows { rows, cols, lanes, slots, parts: parts(&slots) }
    }

    /// Columns of a part.
    fn width(&self) -> usize {
        4 * self.lanes * self.slots
    }

    /// The number of workgroups for all parts of `rows` rows.
    fn groups(&self) -> usize {
        (self.rows * self.parts).div_ceil(256 / self.lanes)
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
        run.writes(x);
        if self.are_fours() && self.parts == 1 {
            run.flows();
        }
    }

    /// An array for the result of rows of `x`.
    fn output(&self, x: &Array) -> Result<Array> {
        like(x, dtype_of_rows(x.dtype(), &[self.cols]))
    }

    /// An array for what parts come to, `words` each; `out` stands for it where nothing is split.
    fn terms(&self, out: &Array, words: usize) -> Result<Array> {
        match self.parts {
            0 | 1 => Ok(out.clone()),
            parts => Array::empty(Shape::new(&[self.rows, parts, words])?, DType::F32, out.device()),
        }
    }

    /// Launches the kernel on behalf of all rows, in `groups` workgroups, or of parts and in as many of the
    /// second number; `fill` binds all but the terms, and adds the parameters.
    fn launch<'a>(
        &self, (name, source): (&'a str, &'static str), terms: &'a Array, groups: [usize; 2],
        fill: impl Fn(&mut Dispatch<'a>),
    ) -> Result<()> {
        let splits = if self.parts > 1 { [1, 2].as_slice() } else { &[0] };
        for &split in splits {
            let mut run = Dispatch::new(name, source, DType::F32);
            fill(&mut run);
            run.writes(terms).number("SPLIT", split);
            self.finish(run, terms, groups[usize::from(split == 2)])?;
        }
        Ok(())
    }

    /// Launches `run` in `groups` workgroups, on the device of `x`, with the constants of these rows.
    fn finish(&self, mut run: Dispatch, x: &Array, groups: usize) -> Result<()> {
        run.flag("FOURS", self.are_fours()).number("LANES", self.lanes).number("SLOTS", self.slots);
        run.number("SUBGROUP", subgroup(index_of(x)?)?);
        run.launch(groups)
    }

    /// The same rows in strips of columns, enough workgroups, each of which goes through all rows.
    fn strips(&self) -> Rows {
        let is_wide = |lanes: &usize| 256 / lanes <= self.rows && self.cols.div_ceil(4 * lanes) < ENOUGH;
        let lanes = [256, 64, 16].into_iter().find(|lanes| !is_wide(lanes)).unwrap_or(4);
        Rows { lanes, slots: 1, ..*self }
    }
}

/// The last `axes` axes, along which a row lies.
fn row(x: &Array, axes: usize) -> Range<usize> {
    x.rank() - axes..x.rank()
}

/// Results of two halves of rows one behind the other, along the axis that was cut.
fn behind(axis: Option<usize>, a: &Array, b: &Array) -> Result<Array> {
    joined(a, b, axis.unwrap_or(0))
}

/// Softmax along the last axis, or its logarithm.
pub fn softmax(x: &Array, log: bool) -> Result<Array> {
    if !fit([x])? {
        return by_lines("softmax", &[x], row(x, 1), &|x| softmax(x[0], log));
    }
    let x = from_start(x)?;
    let rows = Rows::of(&x, 1, 16);
    let out = rows.output(&x)?;
    let terms = rows.terms(&out, 2)?;
    let shader = ("softmax", shader!("lib/rows", "lib/row_out", "softmax"));
    rows.launch(shader, &terms, [rows.groups(); 2], |run| {
        rows.input(run, "x", &x);
        rows.result(run, "out", &out);
        run.flag("LOG", log).words([rows.rows, rows.cols, rows.parts, rows.cols, rows.cols]);
    })?;
    cast(&out, x.dtype())
}

/// The VJP of [`softmax`]: `y * (g - sum(g * y))`, or `g - exp(y) * sum(g)` for the logarithm.
pub fn softmax_vjp(g: &Array, y: &Array, log: bool) -> Result<Array> {
    if !fit([g, y])? {
        return by_lines("softmax", &[g, y], row(g, 1), &|x| softmax_vjp(x[0], x[1], log));
    }
    let (g, y) = (from_start(g)?, from_start(y)?);
    let rows = Rows::of(&y, 1, 8);
    let out = rows.output(&y)?;
    let terms = rows.terms(&out, 1)?;
    let shader = ("softmax_vjp", shader!("lib/rows", "lib/row_out", "softmax_backward"));
    rows.launch(shader, &terms, [rows.groups(); 2], |run| {
        rows.input(run, "y", &y);
        rows.input(run, "g", &g);
        rows.result(run, "out", &out);
        run.flag("LOG", log).words([rows.rows, rows.cols, rows.parts]).words([rows.cols; 3]);
    })?;
    cast(&out, y.dtype())
}

/// Normalises the last `axes` axes to mean 0 (if `centered`) and variance 1, then scales and shifts. Returns
/// the result and, in float32, the mean (if `centered`) and the reciprocal standard deviation of each row.
pub fn layer_norm(
    x: &Array, weight: Option<&Array>, bias: Option<&Array>, axes: usize, centered: bool, eps: f64,
) -> Result<Vec<Array>> {
    let name = if centered { "layer_norm" } else { "rms_norm" };
    if !fit([x])? {
        let axis = longest(x, row(x, axes));
        let run = |x: &[&Array]| layer_norm(x[0], weight, bias, axes, centered, eps).map(Arrays::from_vec);
        return Ok(in_halves(name, &[x], axis, &run, &|_, a, b| behind(axis, a, b))?.into_vec());
    }
    let x = from_start(x)?;
    let rows = Rows::of(&x, axes, 16);
    let out = rows.output(&x)?;
    let terms = rows.terms(&out, 2)?;
    let lead = x.shape().part(0, x.rank() - axes);
    let statistic = || Array::empty(lead, DType::F32, x.device());
    let (mean, rstd) = (centered.then(statistic).transpose()?, statistic()?);
    // Placeholders for absent buffers; the flags tell that they are not read, RMS that no mean is written.
    let scale = weight.map_or(Ok(x.clone()), from_start)?;
    let shift = bias.map_or(Ok(x.clone()), from_start)?;
    let flags = usize::from(weight.is_some()) | usize::from(bias.is_some()) << 1;
    let shader = (name, shader!("lib/rows", "lib/row_out", "layernorm"));
    rows.launch(shader, &terms, [rows.groups(); 2], |run| {
        for (name, x) in [("x", &x), ("weight", &scale), ("bias", &shift)] {
            rows.input(run, name, x);
        }
        rows.result(run, "out", &out);
        run.writes(mean.as_ref().unwrap_or(&rstd)).writes(&rstd).flag("RMS", !centered);
        run.words([rows.rows, rows.cols, rows.parts, rows.cols, rows.cols, flags]).floats([eps]);
    })?;
    Ok([Some(cast(&out, x.dtype())?), mean, Some(rstd)].into_iter().flatten().collect())
}

/// The most workgroups that keep sums of the weight's gradient.
const SLOTS: usize = 256;

/// The VJP of [`layer_norm`]: the cotangents of `x`, of the weight if there is one and, if there is a mean,
/// too, of the bias (the last two in the shape of the normalised axes, and in the weight's dtype).
pub fn layer_norm_vjp(
    g: &Array, x: &Array, weight: Option<&Array>, mean: Option<&Array>, rstd: &Array, axes: usize,
) -> Result<Vec<Array>> {
    let (name, kernel) = match mean {
        Some(_) => ("layer_norm", "layer_norm_vjp"),
        None => ("rms_norm", "rms_norm_vjp"),
    };
    if !fit([g, x])? {
        let axis = longest(x, row(x, axes));
        let run = |x: &[&Array]| {
            layer_norm_vjp(x[0], x[1], weight, x.get(3).copied(), x[2], axes).map(Arrays::from_vec)
        };
        let join = |i: usize, a: &Array, b: &Array| match i {
            0 => behind(axis, a, b),
            _ => Fold::Sum.combine(a, b),
        };
        let all: Vec<&Array> = [g, x, rstd].into_iter().chain(mean).collect();
        return Ok(in_halves(name, &all, axis, &run, &join)?.into_vec());
    }
    let (g, x, rstd) = (from_start(g)?, from_start(x)?, from_start(rstd)?);
    let mean = mean.map(from_start).transpose()?;
    let rows = Rows::of(&x, axes, 4);
    let out = rows.output(&x)?;
    let scale = weight.map_or(Ok(x.clone()), from_start)?;
    let (is_split, sums) = (rows.parts > 1, 1 + usize::from(mean.is_some()));
    let width = rows.cols.next_multiple_of(4);
    let most = match weight {
        Some(_) => SLOTS.min(limit(&x)? / (4 * sums * width).max(1)),
        None => usize::MAX,
    };
    let (slots, partial) = match is_split {
        // What the parts come to.
        true => (rows.rows, Some([rows.rows, rows.parts, 4])),
        // Sums over rows, of the weight and of the bias, which a second kernel adds up. Even without rows,
        // one workgroup writes them, which are zero.
        false => {
            let slots = rows.rows.div_ceil(256 / rows.lanes).min(most).max(1);
            (slots, weight.map(|_| [slots, sums, width]))
        }
    };
    let partial = match partial {
        Some(shape) => Array::empty(Shape::new(&shape)?, DType::F32, x.device())?,
        None => out.clone(),
    };
    let begin = |name, source| {
        let mut run = Dispatch::new(name, source, DType::F32);
        for (name, x) in [("x", &x), ("g", &g), ("weight", &scale)] {
            rows.input(&mut run, name, x);
        }
        run.flag("RMS", mean.is_none());
        run
    };
    let params =
        [rows.rows, rows.cols, rows.parts, rows.cols, rows.cols, rows.cols, usize::from(weight.is_some())];
    let mut run = begin(kernel, shader!("lib/rows", "lib/row_out", "lib/norm_vjp", "layernorm_backward"));
    run.reads(mean.as_ref().unwrap_or(&rstd)).reads(&rstd);
    rows.result(&mut run, "out", &out);
    run.writes(&partial).words(params).words([slots]).number("SPLIT", usize::from(is_split));
    rows.finish(run, &x, slots * rows.parts)?;
    let mut made = Vec::new();
    if let Some(weight) = weight {
        let tail = x.shape().part(x.rank() - axes, x.rank());
        let parameter = || Array::empty(tail, weight.dtype(), x.device());
        made = (0..sums).map(|_| parameter()).collect::<Result<Vec<Array>>>()?;
    }
    let (dweight, dbias) = (made.first().unwrap_or(&out), made.last().unwrap_or(&out));
    if is_split {
        let strips = rows.strips();
        let source = shader!("lib/rows", "lib/row_out", "lib/norm_vjp", "layernorm_strips");
        let mut run = begin("layer_norm_strips", source);
        run.reads(&partial);
        rows.result(&mut run, "out", &out);
        run.text.store_fours("dweight", dweight.dtype()).store_fours("dbias", dbias.dtype());
        run.writes(dweight).writes(dbias).words(params);
        strips.finish(run, &x, rows.cols.div_ceil(4 * strips.lanes))?;
    } else if weight.is_some() {
        let mut run = Dispatch::new("layer_norm_columns", shader!("layernorm_columns"), DType::F32);
        run.text.store_fours("dweight", dweight.dtype()).store_fours("dbias", dbias.dtype());
        run.reads(&partial).writes(dweight).writes(dbias).words([slots, width, sums]);
        run.launch((sums * width).div_ceil(16))?;
    }
    let mut all = vec![cast(&out, x.dtype())?];
    all.append(&mut made);
    Ok(all)
}

/// The classes as int32 from the start of a buffer.
fn labels(target: &Array) -> Result<Array> {
    from_start(&indices(target)?)
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
    let mut rows = Rows::of(&x, 1, 4);
    let shape = Shape::new(&[x.dim(0)])?;
    let loss = Array::empty(shape, DType::F32, x.device())?;
    let terms = Array::empty(Shape::new(&[x.dim(0), 2])?, DType::F32, x.device())?;
    let report = status(index_of(&x)?, "cross_entropy", rows.cols, false)?;
    // Threads go through a part in blocks.
    let parts = (ENOUGH / rows.rows.max(1)).clamp(1, rows.parts.max(1));
    let length = rows.cols.div_ceil(rows.width() * parts).max(1) * rows.width();
    rows.parts = rows.cols.div_ceil(length);
    let pairs = rows.terms(&terms, 2)?;
    let shader = ("cross_entropy", shader!("lib/rows", "cross_entropy"));
    rows.launch(shader, &pairs, [rows.groups(), rows.rows], |run| {
        rows.input(run, "x", &x);
        run.reads(&target).writes(&loss).writes(&terms).reports(&report);
        run.words([rows.rows, rows.cols, rows.parts, length, rows.cols, ignored(ignore_index)]);
    })?;
    Ok((loss, terms))
}

/// The VJP of [`cross_entropy`]: `g[r] * (softmax(x) - onehot(target[r]))`, zero on ignored rows.
pub fn cross_entropy_vjp(
    g: &Array, logits: &Array, target: &Array, terms: &Array, ignore_index: i64,
) -> Result<Array> {
    if !fit([logits])? {
        let run = |x: &[&Array]| cross_entropy_vjp(x[1], x[0], x[2], x[3], ignore_index);
        return by_lines("cross_entropy", &[logits, g, target, terms], row(logits, 1), &run);
    }
    let (x, target, terms) = (from_start(logits)?, labels(target)?, from_start(terms)?);
    // Often one number for all rows.
    let g = if g.dtype() == DType::F32 { g.clone() } else { flat(g, DType::F32)? };
    let rows = Rows::of(&x, 1, 4);
    let out = rows.output(&x)?;
    let fours = rows.cols.div_ceil(4);
    let source = shader!("lib/row_out", "cross_entropy_backward");
    let mut run = Dispatch::new("cross_entropy_vjp", source, DType::F32);
    rows.input(&mut run, "x", &x);
    run.reads(&target).reads(&terms).reads(&g).flag("FOURS", rows.are_fours());
    rows.result(&mut run, "out", &out);
    run.words([rows.rows, rows.cols, fours, rows.cols, rows.cols, ignored(ignore_index)]);
    run.words([g.offset(), g.stride(0) as usize]);
    run.launch((rows.rows * fours).div_ceil(256))?;
    cast(&out, x.dtype())
}
