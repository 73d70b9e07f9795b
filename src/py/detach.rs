//! Releasing the interpreter lock for Rust work, calling functions of the user's program, and signals.
//!
//! Python's garbage collector walks the tape twice (`src/py/autograd/collect.rs`) and must find the same both
//! times. It runs under the lock, but threads that released the lock may change the tape meanwhile. So such
//! threads are counted, and while there are any the collector does not walk the tape.

use crate::process::on_drop::OnDrop;
use crate::py::prelude::*;
use pyo3::BoundObject;
use pyo3::ffi::{self, PyObject};
use pyo3::marker::Ungil;
use std::sync::atomic::{AtomicUsize, Ordering};

static DETACHED: AtomicUsize = AtomicUsize::new(0);

/// Whether some thread works without the lock.
pub fn anyone() -> bool {
    DETACHED.load(Ordering::Acquire) != 0
}

/// The one way to release the lock.
pub trait Detach {
    /// Runs `f` without the interpreter lock.
    fn detached<T: Ungil, F: Ungil + FnOnce() -> T>(self, f: F) -> T;
}

impl Detach for Python<'_> {
    #[allow(clippy::disallowed_methods)] // this is what all others use instead
    fn detached<T: Ungil, F: Ungil + FnOnce() -> T>(self, f: F) -> T {
        DETACHED.fetch_add(1, Ordering::Acquire);
        // Counted until the lock was reacquired.
        let _count = OnDrop(|| _ = DETACHED.fetch_sub(1, Ordering::Release));
        self.detach(f)
    }
}

/// Parks the thread forever when dropped; dropped only when a thread is unwound by force.
///
/// Until Python 3.14 an interpreter that shuts down unwinds the other threads that run Python code, at their
/// next bytecode. Rust frames cannot be unwound so, and the process would abort. Instead the thread sleeps
/// here, without the lock, until the process has ended.
struct Sleep;

impl Drop for Sleep {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Calls functions of the user's program, which may run long.
pub trait Callback<'py> {
    /// Calls the function and returns its result.
    fn run(
        &self, args: impl IntoPyObject<'py, Target = PyTuple>, kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>>;
}

impl<'py> Callback<'py> for Bound<'py, PyAny> {
    fn run(
        &self, args: impl IntoPyObject<'py, Target = PyTuple>, kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let args = args.into_pyobject(self.py()).map_err(Into::into)?;
        call(self, &args.into_bound(), kwargs)
    }
}

/// Runs Python code for the core, which gets its exception as an error.
pub fn attached<T>(f: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
    Python::attach(f).map_err(foreign)
}

/// Runs the handlers of pending signals, so that Ctrl-C ends a backward of a million operations. Only the
/// main thread has any; an interpreter that shuts down has none.
pub fn ask_signals() -> Result<()> {
    Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(())).map_err(foreign)
}

fn call<'py>(
    function: &Bound<'py, PyAny>, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    type Call = unsafe extern "C-unwind" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;
    let kwargs = kwargs.map_or(std::ptr::null_mut(), |kwargs| kwargs.as_ptr());
    let sleep = Sleep;
    // SAFETY: `PyObject_Call` has this signature; only the ABI is changed, to one that may unwind. The
    // arguments are borrowed until it returns. It returns a new reference, or null with an exception set.
    let out = unsafe {
        // `black_box` hides the function from the optimiser, which assumes that `extern "C"` never unwinds.
        let plain = std::hint::black_box(ffi::PyObject_Call as unsafe extern "C" fn(_, _, _) -> _);
        let call = std::mem::transmute::<unsafe extern "C" fn(_, _, _) -> *mut PyObject, Call>(plain);
        Bound::from_owned_ptr_or_err(function.py(), call(function.as_ptr(), args.as_ptr(), kwargs))
    };
    std::mem::forget(sleep);
    out
}
