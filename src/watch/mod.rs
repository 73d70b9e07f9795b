//! Debugging tools: the log of what is recorded, anomaly detection, the count of floating point operations,
//! scripts and programs.

pub mod absent;
pub mod anomaly;
pub mod cost;
pub mod debug;
pub mod program;
pub mod script;
