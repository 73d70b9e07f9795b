//! Locks.

use std::sync::{Mutex, MutexGuard};

/// Locks a mutex that no panic can have left half-changed.
#[inline]
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
