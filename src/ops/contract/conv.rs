//! Convolution, and the two functions it is transposed to.
//!
//! The sum over all indices of `y[n, o, p] w[o, c, k] x[n, c, p * stride + k * dilation - padding]` is linear
//! in each of the three tensors. [`Conv`] is its derivative with respect to one of them, as a function of the
//! other two: for `y` it is convolution, for `x` transposed convolution, for `w` the gradient of the weights.
//! Their transposes are the other two, so derivatives of every order stay within this file. Groups of
//! channels do not mix. Read next: `src/ops/contract/convolve.rs`, the functions that users call.

use crate::array::window::Window;
use crate::device::biased_convolution;
use crate::ops::pointwise::elementwise::by_parts;
use crate::ops::prelude::*;
use std::sync::Arc;

/// The three tensors of the trilinear form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Member {
    /// `[images, channels, input..]`.
    X,
    /// `[channels out, channels in of a group, kernel..]`.
    W,
    /// `[images, channels out, output..]`.
    Y,
}

/// One member of the form, computed from the other two. Inputs: (x, w) for y, (y, w) for x, (x, y) for w.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Conv {
    /// The member to compute.
    pub gives: Member,
    /// Groups of channels.
    pub groups: u32,
    /// The geometry of the spatial axes.
    pub window: Arc<Window>,
}

impl Conv {
    fn by(&self, gives: Member) -> Conv {
        Conv { gives, ..self.clone() }
    }

    /// The empty result of a batch of size 0.
    fn nothing(&self, x: &[Batched]) -> Result<Tensor> {
        let each = |operand: &Batched| {
            let shape = operand.value.shape();
            operand.axis.map_or(shape, |axis| shape.removed(axis))
        };
        let ([left, right], window, groups) =
            ([each(&x[0]), each(&x[1])], &*self.window, self.groups as usize);
        let shape = match self.gives {
            Member::Y => window.shape(&[0, left.at(0), right.at(0)], &window.output)?,
            Member::X => window.shape(&[0, left.at(0), groups * right.at(1)], &window.input)?,
            Member::W => window.shape(&[0, right.at(1), left.at(1) / groups.max(1)], &window.kernel)?,
        };
        Tensor::zeros(shape, x[0].value.dtype(), x[0].value.device())
    }

    /// Left operand, right operand, result.
    fn members(&self) -> [Member; 3] {
        match self.gives {
            Member::Y => [Member::X, Member::W, Member::Y],
            Member::X => [Member::Y, Member::W, Member::X],
            Member::W => [Member::X, Member::Y, Member::W],
        }
    }
}

kernel! {
    Conv,
    match self.gives {
        Member::Y => "conv",
        Member::X => "conv_transpose",
        Member::W => "conv_weight",
    },
    |self, x| {
        let (window, groups) = (&*self.window, self.groups as usize);
        match self.gives {
            Member::Y => on_device!(x[0], conv::forward(x[0], x[1], window, groups)),
            Member::X => on_device!(x[0], conv::input(x[0], x[1], window, groups)),
            Member::W => on_device!(x[0], conv::weight(x[0], x[1], window, groups)),
        }
    },
    /// 2 per output of the convolution, element of its window, and channel of its group.
    flops |x, y| {
        let (weights, sums) = match self.gives {
            Member::Y => (x[1], &y[0]),
            Member::X => (x[1], x[0]),
            Member::W => (&y[0], x[1]),
        };
        cost::product(sums.numel(), weights.numel() / weights.dim(0).max(1))
    }
}

impl Bilinear for Conv {
    const TRANSPOSES: [&'static str; 2] = [
        "the other two members of one trilinear form: transposed convolution of g for x",
        "correlation of x with g for the weights",
    ];

    fn transpose_left(&self, g: &Tensor, y: &Tensor, _c: &Vjp) -> Result<Tensor> {
        match self.gives {
            Member::Y => bind(self.by(Member::X), &[g, y]),
            Member::X => bind(self.by(Member::Y), &[g, y]),
            Member::W => bind(self.by(Member::X), &[y, g]),
        }
    }
    fn transpose_right(&self, g: &Tensor, x: &Tensor, _c: &Vjp) -> Result<Tensor> {
        match self.gives {
            Member::Y => bind(self.by(Member::W), &[x, g]),
            Member::X => bind(self.by(Member::W), &[g, x]),
            Member::W => bind(self.by(Member::Y), &[x, g]),
        }
    }
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        if size == 0 {
            return Ok(smallvec![(self.nothing(x)?, Some(0))]);
        }
        let [left, right, result] = self.members();
        let along = match (x[0].axis, x[1].axis) {
            (Some(_), Some(_)) => Along::Groups,
            (Some(_), None) => Along::absent(right),
            _ => Along::absent(left),
        };
        let groups = self.groups as usize;
        let operand = |x: &Batched, member| match x.axis {
            Some(_) => fold(&x.front()?, along.place(member, groups)),
            None => Ok(x.value.clone()),
        };
        let (a, b) = (operand(&x[0], left)?, operand(&x[1], right)?);
        let groups_now = if along == Along::Groups { groups * size } else { groups };
        let op = Conv { groups: groups_now as u32, ..self.clone() };
        let out = bind(op, &[&a, &b])?;
        Ok(smallvec![(unfold(&out, along.place(result, groups), size)?, Some(0))])
    }
}

/// Convolution plus one number per output channel, in the same kernel. Inputs: x, w, bias.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ConvBias {
    /// The convolution.
    pub conv: Conv,
}

kernel! {
    ConvBias, "conv", |self, x| {
        let (window, groups) = (&*self.conv.window, self.conv.groups as usize);
        if x[0].numel() * x[1].numel() > 0
            && let Some(y) = biased_convolution(x[0], x[1], x[2], window, groups)?
        {
            return Ok(y);
        }
        by_parts(self, x)?.pop().ok_or_else(no_output)
    },
    /// Those of the convolution, plus one per output.
    flops |x, y| self.conv.flops(x, y) + cost::each(y, 1)
}

impl Composite for ConvBias {
    const OWN: Own = Own { vjp: true, ..Own::NONE };

    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let out = bind(self.conv.clone(), &[x[0], x[1]])?;
        one!(out.add(&per_channel(x[2], self.conv.window.rank)?))
    }
    fn saves(&self, needs: Needs, inputs: usize) -> Saves {
        Bilinear::saves(&self.conv, needs, inputs)
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(Some(cotangent)) = g.first() else { return Ok(Grads::new()) };
        let mut out = Bilinear::vjp(&self.conv, c, g)?;
        // Sum the planes first: those sums run along memory.
        let planes = || cotangent.flatten(2, -1)?.sum(Some(&[-1]), false)?.sum(Some(&[0]), false);
        out.push(if c.needs(2) { Some(planes()?) } else { None });
        Ok(out)
    }
}

/// Reshapes one number per channel so that it broadcasts against a tensor with `rank` spatial axes.
pub fn per_channel(bias: &Tensor, rank: usize) -> Result<Tensor> {
    let mut dims = vec![1; rank + 1];
    dims[0] = bias.numel();
    bias.reshape(&Shape::new(&dims)?)
}

/// The axis into which the batch is folded: one that only the batched operand has, or groups for both.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Along {
    Images,
    Inputs,
    Outputs,
    Groups,
}

impl Along {
    fn absent(member: Member) -> Along {
        match member {
            Member::W => Along::Images,
            Member::Y => Along::Inputs,
            Member::X => Along::Outputs,
        }
    }

    /// The axis of `member`, and the number of groups into which it is divided outside of the batch.
    fn place(self, member: Member, groups: usize) -> (usize, usize) {
        match (self, member) {
            (Along::Images, _) => (0, 1),
            (Along::Inputs, Member::W) => (1, 1),
            (Along::Outputs, Member::W) => (0, groups),
            (Along::Groups, Member::W) => (0, 1),
            (Along::Groups, _) => (1, 1),
            (Along::Inputs | Along::Outputs, _) => (1, groups),
        }
    }
}

/// Folds the leading batch axis into an axis: `[batch, .., groups * n, ..]` to
/// `[.., groups * batch * n, ..]`.
fn fold(x: &Tensor, (axis, groups): (usize, usize)) -> Result<Tensor> {
    let mut dims = x.shape().to_vec();
    let size = dims.remove(0);
    let each = dims[axis] / groups.max(1);
    let mut merged = dims.clone();
    merged[axis] *= size;
    dims.splice(axis..=axis, [groups, each]);
    dims.insert(0, size);
    x.reshape(&Shape::new(&dims)?)?.move_axis(0, axis + 1)?.reshape(&Shape::new(&merged)?)
}

/// The inverse of [`fold`], with the batch axis in front.
fn unfold(x: &Tensor, (axis, groups): (usize, usize), size: usize) -> Result<Tensor> {
    let mut dims = x.shape().to_vec();
    let each = dims[axis] / (groups * size).max(1);
    let mut whole = dims.clone();
    dims.splice(axis..=axis, [groups, size, each]);
    whole[axis] = groups * each;
    whole.insert(0, size);
    x.reshape(&Shape::new(&dims)?)?.move_axis(axis + 1, 0)?.reshape(&Shape::new(&whole)?)
}
