//! Pooling: the maximum or average of every window over the last axes.
//!
//! The maximum is a primitive that also returns the index of each maximum in its plane: derivatives of every
//! order pick elements at these indices and add to them ([`Maxima`]). Averages are convolutions with a
//! constant window, or, where windows differ in length, products with a matrix along each axis, so they need
//! no rules.

use crate::array::buffer::filled;
use crate::array::window::{AXES, Window};
use crate::ops::contract::conv::{Conv, Member};
use crate::ops::contract::convolve::{per_axis, spatial};
use crate::ops::contract::integers;
use crate::ops::prelude::*;
use std::sync::Arc;

/// The largest element of every window over the last axes. Outputs: the values, and their indices in the
/// flattened last axes of the input (the first of equal elements).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MaxPool {
    /// The windows.
    pub window: Arc<Window>,
}

kernel! {
    MaxPool, "max_pool", |self, x| -> Arrays {
        let (y, index) = on_device!(x[0], conv::max_pool(x[0], &self.window))?;
        Ok(smallvec![y, index])
    },
    flops |_x, _y| 0
}

impl General for MaxPool {
    const VJP: &'static str = "g added to the places of the maxima";
    const JVP: &'static str = "t at the places of the maxima";

    fn saves(&self, _needs: Needs, _inputs: usize) -> Saves {
        Saves::STATISTICS
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(Some(g)) = g.first() else { return Ok(Grads::new()) };
        Ok(smallvec![Some(bind(Maxima { window: self.window.clone(), adds: true }, &[g, c.output(1)?])?)])
    }
    fn jvp(&self, _x: &[&Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let Some(t) = &t[0] else { return Ok(smallvec![None, None]) };
        Ok(smallvec![Some(bind(Maxima { window: self.window.clone(), adds: false }, &[t, &y[1]])?), None])
    }
    batch!(in_front: |self| self.clone());
}

/// The elements of `x` at the places of the maxima; or its transpose, `x` added to zeros at these places, in
/// the order of the windows. Inputs: x, and the places, the second output of [`MaxPool`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Maxima {
    /// The windows.
    pub window: Arc<Window>,
    /// Whether `x` has an element for each window.
    pub adds: bool,
}

kernel! {
    Maxima,
    if self.adds { "max_pool_add" } else { "max_pool_pick" },
    |self, x| {
        if self.adds {
            return on_device!(x[0], conv::max_pool_add(x[0], x[1], &self.window));
        }
        let planes = |x: &Array| -> Result<Array> {
            let shape = self.window.planes(&x.shape())?;
            on_device!(x, copy::contiguous(x))?.reshape_view(&shape).ok_or_else(no_output)
        };
        let picked = on_device!(x[0], gather::gather(&planes(x[0])?, &planes(x[1])?, 1))?;
        picked.reshape_view(&x[1].shape()).ok_or_else(no_output)
    },
    /// One per window where elements are added.
    flops |x, _y| if self.adds { x[0].numel() as u64 } else { 0 }
}

impl Linear for Maxima {
    const TRANSPOSE: &'static str = "elements of g at the places, or g added there";
    const READS: Saves = Saves::input(1);

    transpose!(|self, g, c| bind(Maxima { adds: !self.adds, ..self.clone() }, &[g, c.input(1)?]));
    batch!(in_front: |self| self.clone());
}

/// The options of pooling: each a number for every spatial axis, or one for all.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Number of spatial axes.
    pub rank: usize,
    /// Lengths of a window.
    pub kernel: Vec<i64>,
    /// Steps between windows; the lengths if empty.
    pub stride: Vec<i64>,
    /// The number of padding elements at both ends.
    pub padding: Vec<i64>,
    /// Steps between elements of a window.
    pub dilation: Vec<i64>,
    /// Whether to include windows that begin inside and end outside.
    pub ceil: bool,
}

impl PoolOptions {
    /// The window over the last axes of `x`.
    fn window(&self, op: &str, x: &Tensor) -> Result<Window> {
        let rank = self.rank;
        check_rank(op, x, rank)?;
        let kernel = per_axis(op, "kernel_size", &self.kernel, rank, 1)?;
        let stride = if self.stride.is_empty() { &self.kernel } else { &self.stride };
        let mut window = Window {
            rank,
            kernel,
            input: spatial(&x.shape(), rank),
            stride: per_axis(op, "stride", stride, rank, 1)?,
            padding: per_axis(op, "padding", &self.padding, rank, 0)?,
            dilation: per_axis(op, "dilation", &self.dilation, rank, 1)?,
            output: [1; AXES],
        };
        for (axis, &kernel) in kernel.iter().enumerate().skip(AXES - rank) {
            let (pad, reach) = (window.padding[axis], (kernel - 1).saturating_mul(window.dilation[axis]));
            if pad > kernel / 2 {
                return Err(Error::value(format!(
                    "{op}: padding is at most half of the window, got padding {pad} and kernel_size {kernel}"
                )));
            }
            let (length, stride) = (window.input[axis] + 2 * pad, window.stride[axis]);
            // With `ceil` the first window may extend beyond the end by less than a step.
            let slack = if self.ceil { stride - 1 } else { 0 };
            if reach >= length.saturating_add(slack) || window.input[axis] == 0 {
                return Err(Error::shape(format!(
                    "{op}: the window reaches over {} elements of spatial axis {}, which has {} of them and \
                     {} of padding; it must fit into them (input {})",
                    reach + 1,
                    axis + rank - AXES,
                    window.input[axis],
                    2 * pad,
                    x.shape()
                )));
            }
            window.output[axis] = (length + slack - reach - 1) / stride + 1;
            if self.ceil && (window.output[axis] - 1) * stride >= window.input[axis] + pad {
                window.output[axis] -= 1;
            }
        }
        Ok(window)
    }
}

fn check_rank(op: &str, x: &Tensor, rank: usize) -> Result<()> {
    if x.rank() == rank + 1 || x.rank() == rank + 2 {
        return Ok(());
    }
    Err(Error::shape(format!(
        "{op}: input of shape {}; expected {} axes (images, channels and {rank} spatial axes) or {} (one \
         image)",
        x.shape(),
        rank + 2,
        rank + 1
    )))
}

fn check_float(op: &str, x: &Tensor) -> Result<()> {
    if x.dtype().is_float() {
        return Ok(());
    }
    Err(Error::dtype(format!(
        "{op}: floating point tensor expected, got {}; convert with .float()",
        x.dtype()
    )))
}

/// Whether some window contains no element of an axis; this takes a dilation.
fn misses(window: &Window, axis: usize) -> bool {
    let (length, pad, step) = (window.input[axis], window.padding[axis], window.dilation[axis]);
    (0..window.output[axis]).any(|p| {
        let start = p * window.stride[axis];
        let first = pad.saturating_sub(start).div_ceil(step);
        first >= window.kernel[axis] || start + first * step >= pad + length
    })
}

/// The number of elements of each window along an axis; those of the padding count if `padded`.
fn counts(window: &Window, axis: usize, padded: bool) -> Vec<usize> {
    let (length, pad, kernel) = (window.input[axis], window.padding[axis], window.kernel[axis]);
    let (low, high) = if padded { (0, length + 2 * pad) } else { (pad, length + pad) };
    (0..window.output[axis])
        .map(|p| {
            let start = p * window.stride[axis];
            (start + kernel).min(high).saturating_sub(start.max(low))
        })
        .collect()
}

impl Tensor {
    /// The maximum of every window over the last axes, and its index in the flattened last axes.
    pub fn max_pool(&self, op: &str, options: &PoolOptions) -> Result<(Tensor, Tensor)> {
        let window = options.window(op, self)?;
        if let Some(axis) = (AXES - options.rank..AXES).find(|&axis| misses(&window, axis)) {
            return Err(Error::value(format!(
                "{op}: a window lies in the padding altogether, and nothing there is largest: spatial axis \
                 {} has {} elements, the window {} of them {} apart, with padding {}; use a smaller padding \
                 or dilation",
                axis + options.rank - AXES,
                window.input[axis],
                window.kernel[axis],
                window.dilation[axis],
                window.padding[axis]
            )));
        }
        Ok(outputs::<2>(bind(MaxPool { window: Arc::new(window) }, &[self])?)?.into())
    }

    /// The average of every window over the last axes. Padding elements count as zeros if `padded`, else not
    /// at all; `divisor` replaces the number of elements. Averages of integers lose their fractions.
    pub fn avg_pool(
        &self, op: &str, options: &PoolOptions, padded: bool, divisor: Option<i64>,
    ) -> Result<Tensor> {
        let whole = !self.dtype().is_differentiable() && self.dtype() != DType::Bool;
        if !whole {
            check_float(op, self)?;
        }
        if divisor == Some(0) {
            return Err(Error::value(format!("{op}: divisor_override cannot be 0")));
        }
        let window = options.window(op, self)?;
        let rank = options.rank;
        let front = self.shape().part(0, self.rank() - rank);
        // Halves are summed and divided in float32 and rounded once; integers do not overflow in the widest.
        let dtype = match (whole, self.device()) {
            (false, _) => self.dtype().compute(),
            (true, Device::Cpu) => DType::I64,
            (true, _) => DType::I32,
        };
        let wide = self.cast(dtype)?;
        let device = wide.device();
        let each: [Vec<usize>; AXES] = std::array::from_fn(|axis| counts(&window, axis, padded));
        let even = each.iter().all(|counts| counts.windows(2).all(|w| w[0] == w[1]));
        let number = match divisor {
            Some(n) => Some(n as f64),
            None if even => Some(each.iter().map(|c| c.first().copied().unwrap_or(1) as f64).product()),
            None => None,
        };
        let weight = if whole { 1.0 } else { 1.0 / number.unwrap_or(1.0) };
        let weight = Tensor::full(window.shape(&[1, 1], &window.kernel)?, weight, dtype, device)?;
        let planes = wide.reshape(&window.shape(&[front.numel(), 1], &window.input)?)?;
        let shape = window.shape(&front.to_vec(), &window.output)?;
        // One number per position along an axis.
        let along = |axis: usize, numbers: &[f64]| {
            let mut dims = vec![1; rank];
            dims[axis + rank - AXES] = numbers.len();
            Tensor::from_slice(numbers, &dims)?.cast(dtype)?.to_device(device)
        };
        let spatial = each.iter().enumerate().skip(AXES - rank);
        if whole {
            let sums = integers::conv(&planes, &weight, &window, 1)?;
            let mut divisor = Tensor::full(Shape::SCALAR, number.unwrap_or(1.0), dtype, device)?;
            if number.is_none() {
                for (axis, counts) in spatial {
                    let counts: Vec<f64> = counts.iter().map(|&n| n as f64).collect();
                    divisor = divisor.mul(&along(axis, &counts)?)?;
                }
            }
            // What `fmod` leaves divides evenly.
            let whole = sums.sub(&sums.fmod(&divisor)?)?.floor_divide(&divisor)?;
            return whole.reshape(&shape)?.cast(self.dtype());
        }
        let op = Conv { gives: Member::Y, groups: 1, window: Arc::new(window) };
        let mut out = bind(op, &[&planes, &weight])?;
        if number.is_none() {
            for (axis, counts) in spatial {
                let shares: Vec<f64> = counts.iter().map(|&n| 1.0 / n as f64).collect();
                out = out.mul(&along(axis, &shares)?)?;
            }
        }
        out.reshape(&shape)?.cast(self.dtype())
    }

    /// Averages of windows that divide each of the last axes into `sizes` parts (`None`: one part per
    /// element): part `i` of `n` begins at `floor(i * length / n)` and ends at `ceil((i + 1) * length / n)`.
    pub fn adaptive_avg_pool(&self, op: &str, rank: usize, sizes: &[Option<i64>]) -> Result<Tensor> {
        check_rank(op, self, rank)?;
        check_float(op, self)?;
        if sizes.len() != 1 && sizes.len() != rank {
            return Err(Error::value(format!(
                "{op}: output_size takes one number or one for each of the {rank} spatial axes, got {}",
                sizes.len()
            )));
        }
        let mut out = self.cast(self.dtype().compute())?;
        for i in 0..rank {
            let axis = self.rank() - rank + i;
            let length = self.shape().at(axis);
            let size = match sizes[if sizes.len() == 1 { 0 } else { i }] {
                None => continue,
                Some(n) => usize::try_from(n).ok().filter(|&n| n > 0 && length > 0).ok_or_else(|| {
                    Error::value(format!(
                        "{op}: output_size must be 1 or more and the axis not empty, got {n} for an axis of \
                         {length}"
                    ))
                })?,
            };
            if size == length {
                continue;
            }
            let mut matrix = filled(0.0, length.saturating_mul(size))?;
            for part in 0..size {
                let (start, end) = (part * length / size, ((part + 1) * length).div_ceil(size));
                (start..end).for_each(|k| matrix[k * size + part] = 1.0 / (end - start) as f64);
            }
            let matrix =
                Tensor::from_slice(&matrix, &[length, size])?.cast(out.dtype())?.to_device(out.device())?;
            let last = out.rank() - 1;
            out = out.move_axis(axis, last)?.matmul(&matrix)?.move_axis(last, axis)?;
        }
        out.cast(self.dtype())
    }
}
