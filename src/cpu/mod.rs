//! CPU kernels: loops over slices that know no operation by name and nothing of differentiation.
//!
//! Every function takes arrays with any strides and returns a fresh contiguous array.
//! Reading order: `isa.rs` (which instructions a loop is compiled for), `threads.rs` (how it is split),
//! `drive.rs` (how strided operands reach it), then the families.
pub mod attention;
pub mod axis;
mod cast;
pub mod complex;
pub mod conv;
pub mod copy;
pub mod create;
mod cross_entropy;
mod drive;
pub mod epilogue;
pub mod fft;
mod fold;
pub mod gather;
mod half_float;
mod integer;
pub mod isa;
pub mod lane;
mod layer_norm;
mod layout;
pub mod linalg;
mod lines;
pub mod logic;
mod many;
pub mod map;
pub mod matmul;
mod narrow;
pub mod neighbour;
pub mod norm;
pub mod optim;
mod product;
pub mod put;
pub mod random;
pub mod recurrence;
pub mod reduce;
mod registers;
mod rows;
pub mod scan;
pub mod search;
pub mod sort;
mod stream;
mod sweep;
mod team;
#[cfg(test)]
mod testing;
pub mod threads;
pub mod truth;
pub mod vector;
