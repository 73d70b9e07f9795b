//! Elements that an index names: picked, added back, assigned.

pub mod index;
pub mod indexing;
