//! Complex tensors: their parts, and construction from parts.

use crate::array::defaults;
use crate::ops::complex;
use crate::py::prelude::*;
use crate::py::tensor::attach;

#[pymethods]
impl PyTensor {
    /// Returns the real part, a view; of a real tensor itself. Assignment writes it in place.
    #[getter]
    pub fn real<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTensor>> {
        if !slf.get().is_complex() {
            return Ok(slf.clone());
        }
        Bound::new(slf.py(), attach::across(slf, Tensor::real)?)
    }

    #[setter]
    fn set_real(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::real(slf)?.call_method1("copy_", (value,)).map(|_| ())
    }

    /// Returns the imaginary part, a view. Raises TypeError for a real tensor. Assignment writes it in place.
    #[getter]
    pub fn imag(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        attach::across(slf, Tensor::imag)
    }

    #[setter]
    fn set_imag(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        Bound::new(slf.py(), Self::imag(slf)?)?.call_method1("copy_", (value,)).map(|_| ())
    }

    /// Returns the complex conjugate, in memory of its own; of a real tensor the tensor itself.
    fn conj<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTensor>> {
        if !slf.get().is_complex() {
            return Ok(slf.clone());
        }
        Bound::new(slf.py(), slf.get().apply(slf.py(), |x| x.conj())?)
    }

    /// The last two axes exchanged, conjugated: the adjoint of each matrix.
    #[getter(mH)]
    pub fn adjoint_matrices(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        let is_number = slf.get().read().t.rank() == 0;
        let exchanged = |x: &Tensor| if is_number { Ok(x.clone()) } else { x.transpose(-2, -1) };
        if slf.get().is_complex() {
            return slf.get().apply(slf.py(), |x| exchanged(x)?.conj());
        }
        attach::apply(slf, exchanged)
    }

    /// The matrix transposed and conjugated: its adjoint.
    #[getter(H)]
    fn adjoint_matrix(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        let rank = slf.get().read().t.rank();
        if rank != 2 && rank != 0 {
            return Err(type_error(format!(
                "H: a matrix expected, got {rank} axes; use mH for the last two of several axes"
            )));
        }
        Self::adjoint_matrices(slf)
    }
}

methods! {
    /// Returns the angle from the positive real axis in radians, in `[-pi, pi]`: 0 or pi for real numbers.
    angle() = |x| x.angle();
    /// Returns `x / |x|`, and 0 at 0; the sign of real numbers.
    sgn() = |x| x.sign();
}

functions! {
    /// Returns the pairs of real and imaginary parts along a new last axis, a view. VJP:
    /// `view_as_complex(g)`; saves nothing.
    view_as_real(input: &Bound<'_, PyTensor>) -> PyResult<PyTensor> =
        attach::across(input, Tensor::view_as_real);
    /// Returns the complex numbers of the pairs along the last axis, which has length 2, of float32 or
    /// float64; a view where each pair lies side by side. VJP: `view_as_real(g)`; saves nothing.
    view_as_complex(input: &Bound<'_, PyTensor>) -> PyResult<PyTensor> =
        attach::across(input, Tensor::view_as_complex);
}

/// Returns `real + i imag`, broadcast together: complex128 where either is float64, else complex64.
#[pyfunction(name = "complex")]
fn complex_(py: Python<'_>, real: Arg, imag: Arg) -> PyResult<PyTensor> {
    let (real, imag) = pair("complex", &real, &imag)?;
    let elements = real.numel().max(imag.numel());
    run(py, elements, || complex::join(&real, &imag).named("complex")).map(PyTensor::from)
}

/// Returns `abs * (cos(angle) + i sin(angle))`.
#[pyfunction]
fn polar(py: Python<'_>, abs: Arg, angle: Arg) -> PyResult<PyTensor> {
    let (abs, angle) = pair("polar", &abs, &angle)?;
    let part = |turn: crate::error::Result<Tensor>| abs.mul(&turn?);
    let joined = || complex::join(&part(angle.cos())?, &part(angle.sin())?);
    run(py, abs.numel().max(angle.numel()), || joined().named("polar")).map(PyTensor::from)
}

/// Returns two real operands as tensors; a number takes the dtype of the tensor beside it.
fn pair(name: &str, x: &Arg, y: &Arg) -> crate::error::Result<(Tensor, Tensor)> {
    let alone = || Tensor::scalar(0.0, defaults::float(), Device::Cpu);
    let (x, y) = match (x, y) {
        (Arg::Tensor(t), other) => (t.clone(), other.tensor_with(t)?),
        (other, Arg::Tensor(t)) => (other.tensor_with(t)?, t.clone()),
        (x, y) => (x.tensor_with(&alone()?)?, y.tensor_with(&alone()?)?),
    };
    let complex = [&x, &y].into_iter().map(Tensor::dtype).find(|dtype| dtype.is_complex());
    match complex {
        None => Ok((x, y)),
        Some(dtype) => {
            Err(Error::dtype(format!("{name}: real tensors expected, got {dtype}; give .real or .imag")))
        }
    }
}

exports! { functions: view_as_real, view_as_complex, complex_, polar }
