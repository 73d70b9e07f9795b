//! Hooks of tensors and nodes: Python callables that see gradients and may replace them.

use super::refuse_of_argument;
use crate::array::buffer;
use crate::autodiff::levels::{Level, Levels, behind, edge_behind, within};
use crate::autodiff::running;
use crate::py::args::Tensors;
use crate::py::autograd::node::PyNode;
use crate::py::prelude::*;
use crate::py::tensor::{in_use, leaf};
use crate::tape::hooks::{Gradients, Hook, Keep};
use crate::tape::host_ref::HostRef;
use crate::tape::node::{Edge, Node};
use pyo3::exceptions::PyRuntimeError;
use std::sync::Weak;

/// Removes a hook.
#[pyclass(module = "wengert", frozen, weakref)]
pub struct HookHandle {
    node: Weak<Node>,
    id: u64,
}

#[pymethods]
impl HookHandle {
    /// Removes the hook; harmless if it was removed before.
    fn remove(&self) {
        if let Some(node) = self.node.upgrade() {
            node.hooks_mut().remove(self.id);
        }
    }
    /// Whether the backward that this thread is in can come by the hook.
    fn _is_reached(&self) -> bool {
        self.node.upgrade().is_some_and(|node| running::reaches(&node))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    #[pyo3(signature = (*_args))]
    fn __exit__(&self, _args: &Bound<'_, PyTuple>) {
        self.remove();
    }
}

/// Registers the hook that `make` builds from a callable; the node holds it.
fn register_on(
    node: &Arc<Node>, what: &str, hook: Bound<'_, PyAny>, make: impl FnOnce(Arc<Py<PyAny>>) -> Hook,
) -> PyResult<HookHandle> {
    if !hook.is_callable() {
        return Err(type_error(format!(
            "{what}: a hook is a function of the gradient, got {}; pass something that can be called",
            hook.get_type().name()?
        )));
    }
    let hook = Arc::new(hook.unbind());
    let id = node.hooks_mut().add(make(hook.clone()), Some(HostRef::new(hook)));
    Ok(HookHandle { node: Arc::downgrade(node), id })
}

/// Extracts the tensor that a hook returned; None leaves the gradient unchanged.
fn returned(out: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    if out.is_none() {
        return Ok(None);
    }
    let Ok(t) = out.cast::<PyTensor>() else {
        return Err(PyRuntimeError::new_err(format!(
            "a gradient hook returned {}, expected a tensor, or None to leave the gradient as it is",
            out.get_type().name()?
        )));
    };
    value(t).map(Some)
}

/// Extracts the tensors that a hook of a node returned: one, or a sequence of tensors and None.
pub fn all_returned(out: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Option<Tensor>>>> {
    if out.is_none() || out.is_instance_of::<PyTensor>() {
        return Ok(returned(out)?.map(|t| vec![Some(t)]));
    }
    let Ok(items) = out.try_iter() else {
        return Err(PyRuntimeError::new_err(format!(
            "a hook of a graph node returned {}, expected a tuple of tensors, or None to leave the \
             gradients as they are",
            out.get_type().name()?
        )));
    };
    items.map(|item| returned(&item?)).collect::<PyResult<Vec<_>>>().map(Some)
}

/// Returns the edge behind a tensor, which must require a gradient, and the batches that the tensor is in.
fn edge_of(t: &Tensor, what: &str) -> Result<(Edge, Levels)> {
    behind(t).ok_or_else(|| {
        Error::autodiff(format!(
            "{what}: the {} tensor of shape {} does not require a gradient; call requires_grad_() before \
             using it",
            t.dtype(),
            t.shape()
        ))
    })
}

#[pymethods]
impl PyTensor {
    /// Keeps the gradient of this result when backward passes it, to be read as `.grad`; gradients of several
    /// backwards add up, as in leaves. Inside `vmap` it keeps those of all examples, stacked along axis 0.
    fn retain_grad(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (Edge { node, index }, _) = edge_of(&refresh(slf)?, "retain_grad")?;
        if !node.is_leaf() {
            retain(slf, &node, index)?;
        }
        Ok(())
    }

    /// Whether `retain_grad()` was called on this result.
    #[getter]
    fn retains_grad(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let t = refresh(slf)?;
        refuse_of_argument("retains_grad", &t);
        let edge = edge_behind(&t);
        Ok(edge.is_some_and(|e| e.node.hooks().is_some_and(|h| h.retained(e.index).is_some())))
    }

    /// Calls `hook(gradient)` when backward reaches this tensor; a tensor it returns replaces the gradient.
    /// Returns a handle whose `remove()` takes the hook off again. Inside `vmap` the hook sees the gradient
    /// as its tensor is seen there, one example at a time.
    fn register_hook(slf: &Bound<'_, Self>, hook: Bound<'_, PyAny>) -> PyResult<HookHandle> {
        let (Edge { node, index }, levels) = edge_of(&refresh(slf)?, "register_hook")?;
        register_on(&node, "register_hook", hook, |f| {
            let one = move |g: &Gradients| {
                let new = attached(|py| returned(&f.bind(py).run((&g[0],), None)?))?;
                Ok(new.map(|new| vec![Some(new)]))
            };
            let call = move |g: &Tensor| {
                let new = within(&[Some(g.clone())], &[&levels], &one)?;
                Ok(new.and_then(|new| new.into_iter().next().flatten()))
            };
            Hook::Grad(index, Arc::new(call))
        })
    }

    /// Calls `hook(tensor)` after a gradient was accumulated into this leaf.
    fn register_post_accumulate_grad_hook(
        slf: &Bound<'_, Self>, hook: Bound<'_, PyAny>,
    ) -> PyResult<HookHandle> {
        let t = value(slf)?;
        let edge = leaf(&t).ok_or_else(|| {
            Error::autodiff(format!(
                "register_post_accumulate_grad_hook: the tensor of shape {} is no leaf that requires a \
                 gradient; gradients accumulate in leaves only, so use register_hook() on results of \
                 operations",
                t.shape()
            ))
        })?;
        // A weak reference: the hook lives in the node, which the tensor itself holds.
        let tensor = slf.py().import("weakref")?.call_method1("ref", (slf,))?.unbind();
        register_on(&edge.node, "register_post_accumulate_grad_hook", hook, |f| {
            Hook::Accumulated(Arc::new(move |_: &Tensor| {
                attached(|py| {
                    let tensor = tensor.bind(py).call0()?;
                    if !tensor.is_none() {
                        f.bind(py).run((tensor,), None)?;
                    }
                    Ok(None)
                })
            }))
        })
    }
}

/// Makes this result retain its gradient, which lives as long as the object.
pub fn retain(obj: &Bound<'_, PyTensor>, node: &Arc<Node>, index: u32) -> PyResult<Arc<Keep>> {
    let keep = node.hooks_mut().retain_grad(index);
    let before = obj
        .get()
        .change(|this| this.ties.get_or_insert_default().kept.replace(keep.clone()))
        .ok_or_else(in_use)?;
    drop(before);
    Ok(keep)
}

#[pymethods]
impl PyNode {
    /// Calls `hook(grad_inputs, grad_outputs)` after this entry ran in a backward, with a tuple of the
    /// gradients it computed and one of those it was given; a tuple returned replaces the former.
    fn register_hook(&self, hook: Bound<'_, PyAny>) -> PyResult<HookHandle> {
        register_on(&self.0, "register_hook", hook, |f| {
            Hook::After(Arc::new(move |inputs: &Gradients, outputs: &Gradients| {
                attached(|py| {
                    let gradients = (PyTuple::new(py, inputs)?, PyTuple::new(py, outputs)?);
                    all_returned(&f.bind(py).run(gradients, None)?)
                })
            }))
        })
    }

    /// Calls `hook(grad_outputs)` before this entry runs in a backward, with a tuple of the gradients of its
    /// outputs; a tuple that the hook returns replaces them.
    fn register_prehook(&self, hook: Bound<'_, PyAny>) -> PyResult<HookHandle> {
        register_on(&self.0, "register_prehook", hook, |f| {
            Hook::Before(Arc::new(move |outputs: &Gradients| {
                attached(|py| all_returned(&f.bind(py).run((PyTuple::new(py, outputs)?,), None)?))
            }))
        })
    }
}

functions! {
    /// Copies of these tensors, the outputs of one entry of the tape, whose hooks see all their gradients.
    _bundle(tensors: Tensors) -> Result<Vec<Tensor>> = Ok(Tensor::bundle(&tensors.0)?.into_vec());
    /// One number for each backward that this thread is in, innermost last.
    _backward_ids() -> Vec<u64> = running::ids();
}

/// Calls `hook(gradient)` when backward reaches this tensor; inside `vmap` with that of all examples at once.
#[pyfunction]
fn _watch(tensor: &Bound<'_, PyTensor>, hook: Bound<'_, PyAny>) -> PyResult<HookHandle> {
    let (Edge { node, index }, _) = edge_of(&refresh(tensor)?, "register_multi_grad_hook")?;
    register_on(&node, "register_multi_grad_hook", hook, |f| {
        let call = move |g: &Tensor| attached(|py| returned(&f.bind(py).run((g,), None)?));
        Hook::Grad(index, Arc::new(call))
    })
}

/// Calls `callback()` at the end of the backward that this thread is in, unless that fails.
#[pyfunction]
fn _at_end_of_backward(callback: Py<PyAny>) -> PyResult<()> {
    let call = move || attached(|py| callback.bind(py).run((), None).map(|_| ()));
    if running::at_end(Box::new(call)) {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(
        "no backward is running on this thread; call this from a hook that a backward calls",
    ))
}

/// The batches that some tensors are in, for hooks that see gradients of all of them.
#[pyclass(name = "_Levels", module = "wengert._core", frozen)]
pub struct PyLevels(Vec<Levels>);

#[pymethods]
impl PyLevels {
    /// Those of these tensors.
    #[new]
    fn new(tensors: &Bound<'_, PyList>) -> PyResult<PyLevels> {
        let mut all = buffer::with_capacity(tensors.len())?;
        for tensor in tensors {
            let levels = behind(&tensor.extract()?).map_or_else(Levels::new, |(_, levels)| levels);
            buffer::grow(&mut all)?;
            all.push(levels);
        }
        Ok(PyLevels(all))
    }

    /// Those of the tensors of both.
    fn __add__(&self, other: &PyLevels) -> PyResult<PyLevels> {
        let (own, more) = (&self.0, &other.0);
        Ok(PyLevels(buffer::collect_at_most(own.len() + more.len(), own.iter().chain(more).cloned())?))
    }

    /// `f(gradients)`, with the gradients of the tensors (or None) as they are seen inside the batches; what
    /// it returns, as it is seen outside.
    fn call<'py>(
        &self, f: &Bound<'py, PyAny>, gradients: Vec<Option<Tensor>>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let levels: Vec<&[Level]> = self.0.iter().map(|levels| &levels[..]).collect();
        let py = f.py();
        let f = f.clone().unbind();
        let one =
            |g: &Gradients| attached(|py| all_returned(&f.bind(py).run((PyTuple::new(py, g)?,), None)?));
        within(&gradients, &levels, &one)?.map(|out| PyTuple::new(py, out)).transpose()
    }
}

exports! { classes: HookHandle, PyLevels; functions: _bundle, _watch, _backward_ids, _at_end_of_backward }
