//! Process-wide services of the core: the allocator, interrupts, locks, interned names.

pub mod blocks;
pub mod interrupt;
pub mod names;
pub mod sync;
