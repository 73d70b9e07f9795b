//! Triangular systems and the Cholesky factorisation.

use super::*;
use crate::arguments::linalg::Triangle;

/// `X` with `T X = B`. Inputs: a matrix, of which only a triangle is read, and `B`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TriangularSolve {
    /// The triangle that is read.
    pub triangle: Triangle,
}

/// The solution of `T X = B`.
pub fn substituted(t: &Tensor, b: &Tensor, upper: bool, unit: bool) -> Result<Tensor> {
    bind(TriangularSolve { triangle: Triangle { upper, unit } }, &[t, b])
}

/// The solution of `X T = B`.
pub fn substituted_right(t: &Tensor, b: &Tensor, upper: bool, unit: bool) -> Result<Tensor> {
    adjoint(&substituted(&adjoint(t)?, &adjoint(b)?, !upper, unit)?)
}

impl TriangularSolve {
    /// The triangle of its matrix that the operation reads.
    fn masked(&self, x: &Tensor) -> Result<Tensor> {
        let Triangle { upper, unit } = self.triangle;
        let first = unit as i64;
        x.triangle(if upper { first } else { -first }, upper)
    }
}

kernel! {
    TriangularSolve, "triangular_solve", |self, x| {
        on_device!(x[1], linalg::triangular_solve(x[0], x[1], self.triangle))
    },
    /// n^2 per column of B.
    flops |x, _y| {
        let (count, n, columns) = cost::matrices(x[1]);
        count * n * n * columns
    }
}

impl General for TriangularSolve {
    const VJP: &'static str = "T'^-1 g for B; -(T'^-1 g) o' where T is read, for T";
    const JVP: &'static str = "T^-1 (t_B - t_T o)";

    fn saves(&self, needs: Needs, _inputs: usize) -> Saves {
        Saves::input(0).and(Saves::OUTPUTS.when(needs.has(0)))
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(Some(g)) = g.first() else { return Ok(Grads::new()) };
        let Triangle { upper, unit } = self.triangle;
        let gb = substituted(&adjoint(c.input(0)?)?, g, !upper, unit)?;
        let gt = match c.needs(0) {
            true => Some(self.masked(&times_adjoint(&gb, c.output(0)?)?)?.neg()?),
            false => None,
        };
        Ok(smallvec![gt, c.needs(1).then_some(gb)])
    }
    fn jvp(&self, x: &[&Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let moved = t[0].as_ref().map(|t| times(&self.masked(t)?, &y[0])?.neg()).transpose()?;
        let Some(right) = added(t[1].clone(), moved)? else { return Ok(smallvec![None]) };
        Ok(smallvec![Some(bind(*self, &[x[0], &right])?)])
    }
    batch!(side_by_side: |self| *self);
}

/// The lower triangular `L` with `A = L L'`. Reads `A`'s lower triangle; derivatives along symmetric `A`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cholesky;

/// I. Murray, "Differentiation of the Cholesky decomposition", 2016.
impl OfMatrix for Cholesky {
    const NAME: &'static str = "cholesky";
    const VJP: &'static str = "the symmetric part of o'^-1 half(o' g) o^-1";
    const JVP: &'static str = "o half(o^-1 t o'^-1)";

    const RUNS_ON_GPUS: bool = true;

    fn run(&self, x: &Array) -> Result<Arrays> {
        one!(on_device!(x, linalg::cholesky(x)))
    }
    /// n^3 / 3.
    fn flops(count: u64, _m: u64, n: u64) -> u64 {
        count * n * n * n / 3
    }
    fn pull(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Option<Tensor>> {
        let Some(Some(g)) = g.first() else { return Ok(None) };
        let l = c.output(0)?;
        let inner = half(&adjoint_times(l, &lower(g)?)?)?;
        let left = substituted(&adjoint(l)?, &inner, true, false)?;
        Ok(Some(symmetric(&substituted_right(l, &left, false, false)?)?))
    }
    fn push(&self, _x: &Tensor, y: &[Tensor], t: &Tensor) -> Result<Grads> {
        let (l, once) = (&y[0], substituted(&y[0], &symmetric(t)?, false, false)?);
        let twice = substituted(l, &adjoint(&once)?, false, false)?;
        Ok(smallvec![Some(times(l, &half(&twice)?)?)])
    }
}

impl Tensor {
    /// The lower triangular factor `L` of positive definite matrices `L L'`; only the lower triangle is read.
    pub fn cholesky(&self) -> Result<Tensor> {
        check_square("cholesky", self)?;
        bind(Cholesky, &[self])
    }

    /// `X` with `T X = B` for the upper or lower triangle `T` of this matrix, with ones on its diagonal if
    /// `unit`. The batches broadcast.
    pub fn triangular_solve(&self, b: &Tensor, upper: bool, unit: bool) -> Result<Tensor> {
        let (t, b) = together("solve_triangular", self, b)?;
        substituted(&t, &b, upper, unit)
    }
}
