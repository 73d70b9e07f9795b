//! Loops over the rows of a matrix, compiled for the instruction set of the processor, in `f32` or `f64`.

use super::isa::{Body, Lane, PlainBody, Single, run, run_plain};
use super::lane::F64;
use super::threads::{GRAIN, parallel_for};
use crate::dtype::Element;
use crate::real::Left;
use std::ops::Range;

/// Vector lanes of a sum over a row; fixed, so that the order of additions is.
const LANES: usize = 32;

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

impl<O: RowOp<f64>> PlainBody for Launch<'_, O> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.0.rows::<F64>(self.1);
    }
}

impl RowFloat for f32 {
    fn launch<O: RowOp<f32>>(op: &O, range: Range<usize>) {
        run(Launch(op, range));
    }
}

impl RowFloat for f64 {
    fn launch<O: RowOp<f64>>(op: &O, range: Range<usize>) {
        run_plain(Launch(op, range));
    }
}

/// Runs `op` on rows `0..count` of `length` elements, with several threads if that pays.
pub fn each_row<T: RowFloat, O: RowOp<T>>(op: &O, count: usize, length: usize) {
    parallel_for(count, (GRAIN / 8).div_ceil(length.max(1)), |range| {
        T::launch(op, range)
    });
}

/// `join` over `item(0)..item(n - 1)`: lane by lane, then the lanes as a tree.
#[inline(always)]
pub fn fold<L: Lane>(
    n: usize,
    start: L,
    mut item: impl FnMut(usize) -> L,
    join: impl Fn(L, L) -> L,
) -> L {
    let mut lanes = [start; LANES];
    let whole = n / LANES * LANES;
    let mut at = 0;
    while at < whole {
        for (i, lane) in lanes.iter_mut().enumerate() {
            *lane = join(*lane, item(at + i));
        }
        at += LANES;
    }
    for (i, lane) in lanes.iter_mut().enumerate().take(n - whole) {
        *lane = join(*lane, item(whole + i));
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = join(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// The sum of `item(0)..item(n - 1)`.
#[inline(always)]
pub fn total<L: Lane>(n: usize, item: impl FnMut(usize) -> L) -> L {
    fold(n, L::lit(0.0), item, |a, b| a + b)
}

/// The largest of `x[0]..x[n - 1]`.
///
/// # Safety
/// They exist.
#[inline(always)]
pub unsafe fn largest<L: Lane>(x: *const L::Float, n: usize) -> L {
    // SAFETY: the caller's promise.
    fold(
        n,
        L::lit(f64::NEG_INFINITY),
        |i| unsafe { L::new(*x.add(i)) },
        |a, b| L::select(b.gt(a), b, a),
    )
}
