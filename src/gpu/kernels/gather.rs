//! Indexing along an axis on the GPU; the counterpart of `src/cpu/indexing/gather.rs`.
//!
//! Indices are int32. One out of range raises at the next read-back (see `src/gpu/runtime/status.rs`).

use super::copy::{cast, contiguous, index_of};
use super::map::pointwise_int;
use super::params::Params;
use super::parts::{ROUNDS, part_of, sum_of_parts};
use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::error::{Error, Result};
use crate::gpu::shader::template::{Template, arithmetic, per_word};
use crate::gpu::status;
use crate::gpu::{kernel, launch, variant};
use crate::math::real::{Integer, PointwiseInt};

/// Converts the indices to int32.
fn indices(idx: &Array) -> Result<Array> {
    if idx.dtype() == DType::I32 {
        return Ok(idx.clone());
    }
    if idx.dtype() == DType::U32 {
        // A larger value is out of range for every axis, and must not wrap to a negative index.
        return cast(&pointwise_int([idx], Limit)?, DType::I32);
    }
    Err(Error::dtype(format!("internal: indices on a gpu are int32, got {idx:?}")))
}

/// The number, or the largest int32 if smaller.
#[derive(Clone, Copy)]
struct Limit;

impl PointwiseInt<1> for Limit {
    fn apply<I: Integer>(&self, [x]: [I; 1]) -> I {
        x.min(I::lit(i32::MAX.into()))
    }
}

/// The strides of `x` as parameters, with 0 for `axis`.
fn strides_off(x: &Array, axis: usize) -> Vec<i64> {
    (0..x.rank()).map(|i| if i == axis { 0 } else { x.stride(i) as i64 }).collect()
}

fn product(lengths: impl Iterator<Item = usize>) -> usize {
    lengths.product()
}

/// `out[o, k, i] = x[o, idx[k], i]`: the axis is replaced by the shape of `idx`. Negative indices count from
/// the end.
pub fn take(x: &Array, idx: &Array, axis: usize) -> Result<Array> {
    let idx = &indices(idx)?;
    let mut dims: Vec<usize> = x.shape().iter().take(axis).collect();
    dims.extend(idx.shape().iter());
    dims.extend(x.shape().iter().skip(axis + 1));
    let out = Array::empty(Shape::new(&dims)?, x.dtype(), x.device())?;
    let x_strides = (0..dims.len()).map(|i| match i {
        i if i < axis => x.stride(i) as i64,
        i if i < axis + idx.rank() => 0,
        i => x.stride(i + 1 - idx.rank()) as i64,
    });
    let idx_strides = (0..dims.len()).map(|i| match i.checked_sub(axis) {
        Some(own) if own < idx.rank() => idx.stride(own) as i64,
        _ => 0,
    });
    read_along("take", x, idx, &out, axis, x_strides.collect(), idx_strides.collect())?;
    Ok(out)
}

/// `out[c] = x[c with c[axis] replaced by idx[c]]`, of the shape of `idx`.
pub fn gather(x: &Array, idx: &Array, axis: usize) -> Result<Array> {
    let idx = &indices(idx)?;
    let out = Array::empty(idx.shape(), x.dtype(), x.device())?;
    let idx_strides = idx.strides().iter().map(|&s| s as i64).collect();
    read_along("gather", x, idx, &out, axis, strides_off(x, axis), idx_strides)?;
    Ok(out)
}

fn read_along(
    name: &'static str,
    x: &Array,
    idx: &Array,
    out: &Array,
    axis: usize,
    x_strides: Vec<i64>,
    idx_strides: Vec<i64>,
) -> Result<()> {
    let index = index_of(x)?;
    let report = status(index, name, x.dim(axis), true)?;
    let kernel = kernel(index, "gather", variant(&[x.dtype() as u64]), "main", || {
        let mut text = Template::new(include_str!("../../../shaders/gather.wgsl"), x.dtype());
        text.load("x", x.dtype()).store("out", x.dtype()).elements_per_word(x.dtype());
        text.build()
    })?;
    let mut params = Params::default();
    params.eight(out.shape().iter().map(|d| d as i64)).eight(x_strides).eight(idx_strides);
    params.word(out.rank()).word(out.numel()).word(x.offset()).word(idx.offset());
    params.word(x.stride(axis) as usize).word(x.dim(axis));
    let groups = out.numel().div_ceil(per_word(x.dtype()) as usize).div_ceil(256) as u64;
    launch(index, &kernel, &[x.buffer(), idx.buffer(), out.buffer(), &report], params.words(), groups)
}

/// The transpose of [`take`]: adds `g` to zeros of `shape` at `idx` along `axis`, in the order of the
/// indices.
pub fn take_add(g: &Array, idx: &Array, axis: usize, shape: &Shape) -> Result<Array> {
    let idx = &indices(idx)?;
    let length = idx.numel();
    if length > ROUNDS {
        let outer: Vec<usize> = shape.iter().take(axis).collect();
        let inner: Vec<usize> = shape.iter().skip(axis + 1).collect();
        let flat = Shape::new(&[&outer[..], &[length], &inner].concat())?;
        let (rows, idx) = (whole(g, flat)?, whole(idx, Shape::new(&[length])?)?);
        let rows = cast(&rows, arithmetic(g.dtype()))?;
        return sum_of_parts(length, g.dtype(), |part| {
            take_add(&part_of(&rows, axis, part)?, &part_of(&idx, 0, part)?, axis, shape)
        });
    }
    let outer = product(shape.iter().take(axis));
    let inner = product(shape.iter().skip(axis + 1));
    // Rows of packed outputs must start on whole words.
    let dtype = if inner.is_multiple_of(per_word(g.dtype()) as usize) { g.dtype() } else { DType::F32 };
    let (index, g, idx) = (index_of(g)?, contiguous(g)?, contiguous(idx)?);
    let out = Array::empty(*shape, dtype, g.device())?;
    let report = status(index, "take", shape.at(axis), true)?;
    let kernel = kernel(index, "scatter_rows", variant(&[g.dtype() as u64, dtype as u64]), "main", || {
        let mut text = Template::new(include_str!("../../../shaders/scatter_rows.wgsl"), g.dtype());
        text.load("src", g.dtype()).store("out", dtype).elements_per_word(dtype);
        text.build()
    })?;
    let mut params = Params::default();
    params.word(outer).word(shape.at(axis)).word(length).word(inner).word(idx.offset()).word(g.offset());
    let blocks = inner.div_ceil(256 * per_word(dtype) as usize);
    let groups = (outer * shape.at(axis) * blocks) as u64;
    launch(index, &kernel, &[idx.buffer(), g.buffer(), out.buffer(), &report], params.words(), groups)?;
    cast(&out, g.dtype())
}

/// The transpose of [`gather`]: adds `g` to zeros of `shape`, in the order of the indices.
pub fn scatter_add(g: &Array, idx: &Array, axis: usize, shape: &Shape) -> Result<Array> {
    let idx = &indices(idx)?;
    // An invocation that owns a word of two elements loops over the axis for each.
    if g.dim(axis) * per_word(g.dtype()) as usize > 2 * ROUNDS - 256 {
        let wide = cast(g, arithmetic(g.dtype()))?;
        return sum_of_parts(g.dim(axis), g.dtype(), |part| {
            scatter_add(&part_of(&wide, axis, part)?, &part_of(idx, axis, part)?, axis, shape)
        });
    }
    let strides: Vec<i64> = idx.strides().iter().map(|&s| s as i64).collect();
    write_along("gather", g, idx, axis, shape, &strides)
}

/// Returns the elements in row-major order as an array of this shape.
fn whole(x: &Array, shape: Shape) -> Result<Array> {
    let strides = shape.strides();
    let x = contiguous(x)?;
    x.with_layout(shape, &strides[..shape.rank()], x.offset())
}

fn write_along(
    name: &'static str,
    g: &Array,
    idx: &Array,
    axis: usize,
    shape: &Shape,
    idx_strides: &[i64],
) -> Result<Array> {
    let index = index_of(g)?;
    let out = Array::empty(*shape, g.dtype(), g.device())?;
    let report = status(index, name, shape.at(axis), true)?;
    let kernel = kernel(index, "scatter_add", variant(&[g.dtype() as u64]), "main", || {
        let mut text = Template::new(include_str!("../../../shaders/scatter.wgsl"), g.dtype());
        text.load("x", g.dtype()).load("src", g.dtype()).store("out", g.dtype()).elements_per_word(g.dtype());
        text.flag("FROM_ZERO", true);
        text.build()
    })?;
    let mut params = Params::default();
    params.eight(shape.iter().map(|d| d as i64)).eight(g.shape().iter().map(|d| d as i64)).eight([]);
    params.eight(g.strides().iter().map(|&s| s as i64)).eight(idx_strides.iter().copied());
    params.word(shape.rank()).word(out.numel()).word(0).word(g.offset()).word(idx.offset());
    params.word(axis).word(g.dim(axis));
    let groups = out.numel().div_ceil(per_word(g.dtype()) as usize).div_ceil(256) as u64;
    // `x` is not read: the result starts from zero.
    let buffers = [g.buffer(), idx.buffer(), g.buffer(), out.buffer(), &report];
    launch(index, &kernel, &buffers, params.words(), groups)?;
    Ok(out)
}

/// Writes `x` to a region of a tensor of `fill`: `out[start + step * i] = x[i]` on every axis. Steps may be
/// negative, not zero.
pub fn pad(x: &Array, shape: &Shape, starts: &[usize], steps: &[isize], fill: f64) -> Result<Array> {
    let index = index_of(x)?;
    let out = Array::empty(*shape, x.dtype(), x.device())?;
    // Whole words are copied as bits, so that NaN payloads and subnormals survive.
    let moved = if x.dtype().size() == 4 { DType::I32 } else { x.dtype() };
    let kernel = kernel(index, "pad", variant(&[x.dtype() as u64]), "main", || {
        let mut text = Template::new(include_str!("../../../shaders/pad.wgsl"), moved);
        text.load("x", moved).store("out", moved).elements_per_word(moved);
        text.build()
    })?;
    let mut params = Params::default();
    params.eight(shape.iter().map(|d| d as i64)).eight(x.shape().iter().map(|d| d as i64));
    params
        .eight(x.strides().iter().map(|&s| s as i64))
        .eight(starts.iter().map(|&s| s as i64))
        .eight(steps.iter().map(|&s| s as i64));
    params.word(shape.rank()).word(out.numel()).word(x.offset());
    if x.dtype().is_float() {
        params.float(fill);
    } else {
        params.word(fill as i64 as u32 as usize);
    }
    let groups = out.numel().div_ceil(per_word(x.dtype()) as usize).div_ceil(256) as u64;
    launch(index, &kernel, &[x.buffer(), out.buffer()], params.words(), groups)?;
    Ok(out)
}
