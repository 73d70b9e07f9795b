//! Counters of the host memory that tensors hold. Each thread counts for itself, because adding to a shared
//! counter costs as much as a small kernel; reading the total adds them up.
//!
//! The total is exact while no other thread allocates. The peak is exact for one thread; with several, the
//! peaks of the others are resolved in steps of [`STEP`].

use crate::process::sync::lock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A thread adds its count to the total whenever it has changed by this many bytes.
const STEP: i64 = 1 << 20;

/// The counters of one thread, its only writer: additions are a load and a store, not atomic adds.
#[derive(Default)]
pub(crate) struct Counts {
    /// Bytes of tensors allocated less those freed, since the last hand-over to the total.
    live: AtomicI64,
    /// The maximum of `live` since then.
    high: AtomicI64,
    /// Bytes of small blocks in the thread's free lists.
    cached: AtomicI64,
    /// Number of allocations served from these lists.
    reused: AtomicI64,
}

/// The counts that threads have handed over.
struct Total {
    live: i64,
    /// The most bytes that tensors have held at once.
    peak: i64,
    /// `Counts::reused` of the threads that have ended.
    reused: i64,
    threads: Vec<Arc<Counts>>,
}

static TOTAL: Mutex<Total> = Mutex::new(Total { live: 0, peak: 0, reused: 0, threads: Vec::new() });

/// Guard of the locked counts, held during a fork.
pub(crate) struct CountsLock(#[allow(dead_code)] MutexGuard<'static, Total>);

/// Locks the counts for a fork.
pub(crate) fn lock_counts() -> CountsLock {
    CountsLock(lock(&TOTAL))
}

impl Total {
    fn live(&self) -> i64 {
        self.live + self.threads.iter().map(|counts| counts.live.load(Ordering::Relaxed)).sum::<i64>()
    }

    /// The peak including the counts not yet handed over, as if the thread furthest below its own maximum had
    /// reached it while the others held what they hold at present.
    fn peak(&self) -> i64 {
        let live = self.live();
        let above = |c: &Arc<Counts>| c.high.load(Ordering::Relaxed) - c.live.load(Ordering::Relaxed);
        let above = self.threads.iter().map(above).max().unwrap_or(0).max(0);
        self.peak.max(live + above)
    }
}

impl Counts {
    /// Registers the counts of a new thread.
    pub(crate) fn register() -> Arc<Counts> {
        let counts = Arc::<Counts>::default();
        lock(&TOTAL).threads.push(counts.clone());
        counts
    }

    /// Adds bytes of tensors, negative when freed.
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

    /// Adds bytes of cached small blocks, negative when they leave the cache.
    #[inline]
    pub(crate) fn add_cached(&self, bytes: i64) {
        self.cached.store(self.cached.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    /// Counts an allocation served from the thread's free lists.
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

    /// Hands the counts over at the end of the thread.
    pub(crate) fn retire(self: &Arc<Self>) {
        let mut total = lock(&TOTAL);
        self.hand_over(&mut total);
        total.reused += self.reused.load(Ordering::Relaxed);
        total.threads.retain(|counts| !Arc::ptr_eq(counts, self));
    }
}

/// Adds bytes of tensors on a thread whose counts are already destroyed.
#[cold]
pub(crate) fn add_without_thread(bytes: i64) {
    let mut total = lock(&TOTAL);
    total.live += bytes;
    total.peak = total.peak();
}

/// Bytes of cached small blocks, over all threads.
pub(crate) fn small_cached() -> i64 {
    lock(&TOTAL).threads.iter().map(|counts| counts.cached.load(Ordering::Relaxed)).sum()
}

/// Number of allocations served from cached small blocks, over all threads, since the start.
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

/// Resets the peak to the bytes held at present.
pub fn reset_peak() {
    let mut total = lock(&TOTAL);
    for counts in &total.threads {
        counts.high.store(counts.live.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    total.peak = total.live();
}

/// Sets the peak to one that was known before [`reset_peak`], if nothing since was higher.
pub fn restore_peak(peak: i64) {
    let mut total = lock(&TOTAL);
    total.peak = total.peak().max(peak);
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
