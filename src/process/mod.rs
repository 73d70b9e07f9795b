//! Process-wide services of the core: the allocator, forks, interrupts, locks, guards, interned names.

pub mod blocks;
#[cfg(feature = "gpu")]
pub mod forks;
pub mod interrupt;
pub mod names;
pub mod on_drop;
pub mod sync;
