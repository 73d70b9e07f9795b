//! Elementwise steps on a tile of scores, between two products.
//!
//! A tile holds keys in its rows and queries in its columns, so maxima and sums over keys run down the
//! columns and need no sums across a vector. Every loop handles [`LANE`] columns at a time.

use super::LANE;
use crate::cpu::run::isa::{Body, Lane, Scalar};
use crate::cpu::run::threads::Shared;

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

/// An operation on all columns of a tile, in groups of [`LANE`].
pub struct Columns<'a, O> {
    /// The operation.
    pub op: &'a O,
    /// The width of the tile.
    pub width: usize,
}

impl<O> Columns<'_, O> {
    #[inline(always)]
    fn starts(&self) -> impl Iterator<Item = usize> + use<O> {
        (0..self.width / LANE).map(|group| group * LANE)
    }
}

/// Runs `op` on all columns of a tile of this width, a multiple of [`LANE`].
///
/// # Safety
/// The tiles and the vectors per column of `op` have `width` columns, and nobody else uses what it writes.
pub unsafe fn run<'a, T: Scalar, O>(op: &'a O, width: usize)
where
    Columns<'a, O>: Body<T, Output = ()>,
{
    debug_assert_eq!(width % LANE, 0);
    T::run(Columns { op, width });
}

/// Returns the number at `x + i` as a lane.
///
/// # Safety
/// `x` is valid for reads at index `i`.
#[inline(always)]
pub unsafe fn get<L: Lane>(x: *const L::Float, i: usize) -> L {
    // SAFETY: the caller guarantees that number `i` exists.
    L::new(unsafe { *x.add(i) })
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

impl<T: Scalar> Body<T> for Columns<'_, Online<T>> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lane<Float = T>>(self) {
        let this = self.op;
        for at in self.starts() {
            // SAFETY: the tile and the vectors per column have this group of columns.
            unsafe {
                let tile = this.tile.get().add(at);
                let (tops, sums) = (this.top.get().add(at), this.sum.get().add(at));
                let old = load::<L>(tops);
                let mut top = old;
                for j in 0..this.keys {
                    let row = tile.add(j * this.width);
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
                store(this.factor.get().add(at), &factor);
                let mut sum = load::<L>(sums);
                for (sum, factor) in sum.iter_mut().zip(&factor) {
                    *sum = *sum * *factor;
                }
                for j in 0..this.keys {
                    let row = tile.add(j * this.width);
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

impl<T: Scalar> Body<T> for Columns<'_, Scale<T>> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lane<Float = T>>(self) {
        let this = self.op;
        for at in self.starts() {
            // SAFETY: the tile and the vector have this group of columns.
            unsafe {
                let factor = load::<L>(this.factor.get().add(at));
                for j in 0..this.rows {
                    let row = this.tile.get().add(at + j * this.width);
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

impl<T: Scalar> Body<T> for Columns<'_, Finish<T>> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lane<Float = T>>(self) {
        let this = self.op;
        for at in self.starts() {
            // SAFETY: the vectors have this group of columns.
            unsafe {
                let (tops, sums) = (this.top.get().add(at), this.sum.get().add(at));
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

impl<T: Scalar> Known<T> {
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
    ) -> (Lanes<L>, Lanes<L>) {
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

impl<T: Scalar> Body<T> for Columns<'_, Backward<T>> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lane<Float = T>>(self) {
        let this = self.op;
        for at in self.starts() {
            // SAFETY: the tiles and the vectors have this group of columns.
            unsafe {
                let log_sum = load::<L>(this.known.log_sum.get().add(at));
                let delta = load::<L>(this.delta.get().add(at));
                for j in 0..this.known.keys {
                    let place = j * this.known.width + at;
                    let (weight, keep) = this.known.weights::<L>(j, at, &log_sum);
                    let (mut kept, mut adjoint) = (weight, load::<L>(this.adjoint.get().add(place)));
                    for k in 0..LANE {
                        kept[k] = weight[k] * keep[k];
                        adjoint[k] = weight[k] * (adjoint[k] * keep[k] - delta[k]);
                    }
                    store(this.known.scores.get().add(place), &kept);
                    store(this.adjoint.get().add(place), &adjoint);
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

impl<T: Scalar> Body<T> for Columns<'_, Forward<T>> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lane<Float = T>>(self) {
        let this = self.op;
        for at in self.starts() {
            // SAFETY: the tiles and the vectors have this group of columns.
            unsafe {
                let log_sum = load::<L>(this.known.log_sum.get().add(at));
                let mut mean = load::<L>(this.mean.get().add(at));
                for j in 0..this.known.keys {
                    let place = j * this.known.width + at;
                    let (weight, keep) = this.known.weights::<L>(j, at, &log_sum);
                    let (mut kept, mut tangent) = (weight, load::<L>(this.tangent.get().add(place)));
                    for k in 0..LANE {
                        let moved = weight[k] * tangent[k];
                        mean[k] = mean[k] + moved;
                        kept[k] = weight[k] * keep[k];
                        tangent[k] = moved * keep[k];
                    }
                    store(this.known.scores.get().add(place), &kept);
                    store(this.tangent.get().add(place), &tangent);
                }
                store(this.mean.get().add(at), &mean);
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

impl<T: Scalar> Body<T> for Columns<'_, Second<T>> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lane<Float = T>>(self) {
        let this = self.op;
        for at in self.starts() {
            // SAFETY: the tiles and the vectors have this group of columns.
            unsafe {
                let log_sum = load::<L>(this.known.log_sum.get().add(at));
                let delta = load::<L>(this.delta.get().add(at));
                let (mean, middle) =
                    (load::<L>(this.mean.get().add(at)), load::<L>(this.middle.get().add(at)));
                for j in 0..this.known.keys {
                    let place = j * this.known.width + at;
                    let (weight, keep) = this.known.weights::<L>(j, at, &log_sum);
                    let mut scores = weight;
                    let mut adjoint = load::<L>(this.adjoint.get().add(place));
                    let mut tangent = load::<L>(this.tangent.get().add(place));
                    let cross = match this.cross {
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
                    store(this.known.scores.get().add(place), &scores);
                    store(this.adjoint.get().add(place), &adjoint);
                    store(this.tangent.get().add(place), &tangent);
                }
            }
        }
    }
}
