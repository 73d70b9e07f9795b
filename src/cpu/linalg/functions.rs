//! Functions of matrices, computed from factorisations: determinant, cofactors, pseudoinverse, exponential.

use super::lu::Factors;
use super::prelude::*;
use super::svd::Parts;

/// Returns the determinant of every matrix.
pub fn det(x: &Array) -> Result<Array> {
    in_field!(x, det_of(x))
}

fn det_of<T: Field>(x: &Array) -> Result<Array> {
    let given = Matrices::<T>::of(x)?;
    let n = given.n;
    let out = given.fresh::<T>(&[])?;
    let fresh = || Factors::with_shape(n, n);
    given.each("det", given.cost(1, 8), fresh, |factors, matrix, i| {
        factors.factor(matrix);
        out.matrix(i)[0] = factors.det();
        Ok(())
    })?;
    out.finish(given.dtype)
}

/// Ratio of the smallest to the largest pivot above which a matrix is inverted rather than decomposed.
const SAFE: f64 = 1e-4;

/// Returns the cofactors of every matrix, the derivative of its determinant, also where it is singular.
pub fn cofactor(x: &Array) -> Result<Array> {
    in_field!(x, cofactor_of(x))
}

fn cofactor_of<T: Field>(x: &Array) -> Result<Array> {
    let given = Matrices::<T>::of(x)?;
    let n = given.n;
    given.map("det", given.cost(4, 40), [n, n], || Factors::with_shape(n, n), cofactors)
}

/// Returns `det(A)` times the inverse of `A'`. Where that is close to 0/0, or the determinant to the ends of
/// the floats, uses singular values: those of the cofactors are the products of all others of `A`.
fn cofactors<T: Field>(factors: &mut Factors<T>, a: MatRef<'_, T>) -> Result<Mat<T>, Failure> {
    let n = a.nrows();
    factors.factor(a);
    let sizes = (0..n).map(|i| factors.packed[(i, i)].size());
    let (least, most) = sizes.fold((f64::INFINITY, 0.0f64), |(l, m), v| (l.min(v), m.max(v)));
    let det = factors.det();
    // A determinant that overflows or loses digits says nothing about cofactors, which have a factor less.
    let told = (1e-290..=f64::MAX).contains(&det.size());
    if n > 0 && told && least > SAFE * most {
        let mut solved = Mat::identity(n, n);
        factors.solve_transposed(solved.as_mut(), Conj::No);
        let mut out = Mat::zeros(n, n);
        for (k, &row) in factors.order.iter().enumerate() {
            (0..n).for_each(|j| out[(row, j)] = solved[(k, j)] * det);
        }
        return Ok(out);
    }
    let mut parts = Parts::with_shape(n, n);
    parts.decompose(a)?;
    factors.factor(product(parts.u.as_ref(), parts.v.adjoint().to_owned().as_ref()).as_ref());
    let turn = factors.det();
    let turn = turn.scaled(1.0 / turn.size());
    let others = |k: usize| (0..n).filter(|&i| i != k).map(|i| parts.s[i]).product::<f64>();
    let left = Mat::from_fn(n, n, |i, k| (turn * parts.u[(i, k)].conj()).scaled(others(k)));
    Ok(product(left.as_ref(), parts.v.transpose()))
}

/// Which singular values count as zero: those of at most `absolute`, or at most `relative` times the largest.
#[derive(Clone, Copy, Debug)]
pub struct Cutoff {
    /// In units of the matrix.
    pub absolute: f64,
    /// In units of the largest singular value.
    pub relative: f64,
}

/// Returns the Moore-Penrose inverse of every matrix.
pub fn pinv(x: &Array, cutoff: Cutoff) -> Result<Array> {
    in_field!(x, pinv_of(x, cutoff))
}

fn pinv_of<T: Field>(x: &Array, cutoff: Cutoff) -> Result<Array> {
    let given = Matrices::<T>::of(x)?;
    let (m, n, k) = (given.m, given.n, given.m.min(given.n));
    let fresh = || Parts::<T>::with_shape(m, n);
    given.map("pinv", given.cost(20, 35), [n, m], fresh, |parts, matrix| {
        parts.decompose(matrix)?;
        let most = parts.s.first().copied().unwrap_or(0.0);
        let least = cutoff.absolute.max(cutoff.relative * most);
        let by = scale(most);
        let inverse = |s: f64| if s > least { 1.0 / (s * by) } else { 0.0 };
        let scaled = Mat::from_fn(n, k, |i, j| parts.v[(i, j)].scaled(inverse(parts.s[j])));
        let mut whole = product(scaled.as_ref(), parts.u.adjoint().to_owned().as_ref());
        rescale(&mut whole, [by]);
        Ok(whole)
    })
}

/// Returns the exponential of every matrix.
pub fn matrix_exp(x: &Array) -> Result<Array> {
    in_field!(x, matrix_exp_of(x))
}

fn matrix_exp_of<T: Field>(x: &Array) -> Result<Array> {
    let given = Matrices::<T>::of(x)?;
    let n = given.n;
    given.map("matrix_exp", given.cost(12, 25), [n, n], || Factors::with_shape(n, n), exponential)
}

/// The coefficients of the Pade approximant of degree 13, `(26 - j)! / (j! (13 - j)!)`.
const PADE: [f64; 14] = [
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
];

/// The norm up to which that approximant is exact to rounding.
const NEAR: f64 = 5.37;

/// The exponential (Higham, "The scaling and squaring method for the matrix exponential revisited", 2005).
fn exponential<T: Field>(factors: &mut Factors<T>, a: MatRef<'_, T>) -> Result<Mat<T>, Failure> {
    let n = a.nrows();
    let sums = (0..n).map(|j| (0..n).map(|i| a[(i, j)].size()).sum::<f64>());
    let norm = sums.fold(0.0, |most: f64, sum| if sum > most || sum.is_nan() { sum } else { most });
    if !norm.is_finite() {
        return Ok(Mat::full(n, n, T::nan_impl()));
    }
    // Beyond 1074 squarings every result but zero is out of range.
    let halvings = (norm / NEAR).log2().ceil().clamp(0.0, 1074.0) as i32;
    let a = Mat::from_fn(n, n, |i, j| a[(i, j)].scaled(0.5f64.powi(halvings)));
    let times = |x: &Mat<T>, y: &Mat<T>| product(x.as_ref(), y.as_ref());
    let a2 = times(&a, &a);
    let a4 = times(&a2, &a2);
    let a6 = times(&a4, &a2);
    // c[0] I + c[1] A^2 + c[2] A^4 + c[3] A^6
    let mixed = |c: [f64; 4]| {
        Mat::from_fn(n, n, |i, j| {
            let sum = a2[(i, j)].scaled(c[1]) + a4[(i, j)].scaled(c[2]) + a6[(i, j)].scaled(c[3]);
            if i == j { sum + T::from_f64_impl(c[0]) } else { sum }
        })
    };
    let b = &PADE;
    let odd = times(&a6, &mixed([0.0, b[9], b[11], b[13]])) + mixed([b[1], b[3], b[5], b[7]]);
    let odd = times(&a, &odd);
    let even = times(&a6, &mixed([0.0, b[8], b[10], b[12]])) + mixed([b[0], b[2], b[4], b[6]]);
    factors.factor((&even - &odd).as_ref());
    let above = even + odd;
    let mut out = Mat::from_fn(n, n, |i, j| above[(factors.order[i], j)]);
    factors.solve(out.as_mut());
    for _ in 0..halvings {
        out = times(&out, &out);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coefficients_are_those_of_the_formula() {
        let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
        for (j, &b) in (0u32..).zip(&PADE) {
            let exact = factorial(26 - j) / (factorial(j) * factorial(13 - j));
            assert!((b - exact).abs() <= 1e-14 * exact, "{j}: {b} {exact}");
        }
    }
}
