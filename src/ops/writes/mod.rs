//! In-place writes to memory that may be shared or recorded on a tape.

pub mod alone;
pub mod combine;
pub mod donated;
pub mod history;
pub mod inplace;
pub mod rows;
pub mod writable;
