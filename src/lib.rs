//! wengert: a tensor library built for differentiation.
pub mod real;
pub mod math;
pub mod cpu;
#[cfg(feature = "gpu")]
pub mod gpu;
