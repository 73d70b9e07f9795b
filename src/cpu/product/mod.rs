//! Products of two matrices in memory, of one element type:
//! `out[i, j] = sum over l of left[i, l] right[l, j]`.
//!
//! Every element is a sum in the order of the depth, cut where the shape says. Neither the number of threads
//! nor the position of an element in its tile changes a bit of it. [`Multiply::multiply`] chooses the
//! instruction set and the algorithm at run time.
//!
//! Read next, in `src/cpu/product/`: mac (the operations of an instruction set), tile (the innermost loop),
//! pack (operands in the order in which tiles read them), blocks (how a product is cut into tiles), thin
//! (results of a few rows or columns), packed (one right operand for many products), vector and x86 (the
//! instruction sets).

mod blocks;
pub mod epilogue;
mod inner;
mod mac;
pub mod matmul;
mod pack;
pub mod packed;
#[cfg(test)]
#[path = "../../../tests/kernels/product.rs"]
mod tests;
mod thin;
mod tile;
#[cfg(target_arch = "x86_64")]
mod transpose;
pub mod vector;
#[cfg(target_arch = "x86_64")]
pub mod x86;

use crate::cpu::prelude::*;
use crate::cpu::run::isa::{Isa, isa};
use crate::cpu::run::scratch::Scratch;
use mac::{Baseline, Kernels};
use vector::Arithmetic;

/// One operand: element `l` of the depth in row (left) or column (right) `i` is at `i * free + l * depth`.
#[derive(Clone, Copy)]
pub struct MatrixRef<S> {
    /// The first element.
    pub data: *const S,
    /// Stride from one row of the left operand, or column of the right one, to the next.
    pub free: isize,
    /// Stride from one step of the depth to the next.
    pub depth: isize,
}

// SAFETY: an operand is only read.
unsafe impl<S> Sync for MatrixRef<S> {}

impl<S> MatrixRef<S> {
    /// Returns the operand from a step of the depth on.
    pub fn from(self, step: usize) -> Self {
        MatrixRef { data: self.at(0, step), ..self }
    }

    /// Returns the address of step `l` in row or column `i`.
    #[inline(always)]
    fn at(&self, i: usize, l: usize) -> *const S {
        self.data.wrapping_offset(i as isize * self.free + l as isize * self.depth)
    }
}

/// A finished rectangle of the result, still in the first-level cache.
#[derive(Clone, Copy)]
pub struct Piece<O> {
    /// Its first element.
    pub at: *mut O,
    /// Row stride; columns are adjacent.
    pub stride: isize,
    /// Index of its first row.
    pub i: usize,
    /// Index of its first column.
    pub j: usize,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
}

impl<O> Piece<O> {
    /// Returns row `i`.
    ///
    /// # Safety
    /// The piece has the row, and nobody else has it meanwhile.
    #[inline(always)]
    unsafe fn row<'a>(&self, i: usize) -> &'a mut [O] {
        // SAFETY: the row lies inside the piece; the caller guarantees the rest (`# Safety`).
        unsafe { std::slice::from_raw_parts_mut(self.at.offset(i as isize * self.stride), self.columns) }
    }
}

/// A consumer of the pieces of a result.
pub trait Sink<O>: Sync {
    /// Takes a piece; each piece is given once.
    ///
    /// # Safety
    /// No other thread accesses the piece during the call.
    unsafe fn take(&self, piece: Piece<O>);
}

/// The destination of the result.
#[derive(Clone, Copy)]
pub enum Target<'a, O> {
    /// Memory with this row stride, and then a sink.
    Memory(*mut O, isize, Option<&'a dyn Sink<O>>),
    /// A sink alone.
    Sink(&'a dyn Sink<O>),
}

/// A piece, the sink that takes it, and the memory that it lies in if its target has none.
type Opened<'a, O> = (Piece<O>, Option<&'a dyn Sink<O>>, Scratch<O>);

impl<'a, O> Target<'a, O> {
    /// Returns the rectangle `rows x columns` at row `i` and column `j`.
    fn piece(&self, (i, j): (usize, usize), (rows, columns): (usize, usize)) -> Result<Opened<'a, O>> {
        let apart = if matches!(self, Target::Sink(_)) { rows * columns } else { 0 };
        let mut memory = Scratch::new(apart)?;
        let (at, stride, sink) = match *self {
            Target::Memory(out, stride, sink) => {
                (out.wrapping_offset(i as isize * stride + j as isize), stride, sink)
            }
            Target::Sink(sink) => (memory.ptr(), columns as isize, Some(sink)),
        };
        Ok((Piece { at, stride, i, j, rows, columns }, sink, memory))
    }
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
    pub left: MatrixRef<S>,
    /// The right operand.
    pub right: MatrixRef<S>,
    /// The destination of the result.
    pub target: Target<'a, O>,
}

// SAFETY: whoever makes a product guarantees that no other thread writes its memory.
unsafe impl<S, O> Sync for Product<'_, S, O> {}

/// Elements that are multiplied in their own type.
pub trait Multiply: Element + Arithmetic {
    /// Computes a product on as many threads as pay; fails if there is no memory to pack its operands.
    ///
    /// # Safety
    /// Operands and result exist in the sizes given, and no other thread writes them.
    unsafe fn multiply(p: &Product<Self, Self>) -> Result<()>;
}

/// Implements [`Multiply`] with vectors for AVX-512, for AVX2 and for neither.
macro_rules! number {
    ($($t:ty: $avx512:ident, $avx2:ty, $lanes:literal;)*) => {
        $(impl Multiply for $t {
            unsafe fn multiply(p: &Product<$t, $t>) -> Result<()> {
                // SAFETY: the caller guarantees operands and result; `isa` found the CPU features.
                unsafe {
                    match isa() {
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx512 => run::<x86::$avx512>(p),
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx2 => run::<$avx2>(p),
                        _ => run::<Baseline<$t, $lanes>>(p),
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
    i64: I64x8, Baseline<i64, 2>, 2;
}

/// Whether this processor supports [`multiply_bf16`].
pub fn has_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        isa() == Isa::Avx512 && is_x86_feature_detected!("avx512bf16")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Computes a product of bfloat16 numbers, given by their bits, with sums in `f32`.
///
/// # Safety
/// As for [`Multiply::multiply`], and [`has_bf16`] must hold.
pub unsafe fn multiply_bf16(p: &Product<u16, f32>) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller guarantees operands, result and the instructions of `has_bf16`.
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
/// As for [`Multiply::multiply`], and the processor has the instructions.
unsafe fn run<M: Kernels>(p: &Product<M::Stored, M::Out>) -> Result<()> {
    // SAFETY: the caller guarantees operands, result and instructions.
    unsafe {
        if tile::single::<M>(p) {
            return Ok(());
        }
        match thin::Thin::of::<M>(p) {
            Some(thin) => thin.run::<M>(),
            None => blocks::Blocks::<M>::new(*p).run(),
        }
    }
}
