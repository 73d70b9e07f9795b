//! What the core needs of the process it lives in: memory in blocks, leave to go on, locks.

pub mod blocks;
pub mod interrupt;
pub mod sync;
