//! Loops over the rows of a matrix in vector lanes, in `f32` or `f64`.
//!
//! A row stays in the L1 cache between the passes over it, so a pass costs little more than its arithmetic.
//! The code for one vector is compiled twice: for whole vectors and for the rest of a row.

pub(crate) mod cell;
pub(crate) mod cross_entropy;
pub(crate) mod layer_norm;
pub mod norm;
pub(crate) mod recurrent;

use crate::cpu::pointwise::vector::{Loop, Number};
use crate::cpu::prelude::*;
use crate::cpu::reduce::registers;
use crate::cpu::run::isa::isa;
use crate::math::wide::Wide;
use std::ops::Range;

/// An operation on every row, with the lanes of `T`.
pub trait RowOp<T>: Sync {
    /// Processes a row. Implementations are `#[inline(always)]`.
    fn row<L: Wide<Number = T>>(&self, row: usize);
}

/// A float type whose rows can be looped over.
pub trait RowFloat: Element + Number {
    /// Returns the largest of a row, NaN if there is one.
    fn largest(x: &[Self]) -> Self;
}

macro_rules! row_float {
    ($($t:ty: $largest:path),*) => {
        $(impl RowFloat for $t {
            #[inline(always)]
            fn largest(x: &[$t]) -> $t {
                $largest(x)
            }
        })*
    };
}
row_float!(f32: registers::max_f32, f64: registers::max_f64);

struct Launch<'a, O>(&'a O, Range<usize>);

impl<T: RowFloat, O: RowOp<T>> Loop<T> for Launch<'_, O> {
    #[inline(always)]
    unsafe fn run<L: Wide<Number = T>>(self) {
        for row in self.1 {
            self.0.row::<L>(row);
        }
    }
}

/// Runs `op` on the rows of `range`, compiled for this processor.
pub fn launch<T: RowFloat, O: RowOp<T>>(op: &O, range: Range<usize>) {
    // SAFETY: `isa` found the instructions on this processor.
    unsafe { T::run(isa(), Launch(op, range)) }
}

/// Runs `op` on rows `0..count` of `length` elements, on several threads if that pays.
pub fn each_row<T: RowFloat, O: RowOp<T>>(op: &O, count: usize, length: usize) {
    parallel_for(count, (GRAIN / 8).div_ceil(length.max(1)), |range| launch(op, range));
}

/// Which numbers of a vector are inside a row: all, or the first few where the row ends.
#[derive(Clone, Copy)]
pub struct Access(pub Option<usize>);

impl Access {
    /// Loads the numbers at `from`; zeros after the row's end.
    ///
    /// # Safety
    /// They exist.
    #[inline(always)]
    pub unsafe fn load<L: Wide>(self, from: *const L::Number) -> L {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.0 {
                None => L::load(from),
                Some(n) => L::load_part(from, n),
            }
        }
    }

    /// Writes the numbers inside the row to `to`.
    ///
    /// # Safety
    /// `to` is writable for them.
    #[inline(always)]
    pub unsafe fn store<L: Wide>(self, value: L, to: *mut L::Number) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.0 {
                None => value.store(to),
                Some(n) => value.store_part(to, n),
            }
        }
    }

    /// Returns `value` with zeros after the row's end.
    #[inline(always)]
    pub fn keep<L: Wide>(self, value: L) -> L {
        let Some(n) = self.0 else { return value };
        let mut numbers = Numbers::<L>::new();
        // SAFETY: `numbers` can hold the widest vector.
        unsafe {
            value.store_part(numbers.ptr(), n);
            L::load_part(numbers.ptr(), n)
        }
    }
}

/// A scratch buffer for the numbers of a vector, 16 at most.
struct Numbers<L: Wide>([std::mem::MaybeUninit<L::Number>; 16]);

impl<L: Wide> Numbers<L> {
    #[inline(always)]
    fn new() -> Numbers<L> {
        const { assert!(L::WIDTH <= 16) };
        Numbers([const { std::mem::MaybeUninit::uninit() }; 16])
    }

    #[inline(always)]
    fn ptr(&mut self) -> *mut L::Number {
        self.0.as_mut_ptr().cast()
    }
}

/// Returns the sum of a vector's numbers.
#[inline(always)]
pub fn sum_of<L: Wide<Number: Element>>(value: L) -> f64 {
    let mut numbers = Numbers::<L>::new();
    let mut halves = [0.0; 16];
    // SAFETY: `numbers` can hold the widest vector, and `WIDTH` numbers were written.
    unsafe {
        value.store(numbers.ptr());
        for (i, half) in halves.iter_mut().enumerate().take(L::WIDTH) {
            *half = (*numbers.ptr().add(i)).to_f64();
        }
    }
    in_pairs(halves)
}

/// Returns the sum of numbers, in pairs of halves.
#[inline(always)]
fn in_pairs(mut halves: [f64; 16]) -> f64 {
    for i in 0..8 {
        halves[i] += halves[i + 8];
    }
    for i in 0..4 {
        halves[i] += halves[i + 4];
    }
    (halves[0] + halves[2]) + (halves[1] + halves[3])
}

/// Returns the first number of a vector.
#[inline(always)]
pub fn first_of<L: Wide<Number: Element>>(value: L) -> L::Number {
    let mut numbers = Numbers::<L>::new();
    // SAFETY: `numbers` can hold the widest vector, and the first number was written.
    unsafe {
        value.store(numbers.ptr());
        *numbers.ptr()
    }
}

/// Returns a vector filled with the number `x[i]`.
///
/// # Safety
/// `x[i]` exists.
#[inline(always)]
pub unsafe fn all_of<L: Wide<Number: Element>>(x: *const L::Number, i: usize) -> L {
    // SAFETY: guaranteed by the caller.
    L::lit(unsafe { *x.add(i) }.to_f64())
}

/// `across!(L, n, i, v => body)` runs the body for every vector of a row of `n` numbers: `i` is the index of
/// its first number, and `v` its [`Access`].
///
/// A macro, because a closure that is not inlined would be compiled without its caller's instruction set.
macro_rules! across {
    ($lane:ty, $n:expr, $i:ident, $v:ident => $body:expr) => {{
        let n = $n;
        let whole = n - n % <$lane>::WIDTH;
        let mut at = 0;
        while at < whole {
            let ($i, $v) = (at, Access(None));
            $body;
            at += <$lane>::WIDTH;
        }
        if whole < n {
            let ($i, $v) = (whole, Access(Some(n - whole)));
            $body;
        }
    }};
}
pub(super) use across;

/// `total!(L, n, i, v => term)` sums a cheap term over a row. Four sums run side by side, because an addition
/// waits for the one before. `total!(@zero ...)` is for a term that is zero where its operands are, as those
/// that are loaded after the row's end; a short row waits for no [`Access::keep`] then.
macro_rules! total {
    ($lane:ty, $n:expr, $i:ident, $v:ident => $term:expr) => {
        total!(@all $lane, $n, $i, $v, $term, $v.keep($term))
    };
    (@zero $lane:ty, $n:expr, $i:ident, $v:ident => $term:expr) => {
        total!(@all $lane, $n, $i, $v, $term, $term)
    };
    (@all $lane:ty, $n:expr, $i:ident, $v:ident, $term:expr, $last:expr) => {{
        let (n, step) = ($n, <$lane>::WIDTH);
        let zero = <$lane>::lit(0.0);
        let (mut a, mut b, mut c, mut d) = (zero, zero, zero, zero);
        let mut at = 0;
        while at + 4 * step <= n {
            a = a + total!(@term at, $i, $v, $term);
            b = b + total!(@term at + step, $i, $v, $term);
            c = c + total!(@term at + 2 * step, $i, $v, $term);
            d = d + total!(@term at + 3 * step, $i, $v, $term);
            at += 4 * step;
        }
        while at + step <= n {
            a = a + total!(@term at, $i, $v, $term);
            at += step;
        }
        if at < n {
            let ($i, $v) = (at, Access(Some(n - at)));
            b = b + $last;
        }
        sum_of((a + b) + (c + d))
    }};
    (@term $at:expr, $i:ident, $v:ident, $term:expr) => {{
        let ($i, $v) = ($at, Access(None));
        $term
    }};
}
pub(super) use total;
