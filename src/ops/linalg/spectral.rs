//! Eigenvalues of symmetric matrices, and singular values.
//!
//! Vectors are determined up to a sign, and up to a rotation where values are equal. Derivatives of vectors
//! divide by differences of values. Values that differ by no more than rounding errors (the side of the
//! matrix times epsilon times the largest value) count as equal, and such pairs contribute nothing. So
//! derivatives of functions of the values alone, and of the polar factor `U V'`, are always right.

use super::*;

/// The bound, relative to the largest value, below which values are rounding errors; `n` is the longer side.
pub fn rounding(n: usize, dtype: DType) -> f64 {
    let double = matches!(dtype, DType::F64 | DType::C128);
    let epsilon = if double { f64::EPSILON } else { f32::EPSILON as f64 };
    n as f64 * epsilon
}

/// `1 / x`; 0 where `x` is a rounding error relative to the largest of the values `s`.
fn safe_reciprocal(x: &Tensor, s: &Tensor, n: usize) -> Result<Tensor> {
    if s.numel() == 0 {
        return Ok(x.clone());
    }
    let least = s.detach().abs()?.amax(Some(&[-1]), true)?.mul(rounding(n, s.dtype()))?;
    let least = if x.rank() > s.rank() { least.unsqueeze(-1)? } else { least };
    let nothing = x.detach().abs()?.le(&least)?;
    nothing.select(0.0, &nothing.select(1.0, x)?.reciprocal()?)
}

/// `1 / (s[j] - s[i])`.
pub fn gaps(s: &Tensor, n: usize) -> Result<Tensor> {
    safe_reciprocal(&s.unsqueeze(-2)?.sub(&s.unsqueeze(-1)?)?, s, n)
}

/// `A = V diag(w) V'` of symmetric matrices. Only the lower triangle is read; derivatives are those along
/// symmetric matrices. Outputs: `w` in ascending order, `V`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Eigh;

impl OfMatrix for Eigh {
    const NAME: &'static str = "eigh";
    const VJP: &'static str = "V (diag(g_w) + F * V' g_V) V' with F[i, j] = 1 / (w[j] - w[i])";
    const JVP: &'static str = "diag(V' t V), V (F * V' t V)";

    fn run(&self, x: &Array) -> Result<Arrays> {
        linalg::eigh(x).map(Arrays::from_iter)
    }
    /// 9 n^3 (Golub and Van Loan).
    fn flops(count: u64, _m: u64, n: u64) -> u64 {
        count * 9 * n * n * n
    }
    fn pull(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Option<Tensor>> {
        let (w, v) = (c.output(0)?, c.output(1)?);
        if v.numel() == 0 {
            return Ok(Some(v.zeros_like()?));
        }
        let own = g[0].as_ref().map(|g| diagonal(g, v.dtype())).transpose()?;
        let turn = g[1].as_ref().map(|g| adjoint_times(v, g)?.mul(&gaps(w, sides(v).0)?)).transpose()?;
        let Some(inner) = added(own, turn)? else { return Ok(None) };
        Ok(Some(symmetric(&times_adjoint(&times(v, &inner)?, v)?)?))
    }
    fn push(&self, _x: &Tensor, y: &[Tensor], t: &Tensor) -> Result<Grads> {
        if t.numel() == 0 {
            return Ok(smallvec![None, None]);
        }
        let (w, v) = (&y[0], &y[1]);
        let inner = adjoint_times(v, &times(&symmetric(t)?, v)?)?;
        let dv = times(v, &inner.mul(&gaps(w, sides(v).0)?)?)?;
        Ok(smallvec![Some(inner.main_diagonal()?.real()?), Some(dv)])
    }
}

/// `A = U diag(s) V'`, with as many singular values as the shorter side, descending. Outputs: `U`, `s`, `V'`.
///
/// With `P = U' dA V`: `P + P'` over differences of values is the sum of `U' dU` and `V' dV`, and `P - P'`
/// over sums of values is their difference.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Svd;

impl Svd {
    /// `1 / (s[i] + s[j])`.
    fn sums(s: &Tensor, n: usize) -> Result<Tensor> {
        safe_reciprocal(&s.unsqueeze(-2)?.add(&s.unsqueeze(-1)?)?, s, n)
    }

    /// The cotangent of `P` from `U' G_U` and `V' G_V`.
    fn inner(s: &Tensor, n: usize, a: Option<Tensor>, b: Option<Tensor>) -> Result<Option<Tensor>> {
        let minus = b.as_ref().map(|b| b.neg()).transpose()?;
        let (Some(sum), Some(difference)) = (added(a.clone(), b)?, added(a, minus)?) else {
            return Ok(None);
        };
        let even = sum.mul(&gaps(s, n)?)?;
        let odd = difference.mul(&Svd::sums(s, n)?)?;
        let both = even.add(&adjoint(&even)?)?.add(&odd.sub(&adjoint(&odd)?)?)?;
        Ok(Some(both.mul(0.5)?))
    }
}

impl OfMatrix for Svd {
    const NAME: &'static str = "svd";
    const VJP: &'static str = "U P V' with diag(g_s) in P, and U' g_U, V' g_V over sums and differences of \
                               values; what leaves U or V on top";
    const JVP: &'static str =
        "P = U' t V: diag(P); U and V turned by P + P' over differences, P - P' over sums of values";

    fn run(&self, x: &Array) -> Result<Arrays> {
        linalg::svd(x).map(Arrays::from_iter)
    }
    /// 14 m n^2 + 8 n^3 with m the longer side (Golub and Van Loan).
    fn flops(count: u64, m: u64, n: u64) -> u64 {
        count * n * n * (14 * m + 8 * n)
    }
    fn pull(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Option<Tensor>> {
        let (u, s, vh) = (c.output(0)?, c.output(1)?, c.output(2)?);
        let (m, n) = (sides(u).0, sides(vh).1);
        let size = m.max(n);
        if s.numel() == 0 {
            return Ok(Some(times(u, vh)?));
        }
        let of_u = g[0].as_ref().map(|g| adjoint_times(u, g)).transpose()?;
        let of_v = g[2].as_ref().map(|g| times_adjoint(vh, g)).transpose()?;
        let own = g[1].as_ref().map(|g| diagonal(g, u.dtype())).transpose()?;
        let inner = added(own, Svd::inner(s, size, of_u.clone(), of_v.clone())?)?;
        let mut terms = vec![inner.map(|p| times(&times(u, &p)?, vh)).transpose()?];
        // The components outside the span of the columns of U or of the rows of V'.
        if let (true, Some(g), Some(of_u)) = (m > n, &g[0], of_u) {
            let outside = g.sub(&times(u, &of_u)?)?;
            let scaled = outside.mul(&safe_reciprocal(s, s, size)?.unsqueeze(-2)?)?;
            terms.push(Some(times(&scaled, vh)?));
        }
        if let (true, Some(g), Some(of_v)) = (n > m, &g[2], of_v) {
            let outside = g.sub(&adjoint_times(&of_v, vh)?)?;
            let scaled = outside.mul(&safe_reciprocal(s, s, size)?.unsqueeze(-1)?)?;
            terms.push(Some(times(u, &scaled)?));
        }
        terms.into_iter().try_fold(None, added)
    }
    fn push(&self, _x: &Tensor, y: &[Tensor], t: &Tensor) -> Result<Grads> {
        let [u, s, vh] = y else { return Err(no_output()) };
        if s.numel() == 0 {
            return Ok(smallvec![None, None, None]);
        }
        let (m, n) = sides(t);
        let size = m.max(n);
        let (left, right) = (adjoint_times(u, t)?, times_adjoint(t, vh)?);
        let p = times_adjoint(&left, vh)?;
        let even = p.add(&adjoint(&p)?)?.mul(&gaps(s, size)?)?;
        let odd = p.sub(&adjoint(&p)?)?.mul(&Svd::sums(s, size)?)?;
        let (turn_u, turn_v) = (even.add(&odd)?.mul(0.5)?, even.sub(&odd)?.mul(0.5)?);
        let mut du = times(u, &turn_u)?;
        let mut dvh = adjoint_times(&turn_v, vh)?;
        if m > n {
            let outside = right.sub(&times(u, &p)?)?;
            du = du.add(&outside.mul(&safe_reciprocal(s, s, size)?.unsqueeze(-2)?)?)?;
        }
        if n > m {
            let outside = left.sub(&times(&p, vh)?)?;
            dvh = dvh.add(&outside.mul(&safe_reciprocal(s, s, size)?.unsqueeze(-1)?)?)?;
        }
        Ok(smallvec![Some(du), Some(p.main_diagonal()?.real()?), Some(dvh)])
    }
}

impl Tensor {
    /// Eigenvalues in ascending order and eigenvectors, as columns, of symmetric matrices; only the lower
    /// triangle is read.
    pub fn eigh(&self) -> Result<(Tensor, Tensor)> {
        check_square("eigh", self)?;
        Ok(outputs::<2>(bind(Eigh, &[self])?)?.into())
    }

    /// `U`, the descending singular values, and `V'`: columns, values and rows as many as the shorter side.
    pub fn svd(&self) -> Result<(Tensor, Tensor, Tensor)> {
        check_matrix("svd", self)?;
        Ok(outputs::<3>(bind(Svd, &[self])?)?.into())
    }
}
