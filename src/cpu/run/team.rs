//! A team of helper threads that serves one caller at a time.
//!
//! Loops over tensors come in quick succession, so a helper that has finished polls for the next loop before
//! it sleeps: waking a thread costs more than a small loop. A helper that wakes too late finds the loop
//! closed and does not join, so the caller never waits for a helper that has not begun, which may take
//! milliseconds on a busy machine.

use super::primitives::{
    AtomicBool, AtomicPtr, AtomicU64, Builder, Ordering, POLLS, Patience, TURNS, Thread, fence, park,
    spin_loop, yield_now,
};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, OnceLock};

/// The bit of `state` that says whether helpers may still join the loop. The bits below it count the helpers
/// that joined, the bits above it are the number of the loop.
const OPEN: u64 = 1 << 31;
const JOINED: u64 = OPEN - 1;

/// One loop; it lives on the caller's stack.
struct TeamLoop<'a> {
    work: &'a (dyn Fn() + Sync),
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// A helper, as seen by the caller.
struct Helper {
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

/// The helpers of one process; never freed.
pub struct Team {
    /// The process that built the team: its threads do not exist in a forked child.
    pub process: u32,
    /// Number of threads, including the caller.
    pub threads: usize,
    /// The next team in the list of all teams.
    pub next: AtomicPtr<Team>,
    busy: AtomicBool,
    state: AtomicU64,
    job: AtomicPtr<TeamLoop<'static>>,
    helpers: Vec<Helper>,
}

impl Team {
    /// Builds a team of `threads` threads, including the caller; `None` if a thread cannot be spawned.
    pub fn build(process: u32, threads: usize) -> Option<&'static Team> {
        let team: &'static Team = Box::leak(Box::new(Team::new(process, threads)));
        for i in 0..team.helpers.len() {
            let builder = Builder::new().name(format!("wengert-{i}"));
            let handle = builder.spawn(move || team.help(i)).ok()?;
            team.enrol(i, handle.thread().clone());
        }
        Some(team)
    }

    /// A team whose helpers have no threads yet.
    pub fn new(process: u32, threads: usize) -> Team {
        let helper = |_| Helper { asleep: AtomicBool::new(false), thread: OnceLock::new() };
        Team {
            process,
            threads,
            next: AtomicPtr::new(std::ptr::null_mut()),
            busy: AtomicBool::new(false),
            state: AtomicU64::new(0),
            job: AtomicPtr::new(std::ptr::null_mut()),
            helpers: (1..threads).map(helper).collect(),
        }
    }

    /// Tells the team which thread helper `i` is.
    pub fn enrol(&self, i: usize, thread: Thread) {
        let _ = self.helpers[i].thread.set(thread);
    }

    /// Calls `work` on the caller and on up to `helpers` other threads; returns when all that began are done.
    /// Returns `false`, without a call, if the team is busy with another loop.
    pub fn run(&self, helpers: usize, work: &(dyn Fn() + Sync)) -> bool {
        if self.busy.swap(true, Ordering::Acquire) {
            return false;
        }
        let job = TeamLoop { work, panic: Mutex::new(None) };
        self.job.store((&raw const job).cast_mut().cast(), Ordering::Relaxed);
        let number = (self.state.load(Ordering::Relaxed) >> 32).wrapping_add(1) << 32;
        self.state.store(number | OPEN, Ordering::Release);
        // Either a helper that is about to sleep sees the loop, or this thread sees that it sleeps.
        fence(Ordering::SeqCst);
        for helper in self.helpers.iter().take(helpers) {
            if helper.asleep.load(Ordering::Relaxed) && helper.asleep.swap(false, Ordering::Relaxed) {
                helper.thread.get().inspect(|thread| thread.unpark());
            }
        }
        let closing = Closing(self);
        work();
        drop(closing);
        if let Some(panic) = job.panic.into_inner().unwrap_or_else(|e| e.into_inner()) {
            resume_unwind(panic);
        }
        true
    }

    /// The thread of helper `i`.
    fn help(&self, i: usize) {
        let mut last = 0;
        loop {
            last = self.serve(i, last);
        }
    }

    /// Waits for a loop with a number other than `last`, and joins it unless it was closed meanwhile; returns
    /// the number of the loop that is done with.
    pub fn serve(&self, i: usize, last: u64) -> u64 {
        let open = self.wait(&self.helpers[i], last);
        let number = open >> 32;
        if self.state.compare_exchange(open, open + 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            // Another helper joined, which changes the state, or the loop is closed: check again.
            return number.wrapping_sub(1);
        }
        // SAFETY: `Closing` keeps the caller, and so the job, until all helpers that joined have left.
        let job = unsafe { &*self.job.load(Ordering::Relaxed) };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(job.work)) {
            *job.panic.lock().unwrap_or_else(|e| e.into_inner()) = Some(panic);
        }
        self.state.fetch_sub(1, Ordering::Release);
        number
    }

    /// Waits for an open loop with a number other than `last`; returns the state.
    fn wait(&self, me: &Helper, last: u64) -> u64 {
        let fresh = || Some(self.state.load(Ordering::Acquire)).filter(|&s| s & OPEN != 0 && s >> 32 != last);
        let mut since = None;
        loop {
            for _ in 0..POLLS {
                if let Some(state) = fresh() {
                    return state;
                }
                spin_loop();
            }
            if !since.get_or_insert_with(Patience::new).is_over() {
                continue;
            }
            me.asleep.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            while me.asleep.load(Ordering::Relaxed) && fresh().is_none() {
                park();
            }
            me.asleep.store(false, Ordering::Relaxed);
            since = None;
        }
    }
}

/// A guard that closes the loop and waits for the helpers that joined, even if the caller's `work` panics.
struct Closing<'a>(&'a Team);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let state = &self.0.state;
        state.fetch_and(!OPEN, Ordering::AcqRel);
        let mut turns = 0;
        while state.load(Ordering::Acquire) & JOINED != 0 {
            turns += 1;
            if turns < TURNS { spin_loop() } else { yield_now() }
        }
        self.0.busy.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    #[test]
    fn helpers_come_and_go() {
        let team = Team::build(0, 4);
        assert!(team.is_some());
        let Some(team) = team else { return };
        for round in 0..3000 {
            let (pieces, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let ran = team.run(3, &|| {
                while pieces.fetch_add(1, Ordering::Relaxed) < 10 {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
            assert!(ran && done.into_inner() == 10);
            if round % 1000 == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }

    #[test]
    fn a_busy_team_says_so_and_a_panic_arrives() {
        let Some(team) = Team::build(0, 2) else { return };
        assert!(team.run(1, &|| assert!(!team.run(1, &|| {}))));
        let here = std::thread::current().id();
        let alarm = AtomicBool::new(false);
        let result = catch_unwind(AssertUnwindSafe(|| {
            team.run(1, &|| match std::thread::current().id() == here {
                true => {
                    while !alarm.load(Ordering::Acquire) {
                        std::hint::spin_loop()
                    }
                }
                false => {
                    alarm.store(true, Ordering::Release);
                    resume_unwind(Box::new("from a helper"));
                }
            })
        }));
        assert_eq!(result.err().and_then(|e| e.downcast_ref::<&str>().copied()), Some("from a helper"));
        assert!(team.run(1, &|| {}), "the team works on");
    }
}
