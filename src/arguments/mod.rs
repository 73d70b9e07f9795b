//! What the kernels of both devices are called with.

pub mod attention;
pub mod logic;
pub mod optim;
