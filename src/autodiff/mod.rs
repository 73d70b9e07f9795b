//! Automatic differentiation on top of the interpreters: the backward walk, transforms, checkpointing.

pub mod accumulate;
pub mod backward;
pub mod checkpoint;
pub mod cow;
pub mod finished;
pub mod functions;
pub mod levels;
pub mod linearize;
pub mod owned;
mod prelude;
pub mod queue;
pub mod running;
pub mod seeds;
pub mod transform;
