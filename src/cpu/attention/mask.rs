//! Masks, causality and dropout of a tile of scores.

use super::super::random::philox;
use super::operand::{MatrixBatch, View};
use super::product::TileFloat;
use super::{Block, LANE, Problem, Tile};
use crate::arguments::attention::Dropout;
use crate::array::dtype::Truth;
use crate::array::random::State;
use crate::array::shape::{MAX_RANK, Shape};

/// Which scores count, or what is added to them.
pub enum Mask<T> {
    /// Every score counts.
    None,
    /// Only the scores where the mask is true count.
    Bool(MatrixBatch<Truth>),
    /// Every score counts, after the mask is added.
    Add(MatrixBatch<T>),
}

impl Dropout {
    /// Returns the row-major index of this batch element over the axes that do not share random numbers.
    fn element(&self, batch: &Shape, at: &[usize; MAX_RANK]) -> u64 {
        let own = |&i: &usize| self.shared >> i & 1 == 0;
        (0..batch.rank()).filter(own).fold(0, |n, i| n * batch.at(i) as u64 + at[i] as u64)
    }
}

/// Whether the uniform number from `word` is at least `p`; the uniform numbers are those of a float32 `rand`.
#[inline(always)]
fn kept(word: u32, p: f32) -> bool {
    (word >> 8) as f32 * (1.0 / 16_777_216.0) >= p
}

/// Philox blocks computed together, so that the compiler can vectorise.
const TOGETHER: usize = 16;

/// Writes the dropout factors of a tile: 0, or `1 / (1 - p)` where the weight is kept.
///
/// # Safety
/// `to` has capacity for the tile.
pub unsafe fn dropout_tile<T: TileFloat>(p: &Problem<T>, dropout: &Dropout, tile: &Tile, to: *mut T) {
    let Block { at, query, queries, width } = tile.block;
    let element = dropout.element(&p.batch, &at);
    let (probability, State { seed, offset }) = (dropout.p as f32, dropout.state);
    let key = [seed as u32, (seed >> 32) as u32];
    let yes = T::from_f64(if dropout.p < 1.0 { 1.0 / (1.0 - dropout.p) } else { 0.0 });
    for i in 0..queries {
        let row = element * p.queries as u64 + (query + i) as u64;
        let first = row * p.keys as u64 + tile.key as u64;
        let last = first + tile.keys as u64;
        let mut block = first / 4;
        while block * 4 < last {
            let mut words = [[0u32; 4]; TOGETHER];
            for (k, words) in words.iter_mut().enumerate() {
                let counter = offset.wrapping_add(block + k as u64);
                *words = philox([counter as u32, (counter >> 32) as u32, 0, 0], key);
            }
            for (k, &word) in words.as_flattened().iter().enumerate() {
                let number = block * 4 + k as u64;
                if (first..last).contains(&number) {
                    let j = (number - first) as usize;
                    // SAFETY: row `j` and column `i` lie inside the tile.
                    unsafe {
                        *to.add(j * width + i) = if kept(word, probability) { yes } else { T::default() }
                    };
                }
            }
            block += TOGETHER as u64;
        }
    }
}

fn never<T: TileFloat>() -> T {
    T::from_f64(f64::NEG_INFINITY)
}

/// Sets the scores of keys after their query to minus infinity.
///
/// # Safety
/// `scores` has the size of the tile.
pub unsafe fn causal_tile<T: TileFloat>(tile: &Tile, scores: *mut T) {
    let Block { query, queries, width, .. } = tile.block;
    for j in 0..tile.keys {
        let before = (tile.key + j).saturating_sub(query).min(queries);
        // SAFETY: row `j` and column `i` lie inside the tile.
        (0..before).for_each(|i| unsafe { *scores.add(j * width + i) = never() });
    }
}

/// Sets the scores to minus infinity where the mask, from the first query of the tile on, is false.
///
/// # Safety
/// `scores` has the size of the tile, and the mask covers it.
pub unsafe fn bool_tile<T: TileFloat>(tile: &Tile, mask: View<Truth>, scores: *mut T) {
    // SAFETY: the caller guarantees that the mask covers the tile, and `at` lies inside it.
    unsafe {
        each(tile, mask, |at, take| {
            let score = scores.add(at);
            *score = if take.is_true() { *score } else { never() };
        });
    }
}

/// Adds a mask, from the first query of the tile on, to the scores.
///
/// # Safety
/// `scores` has the size of the tile, and the mask covers it.
pub unsafe fn add_tile<T: TileFloat>(tile: &Tile, mask: View<T>, scores: *mut T) {
    // SAFETY: the caller guarantees that the mask covers the tile, and `at` lies inside it.
    unsafe {
        each(tile, mask, |at, add| {
            let score = scores.add(at);
            *score = T::from_f64(1.0).multiply_add::<false>(*score, add);
        });
    }
}

/// Calls `f(index in the tile, mask element)` for every score, [`LANE`] keys of a query at a time.
///
/// # Safety
/// The mask covers the tile.
#[inline(always)]
unsafe fn each<M: Copy>(tile: &Tile, mask: View<M>, f: impl Fn(usize, M)) {
    for from in (0..tile.keys).step_by(LANE) {
        for i in 0..tile.block.queries {
            for j in from..tile.keys.min(from + LANE) {
                // SAFETY: the caller guarantees that the mask covers the tile.
                f(j * tile.block.width + i, unsafe { mask.get(i, tile.key + j) });
            }
        }
    }
}
