//! What the team waits and signals with. `tests/loom` puts loom's in its place, to explore all orders.

pub use std::hint::spin_loop;
pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};
pub use std::thread::{Builder, Thread, park, yield_now};

/// How often a helper polls between two looks at the clock.
pub const POLLS: usize = 64;
/// How often the caller polls for helpers to leave before it lets other threads run.
pub const TURNS: usize = 4096;

/// How long a helper polls for the next loop before it sleeps.
pub struct Patience(std::time::Instant);

impl Patience {
    /// Begins.
    pub fn new() -> Patience {
        Patience(std::time::Instant::now())
    }

    /// Whether it is time to sleep.
    pub fn is_over(&self) -> bool {
        self.0.elapsed() >= std::time::Duration::from_micros(50)
    }
}
