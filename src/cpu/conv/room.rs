//! Memory for pieces of work, kept by each thread: fresh pages would cost a tenth of a convolution.

use crate::array::buffer::filled;
use crate::error::Result;
use std::cell::RefCell;

/// A cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code, reason = "memory that is written through pointers")] [u8; 64]);

/// Lines that a thread keeps; longer memory is given back.
const KEPT: usize = 1 << 16;

thread_local! {
    static LINES: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// Memory in parts. It goes back to the thread when dropped.
pub struct Room {
    lines: Vec<Line>,
}

impl Room {
    /// Room for parts of so many elements, and where they begin. What they hold is unspecified.
    #[inline(always)]
    pub fn new<T, const N: usize>(lengths: [usize; N]) -> Result<(Room, [*mut T; N])> {
        let mut at = [0; N];
        let mut total = 0;
        for (at, length) in at.iter_mut().zip(lengths) {
            *at = total;
            total += (length * size_of::<T>()).div_ceil(size_of::<Line>());
        }
        let mut room = Room::of(total)?;
        let start = room.lines.as_mut_ptr();
        Ok((room, at.map(|at| start.wrapping_add(at).cast::<T>())))
    }

    #[inline(never)]
    fn of(total: usize) -> Result<Room> {
        // A piece inside of a piece would find nothing here, and take memory of its own.
        let lines = LINES.try_with(RefCell::take).unwrap_or_default();
        Ok(Room { lines: if lines.len() < total { filled(Line([0; 64]), total)? } else { lines } })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.lines.len() <= KEPT {
            let lines = std::mem::take(&mut self.lines);
            let _ = LINES.try_with(|kept| kept.replace(lines));
        }
    }
}
