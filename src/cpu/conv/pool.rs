//! Max pooling: the largest element of every window, and its position.

use crate::array::window::{AXES, Window};
use crate::cpu::indexing::gather::scatter_add;
use crate::cpu::prelude::*;

/// Returns the maximum of every window over the last axes, and its index in its plane as int64. The first
/// maximum wins a tie; the first NaN wins over all.
pub fn max_pool(x: &Array, window: &Window) -> Result<(Array, Array)> {
    let dtype = x.dtype();
    let x = computed(x)?;
    let front: Vec<usize> = x.shape().iter().take(x.rank() - window.rank).collect();
    let shape = window.shape(&front, &window.output)?;
    let mut out = Array::empty(shape, x.dtype(), Device::Cpu)?;
    let mut index = Array::empty(shape, crate::array::dtype::DType::I64, Device::Cpu)?;
    let planes: usize = front.iter().product();
    if out.numel() > 0 {
        let at = Shared::new(index.slice_mut::<i64>()?.as_mut_ptr());
        dispatch_computed!(dtype, T => {
            let to = Shared::new(out.slice_mut::<T>()?.as_mut_ptr());
            let (from, positions) = (x.slice::<T>()?, window.positions());
            let work = positions * window.taps();
            parallel_for(planes, GRAIN.div_ceil(work), |range| for plane in range {
                let size: usize = window.input.iter().product();
                let first = plane * positions;
                // SAFETY: every plane has its own outputs.
                let (to, at) = unsafe { (to.part(first, positions), at.part(first, positions)) };
                pool_plane(&from[plane * size..][..size], window, to, at);
            });
        });
    }
    Ok((cast(&out, dtype)?, index))
}

/// Adds an element per window to zeros at the index of its maximum, in the order of the windows.
pub fn max_pool_add(g: &Array, index: &Array, window: &Window) -> Result<Array> {
    let front: Vec<usize> = g.shape().iter().take(g.rank() - window.rank).collect();
    let shape = window.shape(&front, &window.input)?;
    let planes = |x: &Array| contiguous(x)?.reshape_view(&window.planes(&x.shape())?).ok_or_else(shapeless);
    let sums = scatter_add(&planes(g)?, &planes(index)?, 1, &window.planes(&shape)?)?;
    sums.reshape_view(&shape).ok_or_else(shapeless)
}

/// A dense array has views of every shape.
fn shapeless() -> Error {
    Error::shape("internal: a dense array that cannot be reshaped")
}

/// Pools one plane. Compares rows of outputs with the input one window element at a time, so that the
/// innermost loop runs along memory.
fn pool_plane<T: Element + PartialOrd>(x: &[T], window: &Window, out: &mut [T], index: &mut [i64]) {
    let width = window.output[2];
    for (row, (out, index)) in out.chunks_exact_mut(width).zip(index.chunks_exact_mut(width)).enumerate() {
        let place = [row / window.output[1], row % window.output[1]];
        index.fill(-1);
        out.fill(x[0]);
        for k in 0..window.kernel[0] * window.kernel[1] {
            let (z, y) =
                (window.at(0, place[0], k / window.kernel[1]), window.at(1, place[1], k % window.kernel[1]));
            let Some((z, y)) = z.zip(y) else { continue };
            let line = (z * window.input[1] + y) * window.input[2];
            for k in 0..window.kernel[2] {
                let (first, end) = inside(window, k);
                for p in first..end {
                    let i = p * window.stride[2] + k * window.dilation[2] - window.padding[2];
                    let (value, best) = (x[line + i], out[p]);
                    // `value != value` is true of NaN. No branches: half would be mispredicted.
                    #[allow(clippy::eq_op, reason = "true of NaN alone")]
                    let wins = ((value > best) | (value != value)) & (best == best) | (index[p] < 0);
                    out[p] = if wins { value } else { best };
                    index[p] = if wins { (line + i) as i64 } else { index[p] };
                }
            }
        }
    }
}

/// Returns the range of outputs of the last axis whose element `k` lies inside the input.
fn inside(window: &Window, k: usize) -> (usize, usize) {
    let a = AXES - 1;
    let (stride, from) = (window.stride[a], k * window.dilation[a]);
    let first = window.padding[a].saturating_sub(from).div_ceil(stride);
    let end = (window.input[a] + window.padding[a]).saturating_sub(from).div_ceil(stride);
    (first.min(window.output[a]), end.min(window.output[a]))
}
