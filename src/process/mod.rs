//! What the core needs of its process: blocks of memory, interrupts, locks, names.

pub mod blocks;
pub mod interrupt;
pub mod names;
pub mod sync;
