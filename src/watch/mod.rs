//! Debugging tools: the log of what is recorded, anomaly detection, the count of floating point operations,
//! scripts.

pub mod anomaly;
pub mod cost;
pub mod debug;
pub mod script;
