//! Methods that write elements to places that an index names, as functions of the whole and in place.

use crate::interp::autocast::widest;
use crate::ops::indexing::{check_index, check_same_dtype};
use crate::ops::pointwise::operand::Operand;
use crate::ops::reduce::index_type;
use crate::ops::views::strided::Part;
use crate::ops::writes::combine::Writes;
use crate::ops::writes::rows::Rows;
use crate::py::composed::composed;
use crate::py::composed::shapes::{on_axis, positions};
use crate::py::composed::writes::{check_reduction, elements, given, slices};
use crate::py::prelude::*;
use crate::py::relative::{Relative, operand};
use crate::py::tensor::index::{fitted, replacement, with_written, write_at};
use crate::py::tensor::key::plan;
use crate::py::tensor::methods::{check_mask, filling};
use crate::py::writes::assign::{This, in_place};
use crate::py::writes::rows::{put_slices, scatter as scatter_in_place, with_slices};

/// Gives a result the shape of the tensor that it is made of.
fn shaped(out: Tensor, like: &Tensor) -> Result<Tensor> {
    if like.rank() == 0 { out.reshape(&like.shape()) } else { Ok(out) }
}

/// The source of a scatter, given as `src` or as `value`.
fn source_of<'py>(src: Option<Relative<'py>>, value: Option<Relative<'py>>) -> PyResult<Relative<'py>> {
    src.or(value).ok_or_else(|| type_error("scatter: a source is missing; pass a tensor or a number"))
}

/// The reductions of `scatter`, as `scatter_reduce` calls them.
fn combined(reduce: Option<&str>) -> PyResult<Option<&'static str>> {
    match reduce {
        None => Ok(None),
        Some("add") => Ok(Some("sum")),
        Some("multiply") => Ok(Some("prod")),
        Some(other) => {
            Err(value_error(format!("scatter: reduce must be 'add' or 'multiply', got '{other}'")))
        }
    }
}

/// Combines elements in place, at the cost of what is combined where these are few.
fn reduce_in_place<'py>(
    slf: &This<'py>, dim: i64, index: &Tensor, src: &Relative<'_>, reduce: &str, with_own: bool,
) -> PyResult<This<'py>> {
    let name = "scatter_reduce";
    check_reduction(name, reduce)?;
    let x = refresh(slf)?;
    let writes = elements(name, &x, dim, index, src)?;
    combine_in_place(slf, name, x.rank(), &writes, reduce, with_own)
}

/// Writes combined elements into a tensor of so many axes.
fn combine_in_place<'py>(
    slf: &This<'py>, name: &str, rank: usize, writes: &Writes, reduce: &str, with_own: bool,
) -> PyResult<This<'py>> {
    if rank > 0 && writes.is_part() {
        let (out, place) = writes.in_part(reduce, with_own).named(name)?;
        return scatter_in_place(slf, name, writes.axis, &place, &out, false);
    }
    in_place(slf, name, |_, x| Ok(shaped(writes.reduced(reduce, with_own).named(name)?, x)?))
}

/// The tensor with slices along an axis filled with a number.
fn filled(x: &Tensor, dim: i64, index: &Tensor, value: Arg) -> Result<Tensor> {
    let (wide, axis) = on_axis("index_fill", x, dim)?;
    check_index("index_fill", index)?;
    let value = fill(x, value)?;
    if x.device() == Device::Cpu {
        return shaped(with_slices("index_fill", &wide, axis as i64, index, &value)?, x);
    }
    let (length, kind) = (wide.shape().at(axis), index_type(x.device()));
    let ones = Tensor::full(index.shape(), 1.0, kind, x.device())?;
    let here = Tensor::zeros(Shape::new(&[length])?, kind, x.device())?.index_add(0, index, &ones)?;
    let mut lengths = vec![1; wide.rank()];
    lengths[axis] = length;
    shaped(here.gt(0i64)?.reshape(&Shape::new(&lengths)?)?.select(&value, &wide)?, x)
}

/// A number as a tensor of the dtype and on the device of `x`.
fn fill(x: &Tensor, value: Arg) -> Result<Tensor> {
    filling("index_fill", x, value)?.operand().to_tensor(x.dtype(), x)?.to_device(x.device())
}

/// Whether elements are added where they stand; halves are added up in float32 first.
fn adds(x: &Tensor) -> bool {
    x.device() == Device::Cpu && !x.dtype().is_half() && x.dtype() != DType::Bool
}

/// `x[key] = value`, or `+=` that counts every index, as a function.
fn put(
    py: Python<'_>, x: &Tensor, key: &Bound<'_, PyAny>, values: &Bound<'_, PyAny>, add: bool,
) -> PyResult<Tensor> {
    let given = replacement(x, values)?;
    if !add || adds(x) {
        return with_written(py, x, key, &given, add);
    }
    // The linear index of every element says where its value is added.
    let places = plan(py, x, key)?.read(&positions(x.numel(), x.device())?.reshape(&x.shape())?)?;
    let given = fitted(&given, &places.shape())?.flatten(0, -1)?;
    Ok(x.flatten(0, -1)?.index_add(0, &places.flatten(0, -1)?, &given)?.reshape(&x.shape())?)
}

/// Raises for values of another dtype than the tensor's.
fn check_values(x: &Tensor, values: &Bound<'_, PyAny>) -> PyResult<()> {
    match values.cast::<PyTensor>() {
        Ok(t) => Ok(check_same_dtype("index_put", x.dtype(), t.read().t.dtype())?),
        Err(_) => Ok(()),
    }
}

/// The elements where a mask is true replaced by those of a vector, in their order.
fn masked(x: &Tensor, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
    let Some(shape) = x.shape().broadcast(&mask.shape()) else {
        let (x, mask) = (x.shape(), mask.shape());
        return Err(Error::shape(format!("masked_scatter: shapes {x}, {mask} do not broadcast")));
    };
    let (x, mask) = (x.expand(&shape)?, mask.expand(&shape)?);
    if source.numel() == 0 {
        return x.copied();
    }
    let place = mask.flatten(0, -1)?.cast(index_type(x.device()))?.cumsum(0)?.sub(1i64)?;
    let taken = source.cast(x.dtype())?.take(&place.clamp(Some(Operand::Int(0)), None)?, 0)?;
    mask.select(&taken.reshape(&shape)?, &x)
}

/// Positions of the flattened tensor, and the elements that are written there, which fit.
fn placed(
    name: &str, x: &Tensor, index: &Bound<'_, PyAny>, source: &Relative<'_>,
) -> PyResult<(Tensor, Tensor)> {
    let (index, source) = (operand(name, index)?, source.beside(name, x)?);
    if index.dtype().is_differentiable() || index.dtype() == DType::Bool {
        let dtype = index.dtype();
        return Err(type_error(format!(
            "{name}: index must be of integers, got wengert.{dtype}; convert with .long()"
        )));
    }
    if source.dtype() != x.dtype() {
        let (own, dtype) = (x.dtype(), source.dtype());
        return Err(type_error(format!(
            "{name}: source must be wengert.{own} as the tensor, got wengert.{dtype}; convert with .to()"
        )));
    }
    if index.numel() != source.numel() {
        let (places, elements) = (index.numel(), source.numel());
        return Err(Error::shape(format!(
            "{name}: {places} positions for {elements} elements; give as many of both"
        ))
        .into());
    }
    Ok((index, source))
}

/// The elements at positions of the flattened tensor replaced by those of `source`, or these added there.
fn at_positions(x: &Tensor, index: &Tensor, source: &Tensor, add: bool) -> Result<Tensor> {
    let (flat, source) = (x.flatten(0, -1)?, source.flatten(0, -1)?);
    let places = index.flatten(0, -1)?.cast(index_type(x.device()))?;
    let rows = Rows::of_slices(&Part::whole(&flat.shape()), x.numel(), 0, &places)?;
    let out = match add && !adds(x) {
        true => flat.index_add(0, &places, &source)?,
        false => flat.put_rows(&rows, &source, add)?,
    };
    out.reshape(&x.shape())
}

#[pymethods]
impl PyTensor {
    /// Returns a copy with the elements of `source` at the positions `index` of the flattened tensor.
    ///
    /// Args:
    ///     index: integers of any shape; negative ones count from the end.
    ///     source: as many elements, of the dtype of the tensor. Of several at one position the last stays.
    ///     accumulate: whether they are added to what is there.
    ///
    /// Raises:
    ///     IndexError: for a position outside.
    ///     ShapeError: `index` and `source` have different numbers of elements.
    ///     TypeError: for an `index` that is not of integers, and a `source` of another dtype.
    #[pyo3(signature = (index, source, accumulate=false))]
    fn put(
        &self, py: Python<'_>, index: &Bound<'_, PyAny>, source: Relative<'_>, accumulate: bool,
    ) -> PyResult<PyTensor> {
        let (x, name) = (&self.value()?.into_owned(), "put");
        let (index, source) = placed(name, x, index, &source)?;
        composed(py, name, x, || at_positions(x, &index, &source, accumulate))
    }

    /// Stores the elements of `source` at the positions `index` of the flattened tensor, in place; see `put`.
    ///
    /// With `accumulate` they are added to what is there.
    ///
    /// Example:
    ///     >>> wg.zeros(3).put_(wg.tensor([1]), wg.tensor([5.0]))
    ///     tensor([0., 5., 0.])
    #[pyo3(signature = (index, source, accumulate=false))]
    fn put_<'py>(
        slf: &This<'py>, index: &Bound<'py, PyAny>, source: Relative<'py>, accumulate: bool,
    ) -> PyResult<This<'py>> {
        in_place(slf, "put", |_, x| {
            let (index, source) = placed("put_", x, index, &source)?;
            Ok(at_positions(x, &index, &source, accumulate).named("put_")?)
        })
    }
}

#[pymethods]
impl PyTensor {
    /// Returns `input` with `out[index[i, j, …], j, …] = src[i, j, …]` for axis 0, and so on.
    ///
    /// Args:
    ///     index: integers, with as many axes as `input`.
    ///     src: a tensor at least as long as the index on every axis, or a number (also as `value`).
    ///     reduce: `"add"` or `"multiply"` to combine with what is there.
    ///
    /// Gradients go to the elements that stayed: those of `src` that were written last, and what was not
    /// overwritten.
    ///
    /// Raises:
    ///     IndexError: an index out of range.
    ///     ShapeError: shapes that do not fit.
    ///     TypeError: `src` has another dtype than `input`.
    #[pyo3(signature = (dim, index, src=None, *, value=None, reduce=None))]
    fn scatter(
        &self, py: Python<'_>, dim: Whole, index: AsTensor, src: Option<Relative<'_>>,
        value: Option<Relative<'_>>, reduce: Option<&str>,
    ) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let src = source_of(src, value)?;
        let reduce = combined(reduce)?;
        let writes = elements("scatter", x, dim.0, &index.0, &src)?;
        composed(py, "scatter", x, || match reduce {
            Some(reduce) => shaped(writes.reduced(reduce, true)?, x),
            None => shaped(writes.written()?, x),
        })
    }

    /// Computes `scatter` in place.
    #[pyo3(signature = (dim, index, src=None, *, value=None, reduce=None))]
    fn scatter_<'py>(
        slf: &This<'py>, dim: Whole, index: AsTensor, src: Option<Relative<'py>>,
        value: Option<Relative<'py>>, reduce: Option<&str>,
    ) -> PyResult<This<'py>> {
        let x = refresh(slf)?;
        let src = source_of(src, value)?;
        if let Some(reduce) = combined(reduce)? {
            return reduce_in_place(slf, dim.0, &index.0, &src, reduce, true);
        }
        let writes = elements("scatter", &x, dim.0, &index.0, &src)?;
        if x.device() != Device::Cpu || x.rank() == 0 {
            return in_place(slf, "scatter", |_, x| Ok(shaped(writes.written()?, x)?));
        }
        let Writes { x: own, axis, index, source } = writes;
        // Another handle to the value would have it copied.
        drop((x, own));
        scatter_in_place(slf, "scatter", axis, &index, &source, false)
    }

    /// Returns `input` with the elements of `src` combined at the places that `index` names along `dim`.
    ///
    /// Args:
    ///     reduce: `"sum"`, `"prod"`, `"mean"`, `"amax"` or `"amin"`; ties for an extreme share the gradient
    ///         evenly.
    ///     include_self: whether what is there takes part; places that nothing is written to keep it in any
    ///         case.
    #[pyo3(signature = (dim, index, src, reduce, *, include_self=true))]
    fn scatter_reduce(
        &self, py: Python<'_>, dim: Whole, index: AsTensor, src: Relative<'_>, reduce: &str,
        include_self: bool,
    ) -> PyResult<PyTensor> {
        let (x, name) = (&self.value()?.into_owned(), "scatter_reduce");
        check_reduction(name, reduce)?;
        let writes = elements(name, x, dim.0, &index.0, &src)?;
        composed(py, name, x, || shaped(writes.reduced(reduce, include_self)?, x))
    }

    /// Computes `scatter_reduce` in place.
    #[pyo3(signature = (dim, index, src, reduce, *, include_self=true))]
    fn scatter_reduce_<'py>(
        slf: &This<'py>, dim: Whole, index: AsTensor, src: Relative<'py>, reduce: &str, include_self: bool,
    ) -> PyResult<This<'py>> {
        reduce_in_place(slf, dim.0, &index.0, &src, reduce, include_self)
    }

    /// Returns `input` with the slices along `dim` at the indices `index` replaced by those of `source`.
    fn index_copy(
        &self, py: Python<'_>, dim: Whole, index: AsTensor, source: Relative<'_>,
    ) -> PyResult<PyTensor> {
        let (x, name) = (&self.value()?.into_owned(), "index_copy");
        let writes = slices(name, x, dim.0, &index.0, &source)?;
        composed(py, name, x, || {
            let (own, source) = widest(&writes.x, &writes.source)?;
            if own.device() == Device::Cpu {
                return shaped(with_slices(name, &own, writes.axis, &writes.index, &source)?, x);
            }
            shaped(Writes { x: own, source, ..writes }.of_elements()?.written()?, x)
        })
    }

    /// Computes `index_copy` in place.
    fn index_copy_<'py>(
        slf: &This<'py>, dim: Whole, index: AsTensor, source: Relative<'py>,
    ) -> PyResult<This<'py>> {
        let (x, name) = (refresh(slf)?, "index_copy");
        let writes = slices(name, &x, dim.0, &index.0, &source)?;
        if x.device() != Device::Cpu || x.rank() == 0 {
            return in_place(slf, name, |_, x| Ok(shaped(writes.of_elements()?.written()?, x)?));
        }
        let Writes { x: own, axis, index, source } = writes;
        // Another handle to the value would have it copied.
        drop((x, own));
        put_slices(slf, name, axis, &index, &source)
    }

    /// Returns `input` with the slices of `source` combined along `dim` at the indices of the vector `index`.
    ///
    /// Args:
    ///     reduce: `"prod"`, `"mean"`, `"amax"`, `"amin"` or `"sum"`, as in `scatter_reduce`.
    ///     include_self: whether what is there takes part.
    #[pyo3(signature = (dim, index, source, reduce, *, include_self=true))]
    fn index_reduce(
        &self, py: Python<'_>, dim: Whole, index: AsTensor, source: Relative<'_>, reduce: &str,
        include_self: bool,
    ) -> PyResult<PyTensor> {
        let (x, name) = (&self.value()?.into_owned(), "index_reduce");
        check_reduction(name, reduce)?;
        let writes = slices(name, x, dim.0, &index.0, &source)?.of_elements()?;
        composed(py, name, x, || shaped(writes.reduced(reduce, include_self)?, x))
    }

    /// Computes `index_reduce` in place.
    #[pyo3(signature = (dim, index, source, reduce, *, include_self=true))]
    fn index_reduce_<'py>(
        slf: &This<'py>, dim: Whole, index: AsTensor, source: Relative<'py>, reduce: &str, include_self: bool,
    ) -> PyResult<This<'py>> {
        let (x, name) = (refresh(slf)?, "index_reduce");
        check_reduction(name, reduce)?;
        let writes = slices(name, &x, dim.0, &index.0, &source)?.of_elements()?;
        combine_in_place(slf, name, x.rank(), &writes, reduce, include_self)
    }

    /// Returns `input` with the slices along `dim` at the indices `index` filled with a number.
    fn index_fill(&self, py: Python<'_>, dim: Whole, index: AsTensor, value: Arg) -> PyResult<PyTensor> {
        let (x, index) = (&self.value()?.into_owned(), index.0.flatten(0, -1)?);
        composed(py, "index_fill", x, || filled(x, dim.0, &index, value))
    }

    /// Computes `index_fill` in place.
    fn index_fill_<'py>(slf: &This<'py>, dim: Whole, index: AsTensor, value: Arg) -> PyResult<This<'py>> {
        let (x, index) = (refresh(slf)?, index.0.flatten(0, -1)?);
        if x.device() != Device::Cpu || x.rank() == 0 {
            return in_place(slf, "index_fill", |_, x| Ok(filled(x, dim.0, &index, value)?));
        }
        let (_, axis) = on_axis("index_fill", &x, dim.0)?;
        let value = fill(&x, value)?;
        drop(x);
        put_slices(slf, "index_fill", axis as i64, &index, &value)
    }

    /// Returns `input` after `input[indices] = values`, or `+=` that counts every index, with `accumulate`.
    #[pyo3(signature = (indices, values, accumulate=false))]
    fn index_put(
        &self, py: Python<'_>, indices: &Bound<'_, PyAny>, values: &Bound<'_, PyAny>, accumulate: bool,
    ) -> PyResult<PyTensor> {
        let key = PyTuple::new(py, indices.try_iter()?.collect::<PyResult<Vec<_>>>()?)?.into_any();
        let x = self.value()?.into_owned();
        check_values(&x, values)?;
        let x = match values.cast::<PyTensor>() {
            Ok(values) => widest(&x, &value(values)?)?.0,
            Err(_) => x,
        };
        Ok(put(py, &x, &key, values, accumulate)?.into())
    }

    /// Computes `index_put` in place.
    #[pyo3(signature = (indices, values, accumulate=false))]
    fn index_put_<'py>(
        slf: &This<'py>, indices: &Bound<'py, PyAny>, values: &Bound<'py, PyAny>, accumulate: bool,
    ) -> PyResult<This<'py>> {
        let py = slf.py();
        let key = PyTuple::new(py, indices.try_iter()?.collect::<PyResult<Vec<_>>>()?)?.into_any();
        let x = refresh(slf)?;
        check_values(&x, values)?;
        if accumulate && !adds(&x) {
            return in_place(slf, "index_put", |py, x| put(py, x, &key, values, true));
        }
        drop(x);
        write_at(slf, "index_put", &key, values, accumulate).map(|()| slf.clone())
    }

    /// Returns `input` with the elements where `mask` is true replaced by those of `source`, in their order.
    ///
    /// The two broadcast; `source` has the dtype of `input`.
    fn masked_scatter(&self, py: Python<'_>, mask: AsTensor, source: Relative<'_>) -> PyResult<PyTensor> {
        let (x, name) = (&self.value()?.into_owned(), "masked_scatter");
        check_mask(name, &mask.0)?;
        let source = given(name, x, &source)?.tensor_with(x)?.flatten(0, -1)?;
        composed(py, name, x, || masked(x, &mask.0, &source))
    }
}
