//! Memory for packed operands and unfinished results, kept by each thread from one product to the next.

use crate::array::buffer::room;
use crate::error::Result;
use std::cell::Cell;

/// What it is for; the uses of one product are nested.
#[derive(Clone, Copy)]
pub enum Use {
    /// A packed block of the left operand.
    Left,
    /// A packed block of the right operand.
    Right,
    /// Unfinished results.
    Result,
    /// Unfinished results, transposed.
    Turned,
}

/// A cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; 64],
}

/// What a thread keeps at most, per use.
const KEPT: usize = 16 << 20;

thread_local! {
    static KEEP: [Cell<Vec<Line>>; 4] = const { [const { Cell::new(Vec::new()) }; 4] };
}

/// Calls `f` with room for `length` elements, aligned to a cache line and not initialised.
pub fn with<T: Copy>(purpose: Use, length: usize, f: impl FnOnce(*mut T) -> Result<()>) -> Result<()> {
    let mut lines = KEEP.try_with(|keep| keep[purpose as usize].take()).unwrap_or_default();
    let need = length.saturating_mul(size_of::<T>()).div_ceil(size_of::<Line>());
    if lines.capacity() < need {
        lines = room(need)?;
    }
    f(lines.as_mut_ptr().cast())?;
    if lines.capacity() * size_of::<Line>() <= KEPT {
        // A thread that is ending keeps nothing.
        let _ = KEEP.try_with(|keep| keep[purpose as usize].set(lines));
    }
    Ok(())
}
