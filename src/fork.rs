//! Forking: a child inherits every lock as it was at that moment, also those that other threads held.
//!
//! So the process-wide locks of the core (the block cache, the default generator, the lines of programs, the
//! plans of Fourier transforms, the names of custom functions) are taken before a fork and given back after
//! it, in the parent and in the child. A value that another thread is making for the first time would stay
//! half made for ever in the child, so those are made before. The thread pool and GPUs look at the process id
//! instead.

/// Makes `fork` wait for the core's locks; registers once.
#[cfg(unix)]
pub fn protect() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers are functions without arguments that live for ever. A failure to register
        // leaves the behaviour of a process that never forks.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) };
    });
}

/// Other systems do not fork.
#[cfg(not(unix))]
pub fn protect() {}

/// The locks that the thread that forks holds meanwhile.
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

/// Makes the values that are made once and that others wait for: the instruction set and the outermost
/// interpreter.
#[cfg(unix)]
fn settle() {
    crate::cpu::run::isa::isa();
    crate::interp::settle();
}

/// Takes the locks on the thread that forks.
#[cfg(unix)]
extern "C" fn before() {
    settle();
    let sites = crate::tape::location::lock_sites();
    let plans = crate::cpu::fft::lock_plans();
    let names = crate::process::names::lock_names();
    let _others = (crate::array::buffer::lock_cache(), sites, plans, names);
    let held = Held { generator: crate::array::random::lock_generator(), _others };
    let _ = HELD.try_with(|slot| *slot.borrow_mut() = Some(held));
}

/// Gives them back.
#[cfg(unix)]
extern "C" fn after() {
    let _ = HELD.try_with(|slot| slot.borrow_mut().take());
}

/// Gives them back in the child, which draws other numbers than its parent unless the program chose them.
#[cfg(unix)]
extern "C" fn in_child() {
    let _ = HELD.try_with(|slot| slot.borrow_mut().as_mut().map(|held| held.generator.forked()));
    after();
}
