//! The derivative machinery around the interpreters: tape entries, the backward walk, transforms,
//! checkpointing.

pub mod accumulate;
pub mod anomaly;
pub mod backward;
pub mod checkpoint;
pub mod cow;
pub mod debug;
pub mod finished;
pub mod grave;
pub mod held;
pub mod hooks;
pub mod lanes;
pub mod linearize;
pub mod node;
pub mod owned;
pub mod place;
pub mod queue;
pub mod running;
pub mod saving;
pub mod seeds;
pub mod transform;
