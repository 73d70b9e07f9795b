//! Support for Python's garbage collector: cycles through the tape, such as a hook that closes over its own
//! tensor, a context that holds its output, or what saved-tensor hooks packed. `__traverse__` visits the
//! Python objects on the part of the tape that one object alone keeps alive; `__clear__` drops that part.

use crate::autodiff::owned::{HolderWalk, walk};
use crate::py::autograd::node::PyNode;
use crate::py::autograd::transform::{PyLinear, PyPullback};
use crate::py::detach;
use crate::py::prelude::*;
use crate::tape::host_ref::{self, HostRef};
use crate::tape::node::{Node, recorded_nodes};
use pyo3::gc::{PyTraverseError, PyVisit};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whether this collection walks the tape.
static LOOKS: AtomicBool = AtomicBool::new(true);
/// Nodes visited by the collections since the last decision to walk.
static WALKED: AtomicU64 = AtomicU64::new(0);
/// Nodes visited by all collections.
static WALKED_IN_ALL: AtomicU64 = AtomicU64::new(0);
/// The number of nodes recorded when a collection last decided to walk.
static AT: AtomicU64 = AtomicU64::new(0);

/// Called at the start and the end of every collection. The newest tensor owns the whole chain behind it, so
/// that looking into the tape costs as much as the tape is long; a collection of young objects looks only
/// when the tape has grown by a part of what the last look cost, which makes the cost of all looks together
/// grow as the tape does. What a collection does not see it keeps; a full one looks always.
#[pyfunction]
fn _collecting(phase: &str, info: &Bound<'_, PyDict>) -> PyResult<()> {
    if phase != "start" || !host_ref::any() {
        LOOKS.store(true, Ordering::Relaxed);
        return Ok(());
    }
    let generation = info.get_item("generation")?.map_or(Ok(2), |g| g.extract::<i64>())?;
    let (now, before) = (recorded_nodes(), AT.load(Ordering::Relaxed));
    let looks = generation >= 2 || now.saturating_sub(before) >= WALKED.load(Ordering::Relaxed) / 4;
    LOOKS.store(looks, Ordering::Relaxed);
    if looks {
        AT.store(now, Ordering::Relaxed);
        WALKED.store(0, Ordering::Relaxed);
    }
    Ok(())
}

/// How many entries of the tape the collections of this process have walked, for tests of their cost.
#[pyfunction]
fn _entries_walked() -> u64 {
    WALKED_IN_ALL.load(Ordering::Relaxed)
}

/// Registers `_collecting` in `gc.callbacks`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_entries_walked, m)?)?;
    let notice = wrap_pyfunction!(_collecting, m)?;
    m.py().import("gc")?.getattr("callbacks")?.call_method1("append", (notice,))?;
    Ok(())
}

/// Visits the Python objects that belong to one owner alone; `begin` names the owner's references.
fn show(visit: &PyVisit<'_>, begin: impl FnOnce(&mut HolderWalk)) -> Result<(), PyTraverseError> {
    if detach::anyone() || !LOOKS.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut result = Ok(());
    let mut see = |held: &HostRef| {
        if let (Some(object), Ok(())) = (held.object::<Py<PyAny>>(), &result) {
            result = visit.call(object);
        }
    };
    let walked = walk(begin, &mut see);
    WALKED.fetch_add(walked, Ordering::Relaxed);
    WALKED_IN_ALL.fetch_add(walked, Ordering::Relaxed);
    result
}

#[pymethods]
impl PyTensor {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Unreadable only while the tensor is being exchanged: then the exchanging thread holds it.
        let Some(this) = self.try_read() else { return Ok(()) };
        if let Some(view) = &this.view {
            visit.call(&view.root)?;
        }
        if this.t.traced().is_none() {
            return Ok(());
        }
        show(&visit, |walk| walk.tensor(&this.t))
    }

    fn __clear__(&self) {
        let bare = self.read().t.detach();
        drop(self.change(|this| (this.view.take(), this.ties.take(), std::mem::replace(&mut this.t, bare))));
    }
}

#[pymethods]
impl PyNode {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        show(&visit, |walk| walk.node(&self.0))
    }

    fn __clear__(&mut self) {
        // A destructor that still uses the garbage finds a leaf node without edges.
        let bare = Arc::new(Node::leaf(self.0.tag, self.0.outputs[0]));
        drop(std::mem::replace(&mut self.0, bare));
    }
}

#[pymethods]
impl PyLinear {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        show(&visit, |walk| self.0.parts(walk))
    }

    fn __clear__(&mut self) {
        drop(std::mem::take(&mut self.0));
    }
}

#[pymethods]
impl PyPullback {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        show(&visit, |walk| self.0.nodes().for_each(|node| walk.node(node)))
    }

    fn __clear__(&mut self) {
        drop(std::mem::take(&mut self.0));
    }
}
