//! Fork handlers: a child inherits every lock in its state at the fork, also those that other threads hold.
//!
//! So the process-wide locks of the core (block cache, default generator, locations, plans of Fourier
//! transforms, names of custom functions) are taken before a fork and released after it, in parent and child.
//! A lazy value that another thread is initialising would stay half-initialised in the child, so lazy values
//! are initialised before. The thread pool and GPUs compare the process id instead.

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

/// The locks that the forking thread holds during the fork.
#[cfg(unix)]
struct Held {
    generator: crate::array::random::GeneratorLock,
    _others: (
        crate::array::buffer::CacheLock,
        crate::tape::location::SitesLock,
        crate::cpu::fft::PlansLock,
        crate::process::names::NamesLock,
    ),
}

#[cfg(unix)]
thread_local! {
    static HELD: std::cell::RefCell<Option<Held>> = const { std::cell::RefCell::new(None) };
}

/// Initialises the lazy values that threads wait for: the instruction set and the outermost interpreter.
#[cfg(unix)]
fn prepare() {
    crate::cpu::run::isa::isa();
    crate::interp::force_root();
}

/// Takes the locks, on the forking thread.
#[cfg(unix)]
extern "C" fn before() {
    prepare();
    let sites = crate::tape::location::lock_sites();
    let plans = crate::cpu::fft::lock_plans();
    let names = crate::process::names::lock_names();
    let _others = (crate::array::buffer::lock_cache(), sites, plans, names);
    let held = Held { generator: crate::array::random::lock_generator(), _others };
    let _ = HELD.try_with(|slot| *slot.borrow_mut() = Some(held));
}

/// Releases the locks.
#[cfg(unix)]
extern "C" fn after() {
    let _ = HELD.try_with(|slot| slot.borrow_mut().take());
}

/// Releases the locks in the child, which draws other random numbers than its parent unless the program chose
/// the seed.
#[cfg(unix)]
extern "C" fn in_child() {
    let _ = HELD.try_with(|slot| slot.borrow_mut().as_mut().map(|held| held.generator.forked()));
    after();
}
