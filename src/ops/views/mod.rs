//! Views and copies: operations that move elements and compute nothing.

pub mod bundle;
pub mod cast;
pub mod join;
pub mod region;
pub mod strided;
pub mod view;

use crate::array::Array;
use crate::error::Result;
use crate::interp::eval;
use crate::ops::pointwise::elementwise::Map;
use crate::watch::debug;

/// Adds `g` to a part of a sum of gradients that only its walk holds; true, as it was done.
fn add_to_part(part: &Array, g: &Array) -> Result<bool> {
    eval::run(&Map::ADD, &[part, g], &[part][..], debug::modes())?;
    Ok(true)
}
