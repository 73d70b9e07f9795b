//! Elementwise steps on a tile of scores, between two products.
//!
//! A tile holds keys in its rows and queries in its columns, so maxima and sums over keys run down the
//! columns and need no sums across a vector. Every loop handles [`LANE`] columns at a time.

use super::LANE;
use super::lanes::{TileFloat, TileOp, get};
use crate::cpu::run::isa::Lane;
use crate::cpu::run::threads::Shared;
use crate::math::real::Left;
use std::ops::Range;

type Lanes<L> = [L; LANE];

/// Loads the lanes at `x`.
///
/// # Safety
/// `x` is valid for reads of [`LANE`] numbers.
#[inline(always)]
unsafe fn load<L: Lane>(x: *const L::Float) -> Lanes<L> {
    let mut lanes = [L::default(); LANE];
    for (k, lane) in lanes.iter_mut().enumerate() {
        // SAFETY: the caller guarantees that `x` has [`LANE`] numbers.
        *lane = unsafe { get::<L>(x, k) };
    }
    lanes
}

/// Stores the lanes at `x`.
///
/// # Safety
/// `x` is valid for writes of [`LANE`] numbers.
#[inline(always)]
unsafe fn store<L: Lane>(x: *mut L::Float, lanes: &Lanes<L>) {
    for (k, lane) in lanes.iter().enumerate() {
        // SAFETY: the caller guarantees that `x` has [`LANE`] numbers.
        unsafe { *x.add(k) = lane.get() };
    }
}

/// Runs `op` on all columns of a tile of this width.
pub fn run<T: TileFloat, O: TileOp<T>>(op: &O, width: usize) {
    T::launch(op, 0..width / LANE);
}

/// One step of the online softmax (Milakov and Gimelshein 2018; Rabe and Staats 2021): replaces scores by
/// weights relative to the largest score so far, and computes the factor for all earlier weights.
pub struct Online<T> {
    /// The tile: scores, then weights.
    pub tile: Shared<T>,
    /// Number of its rows.
    pub keys: usize,
    /// Number of its columns.
    pub width: usize,
    /// The largest score so far, per column.
    pub top: Shared<T>,
    /// The sum of the weights so far, per column.
    pub sum: Shared<T>,
    /// The factor for earlier weights, per column.
    pub factor: Shared<T>,
}

impl<T: TileFloat> TileOp<T> for Online<T> {
    #[inline(always)]
    fn columns<L: Lane<Float = T>>(&self, range: Range<usize>)
    where
        f64: Left<L>,
    {
        for at in range.map(|chunk| chunk * LANE) {
            // SAFETY: the tile and the vectors per column have this group of columns.
            unsafe {
                let tile = self.tile.get().add(at);
                let (tops, sums) = (self.top.get().add(at), self.sum.get().add(at));
                let old = load::<L>(tops);
                let mut top = old;
                for j in 0..self.keys {
                    let row = tile.add(j * self.width);
                    for (k, top) in top.iter_mut().enumerate() {
                        let x = get::<L>(row, k);
                        *top = L::select(x.gt(*top), x, *top);
                    }
                }
                store(tops, &top);
                // Where every score so far is -infinity the weights must be 0, not the exponential of NaN.
                for top in &mut top {
                    *top = L::select(top.eq(L::lit(f64::NEG_INFINITY)), L::lit(0.0), *top);
                }
                let mut factor = old;
                for (factor, top) in factor.iter_mut().zip(&top) {
                    *factor = (*factor - *top).exp();
                }
                store(self.factor.get().add(at), &factor);
                let mut sum = load::<L>(sums);
                for (sum, factor) in sum.iter_mut().zip(&factor) {
                    *sum = *sum * *factor;
                }
                for j in 0..self.keys {
                    let row = tile.add(j * self.width);
                    let mut weight = load::<L>(row);
                    for (weight, top) in weight.iter_mut().zip(&top) {
                        *weight = (*weight - *top).exp();
                    }
                    store(row, &weight);
                    for (sum, weight) in sum.iter_mut().zip(&weight) {
                        *sum = *sum + *weight;
                    }
                }
                store(sums, &sum);
            }
        }
    }
}

/// The product of every row of a tile with a vector: `tile[row] *= factor`.
pub struct Scale<T> {
    /// The tile.
    pub tile: Shared<T>,
    /// Number of its rows.
    pub rows: usize,
    /// Number of its columns.
    pub width: usize,
    /// The factors, per column.
    pub factor: Shared<T>,
}

impl<T: TileFloat> TileOp<T> for Scale<T> {
    #[inline(always)]
    fn columns<L: Lane<Float = T>>(&self, range: Range<usize>)
    where
        f64: Left<L>,
    {
        for at in range.map(|chunk| chunk * LANE) {
            // SAFETY: the tile and the vector have this group of columns.
            unsafe {
                let factor = load::<L>(self.factor.get().add(at));
                for j in 0..self.rows {
                    let row = self.tile.get().add(at + j * self.width);
                    let mut x = load::<L>(row);
                    for (x, factor) in x.iter_mut().zip(&factor) {
                        *x = *x * *factor;
                    }
                    store(row, &x);
                }
            }
        }
    }
}

/// The end of the online softmax: replaces each sum by its reciprocal (0 where no key took part), and the
/// largest score by the logarithm of the sum of exponentials.
pub struct Finish<T> {
    /// The largest scores, then the logarithms.
    pub top: Shared<T>,
    /// The sums, then their reciprocals.
    pub sum: Shared<T>,
}

impl<T: TileFloat> TileOp<T> for Finish<T> {
    #[inline(always)]
    fn columns<L: Lane<Float = T>>(&self, range: Range<usize>)
    where
        f64: Left<L>,
    {
        for at in range.map(|chunk| chunk * LANE) {
            // SAFETY: the vectors have this group of columns.
            unsafe {
                let (tops, sums) = (self.top.get().add(at), self.sum.get().add(at));
                let (mut top, mut sum) = (load::<L>(tops), load::<L>(sums));
                for (top, sum) in top.iter_mut().zip(&mut sum) {
                    *top = *top + sum.log();
                    *sum = L::select(sum.eq(L::lit(0.0)), L::lit(0.0), 1.0 / *sum);
                }
                store(tops, &top);
                store(sums, &sum);
            }
        }
    }
}

/// A tile of scores with the saved logarithms of its columns, from which its weights are recomputed.
#[derive(Clone, Copy)]
pub struct Known<T> {
    /// The scores.
    pub scores: Shared<T>,
    /// Number of rows.
    pub keys: usize,
    /// Number of columns.
    pub width: usize,
    /// The logarithm of the sum of exponentials, per column; infinity where all weights are 0.
    pub log_sum: Shared<T>,
    /// The factors of dropout, if there is dropout.
    pub keep: Option<Shared<T>>,
}

impl<T: TileFloat> Known<T> {
    /// Returns the weights before dropout, and the dropout factors, of row `j` in the columns from `at` on.
    ///
    /// # Safety
    /// These columns exist.
    #[inline(always)]
    unsafe fn weights<L: Lane<Float = T>>(
        &self,
        j: usize,
        at: usize,
        log_sum: &Lanes<L>,
    ) -> (Lanes<L>, Lanes<L>)
    where
        f64: Left<L>,
    {
        // SAFETY: the caller guarantees that the tiles have these columns.
        unsafe {
            let mut weight = load::<L>(self.scores.get().add(j * self.width + at));
            for (weight, log_sum) in weight.iter_mut().zip(log_sum) {
                *weight = (*weight - *log_sum).exp();
            }
            let keep = match self.keep {
                Some(keep) => load::<L>(keep.get().add(j * self.width + at)),
                None => [L::lit(1.0); LANE],
            };
            (weight, keep)
        }
    }
}

/// The first derivative in reverse mode. Given weights `P`, dropout `D`, cotangents `H` of the dropped
/// weights `P D` and `delta = sum P D H`, replaces `H` by the cotangents of the scores, `P (D H - delta)`,
/// and the scores by `P D`.
pub struct Backward<T> {
    /// The tile.
    pub known: Known<T>,
    /// `H`, then the cotangents of the scores.
    pub adjoint: Shared<T>,
    /// `delta`, per column.
    pub delta: Shared<T>,
}

impl<T: TileFloat> TileOp<T> for Backward<T> {
    #[inline(always)]
    fn columns<L: Lane<Float = T>>(&self, range: Range<usize>)
    where
        f64: Left<L>,
    {
        for at in range.map(|chunk| chunk * LANE) {
            // SAFETY: the tiles and the vectors have this group of columns.
            unsafe {
                let log_sum = load::<L>(self.known.log_sum.get().add(at));
                let delta = load::<L>(self.delta.get().add(at));
                for j in 0..self.known.keys {
                    let place = j * self.known.width + at;
                    let (weight, keep) = self.known.weights::<L>(j, at, &log_sum);
                    let (mut kept, mut adjoint) = (weight, load::<L>(self.adjoint.get().add(place)));
                    for k in 0..LANE {
                        kept[k] = weight[k] * keep[k];
                        adjoint[k] = weight[k] * (adjoint[k] * keep[k] - delta[k]);
                    }
                    store(self.known.scores.get().add(place), &kept);
                    store(self.adjoint.get().add(place), &adjoint);
                }
            }
        }
    }
}

/// The first derivative in forward mode. Given weights `P`, dropout `D` and tangents `W` of the scores,
/// replaces the scores by `P D` and `W` by `P D W`, and adds up `sum P W` per column.
pub struct Forward<T> {
    /// The tile.
    pub known: Known<T>,
    /// `W`, then `P D W`.
    pub tangent: Shared<T>,
    /// `sum P W`, per column.
    pub mean: Shared<T>,
}

impl<T: TileFloat> TileOp<T> for Forward<T> {
    #[inline(always)]
    fn columns<L: Lane<Float = T>>(&self, range: Range<usize>)
    where
        f64: Left<L>,
    {
        for at in range.map(|chunk| chunk * LANE) {
            // SAFETY: the tiles and the vectors have this group of columns.
            unsafe {
                let log_sum = load::<L>(self.known.log_sum.get().add(at));
                let mut mean = load::<L>(self.mean.get().add(at));
                for j in 0..self.known.keys {
                    let place = j * self.known.width + at;
                    let (weight, keep) = self.known.weights::<L>(j, at, &log_sum);
                    let (mut kept, mut tangent) = (weight, load::<L>(self.tangent.get().add(place)));
                    for k in 0..LANE {
                        let moved = weight[k] * tangent[k];
                        mean[k] = mean[k] + moved;
                        kept[k] = weight[k] * keep[k];
                        tangent[k] = moved * keep[k];
                    }
                    store(self.known.scores.get().add(place), &kept);
                    store(self.tangent.get().add(place), &tangent);
                }
                store(self.mean.get().add(at), &mean);
            }
        }
    }
}

/// The second derivative: the gradient of `sum P (D H W + D C) - delta sum P W` with respect to the scores,
/// `W` and `H`. It replaces the scores, `H` and `W`, in this order.
///
/// With `X = D H W + D C - delta W - mean D H` and its mean `middle = sum P X` the three are
/// `P (X - middle)`, `P (D H - delta)` and `P D (W - mean)`.
pub struct Second<T> {
    /// The tile.
    pub known: Known<T>,
    /// `H`, the cotangents of the weights after dropout, `P D`.
    pub adjoint: Shared<T>,
    /// `W`, the tangents of the scores.
    pub tangent: Shared<T>,
    /// `C`, the cotangents times the tangents of the values, if the values have tangents.
    pub cross: Option<Shared<T>>,
    /// `sum P D H`, per column.
    pub delta: Shared<T>,
    /// `sum P W`, per column.
    pub mean: Shared<T>,
    /// `sum P X`, per column.
    pub middle: Shared<T>,
}

impl<T: TileFloat> TileOp<T> for Second<T> {
    #[inline(always)]
    fn columns<L: Lane<Float = T>>(&self, range: Range<usize>)
    where
        f64: Left<L>,
    {
        for at in range.map(|chunk| chunk * LANE) {
            // SAFETY: the tiles and the vectors have this group of columns.
            unsafe {
                let log_sum = load::<L>(self.known.log_sum.get().add(at));
                let delta = load::<L>(self.delta.get().add(at));
                let (mean, middle) =
                    (load::<L>(self.mean.get().add(at)), load::<L>(self.middle.get().add(at)));
                for j in 0..self.known.keys {
                    let place = j * self.known.width + at;
                    let (weight, keep) = self.known.weights::<L>(j, at, &log_sum);
                    let mut scores = weight;
                    let mut adjoint = load::<L>(self.adjoint.get().add(place));
                    let mut tangent = load::<L>(self.tangent.get().add(place));
                    let cross = match self.cross {
                        Some(cross) => load::<L>(cross.get().add(place)),
                        None => [L::lit(0.0); LANE],
                    };
                    for k in 0..LANE {
                        let (h, w) = (adjoint[k] * keep[k], tangent[k]);
                        let x = h * w + cross[k] * keep[k] - delta[k] * w - mean[k] * h;
                        scores[k] = weight[k] * (x - middle[k]);
                        adjoint[k] = weight[k] * (h - delta[k]);
                        tangent[k] = weight[k] * keep[k] * (w - mean[k]);
                    }
                    store(self.known.scores.get().add(place), &scores);
                    store(self.adjoint.get().add(place), &adjoint);
                    store(self.tangent.get().add(place), &tangent);
                }
            }
        }
    }
}
