//! How a loop runs: for which instructions it is compiled, and on how many threads.

pub mod isa;
pub(crate) mod many;
pub(crate) mod scratch;
pub(crate) mod stream;
pub(crate) mod team;
#[cfg(test)]
pub(crate) mod testing;
pub mod threads;
