//! How often this process is the child of a fork, so that what belongs to the parent is told without asking
//! the system for the number of the process.

use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);

/// The forks between the process that first called [`count_forks`] and this one.
#[inline]
pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Counts forks from now on.
#[cfg(unix)]
pub fn count_forks() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler has the signature that `pthread_atfork` expects, is never unloaded, and only
        // adds to an atomic number.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Does nothing: other systems do not fork.
#[cfg(not(unix))]
pub fn count_forks() {}

#[cfg(unix)]
extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}
