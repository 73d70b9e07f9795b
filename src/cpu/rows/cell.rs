//! The gates of a recurrent cell and their backward kernel: one pass over the elements of the state.

use super::norm::{fresh, start, wide, with_float};
use crate::cpu::prelude::*;
use crate::cpu::rows::{Access, RowFloat, RowOp, across, each_row};
use crate::math::cells::{Cotangents, Gated, MOST};
use crate::math::wide::Wide;
use smallvec::SmallVec;

/// The blocks of a row of `count` times `n` numbers at element `i`; those that it lacks are 0.
///
/// # Safety
/// The row is readable.
#[inline(always)]
unsafe fn blocks<L: Wide>(row: *const L::Number, count: usize, n: usize, i: usize, v: Access) -> [L; MOST] {
    let mut out = [L::lit(0.0); MOST];
    for (k, value) in out.iter_mut().enumerate().take(count) {
        // SAFETY: guaranteed by the caller.
        *value = unsafe { v.load(row.add(k * n + i)) };
    }
    out
}

/// Writes the first `count` blocks of a row.
///
/// # Safety
/// The row is writable.
#[inline(always)]
unsafe fn put<L: Wide>(values: [L; MOST], row: *mut L::Number, count: usize, n: usize, i: usize, v: Access) {
    for (k, value) in values.into_iter().enumerate().take(count) {
        // SAFETY: guaranteed by the caller.
        unsafe { v.store(value, row.add(k * n + i)) };
    }
}

struct Step<T, K> {
    x: Shared<T>,
    h: Shared<T>,
    before: Shared<T>,
    kept: Shared<T>,
    after: Shared<T>,
    out: Shared<T>,
    n: usize,
    cell: K,
}

impl<T: RowFloat, K: Gated> RowOp<T> for Step<T, K> {
    #[inline(always)]
    fn row<L: Wide<Number = T>>(&self, row: usize) {
        let (n, count) = (self.n, self.cell.gates());
        let gates = row * count * n;
        // SAFETY: all arrays have this row, and it belongs to this call alone.
        unsafe {
            let (x, h) = (self.x.get().add(gates), self.h.get().add(gates));
            let at = row * n;
            across!(L, n, i, v => {
                let before = v.load::<L>(self.before.get().add(at + i));
                let x: [L; MOST] = blocks(x, count, n, i, v);
                let (kept, after, out) = self.cell.step(x, blocks(h, count, n, i, v), before);
                put(kept, self.kept.get().add(MOST * at), MOST, n, i, v);
                v.store(out, self.out.get().add(at + i));
                if self.cell.has_cell() {
                    v.store(after, self.after.get().add(at + i));
                }
            });
        }
    }
}

/// One step from the products of the input and of the hidden state `[..., gates * n]` and the state before
/// `[..., n]`: the hidden state, the cell state if there is one, and what [`cell_vjp`] reads `[..., 4 n]`,
/// which is `f32` for halves.
pub fn cell<K: Gated>(cell: K, x: &Array, h: &Array, before: &Array) -> Result<SmallVec<[Array; 3]>> {
    let dtype = x.dtype();
    let (x, h, state) = (wide(x)?, wide(h)?, wide(before)?);
    let (shape, last) = (state.shape(), state.rank() - 1);
    let n = state.dim(last);
    let out = fresh(shape, x.dtype())?;
    let after = if cell.has_cell() { fresh(shape, x.dtype())? } else { out.clone() };
    let kept = fresh(shape.with(last, MOST * n), x.dtype())?;
    with_float!(x.dtype(), T => {
        let step = Step::<T, K> {
            x: start(&x), h: start(&h), before: start(&state),
            kept: start(&kept), after: start(&after), out: start(&out),
            n, cell,
        };
        each_row::<T, _>(&step, state.numel() / n.max(1), 16 * n)
    });
    let mut all = SmallVec::new();
    all.push(cast(&out, dtype)?);
    if cell.has_cell() {
        all.push(cast(&after, dtype)?);
    }
    all.push(kept);
    Ok(all)
}

struct StepVjp<T, K> {
    kept: Shared<T>,
    states: [Shared<T>; 2],
    /// Cotangents of the hidden state, of the cell state and of what was kept.
    g: [Option<Shared<T>>; 3],
    dx: Shared<T>,
    dh: Shared<T>,
    dstate: Shared<T>,
    n: usize,
    cell: K,
}

impl<T: RowFloat, K: Gated> RowOp<T> for StepVjp<T, K> {
    #[inline(always)]
    fn row<L: Wide<Number = T>>(&self, row: usize) {
        let (n, count) = (self.n, self.cell.gates());
        let (at, gates) = (row * n, row * count * n);
        // SAFETY: all arrays have this row, and it belongs to this call alone.
        unsafe {
            across!(L, n, i, v => {
                let kept: [L; MOST] = blocks(self.kept.get().add(MOST * at), MOST, n, i, v);
                let states = self.states.map(|state| v.load::<L>(state.get().add(at + i)));
                let [out, state] = [self.g[0], self.g[1]].map(|g| match g {
                    Some(g) => v.load::<L>(g.get().add(at + i)),
                    None => L::lit(0.0),
                });
                let more = match self.g[2] {
                    Some(g) => blocks(g.get().add(MOST * at), MOST, n, i, v),
                    None => [L::lit(0.0); MOST],
                };
                let (dx, dh, dstate) = self.cell.vjp(kept, states, Cotangents { out, state, kept: more });
                put(dx, self.dx.get().add(gates), count, n, i, v);
                if !self.cell.has_cell() {
                    put(dh, self.dh.get().add(gates), count, n, i, v);
                }
                v.store(dstate, self.dstate.get().add(at + i));
            });
        }
    }
}

/// The VJP of [`cell`] from what it kept, the states before and after, and the cotangents of its results, of
/// which zeros are left out: the cotangents of the product of the input, of that of the hidden state (the
/// same for a cell with a cell state, and left out) and of the state before, in the dtype of the states.
pub fn cell_vjp<K: Gated>(
    cell: K, kept: &Array, states: [&Array; 2], g: [Option<&Array>; 3],
) -> Result<SmallVec<[Array; 3]>> {
    let (dtype, kept) = (states[0].dtype(), wide(kept)?);
    let [before, after] = [wide(states[0])?, wide(states[1])?];
    let (shape, last) = (before.shape(), before.rank() - 1);
    let n = before.dim(last);
    let mut given = [None, None, None];
    for (to, g) in given.iter_mut().zip(g) {
        *to = g.map(|g| cast(g, kept.dtype())).transpose()?;
    }
    let gates = shape.with(last, cell.gates() * n);
    let dx = fresh(gates, kept.dtype())?;
    let dh = if cell.has_cell() { dx.clone() } else { fresh(gates, kept.dtype())? };
    let dstate = fresh(shape, kept.dtype())?;
    with_float!(kept.dtype(), T => {
        let step = StepVjp::<T, K> {
            kept: start(&kept), states: [start(&before), start(&after)],
            g: [0, 1, 2].map(|i: usize| given[i].as_ref().map(start)),
            dx: start(&dx), dh: start(&dh), dstate: start(&dstate),
            n, cell,
        };
        each_row::<T, _>(&step, before.numel() / n.max(1), 16 * n)
    });
    let all = if cell.has_cell() { vec![&dx, &dstate] } else { vec![&dx, &dh, &dstate] };
    all.into_iter().map(|x| cast(x, dtype)).collect()
}
