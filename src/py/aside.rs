//! Where Rust and the interpreter hand a thread to each other: work without the interpreter lock, and calls
//! of the program's functions.
//!
//! The garbage collector looks at the tape twice (`src/py/autograd/collect.rs`) and must find the same both
//! times. It runs under the lock, but code that gave the lock away goes on using the tape meanwhile; so such
//! code is counted, and while there is any the collector sees nothing.

use pyo3::ffi::{self, PyObject};
use pyo3::marker::Ungil;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
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

/// Dropped only where a thread is unwound by force.
///
/// Until Python 3.14 an interpreter that ends unwinds the threads that run Python code beside it, at their
/// next bytecode. Rust frames cannot be unwound so, and the process would abort. Such a thread sleeps here
/// instead, without the lock, until the process has ended.
struct Sleep;

impl Drop for Sleep {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// What a function can be called with.
pub trait Arguments<'py>:
    IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error: Into<PyErr>>
{
}

impl<'py, A> Arguments<'py> for A where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error: Into<PyErr>>
{
}

/// Calls of the program's functions, which may take long.
pub trait Callback<'py> {
    /// The result of a call.
    fn run(
        &self,
        args: impl Arguments<'py>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>>;
}

impl<'py> Callback<'py> for Bound<'py, PyAny> {
    fn run(
        &self,
        args: impl Arguments<'py>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let args = args.into_pyobject(self.py()).map_err(Into::into)?;
        call(self, &args, kwargs)
    }
}

fn call<'py>(
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    type Call = unsafe extern "C-unwind" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;
    let kwargs = kwargs.map_or(std::ptr::null_mut(), |kwargs| kwargs.as_ptr());
    let sleep = Sleep;
    // SAFETY: the same function, said to unwind; what it is given lives until it returns, and what it
    // returns is a new reference, or null with an exception set.
    let out = unsafe {
        // Hidden from the optimiser, which would take the declared function at its word that it never
        // unwinds.
        let plain = std::hint::black_box(ffi::PyObject_Call as unsafe extern "C" fn(_, _, _) -> _);
        let call = std::mem::transmute::<unsafe extern "C" fn(_, _, _) -> *mut PyObject, Call>(plain);
        Bound::from_owned_ptr_or_err(function.py(), call(function.as_ptr(), args.as_ptr(), kwargs))
    };
    std::mem::forget(sleep);
    out
}
