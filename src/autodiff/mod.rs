//! The derivative machinery around the interpreters: tape entries, the backward walk, transforms,
//! checkpointing.

pub mod accumulate;
pub mod backward;
pub mod checkpoint;
pub mod hooks;
pub mod node;
pub mod saving;
pub mod transform;
