//! What the core needs of the process it lives in: memory in blocks, leave to go on, locks, names.

pub mod blocks;
pub mod interrupt;
pub mod names;
pub mod sync;
