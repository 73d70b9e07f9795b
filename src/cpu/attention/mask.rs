//! Masks, causality and dropout of a tile of scores.

use super::super::random::philox;
use super::operand::{Operand, View};
use super::product::Number;
use super::{LANE, Tile};
use crate::arguments::attention::Dropout;
use crate::array::random::State;
use crate::array::shape::{MAX_RANK, Shape};
use crate::cpu::run::threads::Shared;

/// Which scores count, or what is added to them.
pub enum Mask<T> {
    /// Every score counts.
    None,
    /// Only the scores where the mask is true count.
    Bool(Operand<bool>),
    /// Every score counts, after the mask is added.
    Add(Operand<T>),
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
pub unsafe fn dropout_tile<T: Number>(
    dropout: &Dropout,
    sizes: (usize, usize),
    batch: (&Shape, &[usize; MAX_RANK]),
    tile: &Tile,
    to: *mut T,
) {
    let (queries, keys) = sizes;
    let element = dropout.element(batch.0, batch.1);
    let (p, State { seed, offset }) = (dropout.p as f32, dropout.state);
    let key = [seed as u32, (seed >> 32) as u32];
    let yes = T::from_f64(if dropout.p < 1.0 { 1.0 / (1.0 - dropout.p) } else { 0.0 });
    for i in 0..tile.queries {
        let first = (element * queries as u64 + (tile.query + i) as u64) * keys as u64 + tile.key as u64;
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
                    unsafe { *to.add(j * tile.width + i) = if kept(word, p) { yes } else { T::default() } };
                }
            }
            block += TOGETHER as u64;
        }
    }
}

fn never<T: Number>() -> T {
    T::from_f64(f64::NEG_INFINITY)
}

/// Sets the scores of keys after their query to minus infinity.
///
/// # Safety
/// `scores` has the size of the tile.
pub unsafe fn causal_tile<T: Number>(tile: &Tile, scores: *mut T) {
    for j in 0..tile.keys {
        let before = (tile.key + j).saturating_sub(tile.query).min(tile.queries);
        // SAFETY: row `j` and column `i` lie inside the tile.
        (0..before).for_each(|i| unsafe { *scores.add(j * tile.width + i) = never() });
    }
}

/// Sets the scores to minus infinity where the mask is false.
///
/// # Safety
/// `scores` has the size of the tile, and the mask covers it.
pub unsafe fn bool_tile<T: Number>(tile: &Tile, mask: View<bool>, scores: *mut T) {
    // SAFETY: the caller guarantees that the mask covers the tile, and `at` lies inside it.
    unsafe {
        each(tile, mask, |at, take| {
            let score = scores.add(at);
            *score = if take { *score } else { never() };
        });
    }
}

/// Adds a mask to the scores of a tile.
///
/// # Safety
/// `scores` has the size of the tile, and the mask covers it.
pub unsafe fn add_tile<T: Number>(tile: &Tile, mask: View<T>, scores: *mut T) {
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
        for i in 0..tile.queries {
            for j in from..tile.keys.min(from + LANE) {
                // SAFETY: the caller guarantees that the mask covers the tile.
                f(j * tile.width + i, unsafe { mask.get(tile.query + i, tile.key + j) });
            }
        }
    }
}

/// Adds a transposed tile to a matrix of gradients: `to[query, key] += tile[key, query]`. Where `to` has
/// stride 0 this sums over the axis.
///
/// # Safety
/// `from` has the size of the tile; the matrix covers it, and only the caller accesses it.
pub unsafe fn add_transposed<T: Number>(tile: &Tile, from: Shared<T>, to: View<T>) {
    for i in 0..tile.queries {
        for j in 0..tile.keys {
            // SAFETY: the caller guarantees the tile and sole access to the matrix (`# Safety`).
            unsafe {
                let place = (tile.query + i) as isize * to.row + (tile.key + j) as isize * to.column;
                let sum = to.data.get().offset(place);
                *sum = T::from_f64(1.0).multiply_add::<false>(*from.get().add(j * tile.width + i), *sum);
            }
        }
    }
}
