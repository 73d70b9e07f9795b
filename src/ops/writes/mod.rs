//! Writing into memory that may be shared or on a tape.

pub mod alone;
pub mod history;
pub mod inplace;
pub mod rows;
pub mod writable;
