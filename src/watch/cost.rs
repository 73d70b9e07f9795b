//! Floating point operations: counted where kernels run, by the formula of each operation.
//!
//! Additions, subtractions, multiplications, divisions and elementary functions (`exp`, `sqrt`, `pow`, …) of
//! one element count one each. Changes of sign, comparisons, selections, roundings, and moving data count
//! nothing. What is counted is the formula, not a kernel's way to compute it: a product of matrices is
//! `2 m n k`, with or without blocks, and a causal attention counts the scores that its mask discards. Each
//! operation says its count (`Kernel::flops`); those of the tables are read off their rows
//! (`src/ops/pointwise/reading/`).
//!
//! Counting is a mode of a thread (`Modes::COUNT`): with it off, nothing of this file runs.

use crate::array::Array;
use crate::watch::debug::{Modes, modes, set_modes};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// Where operations are counted: the module that runs (a number that the host language chose), whether a
/// backward walk runs, the operation.
type Place = (u32, bool, &'static str);

/// Module, whether in backward, operation, how often it ran, its floating point operations.
pub type Row = (u32, bool, &'static str, u64, u64);

/// What a thread counts.
#[derive(Default)]
struct Here {
    /// One for each open region, the innermost last.
    tallies: Vec<FxHashMap<Place, (u64, u64)>>,
    /// The module that runs.
    scope: u32,
    /// Whether a backward walk runs.
    backward: bool,
    /// The modules that recorded the entries of the tape, by their position.
    recorded: FxHashMap<u64, u32>,
}

thread_local! {
    static HERE: RefCell<Here> = RefCell::default();
}

/// Begins to count; regions nest.
pub fn begin() {
    HERE.with_borrow_mut(|here| here.tallies.push(FxHashMap::default()));
    set_modes(modes().and(Modes::COUNT));
}

/// What the innermost region has counted so far.
pub fn read() -> Vec<Row> {
    HERE.with_borrow(|here| {
        let tally = here.tallies.last().into_iter().flatten();
        tally.map(|(&(scope, backward, op), &(calls, flops))| (scope, backward, op, calls, flops)).collect()
    })
}

/// Ends the innermost region; the one around it has counted the same.
pub fn end() {
    let open = HERE.with_borrow_mut(|here| {
        let inner = here.tallies.pop().unwrap_or_default();
        match here.tallies.last_mut() {
            Some(outer) => {
                for (place, (calls, flops)) in inner {
                    let sum = outer.entry(place).or_default();
                    *sum = (sum.0 + calls, sum.1 + flops);
                }
                true
            }
            None => {
                here.recorded.clear();
                false
            }
        }
    });
    if !open {
        set_modes(modes().without(Modes::COUNT));
    }
}

/// Says which module runs; returns the one before.
pub fn set_scope(scope: u32) -> u32 {
    HERE.with_borrow_mut(|here| std::mem::replace(&mut here.scope, scope))
}

/// Counts one run of an operation.
pub fn ran(op: &'static str, flops: u64) {
    HERE.with_borrow_mut(|here| {
        let place = (here.scope, here.backward, op);
        if let Some(tally) = here.tallies.last_mut() {
            let sum = tally.entry(place).or_default();
            *sum = (sum.0 + 1, sum.1 + flops);
        }
    });
}

/// Counts the sum of two gradients of a value with so many elements.
#[inline]
pub fn accumulated(elements: usize) {
    if modes().has(Modes::COUNT) {
        ran("add", elements as u64);
    }
}

/// Notes which module recorded the entry of the tape at this position.
pub fn recorded(seq: u64) {
    HERE.with_borrow_mut(|here| {
        let scope = here.scope;
        here.recorded.insert(seq, scope);
    });
}

/// A backward walk that is being counted.
pub struct Backward {
    scope: u32,
    nested: bool,
}

impl Backward {
    /// A walk begins.
    pub fn begin() -> Backward {
        HERE.with_borrow_mut(|here| Backward {
            scope: here.scope,
            nested: std::mem::replace(&mut here.backward, true),
        })
    }

    /// The walk comes to the entry at this position: what runs now belongs to the module that recorded it.
    pub fn at(&self, seq: u64) {
        HERE.with_borrow_mut(|here| here.scope = here.recorded.get(&seq).copied().unwrap_or(self.scope));
    }
}

impl Drop for Backward {
    fn drop(&mut self) {
        HERE.with_borrow_mut(|here| (here.scope, here.backward) = (self.scope, self.nested));
    }
}

/// `flops` for each element of the first of `arrays`.
pub fn each<A: std::borrow::Borrow<Array>>(arrays: &[A], flops: u64) -> u64 {
    arrays.first().map_or(0, |a| a.borrow().numel() as u64 * flops)
}

/// One operation for each element that is folded into another: those of the input less those of the output.
pub fn folded(x: &[&Array], y: &[Array]) -> u64 {
    each(x, 1).saturating_sub(each(y, 1))
}

/// `2 m n k` of a product, whose result has `m n` elements (batch included), each a sum of `k` products.
pub fn product(results: usize, terms: usize) -> u64 {
    2 * results as u64 * terms as u64
}

/// `flops` for each element of a scan along `axis` but the first of each line.
pub fn scanned(x: &[&Array], axis: u8, flops: u64) -> u64 {
    let Some(x) = x.first().filter(|x| x.numel() > 0) else { return 0 };
    let lines = if x.rank() == 0 { 1 } else { x.numel() / x.dim(axis as usize) };
    (x.numel() - lines) as u64 * flops
}

/// How many matrices stand in the last two axes, their rows and columns. A complex matrix, whose products are
/// four each, counts as four.
pub fn matrices(x: &Array) -> (u64, u64, u64) {
    let Some(i) = x.rank().checked_sub(2) else { return (0, 0, 0) };
    let (m, n) = (x.dim(i) as u64, x.dim(i + 1) as u64);
    let parts = if x.dtype().is_complex() { 4 } else { 1 };
    (parts * x.numel() as u64 / (m * n).max(1), m, n)
}

/// Rows along the last axis: how many, and how long.
pub fn rows(x: &Array) -> (u64, u64) {
    let length = if x.rank() == 0 { 1 } else { x.dim(x.rank() - 1) };
    ((x.numel() / length.max(1)) as u64, length as u64)
}
