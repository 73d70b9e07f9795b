//! Saved-tensor hooks: a pair of Python functions that keep something else in place of what operations save.

use crate::autodiff::node::Slot;
use crate::autodiff::saving::{self, Packed, Packer};
use crate::error::Result;
use crate::op::Op;
use crate::py::error::{foreign, type_error};
use crate::py::tensor::{PyTensor, wrap};
use crate::py::view::value;
use crate::tensor::Tensor;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::sync::Arc;

/// The two functions.
struct Hooks {
    pack: Py<PyAny>,
    unpack: Arc<Py<PyAny>>,
}

/// What `pack` returned for one value.
struct Kept {
    object: Py<PyAny>,
    unpack: Arc<Py<PyAny>>,
}

impl Packer for Hooks {
    fn pack(&self, _op: &Op, _slot: Slot, value: &Tensor) -> Result<Arc<dyn Packed>> {
        Python::attach(|py| -> PyResult<Arc<dyn Packed>> {
            let object = self.pack.bind(py).call1((wrap(py, value.clone())?,))?.unbind();
            Ok(Arc::new(Kept { object, unpack: self.unpack.clone() }))
        })
        .map_err(foreign)
    }
}

impl Packed for Kept {
    fn unpack(&self) -> Result<Tensor> {
        Python::attach(|py| -> PyResult<Tensor> {
            let out = self.unpack.bind(py).call1((self.object.bind(py),))?;
            let out = out
                .cast::<PyTensor>()
                .map_err(|_| type_error("saved_tensors_hooks: the unpack function returns a tensor"))?;
            let t = value(out)?;
            Ok(t)
        })
        .map_err(foreign)
    }

    fn bytes(&self) -> usize {
        Python::attach(|py| match self.object.bind(py).cast::<PyTensor>() {
            Ok(t) => saving::bytes(&t.borrow().t),
            Err(_) => 0,
        })
    }
}

thread_local! {
    /// The hooks in force on this thread, innermost last.
    static REGIONS: RefCell<Vec<saving::Guard>> = const { RefCell::new(Vec::new()) };
}

/// Routes what operations save through `pack`, and back through `unpack` in backward. Returns the depth of
/// the region.
#[pyfunction]
fn _saved_hooks_enter(pack: Py<PyAny>, unpack: Py<PyAny>) -> usize {
    let guard = saving::with_packer(Arc::new(Hooks { pack, unpack: Arc::new(unpack) }));
    REGIONS.with_borrow_mut(|r| {
        r.push(guard);
        r.len()
    })
}

/// Leaves the region of this depth.
#[pyfunction]
fn _saved_hooks_exit(depth: usize) -> PyResult<()> {
    let popped = REGIONS.with_borrow_mut(|r| if r.len() == depth { r.pop() } else { None });
    match popped {
        Some(_) => Ok(()),
        None => Err(PyRuntimeError::new_err(
            "saved_tensors_hooks: regions must end in the reverse order of their beginning, on the same thread",
        )),
    }
}

/// Registers the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_saved_hooks_enter, m)?)?;
    m.add_function(wrap_pyfunction!(_saved_hooks_exit, m)?)
}
