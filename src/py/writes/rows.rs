//! Methods that write at an index tensor along an axis; in place they cost as much as what is written. Read
//! next: `src/ops/writes/rows.rs`.

use crate::ops::indexing::check_index;
use crate::ops::views::strided::Part;
use crate::ops::writes::rows::{Rows, adds_in_part};
use crate::py::prelude::*;
use crate::py::relative::Relative;
use crate::py::tensor::index::fitted;
use crate::py::writes::assign::{This, in_place};
use crate::py::writes::inplace;

/// Returns `x` with `source`, broadcast, in the slices along `axis` that a vector of indices names.
pub fn with_slices(name: &str, x: &Tensor, axis: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
    let (axis, index) = slices(name, x, axis, index)?;
    let rows = Rows::of_slices(&Part::whole(&x.shape()), x.numel(), axis, &index)?;
    x.put_rows(&rows, &fitted(&source.cast(x.dtype())?, &rows.shape)?, false)
}

/// [`with_slices`] in place.
pub fn put_slices<'py>(
    slf: &This<'py>, name: &str, axis: i64, index: &Tensor, source: &Tensor,
) -> PyResult<This<'py>> {
    let x = refresh(slf)?;
    let (axis, index) = slices(name, &x, axis, index)?;
    let source = source.cast(x.dtype())?;
    drop(x);
    let places = |part: &Part, numel: usize| Rows::of_slices(part, numel, axis, &index);
    let value = |shape: &Shape| fitted(&source, shape);
    inplace::overwrite_rows(slf, name, places, value, false).map(|()| slf.clone())
}

/// Returns the axis and the index vector that select slices of `x`.
fn slices(name: &str, x: &Tensor, dim: i64, index: &Tensor) -> Result<(usize, Tensor)> {
    check_index(name, index)?;
    let (axis, vector) = (x.shape().axis(dim, name)?, index.at_least_vector()?);
    if vector.rank() == 1 {
        return Ok((axis, vector));
    }
    Err(Error::shape(format!("{name}: a vector of indices expected, got shape {}", index.shape())))
}

/// Writes the elements of `src` at `index` along `dim`, or adds them there, in place.
pub fn scatter<'py>(
    slf: &This<'py>, name: &str, dim: i64, index: &Tensor, src: &Tensor, add: bool,
) -> PyResult<This<'py>> {
    let x = refresh(slf)?;
    let (axis, dtype) = (x.scatter_axis(name, dim, index, src)?, x.dtype());
    drop(x);
    let places = |part: &Part, numel: usize| Rows::of_scatter(part, numel, axis, index);
    let value = |shape: &Shape| src.corner(shape)?.cast(dtype);
    inplace::overwrite_rows(slf, name, places, value, add).map(|()| slf.clone())
}

#[pymethods]
impl PyTensor {
    /// Adds the elements of `src` at `index` along `dim`, in place.
    fn scatter_add_<'py>(
        slf: &This<'py>, #[pyo3(from_py_with = whole)] dim: i64, index: AsTensor, src: Relative<'py>,
    ) -> PyResult<This<'py>> {
        let x = refresh(slf)?;
        let src = src.tensor(&x)?;
        let whole = [&x, &index.0, &src].iter().any(|t| t.rank() == 0) || !adds_in_part(&x, index.0.numel());
        if whole {
            return in_place(slf, "scatter_add", |_, x| Ok(x.scatter_add(dim, &index.0, &src)?));
        }
        drop(x);
        scatter(slf, "scatter_add", dim, &index.0, &src, true)
    }

    /// Adds rows of `source` along `dim` at a vector of indices, in place.
    #[pyo3(
        signature = (dim, index, source, *, alpha=Arg::Int(1)),
        text_signature = "($self, dim, index, source, *, alpha=1)"
    )]
    fn index_add_<'py>(
        slf: &This<'py>, #[pyo3(from_py_with = whole)] dim: i64, index: AsTensor, source: Relative<'py>,
        alpha: Arg,
    ) -> PyResult<This<'py>> {
        let x = refresh(slf)?;
        let source = source.tensor(&x)?;
        let source = match alpha {
            Arg::Int(1) | Arg::Float(1.0) => source,
            _ => source.mul(alpha.operand())?,
        };
        if x.rank() == 0 || x.numel() == 0 || !adds_in_part(&x, source.numel()) {
            return in_place(slf, "index_add", |_, x| Ok(x.index_add(dim, &index.0, &source)?));
        }
        let (axis, index) = x.slice_axis(dim, &index.0, &source)?;
        let source = source.cast(x.dtype())?;
        drop(x);
        let places = |part: &Part, numel: usize| Rows::of_slices(part, numel, axis, &index);
        inplace::overwrite_rows(slf, "index_add", places, |_| Ok(source.clone()), true).map(|()| slf.clone())
    }
}
