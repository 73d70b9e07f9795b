//! Host code of the shaders: it chooses a variant, lays out its parameters and launches it.
//!
//! Each file mirrors the family of the same name in `src/cpu/`, function by function.
//! `src/gpu/kernels/dispatch.rs` puts a launch together; `src/gpu/kernels/parts.rs` splits long ones.
pub mod attention;
pub mod complex;
pub mod conv;
pub mod copy;
pub mod create;
mod dispatch;
pub mod gather;
pub mod linalg;
pub mod logic;
mod many;
pub mod map;
pub mod matmul;
pub mod norm;
pub mod optim;
mod parts;
mod pieces;
mod prelude;
pub mod random;
pub mod recurrence;
pub mod reduce;
pub mod scan;
pub mod search;
pub mod sort;
#[cfg(test)]
#[path = "../../../tests/kernels/gpu/mod.rs"]
pub(super) mod tests;

pub use complex::fft;
