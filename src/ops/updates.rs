//! What a training step does to many tensors at once, one kernel call each: steps of optimisers, unscaling
//! and clipping of gradients. All are written in place ([`Kernel::eval_into`]), and no tape sees them.
//!
//! The formulas are PyTorch's, written where the numbers are: `src/cpu/optim.rs` and `shaders/optim_*.wgsl`.

use crate::arguments::optim::{Formula, Slot, UpdateRule, slots};
use crate::op::AtCall;
use crate::ops::prelude::*;
use crate::ops::writes::donated::based;
use std::hash::{Hash, Hasher};

/// A step of an optimiser on parameters of one device. Inputs, for each parameter: the parameter, its state,
/// its gradient; if `guarded`, last a 0-d int32, and nothing changes unless it is 0. Outputs: all of the
/// parameters and their state, changed.
#[derive(Clone, Debug)]
pub struct Update {
    /// The update rule. Its formula is what the operation is; its numbers are given.
    pub rule: UpdateRule,
    /// The number of inputs of each parameter.
    pub width: u32,
    /// Whether an input decides on the device if the step is taken.
    pub guarded: bool,
    /// The number of the step of each parameter, from 1, or that of all.
    pub steps: AtCall<SmallVec<[i32; 4]>>,
}

impl Update {
    /// Which of the formulas of the rule.
    fn formula(&self) -> (u32, bool, Option<Formula>, [bool; 4]) {
        let (formula, flags) = match &self.rule {
            UpdateRule::Sgd(s) => (None, [false, s.momentum != 0.0, s.nesterov, s.maximize]),
            UpdateRule::Adam(a) => (None, [true, a.decoupled, false, a.maximize]),
            UpdateRule::Elementwise(e) => (Some(e.formula), [false, false, false, e.maximize]),
        };
        (self.width, self.guarded, formula, flags)
    }

    /// The inputs of the parameters, and the guard.
    fn split<'x, 'a>(&self, x: &'x [&'a Array]) -> (&'x [&'a Array], Option<&'a Array>) {
        match x {
            [x @ .., found] if self.guarded => (x, Some(found)),
            _ => (x, None),
        }
    }
}

/// The outputs of `op`, in this memory.
fn filled(op: &impl Kernel, x: &[&Array], out: Arrays) -> Result<Arrays> {
    op.eval_into(x, &out.iter().collect::<SmallVec<[&Array; 16]>>())?;
    Ok(out)
}

impl PartialEq for Update {
    fn eq(&self, other: &Update) -> bool {
        self.formula() == other.formula()
    }
}

impl Eq for Update {}

impl Hash for Update {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.formula().hash(state);
    }
}

kernel! {
    Update, self.rule.name(), |self, x| -> Arrays {
        let width = self.width as usize;
        let written = self.split(x).0.iter().enumerate().filter(|(i, _)| i % width + 1 < width);
        filled(self, x, written.map(|(_, x)| x.copied()).collect::<Result<_>>()?)
    },
    into |out| {
        let width = self.width as usize;
        let (x, found) = self.split(x);
        let mut arrays: SmallVec<[&Array; 64]> = SmallVec::from_slice(x);
        for (arrays, out) in arrays.chunks_exact_mut(width).zip(out.chunks_exact(width - 1)) {
            for (x, &out) in arrays.iter_mut().zip(out) {
                based(x, out)?;
                *x = out;
            }
        }
        let slots: SmallVec<[Slot; 32]> = slots(&arrays, width, &self.steps.0).collect();
        let Some(first) = slots.first() else { return Ok(()) };
        on_device!(first.param(), optim::step(&slots, &self.rule, found))
    },
    /// Per element: two and two more for momentum, or twelve for Adam and the formulas.
    flops |x, _y| {
        let each = match &self.rule {
            UpdateRule::Sgd(s) if s.momentum == 0.0 => 2,
            UpdateRule::Sgd(_) => 4,
            UpdateRule::Adam(_) | UpdateRule::Elementwise(_) => 12,
        };
        self.split(x).0.chunks(self.width as usize).map(|x| cost::each(&x[..1], each)).sum()
    }
}

/// Gradients of one device times a number. Outputs: these, and whether any element was infinite or NaN
/// before, a 0-d int32 of 0 or 1 there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Unscale {
    /// The factor.
    pub factor: AtCall<f64>,
}

kernel! {
    Unscale, "unscale", |self, x| -> Arrays {
        let mut out: Arrays = x.iter().map(|x| x.copied()).collect::<Result<_>>()?;
        out.push(Array::empty(Shape::SCALAR, DType::I32, x[0].device())?);
        filled(self, x, out)
    },
    into |out| {
        let (found, grads) = out.split_last().ok_or_else(crate::op::no_output)?;
        x.iter().zip(grads).try_for_each(|(x, out)| based(x, out))?;
        on_device!(found, optim::unscale(grads, self.factor.0, found))
    },
    /// One per element.
    flops |x, _y| x.iter().map(|x| x.numel() as u64).sum()
}

/// Tensors of one device times a number, which is the last input, a 0-d tensor there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rescale;

kernel! {
    Rescale, "clip_grad_norm", |self, x| -> Arrays {
        filled(self, x, x[..x.len() - 1].iter().map(|x| x.copied()).collect::<Result<_>>()?)
    },
    into |out| {
        let factor = x[x.len() - 1];
        x.iter().zip(out).try_for_each(|(x, out)| based(x, out))?;
        on_device!(factor, optim::scale(out, factor))
    },
    /// One per element.
    flops |x, _y| x[..x.len() - 1].iter().map(|x| x.numel() as u64).sum()
}

/// The root of the sum of the squares of all elements of tensors of one device, a 0-d tensor there: float64
/// if one of them is, float32 otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TotalNorm;

kernel! {
    TotalNorm, "total_norm", |self, x| on_device!(x[0], optim::norm(x)),
    /// Two per element.
    flops |x, _y| x.iter().map(|x| 2 * x.numel() as u64).sum()
}

/// A call for many tensors is made outside of transforms.
macro_rules! unbatched {
    ($($op:ident),*) => {$(
        impl Discrete for $op {
            fn batch(&self, _x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
                let name = self.name();
                Err(Error::unsupported(format!(
                    "{name}: one call for many tensors has no batched form; compose it of others"
                )))
            }
        }
    )*};
}
unbatched!(Update, Unscale, Rescale, TotalNorm);
