//! Reads and writes of the elements that an index or a mask names.

pub mod gather;
pub mod put;
