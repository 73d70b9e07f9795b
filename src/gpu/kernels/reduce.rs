//! Reductions on the GPU, and the operations shared with scans; counterpart of `src/cpu/reduce/mod.rs`.
//!
//! A long reduction with few outputs is split into parts that run concurrently; a second dispatch reduces
//! their results. The split, and so the order of every sum, depends only on the shape.

mod places;

pub use places::{argmax, argmin};

use super::map::fused::Fused;
use super::map::{pointwise, pointwise_int, pointwise_into};
use super::pieces::{Cut, cut, fit, joined};
use super::prelude::*;
use crate::array::shape::{Axes, MAX_RANK};
use crate::math::real::{Integer, Pointwise, PointwiseInt, Real};

/// An associative operation, numbered as in `shaders/reduce.wgsl`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fold {
    /// Sum.
    Sum,
    /// Product.
    Prod,
    /// Maximum.
    Max,
    /// Minimum.
    Min,
}

impl Fold {
    /// The name of its kernel.
    pub fn name(self) -> &'static str {
        ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"][self as usize]
    }

    /// The bits of the neutral element, or 1 and else the upper ones of one of two words.
    pub fn neutral(self, compute: DType) -> u32 {
        match (self, compute) {
            (Fold::Sum, _) => 0,
            (Fold::Prod, DType::F32) => 1f32.to_bits(),
            (Fold::Prod, _) => 1,
            (Fold::Max, DType::F32) => f32::NEG_INFINITY.to_bits(),
            (Fold::Min, DType::F32) => f32::INFINITY.to_bits(),
            (Fold::Max, DType::U32 | DType::U64) => u32::MIN,
            (Fold::Min, DType::U32 | DType::U64) => u32::MAX,
            (Fold::Max, _) => i32::MIN as u32,
            (Fold::Min, _) => i32::MAX as u32,
        }
    }

    /// Combines two arrays of one dtype elementwise.
    pub fn combine(self, x: &Array, y: &Array) -> Result<Array> {
        if x.dtype().is_float() {
            pointwise("combine", [self as u64, 0], [x, y], Combine(self))
        } else {
            pointwise_int("combine", self as u64, [x, y], Combine(self))
        }
    }
}

/// Adds `x` to `sum`, which is the whole of its buffer and perhaps `x` itself.
pub(super) fn add_to(sum: &Array, x: &Array) -> Result<()> {
    pointwise_into("combine", [Fold::Sum as u64, 0], sum, [sum, x], Combine(Fold::Sum))
}

/// The operation on two numbers.
#[derive(Clone, Copy)]
struct Combine(Fold);

impl Pointwise<2> for Combine {
    fn apply<R: Real>(&self, [x, y]: [R; 2]) -> R {
        let keep = |better: R::Mask| R::select(x.ne(x), x, R::select(y.ne(y), y, R::select(better, x, y)));
        match self.0 {
            Fold::Sum => x + y,
            Fold::Prod => x * y,
            Fold::Max => keep(x.gt(y)),
            Fold::Min => keep(x.lt(y)),
        }
    }
}

impl PointwiseInt<2> for Combine {
    fn apply<I: Integer>(&self, [x, y]: [I; 2]) -> I {
        match self.0 {
            Fold::Sum => x.add(y),
            Fold::Prod => x.mul(y),
            Fold::Max => x.max(y),
            Fold::Min => x.min(y),
        }
    }
}

/// What is reduced.
#[derive(Clone, Copy)]
enum Elements<'a> {
    /// The elements of an array.
    Array(&'a Array),
    /// Those that a chain makes of these inputs, in row-major order.
    Chain(&'a Fused, &'a [&'a Array]),
}

impl Elements<'_> {
    /// An array on the device.
    fn first(&self) -> &Array {
        match self {
            Elements::Array(x) => x,
            Elements::Chain(_, x) => x[0],
        }
    }

    fn dtype(&self) -> DType {
        match self {
            Elements::Array(x) => x.dtype(),
            Elements::Chain(..) => DType::F32,
        }
    }
}

/// A reduction of `length` elements for each of `count` outputs, at any strides in `x`.
#[derive(Clone, Copy)]
struct Task<'a> {
    fold: Fold,
    x: Elements<'a>,
    offset: i64,
    kept: Nest,
    axis: Nest,
    /// Of an axis that is cut, whose parts are the first kept axis: its length, and the outputs per part.
    cut: [usize; 2],
}

/// A split aims at this many workgroups.
const PARTS: i64 = 1024;
/// From this many workgroups on nothing is split.
const ENOUGH: i64 = 256;

/// An entry point of `shaders/reduce.wgsl`.
struct ReduceEntry {
    name: &'static str,
    /// The outputs of one workgroup, in words.
    words: i64,
    /// The minimal number of elements per part of a split reduction.
    least: i64,
}

/// One thread per output: too little work to share.
const SERIAL: ReduceEntry = ReduceEntry { name: "serial", words: 256, least: 128 };
/// Eight adjacent threads per output: short rows.
const LANES: ReduceEntry = ReduceEntry { name: "lanes", words: 32, least: 128 };
/// Eight threads per output; adjacent threads read adjacent outputs, since the kept axes are contiguous.
const COLUMNS: ReduceEntry = ReduceEntry { name: "columns", words: 32, least: 128 };
/// One workgroup per output.
const TREE: ReduceEntry = ReduceEntry { name: "tree", words: 1, least: 2048 };

impl Task<'_> {
    fn count(&self) -> i64 {
        self.kept.numel() as i64
    }

    fn length(&self) -> i64 {
        self.axis.numel() as i64
    }

    /// The distribution of the work over threads, determined by shape and strides only.
    fn entry(&self, words: i64) -> ReduceEntry {
        let last = |nest: &Nest| nest.strides[0][nest.rank - 1];
        if self.length() < 16 {
            SERIAL
        } else if last(&self.axis) != 1 && last(&self.kept) == 1 {
            COLUMNS
        } else if self.length() < 1024 && words >= 256 {
            LANES
        } else {
            TREE
        }
    }

    /// The number of parts into which the longest reduced axis is split to occupy the GPU; 1 for none.
    fn parts(&self) -> i64 {
        let (count, length) = (self.count(), self.length());
        let entry = self.entry(count);
        let groups = (count + entry.words - 1) / entry.words;
        let longest = self.axis.dims.iter().copied().max().unwrap_or(1) as i64;
        if count == 0 || groups >= ENOUGH || self.kept.rank == MAX_RANK {
            return 1;
        }
        (PARTS / groups.max(1)).min(length / entry.least).min(longest / 2).max(1)
    }

    /// Returns the result as `dtype`, a flat array.
    fn run(self, dtype: DType) -> Result<Array> {
        match self.parts() {
            1 => self.dispatch(dtype),
            parts => self.run_cut(dtype, parts),
        }
    }

    /// Splits the longest reduced axis into equal parts and what is left: the last part if it is the only
    /// axis, else a reduction of its own.
    fn run_cut(mut self, dtype: DType, parts: i64) -> Result<Array> {
        let wide = arithmetic(dtype);
        let (fold, count, mut parts, mut tail) = (self.fold, self.count() as usize, parts as usize, None);
        if self.axis.rank == 1 {
            parts = self.cut_into(parts);
        } else {
            let Some(longest) = (0..self.axis.rank).max_by_key(|&i| self.axis.dims[i]) else {
                return self.dispatch(dtype);
            };
            let (d, stride) = (self.axis.dims[longest], self.axis.strides[0][longest]);
            let (each, rest) = (d / parts, d % parts);
            tail = (rest > 0).then(|| {
                let mut task = self;
                task.axis.dims[longest] = rest;
                task.offset += (d - rest) as i64 * stride as i64;
                task
            });
            self.axis.dims[longest] = each;
            self.kept.prepend(parts, &[each as isize * stride]);
        }
        let partial = self.dispatch(wide)?.reshape_view(&Shape::new(&[parts, count])?);
        let partial = partial.ok_or_else(|| crate::error::Error::shape("internal: parts of a reduction"))?;
        let axes = Axes::one(0);
        let total = Task::over(fold, &partial, axes).dispatch(if tail.is_some() { wide } else { dtype })?;
        let Some(tail) = tail else { return Ok(total) };
        let tail = tail.run(wide)?;
        cast(&fold.combine(&total, &tail)?, dtype)
    }

    fn over(fold: Fold, x: &Array, axes: Axes) -> Task<'_> {
        let shape = x.shape();
        let kept = Nest::over(&shape, &[x], (0..x.rank()).filter(|&i| !axes.contains(i)));
        let axis = Nest::over(&shape, &[x], axes.iter());
        Task { fold, x: Elements::Array(x), offset: x.offset() as i64, kept, axis, cut: [0; 2] }
    }

    /// Reduces everything in one dispatch.
    fn dispatch(&self, dtype: DType) -> Result<Array> {
        let compute = arithmetic(self.x.dtype());
        let out = Array::empty(Shape::new(&[self.count() as usize])?, dtype, self.x.first().device())?;
        let words = words_of(&out) as i64;
        let entry = self.entry(words);
        let (name, source) = match self.x {
            Elements::Array(_) => (self.fold.name(), shader!("reduce")),
            Elements::Chain(chain, _) => (&*chain.name, shader!("lib/chain", "reduce")),
        };
        let mut run = Dispatch::new(name, source, compute);
        let last = self.input(&mut run, self.is_in_fours());
        run.entry(entry.name).output("out", &out).flows_alone().number("FOLD", self.fold as usize);
        run.flag("IS_FLOAT", compute == DType::F32);
        self.write(&mut run);
        run.words([self.fold.neutral(compute) as usize]).words(self.cut).words(last);
        run.launch((words as usize).div_ceil(entry.words as usize))?;
        Ok(out)
    }

    /// Binds `x`, by vectors of four elements or not. Returns the parameters of a chain.
    fn input<'b>(&'b self, run: &mut Dispatch<'b>, in_fours: bool) -> Vec<usize> {
        run.flag("FOURS", in_fours);
        match self.x {
            Elements::Array(x) if in_fours => run.text.load_fours("x", x.dtype()),
            Elements::Array(x) => run.text.load("x", x.dtype()),
            Elements::Chain(chain, x) => {
                run.text.load_chain("x");
                return chain.bind(run, x, in_fours);
            }
        };
        run.reads(self.x.first());
        Vec::new()
    }

    /// Whether the elements of an output are dense and start at a multiple of four.
    fn is_in_fours(&self) -> bool {
        let kept = &self.kept.strides[0][..self.kept.rank];
        let is_dense = self.axis.rank == 1 && self.axis.strides[0][0] == 1;
        is_dense && self.offset % 4 == 0 && kept.iter().all(|stride| stride % 4 == 0)
    }

    /// Cuts the only reduced axis into parts of a multiple of four elements; returns how many there are.
    fn cut_into(&mut self, parts: usize) -> usize {
        let (length, stride) = (self.axis.dims[0], self.axis.strides[0][0]);
        self.cut = [length, self.kept.numel()];
        let each = length.div_ceil(parts).next_multiple_of(4);
        self.axis.dims[0] = each;
        self.kept.prepend(length.div_ceil(each), &[each as isize * stride]);
        length.div_ceil(each)
    }

    /// Adds the parameters that the kernels have in common.
    fn write(&self, run: &mut Dispatch) {
        run.nest(&self.kept, 1).nest(&self.axis, 1).words([self.kept.rank, self.axis.rank]);
        run.words([self.count(), self.length(), self.offset].map(|n| n as usize));
    }
}

/// The reduction of what a chain makes of inputs `x`, of this shape, as it is computed.
pub(super) fn reduce_chain(
    chain: &Fused, x: &[&Array], fold: Fold, shape: &Shape, axes: Axes, keepdim: bool,
) -> Result<Array> {
    let strides = shape.strides();
    let nest = |is_reduced: bool| {
        let mut nest = Nest::empty();
        for i in (0..shape.rank()).filter(|&i| axes.contains(i) == is_reduced && shape.at(i) != 1) {
            nest.push(shape.at(i), &[strides[i]]);
        }
        nest.rank = nest.rank.max(1);
        nest
    };
    let x = Elements::Chain(chain, x);
    let task = Task { fold, x, offset: 0, kept: nest(false), axis: nest(true), cut: [0; 2] };
    let shape = shape.reduced(axes, keepdim);
    task.run(DType::F32)?.with_layout(shape, &shape.strides()[..shape.rank()], 0)
}

fn reduce(dtype: DType, fold: Fold, x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    if !fit([x])? {
        let whole = reduce_pieces(dtype, fold, x, axes)?;
        return Ok(if keepdim { whole } else { whole.without(axes) });
    }
    let shape = x.shape().reduced(axes, keepdim);
    let flat = Task::over(fold, x, axes).run(dtype)?;
    let strides = shape.strides();
    flat.with_layout(shape, &strides[..shape.rank()], 0)
}

/// [`reduce`] of an array that kernels cannot bind, with the reduced axes kept.
fn reduce_pieces(dtype: DType, fold: Fold, x: &Array, axes: Axes) -> Result<Array> {
    match cut(x)? {
        Cut::Whole(x) => reduce(dtype, fold, &x, axes, true),
        Cut::Halves(axis, [a, b]) if axes.contains(axis) => {
            let half = |x: &Array| reduce_pieces(arithmetic(x.dtype()), fold, x, axes);
            cast(&fold.combine(&half(&a)?, &half(&b)?)?, dtype)
        }
        Cut::Halves(axis, halves) => {
            let [a, b] = halves.map(|x| reduce_pieces(dtype, fold, &x, axes));
            joined(&a?, &b?, axis)
        }
    }
}

/// The sum over `axes`. Halves accumulate in float32.
pub fn sum(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    reduce(x.dtype(), Fold::Sum, x, axes, keepdim)
}

/// [`sum`] in the dtype of accumulation: float32 for halves, in which the sum might overflow.
pub fn total(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    reduce(x.dtype().accumulator(), Fold::Sum, x, axes, keepdim)
}

/// The product over `axes`.
pub fn prod(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    reduce(x.dtype(), Fold::Prod, x, axes, keepdim)
}

/// The largest element over `axes`; a NaN wins. For bool: any.
pub fn max(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    reduce(x.dtype(), Fold::Max, x, axes, keepdim)
}

/// The smallest element over `axes`; a NaN wins. For bool: all.
pub fn min(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    reduce(x.dtype(), Fold::Min, x, axes, keepdim)
}
