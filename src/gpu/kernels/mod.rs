//! The hosts of the shaders: they choose a variant, lay out its parameters and launch it.
//!
//! Each file mirrors the file of the same name in `src/cpu/`, function by function; `params` lays out shapes and strides.
pub mod copy;
mod int_expr;
pub mod map;
mod params;
#[cfg(test)]
mod tests;
