//! LU factorisation with row exchanges, `A[order] = L U`, and systems solved with it.

use super::prelude::*;
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place_with_conj, solve_unit_lower_triangular_in_place,
    solve_unit_upper_triangular_in_place_with_conj, solve_upper_triangular_in_place,
};

/// The factors of one matrix, with scratch memory that is reused for matrices of the same shape.
pub struct Factors<T> {
    /// `L` below the diagonal, with ones on its own, and `U` from the diagonal on.
    pub packed: Mat<T>,
    /// For each row of the factors, its row of the matrix.
    pub order: Vec<usize>,
    inverse: Vec<usize>,
    memory: MemBuffer,
}

impl<T: Field> Factors<T> {
    /// Returns buffers for a matrix of this shape.
    pub fn with_shape(m: usize, n: usize) -> Factors<T> {
        let memory = MemBuffer::new(lu_in_place_scratch::<usize, T>(m, n, Par::Seq, Spec::default()));
        Factors { packed: Mat::zeros(m, n), order: vec![0; m], inverse: vec![0; m], memory }
    }

    /// Computes the factors of `a`.
    pub fn factor(&mut self, a: MatRef<'_, T>) {
        self.packed.copy_from(a);
        let stack = MemStack::new(&mut self.memory);
        let (order, inverse) = (&mut self.order, &mut self.inverse);
        lu_in_place(self.packed.as_mut(), order, inverse, Par::Seq, stack, Spec::default());
        if (0..self.depth()).any(|k| self.packed[(k, k)].size() < f64::MIN_POSITIVE) {
            self.factor_singular(a);
        }
    }

    /// Returns the number of pivots.
    fn depth(&self) -> usize {
        self.packed.nrows().min(self.packed.ncols())
    }

    /// Returns the index of the first zero pivot.
    pub fn zero_pivot(&self) -> Option<usize> {
        (0..self.depth()).find(|&k| self.packed[(k, k)] == T::zero_impl())
    }

    /// Factors a matrix with a pivot whose reciprocal, which `faer` uses, overflows; skips columns of zeros.
    fn factor_singular(&mut self, a: MatRef<'_, T>) {
        let (lu, (m, n)) = (&mut self.packed, a.shape());
        lu.copy_from(a);
        self.order.iter_mut().enumerate().for_each(|(i, to)| *to = i);
        for k in 0..m.min(n) {
            let size = |i: usize| T::abs1_impl(&lu[(i, k)]);
            let pivot = (k + 1..m).fold(k, |best, i| if size(i) > size(best) { i } else { best });
            if pivot != k {
                self.order.swap(k, pivot);
                (0..n).for_each(|j| {
                    let (above, below) = (lu[(k, j)], lu[(pivot, j)]);
                    (lu[(k, j)], lu[(pivot, j)]) = (below, above);
                });
            }
            if lu[(k, k)] == T::zero_impl() {
                continue;
            }
            // A power of two, so that scaling is exact.
            let large = scale(lu[(k, k)].size());
            let inverse = T::recip_impl(&lu[(k, k)].scaled(large));
            (k + 1..m).for_each(|i| lu[(i, k)] = lu[(i, k)].scaled(large) * inverse);
            for j in k + 1..n {
                let top = lu[(k, j)];
                (k + 1..m).for_each(|i| lu[(i, j)] = lu[(i, j)] - lu[(i, k)] * top);
            }
        }
    }

    /// Returns the row exchanges that lead to `order`: row `i` with row `exchanges[i]`, one after the other.
    fn exchanges(&self) -> impl Iterator<Item = usize> {
        let (order, depth) = (&self.order, self.depth());
        let mut rows: Vec<usize> = (0..order.len()).collect();
        let mut places = rows.clone();
        order[..depth].iter().enumerate().map(move |(k, &row)| {
            let (from, moved) = (places[row], rows[k]);
            (rows[from], places[moved]) = (moved, from);
            (rows[k], places[row]) = (row, k);
            from
        })
    }

    /// Returns the determinant of a square matrix.
    pub fn det(&self) -> T {
        let odd = self.exchanges().enumerate().filter(|&(i, to)| to != i).count() % 2 == 1;
        let sign = T::from_f64_impl(if odd { -1.0 } else { 1.0 });
        (0..self.order.len()).fold(sign, |product, i| product * self.packed[(i, i)])
    }

    /// Replaces right-hand sides, in the order of the factors, by the solution of `L U X = B`.
    pub fn solve(&self, mut b: MatMut<'_, T>) {
        solve_unit_lower_triangular_in_place(self.packed.as_ref(), b.rb_mut(), Par::Seq);
        solve_upper_triangular_in_place(self.packed.as_ref(), b, Par::Seq);
    }

    /// Replaces right-hand sides by the solution of `(L U)' X = B`, or of the adjoint system if `conj`.
    pub fn solve_transposed(&self, mut b: MatMut<'_, T>, conj: Conj) {
        let transposed = self.packed.as_ref().transpose();
        solve_lower_triangular_in_place_with_conj(transposed, conj, b.rb_mut(), Par::Seq);
        solve_unit_upper_triangular_in_place_with_conj(transposed, conj, b, Par::Seq);
    }
}

/// Returns `L` and `U` in one matrix; for each of its rows, its row of `x`; LAPACK's exchanges, from 1.
pub fn lu(x: &Array) -> Result<[Array; 3]> {
    in_field!(x, lu_of(x))
}

fn lu_of<T: Field>(x: &Array) -> Result<[Array; 3]> {
    let given = Matrices::<T>::of(x)?;
    let (m, n) = (given.m, given.n);
    let out = given.fresh::<T>(&[m, n])?;
    let order = given.fresh::<i64>(&[m])?;
    let exchanges = given.fresh::<i32>(&[m.min(n)])?;
    let fresh = || Factors::<T>::with_shape(m, n);
    given.each("lu", given.cost(1, 8), fresh, |factors, matrix, i| {
        factors.factor(matrix);
        out.put(i, factors.packed.as_ref());
        order.matrix(i).iter_mut().zip(&factors.order).for_each(|(to, &row)| *to = row as i64);
        let exchanged = exchanges.matrix(i).iter_mut().zip(factors.exchanges());
        exchanged.for_each(|(to, row)| *to = row as i32 + 1);
        Ok(())
    })?;
    Ok([out.finish(given.dtype)?, order.exact(), exchanges.exact()])
}

/// Returns `X` with `A X = B`, or with `A* X = B` if `adjoint`, from the factors of `A`; all have the same
/// batch. `name` appears in the error for a singular matrix.
pub fn lu_solve(name: &str, factors: &Array, order: &Array, b: &Array, adjoint: bool) -> Result<Array> {
    in_field!(b, lu_solve_of(name, factors, order, b, adjoint))
}

fn lu_solve_of<T: Field>(
    name: &str, factors: &Array, order: &Array, b: &Array, adjoint: bool,
) -> Result<Array> {
    let (factors, given) = (Matrices::<T>::of(factors)?, Matrices::<T>::of(b)?);
    let order = crate::cpu::pointwise::copy::contiguous(order)?;
    let (n, columns) = (given.m, given.n);
    let (lu, order) = (factors.all()?, order.slice::<i64>()?);
    let out = given.fresh::<T>(&[n, columns])?;
    let fresh = || (Factors::<T>::with_shape(n, n), Mat::<T>::zeros(n, columns));
    let cost = Cost::new(n * n * columns, 8, n * (n + columns));
    given.each(name, cost, fresh, |(factors, x), b, i| {
        factors.packed.copy_from(lu(i));
        if let Some(zero) = factors.zero_pivot() {
            return Err(Failure::Singular(zero + 1));
        }
        let rows = order[i * n..(i + 1) * n].iter().map(|&row| row as usize).enumerate();
        if adjoint {
            x.copy_from(b);
            let scales = graded(factors.packed.as_mut(), true, x);
            factors.solve_transposed(x.as_mut(), Conj::Yes);
            rescale(x, scales);
            let mut to = MatMut::from_row_major_slice_mut(out.matrix(i), n, columns);
            rows.for_each(|(k, row)| to.rb_mut().row_mut(row).copy_from(x.row(k)));
        } else {
            rows.for_each(|(k, row)| x.row_mut(k).copy_from(b.row(row)));
            let scales = graded(factors.packed.as_mut(), true, x);
            factors.solve(x.as_mut());
            rescale(x, scales);
            out.put(i, x.as_ref());
        }
        Ok(())
    })?;
    out.finish(given.dtype)
}
