//! Reverse mode with PyTorch's interface: `requires_grad`, `backward`, `.grad`, `autograd.grad`. Read next:
//! `src/py/autograd/hooks.rs`, and `src/py/autograd/checkpoint.rs` for recomputation in backward.

pub(crate) mod checkpoint;
pub(crate) mod collect;
pub(crate) mod custom;
pub(crate) mod debug;
pub(crate) mod direct;
pub(crate) mod donating;
pub(crate) mod fast_path;
pub(crate) mod forward;
pub(crate) mod hooks;
pub(crate) mod location;
pub(crate) mod marks;
pub(crate) mod node;
pub(crate) mod recorded;
pub(crate) mod saving;
pub(crate) mod shown;
pub(crate) mod staging;
pub(crate) mod transform;
pub(crate) mod watched;

use crate::autodiff::backward::{self, Options};
use crate::autodiff::levels::{behind, edge_behind, stacked};
use crate::ops::writes::writable::check_outside;
use crate::py::autograd::hooks::retain;
use crate::py::autograd::node::PyNode;
use crate::py::prelude::*;
use crate::py::tensor::attach::detached;
use crate::py::tensor::view::{apart, cut, link};
use crate::py::tensor::{leaf, replace, require_grad, with_history};
use crate::py::writes::outer;
use crate::tape::node::Edge;
use crate::tensor::donated;
use crate::watch::script;
use pyo3::exceptions::PyUserWarning;

/// Refuses to make a program where Python asks `what` the graph says of an argument.
pub(super) fn refuse_of_argument(what: &str, t: &Tensor) {
    if script::is_on()
        && t.node().is_some()
        && let Some(x) = t.detach().concrete()
    {
        script::refuse_of_argument(what, x);
    }
}

#[pymethods]
impl PyTensor {
    /// Whether gradients are recorded for this tensor, here or by a tape around the `vmap` or `jvp` it is in.
    #[getter]
    fn requires_grad(&self) -> PyResult<bool> {
        Ok(edge_behind(&*self.value()?).is_some())
    }

    #[setter]
    fn set_requires_grad(slf: &Bound<'_, Self>, value: bool) -> PyResult<()> {
        Self::requires_grad_(slf, value).map(|_| ())
    }

    /// Turns recording for this leaf on or off, in place. Raises RuntimeError for dtypes without derivatives
    /// and for results of recorded operations, which `detach()` cuts off.
    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_<'py>(slf: &Bound<'py, Self>, requires_grad: bool) -> PyResult<Bound<'py, Self>> {
        let t = refresh(slf)?;
        if t.is_donated() {
            return Err(donated("requires_grad_", &t.shape()).into());
        }
        if requires_grad {
            if outer::is_outside(slf, &t) {
                // A tensor that requires a gradient outside of the transform does so inside.
                edge_behind(&t).ok_or_else(|| outer::foreign_leaf(&t))?;
                return Ok(slf.clone());
            }
            let next = require_grad(&t)?;
            if leaf(&next).is_some() {
                // A leaf is no view, though it shares the memory of its base.
                apart(slf)?;
            }
            replace(slf, next)?;
        } else if let Some(edge) = edge_behind(&t) {
            if t.edge().is_none() {
                return Err(Error::autodiff(format!(
                    "requires_grad_(False): the tensor of shape {} is recorded by a tape around the vmap or \
                     jvp it is in; call detach() to compute with it without a gradient",
                    t.shape()
                ))
                .into());
            }
            if !edge.node.is_leaf() {
                return Err(Error::autodiff(
                    "requires_grad can be turned off for leaves only; call detach() to cut off the result \
                     of an operation",
                )
                .into());
            }
            if let Some(traced) = t.traced() {
                replace(slf, traced.inner().clone())?;
            }
        }
        Ok(slf.clone())
    }

    /// Whether this tensor is no result of a recorded operation.
    #[getter]
    fn is_leaf(&self) -> PyResult<bool> {
        let t = self.value()?;
        refuse_of_argument("is_leaf", &t);
        Ok(edge_behind(&t).is_none_or(|e| e.node.is_leaf()))
    }

    /// The entry of the tape that made this tensor; None for leaves. Inside `vmap` under an outer tape it is
    /// an entry of that tape, which works on all examples at once: its values, and the gradients that its
    /// hooks see, have the batch axis.
    #[getter]
    fn grad_fn(slf: &Bound<'_, Self>) -> PyResult<Option<PyNode>> {
        let t = refresh(slf)?;
        refuse_of_argument("grad_fn", &t);
        Ok(edge_behind(&t).filter(|e| !e.node.is_leaf()).map(|e| PyNode(e.node)))
    }

    /// Which output of `grad_fn` this tensor is; 0 for leaves.
    #[getter]
    fn output_nr(&self) -> PyResult<u32> {
        Ok(edge_behind(&*self.value()?).map_or(0, |e| e.index))
    }

    /// The accumulated gradient of a leaf, or of a result after `retain_grad()`; None before the first
    /// backward. Of a tensor inside `vmap` under an outer tape: those of all examples, stacked along axis 0.
    #[getter]
    fn grad(slf: &Bound<'_, Self>) -> PyResult<Option<PyTensor>> {
        let Some((Edge { node, index }, levels)) = behind(&refresh(slf)?) else { return Ok(None) };
        let seen = |g: Option<Tensor>| Ok(g.map(|g| stacked(g, &levels)).transpose()?.map(PyTensor::from));
        if let Some(slot) = node.grad() {
            script::touched(&node, &slot);
            let found = slot.clone();
            drop(slot);
            return match found {
                Some(g) if levels.is_empty() => Ok(Some(PyTensor::gradient(g, &node))),
                found => seen(found),
            };
        }
        match node.hooks().and_then(|h| h.retained(index)) {
            Some(keep) => {
                refuse_of_argument("grad", &refresh(slf)?);
                seen(keep.get())
            }
            None => {
                refuse_of_argument("grad", &refresh(slf)?);
                let py = slf.py();
                let text = c"the .grad of a tensor that is the result of an operation is not kept; call \
                             retain_grad() on it before backward()";
                PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)?;
                Ok(None)
            }
        }
    }

    #[setter]
    fn set_grad(slf: &Bound<'_, Self>, grad: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let grad = grad.map(assigned_grad).transpose()?;
        let t = refresh(slf)?;
        if let Some(g) = &grad {
            check_grad(&t, g)?;
        }
        let Some(Edge { node, index }) = t.edge() else {
            return match grad {
                None => Ok(()),
                Some(_) => Err(Error::autodiff(format!(
                    "the {} tensor of shape {} does not require a gradient, so none can be assigned to it; \
                     call requires_grad_() first",
                    t.dtype(),
                    t.shape()
                ))
                .into()),
            };
        };
        if let Some(mut slot) = node.grad() {
            script::cleared(&node, &slot);
            let before = std::mem::replace(&mut *slot, grad);
            drop(slot);
            // Outside the lock: its memory may belong to a Python object with a destructor.
            drop(before);
        } else if grad.is_some() {
            // An assigned gradient is retained.
            retain(slf, &node, index)?.set(grad);
        } else if let Some(keep) = node.hooks().and_then(|h| h.retained(index)) {
            keep.set(None);
        }
        Ok(())
    }

    #[deleter]
    fn delete_grad(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::set_grad(slf, None)
    }

    /// Cuts this tensor off its history, in place. Raises RuntimeError for a view, whose base would keep it.
    fn detach_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let t = refresh(slf)?;
        if link(slf).is_some() && t.edge().is_some() {
            return Err(Error::autodiff(format!(
                "detach_: the tensor of shape {} is a view of another tensor and shares its history; use \
                 detach() instead, or cut off the base",
                t.shape()
            ))
            .into());
        }
        replace(slf, t.detach()).map(|()| slf.clone())
    }

    /// Back-propagates from this tensor and adds the gradients of all leaves (or `inputs`) to `.grad`.
    ///
    /// Args:
    ///     gradient: the cotangent, of this tensor's shape (a tensor, or what `as_tensor` makes one of),
    ///         converted to its dtype; may be left out for a tensor with one element.
    ///     retain_graph: keep what was saved, so that another backward can follow. Defaults to
    ///         `create_graph`.
    ///     create_graph: record the backward itself, for higher derivatives.
    ///     inputs: the leaves to accumulate into; all of them by default.
    ///
    /// Raises:
    ///     RuntimeError: for a gradient of another shape, and for a complex one of a real tensor.
    #[pyo3(signature = (gradient=None, retain_graph=None, create_graph=false, inputs=None))]
    fn backward(
        slf: &Bound<'_, Self>, gradient: Option<AsTensor>, retain_graph: Option<bool>, create_graph: bool,
        inputs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let t = value(slf)?;
        let inputs = match inputs {
            Some(one) if one.is_instance_of::<PyTensor>() => Some(vec![one.extract()?]),
            Some(many) => Some(many.extract()?),
            None => None,
        };
        let (gradient, inputs) = (gradient.map(|g| g.0), targets(inputs)?);
        let retain_graph = retain_graph.unwrap_or(create_graph);
        let options = Options { retain_graph, create_graph, ..Options::default() };
        Ok(slf.py().detached(|| t.backward(gradient.as_ref(), options, inputs.as_deref()))?)
    }

    /// The values of this tensor without its history, sharing memory but not the version: a write to them is
    /// neither recorded nor noticed by a later backward. `detach()` shares the version as well.
    #[getter]
    fn data(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        let t = slf.get().value()?.into_owned();
        debug::left(".data", &t);
        let out = match t.detach() {
            Tensor::Array(array) => Tensor::from(array.alias()),
            traced => traced,
        };
        detached(slf, &t, out)
    }

    #[setter]
    fn set_data(slf: &Bound<'_, Self>, data: &Bound<'_, PyTensor>) -> PyResult<()> {
        let new = value(data)?.detach();
        let t = value(slf)?;
        check_outside("data", &t)?;
        cut(slf)?;
        match leaf(&t).filter(|e| e.aval().shape != new.shape() || e.aval().dtype != new.dtype()) {
            // The shape of a gradient is fixed by the leaf's node: a tensor of another shape is a new leaf.
            // Graphs that lead to the old leaf find the new one through it.
            Some(old) => {
                let next = require_grad(&new)?;
                if let Some(edge) = next.edge() {
                    old.node.exchange(&edge.node);
                }
                replace(slf, next)
            }
            None => replace(slf, with_history(&t, new)),
        }
    }
}

/// Extracts a gradient assigned to `.grad`; raises TypeError for anything but a tensor.
fn assigned_grad(grad: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let Ok(grad) = grad.cast::<PyTensor>() else {
        return Err(type_error(format!("grad is a tensor or None, got {}", grad.get_type().name()?)));
    };
    value(grad)
}

/// Raises unless `g` can be the gradient of `t`.
fn check_grad(t: &Tensor, g: &Tensor) -> Result<()> {
    let (want, got) = (t.aval(), g.aval());
    if want == got {
        return Ok(());
    }
    Err(Error::autodiff(format!(
        "a gradient of {}{} on {} cannot be assigned to a tensor of {}{} on {}; shape, dtype and device \
         must agree",
        got.dtype, got.shape, got.device, want.dtype, want.shape, want.device
    )))
}

/// Returns the tensors that a backward accumulates into; results of operations retain their gradient.
fn targets(inputs: Option<Vec<Bound<'_, PyTensor>>>) -> PyResult<Option<Vec<Tensor>>> {
    let target = |x: &Bound<'_, PyTensor>| {
        let t = refresh(x)?;
        if let Some(Edge { node, index }) = t.edge().filter(|e| !e.node.is_leaf()) {
            retain(x, &node, index)?;
        }
        Ok(t)
    };
    inputs.map(|inputs| inputs.iter().map(target).collect()).transpose()
}

/// Back-propagates from all of `tensors` in one walk.
#[pyfunction]
#[pyo3(signature = (tensors, grad_tensors, retain_graph, create_graph, inputs))]
fn _backward(
    py: Python<'_>, tensors: Vec<Tensor>, grad_tensors: Vec<Option<Tensor>>, retain_graph: bool,
    create_graph: bool, inputs: Option<Vec<Bound<'_, PyTensor>>>,
) -> PyResult<()> {
    let inputs = targets(inputs)?;
    let options = Options { retain_graph, create_graph, ..Options::default() };
    Ok(py.detached(|| backward::backward(&tensors, &grad_tensors, options, inputs.as_deref()))?)
}

/// Gradients of `outputs` with respect to `inputs`, None where no output depends on one; no `.grad` changes.
#[pyfunction]
#[pyo3(signature = (outputs, inputs, grad_outputs, retain_graph, create_graph))]
fn _grad(
    py: Python<'_>, outputs: Vec<Tensor>, inputs: Vec<Tensor>, grad_outputs: Vec<Option<Tensor>>,
    retain_graph: bool, create_graph: bool,
) -> Result<Vec<Option<Tensor>>> {
    let options = Options { retain_graph, create_graph, ..Options::default() };
    py.detached(|| backward::grad(&outputs, &inputs, &grad_outputs, options))
}

functions! {
    /// Turns recording on or off; returns the state to restore.
    _set_grad_enabled(enabled: bool) -> u64 = interp::set_grad_enabled(enabled);
    /// Restores a state that `_set_grad_enabled` returned.
    _restore_grad(state: u64) = {
        interp::set_grad_threshold(state);
    };
    /// Begins inference mode, or leaves it for a region; returns the state to restore.
    _set_inference(on: bool) -> PyInferenceState = PyInferenceState(interp::set_inference(on));
    /// Restores a state that `_set_inference` returned.
    _restore_inference(state: &Bound<'_, PyInferenceState>) = interp::restore_inference(state.get().0);
    /// Tells whether inference mode is on.
    is_inference_mode_enabled() -> bool = crate::array::buffer::inference();
    /// Tells whether operations are recorded at the moment.
    is_grad_enabled() -> bool = interp::is_grad_enabled();
}

/// What `_set_inference` changed.
#[pyclass(name = "InferenceState", module = "wengert._core", frozen)]
pub struct PyInferenceState(interp::InferenceState);

exports! {
    classes: PyInferenceState;
    functions: _backward, _grad, _set_grad_enabled, _restore_grad, is_grad_enabled, _set_inference,
        _restore_inference, is_inference_mode_enabled
}
