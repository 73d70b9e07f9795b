//! Tools that watch a program: the log of debugging, the search for values that are not finite, counted
//! work.

pub mod anomaly;
pub mod cost;
pub mod debug;
