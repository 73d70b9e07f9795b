//! Loops over the columns of a tile, compiled for the instruction set of the processor, in `f32` or `f64`.

use crate::array::dtype::Element;
use crate::cpu::run::isa::{Body, DoubleBody, Lane, Single, run, run_double};
use crate::math::real::Left;
use std::ops::Range;

/// Something done to groups of columns, with the lanes of `T`.
pub trait TileOp<T>: Sync {
    /// The groups of `range`. Implementations are `#[inline(always)]`.
    fn columns<L: Lane<Float = T>>(&self, range: Range<usize>)
    where
        f64: Left<L>;
}

/// A float whose tiles can be looped over.
pub trait TileFloat: Element {
    /// Runs `op` on the groups of `range`, compiled for this processor.
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

/// Number `i` as a lane.
///
/// # Safety
/// It exists.
#[inline(always)]
pub unsafe fn get<L: Lane>(x: *const L::Float, i: usize) -> L {
    // SAFETY: the caller's promise.
    L::new(unsafe { *x.add(i) })
}
