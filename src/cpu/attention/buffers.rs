//! Working memory for one block of queries.

use super::product::TileFloat;
use super::{KEYS, LANE, Problem, QUERIES};
use crate::cpu::run::scratch::Scratch;
use crate::error::Result;

/// The buffers of a block; those that a pass does not use have length 0.
pub struct Buffers<T> {
    /// The scaled queries: transposed, and for reverse passes as rows.
    pub q: [*mut T; 2],
    /// Their tangents, likewise.
    pub tq: [*mut T; 2],
    /// The cotangents of the result, likewise.
    pub g: [*mut T; 2],
    /// The scores of a tile; in reverse passes then the factor of cotangents in `dv` (first order) or of
    /// queries in `dk` (second order).
    pub scores: *mut T,
    /// The cotangents of the scores (first order) or of their tangents (second order).
    pub adjoint: *mut T,
    /// The tangents of the scores.
    pub moved: *mut T,
    /// The cotangents times the tangents of the values.
    pub cross: *mut T,
    /// The factors of dropout.
    pub keep: *mut T,
    /// The result, or the gradient of the queries, transposed.
    pub sums: *mut T,
    /// Numbers per query.
    pub columns: [*mut T; 4],
    _memory: Vec<Scratch<T>>,
}

impl<T: TileFloat> Buffers<T> {
    /// Returns buffers for any block of the problem, for a reverse pass or one with tangents if so asked.
    pub fn new(p: &Problem<T>, reverse: bool, tangents: bool) -> Result<Buffers<T>> {
        let mut memory = Vec::new();
        let mut make = |used: bool, length: usize| -> Result<*mut T> {
            let mut scratch = Scratch::zeroed(if used { length } else { 0 })?;
            let start = scratch.ptr();
            memory.push(scratch);
            Ok(start)
        };
        let tile = QUERIES * KEYS.min(p.keys);
        let [depth, width] = [p.depth, p.width].map(|n| QUERIES * n.next_multiple_of(LANE));
        let columns = make(true, 4 * QUERIES)?;
        Ok(Buffers {
            q: [make(true, depth)?, make(reverse, depth)?],
            tq: [make(tangents, depth)?, make(tangents && reverse, depth)?],
            g: [make(reverse, width)?, make(reverse, width)?],
            scores: make(true, tile)?,
            adjoint: make(reverse, tile)?,
            moved: make(tangents, tile)?,
            cross: make(tangents && reverse, tile)?,
            keep: make(p.settings.dropout.is_some(), tile)?,
            sums: make(true, depth.max(width))?,
            columns: [0, 1, 2, 3].map(|i| columns.wrapping_add(i * QUERIES)),
            _memory: memory,
        })
    }
}
