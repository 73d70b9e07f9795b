//! The tape: its nodes, what they save for backward, what hooks see, and where they were recorded.

pub mod grave;
pub mod held;
pub mod hooks;
pub mod location;
pub mod node;
pub mod saving;
