//! The driver of elementwise kernels: it passes operands of any layout to loops over plain slices.
//!
//! A rule is compiled into one small loop per number type, called through a function pointer; everything in
//! this file is compiled once. Dense operands are passed as they are, others are gathered into a tile in L1,
//! and narrow dtypes are widened to those that kernels compute in. Read next: `src/cpu/pointwise/map.rs`.

mod permute;
mod plan;
mod tiles;

use super::layout::overlaps;
use super::narrow::{narrow, widen};
use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::nest::{MAX_OPERANDS, Nest};
use crate::cpu::run::stream;
use crate::cpu::run::threads::{GRAIN, Shared, parallel_for};
use crate::dispatch_width;
use crate::error::Result;
use plan::SegmentPlan;
use smallvec::SmallVec;
use std::mem::MaybeUninit;
pub(super) use tiles::{copy_tile, is_short};

/// A loop over `n` elements: `(rule, operands, output, n)`. The output is an operand or overlaps none.
pub type LoopFn = unsafe fn(*const u8, *const *const u8, *mut u8, usize);

/// Defines a [`LoopFn`] as a loop over slices: `fn name<types>(rule; operands; output) by launcher { loop }`.
macro_rules! kernel {
    (
        fn $name:ident$(<$($t:ident: $bound:path),*>)?(
            $($rule:ident: $of:ty)?; $($x:ident: $from:ty),*; $out:ident: $to:ty
        ) by $run:ident $body:block
    ) => {
        unsafe fn $name$(<$($t: $bound),*>)?(
            _rule: *const u8,
            mut operand: *const *const u8,
            out: *mut u8,
            n: usize,
        ) {
            struct Slices<'a$(, $($t),*)?> {
                $($rule: $of,)?
                $($x: &'a [$from],)*
                $out: &'a mut [$to],
            }
            impl$(<$($t: $bound),*>)? $crate::cpu::run::isa::PlainBody for Slices<'_$(, $($t),*)?> {
                type Output = ();
                #[inline(always)]
                fn run(self) {
                    let Slices { $($rule,)? $($x,)* $out } = self;
                    $body
                }
            }
            // SAFETY: `ElementLoop` calls a kernel with the rule and operands it was made for.
            $run(unsafe {
                $(
                    let $x = std::slice::from_raw_parts((*operand).cast::<$from>(), n);
                    operand = operand.wrapping_add(1);
                )*
                let _ = operand;
                let $out = std::slice::from_raw_parts_mut(out.cast::<$to>(), n);
                Slices { $($rule: *_rule.cast::<$of>(),)? $($x,)* $out }
            });
        }
    };
}
pub(crate) use kernel;

/// Elements of a tile; an operand's tile of eight-byte elements is 8 KiB.
pub(super) const TILE: usize = 1024;
/// Maximum number of operands of a loop without a plan.
const SMALL_OPERANDS: usize = 3;
/// Rows at least this long are processed one by one, so that contiguous ones need no gathering.
const LONG_ROW: usize = 128;

#[repr(C, align(64))]
struct Tile(MaybeUninit<[u64; TILE]>);

impl Tile {
    const fn new() -> Tile {
        Tile(MaybeUninit::uninit())
    }

    fn ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    /// The upper half, which holds narrow elements until they are widened.
    fn upper(&mut self) -> *mut u8 {
        self.ptr().wrapping_add(TILE * 4)
    }
}

/// One elementwise loop: a kernel with its rule, over operands that broadcast to `out`.
pub struct ElementLoop<'a> {
    kernel: LoopFn,
    rule: *const u8,
    x: &'a [&'a Array],
    out: &'a Array,
    computes: bool,
}

impl<'a> ElementLoop<'a> {
    /// A loop into `out` over at most seven operands. `computes` says that the kernel
    /// computes, in the dtypes of [`DType::compute`], and does not only move bits.
    ///
    /// # Safety The kernel is for these dtypes, or what they compute in, and for `rule`, which outlives the
    /// loop.
    #[inline(always)]
    pub unsafe fn new(
        kernel: LoopFn, rule: *const u8, x: &'a [&'a Array], out: &'a Array, computes: bool,
    ) -> ElementLoop<'a> {
        ElementLoop { kernel, rule, x, out, computes }
    }

    /// Whether an operand must be widened or the output narrowed.
    #[inline(always)]
    fn widens(&self) -> bool {
        self.computes && (is_narrow(self.out.dtype()) || self.x.iter().any(|a| is_narrow(a.dtype())))
    }

    /// Runs the loop over contiguous operands of the output's shape.
    #[inline]
    pub fn run_dense(&self) {
        let n = self.out.numel();
        if n >= 2 * GRAIN || self.widens() {
            return self.run_nest(false);
        }
        let mut pointers = [std::ptr::null(); MAX_OPERANDS];
        for (slot, a) in pointers.iter_mut().zip(self.x) {
            *slot = start(a);
        }
        // SAFETY: all operands and the output are contiguous, with `n` elements of the kernel's types.
        unsafe { (self.kernel)(self.rule, pointers.as_ptr(), start(self.out), n) }
    }

    /// Runs a loop of at most one tile over operands that have the output's layout or are single elements,
    /// which are repeated on the stack; returns whether it did. It is for the numbers in `x * 2 + 1`, where a
    /// plan would cost more than the loop.
    pub fn run_small(&self) -> bool {
        let n = self.out.numel();
        if n > TILE || self.x.len() > SMALL_OPERANDS || self.widens() {
            return false;
        }
        let mut tiles = [const { Tile::new() }; SMALL_OPERANDS];
        let mut pointers = [std::ptr::null::<u8>(); SMALL_OPERANDS];
        for (k, a) in self.x.iter().enumerate() {
            if a.same_layout(self.out) {
                pointers[k] = start(a);
                continue;
            }
            let tile = tiles[k].ptr();
            // SAFETY: the operand holds one element, and a tile can hold `n <= TILE` of any size.
            unsafe {
                dispatch_width!(a.dtype().size(), T => repeat::<T>(start(a), tile, n));
            }
            pointers[k] = tile;
        }
        // SAFETY: every pointer holds `n` elements of the kernel's types; the output overlaps none of them.
        unsafe { (self.kernel)(self.rule, pointers.as_ptr(), start(self.out), n) };
        true
    }

    /// Runs the loop into an output that nothing else refers to.
    pub fn run(&self) -> Result<()> {
        if !self.x.iter().any(|a| crosses(a, self.out)) {
            self.run_nest(false);
            return Ok(());
        }
        // A blocked copy of a transposed operand is faster than reading it element by element.
        let straight = |&a: &&Array| {
            if crosses(a, self.out) { super::copy::duplicate(a) } else { Ok(a.clone()) }
        };
        let x = self.x.iter().map(straight).collect::<Result<Vec<Array>>>()?;
        let x: Vec<&Array> = x.iter().collect();
        ElementLoop { x: &x, ..*self }.run_nest(false);
        Ok(())
    }

    /// Runs the loop into an output that may be, or overlap, an operand.
    pub fn run_in_place(&self) -> Result<()> {
        let mut in_place = false;
        let mut x: Vec<Array> = Vec::with_capacity(self.x.len());
        for &a in self.x {
            let same = a.same_layout(self.out) && start(a) == start(self.out);
            in_place |= same;
            x.push(if !same && overlaps(a, self.out) { super::copy::duplicate(a)? } else { a.clone() });
        }
        let x: Vec<&Array> = x.iter().collect();
        ElementLoop { x: &x, ..*self }.run_nest(in_place);
        Ok(())
    }

    fn run_nest(&self, in_place: bool) {
        let plan = SegmentPlan::new(self, in_place);
        let n = self.out.numel();
        parallel_for(n, GRAIN, |range| plan.chunk(range.start, range.end));
    }
}

/// The address of the first element.
#[inline(always)]
pub(super) fn start(a: &Array) -> *mut u8 {
    a.buffer().ptr().wrapping_add(a.offset() * a.dtype().size())
}

/// # Safety
/// `from` holds an element of `T`'s size, `to` is writable for `n` of them.
#[inline(always)]
pub(super) unsafe fn repeat<T: Copy>(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts_mut(to.cast::<T>(), n).fill(*from.cast()) }
}

/// Whether `a` is large, as large as `out`, and its last axis is not its innermost one in memory.
fn crosses(a: &Array, out: &Array) -> bool {
    let last = a.rank().wrapping_sub(1);
    a.rank() >= 2
        && a.numel() == out.numel()
        && a.numel() >= 8 * TILE
        && a.dim(last) > tiles::SHORT_ROW
        && a.stride(last).unsigned_abs() > 1
        && (0..last).any(|i| a.dim(i) > 1 && a.stride(i) == 1)
}

/// Whether kernels compute this dtype in a wider one.
#[inline(always)]
fn is_narrow(dtype: DType) -> bool {
    dtype.compute() != dtype
}
