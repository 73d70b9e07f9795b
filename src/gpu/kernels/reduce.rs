//! Reductions and scans on the GPU; the twin of `src/cpu/reduce.rs`.
//!
//! A long reduction with few outputs is cut into parts that run side by side, and their results are reduced in a second
//! dispatch. The cut depends on the shape alone, and so does the order of every sum.

use super::copy::{cast, convert, index_of};
use super::fold::{Combine, Fold};
use super::map;
use super::params::{Params, Walk, variant};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::template::{Template, per_word};
use crate::gpu::{kernel, launch};
use crate::shape::{Axes, MAX_RANK, Shape};

/// A reduction of `length` elements for each of `count` outputs, wherever they lie in `x`.
struct Task<'a> {
    fold: Fold,
    /// Whether elements are squared first.
    squared: bool,
    x: &'a Array,
    offset: i64,
    kept: Walk,
    axis: Walk,
}

/// Reductions at least this long are cut.
const LONG: i64 = 16 << 10;
/// A cut aims at this many workgroups.
const PARTS: i64 = 1024;

impl Task<'_> {
    fn count(&self) -> i64 {
        self.kept.dims.iter().product()
    }

    fn length(&self) -> i64 {
        self.axis.dims.iter().product()
    }

    /// The result as `dtype`, a flat array.
    fn run(self, dtype: DType) -> Result<Array> {
        if self.count() == 0
            || self.length() < LONG
            || self.count() * 2 > PARTS
            || self.kept.rank() == MAX_RANK
        {
            return self.dispatch(dtype);
        }
        self.run_cut(dtype)
    }

    /// Cuts the longest reduced axis into equal parts and a rest.
    fn run_cut(mut self, dtype: DType) -> Result<Array> {
        let wide = if dtype.is_float() {
            DType::F32
        } else {
            DType::I32
        };
        let Some(longest) = (0..self.axis.rank()).max_by_key(|&i| self.axis.dims[i]) else {
            return self.dispatch(dtype);
        };
        let (d, stride) = (self.axis.dims[longest], self.axis.strides[0][longest]);
        let parts = (PARTS / self.count()).min(d / 2);
        if parts < 2 {
            return self.dispatch(dtype);
        }
        let (each, rest) = (d / parts, d % parts);
        let tail = (rest > 0).then(|| {
            let mut task = Task {
                x: self.x,
                kept: self.kept.clone(),
                axis: self.axis.clone(),
                ..self
            };
            task.axis.dims[longest] = rest;
            task.offset += (d - rest) * stride;
            task
        });
        let (fold, count) = (self.fold, self.count() as usize);
        self.axis.dims[longest] = each;
        self.kept.dims.insert(0, parts);
        self.kept.strides[0].insert(0, each * stride);
        let partial = self
            .dispatch(wide)?
            .reshape_view(&Shape::new(&[parts as usize, count])?);
        let partial =
            partial.ok_or_else(|| crate::error::Error::shape("internal: parts of a reduction"))?;
        let axes = Axes::one(0);
        let total = Task::over(fold, false, &partial, axes).dispatch(if tail.is_some() {
            wide
        } else {
            dtype
        })?;
        let Some(tail) = tail else { return Ok(total) };
        let tail = tail.run(wide)?;
        let both = if wide == DType::F32 {
            map::pointwise("combine", fold as u64, [&total, &tail], Combine(fold))?
        } else {
            map::pointwise_int([&total, &tail], Combine(fold))?
        };
        cast(&both, dtype)
    }

    fn over(fold: Fold, squared: bool, x: &Array, axes: Axes) -> Task<'_> {
        let shape = x.shape();
        let kept = Walk::over(&shape, &[x], (0..x.rank()).filter(|&i| !axes.contains(i)));
        let axis = Walk::over(&shape, &[x], axes.iter());
        Task {
            fold,
            squared,
            x,
            offset: x.offset() as i64,
            kept,
            axis,
        }
    }

    /// One dispatch over everything.
    fn dispatch(&self, dtype: DType) -> Result<Array> {
        let (x, count, length) = (self.x, self.count(), self.length());
        let index = index_of(x)?;
        let out = Array::empty(Shape::new(&[count as usize])?, dtype, x.device())?;
        let is_float = x.dtype().is_float();
        let compute = if is_float { DType::F32 } else { DType::I32 };
        // Many outputs keep the GPU busy with one thread each, unless neighbours in memory belong to one output.
        let inner = self.axis.strides[0].last().copied() == Some(1);
        let tree = length >= 32 && (inner || length * 4 >= count);
        let name = format!("reduce_{}", self.fold.name());
        let parts = [
            x.dtype() as u64,
            dtype as u64,
            u64::from(tree),
            u64::from(self.squared),
        ];
        let entry = if tree { "tree" } else { "serial" };
        let kernel = kernel(index, &name, variant(&parts), entry, || {
            let mut text = Template::new(include_str!("../../../shaders/reduce.wgsl"), compute);
            text.load("x", x.dtype())
                .store("out", dtype)
                .elements_per_word(dtype);
            text.set("const INIT", "")
                .set("fn combine", self.fold.combine(is_float));
            if self.squared {
                text.set("fn pre", "fn pre(x: T) -> T { return x * x; }");
            }
            Ok(text.build().replace("INIT", self.fold.init(is_float)))
        })?;
        let mut params = Params::default();
        self.kept.write(&mut params);
        self.axis.write(&mut params);
        params
            .word(self.kept.rank())
            .word(self.axis.rank())
            .word(count as usize)
            .word(length as usize);
        params
            .word(self.offset as usize)
            .float(0.0)
            .float(self.fold.seed());
        let words = (count as u64).div_ceil(per_word(dtype).into());
        let groups = if tree { words } else { words.div_ceil(256) };
        launch(
            index,
            &kernel,
            &[x.buffer(), out.buffer()],
            params.words(),
            groups,
        )?;
        Ok(out)
    }
}

fn reduce(fold: Fold, x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    let shape = x.shape().reduced(axes, keepdim);
    let flat = Task::over(fold, false, x, axes).run(x.dtype())?;
    let strides = shape.strides();
    flat.with_layout(shape, &strides[..shape.rank()], 0)
}

/// The sum over `axes`. Halves accumulate in float32.
pub fn sum(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    reduce(Fold::Sum, x, axes, keepdim)
}

/// The product over `axes`.
pub fn prod(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    reduce(Fold::Prod, x, axes, keepdim)
}

/// The largest element over `axes`; a NaN wins. For bool: any.
pub fn max(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    reduce(Fold::Max, x, axes, keepdim)
}

/// The smallest element over `axes`; a NaN wins. For bool: all.
pub fn min(x: &Array, axes: Axes, keepdim: bool) -> Result<Array> {
    reduce(Fold::Min, x, axes, keepdim)
}

/// The sum of squares of all elements, 0-d float32, on the GPU.
pub fn sum_squares(x: &Array) -> Result<Array> {
    let flat = Task::over(Fold::Sum, true, x, Axes::first(x.rank())).run(DType::F32)?;
    flat.with_layout(Shape::SCALAR, &[], 0)
}

/// Index of the largest element along `axis`, as int32: the first one wins, a NaN counts as the largest.
pub fn argmax(x: &Array, axis: usize, keepdim: bool) -> Result<Array> {
    argreduce("argmax", x, axis, keepdim)
}

/// Index of the smallest element along `axis`, as int32: the first one wins, a NaN counts as the smallest.
pub fn argmin(x: &Array, axis: usize, keepdim: bool) -> Result<Array> {
    argreduce("argmin", x, axis, keepdim)
}

fn argreduce(name: &str, x: &Array, axis: usize, keepdim: bool) -> Result<Array> {
    let index = index_of(x)?;
    let out = Array::empty(
        x.shape().reduced(Axes::one(axis), keepdim),
        DType::I32,
        x.device(),
    )?;
    let task = Task::over(Fold::Max, false, x, Axes::one(axis));
    let is_float = x.dtype().is_float();
    let tree = task.length() >= 32;
    let entry = if tree { "tree" } else { "serial" };
    let kernel = kernel(
        index,
        name,
        variant(&[x.dtype() as u64, u64::from(tree)]),
        entry,
        || {
            let compute = if is_float { DType::F32 } else { DType::I32 };
            let mut text = Template::new(include_str!("../../../shaders/argreduce.wgsl"), compute);
            text.load("x", x.dtype());
            if name == "argmin" {
                text.set(
                    "fn better",
                    "fn better(a: T, b: T) -> bool { return a < b; }",
                );
            }
            if !is_float {
                text.set("fn is_nan", "fn is_nan(v: T) -> bool { return false; }");
            }
            Ok(text.build())
        },
    )?;
    let mut params = Params::default();
    task.kept.write(&mut params);
    task.axis.write(&mut params);
    params
        .word(task.kept.rank())
        .word(task.axis.rank())
        .word(out.numel())
        .word(task.length() as usize);
    params.word(x.offset());
    let groups = if tree {
        out.numel() as u64
    } else {
        (out.numel() as u64).div_ceil(256)
    };
    launch(
        index,
        &kernel,
        &[x.buffer(), out.buffer()],
        params.words(),
        groups,
    )?;
    Ok(out)
}

/// Running sums along `axis`.
pub fn cumsum(x: &Array, axis: usize) -> Result<Array> {
    scan(Fold::Sum, x, axis)
}

/// Running products along `axis`.
pub fn cumprod(x: &Array, axis: usize) -> Result<Array> {
    scan(Fold::Prod, x, axis)
}

fn scan(fold: Fold, x: &Array, axis: usize) -> Result<Array> {
    let index = index_of(x)?;
    let compute = if x.dtype().is_float() {
        DType::F32
    } else {
        DType::I32
    };
    let out = Array::empty(x.shape(), compute, x.device())?;
    let kept = Walk::over(&x.shape(), &[x, &out], (0..x.rank()).filter(|&i| i != axis));
    let (lines, length) = (kept.dims.iter().product::<i64>(), x.dim(axis));
    if x.numel() == 0 {
        return cast(&out, x.dtype());
    }
    let tree = length >= 64 && lines < 16 << 10;
    let name = format!("scan_{}", fold.name());
    let entry = if tree { "tree" } else { "serial" };
    let kernel = kernel(
        index,
        &name,
        variant(&[x.dtype() as u64, u64::from(tree)]),
        entry,
        || {
            let mut text = Template::new(include_str!("../../../shaders/scan.wgsl"), compute);
            text.load("x", x.dtype()).store("out", compute);
            text.set(
                "const INIT",
                format!("const INIT: T = {};", fold.init(false)),
            );
            text.set("fn combine", fold.combine(false));
            Ok(text.build())
        },
    )?;
    let mut params = Params::default();
    kept.write(&mut params);
    params
        .word(kept.rank())
        .word(lines as usize)
        .word(length)
        .word(x.offset())
        .word(x.stride(axis) as usize);
    params.word(out.offset()).word(out.stride(axis) as usize);
    let groups = if tree {
        lines as u64
    } else {
        (lines as u64).div_ceil(256)
    };
    launch(
        index,
        &kernel,
        &[x.buffer(), out.buffer()],
        params.words(),
        groups,
    )?;
    if compute == x.dtype() {
        Ok(out)
    } else {
        convert(&out, x.dtype())
    }
}
