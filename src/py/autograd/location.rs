//! Finds the location of the running Python program: the innermost line outside this package.

use crate::error::Error;
use crate::tape::location::{self, Host, Location};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCode;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::cell::RefCell;

/// Code objects cached per thread; beyond that the cache is cleared.
const REMEMBERED: usize = 4096;

/// A code object and the id of its site (file and function); `None` for code of this package.
type Known = (Py<PyCode>, Option<u32>);

/// A frame that waits for the core, and its line once it was asked for.
type Waiting = (Py<PyAny>, Option<Location>);

thread_local! {
    /// The innermost frame, while it stays where it is: its line is searched for once.
    static WAITING: RefCell<Option<Waiting>> = const { RefCell::new(None) };
    /// Cached code objects by address; they are kept alive, so that no address is reused.
    static KNOWN: RefCell<FxHashMap<usize, Known>> = RefCell::default();
}

/// The folder of this package, with a trailing separator.
static PACKAGE: PyOnceLock<String> = PyOnceLock::new();

/// Returns the site of a code object; `None` if it belongs to this package.
fn site_of(code: &Bound<'_, PyCode>) -> PyResult<Option<u32>> {
    let address = code.as_ptr() as usize;
    if let Some(site) = KNOWN.with_borrow(|known| known.get(&address).map(|k| k.1)) {
        return Ok(site);
    }
    let package = PACKAGE.get_or_try_init(code.py(), || -> PyResult<String> {
        let file: String = code.py().import("wengert")?.getattr("__file__")?.extract()?;
        Ok(file.rsplit_once("__init__").map_or(file.as_str(), |(folder, _)| folder).to_string())
    })?;
    let file: String = code.getattr("co_filename")?.extract()?;
    let site = if file.starts_with(package.as_str()) {
        None
    } else {
        let function: String = code.getattr("co_qualname")?.extract()?;
        Some(location::site(&file, &function))
    };
    let forgotten = KNOWN.with_borrow_mut(|known| {
        let full = known.len() >= REMEMBERED;
        let forgotten = if full { std::mem::take(known) } else { FxHashMap::default() };
        known.insert(address, (code.clone().unbind(), site));
        forgotten
    });
    // Dropped outside the borrow: dropping a code object can run Python.
    drop(forgotten);
    Ok(site)
}

/// Searches for the innermost frame that runs code outside this package.
fn search(py: Python<'_>) -> PyResult<Option<Location>> {
    // SAFETY: `py` proves this thread attached; the result is a borrowed reference, or null without a frame.
    let frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) };
    let innermost = frame.as_ref().map_or(std::ptr::null_mut(), |frame| frame.as_ptr());
    let waits = |waiting: &&mut Waiting| waiting.0.as_ptr() == innermost;
    if let Some(known) = WAITING.with_borrow_mut(|waiting| waiting.as_mut().filter(waits)?.1) {
        return Ok(Some(known));
    }
    let mut at = frame;
    while let Some(frame) = at {
        let raw = frame.as_ptr().cast::<ffi::PyFrameObject>();
        // SAFETY: `frame` keeps `raw` alive; the call returns a new reference to the code object, never null.
        let code = unsafe { Bound::from_owned_ptr(py, ffi::PyFrame_GetCode(raw).cast()) };
        if let Some(site) = site_of(&code.cast_into::<PyCode>()?)? {
            // SAFETY: as above, `frame` keeps `raw` alive.
            let line = unsafe { ffi::PyFrame_GetLineNumber(raw) };
            let found = Some(Location::new(site, line.max(0) as u32));
            WAITING.with_borrow_mut(|waiting| {
                waiting.as_mut().filter(waits).into_iter().for_each(|waiting| waiting.1 = found);
            });
            return Ok(found);
        }
        let outer = frame.getattr(pyo3::intern!(py, "f_back"))?;
        at = (!outer.is_none()).then_some(outer);
    }
    Ok(None)
}

/// Returns the innermost line outside this package; `None` where no Python runs. Never raises.
fn locate() -> Option<Location> {
    Python::try_attach(|py| search(py).ok().flatten()).flatten()
}

/// Lets the innermost frame wait until the result is dropped.
fn hold() -> Box<dyn Any> {
    struct Restore(Option<Waiting>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let before = self.0.take();
            // Dropped outside the borrow: dropping a frame can run Python.
            drop(WAITING.with_borrow_mut(|waiting| std::mem::replace(waiting, before)));
        }
    }
    let frame = Python::try_attach(|py| {
        // SAFETY: as in `search`.
        let frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) };
        frame.map(|frame: Bound<'_, PyAny>| (frame.unbind(), None))
    });
    Box::new(Restore(WAITING.with_borrow_mut(|waiting| std::mem::replace(waiting, frame.flatten()))))
}

/// Adds a note to the Python exception that an error carries.
fn annotate(error: &Error, note: &str) {
    let Some(exception) = error.payload().and_then(|p| p.downcast_ref::<PyErr>()) else { return };
    Python::try_attach(|py| {
        // An exception that rejects notes stays unchanged.
        let _ = exception.value(py).call_method1("add_note", (note,));
    });
}

/// Installs `locate` and `annotate` in the core.
pub fn register() {
    location::install(Host { locate, hold, annotate });
}
