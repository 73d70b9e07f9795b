//! Machine code for groups of elementwise operations: one loop whose values stay in registers.
//!
//! Rules and functions are read once more, with a lane that writes down what it would compute
//! (`src/cpu/emit/lane.rs`, into the list of `src/cpu/emit/ssa.rs`). The list consists of the instructions
//! that compiled loops use, so results have the same bits; but a NaN may have the other sign, because the
//! compiler of those loops moves negations through products. What a list cannot hold is left to compiled
//! loops, and so is everything where the processor lacks AVX2, where the system refuses executable memory, or
//! with `WENGERT_EMIT=0`.
//!
//! Where a function has rare arguments, the emitted loop returns before it computes them, and the caller runs
//! compiled loops there.
//!
//! In the words of compilers: the list is in static single assignment form, a row is an instruction of it, a
//! [`Code::Leave`] a side exit, and registers are given out by a linear scan (`src/cpu/emit/allocate.rs`).
//!
//! A list is written for AVX2 or for AVX-512 (`src/cpu/emit/target.rs`). What AVX2 has no instruction for is
//! several rows (`src/cpu/emit/composed.rs`). AVX-512 skips the elements of a register that are not there;
//! loops for AVX2 compute whole registers, the last of which may overlap the one before.
//!
//! Read next: `src/cpu/pointwise/fused/emitted.rs`, the user of this.

mod allocate;
mod composed;
mod lane;
mod memory;
mod rows;
mod ssa;
mod target;
#[cfg(test)]
mod tests;
mod uses;
mod vex;
mod x86;

pub use lane::{Truth, Value};
pub use ssa::{Code, NONE, list, push};
pub use target::Target;

use crate::cpu::run::isa::isa;
use memory::Executable;
use smallvec::SmallVec;
use ssa::List;
use std::sync::OnceLock;

/// What machine code is emitted for; `None` if none is.
pub fn target() -> Option<Target> {
    static IS_WANTED: OnceLock<bool> = OnceLock::new();
    let is_wanted = || std::env::var("WENGERT_EMIT").as_deref() != Ok("0");
    Target::of(isa()).filter(|_| *IS_WANTED.get_or_init(is_wanted))
}

/// Whether machine code is emitted.
pub fn is_on() -> bool {
    target().is_some()
}

/// A cache line: no register of constants begins in one and ends in another.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u64; 8]);

/// A loop over elements as machine code.
pub struct Emitted {
    code: Executable,
    pool: Vec<Line>,
    /// Bytes of memory that it needs while it runs.
    pub frame: usize,
    /// How many elements the code computes at least.
    least: usize,
    /// The pointers of operands, and the bytes of an element of each.
    reads: Vec<(usize, usize)>,
    /// The same of results.
    writes: Vec<(usize, usize)>,
    /// The elements of a register, its instructions, and how many of these follow one another.
    lanes: usize,
    rows: usize,
    depth: usize,
}

/// Cycles until the next instruction of a chain of them can begin, about.
const LATENCY: usize = 4;

/// So many instructions wait in a processor at once, about.
const WINDOW: usize = 300;

/// Cycles that each loop of a tile takes beside its elements, about.
const LOOP: usize = 60;

/// The convention of an emitted function: where operands and results lie, operands that are one number,
/// constants, how many elements, its frame. It returns how many elements it has computed.
type Function = unsafe extern "sysv64" fn(*const *mut u8, *const u64, *const u64, usize, *mut u8) -> usize;

/// How many rows follow one another at most, each of which reads the one before.
fn depth(rows: &[ssa::Row]) -> usize {
    let mut depths: Vec<usize> = Vec::with_capacity(rows.len());
    for row in rows.iter() {
        let before = row.x.iter().filter_map(|&x| depths.get(x as usize)).max().copied().unwrap_or(0);
        depths.push(before + usize::from(!row.code.is_source()));
    }
    depths.into_iter().max().unwrap_or(0)
}

impl Emitted {
    /// The loop of a list with so many pointers; `None` if the system refuses.
    pub fn new(list: &List, pointers: usize) -> Option<Emitted> {
        let made = allocate::function(list, pointers);
        let lines = made.pool.chunks(8).map(|words| {
            let mut line = Line([0; 8]);
            line.0[..words.len()].copy_from_slice(words);
            line
        });
        let size = if list.is_wide { 8 } else { 4 };
        let places = |numbers: Code, truths: Code| {
            let of = list.rows.iter().filter(|row| row.code == numbers || row.code == truths);
            of.map(|row| (row.n as usize, if row.code == truths { 1 } else { size })).collect()
        };
        Some(Emitted {
            code: Executable::new(&made.bytes)?,
            pool: lines.collect(),
            frame: made.frame,
            least: if list.target == Target::Avx2 { 32 / size } else { 1 },
            reads: places(Code::Dense, Code::DenseTruth),
            writes: places(Code::Store, Code::StoreTruth),
            lanes: if list.target == Target::Avx2 { 32 / size } else { 64 / size },
            rows: list.rows.iter().filter(|row| !row.code.is_source()).count(),
            depth: depth(&list.rows),
        })
    }

    /// Whether `n` elements are computed faster by as many loops as these, tile by tile. In a tile, functions
    /// of many elements are computed at once; here the processor sees those of the next elements only as far
    /// as its window reaches.
    pub fn is_slower_than_tiles(&self, n: usize, loops: usize) -> bool {
        let at_once = self.rows / 2;
        let own = at_once.max(self.depth * LATENCY * self.rows.min(WINDOW) / WINDOW);
        let tiled = at_once + 2 * loops;
        own > tiled && n.div_ceil(self.lanes) * (own - tiled) > LOOP * loops
    }

    /// Runs it over `n` elements; returns how many it has computed before rare arguments. The elements of a
    /// result after those are arbitrary.
    ///
    /// # Safety
    /// The processor has the list's target. The pointers lead to `n` elements of the list's operands and
    /// results, and no result overlaps another or an operand; `singles` holds its single operands, and
    /// `frame` leads to as many bytes as that says.
    pub unsafe fn run(&self, pointers: &[*mut u8], singles: &[u64], n: usize, frame: *mut u8) -> usize {
        if n < self.least {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.run_few(pointers, singles, n, frame) };
        }
        // SAFETY: the code is a function of this type.
        let function = unsafe { std::mem::transmute::<*const u8, Function>(self.code.start()) };
        // SAFETY: guaranteed by the caller; emitted code keeps the registers that its convention names.
        unsafe { function(pointers.as_ptr(), singles.as_ptr(), self.pool.as_ptr().cast(), n, frame) }
    }

    /// Runs it over fewer elements than a register has, through copies of the operands that are as long. They
    /// are filled with the first element, so no argument is rare that is not there.
    ///
    /// # Safety
    /// As for [`Emitted::run`].
    #[inline(never)]
    unsafe fn run_few(&self, pointers: &[*mut u8], singles: &[u64], n: usize, frame: *mut u8) -> usize {
        if n == 0 {
            return 0;
        }
        let mut copies: SmallVec<[Line; 16]> = SmallVec::with_capacity(pointers.len());
        let start = copies.as_mut_ptr();
        let whole: SmallVec<[*mut u8; 16]> =
            (0..pointers.len()).map(|k| start.wrapping_add(k).cast()).collect();
        for &(k, size) in &self.reads {
            // SAFETY: the operand has `n` elements, which fit into a line.
            unsafe {
                let (from, to) = (pointers[k], whole[k]);
                let first = match size {
                    1 => u64::from(*from) * 0x0101_0101_0101_0101,
                    4 => u64::from(*from.cast::<u32>()) * 0x1_0000_0001,
                    _ => *from.cast::<u64>(),
                };
                to.cast::<Line>().write(Line([first; 8]));
                if n > 1 {
                    to.copy_from_nonoverlapping(from, n * size);
                }
            }
        }
        // SAFETY: guaranteed by the caller; the copies are as long as the code demands.
        let done = unsafe { self.run(&whole, singles, self.least, frame) };
        for &(k, size) in &self.writes {
            // SAFETY: both have `n` elements of the result.
            unsafe { pointers[k].copy_from_nonoverlapping(whole[k], n * size) };
        }
        done.min(n)
    }
}
