//! Rows with attributes as methods, which functions of `wengert.nn.functional` check the arguments for.

use crate::ops::pointwise::unary::Parametric;
use crate::py::tensor::PyTensor;
use pyo3::prelude::*;

#[pymethods]
impl PyTensor {
    /// Exponential linear unit: `x` above 0, else `alpha (exp(x) - 1)`, both times `scale`.
    fn _elu(&self, py: Python<'_>, alpha: f64, scale: f64) -> PyResult<PyTensor> {
        self.apply(py, |x| x.parametric(Parametric::Elu, [alpha, scale]))
    }

    /// Leaky rectified linear unit: `x` above 0, else `negative_slope x`.
    fn _leaky_relu(&self, py: Python<'_>, negative_slope: f64) -> PyResult<PyTensor> {
        self.apply(py, |x| x.parametric(Parametric::LeakyRelu, [negative_slope, 0.0]))
    }

    /// `x` moved towards 0 by `lambd`, and 0 within it.
    fn _softshrink(&self, py: Python<'_>, lambd: f64) -> PyResult<PyTensor> {
        self.apply(py, |x| x.bounded(Parametric::Softshrink, [lambd, 0.0]))
    }

    /// `x` where `|x| > lambd`, else 0.
    fn _hardshrink(&self, py: Python<'_>, lambd: f64) -> PyResult<PyTensor> {
        self.apply(py, |x| x.bounded(Parametric::Hardshrink, [lambd, 0.0]))
    }

    /// `log(x / (1 - x))` of `x` limited to `[low, high]`.
    fn _logit(&self, py: Python<'_>, low: f64, high: f64) -> PyResult<PyTensor> {
        self.apply(py, |x| x.parametric(Parametric::Logit, [low, high]))
    }

    /// Exponential linear unit with a smooth slope: `x` above 0, else `alpha (exp(x / alpha) - 1)`.
    fn _celu(&self, py: Python<'_>, alpha: f64) -> PyResult<PyTensor> {
        self.apply(py, |x| x.parametric(Parametric::Celu, [alpha, 0.0]))
    }
}
