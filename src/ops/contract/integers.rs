//! Convolution of integers and its transpose: products of matrices with the windows as columns, exact, and
//! wrapping where a sum leaves the dtype, as all sums of integers do.

use crate::array::window::{AXES, Window};
use crate::ops::prelude::*;
use crate::ops::views::strided::as_strided;

/// `y` of shape `[n, o, output..]` from `x` of shape `[n, groups * c, input..]` and `w`, `[o, c, kernel..]`.
pub fn conv(x: &Tensor, w: &Tensor, window: &Window, groups: usize) -> Result<Tensor> {
    correlate(x, w, window, window.padding.map(|n| n as i64), groups)
}

/// `x` of shape `[n, groups * c, input..]` from `y` of shape `[n, o, output..]` and `w`, `[o, c, kernel..]`:
/// the correlation of the elements of `y`, a stride apart among zeros, with the windows from their ends.
pub fn conv_transpose(y: &Tensor, w: &Tensor, window: &Window, groups: usize) -> Result<Tensor> {
    let (mut y, mut turned) = (y.clone(), *window);
    let mut before = [0; AXES];
    for (axis, before) in before.iter_mut().enumerate() {
        let steps = window.dilation[axis] * (window.kernel[axis] - 1);
        *before = steps as i64 - window.padding[axis] as i64;
        (turned.stride[axis], turned.output[axis]) = (1, window.input[axis]);
        if let Some(at) = (axis + window.rank).checked_sub(AXES) {
            y = spaced(&y, at + 2, window.stride[axis])?;
            turned.input[axis] = y.shape().at(at + 2);
        }
    }
    let own = w.shape();
    let (outputs, inputs) = (own.at(0) / groups.max(1), own.at(1));
    let split = w.reshape(&window.shape(&[groups, outputs, inputs], &window.kernel)?)?;
    let split =
        split.transpose(1, 2)?.reshape(&window.shape(&[groups * inputs, outputs], &window.kernel)?)?;
    let axes: Vec<i64> = (2..own.rank() as i64).collect();
    correlate(&y, &split.flip(&axes)?, &turned, before, groups)
}

/// The elements along an axis `step` apart, zeros between them.
fn spaced(x: &Tensor, axis: usize, step: usize) -> Result<Tensor> {
    let shape = x.shape();
    let length = shape.at(axis);
    if step == 1 || length == 0 {
        return Ok(x.clone());
    }
    // Axes before and after as one each, so that the new one always fits.
    let (front, back) = (shape.part(0, axis).numel(), shape.part(axis + 1, shape.rank()).numel());
    let rows = x.reshape(&Shape::new(&[front, length, 1, back])?)?;
    let rows = rows.pad(&[(0, 0), (0, 0), (0, step as i64 - 1), (0, 0)], 0.0)?;
    let rows = rows.reshape(&Shape::new(&[front, length * step, back])?)?;
    let kept = (length - 1) * step + 1;
    rows.narrow(1, 0, kept)?.reshape(&shape.with(axis, kept))
}

/// [`conv`] whose first window starts `before` elements ahead of the input.
fn correlate(x: &Tensor, w: &Tensor, window: &Window, before: [i64; AXES], groups: usize) -> Result<Tensor> {
    let (images, outputs, inputs) = (x.shape().at(0), w.shape().at(0), w.shape().at(1));
    let shape = window.shape(&[images, outputs], &window.output)?;
    if x.numel() == 0 || w.numel() == 0 {
        return Tensor::zeros(shape, x.dtype(), x.device());
    }
    let mut widths = vec![(0, 0); window.rank + 2];
    let mut wide = [1; AXES];
    for axis in AXES - window.rank..AXES {
        let reach = window.dilation[axis] * (window.kernel[axis] - 1);
        wide[axis] = (window.output[axis] - 1) * window.stride[axis] + reach + 1;
        let after = wide[axis] as i64 - before[axis] - window.input[axis] as i64;
        widths[axis + window.rank + 2 - AXES] = (before[axis], after);
    }
    let padded = x.pad(&widths, 0.0)?;
    // Rows of channels, their windows, the positions of these: `[rows, kernel.., output..]`.
    let rows = images * groups * inputs;
    let steps = [(wide[1] * wide[2]) as isize, wide[2] as isize, 1];
    let axes = AXES - window.rank..AXES;
    let mut lengths = vec![rows];
    lengths.extend(axes.clone().map(|axis| window.kernel[axis]));
    lengths.extend(axes.clone().map(|axis| window.output[axis]));
    let mut strides = vec![wide.iter().product::<usize>() as isize];
    strides.extend(axes.clone().map(|axis| steps[axis] * window.dilation[axis] as isize));
    strides.extend(axes.map(|axis| steps[axis] * window.stride[axis] as isize));
    let columns = as_strided(&padded, &lengths, &strides, 0)?;
    let column = inputs * window.taps();
    let columns = columns.reshape(&Shape::new(&[images, groups, column, window.positions()])?)?;
    let weights = w.reshape(&Shape::new(&[groups, outputs / groups.max(1), column])?)?;
    weights.matmul(&columns)?.reshape(&shape)
}
