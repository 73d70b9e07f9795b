//! Sums and means without NaN, extremes, distances and integrals.

use crate::py::args::Dims;
use crate::py::composed::pointwise::meeting;
use crate::py::composed::shapes::{Axis, on_axis};
use crate::py::composed::{check_floats, composed, in_float32};
use crate::py::data::create::Any;
use crate::py::data::dtype::optional_dtype;
use crate::py::prelude::*;
use crate::py::relative::{Relative, operand};
use crate::py::tensor::reduce::{difference, norm};
use crate::py::tensor::scan::pair;
use crate::py::writes::aliasing::unaliased;

/// The sum of the elements that are not NaN.
fn nansum(x: &Tensor, dims: &Dims, keep: bool) -> Result<Tensor> {
    let kept = if x.dtype().is_differentiable() { &x.masked_fill(&x.ne(x)?, 0.0)? } else { x };
    kept.sum(dims.get(), keep)
}

/// The mean of the elements that are not NaN.
fn nanmean(x: &Tensor, dims: &Dims, keep: bool) -> Result<Tensor> {
    check_floats("nanmean", x)?;
    let there = x.ne(x)?.logical_not()?.cast(x.dtype())?;
    nansum(x, dims, keep)?.div(&there.sum(dims.get(), keep)?)
}

/// The `p`-norm of a difference; of halves computed in float32 and rounded once, but under autocast.
fn distance(x: &Tensor, y: &Tensor, p: f64) -> Result<Tensor> {
    let kind = meeting(x, y);
    let wide = if kind.is_half() { DType::F32 } else { kind };
    let out = norm(&x.cast(wide)?.sub(&y.cast(wide)?)?, p, None, false)?;
    if interp::autocasting() { Ok(out) } else { out.cast(if kind.is_half() { kind } else { out.dtype() }) }
}

methods! {
    /// Returns the sum of the elements that are not NaN, computed in `dtype` if that is given.
    #[pyo3(
        signature = (dim=Dims(None), keepdim=false, *, dtype=None),
        text_signature = "($self, dim=None, keepdim=False, *, dtype=None)"
    )]
    nansum(dim: Dims, keepdim: bool, dtype: Any) = {
        let dtype = optional_dtype(dtype)?;
        move |x| nansum(&x.cast(dtype.unwrap_or(x.dtype()))?, &dim, keepdim).named("nansum")
    };
    /// Returns the mean of the elements that are not NaN, computed in `dtype` if that is given; NaN where
    /// there are none.
    #[pyo3(
        signature = (dim=Dims(None), keepdim=false, *, dtype=None),
        text_signature = "($self, dim=None, keepdim=False, *, dtype=None)"
    )]
    nanmean(dim: Dims, keepdim: bool, dtype: Any) = {
        let dtype = optional_dtype(dtype)?;
        let mean = move |x: &Tensor| nanmean(&x.cast(dtype.unwrap_or(x.dtype()))?, &dim, keepdim);
        move |x| in_float32(x, [], |x, []| mean(x)).named("nanmean")
    };
}

#[pymethods]
impl PyTensor {
    /// Returns the smallest and the largest element, of all or along `dim`; ties share the gradient evenly.
    #[pyo3(
        signature = (*, dim=Dims(None), keepdim=false),
        text_signature = "($self, *, dim=None, keepdim=False)"
    )]
    fn aminmax<'py>(&self, py: Python<'py>, dim: Dims, keepdim: bool) -> PyResult<Bound<'py, PyAny>> {
        let x = &self.value()?.into_owned();
        let [least, most] = [Tensor::amin, Tensor::amax].map(|extreme| {
            run(py, x.numel(), || unaliased(extreme(x, dim.get(), keepdim).named("aminmax")?, x))
        });
        pair(py, "MinMax", (least?, most?))
    }

    /// Returns the `p`-norm of the difference of all elements; the two broadcast.
    #[pyo3(signature = (other, p=2.0))]
    fn dist(&self, py: Python<'_>, other: Relative<'_>, p: f64) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let other = other.beside("dist", x)?;
        composed(py, "dist", x, || distance(x, &other, p))
    }
}

/// The areas between neighbouring points along an axis.
fn areas(name: &str, y: &Bound<'_, PyAny>, x: Option<Relative<'_>>, dx: &Arg, dim: i64) -> PyResult<Tensor> {
    let y = operand(name, y)?;
    if y.rank() == 0 {
        return Err(Error::shape(format!("{name}: at least one axis expected, got a number")).into());
    }
    // Floating point numbers do not wrap where they are added.
    let y = if y.dtype().is_differentiable() { y } else { y.cast(DType::F32)? };
    let (_, axis) = on_axis(name, &y, dim)?;
    let widths = x.map(|x| x.beside(name, &y)).transpose()?;
    let (length, at) = (y.shape().at(axis), axis as i64);
    let count = length.saturating_sub(1);
    let found = || {
        let ends = y.narrow(at, length - count, count)?.add(&y.narrow(at, 0, count)?)?;
        let means = ends.div(2i64)?;
        let Some(widths) = widths else { return means.mul(dx.operand()) };
        let is_exact = widths.dtype().is_differentiable() || widths.device() != Device::Cpu;
        let widths = if is_exact { widths } else { widths.cast(DType::I64)? };
        if widths.rank() != 1 {
            return means.mul(&difference(&widths, at)?);
        }
        let mut lengths = vec![1; y.rank()];
        lengths[axis] = widths.numel().saturating_sub(1);
        means.mul(&difference(&widths, 0)?.reshape(&Shape::new(&lengths)?)?)
    };
    Ok(found().named(name)?)
}

/// Functions of the areas between points along an axis.
macro_rules! integrals {
    ($($(#[$doc:meta])* $name:ident = |$areas:ident, $axis:ident| $value:expr;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(
                signature = (y, x=None, *, dx=Arg::Float(1.0), dim=Axis(Ok(-1))),
                text_signature = "(y, x=None, *, dx=1.0, dim=-1)"
            )]
            fn $name(
                y: &Bound<'_, PyAny>, x: Option<Relative<'_>>, dx: Arg, dim: Axis,
            ) -> PyResult<PyTensor> {
                let name = stringify!($name);
                let $axis = dim.of(name)?;
                let $areas = areas(name, y, x, &dx, $axis)?;
                run(y.py(), $areas.numel(), || $value.named(name)).map(PyTensor::from)
            }
        )*
    };
}

integrals! {
    /// Returns the integral of `y` along `dim` by the trapezoidal rule, at points `x` or at steps of `dx`.
    trapezoid = |areas, axis| areas.sum(Some(&[axis]), false);
    /// Returns the integrals of `y` up to each point but the first, by the trapezoidal rule.
    cumulative_trapezoid = |areas, axis| areas.cumsum(axis);
}

exports! { functions: trapezoid, cumulative_trapezoid }
