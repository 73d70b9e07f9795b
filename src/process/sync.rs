//! Locking without poison.

use std::sync::{Mutex, MutexGuard};

/// Locks a mutex and ignores poison: no panic can leave the data half-changed.
#[inline]
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
