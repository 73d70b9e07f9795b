//! Interns names as `&'static str`, as the names of operations are.

use crate::process::sync::lock;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

type Names = BTreeSet<&'static str>;

static NAMES: Mutex<Names> = Mutex::new(BTreeSet::new());

/// Guard of the locked names, held during a fork.
pub(crate) struct NamesLock(#[allow(dead_code)] MutexGuard<'static, Names>);

/// Locks the names for a fork.
pub(crate) fn lock_names() -> NamesLock {
    NamesLock(lock(&NAMES))
}

/// Returns the interned copy of `name`, leaked on first use.
pub fn interned(name: &str) -> &'static str {
    let mut names = lock(&NAMES);
    match names.get(name) {
        Some(known) => known,
        None => {
            let new: &'static str = Box::leak(name.to_owned().into_boxed_str());
            names.insert(new);
            new
        }
    }
}
