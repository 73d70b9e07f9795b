//! Linear algebra and Fourier transforms behind `wengert.linalg` and `wengert.fft`, whose functions document
//! them.

use crate::py::prelude::*;

/// Estimates the work of a matrix algorithm: elements of the batch times the length of a row.
fn work(x: &Tensor) -> usize {
    let length = if x.rank() > 0 { x.shape().at(x.rank() - 1) } else { 1 };
    x.numel().saturating_mul(length)
}

type Three = (PyTensor, PyTensor, PyTensor);

fn two((a, b): (Tensor, Tensor)) -> (PyTensor, PyTensor) {
    (a.into(), b.into())
}

fn three((a, b, c): (Tensor, Tensor, Tensor)) -> Three {
    (a.into(), b.into(), c.into())
}

/// Functions of one tensor, or of two, and of numbers: what they compute, and the objects made of that. They
/// run without the interpreter lock if there is much work, as a function of each tensor estimates it.
macro_rules! functions {
    ($register:ident, $work:path: $(
        $(#[$doc:meta])*
        $name:ident($x:ident $(& $y:ident)? $(, $number:ident: $type:ty)*) -> $out:ty =
            $value:expr, $wrap:path;
    )*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            fn $name(
                py: Python<'_>,
                $x: PyRef<'_, PyTensor>,
                $($y: PyRef<'_, PyTensor>,)?
                $($number: $type,)*
            ) -> PyResult<$out> {
                let $x = $x.value()?.into_owned();
                $(let $y = $y.value()?.into_owned();)?
                let work = $work(&$x)$(.saturating_add($work(&$y)))?;
                run(py, work, || $value).map($wrap)
            }
        )*

        fn $register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            $(m.add_function(wrap_pyfunction!($name, m)?)?;)*
            Ok(())
        }
    };
}

functions! { matrices, work:
    /// The lower triangular factor of symmetric positive definite matrices.
    _cholesky(x) -> PyTensor = x.cholesky(), PyTensor::from;
    /// The solution of a triangular system.
    _triangular_solve(t & b, upper: bool, unit: bool) -> PyTensor =
        t.triangular_solve(&b, upper, unit), PyTensor::from;
    /// Factors in one matrix, order of the rows, exchanges.
    _lu(x) -> Three = x.lu(), three;
    /// The solution of a system of equations.
    _solve(a & b, adjoint: bool) -> PyTensor = a.solve(&b, adjoint), PyTensor::from;
    /// The inverse.
    _inv(x) -> PyTensor = x.inverse(), PyTensor::from;
    /// `Q` and `R`.
    _qr(x, complete: bool) -> (PyTensor, PyTensor) = x.qr(complete), two;
    /// Eigenvalues and eigenvectors of symmetric matrices.
    _eigh(x) -> (PyTensor, PyTensor) = x.eigh(), two;
    /// Eigenvalues and eigenvectors of square matrices.
    _eig(x) -> (PyTensor, PyTensor) = x.eig(), two;
    /// `U`, the singular values, `V'`.
    _svd(x) -> Three = x.svd(), three;
    /// The determinant.
    _det(x) -> PyTensor = x.det(), PyTensor::from;
    /// The Moore-Penrose inverse.
    _pinv(x, absolute: f64, relative: f64) -> PyTensor = x.pinv(absolute, relative), PyTensor::from;
    /// The exponential of square matrices.
    _matrix_exp(x) -> PyTensor = x.matrix_exp(), PyTensor::from;
}

functions! { transforms, Tensor::numel:
    /// The Fourier transform along an axis of pairs along the last axis.
    _fft(x, axis: i64, inverse: bool, scale: f64) -> PyTensor =
        x.fft_of_pairs(axis, inverse, scale), PyTensor::from;
    /// The first half of the Fourier transform of real numbers, as pairs.
    _rfft(x, axis: i64, inverse: bool, scale: f64) -> PyTensor =
        x.rfft_to_pairs(axis, inverse, scale), PyTensor::from;
    /// Real numbers from pairs, the first half of their Fourier transform.
    _irfft(x, axis: i64, n: usize, inverse: bool, scale: f64) -> PyTensor =
        x.irfft_of_pairs(axis, n, inverse, scale), PyTensor::from;
}

/// Registers the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    matrices(m)?;
    transforms(m)
}
