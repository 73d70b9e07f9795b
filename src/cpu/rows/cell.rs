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

/// The loops over elements of one type of a cell, whichever it is.
pub(super) trait Loops<T>: Sync {
    /// Computes rows of a step.
    fn step(&self, step: Step<T>, rows: usize);
    /// Computes rows of the VJP of a step.
    fn step_vjp(&self, step: StepVjp<T>, rows: usize);
}

impl<T: RowFloat, K: Gated> Loops<T> for K {
    fn step(&self, step: Step<T>, rows: usize) {
        each_row::<T, _>(&Of(step, *self), rows, 16 * step.n);
    }
    fn step_vjp(&self, step: StepVjp<T>, rows: usize) {
        each_row::<T, _>(&Of(step, *self), rows, 16 * step.n);
    }
}

/// A cell as kernels see it.
#[allow(private_bounds, reason = "what implements it are the formulas, from which the loops follow")]
pub trait AnyCell: Loops<f32> + Loops<f64> {
    /// See [`Gated`], also for the others.
    fn gates(&self) -> usize;
    /// See there.
    fn has_cell(&self) -> bool;
    /// See there.
    fn kept(&self) -> usize;
    /// See there.
    fn differ(&self) -> bool;
}

impl<K: Gated> AnyCell for K {
    fn gates(&self) -> usize {
        Gated::gates(*self)
    }
    fn has_cell(&self) -> bool {
        Gated::has_cell(*self)
    }
    fn kept(&self) -> usize {
        Gated::kept(*self)
    }
    fn differ(&self) -> bool {
        Gated::differ(*self)
    }
}

/// A float type that cells compute in.
pub(super) trait Looped: RowFloat {
    /// The loops over such elements.
    fn loops(cell: &dyn AnyCell) -> &dyn Loops<Self>;
}

impl Looped for f32 {
    fn loops(cell: &dyn AnyCell) -> &dyn Loops<f32> {
        cell
    }
}

impl Looped for f64 {
    fn loops(cell: &dyn AnyCell) -> &dyn Loops<f64> {
        cell
    }
}

/// Operands, and the cell whose formulas they go through.
struct Of<S, K>(S, K);

/// Operands and results of a step.
#[derive(Clone, Copy)]
pub(super) struct Step<T> {
    /// The products of the input and of the hidden state.
    pub x: Shared<T>,
    pub h: Shared<T>,
    /// The state before.
    pub before: Shared<T>,
    /// What derivatives read, the state after, if there is a cell state, and the hidden state after.
    pub kept: Shared<T>,
    pub after: Shared<T>,
    pub out: Shared<T>,
    /// Elements of a row of the state.
    pub n: usize,
}

impl<T: RowFloat, K: Gated> RowOp<T> for Of<Step<T>, K> {
    #[inline(always)]
    fn row<L: Wide<Number = T>>(&self, row: usize) {
        let Of(step, cell) = self;
        let (n, count, kept) = (step.n, Gated::gates(*cell), Gated::kept(*cell));
        let gates = row * count * n;
        // SAFETY: all arrays have this row, and it belongs to this call alone.
        unsafe {
            let (x, h) = (step.x.get().add(gates), step.h.get().add(gates));
            let at = row * n;
            across!(L, n, i, v => {
                let before = v.load::<L>(step.before.get().add(at + i));
                let x: [L; MOST] = blocks(x, count, n, i, v);
                let (values, after, out) = Gated::step(*cell, x, blocks(h, count, n, i, v), before);
                put(values, step.kept.get().add(kept * at), kept, n, i, v);
                v.store(out, step.out.get().add(at + i));
                if Gated::has_cell(*cell) {
                    v.store(after, step.after.get().add(at + i));
                }
            });
        }
    }
}

/// One step from the products of the input and of the hidden state `[..., gates * n]` and the state before
/// `[..., n]`: the hidden state, the cell state if there is one, and what [`cell_vjp`] reads
/// `[..., kept * n]`, which is `f32` for halves.
pub fn cell(cell: &dyn AnyCell, x: &Array, h: &Array, before: &Array) -> Result<SmallVec<[Array; 3]>> {
    let dtype = x.dtype();
    let (x, h, state) = (wide(x)?, wide(h)?, wide(before)?);
    let (shape, last) = (state.shape(), state.rank() - 1);
    let n = state.dim(last);
    let out = fresh(shape, x.dtype())?;
    let after = if cell.has_cell() { fresh(shape, x.dtype())? } else { out.clone() };
    let kept = fresh(shape.with(last, cell.kept() * n), x.dtype())?;
    with_float!(x.dtype(), T => {
        let step = Step::<T> {
            x: start(&x), h: start(&h), before: start(&state),
            kept: start(&kept), after: start(&after), out: start(&out), n,
        };
        T::loops(cell).step(step, state.numel() / n.max(1))
    });
    let mut all = SmallVec::new();
    all.push(cast(&out, dtype)?);
    if cell.has_cell() {
        all.push(cast(&after, dtype)?);
    }
    all.push(kept);
    Ok(all)
}

/// Operands and results of the VJP of a step.
#[derive(Clone, Copy)]
pub(super) struct StepVjp<T> {
    /// What the step kept, and the states before and after it.
    pub kept: Shared<T>,
    pub states: [Shared<T>; 2],
    /// Cotangents of the hidden state, of the cell state and of what was kept.
    pub g: [Option<Shared<T>>; 3],
    /// Cotangents of the products of the input and of the hidden state, and of the state before, which may
    /// lie where that of the state after does.
    pub dx: Shared<T>,
    pub dh: Shared<T>,
    pub dstate: Shared<T>,
    /// Elements of a row of the state.
    pub n: usize,
}

impl<T: RowFloat, K: Gated> RowOp<T> for Of<StepVjp<T>, K> {
    #[inline(always)]
    fn row<L: Wide<Number = T>>(&self, row: usize) {
        let Of(step, cell) = self;
        let (n, count, saved) = (step.n, Gated::gates(*cell), Gated::kept(*cell));
        let (at, gates) = (row * n, row * count * n);
        // SAFETY: all arrays have this row, and it belongs to this call alone.
        unsafe {
            across!(L, n, i, v => {
                let kept: [L; MOST] = blocks(step.kept.get().add(saved * at), saved, n, i, v);
                let states = step.states.map(|state| v.load::<L>(state.get().add(at + i)));
                let [out, state] = [step.g[0], step.g[1]].map(|g| match g {
                    Some(g) => v.load::<L>(g.get().add(at + i)),
                    None => L::lit(0.0),
                });
                let more = match step.g[2] {
                    Some(g) => blocks(g.get().add(saved * at), saved, n, i, v),
                    None => [L::lit(0.0); MOST],
                };
                let (dx, dh, dstate) = Gated::vjp(*cell, kept, states, Cotangents { out, state, kept: more });
                put(dx, step.dx.get().add(gates), count, n, i, v);
                if Gated::differ(*cell) {
                    put(dh, step.dh.get().add(gates), count, n, i, v);
                }
                v.store(dstate, step.dstate.get().add(at + i));
            });
        }
    }
}

/// The VJP of [`cell`] from what it kept, the states before and after, and the cotangents of its results, of
/// which zeros are left out: the cotangents of the product of the input, of that of the hidden state, unless
/// they are the same, and of the state before, in the dtype of the states.
pub fn cell_vjp(
    cell: &dyn AnyCell, kept: &Array, states: [&Array; 2], g: [Option<&Array>; 3],
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
    let dh = if cell.differ() { fresh(gates, kept.dtype())? } else { dx.clone() };
    let dstate = fresh(shape, kept.dtype())?;
    with_float!(kept.dtype(), T => {
        let step = StepVjp::<T> {
            kept: start(&kept), states: [start(&before), start(&after)],
            g: [0, 1, 2].map(|i: usize| given[i].as_ref().map(start)),
            dx: start(&dx), dh: start(&dh), dstate: start(&dstate), n,
        };
        T::loops(cell).step_vjp(step, before.numel() / n.max(1))
    });
    let all = if cell.differ() { vec![&dx, &dh, &dstate] } else { vec![&dx, &dstate] };
    all.into_iter().map(|x| cast(x, dtype)).collect()
}
