//! Linear algebra and Fourier transforms behind `wengert.linalg` and `wengert.fft`, which document them.

use crate::py::prelude::*;

/// Estimates the work of a matrix algorithm: elements of the batch times the length of a row.
fn work(x: &Tensor) -> usize {
    let length = if x.rank() > 0 { x.shape().at(x.rank() - 1) } else { 1 };
    x.numel().saturating_mul(length)
}

type Three = (Tensor, Tensor, Tensor);

functions! {
    /// The lower triangular factor of symmetric positive definite matrices.
    _cholesky(py: Python<'_>, x: Tensor) -> PyResult<Tensor> = run(py, work(&x), || x.cholesky());
    /// The solution of a triangular system.
    _triangular_solve(py: Python<'_>, t: Tensor, b: Tensor, upper: bool, unit: bool) -> PyResult<Tensor> =
        run(py, work(&t).saturating_add(work(&b)), || t.triangular_solve(&b, upper, unit));
    /// Factors in one matrix, order of the rows, exchanges.
    _lu(py: Python<'_>, x: Tensor) -> PyResult<Three> = run(py, work(&x), || x.lu());
    /// The solution of a system of equations.
    _solve(py: Python<'_>, a: Tensor, b: Tensor, adjoint: bool) -> PyResult<Tensor> =
        run(py, work(&a).saturating_add(work(&b)), || a.solve(&b, adjoint));
    /// The inverse.
    _inv(py: Python<'_>, x: Tensor) -> PyResult<Tensor> = run(py, work(&x), || x.inverse());
    /// `Q` and `R`.
    _qr(py: Python<'_>, x: Tensor, complete: bool) -> PyResult<(Tensor, Tensor)> =
        run(py, work(&x), || x.qr(complete));
    /// Eigenvalues and eigenvectors of symmetric matrices.
    _eigh(py: Python<'_>, x: Tensor) -> PyResult<(Tensor, Tensor)> = run(py, work(&x), || x.eigh());
    /// Eigenvalues and eigenvectors of square matrices.
    _eig(py: Python<'_>, x: Tensor) -> PyResult<(Tensor, Tensor)> = run(py, work(&x), || x.eig());
    /// `U`, the singular values, `V'`.
    _svd(py: Python<'_>, x: Tensor) -> PyResult<Three> = run(py, work(&x), || x.svd());
    /// The determinant.
    _det(py: Python<'_>, x: Tensor) -> PyResult<Tensor> = run(py, work(&x), || x.det());
    /// The Moore-Penrose inverse.
    _pinv(py: Python<'_>, x: Tensor, absolute: f64, relative: f64) -> PyResult<Tensor> =
        run(py, work(&x), || x.pinv(absolute, relative));
    /// The exponential of square matrices.
    _matrix_exp(py: Python<'_>, x: Tensor) -> PyResult<Tensor> = run(py, work(&x), || x.matrix_exp());
    /// The Fourier transform along an axis of pairs along the last axis.
    _fft(py: Python<'_>, x: Tensor, axis: i64, inverse: bool, scale: f64) -> PyResult<Tensor> =
        run(py, x.numel(), || x.fft_of_pairs(axis, inverse, scale));
    /// The first half of the Fourier transform of real numbers, as pairs.
    _rfft(py: Python<'_>, x: Tensor, axis: i64, inverse: bool, scale: f64) -> PyResult<Tensor> =
        run(py, x.numel(), || x.rfft_to_pairs(axis, inverse, scale));
    /// Real numbers from pairs, the first half of their Fourier transform.
    _irfft(py: Python<'_>, x: Tensor, axis: i64, n: usize, inverse: bool, scale: f64) -> PyResult<Tensor> =
        run(py, x.numel(), || x.irfft_of_pairs(axis, n, inverse, scale));
}

exports! {
    functions: _cholesky, _triangular_solve, _lu, _solve, _inv, _qr, _eigh, _eig, _svd,
        _det, _pinv, _matrix_exp, _fft, _rfft, _irfft
}
