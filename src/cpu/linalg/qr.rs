//! QR factorisation by Householder reflections.

use super::prelude::*;
use faer::dyn_stack::StackReq;
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch,
    apply_block_householder_sequence_on_the_left_in_place_with_conj,
};
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch, recommended_block_size};

/// Returns `Q`, as wide as the shorter side or square if `complete`, and `R`, with a real diagonal.
pub fn qr(x: &Array, complete: bool) -> Result<[Array; 2]> {
    in_field!(x, qr_of(x, complete))
}

fn qr_of<T: Field>(x: &Array, complete: bool) -> Result<[Array; 2]> {
    let given = Matrices::<T>::of(x)?;
    let (m, n) = (given.m, given.n);
    let k = if complete { m } else { m.min(n) };
    let (q, r) = (given.fresh::<T>(&[m, k])?, given.fresh::<T>(&[k, n])?);
    let cost = Cost::new(2 * m * n * m.min(n), 10, m * n.max(k));
    let fresh = || Buffers::<T>::new(m, n, k);
    given.each("qr", cost, fresh, |buffers, matrix, i| {
        buffers.factor(matrix);
        q.put(i, buffers.q.as_ref());
        r.put(i, buffers.r.as_ref());
        Ok(())
    })?;
    Ok([q.finish(given.dtype)?, r.finish(given.dtype)?])
}

/// The factors of one matrix, with scratch memory.
struct Buffers<T> {
    q: Mat<T>,
    r: Mat<T>,
    /// `R`, and the reflections below its diagonal.
    packed: Mat<T>,
    /// The triangular factors that gather reflections in blocks.
    blocks: Mat<T>,
    memory: MemBuffer,
}

impl<T: Field> Buffers<T> {
    fn new(m: usize, n: usize, k: usize) -> Buffers<T> {
        let width = recommended_block_size::<T>(m, n);
        let memory = StackReq::any_of(&[
            qr_in_place_scratch::<T>(m, n, width, Par::Seq, Spec::default()),
            apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(m, width, k),
        ]);
        Buffers {
            q: Mat::zeros(m, k),
            r: Mat::zeros(k, n),
            packed: Mat::zeros(m, n),
            blocks: Mat::zeros(width, m.min(n)),
            memory: MemBuffer::new(memory),
        }
    }

    fn factor(&mut self, a: MatRef<'_, T>) {
        let Buffers { q, r, packed, blocks, memory } = self;
        let (k, n) = r.shape();
        let scale = magnitude(a).map_or(1.0, scale);
        packed.copy_from(a);
        rescale(packed, [scale]);
        qr_in_place(packed.as_mut(), blocks.as_mut(), Par::Seq, MemStack::new(memory), Spec::default());
        for j in 0..n {
            let filled = (j + 1).min(k).min(packed.nrows());
            r.col_mut(j).subrows_mut(0, filled).copy_from(packed.col(j).subrows(0, filled));
        }
        q.fill(T::zero_impl());
        q.diagonal_mut().fill(T::one_impl());
        apply_block_householder_sequence_on_the_left_in_place_with_conj(
            packed.as_ref(),
            blocks.as_ref(),
            Conj::No,
            q.as_mut(),
            Par::Seq,
            MemStack::new(memory),
        );
        if !T::IS_REAL {
            (0..k.min(n)).for_each(|i| self.make_real(i));
        }
        rescale(&mut self.r, [1.0 / scale]);
    }

    /// Multiplies a row of `R` and a column of `Q` by opposite phases, so that the diagonal of `R` is real
    /// and keeps the sign of its real part.
    fn make_real(&mut self, i: usize) {
        let corner = self.r[(i, i)];
        let size = corner.size();
        if size == 0.0 || !size.is_finite() {
            return;
        }
        let phase = corner.scaled(1.0f64.copysign(corner.re()) / size);
        let back = phase.conj();
        for j in i + 1..self.r.ncols() {
            self.r[(i, j)] *= back;
        }
        self.r[(i, i)] = T::from_f64_impl(size.copysign(corner.re()));
        for j in 0..self.q.nrows() {
            self.q[(j, i)] *= phase;
        }
    }
}
