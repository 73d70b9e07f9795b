//! Max pooling and its transpose (`shaders/max_pool.wgsl`, `shaders/max_pool_add.wgsl`).

use crate::array::window::{AXES, Window};
use crate::gpu::kernels::parts::check_rounds;
use crate::gpu::kernels::pieces::{by_lines, fit_wide, in_a_piece, in_halves, joined, longest};
use crate::gpu::kernels::prelude::*;
use crate::gpu::scalar;
use smallvec::smallvec;

/// Adds the spatial axes to the parameters; `from` are the lengths read, `to` those written.
fn geometry(run: &mut Dispatch, window: &Window, from: [usize; AXES], to: [usize; AXES]) {
    for lengths in [from, window.kernel, to, window.stride, window.dilation, window.padding] {
        run.eight(lengths.map(|n| n as isize));
    }
}

/// The largest element of every window over the last axes, and its int32 index in its plane.
pub fn max_pool(x: &Array, window: &Window) -> Result<(Array, Array)> {
    let planes = x.rank() - window.rank..x.rank();
    let front: Vec<usize> = x.shape().iter().take(planes.start).collect();
    let shape = window.shape(&front, &window.output)?;
    if !fit_wide(&[x])? || shape.numel() > in_a_piece(x)? {
        let (axis, large) = (longest(x, planes), room(x, &shape)?);
        let run = |x: &[&Array]| max_pool(x[0], window).map(|(y, at)| smallvec![y, at]);
        let join = |_: usize, a: &Array, b: &Array| joined(a, b, axis.unwrap_or(0));
        let mut found = in_halves("max_pool", &[x, &large], axis, &run, &join)?;
        return Ok((found.remove(0), found.remove(0)));
    }
    let x = contiguous(x)?;
    let out = Array::empty(shape, x.dtype(), x.device())?;
    let at = Array::empty(shape, DType::I32, x.device())?;
    if out.numel() == 0 {
        return Ok((out, at));
    }
    let rounds = window.kernel.iter().rev().fold(0, |inner, length| length * (inner + 1));
    check_rounds(index_of(&x)?, "max_pool", rounds * per_word(x.dtype()))?;
    let mut run = Dispatch::new("max_pool", shader!("max_pool"), x.dtype());
    run.input("x", &x).output("out", &out).writes(&at);
    run.flag("IS_FLOAT", x.dtype().is_float());
    geometry(&mut run, window, window.input, window.output);
    run.words([out.numel(), x.offset()]);
    run.launch(words_of(&out).div_ceil(256))?;
    Ok((out, at))
}

/// An array in the place of a result of this shape, of which nothing is stored.
fn room(x: &Array, shape: &Shape) -> Result<Array> {
    scalar(index_of(x)?, 0.0, DType::I32)?.expand(shape)
}

/// Adds an element per window to zeros at the index of its maximum, in the order of the windows.
pub fn max_pool_add(g: &Array, index: &Array, window: &Window) -> Result<Array> {
    let front: Vec<usize> = g.shape().iter().take(g.rank() - window.rank).collect();
    let (rows, width) = (window.input[0] * window.input[1], window.input[2]);
    let dtype = dtype_of_rows(g.dtype(), &[width]);
    let shape = window.shape(&front, &window.input)?;
    if !fit_wide(&[g, index])? || shape.numel() > in_a_piece(g)? {
        let run = |x: &[&Array]| max_pool_add(x[0], x[1], window);
        return by_lines("max_pool", &[g, index, &room(g, &shape)?], front.len()..g.rank(), &run);
    }
    let out = Array::empty(shape, dtype, g.device())?;
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
