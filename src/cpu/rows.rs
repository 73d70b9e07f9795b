//! Loops over the rows of a matrix, compiled for the instruction set of the processor, in `f32` or `f64`.

use super::isa::{Body, DoubleBody, Lane, Single, run, run_double};
use super::threads::{GRAIN, parallel_for};
use crate::dtype::Element;
use crate::real::Left;
use std::ops::Range;

/// Vector lanes of a sum over a row; fixed, so that the order of additions is.
pub const LANES: usize = 64;

/// Something done to every row, with the lanes of `T`.
pub trait RowOp<T>: Sync {
    /// The rows of `range`. Implementations are `#[inline(always)]`.
    fn rows<L: Lane<Float = T>>(&self, range: Range<usize>)
    where
        f64: Left<L>;
}

/// A float whose rows can be looped over.
pub trait RowFloat: Element {
    /// Runs `op` on the rows of `range`, compiled for this processor.
    fn launch<O: RowOp<Self>>(op: &O, range: Range<usize>);
}

struct Launch<'a, O>(&'a O, Range<usize>);

impl<O: RowOp<f32>> Body for Launch<'_, O> {
    type Output = ();
    #[inline(always)]
    fn run<L: Single>(self)
    where
        f64: Left<L>,
    {
        self.0.rows::<L>(self.1);
    }
}

impl<O: RowOp<f64>> DoubleBody for Launch<'_, O> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lane<Float = f64>>(self)
    where
        f64: Left<L>,
    {
        self.0.rows::<L>(self.1);
    }
}

impl RowFloat for f32 {
    fn launch<O: RowOp<f32>>(op: &O, range: Range<usize>) {
        run(Launch(op, range));
    }
}

impl RowFloat for f64 {
    fn launch<O: RowOp<f64>>(op: &O, range: Range<usize>) {
        run_double(Launch(op, range));
    }
}

/// Runs `op` on rows `0..count` of `length` elements, with several threads if that pays.
pub fn each_row<T: RowFloat, O: RowOp<T>>(op: &O, count: usize, length: usize) {
    parallel_for(count, (GRAIN / 8).div_ceil(length.max(1)), |range| T::launch(op, range));
}

/// The sum of lanes as a tree.
#[inline(always)]
pub fn sum_lanes<L: Lane>(mut lanes: [L; LANES]) -> L {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = lanes[i] + lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// `total!(L, n, i => term)`: the sum of `term` for `i` in `0..n`, lane by lane, then the lanes as a tree.
///
/// A macro, because a closure that is not inlined would be compiled without the instructions of its
/// surroundings.
macro_rules! total {
    ($lane:ty, $n:expr, $i:ident => $term:expr) => {{
        let (n, mut at) = ($n, 0);
        let mut lanes = [<$lane>::lit(0.0); LANES];
        while at + LANES <= n {
            for (k, lane) in lanes.iter_mut().enumerate() {
                let $i = at + k;
                *lane = *lane + $term;
            }
            at += LANES;
        }
        // Lanes of their own for the rest: those above are only indexed by constants and stay in registers.
        let mut rest = [<$lane>::lit(0.0); LANES];
        for (k, lane) in rest.iter_mut().enumerate().take(n - at) {
            let $i = at + k;
            *lane = $term;
        }
        for (lane, more) in lanes.iter_mut().zip(rest) {
            *lane = *lane + more;
        }
        sum_lanes(lanes)
    }};
}
pub(super) use total;

/// Element `i` of a row as a lane.
///
/// # Safety
/// It exists.
#[inline(always)]
pub unsafe fn get<L: Lane>(x: *const L::Float, i: usize) -> L {
    // SAFETY: the caller's promise.
    L::new(unsafe { *x.add(i) })
}

/// The largest of `x[0]..x[n - 1]`, leaving out NaN.
///
/// # Safety
/// They exist.
#[inline(always)]
pub unsafe fn largest<L: Lane>(x: *const L::Float, n: usize) -> L {
    let mut lanes = [L::lit(f64::NEG_INFINITY); LANES];
    let mut rest = lanes;
    let mut at = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while at + LANES <= n {
            for (k, lane) in lanes.iter_mut().enumerate() {
                let value = get::<L>(x, at + k);
                *lane = L::select(value.gt(*lane), value, *lane);
            }
            at += LANES;
        }
        for (k, lane) in rest.iter_mut().enumerate().take(n - at) {
            *lane = get::<L>(x, at + k);
        }
    }
    let mut width = LANES;
    for (lane, more) in lanes.iter_mut().zip(rest) {
        *lane = L::select(more.gt(*lane), more, *lane);
    }
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = L::select(lanes[i + width].gt(lanes[i]), lanes[i + width], lanes[i]);
        }
    }
    lanes[0]
}
