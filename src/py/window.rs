//! The window of a group of ranks (`src/ops/collective/window.rs`) for Python, which makes its memory
//! (`python/wengert/distributed/_window.py`), and for operations that need no Python.

use crate::ops::collective::window::{Turn, Window, number};
use crate::py::prelude::*;
use pyo3::buffer::PyBuffer;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How long an operation waits before Python does.
pub const SHORT: Duration = Duration::from_millis(2);
/// How long Python lets go of its lock between two looks of its own.
const LOOK: Duration = Duration::from_micros(20);

/// How many look at each exchange, so that all go through Python.
static OBSERVERS: AtomicUsize = AtomicUsize::new(0);

/// A window, and whether operations may use it without asking Python.
pub struct DirectWindow {
    pub window: Window,
    pub rank: usize,
    pub size: usize,
    allowed: AtomicBool,
    process: u32,
    /// How many operations did.
    count: AtomicU64,
}

impl DirectWindow {
    /// Begins an operation in which this rank shows so many bytes, if it may.
    pub fn begin(&self, bytes: usize) -> Option<Turn<'_>> {
        let fits = self.allowed.load(Ordering::Relaxed) && bytes <= self.window.room();
        if !fits || OBSERVERS.load(Ordering::Relaxed) > 0 || self.process != std::process::id() {
            return None;
        }
        let turn = self.window.take()?;
        self.count.fetch_add(1, Ordering::Relaxed);
        Some(turn)
    }
}

/// The window of a rank in a group.
#[pyclass(name = "_Window", module = "wengert._core", frozen)]
pub struct PyWindow(pub Arc<DirectWindow>);

#[pymethods]
impl PyWindow {
    /// That of a rank among so many; it has no memory yet.
    #[new]
    fn new(rank: usize, size: usize) -> PyResult<PyWindow> {
        if rank >= size {
            return Err(value_error(format!("a group of {size} ranks has no rank {rank}")));
        }
        let (allowed, count) = (AtomicBool::new(false), AtomicU64::new(0));
        let process = std::process::id();
        Ok(PyWindow(Arc::new(DirectWindow {
            window: Window::new(rank, size),
            rank,
            size,
            allowed,
            process,
            count,
        })))
    }

    /// Takes the memory that all ranks share, zeros as yet.
    fn open(&self, memory: PyBuffer<u8>) -> PyResult<()> {
        let (base, bytes) = (memory.buf_ptr().cast::<u8>(), memory.len_bytes());
        if memory.readonly() || !memory.is_c_contiguous() {
            return Err(value_error("a window of ranks has memory that can be written".to_owned()));
        }
        // SAFETY: the buffer is writable, so long, and held by the window.
        Ok(unsafe { self.0.window.open(base, bytes, Box::new(memory)) }?)
    }

    /// Whether operations may begin without Python from now on.
    fn allow_direct(&self, allowed: bool) {
        self.0.allowed.store(allowed, Ordering::Relaxed);
    }

    /// How many bytes a rank can show the others; 0 without memory.
    #[getter]
    fn room(&self) -> usize {
        self.0.window.room()
    }

    /// How many operations have begun that Python does not know of.
    #[getter]
    fn count(&self) -> u64 {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Takes the group for an operation of this thread; false if another thread has it.
    fn acquire(&self) -> bool {
        self.0.window.acquire()
    }

    fn release(&self) {
        self.0.window.release();
    }

    /// Says what this rank is about to do, to which partners, and shows the bytes of a buffer.
    #[pyo3(signature = (what, kind, size, to, source, shown=None))]
    fn enter(
        &self, what: &str, kind: &str, size: i64, to: i32, source: i32, shown: Option<PyBuffer<u8>>,
    ) -> PyResult<()> {
        let bytes = shown.as_ref().map_or(Ok(&mut [] as *mut [u8]), memory)?;
        // SAFETY: alive, and written by nobody, while it is read.
        Ok(self.0.window.enter(number(what, kind, size), [to, source], &[unsafe { &*bytes }])?)
    }

    /// Whether all ranks have entered, after a short look.
    #[pyo3(name = "Test")]
    fn test(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(py.detached(|| self.0.window.wait(LOOK))?)
    }

    /// Whether all ranks are about to do the same.
    fn agree(&self) -> PyResult<bool> {
        Ok(self.0.window.agree()?)
    }

    /// Fills a buffer with what a rank shows, from byte `start` on.
    fn read(&self, rank: usize, start: usize, into: PyBuffer<u8>) -> PyResult<()> {
        if into.readonly() {
            return Err(value_error("internal: bytes are read into memory that can be written".to_owned()));
        }
        let bytes = memory(&into)?;
        // SAFETY: alive while it is written, of a caller who has the only view of it.
        Ok(self.0.window.read(rank, start, unsafe { &mut *bytes })?)
    }
}

/// The bytes of a buffer, without a gap; they live as long as it.
fn memory(buffer: &PyBuffer<u8>) -> PyResult<*mut [u8]> {
    match (buffer.is_c_contiguous(), buffer.len_bytes()) {
        (false, _) => Err(value_error("internal: a buffer with gaps".to_owned())),
        (true, 0) => Ok(&mut [] as *mut [u8]),
        (true, length) => Ok(std::ptr::slice_from_raw_parts_mut(buffer.buf_ptr().cast(), length)),
    }
}

/// Lets all exchanges go through Python, or no longer, once for each call with true.
#[pyfunction]
fn _observe_exchanges(begins: bool) {
    if begins {
        OBSERVERS.fetch_add(1, Ordering::Relaxed);
    } else {
        OBSERVERS.fetch_sub(1, Ordering::Relaxed);
    }
}

exports! { classes: PyWindow; functions: _observe_exchanges }
