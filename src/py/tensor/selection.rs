//! Elements selected by a mask inside `vmap`, where their number differs between examples: an object of
//! `python/wengert/transforms/selection.py`, which keeps all elements and the mask.

use crate::py::prelude::*;

/// Returns the key if it is a mask whose values are hidden by a transform.
pub fn hidden_mask<'py>(key: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyTensor>, Tensor)>> {
    if interp::is_plain() {
        return Ok(None);
    }
    let Ok(object) = key.cast::<PyTensor>() else { return Ok(None) };
    let mask = value(object)?;
    let hidden = mask.dtype() == DType::Bool && mask.concrete().is_none();
    Ok(hidden.then(|| (object.clone(), mask)))
}

/// Returns a mask of the leading axes of `x` with as many axes as `x`; `None` if it does not fit.
pub fn aligned(mask: &Tensor, x: &Tensor) -> Result<Option<Tensor>> {
    let own = x.shape();
    if mask.rank() > own.rank() || own.part(0, mask.rank()) != mask.shape() {
        return Ok(None);
    }
    (mask.rank()..own.rank()).try_fold(mask.clone(), |wide, _| wide.unsqueeze(-1)).map(Some)
}

/// Expands a mask of the leading axes of `x` to the shape of `x`.
fn widened(mask: &Tensor, x: &Tensor) -> Result<Tensor> {
    let (own, given) = (x.shape(), mask.shape());
    let misfit = || {
        Error::shape(format!(
            "a mask of shape {given} does not fit the leading axes of a tensor of shape {own}"
        ))
    };
    aligned(mask, x)?.ok_or_else(misfit)?.expand(&own)
}

/// Returns the elements of `x` where a mask holds as an object; `key` is the mask that the user wrote.
pub fn selection<'py>(
    py: Python<'py>, x: &Tensor, key: &Bound<'py, PyTensor>, mask: &Tensor,
) -> PyResult<Bound<'py, PyAny>> {
    let wide = widened(mask, x)?;
    let class = py.import("wengert.transforms.selection")?.getattr("Selection")?;
    class.call1((PyTensor::from(x.clone()), PyTensor::from(wide), key))
}

/// Returns `x` with the elements of a selection written back; `None` for values of other kinds.
pub fn replaced(x: &Tensor, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    if interp::is_plain() || value.is_instance_of::<PyTensor>() {
        return Ok(None);
    }
    let class = value.py().import("wengert.transforms.selection")?.getattr("Selection")?;
    if !value.is_instance(&class)? {
        return Ok(None);
    }
    let Some((_, mask)) = hidden_mask(key)?.filter(|_| value.getattr("key").is_ok_and(|own| own.is(key)))
    else {
        return Err(Error::value(
            "setitem: what a mask selected inside vmap can be assigned to the same mask only, as in x[m] = \
             x[m] * 2; use where() to move it elsewhere",
        )
        .into());
    };
    let dense = crate::py::tensor::view::value(value.getattr("values")?.cast::<PyTensor>()?)?;
    if dense.shape() != x.shape() {
        return Err(Error::shape(format!(
            "setitem: a selection from a tensor of shape {} is assigned to one of shape {}",
            dense.shape(),
            x.shape()
        ))
        .into());
    }
    Ok(Some(widened(&mask, x)?.select(&dense.cast(x.dtype())?, x)?))
}
