//! QR factorisation.

use super::triangular::substituted_right;
use super::*;
use crate::ops::views::join::cat;

/// `A = Q R` of square or tall matrices. Outputs: `Q`, `R`.
///
/// With `C = Q' dA R^-1` and the antisymmetric `W = half(C) - half(C)'`, where `half` is the triangle below
/// the diagonal plus half of the diagonal: `dQ = Q W`, `dR = (C - W) R`, with a real diagonal. If `Q` is not
/// square, `dQ` also gets the component of `dA R^-1` outside its columns. The columns that a complete `Q` has
/// in addition to those of `A` may be any basis of the complement; derivatives assume that they rotate no
/// more than they must, which does not affect functions independent of the choice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Qr {
    /// Whether `Q` is square.
    pub complete: bool,
}

/// `R` without the rows of zeros that a complete factorisation has.
fn square(r: &Tensor) -> Result<Tensor> {
    r.narrow(-2, 0, sides(r).1)
}

/// Whether `Q` is square: its columns span the whole space.
fn whole(q: &Tensor) -> bool {
    let (m, k) = sides(q);
    m == k
}

impl OfMatrix for Qr {
    const NAME: &'static str = "qr";
    const VJP: &'static str = "(g_Q outside of Q, plus Q half(W - W') + g_R) R'^-1 with W = Q' g_Q - g_R R'";
    const JVP: &'static str = "C = Q' t R^-1, W = half(C) - half(C)': Q W + the rest of t R^-1, (C - W) R";

    fn run(&self, x: &Array) -> Result<Arrays> {
        linalg::qr(x, self.complete).map(Arrays::from_iter)
    }
    /// 4 (m n^2 - n^3 / 3) with m the longer side (Golub and Van Loan).
    fn flops(count: u64, m: u64, n: u64) -> u64 {
        count * 4 * n * n * (3 * m - n) / 3
    }
    fn pull(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Option<Tensor>> {
        let (q, r) = (c.output(0)?, c.output(1)?);
        let n = sides(r).1;
        let gq = g[0].as_ref();
        let gr = g[1].as_ref().map(upper).transpose()?;
        let turn = added(
            gq.map(|g| adjoint_times(q, g)).transpose()?,
            gr.as_ref().map(|g| times_adjoint(g, r)?.neg()).transpose()?,
        )?;
        let Some(turn) = turn else { return Ok(None) };
        let gc = half(&turn.sub(&adjoint(&turn)?)?.narrow(-1, 0, n)?)?;
        let mut inner = times(q, &gc)?;
        if let (false, Some(g)) = (whole(q), gq) {
            inner = inner.add(&g.sub(&times(q, &adjoint_times(q, g)?)?)?)?;
        }
        let solved = substituted_right(&adjoint(&square(r)?)?, &inner, false, false)?;
        let direct = gr.map(|g| times(q, &g)).transpose()?;
        added(Some(solved), direct)
    }
    fn push(&self, _x: &Tensor, y: &[Tensor], t: &Tensor) -> Result<Grads> {
        let (q, r) = (&y[0], &y[1]);
        let k = sides(q).1;
        let moved = substituted_right(&square(r)?, t, true, false)?;
        let c = adjoint_times(q, &moved)?;
        let low = padded(&half(&c)?, k, k)?;
        let turn = low.sub(&adjoint(&low)?)?;
        let mut dq = times(q, &turn)?;
        if !whole(q) {
            dq = dq.add(&moved.sub(&times(q, &c)?)?)?;
        }
        let dr = adjoint_times(q, t)?.sub(&times(&turn, r)?)?;
        Ok(smallvec![Some(dq), Some(upper(&dr)?)])
    }
}

impl Tensor {
    /// `Q` with orthonormal columns, as many as the shorter side or, if `complete`, a square matrix; and the
    /// upper triangular `R` with `A = Q R`. The signs are LAPACK's.
    pub fn qr(&self, complete: bool) -> Result<(Tensor, Tensor)> {
        check_matrix("qr", self)?;
        let (m, n) = sides(self);
        if m >= n {
            return Ok(outputs::<2>(bind(Qr { complete }, &[self])?)?.into());
        }
        // The first columns determine Q.
        let (q, r) = self.narrow(-1, 0, m)?.qr(complete)?;
        let rest = adjoint_times(&q, &self.narrow(-1, m, n - m)?)?;
        let r = cat(&[r, rest], -1)?;
        Ok((q, r))
    }
}
