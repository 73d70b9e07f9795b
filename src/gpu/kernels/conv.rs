//! Convolution and its transposes on the GPU; the counterpart of `src/cpu/conv/`.

use super::parts::check_rounds;
use super::prelude::*;
use crate::array::window::Window;

/// Computes `y` from `x` and `w`.
pub fn forward(x: &Array, w: &Array, window: &Window, groups: usize) -> Result<Array> {
    correlate(x, w, window, groups, false)
}

/// Computes `x` from `y` and `w`.
pub fn input(y: &Array, w: &Array, window: &Window, groups: usize) -> Result<Array> {
    correlate(y, w, window, groups, true)
}

fn correlate(x: &Array, w: &Array, window: &Window, groups: usize, transposed: bool) -> Result<Array> {
    // The channels of a group that `x` and `y` of a convolution have.
    let (own, made) = (w.dim(1), w.dim(0) / groups.max(1));
    let (tap, row) = (window.taps(), own * window.taps());
    // Channels that are summed over (inner) and that are produced (outer), and the weight's strides along
    // groups, inner and outer channels.
    let (inner, outer, steps) =
        if transposed { (made, own, [made * row, row, tap]) } else { (own, made, [made * row, tap, row]) };
    let (from, to, channels) = match transposed {
        true => (window.output, window.input, groups * own),
        false => (window.input, window.output, w.dim(0)),
    };
    let out = Array::empty(window.shape(&[x.dim(0), channels], &to)?, x.dtype(), x.device())?;
    if out.numel() == 0 {
        return Ok(out);
    }
    let (x, w) = (contiguous(x)?, contiguous(w)?);
    check_rounds(index_of(&x)?, "convolution", tap * (inner + 1) * per_word(x.dtype()))?;
    let mut run = Dispatch::new("conv", shader!("conv"), x.dtype());
    run.input("x", &x).input("weight", &w).output("out", &out).flag("TRANSPOSED", transposed);
    geometry(&mut run, window, from, to);
    run.words([out.numel(), x.offset(), w.offset(), groups, inner, outer]).words(steps);
    // Each element of `y` meets each tap of each input channel of its group.
    run.flops(2 * row * if transposed { x.numel() } else { out.numel() });
    run.launch(words_of(&out).div_ceil(256))?;
    Ok(out)
}

/// Adds the spatial axes to the parameters; `from` are the lengths read, `to` those written.
fn geometry(run: &mut Dispatch, window: &Window, from: [usize; 3], to: [usize; 3]) {
    for lengths in [from, window.kernel, to, window.stride, window.dilation, window.padding] {
        run.eight(lengths.map(|n| n as isize));
    }
}

/// Computes `w` from `x` and `y`.
pub fn weight(x: &Array, y: &Array, window: &Window, groups: usize) -> Result<Array> {
    let inner = x.dim(1) / groups.max(1);
    let out = Array::empty(window.shape(&[y.dim(1), inner], &window.kernel)?, x.dtype(), x.device())?;
    if out.numel() == 0 {
        return Ok(out);
    }
    let (x, y) = (contiguous(x)?, contiguous(y)?);
    let places: usize = window.output.iter().product();
    let rounds = ((x.dim(0) * places).div_ceil(256) + 8) * per_word(x.dtype());
    check_rounds(index_of(&x)?, "convolution", rounds)?;
    let mut run = Dispatch::new("conv_weight", shader!("conv_weight"), x.dtype());
    run.input("x", &x).input("y", &y).output("out", &out);
    geometry(&mut run, window, window.input, window.output);
    run.words([out.numel(), x.offset(), y.offset(), groups, inner, y.dim(1) / groups.max(1), x.dim(0)]);
    run.flops(2 * y.numel() * inner * window.taps());
    run.launch(words_of(&out))?;
    Ok(out)
}

/// The largest element of every window over the last axes, and its int32 index in its plane.
pub fn max_pool(x: &Array, window: &Window) -> Result<(Array, Array)> {
    let x = contiguous(x)?;
    let front: Vec<usize> = x.shape().iter().take(x.rank() - window.rank).collect();
    let shape = window.shape(&front, &window.output)?;
    let out = Array::empty(shape, x.dtype(), x.device())?;
    let at = Array::empty(shape, DType::I32, x.device())?;
    if out.numel() == 0 {
        return Ok((out, at));
    }
    check_rounds(index_of(&x)?, "max_pool", window.taps() * per_word(x.dtype()))?;
    let mut run = Dispatch::new("max_pool", shader!("max_pool"), x.dtype());
    run.input("x", &x).output("out", &out).writes(&at);
    geometry(&mut run, window, window.input, window.output);
    run.words([out.numel(), x.offset()]);
    run.launch(words_of(&out).div_ceil(256))?;
    Ok((out, at))
}

/// Adds an element per window to zeros at the index of its maximum, in the order of the windows.
pub fn max_pool_add(g: &Array, index: &Array, window: &Window) -> Result<Array> {
    let front: Vec<usize> = g.shape().iter().take(g.rank() - window.rank).collect();
    let (rows, width) = (window.input[0] * window.input[1], window.input[2]);
    let dtype = dtype_of_rows(g.dtype(), &[width]);
    let out = Array::empty(window.shape(&front, &window.input)?, dtype, g.device())?;
    let quads = front.iter().product::<usize>() * rows * width.div_ceil(4);
    // A thread walks the windows over four elements of a row.
    let over = |axis: usize, of: usize| {
        (of + (window.kernel[axis] - 1) * window.dilation[axis]).div_ceil(window.stride[axis]) + 1
    };
    check_rounds(index_of(g)?, "max_pool", over(0, 1) * (over(1, 1) * (over(2, 4) + 1) + 1))?;
    let (g, index) = (contiguous(g)?, contiguous(index)?);
    let mut run = Dispatch::new("max_pool_add", shader!("max_pool_add"), g.dtype());
    run.input("g", &g).reads(&index).output("out", &out);
    geometry(&mut run, window, window.input, window.output);
    run.words([quads, g.offset(), index.offset()]);
    run.launch(quads.div_ceil(256))?;
    cast(&out, g.dtype())
}
