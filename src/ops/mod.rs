//! The operations, one family per file. Read next: `src/ops/pointwise/unary.rs`, a table of one-variable
//! calculus.

pub mod complex;
pub mod contract;
pub mod create;
pub mod custom;
pub mod fft;
pub mod indexing;
pub mod linalg;
pub mod nn;
pub mod pointwise;
mod prelude;
pub mod random;
pub mod reduce;
pub mod updates;
pub mod views;
pub mod writes;

/// Wraps a single output as the list of an operation's outputs.
macro_rules! one {
    ($out:expr) => {
        $out.map(|y| smallvec::smallvec![y])
    };
}
pub(crate) use one;
