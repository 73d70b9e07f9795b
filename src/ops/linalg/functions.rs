//! Functions of whole matrices: determinant, pseudoinverse, exponential.

use super::*;
use crate::cpu::linalg::Cutoff;
use crate::ops::pointwise::table::Params;
use crate::ops::views::join::cat;

/// The determinant. Its gradient is the matrix of cofactors, which exists for singular matrices too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Det;

impl OfMatrix for Det {
    const NAME: &'static str = "det";
    const VJP: &'static str = "g * conj(cofactors(x))";
    const JVP: &'static str = "sum(cofactors(x) * t)";
    const READS: Saves = Saves::input(0);

    const RUNS_ON_GPUS: bool = true;

    fn run(&self, x: &Array) -> Result<Arrays> {
        one!(on_device!(x, linalg::det(x)))
    }
    /// 2/3 n^3 + n.
    fn flops(count: u64, _m: u64, n: u64) -> u64 {
        count * (2 * n * n * n / 3 + n)
    }
    fn pull(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Option<Tensor>> {
        let Some(Some(g)) = g.first() else { return Ok(None) };
        let slope = bind(Cofactor, &[c.input(0)?])?;
        Ok(Some(slope.conj()?.mul(&g.unsqueeze(-1)?.unsqueeze(-1)?)?))
    }
    fn push(&self, x: &Tensor, _y: &[Tensor], t: &Tensor) -> Result<Grads> {
        let slope = bind(Cofactor, &[x])?;
        Ok(smallvec![Some(slope.mul(t)?.sum(Some(&[-2, -1]), false)?)])
    }
}

/// The matrix of cofactors: `det(A) A'^-1`, where that exists.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cofactor;

impl Cofactor {
    /// The derivative of the cofactors along `t`. In the bases of the singular vectors the matrix is
    /// diagonal, and the derivative of a cofactor is a product of all singular values but two. As the Hessian
    /// of the determinant it is its own transpose; for complex matrices too, not its adjoint.
    fn change(x: &Tensor, t: &Tensor) -> Result<Tensor> {
        if x.numel() == 0 {
            return x.zeros_like();
        }
        let (u, s, vh) = x.svd()?;
        let turn = times(&u, &vh)?;
        // The sign of a real determinant is constant; the phase of a complex one is not.
        let turn = if turn.dtype().is_complex() { turn } else { turn.detach() };
        let sign = bind(Det, &[&turn])?.sign()?;
        let inner = times_adjoint(&adjoint_times(&u, t)?, &vh)?;
        let others = Cofactor::all_but_two(&s)?;
        let own = others.mul(&inner.main_diagonal()?.unsqueeze(-2)?)?.sum(Some(&[-1]), false)?;
        let moved = diagonal(&own, own.dtype())?.sub(&others.mul(&inner.transpose(-2, -1)?)?)?;
        times(&times(&u.conj()?, &moved)?, &vh.conj()?)?.mul(&sign.unsqueeze(-1)?.unsqueeze(-1)?)
    }

    /// The products of all values but `s[i]` and `s[j]`; zero for `i = j`.
    fn all_but_two(s: &Tensor) -> Result<Tensor> {
        let n = s.shape().at(s.rank() - 1);
        let eye = Tensor::eye(n, n, DType::F64, s.device())?;
        let left_out = eye.unsqueeze(0)?.add(&eye.unsqueeze(1)?)?.gt(0.0)?;
        let rows = s.unsqueeze(-2)?.unsqueeze(-2)?;
        let products = left_out.select(1.0, &rows)?.prod(Some(&[-1]), false)?;
        eye.gt(0.0)?.select(0.0, &products)
    }
}

impl OfMatrix for Cofactor {
    const NAME: &'static str = "cofactor";
    const VJP: &'static str = "the Hessian of the determinant along g";
    const JVP: &'static str = "the Hessian of the determinant along t";
    const READS: Saves = Saves::input(0);

    const RUNS_ON_GPUS: bool = true;

    fn run(&self, x: &Array) -> Result<Arrays> {
        one!(on_device!(x, linalg::cofactor(x)))
    }
    /// 26 n^3: singular values and two products.
    fn flops(count: u64, _m: u64, n: u64) -> u64 {
        count * 26 * n * n * n
    }
    fn pull(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Option<Tensor>> {
        let Some(Some(g)) = g.first() else { return Ok(None) };
        Ok(Some(Cofactor::change(c.input(0)?, &g.conj()?)?.conj()?))
    }
    fn push(&self, x: &Tensor, _y: &[Tensor], t: &Tensor) -> Result<Grads> {
        Ok(smallvec![Some(Cofactor::change(x, t)?)])
    }
}

/// The Moore-Penrose inverse `P`. At constant rank its derivative is
/// `P P' dA' (I - A P) + (I - P A) dA' P' P - P dA P` (Golub and Pereyra, "The differentiation of
/// pseudo-inverses and nonlinear least squares problems whose variables separate", 1973).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pinv {
    /// Singular values of at most `[absolute, relative to the largest]` count as zero.
    pub cutoff: Params,
}

impl OfMatrix for Pinv {
    const NAME: &'static str = "pinv";
    const VJP: &'static str = "g' o o' (I - x o)' and (I - o x)' o' o g', less o' g o'";
    const JVP: &'static str = "o o' t' (I - x o) + (I - o x) t' o' o - o t o";
    const READS: Saves = Saves::input(0).and(Saves::OUTPUTS);

    fn run(&self, x: &Array) -> Result<Arrays> {
        let [absolute, relative] = self.cutoff.get();
        one!(linalg::pinv(x, Cutoff { absolute, relative }))
    }
    /// 16 m n^2 + 8 n^3 with m the longer side: singular values and a product.
    fn flops(count: u64, m: u64, n: u64) -> u64 {
        count * n * n * (16 * m + 8 * n)
    }
    fn pull(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Option<Tensor>> {
        let Some(Some(g)) = g.first() else { return Ok(None) };
        let (a, p) = (c.input(0)?, c.output(0)?);
        let inverse = times_adjoint(&adjoint_times(p, g)?, p)?;
        let left = adjoint_times(g, &times_adjoint(p, p)?)?;
        let left = left.sub(&times(a, &times(p, &left)?)?)?;
        let right = times_adjoint(&adjoint_times(p, p)?, g)?;
        let right = right.sub(&times(&times(&right, p)?, a)?)?;
        Ok(Some(left.add(&right)?.sub(&inverse)?))
    }
    fn push(&self, x: &Tensor, y: &[Tensor], t: &Tensor) -> Result<Grads> {
        let (a, p) = (x, &y[0]);
        let inverse = times(&times(p, t)?, p)?;
        let left = times_adjoint(&times_adjoint(p, p)?, t)?;
        let left = left.sub(&times(&times(&left, a)?, p)?)?;
        let right = adjoint_times(t, &adjoint_times(p, p)?)?;
        let right = right.sub(&times(p, &times(a, &right)?)?)?;
        Ok(smallvec![Some(left.add(&right)?.sub(&inverse)?)])
    }
}

/// The exponential of square matrices. Its derivative along `E` is the upper right block of the exponential
/// of `[[A, E], [0, A]]` (Higham, "Functions of matrices", 2008, section 3.2), which again is an exponential.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MatrixExp;

impl MatrixExp {
    fn along(a: &Tensor, e: &Tensor) -> Result<Tensor> {
        let n = sides(a).0;
        let top = cat(&[a.clone(), e.clone()], -1)?;
        let bottom = cat(&[a.zeros_like()?, a.clone()], -1)?;
        let both = bind(MatrixExp, &[&cat(&[top, bottom], -2)?])?;
        both.narrow(-2, 0, n)?.narrow(-1, n, n)
    }
}

impl OfMatrix for MatrixExp {
    const NAME: &'static str = "matrix_exp";
    const VJP: &'static str = "the upper right block of exp([[x', g], [0, x']])";
    const JVP: &'static str = "the upper right block of exp([[x, t], [0, x]])";
    const READS: Saves = Saves::input(0);

    fn run(&self, x: &Array) -> Result<Arrays> {
        one!(linalg::matrix_exp(x))
    }
    /// 44/3 n^3: six products and a system of equations, regardless of the scaling.
    fn flops(count: u64, _m: u64, n: u64) -> u64 {
        count * 44 * n * n * n / 3
    }
    fn pull(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Option<Tensor>> {
        let Some(Some(g)) = g.first() else { return Ok(None) };
        Ok(Some(MatrixExp::along(&adjoint(c.input(0)?)?, g)?))
    }
    fn push(&self, x: &Tensor, _y: &[Tensor], t: &Tensor) -> Result<Grads> {
        Ok(smallvec![Some(MatrixExp::along(x, t)?)])
    }
}

impl Tensor {
    /// The determinant.
    pub fn det(&self) -> Result<Tensor> {
        check_square("det", self)?;
        bind(Det, &[self])
    }

    /// The Moore-Penrose inverse; singular values up to `absolute`, or `relative` times the largest, are 0.
    pub fn pinv(&self, absolute: f64, relative: f64) -> Result<Tensor> {
        check_matrix("pinv", self)?;
        bind(Pinv { cutoff: [absolute, relative].into() }, &[self])
    }

    /// The exponential of square matrices.
    pub fn matrix_exp(&self) -> Result<Tensor> {
        check_square("matrix_exp", self)?;
        bind(MatrixExp, &[self])
    }
}
