//! CPU kernels: loops over slices, independent of operation names and of differentiation.
//!
//! They accept arrays with any strides and return fresh dense arrays. Reading order: `src/cpu/run/isa.rs`
//! (which instructions a loop is compiled for), `src/cpu/run/threads.rs` (how it is split),
//! `src/cpu/pointwise/drive.rs` (how strided operands reach it), then the families.

pub mod attention;
pub mod conv;
pub mod create;
#[cfg(all(unix, target_arch = "x86_64"))]
pub mod emit;
pub mod fft;
pub mod indexing;
pub mod linalg;
pub mod optim;
pub mod pointwise;
mod prelude;
pub mod product;
pub mod random;
pub mod reduce;
pub mod rows;
pub mod run;

// Families that the GPU has, too, re-exported under the names of its modules.
pub(crate) use {
    indexing::gather,
    pointwise::{complex, copy, logic},
    product::matmul,
    reduce::{recurrence, scan, search, sort},
    rows::norm,
};
