//! Optimiser steps and gradient scaling on lists of arrays: one kernel call for all parameters of a group.
//!
//! The formulas are PyTorch's, written where the numbers are: `src/cpu/optim.rs` and `shaders/optim_*.wgsl`.

pub(crate) use crate::arguments::optim::Slot;
pub use crate::arguments::optim::{Adam, Rule, Sgd};
use crate::array::Array;
use crate::array::buffer::Device;
use crate::device::on_device;
use crate::error::{Error, Result};
use crate::tape::saving;
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};

/// Parameters and the state of their update rule.
pub struct Optimizer {
    rule: Rule,
    states: Vec<SmallVec<[Array; 4]>>,
    steps: i32,
}

impl Optimizer {
    /// Prepares steps by `rule` on these parameters, whose memory the steps write: floating point tensors
    /// that are neither recorded nor batched.
    ///
    /// # Errors
    /// One that names the parameter that is of another kind.
    pub fn new(params: &[Tensor], rule: Rule) -> Result<Optimizer> {
        let buffers = match rule {
            Rule::Sgd(sgd) => (sgd.momentum != 0.0) as usize,
            Rule::Adam(_) => 2,
        };
        let state = |(i, param): (usize, &Tensor)| {
            let param = match param {
                Tensor::Array(array) if array.dtype().is_float() => array,
                Tensor::Array(array) => {
                    let dtype = array.dtype();
                    return Err(Error::dtype(format!(
                        "Optimizer: parameter {i} is {dtype}, expected floating point"
                    )));
                }
                _ => {
                    return Err(Error::value(format!(
                        "Optimizer: parameter {i} is recorded, batched or has a tangent; make the optimizer \
                         outside of the transform, of plain tensors"
                    )));
                }
            };
            let mut state: SmallVec<[Array; 4]> = smallvec![param.clone()];
            for _ in 0..buffers {
                let zeros = Array::empty(param.shape(), param.dtype(), param.device())?;
                on_device!(zeros, create::fill(&zeros, 0.0))?;
                state.push(zeros);
            }
            Ok(state)
        };
        let states = params.iter().enumerate().map(state).collect::<Result<_>>()?;
        Ok(Optimizer { rule, states, steps: 0 })
    }

    /// Writes the next step of every parameter, given the gradients in the order of the parameters.
    ///
    /// # Errors
    /// One if the gradients differ from the parameters in number, dtype, shape or device, or depend on a
    /// transform; nothing is written then.
    pub fn step(&mut self, gradients: &[Tensor]) -> Result<()> {
        if gradients.len() != self.states.len() {
            let (found, expected) = (gradients.len(), self.states.len());
            return Err(Error::value(format!("Optimizer: {found} gradients for {expected} parameters")));
        }
        let step_number = self.steps + 1;
        let slot = |(state, g): (&SmallVec<[Array; 4]>, &Tensor)| {
            Ok(Slot { state: state.clone(), grad: g.array("Optimizer")?.clone(), step: step_number })
        };
        let slots = self.states.iter().zip(gradients).map(slot).collect::<Result<Vec<Slot>>>()?;
        step(&slots, &self.rule)?;
        self.steps = step_number;
        Ok(())
    }
}

/// What to do where the state of a step is on another device than its parameter.
const TO_MOVE: &str =
    "; a module that was moved takes the optimiser's state along by load_state_dict(state_dict())";

/// Raises unless all arrays agree in shape and device, and the parameter is floating point.
fn check(slot: &Slot, rule: &Rule) -> Result<()> {
    let param = slot.param();
    if !param.dtype().is_float() {
        return Err(Error::dtype(format!(
            "{}: parameters must be floating point, got {}; convert with .float() first",
            rule.name(),
            param.dtype()
        )));
    }
    let others = slot.state[1..].iter().chain([&slot.grad]);
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

/// One step on every parameter, in place: one kernel call for all that lie on one device.
pub(crate) fn step(slots: &[Slot], rule: &Rule) -> Result<()> {
    slots.iter().try_for_each(|s| check(s, rule))?;
    slots.iter().flat_map(|s| &s.state).try_for_each(saving::before_write)?;
    let device = |s: &Slot| s.param().device();
    let mut devices: SmallVec<[Device; 2]> = SmallVec::new();
    for slot in slots {
        if !devices.contains(&device(slot)) {
            devices.push(device(slot));
        }
    }
    for one in devices {
        let mut together: SmallVec<[&Slot; 32]> = SmallVec::new();
        for slot in slots {
            if device(slot) == one {
                together.push(slot);
            }
        }
        let Some(&first) = together.first() else { continue };
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
    let writer = crate::array::writers::number(writer);
    arrays.for_each(|a| a.buffer().written_as(writer));
}

/// Whether two slots share memory that one of them writes: tied weights under two names, or a gradient that
/// is another parameter.
fn are_entangled(slots: &[&Slot]) -> bool {
    let mut spans: SmallVec<[(usize, usize, usize, bool); 128]> = SmallVec::new();
    for (i, slot) in slots.iter().enumerate() {
        for (array, written) in slot.state.iter().map(|a| (a, true)).chain([(&slot.grad, false)]) {
            let (start, end) = array.buffer().span();
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
pub(crate) fn unscale(grads: &[&Array], factor: f64) -> Result<bool> {
    let Some(first) = grads.first() else { return Ok(false) };
    grads.iter().copied().try_for_each(saving::before_write)?;
    let found = on_device!(first, optim::unscale_check(grads, factor))?;
    written(grads.iter().copied(), "unscale");
    Ok(found)
}

/// The root of the sum of the squares of all elements of arrays on one device, a 0-d array there: float64 if
/// one of them is, float32 otherwise.
pub(crate) fn norm(arrays: &[&Array]) -> Result<Array> {
    let Some(first) = arrays.first() else {
        return Err(Error::value("norm: at least one array expected, got none"));
    };
    on_device!(first, optim::norm(arrays))
}

/// Multiplies arrays on one device by a number that lies there too, in place.
pub(crate) fn scale(arrays: &[&Array], factor: &Array) -> Result<()> {
    arrays.iter().copied().try_for_each(saving::before_write)?;
    on_device!(factor, optim::scale(arrays, factor))?;
    written(arrays.iter().copied(), "clip_grad_norm");
    Ok(())
}
