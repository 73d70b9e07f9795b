//! Convolution: one trilinear form of input `x`, weights `w` and output `y`, and the three functions that
//! compute each of them from the other two.
//!
//! The form is `sum of y[n, g o, p] w[g o, c, k] x[n, g c, p * stride + k * dilation - padding]`. [`forward`]
//! and [`input`] are correlations, [`input`] one per phase of the stride; [`weight`] sums over positions. All
//! read a padded copy of a band of the input. The shapes alone decide the order of summation. Halves are
//! widened to `f32`. Read next, in `src/cpu/conv/`: grid, correlate, weight.

mod correlate;
mod grid;
mod pool;
mod tile;
mod vector;
mod weight;

use crate::array::window::{AXES, Window};
use crate::cpu::prelude::*;
use correlate::{Correlation, Weights};
use grid::Axis;
pub use pool::{max_pool, max_pool_add};
use smallvec::SmallVec;
use vector::Float;
use weight::weights;

/// Runs a kernel on contiguous floats of one dtype, halves as `f32`: `floats!(x, y, shape, function(more))`.
macro_rules! floats {
    ($x:ident, $y:ident, $shape:expr, $function:ident($($more:expr),*)) => {{
        let dtype = common_dtype(&[$x, $y])?;
        let (a, b) = (computed($x)?, computed($y)?);
        let mut out = Array::empty($shape, dtype.compute(), Device::Cpu)?;
        if out.numel() > 0 && a.numel() * b.numel() == 0 {
            out = Array::full(out.shape(), 0.0, out.dtype())?;
        }
        match (dtype.compute(), out.numel() * a.numel() * b.numel()) {
            (_, 0) => {}
            (DType::F32, _) => $function::<f32>(a.slice()?, b.slice()?, out.slice_mut()?, $($more),*)?,
            (DType::F64, _) => $function::<f64>(a.slice()?, b.slice()?, out.slice_mut()?, $($more),*)?,
            (other, _) => return Err(wrong_dtype("convolution", other)),
        }
        cast(&out, dtype)
    }};
}

/// `y` of shape `[n, o, output..]` from `x` of shape `[n, groups * c, input..]` and `w`, `[o, c, kernel..]`.
pub fn forward(x: &Array, w: &Array, window: &Window, groups: usize) -> Result<Array> {
    biased(x, w, None, window, groups)
}

/// [`forward`] plus a number per output channel, with which its sums start. The sums must not be empty.
pub fn biased(x: &Array, w: &Array, bias: Option<&Array>, window: &Window, groups: usize) -> Result<Array> {
    let bias = bias.map(|b| cast(b, x.dtype().compute())).transpose()?;
    let sizes = Sizes { images: x.dim(0), groups, inputs: w.dim(1), outputs: w.dim(0) / groups.max(1) };
    floats!(x, w, window.shape(&[x.dim(0), w.dim(0)], &window.output)?, outputs(bias.as_ref(), window, sizes))
}

/// Returns `x` of shape `[n, groups * c, input..]` from `y` of shape `[n, o, output..]` and `w` of shape
/// `[o, c, kernel..]`: the adjoint of [`forward`] in `x`.
pub fn input(y: &Array, w: &Array, window: &Window, groups: usize) -> Result<Array> {
    let sizes = Sizes { images: y.dim(0), groups, inputs: w.dim(1), outputs: w.dim(0) / groups.max(1) };
    floats!(y, w, window.shape(&[y.dim(0), groups * w.dim(1)], &window.input)?, inputs(window, sizes))
}

/// Returns `w` of shape `[o, c, kernel..]` from `x` of shape `[n, groups * c, input..]` and `y` of shape
/// `[n, o, output..]`: the adjoint of [`forward`] in `w`.
pub fn weight(x: &Array, y: &Array, window: &Window, groups: usize) -> Result<Array> {
    let [inputs, outputs] = [x, y].map(|x| x.dim(1) / groups.max(1));
    let sizes = Sizes { images: x.dim(0), groups, inputs, outputs };
    floats!(x, y, window.shape(&[y.dim(1), inputs], &window.kernel)?, weights(lines(window), sizes))
}

/// Lengths of the axes that are not spatial; `inputs` and `outputs` are channels per group.
#[derive(Clone, Copy)]
struct Sizes {
    images: usize,
    groups: usize,
    inputs: usize,
    outputs: usize,
}

/// The spatial axes of the convolution itself.
fn lines(window: &Window) -> [Axis; AXES] {
    std::array::from_fn(|i| Axis {
        input: window.input[i],
        count: window.output[i],
        step: window.stride[i],
        shifts: (0..window.kernel[i])
            .map(|k| (k * window.dilation[i]) as isize - window.padding[i] as isize)
            .collect(),
    })
}

/// Returns the offsets, in the weights of a channel, of the window elements that each axis uses.
fn positions(window: &Window, used: &[SmallVec<[usize; 8]>; AXES]) -> Vec<usize> {
    let [_, height, width] = window.kernel;
    let mut out = Vec::new();
    for z in &used[0] {
        for y in &used[1] {
            out.extend(used[2].iter().map(|x| (z * height + y) * width + x));
        }
    }
    out
}

fn outputs<T: Float>(
    x: &[T], w: &[T], out: &mut [T], bias: Option<&Array>, window: &Window, sizes: Sizes,
) -> Result<()> {
    let all = window.kernel.map(|length| (0..length).collect());
    let (taps, column) = (positions(window, &all), window.taps());
    let row = sizes.inputs * column;
    Correlation {
        sizes,
        lines: lines(window),
        x,
        weights: Weights { values: w, group: sizes.outputs * row, row, column, taps },
        bias: bias.map_or(Ok(&[][..]), |bias| bias.slice())?,
        full: window.output,
        start: [0; AXES],
        step: [1; AXES],
    }
    .run(out)
}

/// Computes [`input`]. Input position `i` receives from output `p` and element `k` with
/// `p * stride + k * dilation = i + padding`. All `i` of one phase of the stride receive from the same
/// elements `k`, and consecutive `i` from consecutive `p`.
fn inputs<T: Float>(y: &[T], w: &[T], out: &mut [T], window: &Window, s: Sizes) -> Result<()> {
    let phases: [usize; AXES] = std::array::from_fn(|i| window.stride[i].min(window.input[i]));
    let parts: [Vec<Phase>; AXES] =
        std::array::from_fn(|i| (0..phases[i]).map(|p| phase(window, i, p)).collect());
    if parts.iter().flatten().any(|p| p.used.is_empty()) {
        out.fill(T::default());
    }
    let column = window.taps();
    let row = s.inputs * column;
    for z in &parts[0] {
        for y_part in &parts[1] {
            for x in &parts[2] {
                let taps = positions(window, &[z.used.clone(), y_part.used.clone(), x.used.clone()]);
                if taps.is_empty() {
                    continue;
                }
                Correlation {
                    sizes: Sizes { inputs: s.outputs, outputs: s.inputs, ..s },
                    lines: [z.line.clone(), y_part.line.clone(), x.line.clone()],
                    x: y,
                    weights: Weights { values: w, group: s.outputs * row, row: column, column: row, taps },
                    bias: &[],
                    full: window.input,
                    start: [z.start, y_part.start, x.start],
                    step: window.stride,
                }
                .run(out)?;
            }
        }
    }
    Ok(())
}

/// The input positions `start, start + stride, ..` of an axis.
struct Phase {
    start: usize,
    line: Axis,
    /// The window elements that contribute to these positions.
    used: SmallVec<[usize; 8]>,
}

fn phase(window: &Window, axis: usize, start: usize) -> Phase {
    let (stride, padded) = (window.stride[axis] as isize, (start + window.padding[axis]) as isize);
    let from = |k: usize| padded - (k * window.dilation[axis]) as isize;
    let used: SmallVec<[usize; 8]> = (0..window.kernel[axis]).filter(|&k| from(k) % stride == 0).collect();
    let line = Axis {
        input: window.output[axis],
        count: (window.input[axis] - start).div_ceil(window.stride[axis]),
        step: 1,
        shifts: used.iter().map(|&k| from(k) / stride).collect(),
    };
    Phase { start, line, used }
}

#[cfg(test)]
#[path = "../../../tests/kernels/conv.rs"]
mod tests;
