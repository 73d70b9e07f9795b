//! The default generator: a seed and a position in its stream. Every random tensor takes the next stretch of
//! it.
//!
//! The generator is counter-based (Philox4x32-10, Salmon et al. 2011), so a tensor's numbers depend on seed
//! and position alone: the same on every device, for any number of threads, and when a checkpoint runs its
//! region again.

use crate::autodiff::node::lock;
use std::cell::Cell;
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

/// The default stream, locked.
pub(crate) struct GeneratorLock(#[allow(dead_code)] std::sync::MutexGuard<'static, State>);

/// Locks the default stream.
pub(crate) fn lock_generator() -> GeneratorLock {
    GeneratorLock(lock(&GENERATOR))
}

/// Starts the default stream over with this seed.
pub fn manual_seed(seed: u64) {
    set_state(State { seed, offset: 0 });
}

thread_local! {
    /// While set, this thread draws from here instead: a recomputation repeats what its forward drew.
    static REPLAY: Cell<Option<State>> = const { Cell::new(None) };
}

/// The state of the stream that this thread draws from.
pub fn state() -> State {
    REPLAY.get().unwrap_or_else(|| *lock(&GENERATOR))
}

/// Puts the stream that this thread draws from at `state`.
pub fn set_state(state: State) {
    match REPLAY.get() {
        Some(_) => REPLAY.set(Some(state)),
        None => *lock(&GENERATOR) = state,
    }
}

/// Ends a replay when dropped.
pub struct Replay(Option<State>);

impl Drop for Replay {
    fn drop(&mut self) {
        REPLAY.set(self.0);
    }
}

/// Makes this thread draw from `state` on, without touching the default stream, until the guard is dropped.
#[must_use]
pub fn replay(state: State) -> Replay {
    Replay(REPLAY.replace(Some(state)))
}

/// Takes the next `counters` counters; returns where they start.
pub fn take(counters: u64) -> State {
    let advance = |s: State| State { offset: s.offset.wrapping_add(counters), ..s };
    if let Some(start) = REPLAY.get() {
        REPLAY.set(Some(advance(start)));
        return start;
    }
    let mut generator = lock(&GENERATOR);
    let start = *generator;
    *generator = advance(start);
    start
}
