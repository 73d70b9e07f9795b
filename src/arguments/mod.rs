//! Argument types shared by the kernels of both devices.

pub mod attention;
pub mod chain;
pub mod complex;
pub mod group;
pub mod linalg;
pub mod logic;
pub mod optim;
