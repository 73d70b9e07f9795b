//! CPU kernels: loops over slices that know no operation by name and nothing of differentiation.
//!
//! Every function takes arrays with any strides and returns a fresh contiguous array. Reading order:
//! `run/isa.rs` (which instructions a loop is compiled for), `run/threads.rs` (how it is split),
//! `pointwise/drive.rs` (how strided operands reach it), then the families.

pub mod attention;
pub mod conv;
pub mod create;
pub mod fft;
pub mod indexing;
pub mod linalg;
pub mod optim;
pub mod pointwise;
pub mod product;
pub mod random;
pub mod reduce;
pub mod rows;
pub mod run;

// The families that a GPU has, too, by the names that it has for them.
pub(crate) use {
    indexing::gather,
    pointwise::{copy, logic},
    product::matmul,
    reduce::{recurrence, scan},
    rows::norm,
};
