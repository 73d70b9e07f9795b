//! Counts floating point operations where kernels run, by the formula of each operation.
//!
//! Additions, subtractions, multiplications, divisions and elementary functions (`exp`, `sqrt`, `pow`, …) of
//! one element count one each. Changes of sign, comparisons, selections, roundings and data movement count
//! zero. The count is that of the formula, not of the kernel's algorithm: a matrix product is `2 m n k`, with
//! or without blocking, and causal attention counts the scores that its mask discards. Each operation returns
//! its count (`Kernel::flops`); table operations derive it from their rows (`src/ops/pointwise/reading/`).
//!
//! Counting is a mode of a thread (`Modes::COUNT`); without it, nothing of this file runs.

use crate::array::Array;
use crate::watch::debug::{Modes, modes, set_modes};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::time::Duration;

/// The key of a count: the running module (Python's number), whether a backward walk runs, and the operation.
type CountKey = (u32, bool, &'static str);

/// Runs, floating point operations, and nanoseconds.
type Sums = (u64, u64, u64);

/// Module, whether in backward, operation, number of runs, floating point operations, nanoseconds.
pub type Row = (u32, bool, &'static str, u64, u64, u64);

/// The counting state of a thread.
#[derive(Default)]
struct Here {
    /// The counts of each open region, innermost last.
    tallies: Vec<FxHashMap<CountKey, Sums>>,
    /// The running module.
    scope: u32,
    /// Whether a backward walk runs.
    backward: bool,
    /// The module that recorded each node, by sequence number.
    recorded: FxHashMap<u64, u32>,
}

thread_local! {
    static HERE: RefCell<Here> = RefCell::default();
}

/// Opens a counting region; regions nest.
pub fn begin() {
    HERE.with_borrow_mut(|here| here.tallies.push(FxHashMap::default()));
    set_modes(modes().and(Modes::COUNT));
}

/// The counts of the innermost region so far.
pub fn read() -> Vec<Row> {
    HERE.with_borrow(|here| {
        let tally = here.tallies.last().into_iter().flatten();
        tally
            .map(|(&(scope, backward, op), &(calls, flops, time))| (scope, backward, op, calls, flops, time))
            .collect()
    })
}

/// Closes the innermost region and adds its counts to the one around it.
pub fn end() {
    let open = HERE.with_borrow_mut(|here| {
        let inner = here.tallies.pop().unwrap_or_default();
        let Some(outer) = here.tallies.last_mut() else {
            here.recorded.clear();
            return false;
        };
        for (key, sums) in inner {
            add(outer.entry(key).or_default(), sums);
        }
        true
    });
    if !open {
        set_modes(modes().without(Modes::COUNT));
    }
}

/// Sets the running module and returns the previous one.
pub fn set_scope(scope: u32) -> u32 {
    HERE.with_borrow_mut(|here| std::mem::replace(&mut here.scope, scope))
}

/// The running module.
pub fn scope() -> u32 {
    HERE.with_borrow(|here| here.scope)
}

/// Forgets which module recorded which node, unless operations are counted.
pub fn forget() {
    HERE.with_borrow_mut(|here| {
        if here.tallies.is_empty() {
            here.recorded.clear();
        }
    });
}

fn add(to: &mut Sums, sums: Sums) {
    *to = (to.0 + sums.0, to.1 + sums.1, to.2 + sums.2);
}

/// Counts one run of an operation, which took so long on the host.
pub fn ran(op: &'static str, flops: u64, time: Duration) {
    HERE.with_borrow_mut(|here| {
        let key = (here.scope, here.backward, op);
        if let Some(tally) = here.tallies.last_mut() {
            add(tally.entry(key).or_default(), (1, flops, time.as_nanos() as u64));
        }
    });
}

/// Stores that the running module recorded the node with this sequence number.
pub fn recorded(seq: u64) {
    HERE.with_borrow_mut(|here| {
        let scope = here.scope;
        here.recorded.insert(seq, scope);
    });
}

/// Guard of a counted backward walk: restores the module and the backward flag when dropped.
pub struct Backward {
    scope: u32,
    nested: bool,
}

impl Backward {
    /// Begins a walk.
    pub fn begin() -> Backward {
        HERE.with_borrow_mut(|here| Backward {
            scope: here.scope,
            nested: std::mem::replace(&mut here.backward, true),
        })
    }

    /// Makes the module that recorded this node the running one.
    pub fn at(&self, seq: u64) {
        HERE.with_borrow_mut(|here| here.scope = here.recorded.get(&seq).copied().unwrap_or(self.scope));
    }
}

impl Drop for Backward {
    fn drop(&mut self) {
        HERE.with_borrow_mut(|here| (here.scope, here.backward) = (self.scope, self.nested));
    }
}

/// Returns `flops` for each element of the first of `arrays`.
pub fn each<A: std::borrow::Borrow<Array>>(arrays: &[A], flops: u64) -> u64 {
    arrays.first().map_or(0, |a| a.borrow().numel() as u64 * flops)
}

/// Operations of a reduction: the elements of the input less those of the output.
pub fn folded(x: &[&Array], y: &[Array]) -> u64 {
    each(x, 1).saturating_sub(each(y, 1))
}

/// Operations of a matrix product, `2 m n k`: `results` = `m n` (batch included), `terms` = `k`.
pub fn product(results: usize, terms: usize) -> u64 {
    2 * results as u64 * terms as u64
}

/// Operations of a scan along `axis`: `flops` for each element but the first of each line.
pub fn scanned(x: &[&Array], axis: u8, flops: u64) -> u64 {
    let Some(x) = x.first().filter(|x| x.numel() > 0) else { return 0 };
    let lines = if x.rank() == 0 { 1 } else { x.numel() / x.dim(axis as usize) };
    (x.numel() - lines) as u64 * flops
}

/// Number of matrices in the last two axes, their rows and columns. A complex matrix counts as four, because
/// a complex product takes four real ones.
pub fn matrices(x: &Array) -> (u64, u64, u64) {
    let Some(i) = x.rank().checked_sub(2) else { return (0, 0, 0) };
    let (m, n) = (x.dim(i) as u64, x.dim(i + 1) as u64);
    let parts = if x.dtype().is_complex() { 4 } else { 1 };
    (parts * x.numel() as u64 / (m * n).max(1), m, n)
}

/// Number and length of the rows along the last axis.
pub fn rows(x: &Array) -> (u64, u64) {
    let length = if x.rank() == 0 { 1 } else { x.dim(x.rank() - 1) };
    ((x.numel() / length.max(1)) as u64, length as u64)
}
