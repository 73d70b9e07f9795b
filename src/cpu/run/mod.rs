//! How a loop runs: the instruction set it is compiled for, its threads and its scratch buffers.

pub mod isa;
pub(crate) mod many;
pub(crate) mod primitives;
pub(crate) mod scratch;
pub(crate) mod stream;
pub(crate) mod team;
#[cfg(test)]
pub(crate) mod testing;
pub mod threads;
