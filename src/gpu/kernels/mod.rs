//! The hosts of the shaders: they choose a variant, lay out its parameters and launch it.
//!
//! Each file mirrors the file of the same name in `src/cpu/`, function by function.
pub mod copy;
pub mod params;
