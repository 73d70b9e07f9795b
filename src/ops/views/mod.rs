//! Views and copies: operations that move elements and compute nothing.

pub mod bundle;
pub mod cast;
pub mod join;
pub mod region;
pub mod strided;
pub mod view;
