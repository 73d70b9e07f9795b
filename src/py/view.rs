//! Views as Python objects. A view remembers the object it was made from (its root) and, where a value is not
//! memory, which part of it it is. A recorded write through any of them replaces the root's tensor by a
//! function of the old one (`src/ops/inplace.rs`) and moves the root's epoch; a view that finds the epoch
//! moved takes its value, and with it its history, from the root anew.

use crate::array::Array;
use crate::buffer::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::interp;
use crate::ops::inplace::over_memory;
use crate::ops::strided::Part;
use crate::py::object::{Glance, Look, PyTensor, State, Value};
use crate::py::tensor::in_use;
use crate::tensor::Tensor;
use pyo3::prelude::*;

/// The epochs of a root whose memory was exchanged differ by at least this much; its views are on their own.
const ERA: u64 = 1 << 32;

/// How a view hangs on the tensor it was made from.
pub struct View {
    /// The tensor that is no view itself.
    root: Py<PyTensor>,
    /// The epoch of the root that the own value belongs to.
    epoch: u64,
    /// Where the root begins in its buffer.
    base: usize,
    /// Which part of the root; `None` as long as both are memory in row-major order and the strides tell.
    part: Option<Box<Part>>,
}

impl View {
    /// The tensor that this is a view of, for Python's garbage collector.
    pub fn root(&self) -> &Py<PyTensor> {
        &self.root
    }

    /// Which part of the root the view `t` is.
    fn part(&self, t: &Tensor) -> Option<Part> {
        match (&self.part, t.concrete()) {
            (Some(part), _) => Some(**part),
            (None, Some(array)) => Some(Part::of(array, self.base)),
            (None, None) => None,
        }
    }
}

/// Whether two tensors are the same memory.
fn share(a: &Tensor, b: &Tensor) -> bool {
    matches!((a.concrete(), b.concrete()), (Some(a), Some(b)) if a.buffer().same(b.buffer()))
}

/// What `f`, a chain of views, selects of the part `from` of a tensor of shape `whole`; `None` if it copies.
/// It is tried on memory that nobody reads.
pub fn trace(
    whole: usize,
    from: &Part,
    f: impl Fn(&Tensor) -> Result<Vec<Tensor>>,
) -> Result<Vec<Option<Part>>> {
    let memory = Array::empty(crate::shape::Shape::new(&[whole])?, DType::Bool, Device::Cpu)?;
    let view = memory.with_layout(from.shape, &from.strides[..from.shape.rank()], from.offset)?;
    let memory = Tensor::from(memory);
    let part = |t: &Tensor| t.concrete().filter(|_| share(t, &memory)).map(|a| Part::of(a, 0));
    Ok(f(&view.into())?.iter().map(part).collect())
}

impl PyTensor {
    /// The value with its history as of now; that of a view may have been written through its root.
    #[inline]
    pub fn value(&self) -> PyResult<Value<'_>> {
        let this = self.look();
        if this.view.is_none() { Ok(Value::Held(this)) } else { value_of_view(this) }
    }
}

/// The value of a view.
fn value_of_view(this: Glance<'_>) -> PyResult<Value<'_>> {
    let Some(view) = &this.view else { return Ok(Value::Held(this)) };
    match Python::attach(|py| renewed(py, &this.t, view))? {
        None => Ok(Value::Held(this)),
        Some((t, _)) => Ok(Value::Renewed(t)),
    }
}

/// The value of an object with its history as of now.
#[inline]
pub fn value(obj: &Bound<'_, PyTensor>) -> PyResult<Tensor> {
    Ok(obj.get().value()?.into_owned())
}

/// The value of a view whose root was written since, and the root's epoch; `None` if nothing happened.
fn renewed(py: Python<'_>, t: &Tensor, view: &View) -> PyResult<Option<(Tensor, u64)>> {
    let root = view.root.bind(py).look();
    if root.epoch == view.epoch || root.epoch.abs_diff(view.epoch) >= ERA {
        return Ok(None);
    }
    let Some(part) = view.part(t) else { return Ok(None) };
    // The history of a view is that of its root, whether or not recording is on where it is looked at.
    let fresh = interp::with_grad(|| root.t.as_strided(&part))?;
    let fresh = match (fresh.concrete(), t.concrete()) {
        (Some(a), Some(memory)) if !a.buffer().same(memory.buffer()) => over_memory(&fresh, memory),
        _ => fresh,
    };
    Ok(Some((fresh, root.epoch)))
}

/// Renews a view, so that hooks and gradients can be attached to it; returns its value.
pub fn refresh(obj: &Bound<'_, PyTensor>) -> PyResult<Tensor> {
    let fresh = {
        let this = obj.look();
        match &this.view {
            None => return Ok(this.t.clone()),
            Some(view) => match renewed(obj.py(), &this.t, view)? {
                None => return Ok(this.t.clone()),
                Some((t, epoch)) => (t, epoch, view.part(&this.t)),
            },
        }
    };
    let (t, epoch, part) = fresh;
    let part = part.filter(|_| t.concrete().is_none()).map(Box::new);
    let exchange = |this: &mut State| {
        if let Some(view) = &mut this.view {
            view.epoch = epoch;
            if part.is_some() {
                view.part = part;
            }
        }
        std::mem::replace(&mut this.t, t.clone())
    };
    let old = obj.get().change(exchange).ok_or_else(in_use)?;
    drop(old);
    Ok(t)
}

/// The root of a view and which part of it the view is; `None` for a tensor that is no view.
pub fn link<'py>(obj: &Bound<'py, PyTensor>) -> Option<(Bound<'py, PyTensor>, Part)> {
    let this = obj.look();
    let view = this.view.as_ref()?;
    let root = view.root.bind(obj.py());
    if root.look().epoch.abs_diff(view.epoch) >= ERA {
        return None;
    }
    Some((root.clone(), view.part(&this.t)?))
}

/// Whether a write into `obj` may concern a graph: it or its root is more than memory.
pub fn is_recorded(obj: &Bound<'_, PyTensor>) -> bool {
    let traced = |obj: &Bound<'_, PyTensor>| obj.look().t.traced().is_some();
    traced(obj) || link(obj).is_some_and(|(root, _)| traced(&root))
}

/// Makes `next` the value of a root after a recorded write; its views renew themselves when they are used.
pub fn written(root: &Bound<'_, PyTensor>, next: Tensor) -> PyResult<()> {
    crate::py::tensor::replace(root, next)?;
    root.get().change(|this| this.epoch += 1).ok_or_else(in_use)
}

/// Notes that the memory of `obj` was exchanged: it is no view any more, and its views are on their own.
pub fn cut(obj: &Bound<'_, PyTensor>) -> PyResult<()> {
    let leave = |this: &mut State| {
        this.epoch += ERA;
        this.view.take()
    };
    let old = obj.get().change(leave).ok_or_else(in_use)?;
    drop(old);
    Ok(())
}

/// The result of a chain of views, as an object that knows what it is a view of.
pub fn apply(obj: &Bound<'_, PyTensor>, f: impl Fn(&Tensor) -> Result<Tensor>) -> PyResult<PyTensor> {
    let this = obj.look();
    if this.view.is_none()
        && let Some(array) = this.t.concrete()
        && array.is_contiguous()
    {
        // The common case: memory in row-major order that is no view itself.
        let out = f(&this.t)?;
        let link =
            || View { root: obj.clone().unbind(), epoch: this.epoch, base: array.offset(), part: None };
        let view = share(&out, &this.t).then(link);
        return Ok(PyTensor::viewing(out, view));
    }
    drop(this);
    let t = value(obj)?;
    let out = f(&t)?;
    let view = attach(obj, &t, &[&out], |x| Ok(vec![f(x)?]))?.pop().flatten();
    Ok(PyTensor::viewing(out, view))
}

/// [`apply`] for several results.
pub fn apply_all(
    obj: &Bound<'_, PyTensor>,
    f: impl Fn(&Tensor) -> Result<Vec<Tensor>>,
) -> PyResult<Vec<PyTensor>> {
    let t = value(obj)?;
    let out = f(&t)?;
    let views = attach(obj, &t, &out.iter().collect::<Vec<_>>(), f)?;
    Ok(out.into_iter().zip(views).map(|(t, view)| PyTensor::viewing(t, view)).collect())
}

/// The links of `outs`, made from `obj` of value `t` by `f`.
fn attach(
    obj: &Bound<'_, PyTensor>,
    t: &Tensor,
    outs: &[&Tensor],
    f: impl Fn(&Tensor) -> Result<Vec<Tensor>>,
) -> PyResult<Vec<Option<View>>> {
    let this = obj.look();
    let (root, base, from) = match &this.view {
        Some(view) => (view.root.clone_ref(obj.py()), view.base, view.part.as_deref().copied()),
        None => (obj.clone().unbind(), t.concrete().map_or(0, Array::offset), None),
    };
    drop(this);
    let (epoch, whole, dense) = {
        let root = root.bind(obj.py()).look();
        let dense = root.t.concrete().is_some_and(Array::is_contiguous);
        (root.epoch, root.t.numel(), dense)
    };
    if dense && from.is_none() && t.concrete().is_some() {
        let link = |out: &&Tensor| {
            share(out, t).then(|| View { root: root.clone_ref(obj.py()), epoch, base, part: None })
        };
        return Ok(outs.iter().map(link).collect());
    }
    let from = from.unwrap_or_else(|| match t.concrete() {
        Some(array) if dense => Part::of(array, base),
        _ => Part::whole(&t.shape()),
    });
    let parts = trace(whole, &from, f)?;
    let link = |part: Option<Part>| {
        part.map(|p| View { root: root.clone_ref(obj.py()), epoch, base, part: Some(Box::new(p)) })
    };
    Ok(parts.into_iter().map(link).collect())
}
