//! The tape: its nodes, their saved tensors, hooks and locations.

pub mod ancestors;
pub mod deferred_drop;
pub mod hooks;
pub mod host_ref;
pub mod location;
pub mod node;
pub mod saving;
