//! The default generator: a seed and a position in its stream. Every random tensor takes the next counters.
//! The first seed comes from the system; [`manual_seed`] makes a program reproducible. A program may have
//! streams of its own beside it ([`draw_from`]).
//!
//! The generator is counter-based (Philox4x32-10, Salmon et al. 2011), so a tensor's numbers depend on seed
//! and position alone: the same on every device, for any number of threads, and in a checkpoint's rerun.

use crate::error::{Error, Result};
use crate::process::on_drop::OnDrop;
use crate::process::sync::lock;
use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};
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
pub fn system_seed() -> u64 {
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
    if is_default() {
        lock(&GENERATOR).chosen = false;
    }
    seed
}

/// A stream of a program's own, which several threads may share.
pub type Own = Arc<Mutex<State>>;

/// What a thread draws from instead of the default stream.
enum Source {
    /// A copy of a stream's state, so that a recomputation repeats the numbers of its forward pass.
    Replay(State),
    /// A stream of the program's own.
    Own(Own),
}

thread_local! {
    static SOURCE: RefCell<Option<Source>> = const { RefCell::new(None) };
}

/// Does something with the state of the stream that this thread draws from.
fn with_state<T>(f: impl FnOnce(&mut State) -> T) -> T {
    SOURCE.with_borrow_mut(|source| match source {
        Some(Source::Replay(state)) => f(state),
        Some(Source::Own(own)) => f(&mut lock(own)),
        None => f(lock(&GENERATOR).state()),
    })
}

/// The state of the stream that this thread draws from.
pub fn state() -> State {
    with_state(|state| *state)
}

/// Sets the state of the stream that this thread draws from.
pub fn set_state(state: State) {
    with_state(|old| *old = state);
    if is_default() {
        lock(&GENERATOR).chosen = true;
    }
}

/// Gives the counters back that [`take`] took from `start` on, unless others were taken or set since.
pub fn give_back(start: State, counters: u64) {
    with_state(|state| {
        if state.seed == start.seed && state.offset == start.offset.wrapping_add(counters) {
            *state = start;
        }
    });
}

/// Whether this thread draws from the default stream.
fn is_default() -> bool {
    SOURCE.with_borrow(Option::is_none)
}

/// Makes this thread draw from `source` until the guard is dropped.
fn redirect(source: Source) -> OnDrop<impl FnMut()> {
    let mut before = SOURCE.replace(Some(source));
    OnDrop(move || drop(SOURCE.replace(before.take())))
}

/// Makes this thread draw from `state`, leaving the default stream untouched, until the guard is dropped.
pub fn replay(state: State) -> OnDrop<impl FnMut()> {
    redirect(Source::Replay(state))
}

/// Makes this thread draw from a stream of the program's own, if there is one, until the guard is dropped.
///
/// # Errors
/// One in a recomputation, which could not repeat the numbers of its forward pass.
pub fn draw_from(own: Option<&Own>) -> Result<Option<OnDrop<impl FnMut()>>> {
    let Some(own) = own else { return Ok(None) };
    if SOURCE.with_borrow(|source| matches!(source, Some(Source::Replay(_)))) {
        return Err(Error::autodiff(
            "generator: a checkpoint runs its function again, where a Generator would give other numbers \
             than before; draw them outside of it, or from the default stream, which is repeated",
        ));
    }
    Ok(Some(redirect(Source::Own(own.clone()))))
}

/// Takes the next `counters` counters and returns the state where they start.
pub fn take(counters: u64) -> State {
    with_state(|state| {
        let start = *state;
        state.offset = state.offset.wrapping_add(counters);
        start
    })
}
