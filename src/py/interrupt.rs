//! Signal handling during long walks of the core: Ctrl-C ends a backward of a million operations.

use crate::error::Result;
use crate::py::error::foreign;
use pyo3::prelude::*;

/// Runs the handlers of pending signals. Only the main thread has any; an interpreter that shuts down has
/// none.
fn ask() -> Result<()> {
    Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(())).map_err(foreign)
}

/// Registers `ask` with the core.
pub fn register() {
    crate::process::interrupt::listen(ask);
}
