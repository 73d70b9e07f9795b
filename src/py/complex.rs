//! Complex tensors: their parts, and how they are made of these.

use crate::ops::complex;
use crate::py::args::{AsTensor, run};
use crate::py::error::type_error;
use crate::py::tensor::PyTensor;
use crate::py::view::{self, value};
use crate::tensor::Tensor;
use pyo3::prelude::*;

/// A view of other elements than those of the tensor. It is no view whose writes a tape could follow, so that what
/// is recorded gets memory of its own.
fn seen(
    obj: &Bound<'_, PyTensor>,
    f: impl Fn(&Tensor) -> crate::error::Result<Tensor>,
) -> PyResult<PyTensor> {
    let t = value(obj)?;
    let out = f(&t)?;
    Ok(if t.traced().is_some() { out.copied()? } else { out }.into())
}

#[pymethods]
impl PyTensor {
    /// Whether the dtype is complex.
    fn is_complex(&self) -> bool {
        self.look().t.dtype().is_complex()
    }

    /// The real part, which shares memory unless it is recorded; a real tensor is its own.
    #[getter]
    fn real<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTensor>> {
        if !slf.get().is_complex() {
            return Ok(slf.clone());
        }
        Bound::new(slf.py(), seen(slf, Tensor::real)?)
    }

    /// The imaginary part, which shares memory unless it is recorded. Raises TypeError for a real tensor.
    #[getter]
    fn imag(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        seen(slf, Tensor::imag)
    }

    /// The complex conjugate, in memory of its own; a real tensor is its own.
    fn conj(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.apply(py, |x| x.conj())
    }

    /// The last two axes exchanged, conjugated: the adjoint of each matrix.
    #[getter(mH)]
    fn adjoint_matrices(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        if slf.get().is_complex() {
            return slf.get().apply(slf.py(), |x| x.transpose(-2, -1)?.conj());
        }
        view::apply(slf, |x| x.transpose(-2, -1))
    }

    /// The matrix transposed and conjugated: its adjoint.
    #[getter(H)]
    fn adjoint_matrix(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        let rank = slf.get().look().t.rank();
        if rank != 2 {
            return Err(type_error(format!(
                "H: a matrix expected, got {rank} axes; use mH for the last two of several axes"
            )));
        }
        Self::adjoint_matrices(slf)
    }

    /// The angle from the positive real axis in radians, in `[-pi, pi]`: 0 or pi for real numbers.
    fn angle(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.apply(py, |x| x.angle())
    }

    /// `x / |x|`, and 0 at 0; the sign of real numbers.
    fn sgn(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.apply(py, |x| x.sign())
    }
}

/// Pairs of real and imaginary parts along a new last axis; memory is shared unless recorded. VJP: `view_as_complex(g)`; saves nothing.
#[pyfunction]
fn view_as_real(input: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
    seen(input, Tensor::view_as_real)
}

/// Complex numbers of the pairs along the last axis, which has length 2, of float32 or float64; memory is shared
/// where each pair lies side by side and nothing is recorded. VJP: `view_as_real(g)`; saves nothing.
#[pyfunction]
fn view_as_complex(input: &Bound<'_, PyTensor>) -> PyResult<PyTensor> {
    seen(input, Tensor::view_as_complex)
}

/// `real + i imag`, broadcast together: complex128 where either is float64, else complex64.
#[pyfunction(name = "complex")]
fn complex_(py: Python<'_>, real: AsTensor, imag: AsTensor) -> PyResult<PyTensor> {
    let elements = real.0.numel().max(imag.0.numel());
    run(py, elements, || complex::join(&real.0, &imag.0)).map(PyTensor::from)
}

/// `abs * (cos(angle) + i sin(angle))`.
#[pyfunction]
fn polar(py: Python<'_>, abs: AsTensor, angle: AsTensor) -> PyResult<PyTensor> {
    let elements = abs.0.numel().max(angle.0.numel());
    let part = |turn: crate::error::Result<Tensor>| abs.0.mul(&turn?);
    run(py, elements, || complex::join(&part(angle.0.cos())?, &part(angle.0.sin())?)).map(PyTensor::from)
}

/// Registers the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(view_as_real, m)?)?;
    m.add_function(wrap_pyfunction!(view_as_complex, m)?)?;
    m.add_function(wrap_pyfunction!(complex_, m)?)?;
    m.add_function(wrap_pyfunction!(polar, m)?)
}
