//! Names that live for ever, as those of operations do; each is kept once.

use crate::process::sync::lock;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

type Names = BTreeSet<&'static str>;

static NAMES: Mutex<Names> = Mutex::new(BTreeSet::new());

/// The names, locked for a fork.
pub(crate) struct NamesLock(#[allow(dead_code)] MutexGuard<'static, Names>);

/// Locks the names.
pub(crate) fn lock_names() -> NamesLock {
    NamesLock(lock(&NAMES))
}

/// The name that lives for ever.
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
