//! Optimiser steps and gradient scaling for `wengert.optim` and `wengert.amp`, one call per parameter group.

use crate::bind::bind;
use crate::ops::updates::TotalNorm;
use crate::optim::{self, Adam, Elementwise, Formula, Sgd, UpdateRule};
use crate::py::args::{collected, extracted, members};
use crate::py::prelude::*;
use crate::py::tensor::leaf;
use crate::tape::node::Edge;
use crate::watch::script;
use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::types::PyString;
use smallvec::SmallVec;

/// Tensors without their histories.
struct Values(Vec<Tensor>);

extracted!(Values, |obj| collected(obj).map(Values));

impl Values {
    /// Runs `f` on the arrays of each device, in order of first appearance; `None`, and nothing done, if a
    /// tensor is not a plain real floating point array.
    fn by_device<T: Send>(
        &self, py: Python<'_>, f: impl Fn(Device, &[&Array]) -> Result<T> + Sync,
    ) -> PyResult<Option<Vec<T>>> {
        let mut groups: Vec<(Device, Vec<&Array>)> = Vec::new();
        for t in &self.0 {
            let Some(array) = t.concrete().filter(|a| a.dtype().is_float()) else { return Ok(None) };
            match groups.iter_mut().find(|(device, _)| *device == array.device()) {
                Some((_, arrays)) => arrays.push(array),
                None => groups.push((array.device(), vec![array])),
            }
        }
        let each = |(device, arrays): &(Device, Vec<&Array>)| {
            run(py, elements(arrays.iter().copied()), || f(*device, arrays))
        };
        groups.iter().map(each).collect::<PyResult<_>>().map(Some)
    }
}

fn elements<'a>(arrays: impl IntoIterator<Item = &'a Array>) -> usize {
    arrays.into_iter().map(Array::numel).sum()
}

/// Returns the gradient of a leaf, or of a result that retains its gradient.
pub fn gradient(t: &Tensor) -> Option<Tensor> {
    let node = t.node()?;
    if let Some(slot) = node.grad() {
        script::touched(node, &slot);
        return slot.clone();
    }
    let Edge { node, index } = t.edge()?;
    node.hooks()?.retained(index)?.get()
}

/// The array of a tensor; a complex one as pairs of real and imaginary parts, each updated on its own.
fn array(t: &Tensor) -> Result<Array> {
    let array = t.array("an optimiser step")?;
    if array.dtype().is_complex() { array.as_real() } else { Ok(array.clone()) }
}

/// [`array`] of a tensor that nobody else needs.
fn into_array(t: Tensor) -> Result<Array> {
    match t {
        Tensor::Array(array) if !array.dtype().is_complex() => Ok(array),
        t => array(&t),
    }
}

/// The parameters of a group that have gradients, and their optimiser state.
#[derive(Default)]
struct Group<'py> {
    /// The parameter, its state and its gradient, one parameter after the other.
    arrays: Vec<Array>,
    /// The number of the step of each parameter.
    steps: Vec<i32>,
    entries: Vec<Bound<'py, PyDict>>,
    /// Parameters without state so far, each with its index in `entries`.
    added: Vec<(Bound<'py, PyTensor>, usize)>,
    /// New state: index in `entries`, name, value.
    fresh: Vec<(usize, &'static str, Tensor)>,
}

impl<'py> Group<'py> {
    /// Collects the gradients and the state called `names`; missing state starts as zeros. `step` returns the
    /// number of the step, given the parameter's state and whether any of it was missing.
    fn new(
        group: &Bound<'py, PyDict>, state: &Bound<'py, PyDict>, names: &[&'static str],
        step: impl Fn(&Bound<'py, PyDict>, bool) -> PyResult<i32>,
    ) -> PyResult<Group<'py>> {
        let params = setting(group, intern!(group.py(), "params"))?;
        let count = params.len()?;
        let mut out = Group {
            arrays: Vec::with_capacity(count * (names.len() + 2)),
            steps: Vec::with_capacity(count),
            ..Group::default()
        };
        for param in params.try_iter()? {
            let param = param?;
            let param = param.cast::<PyTensor>()?;
            let t = value(param)?;
            let Some(grad) = gradient(&t) else { continue };
            let mut number = 1;
            out.arrays.push(array(&t)?);
            // A rule without state adds no state, as in PyTorch.
            if !names.is_empty() {
                let entry = match state.get_item(param)? {
                    Some(entry) => entry.cast_into::<PyDict>()?,
                    None => {
                        out.added.push((param.clone(), out.entries.len()));
                        PyDict::new(param.py())
                    }
                };
                let mut is_new = false;
                for name in names {
                    match entry.get_item(name)?.filter(|x| !x.is_none()) {
                        Some(x) => out.arrays.push(into_array(x.extract()?)?),
                        None => {
                            let zeros = Tensor::zeros(t.shape(), t.dtype(), t.device())?;
                            out.arrays.push(array(&zeros)?);
                            out.fresh.push((out.entries.len(), name, zeros));
                            is_new = true;
                        }
                    }
                }
                number = step(&entry, is_new)?;
                out.entries.push(entry);
            }
            out.arrays.push(into_array(grad)?);
            out.steps.push(number);
        }
        Ok(out)
    }

    /// Takes the step and stores the new state in `state`.
    fn step(self, state: &Bound<'py, PyDict>, rule: &UpdateRule, found: Option<Tensor>) -> PyResult<()> {
        let py = state.py();
        let arrays: SmallVec<[&Array; 64]> = self.arrays.iter().collect();
        let width = arrays.len() / self.steps.len().max(1);
        let count = elements(arrays.chunks(width.max(1)).map(|x| x[0]));
        run(py, count, || optim::step(&arrays, width, &self.steps, rule, found.as_ref()))?;
        if let UpdateRule::Adam(_) = rule {
            for (entry, number) in self.entries.iter().zip(&self.steps) {
                entry.set_item("step", number)?;
            }
        }
        for (i, name, value) in self.fresh {
            self.entries[i].set_item(name, value)?;
        }
        for (param, i) in self.added {
            state.set_item(param, &self.entries[i])?;
        }
        Ok(())
    }
}

/// Returns a setting of a group; every group has all of them.
fn setting<'py>(group: &Bound<'py, PyDict>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    group
        .get_item(name)?
        .ok_or_else(|| PyKeyError::new_err(format!("a parameter group has no setting {name}")))
}

/// Reads the settings of a group: `settings!(group; number lr, flag nesterov)`.
macro_rules! settings {
    ($group:ident; $($kind:ident $name:ident),*) => {
        $(let $name = settings!(@$kind setting($group, intern!($group.py(), stringify!($name)))?);)*
    };
    (@number $value:expr) => { $value.extract::<f64>()? };
    (@flag $value:expr) => { $value.is_truthy()? };
}

/// One step of SGD, in place, on each parameter of `group` that has a gradient. `state` maps parameters to
/// dictionaries with their `momentum_buffer`. Returns false, having done nothing, inside forward mode and
/// batches, where a value is no memory. Nothing changes unless `found`, a 0-d int32 on some device, is 0.
#[pyfunction]
#[pyo3(signature = (group, state, found=None))]
fn _optim_sgd<'py>(
    group: &Bound<'py, PyDict>, state: &Bound<'py, PyDict>, found: Option<&Bound<'py, PyTensor>>,
) -> PyResult<bool> {
    if interp::replaces_values() {
        return Ok(false);
    }
    settings!(
        group; number lr, number momentum, number dampening, number weight_decay, flag nesterov, flag maximize
    );
    let names: &[_] = if momentum != 0.0 { &["momentum_buffer"] } else { &[] };
    let rule = UpdateRule::Sgd(Sgd { lr, momentum, dampening, weight_decay, nesterov, maximize });
    let step = |_: &Bound<'py, PyDict>, is_new| Ok(if is_new { 1 } else { 2 });
    Group::new(group, state, names, step)?.step(state, &rule, found.map(value).transpose()?)?;
    Ok(true)
}

/// One step of Adam, or AdamW if `decoupled`, in place, on each parameter of `group` that has a gradient.
/// `state` maps parameters to dictionaries of steps and moments. `found`, result: as [`_optim_sgd`].
#[pyfunction]
#[pyo3(signature = (group, state, decoupled, found=None))]
fn _optim_adam<'py>(
    group: &Bound<'py, PyDict>, state: &Bound<'py, PyDict>, decoupled: bool,
    found: Option<&Bound<'py, PyTensor>>,
) -> PyResult<bool> {
    if interp::replaces_values() {
        return Ok(false);
    }
    settings!(group; number lr, number eps, number weight_decay, flag amsgrad, flag maximize);
    let betas = setting(group, intern!(group.py(), "betas"))?;
    let (beta1, beta2) = (betas.get_item(0)?.extract()?, betas.get_item(1)?.extract()?);
    let names = &["exp_avg", "exp_avg_sq", "max_exp_avg_sq"][..if amsgrad { 3 } else { 2 }];
    let rule = UpdateRule::Adam(Adam { lr, beta1, beta2, eps, weight_decay, decoupled, maximize });
    let step = |entry: &Bound<'py, PyDict>, _| match entry.get_item(intern!(entry.py(), "step"))? {
        // The state dicts of PyTorch store the step as a tensor.
        Some(n) if !n.is_exact_instance_of::<PyInt>() => Ok(n.call_method0("__int__")?.extract::<i32>()? + 1),
        Some(n) => Ok(n.extract::<i32>()? + 1),
        None => Ok(1),
    };
    Group::new(group, state, names, step)?.step(state, &rule, found.map(value).transpose()?)?;
    Ok(true)
}

/// A rule of one formula per element, by its name, with its numbers for a step.
struct Rule(Elementwise);

extracted!(Rule, |obj| {
    let (name, given, decay, shrink, maximize): (String, Vec<f64>, f64, f64, bool) = obj.extract()?;
    let formula = Formula::named(&name).ok_or_else(|| value_error(format!("no rule is called {name}")))?;
    let mut numbers = [0.0; 6];
    numbers.iter_mut().zip(given).for_each(|(number, given)| *number = given);
    Ok(Rule(Elementwise { formula, numbers, decay, shrink, maximize }))
});

/// One step of `rule`, in place. `tensors` holds each parameter, its state and its gradient, one parameter
/// after the other. `found`, result: as [`_optim_sgd`].
#[pyfunction]
#[pyo3(signature = (rule, tensors, found=None))]
fn _optim_elementwise(
    py: Python<'_>, rule: Rule, tensors: Vec<Tensor>, found: Option<&Bound<'_, PyTensor>>,
) -> PyResult<bool> {
    if interp::replaces_values() {
        return Ok(false);
    }
    let width = rule.0.formula.states() + 2;
    let arrays = tensors.into_iter().map(into_array).collect::<Result<Vec<Array>>>()?;
    let (arrays, found) = (arrays.iter().collect::<Vec<_>>(), found.map(value).transpose()?);
    let (count, steps) = (elements(arrays.iter().step_by(width).copied()), vec![1; arrays.len() / width]);
    let rule = UpdateRule::Elementwise(Arc::new(rule.0));
    run(py, count, || optim::step(&arrays, width, &steps, &rule, found.as_ref()))?;
    Ok(true)
}

/// The values of such a step of one parameter, where a value is no memory: those of the parameter and its
/// state.
#[pyfunction]
fn _optim_moved(rule: Rule, tensors: Vec<Tensor>) -> Result<Vec<Tensor>> {
    optim::moved(&rule.0, &tensors)
}

/// The gradients of those parameters that have one.
#[pyfunction]
fn _gradients(params: Values) -> Vec<PyTensor> {
    let object = |t: &Tensor| Some(PyTensor::gradient(gradient(t)?, &t.edge()?.node));
    params.0.iter().filter_map(object).collect()
}

/// Forgets the gradients of `params`, or puts zeros in their place.
#[pyfunction]
fn _clear_gradients(params: &Bound<'_, PyAny>, set_to_none: bool) -> PyResult<()> {
    for param in members(params)? {
        let Some(edge) = leaf(&param?.extract()?) else { continue };
        let Some(mut slot) = edge.node.grad() else { continue };
        if set_to_none {
            script::cleared(&edge.node, &slot);
        } else {
            script::touched(&edge.node, &slot);
            script::replaced(&edge.node, &slot);
        }
        let before = slot.take();
        if let (false, Some(g)) = (set_to_none, &before) {
            *slot = Some(Tensor::zeros(g.shape(), g.dtype(), g.device())?);
        }
        drop(slot);
        // Outside the lock: its memory may belong to a Python object with a destructor.
        drop(before);
    }
    Ok(())
}

/// Multiplies all gradients by `factor`, in place. Returns whether any element was infinite or NaN, a 0-d
/// int32 of 0 or 1 on the device of the first gradient.
#[pyfunction]
fn _amp_unscale(py: Python<'_>, grads: Values, factor: f64) -> PyResult<Tensor> {
    let found = grads.by_device(py, |_, arrays| optim::unscale(arrays, factor))?.ok_or_else(|| {
        type_error(
            "GradScaler: gradients must be plain floating point tensors; unscale outside of vmap and jvp",
        )
    })?;
    let mut found = found.into_iter();
    let Some(first) = found.next() else {
        return run(py, 1, || Tensor::zeros(Shape::SCALAR, DType::I32, Device::Cpu));
    };
    let device = first.device();
    run(py, 1, || found.try_fold(first, |all, here| all.maximum(&here.to_device(device)?)))
}

/// The norm of all elements on each device, a 0-d tensor there; None if one is no plain floating point value.
#[pyfunction]
fn _norms(py: Python<'_>, tensors: Values) -> PyResult<Option<Vec<Tensor>>> {
    tensors.by_device(py, |_, arrays| {
        let held: Vec<Tensor> = arrays.iter().map(|&x| x.clone().into()).collect();
        bind(TotalNorm, &held.iter().collect::<Vec<_>>())
    })
}

/// Multiplies all tensors by a 0-d one, in place; False, and nothing done, if one is not plain or floating.
#[pyfunction]
fn _scale(py: Python<'_>, tensors: Values, factor: Tensor) -> PyResult<bool> {
    let Some(factor) = factor.concrete() else { return Ok(false) };
    let factor = Tensor::from(factor.clone());
    let scaled = tensors.by_device(py, |device, arrays| {
        optim::scale(arrays, factor.to_device(device)?.array("clip_grad_norm")?)
    })?;
    Ok(scaled.is_some())
}

exports! {
    functions: _optim_sgd, _optim_adam, _optim_elementwise, _optim_moved, _gradients, _clear_gradients,
        _amp_unscale, _norms, _scale
}
