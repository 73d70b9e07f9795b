//! Products of two matrices in memory, in one element type:
//! `out[i, j] = sum over l of left[i, l] right[l, j]`.
//!
//! Reading order: `mac.rs` (what a processor offers), `tile.rs` (the innermost loop), `pack.rs` (operands in
//! the order in which tiles read them), `blocks.rs` (how a product is cut into tiles), `thin.rs` (results of
//! a few rows or columns), `x86.rs` and `plain.rs` (the instruction sets). [`Number::multiply`] chooses among
//! those at run time.
//!
//! Every element is a sum in the order of the depth, cut where the shape says; neither the number of threads
//! nor the place of an element in its tile changes a bit of it.

mod blocks;
pub mod epilogue;
mod inner;
mod mac;
pub mod matmul;
mod pack;
mod plain;
mod single;
#[cfg(test)]
mod tests;
mod thin;
mod tile;
#[cfg(target_arch = "x86_64")]
mod transpose;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::cpu::run::isa::{Isa, isa};
use crate::error::Result;
use mac::Mac;
use plain::Plain;

/// One operand: element `l` of the depth in row (left) or column (right) `i` is at `i * free + l * depth`.
#[derive(Clone, Copy)]
pub struct Operand<S> {
    /// The first element.
    pub data: *const S,
    /// Elements from one row of the left operand, or column of the right one, to the next.
    pub free: isize,
    /// Elements from one step of the depth to the next.
    pub depth: isize,
}

// SAFETY: an operand is only read.
unsafe impl<S> Sync for Operand<S> {}

impl<S> Operand<S> {
    /// The operand from a step of the depth on.
    pub fn from(self, step: usize) -> Self {
        Operand { data: self.at(0, step), ..self }
    }

    /// The place of step `l` in row or column `i`.
    #[inline(always)]
    fn at(&self, i: usize, l: usize) -> *const S {
        self.data.wrapping_offset(i as isize * self.free + l as isize * self.depth)
    }
}

/// A finished rectangle of the result, still in the first cache.
#[derive(Clone, Copy)]
pub struct Piece<O> {
    /// Its first element.
    pub at: *mut O,
    /// Elements from one of its rows to the next; the columns lie side by side.
    pub stride: isize,
    /// Its first row.
    pub i: usize,
    /// Its first column.
    pub j: usize,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
}

/// What takes the pieces of a result, each once.
pub trait Sink<O>: Sync {
    /// Takes a piece.
    ///
    /// # Safety
    /// Nobody else touches the piece meanwhile.
    unsafe fn take(&self, piece: Piece<O>);
}

/// Where the result goes.
#[derive(Clone, Copy)]
pub enum Target<'a, O> {
    /// To memory, whose rows are this many elements apart; then to a sink.
    Memory(*mut O, isize, Option<&'a dyn Sink<O>>),
    /// To a sink alone.
    Sink(&'a dyn Sink<O>),
}

/// A product of `m x k` by `k x n`; no length is zero.
#[derive(Clone, Copy)]
pub struct Product<'a, S, O> {
    /// Rows.
    pub m: usize,
    /// Columns.
    pub n: usize,
    /// Depth.
    pub k: usize,
    /// The left operand.
    pub left: Operand<S>,
    /// The right operand.
    pub right: Operand<S>,
    /// Where the result goes.
    pub target: Target<'a, O>,
}

// SAFETY: whoever makes a product vouches that its memory is nobody else's to write.
unsafe impl<S, O> Sync for Product<'_, S, O> {}

/// Elements that are multiplied in their own type.
pub trait Number: Copy + Send + Sync + 'static {
    /// Computes a product, on as many threads as pay; an error if there is no memory to pack its operands.
    ///
    /// # Safety
    /// Operands and result exist in the sizes given, and nobody else writes them.
    unsafe fn multiply(p: &Product<Self, Self>) -> Result<()>;
}

/// A number, and its vectors with AVX-512, with AVX2 and without either.
macro_rules! number {
    ($($t:ty: $avx512:ident, $avx2:ty, $lanes:literal;)*) => {
        $(impl Number for $t {
            unsafe fn multiply(p: &Product<$t, $t>) -> Result<()> {
                // SAFETY: the caller's promise; `isa` found the instructions on this processor.
                unsafe {
                    match isa() {
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx512 => run::<x86::$avx512>(p),
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx2 => run::<$avx2>(p),
                        _ => run::<Plain<$t, $lanes>>(p),
                    }
                }
            }
        })*
    };
}

number! {
    f32: F32x16, x86::F32x8, 4;
    f64: F64x8, x86::F64x4, 2;
    i32: I32x16, x86::I32x8, 4;
    i64: I64x8, Plain<i64, 2>, 2;
}

/// Whether [`multiply_bf16`] is there.
pub fn has_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        isa() == Isa::Avx512 && is_x86_feature_detected!("avx512bf16")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// A product of bfloat16 numbers, given by their bits, summed in `f32`.
///
/// # Safety
/// As [`Number::multiply`], and [`has_bf16`] must hold.
pub unsafe fn multiply_bf16(p: &Product<u16, f32>) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise.
    unsafe {
        run::<x86::Bf16x32>(p)
    }
    #[cfg(not(target_arch = "x86_64"))]
    Err(crate::error::Error::dtype(format!(
        "internal: {} by {} bfloat16 numbers in no instruction",
        p.m, p.n
    )))
}

/// Computes a product with one kind of instructions.
///
/// # Safety
/// As [`Number::multiply`], and the processor has the instructions.
unsafe fn run<M: Mac>(p: &Product<M::Stored, M::Out>) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        if single::single::<M>(p) {
            return Ok(());
        }
        match thin::Thin::of::<M>(p) {
            Some(thin) => thin.run::<M>(),
            None => blocks::Blocks::<M>::new(*p).run(),
        }
    }
}
