//! Machine code for groups of elementwise operations: one loop whose values stay in registers.
//!
//! Rules and functions are read once more, with a lane that writes down what it would compute
//! (`src/cpu/emit/lane.rs`, into the list of `src/cpu/emit/ssa.rs`). The list consists of the instructions
//! that compiled loops use, so results have the same bits; but a NaN may have the other sign, because the
//! compiler of those loops moves negations through products. What a list cannot hold is left to compiled
//! loops, and so is everything where the processor lacks AVX-512, where the system refuses executable memory,
//! or with `WENGERT_EMIT=0`.
//!
//! Where a function has rare arguments, the emitted loop returns before it computes them, and the caller runs
//! compiled loops there.
//!
//! Read next: `src/cpu/pointwise/fused/emitted.rs`, the user of this.

mod allocate;
mod lane;
mod memory;
mod rows;
mod ssa;
#[cfg(test)]
mod tests;
mod uses;
mod x86;

pub use lane::{Truth, Value};
pub use ssa::{Code, NONE, list, push};

use crate::cpu::run::isa::{Isa, isa};
use memory::Executable;
use ssa::List;
use std::sync::OnceLock;

/// A rule as what writes the rows of its result, from the rows of its operands.
pub type Reading = unsafe fn(rule: *const u8, x: &[Value]) -> Value;

/// Whether machine code is emitted.
pub fn is_on() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| isa() == Isa::Avx512 && std::env::var("WENGERT_EMIT").as_deref() != Ok("0"))
}

/// A loop over elements as machine code.
pub struct Emitted {
    code: Executable,
    pool: Vec<u64>,
    /// Bytes of memory that it needs while it runs.
    pub frame: usize,
}

/// The convention of an emitted function: where operands and results lie, operands that are one number,
/// constants, how many elements, its frame. It returns how many elements it has computed.
type Function = unsafe extern "sysv64" fn(*const *mut u8, *const u64, *const u64, usize, *mut u8) -> usize;

impl Emitted {
    /// The loop of a list with so many pointers; `None` if the system refuses.
    pub fn new(list: &List, pointers: usize) -> Option<Emitted> {
        let made = allocate::function(list, pointers);
        Some(Emitted { code: Executable::new(&made.bytes)?, pool: made.pool, frame: made.frame })
    }

    /// Runs it over `n` elements; returns how many it has computed before rare arguments. The elements of a
    /// result after those are arbitrary.
    ///
    /// # Safety
    /// The processor has AVX-512 F, BW, DQ and VL. The pointers lead to `n` elements of the list's operands
    /// and results, `singles` holds its single operands, and `frame` leads to as many bytes as that says.
    pub unsafe fn run(&self, pointers: &[*mut u8], singles: &[u64], n: usize, frame: *mut u8) -> usize {
        // SAFETY: the code is a function of this type.
        let function = unsafe { std::mem::transmute::<*const u8, Function>(self.code.start()) };
        // SAFETY: guaranteed by the caller; emitted code keeps the registers that its convention names.
        unsafe { function(pointers.as_ptr(), singles.as_ptr(), self.pool.as_ptr(), n, frame) }
    }
}
