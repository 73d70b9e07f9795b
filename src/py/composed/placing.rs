//! Tensors with a part replaced or limited: a slice, a diagonal, slices that are too long.

use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::operand::binary;
use crate::ops::views::strided::Part;
use crate::ops::writes::rows::Rows;
use crate::py::args::position;
use crate::py::composed::pointwise::number;
use crate::py::composed::shapes::on_axis;
use crate::py::composed::{check_axes, composed};
use crate::py::prelude::*;
use crate::py::relative::Relative;
use crate::py::tensor::index::{fitted, replacement};
use crate::py::tensor::rearrange::diagonal;
use crate::py::tensor::reduce::norm;
use crate::py::writes::assign::This;
use crate::py::writes::inplace::overwrite_rows;

/// Raises unless `src` has the shape of the part that it replaces.
fn check_part(name: &str, src: &Tensor, expected: Shape, what: &str) -> Result<()> {
    if src.shape() == expected {
        return Ok(());
    }
    Err(Error::shape(format!("{name}: src has shape {}, expected {expected} as {what}", src.shape())))
}

/// `x` with slices along an axis, at places on the CPU, replaced by those of `src`.
fn replaced(x: &Tensor, axis: usize, places: &[i64], src: &Tensor) -> Result<Tensor> {
    let index = Tensor::from_slice(places, &[places.len()])?;
    let rows = Rows::of_slices(&Part::whole(&x.shape()), x.numel(), axis, &index)?;
    x.put_rows(&rows, &src.cast(x.dtype())?, false)
}

/// `x` with a diagonal replaced by `src`, of its shape.
fn with_diagonal(x: &Tensor, src: &Tensor, (offset, a, b): (i64, i64, i64)) -> Result<Tensor> {
    let places = Tensor::arange(0.0, 1.0, x.numel(), DType::I64, Device::Cpu)?.reshape(&x.shape())?;
    let places = diagonal(&places, offset, a, b)?;
    check_part("diagonal_scatter", src, places.shape(), "the diagonal")?;
    let flat = x.flatten(0, -1)?;
    let rows = Rows::of_slices(&Part::whole(&flat.shape()), x.numel(), 0, &places.flatten(0, -1)?)?;
    flat.put_rows(&rows, &src.flatten(0, -1)?.cast(x.dtype())?, false)?.reshape(&x.shape())
}

/// `x` with every slice along an axis whose norm exceeds `most` scaled down to it.
fn limited(x: &Tensor, p: f64, axis: i64, most: f64) -> Result<Tensor> {
    let (wide, axis) = on_axis("renorm", x, axis)?;
    let others: Vec<i64> = (0..wide.rank()).filter(|&k| k != axis).map(|k| k as i64).collect();
    let size = if others.is_empty() { wide.abs()? } else { norm(&wide, p, Some(&others), true)? };
    // As PyTorch, with 1e-7 more in the divisor, so that rounding does not leave a norm above the limit.
    let factor = binary(Binary::Div, most.into(), (&size.add(1e-7)?).into())?;
    wide.mul(&size.gt(most)?.select(&factor, 1.0)?)?.reshape(&x.shape())
}

#[pymethods]
impl PyTensor {
    /// Returns `input` with the slice at `index` along `dim` replaced by `src`, which has one axis less.
    fn select_scatter(
        &self, py: Python<'_>, src: Relative<'_>, dim: Whole, index: &Bound<'_, PyAny>,
    ) -> PyResult<PyTensor> {
        let (x, name) = (&self.value()?.into_owned(), "select_scatter");
        check_axes(name, x, 1)?;
        let axis = x.shape().axis(dim.0, name)?;
        if !index.is_instance_of::<PyInt>() {
            let class = index.get_type().name()?;
            return Err(type_error(format!("{name}: index must be an integer, got {class}")));
        }
        let (at, length) = (position(index)?, x.shape().at(axis) as i64);
        if at < -length || at >= length {
            return Err(Error::index(format!(
                "{name}: index {at} is out of range for axis {axis} of length {length} of shape {}",
                x.shape()
            ))
            .into());
        }
        let src = src.beside(name, x)?;
        check_part(name, &src, x.shape().removed(axis), "the part it replaces")?;
        composed(py, name, x, || replaced(x, axis, &[at.rem_euclid(length)], &src.unsqueeze(axis as i64)?))
    }

    /// Returns `input` with the elements `start`, `start + step`, … before `end` along `dim` replaced by
    /// those of `src`.
    #[pyo3(signature = (src, dim=0, start=None, end=None, step=1))]
    fn slice_scatter(
        &self, py: Python<'_>, src: Relative<'_>, #[pyo3(from_py_with = whole)] dim: i64, start: Option<i64>,
        end: Option<i64>, step: i64,
    ) -> PyResult<PyTensor> {
        let (x, name) = (&self.value()?.into_owned(), "slice_scatter");
        check_axes(name, x, 1)?;
        let axis = x.shape().axis(dim, name)?;
        if step < 1 {
            return Err(value_error(format!("{name}: step must be at least 1, got {step}")));
        }
        let length = x.shape().at(axis) as i64;
        let at = |i: i64| if i < 0 { i.saturating_add(length) } else { i }.clamp(0, length);
        let range = start.map_or(0, at)..end.map_or(length, at);
        let places: Vec<i64> = range.step_by(step as usize).collect();
        let src = src.beside(name, x)?;
        check_part(name, &src, x.shape().with(axis, places.len()), "the part it replaces")?;
        composed(py, name, x, || replaced(x, axis, &places, &src))
    }

    /// Returns `input` with a diagonal replaced by `src`, of the shape of
    /// `input.diagonal(offset, dim1, dim2)`.
    #[pyo3(signature = (src, offset=0, dim1=0, dim2=1))]
    fn diagonal_scatter(
        &self, py: Python<'_>, src: Relative<'_>, #[pyo3(from_py_with = whole)] offset: i64,
        #[pyo3(from_py_with = whole)] dim1: i64, #[pyo3(from_py_with = whole)] dim2: i64,
    ) -> PyResult<PyTensor> {
        let (x, name) = (&self.value()?.into_owned(), "diagonal_scatter");
        let src = src.beside(name, x)?;
        composed(py, name, x, || with_diagonal(x, &src, (offset, dim1, dim2)))
    }

    /// Sets the main diagonal, where all indices are equal, to a number, in place.
    ///
    /// Args:
    ///     wrap: of a matrix with more rows than columns, let the diagonal begin anew below its end, after
    ///         one row.
    ///
    /// Raises:
    ///     ShapeError: fewer than two axes, or more than two of different lengths.
    #[pyo3(signature = (fill_value, wrap=false))]
    fn fill_diagonal_<'py>(
        slf: &This<'py>, fill_value: &Bound<'py, PyAny>, wrap: bool,
    ) -> PyResult<This<'py>> {
        let x = refresh(slf)?;
        let (own, rank) = (x.shape(), x.rank());
        if rank < 2 || (rank > 2 && own.iter().any(|n| n != own.at(0))) {
            return Err(Error::shape(format!(
                "fill_diagonal_: a matrix expected, or more axes of one length, got shape {own}"
            ))
            .into());
        }
        let columns = own.at(1);
        // Row by row, the diagonal moves one column on; after the last column one row is left out.
        let count =
            if wrap && rank == 2 { own.numel().div_ceil(columns + 1) } else { own.iter().min().unwrap_or(0) };
        let places = Tensor::arange(0.0, 1.0, count, DType::I64, Device::Cpu)?;
        let indices = if wrap && rank == 2 {
            let flat = places.mul(columns as i64 + 1)?;
            let width = columns.max(1) as i64;
            vec![Some(flat.floor_divide(width)?), Some(flat.remainder(width)?)]
        } else {
            vec![Some(places); rank]
        };
        let fill = replacement(&x, fill_value)?;
        drop(x);
        let rows = |part: &Part, numel: usize| Rows::of_index(part, numel, &indices, false);
        overwrite_rows(slf, "fill_diagonal", rows, |shape| fitted(&fill, shape), false).map(|()| slf.clone())
    }

    /// Returns `input` with every slice along `dim` whose `p`-norm exceeds `maxnorm` scaled down to it.
    fn renorm(
        &self, py: Python<'_>, p: &Bound<'_, PyAny>, dim: Whole, maxnorm: &Bound<'_, PyAny>,
    ) -> PyResult<PyTensor> {
        let given = |argument: &str, x: &Bound<'_, PyAny>| {
            let none = || type_error(format!("renorm: {argument} must be a number, got None"));
            number("renorm", argument, Some(x))?.ok_or_else(none)
        };
        let (order, most) = (given("p", p)?, given("maxnorm", maxnorm)?);
        if order.is_nan() || order <= 0.0 || most < 0.0 {
            return Err(value_error(format!(
                "renorm: a positive p and a maxnorm that is not negative expected, got {p} and {maxnorm}"
            )));
        }
        let x = &self.value()?.into_owned();
        composed(py, "renorm", x, || limited(x, order, dim.0, most))
    }
}
