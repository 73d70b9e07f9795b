//! Eigenvalues and eigenvectors of general square matrices.

use super::spectral::gaps;
use super::*;

/// `A V = V diag(w)`, with columns of `V` of length 1. Outputs, both complex: `w`, in no order, and `V`.
///
/// With `P = V^-1 dA V` and `B[i, j] = P[i, j] / (w[j] - w[i])`: `dw = diag(P)` and `dV = V (B - D)`, where
/// the real diagonal `D` keeps the lengths, `D[j, j] = Re (V' V B)[j, j]`. Vectors are determined up to a
/// factor of modulus 1, and derivatives are those of functions that do not depend on it. Equal eigenvalues
/// are treated as for self-adjoint matrices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Eig {
    /// Whether the matrix is real.
    pub real: bool,
}

impl OfMatrix for Eig {
    const NAME: &'static str = "eig";
    const VJP: &'static str =
        "V'^-1 (diag(g_w) + conj(F) * (M - V' V Re diag(M))) V' with M = V' g_V, F[i, j] = 1 / (w[j] - w[i])";
    const JVP: &'static str = "P = V^-1 t V, B = F * P: diag(P), V (B - Re diag(V' V B))";

    fn run(&self, x: &Array) -> Result<Arrays> {
        linalg::eig(x).map(Arrays::from_iter)
    }
    /// 25 n^3 (Golub and Van Loan).
    fn flops(count: u64, _m: u64, n: u64) -> u64 {
        count * 25 * n * n * n
    }
    fn pull(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Option<Tensor>> {
        let (w, v) = (c.output(0)?, c.output(1)?);
        let own = g[0].as_ref().map(|g| diagonal(g, w.dtype().real())).transpose()?;
        let moved = match &g[1] {
            Some(g) => {
                let inner = adjoint_times(v, g)?;
                let along = inner.main_diagonal()?.real()?.unsqueeze(-2)?;
                let kept = inner.sub(&adjoint_times(v, v)?.mul(&along)?)?;
                Some(kept.mul(&gaps(w, sides(v).0)?.conj()?)?)
            }
            None => None,
        };
        let Some(inner) = added(own, moved)? else { return Ok(None) };
        let out = v.solve(&times_adjoint(&inner, v)?, true)?;
        Ok(Some(if self.real { out.real()? } else { out }))
    }
    fn push(&self, _x: &Tensor, y: &[Tensor], t: &Tensor) -> Result<Grads> {
        let (w, v) = (&y[0], &y[1]);
        let inner = v.solve(&times(&t.cast(v.dtype())?, v)?, false)?;
        let moved = inner.mul(&gaps(w, sides(v).0)?)?;
        let longer = times(&adjoint_times(v, v)?, &moved)?.main_diagonal()?.real()?;
        let dv = times(v, &moved)?.sub(&v.mul(&longer.unsqueeze(-2)?)?)?;
        Ok(smallvec![Some(inner.main_diagonal()?), Some(dv)])
    }
}

impl Tensor {
    /// The eigenvalues of square matrices, in no order, and unit eigenvectors as columns; both complex.
    pub fn eig(&self) -> Result<(Tensor, Tensor)> {
        check_square("eig", self)?;
        Ok(outputs::<2>(bind(Eig { real: !self.dtype().is_complex() }, &[self])?)?.into())
    }
}
