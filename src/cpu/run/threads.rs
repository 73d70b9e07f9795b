//! The library's own thread pool, built lazily, and a parallel loop over a range.
//!
//! A kernel's result never depends on the split: every chunk writes its own output, and a reduction combines
//! chunks whose bounds come from the shape alone. A forked child finds its parent's threads dead, so teams
//! are keyed by process. Their list has no locks, because a lock held by another thread during a fork would
//! never be released in the child. Read next: `src/cpu/run/team.rs`, how threads wait for work.

use super::team::Team;
use crate::error::Result;
use crate::process::on_drop::OnDrop;
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Number of elements of simple work (one addition each) that are worth one chunk of a parallel loop.
pub const GRAIN: usize = 32 * 1024;

/// Chunks per thread: more than one, so that a delayed thread does not delay the others.
const PIECES: usize = 4;

/// The teams of this process and those that a forked child inherited, newest first.
static TEAMS: AtomicPtr<Team> = AtomicPtr::new(std::ptr::null_mut());
/// The requested number of threads; 0 until it is first needed.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether this thread is inside a parallel loop: a nested loop runs serially.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Returns how many threads a kernel may use: by default `WENGERT_NUM_THREADS` or the number of cores.
pub fn num_threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let asked =
                std::env::var("WENGERT_NUM_THREADS").ok().and_then(|v| v.parse().ok()).filter(|&n| n > 0);
            let n = asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
            set_num_threads(n);
            n
        }
        n => n,
    }
}

/// Sets how many threads a kernel may use; 0 counts as 1. Results do not change.
pub fn set_num_threads(threads: usize) {
    THREADS.store(threads.clamp(1, 1024), Ordering::Relaxed);
}

/// Returns this process's team of `threads` threads, including the caller, or `None` if none can be built.
fn team(threads: usize) -> Option<&'static Team> {
    let process = std::process::id();
    let mut head = TEAMS.load(Ordering::Acquire);
    let mut at = head;
    while !at.is_null() {
        // SAFETY: teams in the list are leaked and never freed.
        let team = unsafe { &*at };
        if team.process == process && team.threads == threads {
            return Some(team);
        }
        at = team.next.load(Ordering::Relaxed);
    }
    let made = Team::build(process, threads)?;
    loop {
        made.next.store(head, Ordering::Relaxed);
        let new = std::ptr::from_ref(made).cast_mut();
        match TEAMS.compare_exchange(head, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(made),
            Err(now) => head = now,
        }
    }
}

/// Calls `body` on disjoint ranges that cover `0..items`, on several threads for at least two grains.
///
/// Every range starts at a multiple of `grain`, and all but the last have a multiple of it as length.
pub fn parallel_for(items: usize, grain: usize, body: impl Fn(Range<usize>) + Sync) {
    let grain = grain.max(1);
    if items == 0 {
        return;
    }
    if items < 2 * grain || INSIDE.get() {
        return body(0..items);
    }
    let threads = num_threads();
    match if threads > 1 { team(threads) } else { None } {
        Some(team) => split(team, threads.min(items.div_ceil(grain)), items, grain, &body),
        None => body(0..items),
    }
}

/// [`parallel_for`] with a body that may fail, e.g. for lack of memory; one of the errors is returned.
pub fn try_parallel_for(
    items: usize, grain: usize, body: impl Fn(Range<usize>) -> Result<()> + Sync,
) -> Result<()> {
    let failed = Mutex::new(None);
    parallel_for(items, grain, |range| {
        if let Err(error) = body(range) {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// The parallel part of [`parallel_for`]: `threads` threads, with the caller, take chunks from a counter.
fn split(team: &Team, threads: usize, items: usize, grain: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
    let piece = items.div_ceil(threads * PIECES).div_ceil(grain) * grain;
    let next = AtomicUsize::new(0);
    let work = || {
        INSIDE.set(true);
        // Even if a chunk panics.
        let _entered = OnDrop(|| INSIDE.set(false));
        loop {
            let start = next.fetch_add(piece, Ordering::Relaxed);
            if start >= items {
                return;
            }
            body(start..items.min(start + piece));
        }
    };
    if !team.run(threads - 1, &work) {
        body(0..items);
    }
}

/// A pointer that a parallel loop shares with its chunks, which write disjoint parts of the target.
pub struct Shared<T>(*mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}

// SAFETY: the code that dereferences the pointer guarantees disjoint writes.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Wraps `pointer`.
    pub fn new(pointer: *mut T) -> Shared<T> {
        Shared(pointer)
    }

    /// Returns the pointer.
    #[inline(always)]
    pub fn get(self) -> *mut T {
        self.0
    }

    /// Returns the `length` elements from `start` on.
    ///
    /// # Safety
    /// They exist, and nothing else accesses them meanwhile.
    #[inline(always)]
    pub unsafe fn part<'a>(self, start: usize, length: usize) -> &'a mut [T] {
        // SAFETY: guaranteed by the caller.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), length) }
    }

    /// Returns the `length` elements from `start` on, read-only.
    ///
    /// # Safety
    /// They exist, and nothing writes them meanwhile.
    #[inline(always)]
    pub unsafe fn view<'a>(self, start: usize, length: usize) -> &'a [T] {
        // SAFETY: guaranteed by the caller.
        unsafe { std::slice::from_raw_parts(self.0.add(start), length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_everything_once() {
        for (items, grain) in [(0, 1), (1, 1), (7, 2), (100, 7), (1000, 1), (5, 100)] {
            let seen = Mutex::new(vec![0u8; items]);
            parallel_for(items, grain, |range| {
                assert!(range.start % grain == 0);
                if range.len() < items {
                    parallel_for(3, 1, |inner| assert_eq!(inner, 0..3, "serial inside"));
                }
                let mut seen = seen.lock().unwrap_or_else(|e| e.into_inner());
                range.for_each(|i| seen[i] += 1);
            });
            assert!(seen.into_inner().unwrap_or_default().iter().all(|&n| n == 1), "{items} {grain}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_forked_child_builds_its_own_team() {
        let total = || {
            let sum = AtomicUsize::new(0);
            set_num_threads(3);
            parallel_for(1000, 1, |range| {
                sum.fetch_add(range.sum::<usize>(), Ordering::Relaxed);
            });
            sum.into_inner()
        };
        assert_eq!(total(), 499_500);
        // SAFETY: the child runs a loop and leaves without destructors; should it hang, the alarm ends it.
        let status = unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(20);
                libc::_exit(if total() == 499_500 { 7 } else { 1 });
            }
            let mut status = 0;
            libc::waitpid(child, &mut status, 0);
            status
        };
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status}");
    }
}
