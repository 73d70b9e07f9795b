//! Elementwise steps on a tile of scores, between two products.
//!
//! A tile holds keys in its rows and queries in its columns, so maxima and sums over keys run down the
//! columns and need no sums across a vector. Every loop handles [`LANE`] columns at a time.

use super::LANE;
use crate::cpu::run::isa::{Body, LoopFloat, Scalar};
use std::iter::StepBy;
use std::ops::Range;

type Lanes<L> = [L; LANE];

/// Loads the lanes at `x`.
///
/// # Safety
/// `x` is valid for reads of [`LANE`] numbers.
#[inline(always)]
unsafe fn load<L: LoopFloat>(x: *const L::Float) -> Lanes<L> {
    let mut lanes = [L::default(); LANE];
    for (k, lane) in lanes.iter_mut().enumerate() {
        // SAFETY: the caller guarantees that `x` has [`LANE`] numbers.
        *lane = L::new(unsafe { *x.add(k) });
    }
    lanes
}

/// Stores the lanes at `x`.
///
/// # Safety
/// `x` is valid for writes of [`LANE`] numbers.
#[inline(always)]
unsafe fn store<L: LoopFloat>(x: *mut L::Float, lanes: &Lanes<L>) {
    for (k, lane) in lanes.iter().enumerate() {
        // SAFETY: the caller guarantees that `x` has [`LANE`] numbers.
        unsafe { *x.add(k) = lane.get() };
    }
}

/// [`LANE`] columns of a tile.
#[derive(Clone, Copy)]
pub struct Columns {
    /// The first of them.
    at: usize,
    /// Rows of the tile.
    rows: usize,
    /// All columns of the tile.
    width: usize,
}

impl Columns {
    /// Returns the index of these columns in every row.
    #[inline(always)]
    fn places(self) -> StepBy<Range<usize>> {
        (self.at..self.at + self.rows * self.width).step_by(self.width)
    }
}

/// An operation on tiles, and on vectors that have a number per column.
pub trait TileOp<T: Scalar> {
    /// Runs the operation. Implementations are `#[inline(always)]` and call only such functions.
    ///
    /// # Safety
    /// The tiles and vectors have these columns, and nobody else uses what is written.
    unsafe fn run<L: LoopFloat<Float = T>>(&self, columns: Columns);
}

struct Loop<'a, O> {
    step: &'a O,
    rows: usize,
    width: usize,
}

impl<T: Scalar, O: TileOp<T>> Body<T> for Loop<'_, O> {
    type Output = ();
    #[inline(always)]
    fn run<L: LoopFloat<Float = T>>(self) {
        for at in (0..self.width).step_by(LANE) {
            // SAFETY: the caller of `run` guarantees tiles and vectors of this width.
            unsafe { self.step.run::<L>(Columns { at, rows: self.rows, width: self.width }) };
        }
    }
}

/// Runs `step` on all columns of tiles with `rows` rows and `width` columns, a multiple of [`LANE`].
///
/// # Safety
/// The tiles and vectors of `step` have these sizes, and nobody else uses what it writes.
pub unsafe fn run<T: Scalar>(step: &impl TileOp<T>, rows: usize, width: usize) {
    debug_assert_eq!(width % LANE, 0);
    T::run(Loop { step, rows, width });
}

/// One step of the online softmax (Milakov and Gimelshein 2018; Rabe and Staats 2021): replaces scores by
/// weights relative to the largest score so far, and computes the factor for all earlier weights.
pub struct Online<T> {
    /// The tile: scores, then weights.
    pub tile: *mut T,
    /// The largest score so far, per column.
    pub top: *mut T,
    /// The sum of the weights so far, per column.
    pub sum: *mut T,
    /// The factor for earlier weights, per column.
    pub factor: *mut T,
}

impl<T: Scalar> TileOp<T> for Online<T> {
    #[inline(always)]
    unsafe fn run<L: LoopFloat<Float = T>>(&self, columns: Columns) {
        // SAFETY: the caller guarantees these columns.
        unsafe {
            let (tops, sums) = (self.top.add(columns.at), self.sum.add(columns.at));
            let old = load::<L>(tops);
            let mut top = old;
            for place in columns.places() {
                let row = self.tile.add(place);
                for (k, top) in top.iter_mut().enumerate() {
                    let x = L::new(*row.add(k));
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
            store(self.factor.add(columns.at), &factor);
            let mut sum = load::<L>(sums);
            for (sum, factor) in sum.iter_mut().zip(&factor) {
                *sum = *sum * *factor;
            }
            for place in columns.places() {
                let mut weight = load::<L>(self.tile.add(place));
                for (weight, top) in weight.iter_mut().zip(&top) {
                    *weight = (*weight - *top).exp();
                }
                store(self.tile.add(place), &weight);
                for (sum, weight) in sum.iter_mut().zip(&weight) {
                    *sum = *sum + *weight;
                }
            }
            store(sums, &sum);
        }
    }
}

/// The product of every row of a tile with a vector: `tile[row] *= factor`.
pub struct Scale<T> {
    /// The tile.
    pub tile: *mut T,
    /// The factors, per column.
    pub factor: *mut T,
}

impl<T: Scalar> TileOp<T> for Scale<T> {
    #[inline(always)]
    unsafe fn run<L: LoopFloat<Float = T>>(&self, columns: Columns) {
        // SAFETY: the caller guarantees these columns.
        unsafe {
            let factor = load::<L>(self.factor.add(columns.at));
            for place in columns.places() {
                let mut x = load::<L>(self.tile.add(place));
                for (x, factor) in x.iter_mut().zip(&factor) {
                    *x = *x * *factor;
                }
                store(self.tile.add(place), &x);
            }
        }
    }
}

/// The end of the online softmax: replaces each sum by its reciprocal (0 where no key took part), and the
/// largest score by the logarithm of the sum of exponentials.
pub struct Finish<T> {
    /// The largest scores, then the logarithms.
    pub top: *mut T,
    /// The sums, then their reciprocals.
    pub sum: *mut T,
}

impl<T: Scalar> TileOp<T> for Finish<T> {
    #[inline(always)]
    unsafe fn run<L: LoopFloat<Float = T>>(&self, columns: Columns) {
        // SAFETY: the caller guarantees these columns.
        unsafe {
            let (tops, sums) = (self.top.add(columns.at), self.sum.add(columns.at));
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

/// A tile of scores with the saved logarithms of its columns, from which its weights are recomputed.
#[derive(Clone, Copy)]
pub struct Known<T> {
    /// The scores.
    pub scores: *mut T,
    /// The logarithm of the sum of exponentials, per column; infinity where all weights are 0.
    pub log_sum: *mut T,
    /// The factors of dropout, if there is dropout.
    pub keep: Option<*mut T>,
}

impl<T: Scalar> Known<T> {
    /// Returns the weights before dropout, and the dropout factors, of the columns at `place`.
    ///
    /// # Safety
    /// These columns exist.
    #[inline(always)]
    unsafe fn weights<L: LoopFloat<Float = T>>(&self, place: usize, log_sum: &Lanes<L>) -> [Lanes<L>; 2] {
        // SAFETY: the caller guarantees that the tiles have these columns.
        unsafe {
            let mut weight = load::<L>(self.scores.add(place));
            for (weight, log_sum) in weight.iter_mut().zip(log_sum) {
                *weight = (*weight - *log_sum).exp();
            }
            let keep = match self.keep {
                Some(keep) => load::<L>(keep.add(place)),
                None => [L::lit(1.0); LANE],
            };
            [weight, keep]
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
    pub adjoint: *mut T,
    /// `delta`, per column.
    pub delta: *mut T,
}

impl<T: Scalar> TileOp<T> for Backward<T> {
    #[inline(always)]
    unsafe fn run<L: LoopFloat<Float = T>>(&self, columns: Columns) {
        // SAFETY: the caller guarantees these columns.
        unsafe {
            let log_sum = load::<L>(self.known.log_sum.add(columns.at));
            let delta = load::<L>(self.delta.add(columns.at));
            for place in columns.places() {
                let [weight, keep] = self.known.weights::<L>(place, &log_sum);
                let (mut kept, mut adjoint) = (weight, load::<L>(self.adjoint.add(place)));
                for k in 0..LANE {
                    kept[k] = weight[k] * keep[k];
                    adjoint[k] = weight[k] * (adjoint[k] * keep[k] - delta[k]);
                }
                store(self.known.scores.add(place), &kept);
                store(self.adjoint.add(place), &adjoint);
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
    pub tangent: *mut T,
    /// `sum P W`, per column.
    pub mean: *mut T,
}

impl<T: Scalar> TileOp<T> for Forward<T> {
    #[inline(always)]
    unsafe fn run<L: LoopFloat<Float = T>>(&self, columns: Columns) {
        // SAFETY: the caller guarantees these columns.
        unsafe {
            let log_sum = load::<L>(self.known.log_sum.add(columns.at));
            let mut mean = load::<L>(self.mean.add(columns.at));
            for place in columns.places() {
                let [weight, keep] = self.known.weights::<L>(place, &log_sum);
                let (mut kept, mut tangent) = (weight, load::<L>(self.tangent.add(place)));
                for k in 0..LANE {
                    let moved = weight[k] * tangent[k];
                    mean[k] = mean[k] + moved;
                    kept[k] = weight[k] * keep[k];
                    tangent[k] = moved * keep[k];
                }
                store(self.known.scores.add(place), &kept);
                store(self.tangent.add(place), &tangent);
            }
            store(self.mean.add(columns.at), &mean);
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
    pub adjoint: *mut T,
    /// `W`, the tangents of the scores.
    pub tangent: *mut T,
    /// `C`, the cotangents times the tangents of the values, if the values have tangents.
    pub cross: Option<*mut T>,
    /// `sum P D H`, per column.
    pub delta: *mut T,
    /// `sum P W`, per column.
    pub mean: *mut T,
    /// `sum P X`, per column.
    pub middle: *mut T,
}

impl<T: Scalar> TileOp<T> for Second<T> {
    #[inline(always)]
    unsafe fn run<L: LoopFloat<Float = T>>(&self, columns: Columns) {
        // SAFETY: the caller guarantees these columns.
        unsafe {
            let log_sum = load::<L>(self.known.log_sum.add(columns.at));
            let delta = load::<L>(self.delta.add(columns.at));
            let mean = load::<L>(self.mean.add(columns.at));
            let middle = load::<L>(self.middle.add(columns.at));
            for place in columns.places() {
                let [weight, keep] = self.known.weights::<L>(place, &log_sum);
                let mut scores = weight;
                let mut adjoint = load::<L>(self.adjoint.add(place));
                let mut tangent = load::<L>(self.tangent.add(place));
                let cross = match self.cross {
                    Some(cross) => load::<L>(cross.add(place)),
                    None => [L::lit(0.0); LANE],
                };
                for k in 0..LANE {
                    let (h, w) = (adjoint[k] * keep[k], tangent[k]);
                    let x = h * w + cross[k] * keep[k] - delta[k] * w - mean[k] * h;
                    scores[k] = weight[k] * (x - middle[k]);
                    adjoint[k] = weight[k] * (h - delta[k]);
                    tangent[k] = weight[k] * keep[k] * (w - mean[k]);
                }
                store(self.known.scores.add(place), &scores);
                store(self.adjoint.add(place), &adjoint);
                store(self.tangent.add(place), &tangent);
            }
        }
    }
}
