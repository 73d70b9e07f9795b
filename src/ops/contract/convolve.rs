//! The public functions of convolution and its transpose: they check the options and build a [`Window`].

use crate::array::window::{AXES, Window};
use crate::ops::contract::bias_for;
use crate::ops::contract::conv::{Conv, ConvBias, Member, per_channel};
use crate::ops::contract::integers;
use crate::ops::pointwise::operand::promote;
use crate::ops::prelude::*;
use std::sync::Arc;

/// The padding at the ends of the input.
#[derive(Clone, Debug)]
pub enum Padding {
    /// This many elements at both ends of each axis.
    Widths(Vec<i64>),
    /// As many as make the output as long as the input.
    Same,
}

/// The options of a convolution: each a number for every spatial axis, or one for all.
#[derive(Clone, Debug)]
pub struct ConvOptions {
    /// Number of spatial axes.
    pub rank: usize,
    /// Steps between windows.
    pub stride: Vec<i64>,
    /// See [`Padding`].
    pub padding: Padding,
    /// For a transposed convolution: the number of elements added at the end of the output.
    pub output_padding: Vec<i64>,
    /// Steps between elements of a window.
    pub dilation: Vec<i64>,
    /// Groups of channels.
    pub groups: i64,
}

/// Returns one number per axis, from one number or as many as axes; raises for any below `least`.
pub fn per_axis(op: &str, name: &str, given: &[i64], rank: usize, least: i64) -> Result<[usize; AXES]> {
    let mut out = [least.max(0) as usize; AXES];
    if given.len() != 1 && given.len() != rank {
        return Err(Error::value(format!(
            "{op}: {name} takes one number or one for each of the {rank} spatial axes, got {given:?}"
        )));
    }
    for axis in 0..rank {
        let n = given[if given.len() == 1 { 0 } else { axis }];
        out[AXES - rank + axis] =
            usize::try_from(n).ok().filter(|_| n >= least && n <= i32::MAX as i64).ok_or_else(|| {
                let bound = if n < least { format!("{least} or more") } else { "below 2^31".to_string() };
                Error::value(format!("{op}: {name} must be {bound}, got {n}"))
            })?;
    }
    Ok(out)
}

/// The lengths of the last `rank` axes, after ones.
pub fn spatial(shape: &Shape, rank: usize) -> [usize; AXES] {
    let mut out = [1; AXES];
    for i in 0..rank {
        out[AXES - rank + i] = shape.at(shape.rank() - rank + i);
    }
    out
}

impl ConvOptions {
    fn name(&self, transposed: bool) -> &'static str {
        match (self.rank, transposed) {
            (1, false) => "conv1d",
            (2, false) => "conv2d",
            (_, false) => "conv3d",
            (1, true) => "conv_transpose1d",
            (2, true) => "conv_transpose2d",
            (_, true) => "conv_transpose3d",
        }
    }

    /// Builds the window from the options; `input` and `output` are left to the caller.
    fn window(&self, op: &str, kernel: [usize; AXES]) -> Result<Window> {
        let stride = per_axis(op, "stride", &self.stride, self.rank, 1)?;
        let dilation = per_axis(op, "dilation", &self.dilation, self.rank, 1)?;
        let mut window = Window { rank: self.rank, kernel, stride, dilation, ..Window::POINT };
        match &self.padding {
            Padding::Widths(widths) => window.padding = per_axis(op, "padding", widths, self.rank, 0)?,
            Padding::Same if stride.iter().any(|&s| s != 1) => {
                return Err(Error::value(format!(
                    "{op}: padding 'same' is defined for stride 1, got stride {:?}; give the padding in \
                     numbers",
                    &stride[AXES - self.rank..]
                )));
            }
            Padding::Same => {
                for axis in 0..AXES {
                    window.padding[axis] = dilation[axis] * kernel[axis].saturating_sub(1) / 2;
                }
            }
        }
        Ok(window)
    }
}

/// The distance from the first element of a window to the last.
fn extent(window: &Window, axis: usize) -> usize {
    window.dilation[axis].saturating_mul(window.kernel[axis].saturating_sub(1))
}

/// Returns the operands with a batch axis and in one float dtype, and whether the batch axis was added.
fn operands(
    op: &str, options: &ConvOptions, x: &Tensor, w: &Tensor, layout: &str,
) -> Result<(Tensor, Tensor, bool)> {
    let rank = options.rank;
    if w.rank() != rank + 2 || (x.rank() != rank + 2 && x.rank() != rank + 1) {
        return Err(Error::shape(format!(
            "{op}: input of shape {} with weight of shape {}; expected an input with {} axes (images, \
             channels and {rank} spatial axes) or {} (one image), and a weight with {} axes ({layout} and \
             the window)",
            x.shape(),
            w.shape(),
            rank + 2,
            rank + 1,
            rank + 2
        )));
    }
    let whole = |t: &Tensor| !t.dtype().is_differentiable();
    for (name, t) in [("input", x), ("weight", w)] {
        if whole(t) && (t.dtype() == DType::Bool || !whole(x) || !whole(w)) {
            return Err(Error::dtype(format!(
                "{op}: floating point, complex or integer tensors, both of one kind, expected, got {name} of \
                 {}; convert with .float()",
                t.dtype()
            )));
        }
    }
    if options.groups < 1 {
        return Err(Error::value(format!("{op}: groups must be 1 or more, got {}", options.groups)));
    }
    let single = x.rank() == rank + 1;
    let x = if single { x.unsqueeze(0)? } else { x.clone() };
    let keeps = crate::interp::autocasting() && !x.dtype().is_complex() && !w.dtype().is_complex();
    if x.dtype() != w.dtype() && !keeps {
        let dtype = promote(&x, w);
        return Ok((x.cast(dtype)?, w.cast(dtype)?, single));
    }
    Ok((x, w.clone(), single))
}

/// The sum of a result and one number per channel, in the dtype of the result.
fn biased(out: Tensor, op: &str, bias: Option<&Tensor>, rank: usize) -> Result<Tensor> {
    let Some(bias) = bias else { return Ok(out) };
    check_bias(op, bias, out.shape().at(1))?;
    out.add(&per_channel(&bias_for(op, bias, out.dtype())?, rank)?)
}

/// Raises unless `bias` has one number per channel.
fn check_bias(op: &str, bias: &Tensor, channels: usize) -> Result<()> {
    if bias.rank() == 1 && bias.shape().at(0) == channels {
        return Ok(());
    }
    Err(Error::shape(format!(
        "{op}: bias of shape {}, expected ({channels},): one number for each output channel",
        bias.shape()
    )))
}

impl Tensor {
    /// Convolution (cross-correlation) of `[n, groups * c, ..]` with a weight of shape `[o, c, kernel..]`.
    pub fn conv(&self, weight: &Tensor, bias: Option<&Tensor>, options: &ConvOptions) -> Result<Tensor> {
        let op = options.name(false);
        let (x, w, single) =
            operands(op, options, self, weight, "output channels, input channels of a group")?;
        let groups = options.groups as usize;
        let (given, outputs, inputs) = (x.shape().at(1), w.shape().at(0), w.shape().at(1));
        if given != inputs.saturating_mul(groups) || outputs % groups != 0 {
            return Err(Error::shape(format!(
                "{op}: input of shape {} with weight of shape {} in {groups} groups; the input needs groups \
                 * {inputs} channels (axis 1), and the weight's {outputs} output channels must divide into \
                 the groups",
                x.shape(),
                w.shape()
            )));
        }
        let mut window = options.window(op, spatial(&w.shape(), options.rank))?;
        window.input = spatial(&x.shape(), options.rank);
        for axis in AXES - options.rank..AXES {
            let ends = match options.padding {
                Padding::Widths(_) => 2 * window.padding[axis],
                Padding::Same => extent(&window, axis),
            };
            let (length, reach) = (window.input[axis] + ends, extent(&window, axis));
            if window.kernel[axis] == 0 || reach >= length {
                return Err(Error::shape(format!(
                    "{op}: the window reaches over {} elements of spatial axis {}, which has {} of them and \
                     {} of padding; it must fit into them and not be empty (input {}, weight {})",
                    if window.kernel[axis] == 0 { 0 } else { reach + 1 },
                    axis + options.rank - AXES,
                    window.input[axis],
                    ends,
                    x.shape(),
                    w.shape()
                )));
            }
            window.output[axis] = (length - reach - 1) / window.stride[axis] + 1;
        }
        if !x.dtype().is_differentiable() {
            let out = biased(integers::conv(&x, &w, &window, groups)?, op, bias, options.rank)?;
            return if single { out.select_index(0, 0) } else { Ok(out) };
        }
        let conv = Conv { gives: Member::Y, groups: groups as u32, window: Arc::new(window) };
        let out = match bias {
            None => bind(conv, &[&x, &w])?,
            Some(bias) => {
                check_bias(op, bias, outputs)?;
                let keeps = crate::interp::autocasting() && !x.dtype().is_complex();
                let same = keeps || bias.dtype() == x.dtype();
                let bias = if same { bias.clone() } else { bias_for(op, bias, x.dtype())? };
                bind(ConvBias { conv }, &[&x, &w, &bias])?
            }
        };
        if single { out.select_index(0, 0) } else { Ok(out) }
    }

    /// The transpose of convolution: `[n, groups * o, ..]` with a weight of shape `[groups * o, c, kernel..]`
    /// gives `[n, groups * c, ..]`.
    pub fn conv_transpose(
        &self, weight: &Tensor, bias: Option<&Tensor>, options: &ConvOptions,
    ) -> Result<Tensor> {
        let op = options.name(true);
        let (x, w, single) =
            operands(op, options, self, weight, "input channels, output channels of a group")?;
        let groups = options.groups as usize;
        let (given, inputs) = (x.shape().at(1), w.shape().at(0));
        if given != inputs || inputs % groups != 0 {
            return Err(Error::shape(format!(
                "{op}: input of shape {} with weight of shape {} in {groups} groups; both need the same \
                 number of input channels (axis 1 of the input, axis 0 of the weight), which must divide \
                 into the groups",
                x.shape(),
                w.shape()
            )));
        }
        let mut window = options.window(op, spatial(&w.shape(), options.rank))?;
        let extra = per_axis(op, "output_padding", &options.output_padding, options.rank, 0)?;
        window.output = spatial(&x.shape(), options.rank);
        for (axis, &extra) in extra.iter().enumerate().skip(AXES - options.rank) {
            if extra >= window.stride[axis].max(window.dilation[axis]) {
                return Err(Error::value(format!(
                    "{op}: output_padding must be smaller than stride or dilation, got {} with stride {} \
                     and dilation {}",
                    extra, window.stride[axis], window.dilation[axis]
                )));
            }
            let steps = window.output[axis].saturating_sub(1).saturating_mul(window.stride[axis]);
            let length = steps.saturating_add(extent(&window, axis)).saturating_add(extra + 1);
            let length = length.saturating_sub(2 * window.padding[axis]);
            if window.output[axis] == 0 || window.kernel[axis] == 0 || length == 0 {
                return Err(Error::shape(format!(
                    "{op}: input of shape {} with weight of shape {} and padding {:?} leaves nothing of \
                     spatial axis {}",
                    x.shape(),
                    w.shape(),
                    &window.padding[AXES - options.rank..],
                    axis + options.rank - AXES
                )));
            }
            window.input[axis] = length;
        }
        let out = if x.dtype().is_differentiable() {
            bind(Conv { gives: Member::X, groups: groups as u32, window: Arc::new(window) }, &[&x, &w])?
        } else {
            integers::conv_transpose(&x, &w, &window, groups)?
        };
        let out = biased(out, op, bias, options.rank)?;
        if single { out.select_index(0, 0) } else { Ok(out) }
    }
}
