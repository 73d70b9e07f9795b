//! Optimiser steps and gradient scaling on lists of arrays: one kernel call for all parameters of a group.
//!
//! The formulas are PyTorch's, written where the numbers are: `src/cpu/optim.rs` and `shaders/optim_*.wgsl`.

use crate::array::Array;
use crate::autodiff::saving;
use crate::buffer::{Buffer, Device};
use crate::error::{Error, Result};
use crate::ops::on_device;
use smallvec::SmallVec;

/// The hyperparameters of stochastic gradient descent (Robbins and Monro 1951; momentum: Polyak 1964,
/// Nesterov 1983).
#[derive(Clone, Copy, Debug, Default)]
pub struct Sgd {
    /// Learning rate.
    pub lr: f64,
    /// Factor on the momentum buffer.
    pub momentum: f64,
    /// What of a gradient does not enter the momentum buffer.
    pub dampening: f64,
    /// Factor on the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Nesterov's form.
    pub nesterov: bool,
    /// Ascent instead of descent.
    pub maximize: bool,
}

/// The hyperparameters of Adam (Kingma and Ba 2014) and AdamW (Loshchilov and Hutter 2017).
#[derive(Clone, Copy, Debug, Default)]
pub struct Adam {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Factor on the parameter.
    pub weight_decay: f64,
    /// AdamW: the decay acts on the parameter instead of on its gradient.
    pub decoupled: bool,
    /// Ascent instead of descent.
    pub maximize: bool,
}

impl Adam {
    /// The learning rate over `1 - beta1^t`, and the root of `1 / (1 - beta2^t)`.
    pub fn corrections(&self, step: i32) -> (f64, f64) {
        let (first, second) = (1.0 - self.beta1.powi(step), 1.0 - self.beta2.powi(step));
        (self.lr / first, second.sqrt().recip())
    }

    /// The factor on the parameter, and the factor on it that is added to the gradient: one of them does
    /// nothing.
    pub fn decay(&self) -> (f64, f64) {
        if self.decoupled { (1.0 - self.lr * self.weight_decay, 0.0) } else { (1.0, self.weight_decay) }
    }
}

/// An update rule.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// The state is a momentum buffer, or nothing.
    Sgd(Sgd),
    /// The state is the two moments, and for AMSGrad the largest second moment so far.
    Adam(Adam),
}

impl Rule {
    fn name(&self) -> &'static str {
        match self {
            Rule::Sgd(_) => "SGD",
            Rule::Adam(_) => "Adam",
        }
    }
}

/// What to do where the state of a step is on another device than its parameter.
const TO_MOVE: &str =
    "; a module that was moved takes the optimiser's state along by load_state_dict(state_dict())";

/// A parameter with all that its step reads and writes.
#[derive(Clone)]
pub struct Slot {
    /// The parameter, then its state. All are written.
    pub state: SmallVec<[Array; 4]>,
    /// The gradient.
    pub grad: Array,
    /// Which step of this parameter it is, from 1 on. In the first step of SGD momentum is the gradient
    /// itself.
    pub step: i32,
}

impl Slot {
    /// The parameter.
    pub fn param(&self) -> &Array {
        &self.state[0]
    }

    /// Raises unless all arrays agree in shape and device, and the parameter is floating point.
    fn check(&self, rule: &Rule) -> Result<()> {
        let param = self.param();
        if !param.dtype().is_float() {
            return Err(Error::dtype(format!(
                "{}: parameters must be floating point, got {}; convert with .float() first",
                rule.name(),
                param.dtype()
            )));
        }
        let others = self.state[1..].iter().chain([&self.grad]);
        match others.into_iter().find(|a| a.shape() != param.shape() || a.device() != param.device()) {
            Some(a) => Err(Error::shape(format!(
                "{}: a gradient or state is {a:?}, expected shape {} on {} as its parameter{}",
                rule.name(),
                param.shape(),
                param.device(),
                if a.device() == param.device() { "" } else { TO_MOVE }
            ))),
            None => Ok(()),
        }
    }
}

/// One step on every parameter, in place: one kernel call for all that lie on one device.
pub fn step(slots: &[Slot], rule: &Rule) -> Result<()> {
    slots.iter().try_for_each(|s| s.check(rule))?;
    slots.iter().flat_map(|s| &s.state).try_for_each(saving::before_write)?;
    let device = |s: &Slot| s.param().device();
    let mut rest: SmallVec<[&Slot; 32]> = slots.iter().collect();
    while let Some(&first) = rest.first() {
        let together: SmallVec<[&Slot; 32]> =
            rest.iter().copied().filter(|s| device(s) == device(first)).collect();
        rest.retain(|s| device(s) != device(first));
        if are_entangled(&together) {
            // Each sees what those before it wrote, as in a loop.
            together.iter().try_for_each(|&s| on_device!(s.param(), optim::step(&[s], rule)))?;
        } else {
            on_device!(first.param(), optim::step(&together, rule))?;
        }
    }
    written(slots.iter().flat_map(|s| &s.state), rule.name());
    Ok(())
}

/// Notes what `writer` wrote.
fn written<'a>(arrays: impl Iterator<Item = &'a Array>, writer: &str) {
    let writer = crate::writers::number(writer);
    arrays.for_each(|a| a.buffer().written_as(writer));
}

/// The addresses of a buffer's memory; on a GPU its identity.
pub(crate) fn span(buffer: &Buffer) -> (usize, usize) {
    match buffer.device() {
        Device::Cpu => (buffer.ptr() as usize, buffer.ptr() as usize + buffer.bytes()),
        Device::Gpu(_) => (buffer.id(), buffer.id() + 1),
    }
}

/// Whether two slots share memory that one of them writes: tied weights under two names, or a gradient that
/// is another parameter.
fn are_entangled(slots: &[&Slot]) -> bool {
    let mut spans: SmallVec<[(usize, usize, usize, bool); 128]> = SmallVec::new();
    for (i, slot) in slots.iter().enumerate() {
        for (array, written) in slot.state.iter().map(|a| (a, true)).chain([(&slot.grad, false)]) {
            let (start, end) = span(array.buffer());
            spans.push((start, end, i, written));
        }
    }
    spans.sort_unstable_by_key(|s| s.0);
    // Runs of spans that touch each other.
    let Some(&first) = spans.first() else { return false };
    let (mut end, mut owner, mut many, mut written) = (first.1, first.2, false, first.3);
    for &(start, stop, i, writes) in &spans[1..] {
        if start >= end {
            (end, owner, many, written) = (stop, i, false, writes);
            continue;
        }
        end = end.max(stop);
        many |= i != owner;
        written |= writes;
        if many && written {
            return true;
        }
    }
    false
}

/// Multiplies all gradients, which lie on one device, by `factor`, in place, and returns whether any element
/// was infinite or NaN before.
pub fn unscale(grads: &[&Array], factor: f64) -> Result<bool> {
    let Some(first) = grads.first() else { return Ok(false) };
    grads.iter().copied().try_for_each(saving::before_write)?;
    let found = on_device!(first, optim::unscale_check(grads, factor))?;
    written(grads.iter().copied(), "unscale");
    Ok(found)
}

/// The root of the sum of the squares of all elements of arrays on one device, a 0-d array there: float64 if one
/// of them is, float32 otherwise.
pub fn norm(arrays: &[&Array]) -> Result<Array> {
    let Some(first) = arrays.first() else {
        return Err(Error::value("norm: at least one array expected, got none"));
    };
    on_device!(first, optim::norm(arrays))
}

/// Multiplies arrays on one device by a number that lies there too, in place.
pub fn scale(arrays: &[&Array], factor: &Array) -> Result<()> {
    arrays.iter().copied().try_for_each(saving::before_write)?;
    on_device!(factor, optim::scale(arrays, factor))?;
    written(arrays.iter().copied(), "clip_grad_norm");
    Ok(())
}
