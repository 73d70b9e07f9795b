//! Convolution and its transposes on the GPU; the counterpart of `src/cpu/conv/`.

use super::copy::{contiguous, index_of};
use super::params::Params;
use super::parts::check_rounds;
use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::window::Window;
use crate::error::Result;
use crate::gpu::shader::template::{Template, per_word};
use crate::gpu::{kernel, launch, variant};

/// Computes `y` from `x` and `w`.
pub fn forward(x: &Array, w: &Array, window: &Window, groups: usize) -> Result<Array> {
    let out = Array::empty(window.shape(&[x.dim(0), w.dim(0)], &window.output)?, x.dtype(), x.device())?;
    let row = w.dim(1) * window.taps();
    let outputs = w.dim(0) / groups.max(1);
    let sizes = Sizes { groups, inner: w.dim(1), outer: outputs, steps: [outputs * row, window.taps(), row] };
    correlate(x, w, &out, window, sizes, false)?;
    Ok(out)
}

/// Computes `x` from `y` and `w`.
pub fn input(y: &Array, w: &Array, window: &Window, groups: usize) -> Result<Array> {
    let shape = window.shape(&[y.dim(0), groups * w.dim(1)], &window.input)?;
    let out = Array::empty(shape, y.dtype(), y.device())?;
    let row = w.dim(1) * window.taps();
    let outputs = w.dim(0) / groups.max(1);
    let sizes = Sizes { groups, inner: outputs, outer: w.dim(1), steps: [outputs * row, row, window.taps()] };
    correlate(y, w, &out, window, sizes, true)?;
    Ok(out)
}

/// The channels of a group that are summed over (inner) and that are produced (outer), and the weight's
/// strides along groups, inner and outer channels.
struct Sizes {
    groups: usize,
    inner: usize,
    outer: usize,
    steps: [usize; 3],
}

fn correlate(
    x: &Array,
    w: &Array,
    out: &Array,
    window: &Window,
    sizes: Sizes,
    transposed: bool,
) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let (index, x, w) = (index_of(x)?, contiguous(x)?, contiguous(w)?);
    let rounds = window.taps() * (sizes.inner + 1) * per_word(x.dtype()) as usize;
    check_rounds(index, "convolution", rounds)?;
    let kernel = kernel(index, "conv", variant(&[x.dtype() as u64, u64::from(transposed)]), "main", || {
        let mut text = Template::new(include_str!("../../../shaders/conv.wgsl"), x.dtype());
        text.load("x", x.dtype()).load("weight", x.dtype()).store("out", x.dtype());
        text.elements_per_word(x.dtype()).flag("TRANSPOSED", transposed);
        text.build()
    })?;
    let mut params = Params::default();
    let (from, to) = if transposed { (window.output, window.input) } else { (window.input, window.output) };
    geometry(&mut params, window, from, to);
    params.word(out.numel()).word(x.offset()).word(w.offset());
    params.word(sizes.groups).word(sizes.inner).word(sizes.outer);
    sizes.steps.iter().for_each(|&step| {
        params.word(step);
    });
    launch(index, &kernel, &[x.buffer(), w.buffer(), out.buffer()], params.words(), groups_of(out))
}

/// The number of workgroups, of 256 output words each.
fn groups_of(out: &Array) -> u64 {
    out.numel().div_ceil(per_word(out.dtype()) as usize).div_ceil(256) as u64
}

/// Adds the spatial axes to the parameters; `from` are the lengths read, `to` those written.
fn geometry(params: &mut Params, window: &Window, from: [usize; 3], to: [usize; 3]) {
    for lengths in [from, window.kernel, to, window.stride, window.dilation, window.padding] {
        params.eight(lengths.iter().map(|&n| n as i64));
    }
}

/// Computes `w` from `x` and `y`.
pub fn weight(x: &Array, y: &Array, window: &Window, groups: usize) -> Result<Array> {
    let inner = x.dim(1) / groups.max(1);
    let out = Array::empty(window.shape(&[y.dim(1), inner], &window.kernel)?, x.dtype(), x.device())?;
    if out.numel() == 0 {
        return Ok(out);
    }
    let (index, x, y) = (index_of(x)?, contiguous(x)?, contiguous(y)?);
    let places: usize = window.output.iter().product();
    let rounds = ((x.dim(0) * places).div_ceil(256) + 8) * per_word(x.dtype()) as usize;
    check_rounds(index, "convolution", rounds)?;
    let kernel = kernel(index, "conv_weight", variant(&[x.dtype() as u64]), "main", || {
        let mut text = Template::new(include_str!("../../../shaders/conv_weight.wgsl"), x.dtype());
        text.load("x", x.dtype()).load("y", x.dtype()).store("out", x.dtype()).elements_per_word(x.dtype());
        text.build()
    })?;
    let mut params = Params::default();
    geometry(&mut params, window, window.input, window.output);
    params.word(out.numel()).word(x.offset()).word(y.offset());
    params.word(groups).word(inner).word(y.dim(1) / groups.max(1)).word(x.dim(0));
    let words = out.numel().div_ceil(per_word(out.dtype()) as usize) as u64;
    launch(index, &kernel, &[x.buffer(), y.buffer(), out.buffer()], params.words(), words)?;
    Ok(out)
}

/// The largest element of every window over the last axes, and its int32 index in its plane.
pub fn max_pool(x: &Array, window: &Window) -> Result<(Array, Array)> {
    let (index, x) = (index_of(x)?, contiguous(x)?);
    let front: Vec<usize> = x.shape().iter().take(x.rank() - window.rank).collect();
    let shape = window.shape(&front, &window.output)?;
    let out = Array::empty(shape, x.dtype(), x.device())?;
    let at = Array::empty(shape, DType::I32, x.device())?;
    if out.numel() == 0 {
        return Ok((out, at));
    }
    check_rounds(index, "max_pool", window.taps() * per_word(x.dtype()) as usize)?;
    let kernel = kernel(index, "max_pool", variant(&[x.dtype() as u64]), "main", || {
        let mut text = Template::new(include_str!("../../../shaders/max_pool.wgsl"), x.dtype());
        text.load("x", x.dtype()).store("out", x.dtype()).elements_per_word(x.dtype());
        if !x.dtype().is_float() {
            text.set("fn is_nan", "fn is_nan(v: T) -> bool { return false; }");
        }
        text.build()
    })?;
    let mut params = Params::default();
    geometry(&mut params, window, window.input, window.output);
    params.word(out.numel()).word(x.offset());
    let buffers = [x.buffer(), out.buffer(), at.buffer()];
    launch(index, &kernel, &buffers, params.words(), groups_of(&out))?;
    Ok((out, at))
}
