//! Optimiser steps and gradient scaling on lists of arrays: one operation of `src/ops/updates.rs` per device.

pub use crate::arguments::optim::{Adam, Elementwise, Formula, Sgd, UpdateRule};
use crate::arguments::optim::{Slot, slots};
use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::bind::bind_into;
use crate::error::{Error, Result};
use crate::math::real::Real;
use crate::math::updates::{Move, Visit};
use crate::op::AtCall;
use crate::ops::pointwise::sym::{self, Sym};
use crate::ops::updates::{Rescale, Unscale, Update};
use crate::tensor::Tensor;
use crate::watch::debug::{Modes, modes};
use smallvec::{SmallVec, smallvec};

/// Parameters and the state of their update rule.
pub struct Optimizer {
    rule: UpdateRule,
    states: Vec<SmallVec<[Array; 4]>>,
    steps: i32,
}

impl Optimizer {
    /// Prepares steps by `rule` on these parameters, whose memory the steps write: floating point tensors
    /// that are neither recorded nor batched.
    ///
    /// # Errors
    /// One that names the parameter that is of another kind.
    pub fn new(params: &[Tensor], rule: UpdateRule) -> Result<Optimizer> {
        let buffers = match &rule {
            UpdateRule::Sgd(sgd) => (sgd.momentum != 0.0) as usize,
            UpdateRule::Adam(_) => 2,
            UpdateRule::Elementwise(rule) => rule.formula.states(),
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
                let zeros = Tensor::zeros(param.shape(), param.dtype(), param.device())?;
                state.push(zeros.array("Optimizer")?.clone());
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
        let mut arrays = Vec::new();
        let width = self.states.first().map_or(1, |state| state.len() + 1);
        for (state, g) in self.states.iter().zip(gradients) {
            arrays.extend(state);
            arrays.push(g.array("Optimizer")?);
        }
        step(&arrays, width, &vec![step_number; gradients.len()], &self.rule, None)?;
        self.steps = step_number;
        Ok(())
    }
}

/// The values of a step of one parameter as operations, where a value is no memory: `x` holds the parameter,
/// its state and its gradient; the result the first two.
pub(crate) fn moved(rule: &Elementwise, x: &[Tensor]) -> Result<Vec<Tensor>> {
    struct Recorded<'a>(&'a Elementwise, &'a [Tensor], &'a mut Result<Vec<Tensor>>);
    impl Visit for Recorded<'_> {
        fn visit<const STATE: usize, F: Move>(self, formula: F) {
            let Recorded(rule, x, out) = self;
            let values = sym::record(x, |v| {
                let state: [Sym; 4] = std::array::from_fn(|i| if i <= STATE { v[i] } else { Sym::lit(0.0) });
                let [decay, shrink, sign] = rule.preparation().map(Sym::lit);
                let (x, g) = Elementwise::prepared(decay, shrink, sign, v[0], v[STATE + 1]);
                formula.apply(rule.numbers.map(Sym::lit), [x, state[1], state[2], state[3]], g)
            });
            *out = values.map(|values| values.into_iter().take(STATE + 1).collect());
        }
    }
    if x.len() != rule.formula.states() + 2 {
        return Err(Error::value(format!("{}: {} tensors for a step", rule.formula.class(), x.len())));
    }
    let mut out = Ok(Vec::new());
    rule.formula.visit(Recorded(rule, x, &mut out));
    out
}

/// What to do where the state of a step is on another device than its parameter.
const TO_MOVE: &str =
    "; a module that was moved takes the optimiser's state along by load_state_dict(state_dict())";

/// Raises unless all arrays agree in shape and device, and the parameter is floating point.
fn check(slot: &Slot, rule: &UpdateRule) -> Result<()> {
    let param = slot.param();
    if !param.dtype().is_float() {
        return Err(Error::dtype(format!(
            "{}: parameters must be floating point, got {}; convert with .float() first",
            rule.name(),
            param.dtype()
        )));
    }
    let others = slot.state[1..].iter().copied().chain([slot.grad]);
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

/// One step on every parameter, in place: one kernel call for all that lie on one device. `arrays` and
/// `width` are those of [`slots`]; `steps` has one number for each parameter. Nothing changes if `found`, a
/// 0-d int32, is given and is not 0.
pub(crate) fn step(
    arrays: &[&Array], width: usize, steps: &[i32], rule: &UpdateRule, found: Option<&Tensor>,
) -> Result<()> {
    if arrays.is_empty() {
        return Ok(());
    }
    let mut devices: SmallVec<[Device; 2]> = SmallVec::new();
    for slot in slots(arrays, width, steps) {
        check(&slot, rule)?;
        if !devices.contains(&slot.param().device()) {
            devices.push(slot.param().device());
        }
    }
    if devices.len() == 1 {
        return step_on_device(arrays, width, steps, rule, found);
    }
    for device in devices {
        let here = |slot: &Slot| slot.param().device() == device;
        let own: Vec<i32> = slots(arrays, width, steps).filter(here).map(|slot| slot.step).collect();
        let arrays: Vec<&Array> = arrays.iter().copied().filter(|x| x.device() == device).collect();
        step_on_device(&arrays, width, &own, rule, found)?;
    }
    Ok(())
}

/// [`step`] for arrays on one device.
fn step_on_device(
    arrays: &[&Array], width: usize, steps: &[i32], rule: &UpdateRule, found: Option<&Tensor>,
) -> Result<()> {
    let found = found.map(|found| found.to_device(arrays[0].device())).transpose()?;
    let found = found.as_ref().map(|found| found.array(rule.name())).transpose()?;
    if are_entangled(arrays, width) {
        // Each sees what those before it wrote, as in a loop.
        let mut each = arrays.chunks_exact(width).zip(steps.chunks(1));
        return each.try_for_each(|(arrays, step)| update(arrays, width, step, rule, found));
    }
    let same = steps.iter().all(|step| *step == steps[0]);
    update(arrays, width, if same { &steps[..1] } else { steps }, rule, found)
}

/// One operation for parameters that lie on one device and share no memory.
fn update(
    arrays: &[&Array], width: usize, steps: &[i32], rule: &UpdateRule, found: Option<&Array>,
) -> Result<()> {
    let mut out: SmallVec<[&Array; 64]> = SmallVec::new();
    for (i, &x) in arrays.iter().enumerate() {
        if i % width + 1 < width {
            out.push(x);
        }
    }
    let steps = AtCall(SmallVec::from_slice(steps));
    let op = Update { rule: rule.clone(), width: width as u32, guarded: found.is_some(), steps };
    match found {
        // A step that is left out is no write where the host sees that; a script wants it all the same.
        Some(found)
            if found.device() == Device::Cpu && !modes().has(Modes::SCRIPT) && found.item()? != 0.0 =>
        {
            Ok(())
        }
        Some(found) => bind_into(&op, &[arrays, &[found]].concat(), &out, rule.name()),
        None => bind_into(&op, arrays, &out, rule.name()),
    }
}

/// The memory of an array: where it starts and ends, which slot it belongs to, whether a step writes it.
type Span = (usize, usize, usize, bool);

/// Up to so many spans are compared in pairs, which takes less than to sort them.
const PAIRED: usize = 12;

/// Whether two slots share memory that one of them writes: tied weights, or a gradient that is a parameter.
/// Views of one piece of memory count, whichever parts of it they are.
fn are_entangled(arrays: &[&Array], width: usize) -> bool {
    let mut spans: SmallVec<[Span; 128]> = SmallVec::new();
    for (i, slot) in arrays.chunks_exact(width).enumerate() {
        for (k, array) in slot.iter().enumerate() {
            let (start, end) = array.buffer().span();
            spans.push((start, end, i, k + 1 < width));
        }
    }
    if spans.len() > PAIRED {
        return has_entangled_run(&mut spans);
    }
    let meet = |one: &Span, other: &Span| {
        one.0 < other.1 && other.0 < one.1 && one.2 != other.2 && (one.3 || other.3)
    };
    spans.iter().enumerate().any(|(i, one)| spans[i + 1..].iter().any(|other| meet(one, other)))
}

/// Whether a run of overlapping spans belongs to several slots and one of them is written. It may say so of a
/// run in which the written span meets no other slot's: the step is then taken one by one, with the same
/// result.
fn has_entangled_run(spans: &mut [Span]) -> bool {
    spans.sort_unstable_by_key(|s| s.0);
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
/// was infinite or NaN before: an int32 of 0 or 1 there.
pub(crate) fn unscale(grads: &[&Array], factor: f64) -> Result<Tensor> {
    let device = grads.first().map_or(Device::Cpu, |g| g.device());
    let found = Array::empty(Shape::SCALAR, DType::I32, device)?;
    let out: SmallVec<[&Array; 64]> = grads.iter().copied().chain([&found]).collect();
    bind_into(&Unscale { factor: AtCall(factor) }, grads, &out, "unscale")?;
    drop(out);
    Ok(found.into())
}

/// Multiplies arrays on one device by a number that lies there too, in place.
pub(crate) fn scale(arrays: &[&Array], factor: &Array) -> Result<()> {
    let mut x: SmallVec<[&Array; 64]> = SmallVec::from_slice(arrays);
    x.push(factor);
    bind_into(&Rescale, &x, arrays, "clip_grad_norm")
}
