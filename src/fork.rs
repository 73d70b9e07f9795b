//! Fork handlers: a child inherits every lock in its state at the fork, also those that other threads hold.
//!
//! So the process-wide locks of the core (block cache, default generator, locations, plans of Fourier
//! transforms, names of custom functions) are taken before a fork and released after it, in parent and child.
//! A lazy value that another thread is initialising would stay half-initialised in the child, so lazy values
//! are initialised before. The thread pool compares the process id instead, and GPUs the number of forks.

#[cfg(unix)]
use crate::{
    array::buffer::{CacheLock, lock_cache},
    array::random::{GeneratorLock, lock_generator},
    cpu::fft::{PlansLock, lock_plans},
    process::names::{NamesLock, lock_names},
    tape::location::{SitesLock, lock_sites},
};
#[cfg(unix)]
use std::cell::RefCell;

/// Registers the fork handlers, once per process.
#[cfg(unix)]
pub fn protect() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers have the signature that `pthread_atfork` expects, and are never unloaded. If
        // registering fails, only forks are unprotected.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) };
    });
}

/// Does nothing: other systems do not fork.
#[cfg(not(unix))]
pub fn protect() {}

/// The locks that the forking thread holds during the fork: random numbers, blocks, locations, plans, names.
#[cfg(unix)]
type Held = (GeneratorLock, CacheLock, SitesLock, PlansLock, NamesLock);

#[cfg(unix)]
thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Takes the locks, on the forking thread, and initialises the lazy values that threads wait for: the
/// instruction set, whether machine code is made, and the outermost interpreter.
#[cfg(unix)]
extern "C" fn before() {
    crate::cpu::run::isa::isa();
    #[cfg(target_arch = "x86_64")]
    crate::cpu::emit::is_on();
    crate::interp::force_root();
    let (sites, plans, names) = (lock_sites(), lock_plans(), lock_names());
    let cache = lock_cache();
    let held = (lock_generator(), cache, sites, plans, names);
    let _ = HELD.try_with(|slot| slot.replace(Some(held)));
}

/// Releases the locks.
#[cfg(unix)]
extern "C" fn after() {
    let _ = HELD.try_with(RefCell::take);
}

/// Releases the locks in the child, which draws its own random numbers unless the program chose the seed.
#[cfg(unix)]
extern "C" fn in_child() {
    let _ = HELD.try_with(|slot| slot.borrow_mut().as_mut().map(|(generator, ..)| generator.forked()));
    after();
}
