//! The tape: its nodes, what they save for backward, what hooks see, and where they were recorded.

pub mod deferred_drop;
pub mod hooks;
pub mod host_ref;
pub mod location;
pub mod node;
pub mod saving;
