//! Eigenvalues and eigenvectors of self-adjoint and of general square matrices.

use super::prelude::*;
use super::svd::Parts;
use faer::linalg::evd::{
    ComputeEigenvectors, EvdError, evd_cplx, evd_real, evd_scratch, self_adjoint_evd,
    self_adjoint_evd_scratch,
};

/// Returns the eigenvalues in ascending order and the eigenvectors as columns; reads the lower triangle.
pub fn eigh(x: &Array) -> Result<[Array; 2]> {
    in_field!(x, eigh_of(x))
}

fn eigh_of<T: Field>(x: &Array) -> Result<[Array; 2]> {
    let given = Matrices::<T>::of(x)?;
    let n = given.n;
    let (values, vectors) = (given.fresh::<f64>(&[n])?, given.fresh::<T>(&[n, n])?);
    if n > 0 {
        let memory = self_adjoint_evd_scratch::<T>(n, ComputeEigenvectors::Yes, Par::Seq, Spec::default());
        let fresh =
            || (Mat::<T>::zeros(n, n), Diag::<T>::zeros(n), Mat::<T>::zeros(n, n), MemBuffer::new(memory));
        given.each("eigh", given.cost(9, 20), fresh, |(a, w, v, memory), matrix, i| {
            a.copy_from_triangular_lower(matrix);
            // The diagonal of a self-adjoint matrix is real.
            (0..n).for_each(|k| a[(k, k)] = T::from_real_impl(&a[(k, k)].re()));
            let scale = scale(magnitude(a.as_ref()).ok_or(Failure::NotFinite)?);
            rescale(a, [scale]);
            let stack = MemStack::new(memory);
            self_adjoint_evd(a.as_ref(), w.as_mut(), Some(v.as_mut()), Par::Seq, stack, Spec::default())
                .map_err(|_| Failure::NoConvergence)?;
            values.matrix(i).iter_mut().enumerate().for_each(|(k, to)| *to = w[k].re() / scale);
            vectors.put(i, v.as_ref());
            Ok(())
        })?;
    }
    Ok([values.finish(given.dtype)?, vectors.finish(given.dtype)?])
}

/// Returns the eigenvalues, unordered, and as columns eigenvectors of length 1 whose largest element is real;
/// both complex. Eigenvalues of a real matrix are real or come in conjugate pairs.
pub fn eig(x: &Array) -> Result<[Array; 2]> {
    if x.dtype().is_complex() { eig_of(x, of_complex, &[scale]) } else { eig_of(x, of_real, &[lift, scale]) }
}

/// A function that writes eigenvalues and eigenvectors of a matrix of at least one row.
type Decompose<T> = fn(&Mat<T>, &mut [c64], &mut Mat<c64>, &mut MemBuffer) -> Result<(), EvdError>;

/// The binary exponent that [`lift`] gives to the largest element: its fourth power is finite, and a product
/// of two numbers of the size of rounding errors is still above rounding errors.
const LIFTED: i32 = 200;

/// Returns the power of two that makes this magnitude large. `faer` replaces divisors that are small relative
/// to the matrix. Some are products of two differences of eigenvalues, which it compares like one difference,
/// so that eigenvalues below 1e-8 of the matrix would get wrong vectors. Far above 1, products are not small.
fn lift(magnitude: f64) -> f64 {
    match magnitude {
        0.0 => 1.0,
        size => 2.0f64.powi((LIFTED - size.log2().floor() as i32).clamp(-1000, 1000)),
    }
}

/// Uses the first of `scales` that gives no eigenvalue of 0, or the last: `faer` may report 0 for eigenvalues
/// of large skew-symmetric matrices (zero diagonal) that are not small.
fn eig_of<T: Field>(x: &Array, decompose: Decompose<T>, scales: &[fn(f64) -> f64]) -> Result<[Array; 2]> {
    let given = Matrices::<T>::of(x)?;
    let (n, dtype) = (given.n, given.dtype.complex());
    let (values, vectors) = (given.fresh::<c64>(&[n])?, given.fresh::<c64>(&[n, n])?);
    if n > 0 {
        let (no, yes) = (ComputeEigenvectors::No, ComputeEigenvectors::Yes);
        let memory = evd_scratch::<T>(n, no, yes, Par::Seq, Spec::default());
        let fresh = || (Mat::<T>::zeros(n, n), Mat::<c64>::zeros(n, n), MemBuffer::new(memory));
        given.each("eig", given.cost(25, 40), fresh, |(a, v, memory), matrix, i| {
            let size = magnitude(matrix).ok_or(Failure::NotFinite)?;
            let (w, mut factor) = (values.matrix(i), 1.0);
            for scale in scales {
                factor = scale(size);
                *a = Mat::from_fn(n, n, |r, c| matrix[(r, c)].scaled(factor));
                decompose(a, w, v, memory).map_err(|_| Failure::NoConvergence)?;
                if w.iter().all(|w| w.norm() != 0.0) {
                    break;
                }
            }
            for (k, &value) in w.iter().enumerate() {
                let sizes = || v.col(k).iter().map(|x| x.norm());
                if sizes().any(|size| !size.is_finite()) || sizes().all(|size| size == 0.0) {
                    // Eigenvectors of a defective matrix may overflow, or underflow beside a huge element.
                    v.col_mut(k).copy_from(null_vector(a, value)?);
                }
                normalize(v.col_mut(k));
            }
            mend(a, w, v)?;
            w.iter_mut().for_each(|w| *w /= factor);
            vectors.put(i, v.as_ref());
            Ok(())
        })?;
    }
    Ok([values.finish(dtype)?, vectors.finish(dtype)?])
}

/// Recomputes the vectors of conjugate pairs of a real matrix that are no eigenvectors, because some elements
/// are larger than [`LIFTED`] allows for.
fn mend<T: Field>(a: &Mat<T>, w: &[c64], v: &mut Mat<c64>) -> Result<(), Failure> {
    let n = w.len();
    if T::PARTS == 2 || w.iter().all(|w| w.im == 0.0) {
        return Ok(());
    }
    let wide = Mat::from_fn(n, n, |i, j| a[(i, j)].wide());
    let bound = 64.0 * n as f64 * f64::EPSILON * magnitude(wide.as_ref()).unwrap_or(0.0);
    let image = product(wide.as_ref(), v.as_ref());
    let mut k = 0;
    while k < n {
        let off = (0..n).map(|i| (image[(i, k)] - v[(i, k)] * w[k]).norm()).fold(0.0, f64::max);
        let pair = w[k].im != 0.0 && k + 1 < n;
        if pair && off > bound {
            v.col_mut(k).copy_from(null_vector(a, w[k])?);
            normalize(v.col_mut(k));
            for i in 0..n {
                v[(i, k + 1)] = v[(i, k)].conj();
            }
        }
        k += 1 + pair as usize;
    }
    Ok(())
}

/// Returns the unit vector `x` for which `(A - w I) x` is shortest.
fn null_vector<T: Field>(a: &Mat<T>, w: c64) -> Result<Col<c64>, Failure> {
    let n = a.nrows();
    let shift = |i: usize, j: usize| if i == j { w } else { c64::new(0.0, 0.0) };
    let mut parts = Parts::<c64>::with_shape(n, n);
    parts.decompose(Mat::from_fn(n, n, |i, j| a[(i, j)].wide() - shift(i, j)).as_ref())?;
    Ok(parts.v.col(n - 1).to_owned())
}

fn of_complex(a: &Mat<c64>, w: &mut [c64], v: &mut Mat<c64>, memory: &mut MemBuffer) -> Result<(), EvdError> {
    let mut found = Diag::<c64>::zeros(w.len());
    let stack = MemStack::new(memory);
    evd_cplx(a.as_ref(), found.as_mut(), None, Some(v.as_mut()), Par::Seq, stack, Spec::default())?;
    w.iter_mut().enumerate().for_each(|(k, w)| *w = found[k]);
    Ok(())
}

/// The vectors of a conjugate pair of eigenvalues are one column plus and minus i times the next.
fn of_real(a: &Mat<f64>, w: &mut [c64], v: &mut Mat<c64>, memory: &mut MemBuffer) -> Result<(), EvdError> {
    let n = w.len();
    let (mut re, mut im, mut columns) =
        (Diag::<f64>::zeros(n), Diag::<f64>::zeros(n), Mat::<f64>::zeros(n, n));
    let (stack, right) = (MemStack::new(memory), Some(columns.as_mut()));
    evd_real(a.as_ref(), re.as_mut(), im.as_mut(), None, right, Par::Seq, stack, Spec::default())?;
    w.iter_mut().enumerate().for_each(|(k, w)| *w = c64::new(re[k], im[k]));
    let mut k = 0;
    while k < n {
        let pair = im[k] != 0.0 && k + 1 < n;
        for i in 0..n {
            let imaginary = if pair { columns[(i, k + 1)] } else { 0.0 };
            v[(i, k)] = c64::new(columns[(i, k)], imaginary);
            if pair {
                v[(i, k + 1)] = v[(i, k)].conj();
            }
        }
        k += 1 + pair as usize;
    }
    Ok(())
}

/// Scales a vector to length 1 and makes its largest element real by a phase; a real vector keeps its sign.
fn normalize(mut v: ColMut<'_, c64>) {
    let n = v.nrows();
    let largest = (0..n).fold(0, |best, i| if v[i].norm() > v[best].norm() { i } else { best });
    let (top, size) = (v[largest], v[largest].norm());
    if size == 0.0 || !size.is_finite() {
        return;
    }
    let length = size * (0..n).map(|i| (v[i] / size).norm_sqr()).sum::<f64>().sqrt();
    let turn = if top.im == 0.0 { c64::new(1.0, 0.0) } else { top.conj() / size };
    for i in 0..n {
        v[i] = v[i] * turn / length;
    }
    if top.im != 0.0 {
        v[largest].im = 0.0;
    }
}
