//! What takes part: masks, causality and dropout of a tile of scores.

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
    /// Those where the mask is true.
    Bool(Operand<bool>),
    /// All, after an addition.
    Add(Operand<T>),
}

impl Dropout {
    /// The number of this element of the batch among those with numbers of their own.
    fn element(&self, batch: &Shape, at: &[usize; MAX_RANK]) -> u64 {
        let own = |&i: &usize| self.shared >> i & 1 == 0;
        (0..batch.rank()).filter(own).fold(0, |n, i| n * batch.at(i) as u64 + at[i] as u64)
    }
}

/// Whether the uniform number made of `word` is at least `p`; the numbers are those of a float32 `rand`.
#[inline(always)]
fn kept(word: u32, p: f32) -> bool {
    (word >> 8) as f32 * (1.0 / 16_777_216.0) >= p
}

/// Philox blocks that are made together, so that the compiler can use vectors.
const TOGETHER: usize = 16;

/// The factors of dropout of a tile: 0, or `1 / (1 - p)` where the weight is kept.
///
/// # Safety
/// `to` has room for the tile.
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
                    // SAFETY: inside the tile.
                    unsafe { *to.add(j * tile.width + i) = if kept(word, p) { yes } else { T::default() } };
                }
            }
            block += TOGETHER as u64;
        }
    }
}

/// Minus infinity.
fn never<T: Number>() -> T {
    T::from_f64(f64::NEG_INFINITY)
}

/// Puts minus infinity where the query comes before the key.
///
/// # Safety
/// `scores` is the tile.
pub unsafe fn causal_tile<T: Number>(tile: &Tile, scores: *mut T) {
    for j in 0..tile.keys {
        let before = (tile.key + j).saturating_sub(tile.query).min(tile.queries);
        // SAFETY: inside the tile.
        (0..before).for_each(|i| unsafe { *scores.add(j * tile.width + i) = never() });
    }
}

/// Applies a mask of truth values to the scores of a tile.
///
/// # Safety
/// `scores` is the tile, and the mask covers it.
pub unsafe fn bool_tile<T: Number>(tile: &Tile, mask: View<bool>, scores: *mut T) {
    // SAFETY: the caller's promise.
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
/// `scores` is the tile, and the mask covers it.
pub unsafe fn add_tile<T: Number>(tile: &Tile, mask: View<T>, scores: *mut T) {
    // SAFETY: the caller's promise.
    unsafe {
        each(tile, mask, |at, add| {
            let score = scores.add(at);
            *score = T::from_f64(1.0).multiply_add::<false>(*score, add);
        });
    }
}

/// Calls `f(place in the tile, mask)` for every score of the tile, [`LANE`] keys of a query after each other.
///
/// # Safety
/// The mask covers the tile.
#[inline(always)]
unsafe fn each<M: Copy>(tile: &Tile, mask: View<M>, f: impl Fn(usize, M)) {
    for from in (0..tile.keys).step_by(LANE) {
        for i in 0..tile.queries {
            for j in from..tile.keys.min(from + LANE) {
                // SAFETY: the caller's promise.
                f(j * tile.width + i, unsafe { mask.get(tile.query + i, tile.key + j) });
            }
        }
    }
}

/// Adds a tile, transposed, to a matrix of gradients: `to[query, key] += tile[key, query]`, summed over an
/// axis along which the matrix is stretched.
///
/// # Safety
/// `from` is the tile; the matrix covers it and is the caller's.
pub unsafe fn add_turned<T: Number>(tile: &Tile, from: Shared<T>, to: View<T>) {
    for i in 0..tile.queries {
        for j in 0..tile.keys {
            // SAFETY: the caller's promise.
            unsafe {
                let place = (tile.query + i) as isize * to.row + (tile.key + j) as isize * to.column;
                let sum = to.data.get().offset(place);
                *sum = T::from_f64(1.0).multiply_add::<false>(*from.get().add(j * tile.width + i), *sum);
            }
        }
    }
}
