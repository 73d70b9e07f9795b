//! The team of threads under loom, which runs a model once for every order of its events: no job is read
//! after its caller has gone on, no part of a loop is lost, and nobody waits for ever.
#![cfg(test)]

/// Loom's primitives under the names of `src/cpu/run/primitives.rs`.
mod primitives {
    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};
    pub use loom::thread::{Builder, Thread, park, yield_now};

    /// See there.
    pub const POLLS: usize = 1;
    /// See there.
    pub const TURNS: usize = 0;

    pub struct Patience;

    impl Patience {
        pub fn new() -> Patience {
            Patience
        }

        pub fn is_over(&self) -> bool {
            true
        }
    }
}

#[allow(dead_code)]
#[path = "../../../src/cpu/run/team.rs"]
mod team;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use team::Team;

/// Runs `caller`, which runs `loops` loops, beside helpers. A last loop ends when all of them have joined:
/// one that was not woken would let it wait for ever.
fn model(helpers: usize, loops: u64, preemptions: usize, caller: fn(&Team)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        let team = Arc::new(Team::new(0, helpers + 1));
        let threads: Vec<_> = (0..helpers)
            .map(|i| {
                let served = team.clone();
                let handle = thread::spawn(move || {
                    let mut last = 0;
                    while last != loops + 1 {
                        last = served.serve(i, last);
                    }
                });
                team.enrol(i, handle.thread().clone());
                handle
            })
            .collect();
        caller(&team);
        let (joined, here) = (AtomicUsize::new(0), thread::current().id());
        team.run(helpers, &|| {
            if thread::current().id() != here {
                joined.fetch_add(1, Ordering::Release);
                return;
            }
            while joined.load(Ordering::Acquire) < helpers {
                thread::yield_now();
            }
        });
        for thread in threads {
            thread.join().expect("a helper panicked");
        }
    });
}

/// A loop over `parts`, each of which writes its own cell.
fn each_part_once(team: &Team, helpers: usize, parts: usize) {
    struct Cells(Vec<UnsafeCell<usize>>);
    // SAFETY: every cell is written by the one that took its number; loom checks it.
    unsafe impl Sync for Cells {}
    let (cells, next) = (Cells((0..parts).map(|_| UnsafeCell::new(0)).collect()), AtomicUsize::new(0));
    let cells = &cells;
    let ran = team.run(helpers, &|| {
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            let Some(cell) = cells.0.get(part) else { break };
            // SAFETY: as above.
            cell.with_mut(|value| unsafe { *value += 1 });
        }
    });
    assert!(ran);
    for cell in &cells.0 {
        // SAFETY: the loop is over.
        assert_eq!(cell.with(|value| unsafe { *value }), 1);
    }
}

#[test]
fn one_helper_two_loops() {
    model(1, 2, 2, |team| {
        each_part_once(team, 1, 2);
        each_part_once(team, 1, 1);
    });
}

#[test]
fn two_helpers_wake() {
    model(2, 0, 2, |_| {});
}

#[test]
fn two_helpers_one_loop() {
    model(2, 1, 1, |team| each_part_once(team, 2, 2));
}

#[test]
fn a_busy_team_says_so() {
    model(1, 1, 2, |team| assert!(team.run(1, &|| assert!(!team.run(1, &|| {})))));
}
