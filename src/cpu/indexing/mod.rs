//! Reads and writes of elements that an index or a mask selects.

pub mod gather;
pub mod put;
