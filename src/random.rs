//! The default generator: a seed and a position in its stream. Every random tensor takes the next stretch of it.
//!
//! The generator is counter-based (Philox4x32-10, Salmon et al. 2011), so a tensor's numbers depend on seed and position
//! alone: the same on every device, for any number of threads, and when a checkpoint runs its region again.

use crate::autodiff::node::lock;
use std::sync::Mutex;

/// Seed and position of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// The seed: the key of the generator.
    pub seed: u64,
    /// The next unused counter.
    pub offset: u64,
}

static GENERATOR: Mutex<State> = Mutex::new(State { seed: 0x5eed, offset: 0 });

/// Starts the default stream over with this seed.
pub fn manual_seed(seed: u64) {
    set_state(State { seed, offset: 0 });
}

/// The state of the default stream.
pub fn state() -> State {
    *lock(&GENERATOR)
}

/// Puts the default stream at `state`.
pub fn set_state(state: State) {
    *lock(&GENERATOR) = state;
}

/// Takes the next `counters` counters of the default stream; returns where they start.
pub fn take(counters: u64) -> State {
    let mut generator = lock(&GENERATOR);
    let start = *generator;
    generator.offset = generator.offset.wrapping_add(counters);
    start
}
