//! wengert: a tensor library built for differentiation.
pub mod array;
pub mod buffer;
pub mod cpu;
pub mod dtype;
pub mod error;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod math;
pub mod real;
pub mod shape;
