//! Loops over the columns of a tile in `f32` or `f64`, compiled per instruction set.

use crate::array::dtype::Element;
use crate::cpu::run::isa::{Body, DoubleBody, Lane, Single, run, run_double};
use crate::math::real::Left;
use std::ops::Range;

/// An operation on groups of columns, computed in lanes of `T`.
pub trait TileOp<T>: Sync {
    /// Processes the groups `range`, of `super::LANE` columns each. Implementations are `#[inline(always)]`.
    fn columns<L: Lane<Float = T>>(&self, range: Range<usize>)
    where
        f64: Left<L>;
}

/// A float type of tiles.
pub trait TileFloat: Element {
    /// Runs `op` on the groups `range`, compiled for this processor.
    fn launch<O: TileOp<Self>>(op: &O, range: Range<usize>);
}

struct Launch<'a, O>(&'a O, Range<usize>);

impl<O: TileOp<f32>> Body for Launch<'_, O> {
    type Output = ();
    #[inline(always)]
    fn run<L: Single>(self)
    where
        f64: Left<L>,
    {
        self.0.columns::<L>(self.1);
    }
}

impl<O: TileOp<f64>> DoubleBody for Launch<'_, O> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lane<Float = f64>>(self)
    where
        f64: Left<L>,
    {
        self.0.columns::<L>(self.1);
    }
}

impl TileFloat for f32 {
    fn launch<O: TileOp<f32>>(op: &O, range: Range<usize>) {
        run(Launch(op, range));
    }
}

impl TileFloat for f64 {
    fn launch<O: TileOp<f64>>(op: &O, range: Range<usize>) {
        run_double(Launch(op, range));
    }
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
