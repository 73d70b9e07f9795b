//! LU factorisation, and general systems of equations.

use super::triangular::{substituted, substituted_right};
use super::*;
use crate::ops::indexing::index::{Gather, ScatterAdd};

/// `A[order] = L U` with row exchanges. Outputs: `L` below the diagonal and `U` on and above it, in one
/// matrix; `order` (int64); the exchanges as LAPACK counts them (int32, from 1).
///
/// Extend `L` to a square matrix by columns of the identity if the matrix is tall, and `U` by rows of it if
/// it is wide. Then `M = L^-1 dA[order] U^-1` gives `dL = L below(M)` and `dU = upper(M) U`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lu;

/// Row indices in the form [`Gather`] takes.
fn rows(order: &Tensor, like: &Tensor) -> Result<Tensor> {
    order.unsqueeze(-1)?.expand(&like.shape())
}

/// `L` as a square matrix; its elements on and above the diagonal are meaningless.
fn square_lower(packed: &Tensor) -> Result<Tensor> {
    let (m, n) = sides(packed);
    if m < n { packed.narrow(-1, 0, m) } else { padded(packed, m, m) }
}

/// `U` as a square matrix.
fn square_upper(packed: &Tensor) -> Result<Tensor> {
    let (m, n) = sides(packed);
    if m >= n {
        return upper(&packed.narrow(-2, 0, n)?);
    }
    let eye = Tensor::eye(n - m, n - m, packed.dtype(), packed.device())?;
    let corner = eye.pad(&[(m as i64, 0), (m as i64, 0)], 0.0)?;
    padded(&upper(packed)?, n, n)?.add(&corner)
}

impl OfMatrix for Lu {
    const NAME: &'static str = "lu";
    const VJP: &'static str = "order' L'^-1 (below(L' g_L) + upper(g_U U')) U'^-1";
    const JVP: &'static str = "M = L^-1 t[order] U^-1: L below(M), upper(M) U";

    const RUNS_ON_GPUS: bool = true;

    fn run(&self, x: &Array) -> Result<Arrays> {
        on_device!(x, linalg::lu(x)).map(Arrays::from_iter)
    }
    /// m n^2 - n^3 / 3 with m the longer side: 2/3 n^3 for a square matrix.
    fn flops(count: u64, m: u64, n: u64) -> u64 {
        count * n * n * (3 * m - n) / 3
    }
    fn pull(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Option<Tensor>> {
        let Some(Some(g)) = g.first() else { return Ok(None) };
        let (packed, order) = (c.output(0)?, c.output(1)?);
        if g.numel() == 0 {
            return Ok(Some(g.clone()));
        }
        let (l, u) = (square_lower(packed)?, square_upper(packed)?);
        let g_lower = below(g)?;
        let inner = g_lower.add(&adjoint_times(&below(&l)?, &g_lower)?)?;
        let middle = below(&inner)?.add(&upper(&times_adjoint(&upper(g)?, &u)?)?)?;
        let left = substituted(&adjoint(&l)?, &middle, true, true)?;
        let moved = substituted_right(&adjoint(&u)?, &left, false, false)?;
        let back = ScatterAdd { axis: moved.rank() as u8 - 2, shape: moved.shape() };
        Ok(Some(bind(back, &[&moved, &rows(order, &moved)?])?))
    }
    fn push(&self, _x: &Tensor, y: &[Tensor], t: &Tensor) -> Result<Grads> {
        if t.numel() == 0 {
            return Ok(smallvec![None, None, None]);
        }
        let (l, u) = (square_lower(&y[0])?, square_upper(&y[0])?);
        let moved = bind(Gather { axis: t.rank() as u8 - 2 }, &[t, &rows(&y[1], t)?])?;
        let middle = substituted_right(&u, &substituted(&l, &moved, false, true)?, true, false)?;
        let (low, high) = (below(&middle)?, upper(&middle)?);
        let dl = low.add(&times(&below(&l)?, &low)?)?;
        Ok(smallvec![Some(dl.add(&times(&high, &u)?)?), None, None])
    }
}

/// `X` with `A X = B`, or `A' X = B`. Inputs: `A`, `B`, and the factors and order of `A`. The result is
/// computed from the factors, which count as constants: the derivatives are those of the equation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Solve {
    /// Whether to solve with the adjoint.
    pub adjoint: bool,
    /// Whether the user called `inv`.
    pub inverse: bool,
}

kernel! {
    Solve, if self.inverse { "inv" } else { "solve" }, |self, x| {
        on_device!(x[1], linalg::lu_solve(self.name(), x[2], x[3], x[1], self.adjoint))
    },
    /// 2 n^2 per column of B.
    flops |x, _y| {
        let (count, n, columns) = cost::matrices(x[1]);
        2 * count * n * n * columns
    }
}

impl General for Solve {
    const VJP: &'static str = "A'^-1 g for B; -(A'^-1 g) o' for A";
    const JVP: &'static str = "A^-1 (t_B - t_A o)";

    fn saves(&self, needs: Needs, _inputs: usize) -> Saves {
        let matrix = Saves::input(0).and(Saves::input(2)).and(Saves::input(3));
        matrix.and(Saves::OUTPUTS.when(needs.has(0)))
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(Some(g)) = g.first() else { return Ok(Grads::new()) };
        let back = Solve { adjoint: !self.adjoint, ..*self };
        let gb = bind(back, &[c.input(0)?, g, c.input(2)?, c.input(3)?])?;
        let ga = match (c.needs(0), self.adjoint) {
            (false, _) => None,
            (true, false) => Some(times_adjoint(&gb, c.output(0)?)?.neg()?),
            (true, true) => Some(times_adjoint(c.output(0)?, &gb)?.neg()?),
        };
        Ok(smallvec![ga, c.needs(1).then_some(gb), None, None])
    }
    fn jvp(&self, x: &[&Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let moved = t[0].as_ref().map(|t| {
            let product = if self.adjoint { adjoint_times(t, &y[0]) } else { times(t, &y[0]) };
            product?.neg()
        });
        let right = added(t[1].clone(), moved.transpose()?)?;
        let Some(right) = right else { return Ok(smallvec![None]) };
        Ok(smallvec![Some(bind(*self, &[x[0], &right, x[2], x[3]])?)])
    }
    batch!(side_by_side: |self| *self);
}

/// The factors of a matrix as constants, in double precision where there is one.
fn exact_factors(x: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
    let widest = if x.device() == Device::Cpu { DType::F64 } else { DType::F32 };
    x.detach().cast(x.dtype().promote(widest))?.lu()
}

impl Tensor {
    /// `L` and `U` in one matrix, the order of the rows, and the exchanges that produce it; see [`Lu`].
    pub fn lu(&self) -> Result<(Tensor, Tensor, Tensor)> {
        check_matrix("lu", self)?;
        Ok(outputs::<3>(bind(Lu, &[self])?)?.into())
    }

    /// `X` with `A X = B`, where `A` is this matrix, or with `A' X = B` if `adjoint`. The batches broadcast.
    pub fn solve(&self, b: &Tensor, adjoint: bool) -> Result<Tensor> {
        let (a, b) = together("solve", self, b)?;
        // One factorisation, in double precision, shared by all right-hand sides of a matrix.
        let (factors, order, _) = exact_factors(self)?;
        let order = order.expand(&a.shape().removed(a.rank() - 1))?;
        let op = Solve { adjoint, inverse: false };
        bind(op, &[&a, &b, &factors.expand(&a.shape())?, &order])
    }

    /// The inverse.
    pub fn inverse(&self) -> Result<Tensor> {
        check_square("inv", self)?;
        let (factors, order, _) = exact_factors(self)?;
        let n = sides(self).0;
        let eye = Tensor::eye(n, n, self.dtype(), self.device())?.expand(&self.shape())?;
        bind(Solve { adjoint: false, inverse: true }, &[self, &eye, &factors, &order])
    }
}
