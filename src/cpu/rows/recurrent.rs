//! A recurrent layer in one direction and its backward kernel: the steps of `src/cpu/rows/cell.rs` in the
//! order of time, each with a product by the same packed weight.

use super::cell::{AnyCell, Looped, Step, StepVjp};
use super::norm::{fresh, start, wide, with_float};
use crate::array::shape::Axes;
use crate::cpu::prelude::*;
use crate::cpu::product::MatrixRef;
use crate::cpu::product::matmul::matmul;
use crate::cpu::product::packed::{Pack, Packed};
use crate::cpu::reduce::sum;
use crate::cpu::run::scratch::Scratch;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// Multiplications that are worth one chunk of the loop over the batch.
const WORK: usize = 1 << 20;
/// Numbers of a weight up to which each chunk of the batch reads all of it at every step.
const SMALL: usize = 1 << 17;
/// Rows of the batch that go through all times together: their products stay in the first-level cache.
const ROWS: usize = 24;
/// What the gates cost, in multiplications for each element of the state.
const GATES: usize = 64;

/// Lengths, and the direction.
struct Walk<'a> {
    time: usize,
    /// Rows of the batch, and elements of the state in each.
    rows: usize,
    n: usize,
    backwards: bool,
    cell: &'a dyn AnyCell,
}

impl Walk<'_> {
    /// Of a layer with these states at all times and this state at first.
    fn new<'a>(time: usize, first: &Array, backwards: bool, cell: &'a dyn AnyCell) -> Walk<'a> {
        let n = first.dim(first.rank() - 1);
        Walk { time, rows: first.numel().checked_div(n).unwrap_or(0), n, backwards, cell }
    }

    /// The index in time of a step, counted in the direction.
    fn at(&self, step: usize) -> usize {
        if self.backwards { self.time - 1 - step } else { step }
    }

    /// The elements of the state in the steps before `step` and at it, from row `row` of the batch on; at the
    /// first one it is its own row of the first state.
    fn places(&self, step: usize, row: usize) -> (Option<usize>, usize) {
        let place = |step: usize| (self.at(step) * self.rows + row) * self.n;
        (step.checked_sub(1).map(place), place(step))
    }

    /// Calls `body` for parts of the batch: on several threads, or where the weight is large, which threads
    /// share, for the whole.
    fn each_part(&self, body: impl Fn(Range<usize>) -> Result<()> + Sync) -> Result<()> {
        let weight = self.cell.gates() * self.n * self.n;
        if weight > SMALL {
            return if self.rows > 0 { body(0..self.rows) } else { Ok(()) };
        }
        let work = self.time * (weight + GATES * self.n);
        try_parallel_for(self.rows, WORK.div_ceil(work.max(1)).max(8), |range| {
            range.clone().step_by(ROWS).try_for_each(|row| body(row..range.end.min(row + ROWS)))
        })
    }
}

/// Moves a pointer.
fn moved<T>(x: Shared<T>, by: usize) -> Shared<T> {
    Shared::new(x.get().wrapping_add(by))
}

/// Writes the sum of what is there.
fn sum_into<T: Pack>(to: &mut [T], terms: [Option<&[T]>; 2]) {
    to.fill(T::default());
    for term in terms.into_iter().flatten() {
        to.iter_mut().zip(term).for_each(|(to, &x)| *to = T::plus(*to, x));
    }
}

/// Operands and results of a layer.
struct Layer<'a, T> {
    walk: Walk<'a>,
    x: Shared<T>,
    bias: Option<Shared<T>>,
    /// The first hidden state, and the first state that the gates change.
    first: [Shared<T>; 2],
    out: Shared<T>,
    cells: Shared<T>,
    kept: Shared<T>,
}

impl<T: Looped + Pack> Layer<'_, T> {
    /// All times, for some rows of the batch.
    fn run(&self, weight: &dyn Packed<T>, rows: Range<usize>) -> Result<()> {
        let Walk { n, cell, .. } = self.walk;
        let (gates, kept, count) = (cell.gates(), cell.kept(), rows.len());
        let mut memory = Scratch::<T>::new(count * gates * n)?;
        let product = memory.shared();
        let states = if cell.has_cell() { self.cells } else { self.out };
        for step in 0..self.walk.time {
            let (before, at) = self.walk.places(step, rows.start);
            let [hidden, state] = match before {
                Some(before) => [moved(self.out, before), moved(states, before)],
                None => self.first.map(|first| moved(first, rows.start * n)),
            };
            // SAFETY: all arrays have these rows, which belong to this call alone.
            unsafe {
                if let Some(bias) = self.bias {
                    let bias = bias.view(0, gates * n);
                    product.part(0, count * gates * n).chunks_exact_mut((gates * n).max(1)).for_each(|row| {
                        row.copy_from_slice(bias);
                    });
                }
                weight.multiply((hidden.get(), n), product.get(), count, self.bias.is_some());
            }
            let (x, kept) = (moved(self.x, gates * at), moved(self.kept, kept * at));
            let (after, out) = (moved(self.cells, at), moved(self.out, at));
            T::loops(cell).step(Step { x, h: product, before: state, kept, after, out, n }, count);
        }
        Ok(())
    }
}

/// All steps of a layer, from the products of its input `[time, ..., gates * n]`, its weight
/// `[gates * n, n]`, the first hidden state and the first state that the gates change `[..., n]`: the hidden
/// states of all times, the cell states if there are any, and what [`recurrent_vjp`] reads
/// `[time, ..., kept * n]`, which is `f32` for halves.
pub fn recurrent(
    cell: &dyn AnyCell, backwards: bool, x: &Array, weight: &Array, first: [&Array; 2], bias: Option<&Array>,
) -> Result<SmallVec<[Array; 3]>> {
    let (dtype, x, weight) = (x.dtype(), wide(x)?, wide(weight)?);
    let [hidden, state] = [wide(first[0])?, wide(first[1])?];
    let bias = bias.map(wide).transpose()?;
    let walk = Walk::new(x.dim(0), &state, backwards, cell);
    let (n, last) = (walk.n, x.rank() - 1);
    let out = fresh(x.shape().with(last, n), x.dtype())?;
    let cells = if cell.has_cell() { fresh(out.shape(), x.dtype())? } else { out.clone() };
    let kept = fresh(x.shape().with(last, cell.kept() * n), x.dtype())?;
    with_float!(x.dtype(), T => {
        let layer = Layer::<T> {
            walk, x: start(&x), bias: bias.as_ref().map(start), first: [start(&hidden), start(&state)],
            out: start(&out), cells: start(&cells), kept: start(&kept),
        };
        let right = MatrixRef { data: weight.ptr::<T>(), free: n as isize, depth: 1 };
        // SAFETY: the weight has this size, and it is only read.
        let weight = unsafe { T::packed(right, n, cell.gates() * n, layer.walk.rows)? };
        layer.walk.each_part(|rows| layer.run(&*weight, rows))
    })?;
    let mut all = smallvec![cast(&out, dtype)?];
    if cell.has_cell() {
        all.push(cast(&cells, dtype)?);
    }
    all.push(kept);
    Ok(all)
}

/// Operands and results of the VJP of a layer.
struct LayerVjp<'a, T> {
    walk: Walk<'a>,
    kept: Shared<T>,
    /// The state that the gates change, at first and at all times.
    states: [Shared<T>; 2],
    /// Cotangents of the hidden states, of the cell states and of what was kept.
    g: [Option<Shared<T>>; 3],
    dx: Shared<T>,
    dh: Shared<T>,
    /// The cotangents of the first hidden state and of the first state that the gates change: on the way
    /// there, those after each step.
    first: [Shared<T>; 2],
}

impl<T: Looped + Pack> LayerVjp<'_, T> {
    /// All times, from the last step to the first, for some rows of the batch.
    fn run(&self, weight: &dyn Packed<T>, rows: Range<usize>) {
        let Walk { n, cell, time, .. } = self.walk;
        let (gates, kept, count) = (cell.gates(), cell.kept(), rows.len());
        let (length, has_cell) = (count * n, cell.has_cell());
        let [hidden, own] = self.first.map(|first| moved(first, rows.start * n));
        let [out, state, more] = self.g;
        // SAFETY: all arrays have these rows, which belong to this call alone.
        let given = |g: Option<Shared<T>>, at: usize| g.map(|g| unsafe { g.view(at, length) });
        let (_, last) = self.walk.places(time - 1, rows.start);
        // SAFETY: as above.
        unsafe {
            sum_into(hidden.part(0, length), [given(out, last), None]);
            sum_into(own.part(0, length), [given(state, last), None]);
        }
        for step in (0..time).rev() {
            let (before, at) = self.walk.places(step, rows.start);
            let first = match before {
                Some(before) => moved(self.states[1], before),
                None => moved(self.states[0], rows.start * n),
            };
            let dh = moved(self.dh, gates * at);
            let pulled = StepVjp {
                kept: moved(self.kept, kept * at),
                states: [first, moved(self.states[1], at)],
                g: [Some(hidden), has_cell.then_some(own), more.map(|g| moved(g, kept * at))],
                dx: moved(self.dx, gates * at),
                dh,
                dstate: own,
                n,
            };
            T::loops(cell).step_vjp(pulled, count);
            // What the state before gets beside the product: in a cell without a state of its own it is the
            // hidden one.
            // SAFETY: as above.
            unsafe {
                let passed = (!has_cell).then(|| own.view(0, length));
                sum_into(hidden.part(0, length), [passed, before.and_then(|before| given(out, before))]);
                weight.multiply((dh.get(), gates * n), hidden.get(), count, true);
                if let Some(g) = before.and_then(|before| given(state, before)) {
                    own.part(0, length).iter_mut().zip(g).for_each(|(own, &g)| *own = T::plus(*own, g));
                }
            }
        }
    }
}

/// What [`recurrent_vjp`] reads, beside cotangents.
pub struct Walked<'a> {
    /// What the steps kept.
    pub kept: &'a Array,
    /// The weight.
    pub weight: &'a Array,
    /// The state that the gates change, at first and at all times.
    pub states: [&'a Array; 2],
    /// The hidden state, at first and at all times, if the gradient of the weight is wanted.
    pub hidden: Option<[&'a Array; 2]>,
}

/// The VJP of [`recurrent`] from the cotangents of its results, of which zeros are left out: those of the
/// products of the input, of the first hidden state, of the first cell state if there is one, of the weight
/// if wanted, and of the bias if `bias`.
pub fn recurrent_vjp(
    cell: &dyn AnyCell, backwards: bool, x: &Walked, g: [Option<&Array>; 3], bias: bool,
) -> Result<SmallVec<[Array; 5]>> {
    let (kept, weight) = (wide(x.kept)?, wide(x.weight)?);
    let dtype = kept.dtype();
    let [first, all] = [cast(x.states[0], dtype)?, cast(x.states[1], dtype)?];
    let mut given = [None, None, None];
    for (to, g) in given.iter_mut().zip(g) {
        *to = g.map(|g| cast(g, dtype)).transpose()?;
    }
    let walk = Walk::new(kept.dim(0), &first, backwards, cell);
    let (n, steps) = (walk.n, walk.time * walk.rows);
    let gates = all.shape().with(all.rank() - 1, cell.gates() * n);
    let dx = fresh(gates, dtype)?;
    let dh = if cell.differ() { fresh(gates, dtype)? } else { dx.clone() };
    let (hidden, own) = (fresh(first.shape(), dtype)?, fresh(first.shape(), dtype)?);
    with_float!(dtype, T => {
        let layer = LayerVjp::<T> {
            walk, kept: start(&kept), states: [start(&first), start(&all)],
            g: [0, 1, 2].map(|i: usize| given[i].as_ref().map(start)),
            dx: start(&dx), dh: start(&dh), first: [start(&hidden), start(&own)],
        };
        let right = MatrixRef { data: weight.ptr::<T>(), free: 1, depth: n as isize };
        // SAFETY: the weight has this size, and it is only read.
        let weight = unsafe { T::packed(right, cell.gates() * n, n, layer.walk.rows)? };
        layer.walk.each_part(|rows| {
            layer.run(&*weight, rows);
            Ok(())
        })
    })?;
    let mut out: SmallVec<[Array; 5]> = smallvec![dx, hidden];
    if cell.has_cell() {
        out.push(own);
    }
    let matrix = |x: &Array, columns: usize| {
        let flat = Shape::new(&[steps, columns])?;
        x.reshape_view(&flat).ok_or_else(|| Error::shape("internal: states of a layer with gaps"))
    };
    let sums = matrix(&dh, cell.gates() * n)?;
    if let Some([first, all]) = x.hidden {
        let before = matrix(&cast(&before(all, first, backwards)?, dtype)?, n)?;
        out.push(matmul(&sums.transposed(0, 1)?, &before)?);
    }
    if bias {
        out.push(sum(&sums, Axes::one(0), false)?);
    }
    out.iter().map(|y| cast(y, x.weight.dtype())).collect()
}

/// The states before each step, from those at all times and the first one.
fn before(all: &Array, first: &Array, backwards: bool) -> Result<Array> {
    let out = fresh(all.shape(), all.dtype())?;
    let later = all.dim(0) - 1;
    let part = |x: &Array, from: usize, length: usize| {
        let mut starts = vec![0; x.rank()];
        starts[0] = from;
        x.slice_view(&starts, &vec![1; x.rank()], &x.shape().with(0, length))
    };
    let (to, from, own) = if backwards { (0, 1, later) } else { (1, 0, 0) };
    part(&out, to, later)?.assign(&part(all, from, later)?)?;
    part(&out, own, 1)?.assign(first)?;
    Ok(out)
}
