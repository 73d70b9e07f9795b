//! The hosts of the shaders: they choose a variant, lay out its parameters and launch it.
//!
//! Each file mirrors the file of the same name in `src/cpu/`, function by function; `params` lays out shapes and strides.
pub mod copy;
pub mod gather;
mod int_expr;
pub mod map;
pub mod matmul;
pub mod norm;
mod params;
pub mod reduce;
#[cfg(test)]
mod tests;
