//! Contractions: matrix products, convolutions, and windows.

pub mod conv;
pub mod convolve;
pub mod cross;
pub mod integers;
pub mod linear;
pub mod matmul;
pub mod patches;
pub mod pool;
