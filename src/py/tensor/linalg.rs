//! Linear algebra and Fourier transforms behind `wengert.linalg` and `wengert.fft`, whose functions document
//! them.

use crate::error::Result;
use crate::py::args::run;
use crate::py::tensor::PyTensor;
use crate::tensor::Tensor;
use pyo3::prelude::*;

type Given<'py> = PyRef<'py, PyTensor>;

/// Estimates the work of a matrix algorithm: elements of the batch times the length of a row.
fn work(x: &Tensor) -> usize {
    let length = if x.rank() > 0 { x.shape().at(x.rank() - 1) } else { 1 };
    x.numel().saturating_mul(length)
}

/// Runs `f` on a tensor, without the interpreter lock if the work is large.
fn with<T: Send>(py: Python<'_>, x: &Given<'_>, f: impl FnOnce(&Tensor) -> Result<T> + Send) -> PyResult<T> {
    let x = x.value()?.into_owned();
    run(py, work(&x), || f(&x))
}

/// Runs `f` on two tensors.
fn with_two(
    py: Python<'_>,
    x: &Given<'_>,
    y: &Given<'_>,
    f: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor> + Send,
) -> PyResult<PyTensor> {
    let (x, y) = (x.value()?.into_owned(), y.value()?.into_owned());
    run(py, work(&x).saturating_add(work(&y)), || f(&x, &y)).map(PyTensor::from)
}

type Three = (PyTensor, PyTensor, PyTensor);

fn three(of: (Tensor, Tensor, Tensor)) -> Three {
    (of.0.into(), of.1.into(), of.2.into())
}

/// The lower triangular factor of symmetric positive definite matrices.
#[pyfunction]
fn _cholesky(py: Python<'_>, x: Given<'_>) -> PyResult<PyTensor> {
    with(py, &x, Tensor::cholesky).map(PyTensor::from)
}

/// The solution of a triangular system.
#[pyfunction]
fn _triangular_solve(
    py: Python<'_>,
    t: Given<'_>,
    b: Given<'_>,
    upper: bool,
    unit: bool,
) -> PyResult<PyTensor> {
    with_two(py, &t, &b, |t, b| t.triangular_solve(b, upper, unit))
}

/// Factors in one matrix, order of the rows, exchanges.
#[pyfunction]
fn _lu(py: Python<'_>, x: Given<'_>) -> PyResult<Three> {
    with(py, &x, Tensor::lu).map(three)
}

/// The solution of a system of equations.
#[pyfunction]
fn _solve(py: Python<'_>, a: Given<'_>, b: Given<'_>, adjoint: bool) -> PyResult<PyTensor> {
    with_two(py, &a, &b, |a, b| a.solve(b, adjoint))
}

/// The inverse.
#[pyfunction]
fn _inv(py: Python<'_>, x: Given<'_>) -> PyResult<PyTensor> {
    with(py, &x, Tensor::inverse).map(PyTensor::from)
}

/// `Q` and `R`.
#[pyfunction]
fn _qr(py: Python<'_>, x: Given<'_>, complete: bool) -> PyResult<(PyTensor, PyTensor)> {
    with(py, &x, |x| x.qr(complete)).map(|(q, r)| (q.into(), r.into()))
}

/// Eigenvalues and eigenvectors of symmetric matrices.
#[pyfunction]
fn _eigh(py: Python<'_>, x: Given<'_>) -> PyResult<(PyTensor, PyTensor)> {
    with(py, &x, Tensor::eigh).map(|(w, v)| (w.into(), v.into()))
}

/// Eigenvalues and eigenvectors of square matrices.
#[pyfunction]
fn _eig(py: Python<'_>, x: Given<'_>) -> PyResult<(PyTensor, PyTensor)> {
    with(py, &x, Tensor::eig).map(|(w, v)| (w.into(), v.into()))
}

/// `U`, the singular values, `V'`.
#[pyfunction]
fn _svd(py: Python<'_>, x: Given<'_>) -> PyResult<Three> {
    with(py, &x, Tensor::svd).map(three)
}

/// The determinant.
#[pyfunction]
fn _det(py: Python<'_>, x: Given<'_>) -> PyResult<PyTensor> {
    with(py, &x, Tensor::det).map(PyTensor::from)
}

/// The Moore-Penrose inverse.
#[pyfunction]
fn _pinv(py: Python<'_>, x: Given<'_>, absolute: f64, relative: f64) -> PyResult<PyTensor> {
    with(py, &x, |x| x.pinv(absolute, relative)).map(PyTensor::from)
}

/// The exponential of square matrices.
#[pyfunction]
fn _matrix_exp(py: Python<'_>, x: Given<'_>) -> PyResult<PyTensor> {
    with(py, &x, Tensor::matrix_exp).map(PyTensor::from)
}

/// The Fourier transform along an axis of pairs along the last axis.
#[pyfunction]
fn _fft(py: Python<'_>, x: Given<'_>, axis: i64, inverse: bool, scale: f64) -> PyResult<PyTensor> {
    let x = x.value()?.into_owned();
    run(py, x.numel(), || x.fft_of_pairs(axis, inverse, scale)).map(PyTensor::from)
}

/// The first half of the Fourier transform of real numbers, as pairs.
#[pyfunction]
fn _rfft(py: Python<'_>, x: Given<'_>, axis: i64, inverse: bool, scale: f64) -> PyResult<PyTensor> {
    let x = x.value()?.into_owned();
    run(py, x.numel(), || x.rfft_to_pairs(axis, inverse, scale)).map(PyTensor::from)
}

/// Real numbers from pairs, the first half of their Fourier transform.
#[pyfunction]
fn _irfft(
    py: Python<'_>,
    x: Given<'_>,
    axis: i64,
    n: usize,
    inverse: bool,
    scale: f64,
) -> PyResult<PyTensor> {
    let x = x.value()?.into_owned();
    run(py, x.numel(), || x.irfft_of_pairs(axis, n, inverse, scale)).map(PyTensor::from)
}

/// Registers the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add {
        ($($name:ident),* $(,)?) => { $(m.add_function(wrap_pyfunction!($name, m)?)?;)* };
    }
    add!(_cholesky, _triangular_solve, _lu, _solve, _inv, _qr, _eigh, _eig, _svd, _det, _pinv, _matrix_exp);
    add!(_fft, _rfft, _irfft);
    Ok(())
}
