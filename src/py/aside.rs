//! Work without the interpreter lock.
//!
//! The garbage collector looks at the tape twice (`src/py/autograd/collect.rs`) and must find the same both
//! times. It runs under the lock, but code that gave the lock away goes on using the tape meanwhile; so such
//! code is counted, and while there is any the collector sees nothing.

use pyo3::marker::Ungil;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

static ASIDE: AtomicUsize = AtomicUsize::new(0);

/// Whether some thread works without the lock.
pub fn anyone() -> bool {
    ASIDE.load(Ordering::Acquire) != 0
}

/// The one way to give the lock away.
pub trait Aside {
    /// Runs `f` without the interpreter lock.
    fn aside<T: Ungil, F: Ungil + FnOnce() -> T>(self, f: F) -> T;
}

/// Counts this thread until it is dropped, which is after it got the lock back.
struct Count;

impl Drop for Count {
    fn drop(&mut self) {
        ASIDE.fetch_sub(1, Ordering::Release);
    }
}

impl Aside for Python<'_> {
    #[allow(clippy::disallowed_methods)] // this is what all others use instead
    fn aside<T: Ungil, F: Ungil + FnOnce() -> T>(self, f: F) -> T {
        ASIDE.fetch_add(1, Ordering::Acquire);
        let _count = Count;
        self.detach(f)
    }
}
