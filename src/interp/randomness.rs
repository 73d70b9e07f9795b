//! What drawing random numbers means inside of batches.

use super::{Interp, Kind, current};
use smallvec::SmallVec;
use std::sync::Arc;

/// What drawing random numbers means inside a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Randomness {
    /// It is an error: nothing says whether the examples should share them.
    Error,
    /// All examples get the same numbers.
    Same,
    /// Each example gets numbers of its own.
    Different,
}

impl Randomness {
    /// The one of this name, or that which is an error.
    pub fn named(name: &str) -> Randomness {
        let named = |randomness: &Randomness| randomness.name() == name;
        [Randomness::Same, Randomness::Different].into_iter().find(named).unwrap_or(Randomness::Error)
    }

    /// The name that users give it.
    pub fn name(self) -> &'static str {
        match self {
            Randomness::Error => "error",
            Randomness::Same => "same",
            Randomness::Different => "different",
        }
    }
}

/// The batches that this thread is in, innermost first, with what random numbers mean in each.
pub fn batches() -> SmallVec<[(Arc<Interp>, usize, Randomness); 2]> {
    let batch = |at: &Arc<Interp>| match at.kind {
        Kind::Batch { size, randomness } => Some((at.clone(), size, randomness)),
        _ => None,
    };
    current().chain().filter_map(batch).collect()
}
