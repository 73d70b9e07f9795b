//! Fused operations of neural networks: normalisation, losses, attention.

pub mod attention;
pub mod loss;
pub mod norm;
