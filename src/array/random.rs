//! The default generator: a seed and a position in its stream. Every random tensor takes the next counters.
//! The first seed comes from the system; [`manual_seed`] makes a program reproducible.
//!
//! The generator is counter-based (Philox4x32-10, Salmon et al. 2011), so a tensor's numbers depend on seed
//! and position alone: the same on every device, for any number of threads, and in a checkpoint's rerun.

use crate::process::on_drop::OnDrop;
use crate::process::sync::lock;
use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Mutex, MutexGuard};
use std::time::SystemTime;

/// Seed and position of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// The seed: the key of the generator.
    pub seed: u64,
    /// The next unused counter.
    pub offset: u64,
}

/// The default stream; its state is `None` until first use.
struct Stream {
    state: Option<State>,
    /// Whether the program, not the system, chose the seed.
    chosen: bool,
}

static GENERATOR: Mutex<Stream> = Mutex::new(Stream { state: None, chosen: false });

impl Stream {
    /// Returns the state, seeded from the system on first use.
    fn state(&mut self) -> &mut State {
        self.state.get_or_insert_with(|| State { seed: system_seed(), offset: 0 })
    }
}

/// Returns a seed unique to this process and call: the standard library's random keys, mixed with the process
/// id (a forked child inherits the keys) and the time.
fn system_seed() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.write_u128(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_nanos()));
    hasher.finish()
}

/// Guard of the locked default stream.
pub(crate) struct GeneratorLock(MutexGuard<'static, Stream>);

impl GeneratorLock {
    /// Called in a forked child: drops a seed that the system chose; one that the program chose stays.
    pub(crate) fn forked(&mut self) {
        if !self.0.chosen {
            self.0.state = None;
        }
    }
}

/// Locks the default stream.
pub(crate) fn lock_generator() -> GeneratorLock {
    GeneratorLock(lock(&GENERATOR))
}

/// Restarts the stream that this thread draws from with this seed.
pub fn manual_seed(seed: u64) {
    set_state(State { seed, offset: 0 });
}

/// Restarts the stream that this thread draws from with a seed from the system, and returns the seed.
pub fn seed() -> u64 {
    let seed = system_seed();
    manual_seed(seed);
    if REPLAY.get().is_none() {
        lock(&GENERATOR).chosen = false;
    }
    seed
}

thread_local! {
    /// While set, this thread draws from here instead, so that a recomputation repeats its forward's numbers.
    static REPLAY: Cell<Option<State>> = const { Cell::new(None) };
}

/// The state of the stream that this thread draws from.
pub fn state() -> State {
    REPLAY.get().unwrap_or_else(|| *lock(&GENERATOR).state())
}

/// Sets the state of the stream that this thread draws from.
pub fn set_state(state: State) {
    match REPLAY.get() {
        Some(_) => REPLAY.set(Some(state)),
        None => *lock(&GENERATOR) = Stream { state: Some(state), chosen: true },
    }
}

/// Makes this thread draw from `state`, leaving the default stream untouched, until the guard is dropped.
pub fn replay(state: State) -> OnDrop<impl FnMut()> {
    let before = REPLAY.replace(Some(state));
    OnDrop(move || REPLAY.set(before))
}

/// Takes the next `counters` counters and returns the state where they start.
pub fn take(counters: u64) -> State {
    let advance = |s: State| State { offset: s.offset.wrapping_add(counters), ..s };
    if let Some(start) = REPLAY.get() {
        REPLAY.set(Some(advance(start)));
        return start;
    }
    let mut generator = lock(&GENERATOR);
    let state = generator.state();
    let start = *state;
    *state = advance(start);
    start
}
