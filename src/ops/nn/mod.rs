//! Fused operations of neural networks: normalisation, losses, attention, recurrent cells.

pub mod attention;
pub mod cell;
pub mod loss;
pub mod norm;
pub mod recurrent;
