//! How much host memory tensors hold. Each thread counts for itself, because adding to a counter that all
//! share costs as much as a small kernel; who asks for the total adds up.
//!
//! The total is exact whenever no other thread is just allocating. The peak is exact for one thread; with
//! several, what others hold counts in steps of [`STEP`].

use crate::process::sync::lock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A thread hands its count over to the total when it has moved by so many bytes.
const STEP: i64 = 1 << 20;

/// What one thread counts. It alone writes here, so that no addition has to be atomic.
#[derive(Default)]
pub(crate) struct Counts {
    /// Bytes of tensors made, less those freed, since the last time they were handed over.
    live: AtomicI64,
    /// The most that `live` has been since then.
    high: AtomicI64,
    /// Bytes of small blocks that the thread keeps for reuse.
    cached: AtomicI64,
    /// Small blocks that the thread has used again.
    reused: AtomicI64,
}

/// What all threads have handed over.
struct Total {
    live: i64,
    /// The most that tensors have held at once.
    peak: i64,
    /// Small blocks that threads which have ended used again.
    reused: i64,
    threads: Vec<Arc<Counts>>,
}

static TOTAL: Mutex<Total> = Mutex::new(Total { live: 0, peak: 0, reused: 0, threads: Vec::new() });

/// The counts, locked for a fork.
pub(crate) struct CountsLock(#[allow(dead_code)] MutexGuard<'static, Total>);

/// Locks the counts.
pub(crate) fn lock_counts() -> CountsLock {
    CountsLock(lock(&TOTAL))
}

impl Total {
    /// Bytes in tensors of all threads.
    fn live(&self) -> i64 {
        self.live + self.threads.iter().map(|counts| counts.live.load(Ordering::Relaxed)).sum::<i64>()
    }

    /// The most bytes that tensors can have held at once.
    fn peak(&self) -> i64 {
        let live = self.live();
        let above = |c: &Arc<Counts>| c.high.load(Ordering::Relaxed) - c.live.load(Ordering::Relaxed);
        let above = self.threads.iter().map(above).max().unwrap_or(0).max(0);
        self.peak.max(live + above)
    }
}

impl Counts {
    /// The counts of a new thread.
    pub(crate) fn register() -> Arc<Counts> {
        let counts = Arc::<Counts>::default();
        lock(&TOTAL).threads.push(counts.clone());
        counts
    }

    /// Counts memory of tensors, negative where it was freed.
    #[inline]
    pub(crate) fn add_live(&self, bytes: i64) {
        let live = self.live.load(Ordering::Relaxed) + bytes;
        self.live.store(live, Ordering::Relaxed);
        if live > self.high.load(Ordering::Relaxed) {
            self.high.store(live, Ordering::Relaxed);
        }
        if !(-STEP..STEP).contains(&live) {
            self.hand_over(&mut lock(&TOTAL));
        }
    }

    /// Counts memory of small blocks that are kept, negative where they are used again.
    #[inline]
    pub(crate) fn add_cached(&self, bytes: i64) {
        self.cached.store(self.cached.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    /// Counts a small block that is used again.
    #[inline]
    pub(crate) fn add_reused(&self, bytes: i64) {
        self.reused.store(self.reused.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.add_cached(-bytes);
    }

    #[cold]
    fn hand_over(&self, total: &mut Total) {
        total.peak = total.peak();
        total.live += self.live.swap(0, Ordering::Relaxed);
        self.high.store(0, Ordering::Relaxed);
    }

    /// The thread ends.
    pub(crate) fn retire(self: &Arc<Self>) {
        let mut total = lock(&TOTAL);
        self.hand_over(&mut total);
        total.reused += self.reused.load(Ordering::Relaxed);
        total.threads.retain(|counts| !Arc::ptr_eq(counts, self));
    }
}

/// Counts memory on a thread that is at its end and has no counts of its own any more.
#[cold]
pub(crate) fn add_without_thread(bytes: i64) {
    let mut total = lock(&TOTAL);
    total.live += bytes;
    total.peak = total.peak();
}

/// Bytes of small blocks that all threads keep for reuse.
pub(crate) fn small_cached() -> i64 {
    lock(&TOTAL).threads.iter().map(|counts| counts.cached.load(Ordering::Relaxed)).sum()
}

/// How many small blocks all threads have used again, since the start.
pub(crate) fn small_reused() -> i64 {
    let total = lock(&TOTAL);
    total.reused + total.threads.iter().map(|counts| counts.reused.load(Ordering::Relaxed)).sum::<i64>()
}

/// Bytes of host memory held by live tensors.
pub fn live_bytes() -> i64 {
    lock(&TOTAL).live()
}

/// The most bytes of host memory that live tensors have held at once, since the start or [`reset_peak`].
pub fn peak_bytes() -> i64 {
    lock(&TOTAL).peak()
}

/// Begins the search for the peak anew.
pub fn reset_peak() {
    let mut total = lock(&TOTAL);
    for counts in &total.threads {
        counts.high.store(counts.live.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    total.peak = total.live();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_that_of_the_sum() {
        let counts = Arc::<Counts>::default();
        let mut total = Total { live: 100, peak: 100, reused: 0, threads: vec![counts.clone()] };
        counts.add_live(50);
        counts.add_live(-30);
        assert_eq!((total.live(), total.peak()), (120, 150));
        counts.hand_over(&mut total);
        assert_eq!((total.live(), total.peak(), total.live), (120, 150, 120));
        counts.add_live(40);
        counts.add_live(-160);
        assert_eq!((total.live(), total.peak()), (0, 160));
    }
}
