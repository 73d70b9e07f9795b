//! Elementwise kernels over strided arrays: maps by a rule, copies, casts.

pub(crate) mod cast;
pub mod complex;
pub mod copy;
pub mod cross;
pub(crate) mod drive;
pub mod fused;
pub(crate) mod half_float;
pub(crate) mod integer;
pub(crate) mod layout;
pub mod logic;
pub mod map;
pub(crate) mod narrow;
pub mod neighbour;
pub mod vector;
