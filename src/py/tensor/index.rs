//! `x[key]` and `x[key] = value` with NumPy's semantics.
//!
//! A key has a basic part, a view, and an advanced part, a gather (`src/py/tensor/key.rs`). Assignment to a
//! basic key writes into that view; assignment to an advanced key writes the selected rows
//! (`src/ops/writes/rows.rs`). Both can be differentiated and batched; else memory is written.

use crate::ops::views::strided::Part;
use crate::py::args::position;
use crate::py::data::convert;
use crate::py::prelude::*;
use crate::py::tensor::key::{AppliedKey, plan};
use crate::py::tensor::selection::{aligned, hidden_mask, replaced, selection};
use crate::py::tensor::{attach, view};
use crate::py::writes::inplace::{self, beside};
use crate::watch::absent;
use pyo3::exceptions::PyIndexError;
use smallvec::SmallVec;

#[pymethods]
impl PyTensor {
    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let found = |t: PyTensor| Ok(Bound::new(py, t)?.into_any());
        if key.is_instance_of::<PyInt>() && !key.is_instance_of::<PyBool>() {
            if slf.read().t.rank() == 0 {
                return Err(PyIndexError::new_err("a tensor without axes cannot be indexed; use item()"));
            }
            let i = position(key)?;
            return found(attach::apply(slf, |x| x.select_index(0, i))?);
        }
        if let Some(at) = integers(key)? {
            return found(attach::apply(slf, |x| x.select_indices(&at))?);
        }
        let t = value(slf)?;
        if let Some((key, mask)) = hidden_mask(key)? {
            return selection(py, &t, &key, &mask);
        }
        let plan = plan(py, &t, key)?;
        found(if plan.is_basic() { attach::apply(slf, |x| plan.basic(x))? } else { plan.read(&t)?.into() })
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let old = refresh(slf)?;
        inplace::check_root(slf, "setitem")?;
        if let Some(new) = replaced(&old, key, value)? {
            return inplace::overwrite(slf, "setitem", new);
        }
        let new = replacement(&old, value)?;
        if let Some(mask) = mask_of(&old, key, &new)? {
            let new = new.reshape(&Shape::SCALAR)?;
            if inplace::fill_where(slf, "setitem", &mask, &new)? {
                return Ok(());
            }
            return inplace::overwrite(slf, "setitem", mask.select(&new, &old)?);
        }
        let plan = plan(py, &old, key)?;
        if !plan.is_basic() {
            drop(old);
            return write(&plan, slf, "setitem", &new, false);
        }
        if let (Tensor::Array(target), Tensor::Array(from)) = (&old, &new)
            && !view::is_recorded(slf)
        {
            return Ok(write_view(&plan, target, from)?);
        }
        let new = fitted(&new, &plan.shape)?;
        let (root, whole) = attach::rooted(slf, &old);
        let part = plan.basic_part(&whole)?;
        if is_part(value, &root, &part, old.dtype()) {
            // The value that `x[key] += y` assigns is this view, already written.
            return Ok(());
        }
        drop(old);
        view::forget(slf, &root)?;
        inplace::overwrite_part(&root, "setitem", &part, new)
    }

    fn __delitem__(&self, _key: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(type_error("elements of a tensor cannot be deleted; select the others by an index or a mask"))
    }
}

/// The indices of a key of several integers and nothing else.
fn integers(key: &Bound<'_, PyAny>) -> PyResult<Option<SmallVec<[i64; 4]>>> {
    let Ok(key) = key.cast_exact::<PyTuple>() else { return Ok(None) };
    if key.is_empty() || !key.iter_borrowed().all(|k| k.is_exact_instance_of::<PyInt>()) {
        return Ok(None);
    }
    key.iter_borrowed().map(|k| position(&k)).collect::<PyResult<_>>().map(Some)
}

/// Writes `value` to the elements of `slf` that the key selects, or adds it there.
fn write(
    plan: &AppliedKey, slf: &Bound<'_, PyTensor>, name: &str, value: &Tensor, add: bool,
) -> PyResult<()> {
    inplace::overwrite_rows(slf, name, |part, n| plan.rows(part, n), |shape| fitted(value, shape), add)
}

/// Returns `x` with `value` written to what `key` selects, or added there.
pub fn with_written(
    py: Python<'_>, x: &Tensor, key: &Bound<'_, PyAny>, value: &Tensor, add: bool,
) -> PyResult<Tensor> {
    let rows = plan(py, x, key)?.rows(&Part::whole(&x.shape()), x.numel())?;
    Ok(x.put_rows(&rows, &fitted(value, &rows.shape)?, add)?)
}

/// [`with_written`] in place, on behalf of the method `name`.
pub fn write_at(
    slf: &Bound<'_, PyTensor>, name: &str, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, add: bool,
) -> PyResult<()> {
    let old = refresh(slf)?;
    let value = replacement(&old, value)?;
    let plan = plan(slf.py(), &old, key)?;
    drop(old);
    write(&plan, slf, name, &value, add)
}

/// Converts a value to be assigned to elements of `old` to a tensor of the same dtype.
pub fn replacement(old: &Tensor, value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    Ok(match Arg::from_any(value)? {
        Some(value) => beside(old, value.operand().to_tensor(old.dtype(), old)?)?,
        None => convert::in_dtype(value, old.dtype())?,
    })
}

/// Whether an object is the view of this part of `root`, with this dtype.
fn is_part(object: &Bound<'_, PyAny>, root: &Bound<'_, PyTensor>, part: &Part, dtype: DType) -> bool {
    let Ok(object) = object.cast::<PyTensor>() else { return false };
    let own = view::link(object).filter(|_| object.read().t.dtype() == dtype);
    own.is_some_and(|(above, own)| above.is(root) && own == *part)
}

fn misfit(value: &Shape, target: &Shape) -> Error {
    Error::shape(format!(
        "setitem: a value of shape {value} cannot be broadcast to the indexed shape {target}"
    ))
}

/// Assigns to a basic key of a tensor without history, directly through the view.
fn write_view(plan: &AppliedKey, target: &Array, value: &Array) -> Result<()> {
    let part = plan.region.view(target)?;
    let Some(part) = part.reshape_view(&plan.shape) else {
        return Err(Error::shape("internal: the view of a basic key did not reshape"));
    };
    let trimmed = value_shape(value.shape(), &plan.shape);
    let value = value.reshape_view(&trimmed).ok_or_else(|| misfit(&value.shape(), &plan.shape))?;
    let to = part.device();
    if value.device() != to {
        return Err(Error::value(format!(
            "setitem: the value is on {} and the tensor on {to}; give it as a tensor there, \
             wengert.as_tensor(value, device='{to}')",
            value.device()
        )));
    }
    if value.shape().broadcast(&part.shape()) != Some(part.shape()) {
        return Err(misfit(&value.shape(), &part.shape()));
    }
    crate::ops::writes::inplace::store("setitem", target, &part, &value)
}

/// Drops leading axes of length 1 that the target does not have.
fn value_shape(value: Shape, target: &Shape) -> Shape {
    let mut value = value;
    while value.rank() > target.rank() && value.at(0) == 1 {
        value = value.removed(0);
    }
    value
}

/// Broadcasts `value` to the shape of its target.
pub fn fitted(value: &Tensor, target: &Shape) -> Result<Tensor> {
    let trimmed = value_shape(value.shape(), target);
    if trimmed.broadcast(target) != Some(*target) {
        return Err(misfit(&value.shape(), target));
    }
    value.reshape(&trimmed)?.expand(target)
}

/// A key that is a mask, with as many axes as `x`, if `value` is a single element; `None` for other keys.
fn mask_of(x: &Tensor, key: &Bound<'_, PyAny>, value: &Tensor) -> PyResult<Option<Tensor>> {
    let Ok(mask) = key.cast::<PyTensor>() else { return Ok(None) };
    let mask = crate::py::tensor::view::value(mask)?;
    let known = mask.concrete().is_some();
    let overlaps = |x: &Array| x.overlaps_itself() && !absent::is_absent(x);
    if known && x.concrete().is_some_and(overlaps) {
        // Such memory cannot be written, so the mask must select nothing; the general path checks that.
        return Ok(None);
    }
    if mask.dtype() != DType::Bool || value.numel() != 1 || (known && mask.device() != x.device()) {
        return Ok(None);
    }
    Ok(if mask.rank() == 0 { None } else { aligned(&mask, x)? })
}
