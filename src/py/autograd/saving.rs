//! Saved-tensor hooks: a pair of Python functions that replaces saved tensors by other objects.

use crate::autodiff::cow::CopyOnWrite;
use crate::op::Op;
use crate::py::prelude::*;
use crate::tape::host_ref::{HeldPart, Holder, HostRef};
use crate::tape::node::Slot;
use crate::tape::saving::{self, Packed, SavedHook};
use crate::tensor::Aval;
use pyo3::exceptions::PyRuntimeError;
use std::cell::RefCell;

/// A `pack` and an `unpack` function.
struct Hooks {
    pack: Py<PyAny>,
    unpack: Arc<Unpack>,
}

/// The `unpack` function, shared by all values of a region.
struct Unpack(HostRef);

impl Holder for Unpack {
    fn parts(&self, see: &mut dyn FnMut(HeldPart<'_>)) {
        see(HeldPart::Host(&self.0));
    }
}

/// The object that `pack` returned for one value.
struct PackedValue {
    object: HostRef,
    unpack: Arc<Unpack>,
    /// Shape, dtype and device of the packed tensor.
    aval: Aval,
}

impl SavedHook for Hooks {
    fn pack(&self, op: &Op, _slot: Slot, value: &Tensor) -> Result<Arc<dyn Packed>> {
        let before = saving::version(value);
        let object = attached(|py| Ok(self.pack.bind(py).run((value,), None)?.unbind()))?;
        if saving::version(value) != before {
            return Err(Error::autodiff(format!(
                "saved_tensors_hooks: the pack function wrote in place to the tensor of shape {} that {} \
                 saves; write to a clone() of it",
                value.shape(),
                op.name()
            )));
        }
        let object = HostRef::new(Arc::new(object));
        Ok(Arc::new(PackedValue { object, unpack: self.unpack.clone(), aval: value.aval() }))
    }
}

impl Holder for PackedValue {
    fn parts(&self, see: &mut dyn FnMut(HeldPart<'_>)) {
        see(HeldPart::Host(&self.object));
        see(HeldPart::Shared(self.unpack.clone()));
    }
}

impl Packed for PackedValue {
    fn unpack(&self) -> Result<Tensor> {
        let t = attached(|py| {
            let python = |held: &HostRef| held.object::<Py<PyAny>>().map(|object| object.bind(py).clone());
            let (Some(unpack), Some(packed)) = (python(&self.unpack.0), python(&self.object)) else {
                return Err(PyRuntimeError::new_err("internal: a saved-tensor hook holds no Python object"));
            };
            let out = unpack.run((packed,), None)?;
            let Ok(out) = out.cast::<PyTensor>() else {
                return Err(type_error(format!(
                    "saved_tensors_hooks: the unpack function returned {}, expected the tensor that was \
                     packed",
                    out.get_type().name()?
                )));
            };
            value(out)
        })?;
        let (got, want) = (t.aval(), self.aval);
        if got == want {
            return Ok(t);
        }
        Err(Error::autodiff(format!(
            "saved_tensors_hooks: the unpack function returned {}{} on {}, expected {}{} on {} as was packed",
            got.dtype, got.shape, got.device, want.dtype, want.shape, want.device
        )))
    }

    fn bytes(&self) -> usize {
        Python::attach(|py| self.object.object::<Py<PyAny>>().map_or(0, |object| bytes(object.bind(py))))
    }
}

/// Bytes of the tensor that `pack` returned, or of all tensors in its tuple or list.
fn bytes(object: &Bound<'_, PyAny>) -> usize {
    if let Ok(t) = object.cast::<PyTensor>() {
        return saving::bytes(&t.read().t);
    }
    if !object.is_instance_of::<PyTuple>() && !object.is_instance_of::<PyList>() {
        return 0;
    }
    let tensors = object.try_iter().into_iter().flatten().flatten();
    tensors.filter_map(|x| x.cast::<PyTensor>().ok().map(|t| saving::bytes(&t.read().t))).sum()
}

thread_local! {
    /// The hooks in force on this thread, innermost last.
    static REGIONS: RefCell<Vec<saving::HookGuard>> = const { RefCell::new(Vec::new()) };
}

/// Begins a region in which `hook` holds; returns its depth.
fn begun(hook: Arc<dyn SavedHook>) -> usize {
    let guard = saving::with_saved_hook(hook);
    REGIONS.with_borrow_mut(|r| {
        r.push(guard);
        r.len()
    })
}

/// Routes what operations save through `pack`, and through `unpack` in backward. Returns the region's depth.
#[pyfunction]
fn _saved_hooks_enter(pack: Py<PyAny>, unpack: Py<PyAny>) -> usize {
    let unpack = Arc::new(Unpack(HostRef::new(Arc::new(unpack))));
    begun(Arc::new(Hooks { pack, unpack }))
}

functions! {
    /// Lets saved values survive writes in place. Returns the depth of the region.
    _copy_on_write_enter() -> usize = begun(Arc::new(CopyOnWrite::default()));
    /// Whether such a region is in force on this thread.
    _saved_hooks_active() -> bool = REGIONS.with_borrow(|r| !r.is_empty());
}

/// Leaves the region of this depth.
#[pyfunction]
fn _saved_hooks_exit(depth: usize) -> PyResult<()> {
    let popped = REGIONS.with_borrow_mut(|r| if r.len() == depth { r.pop() } else { None });
    popped.map(drop).ok_or_else(|| {
        PyRuntimeError::new_err(
            "saved_tensors_hooks: regions must end in the reverse order of their beginning, on the same \
             thread",
        )
    })
}

exports! { functions: _saved_hooks_active, _saved_hooks_enter, _copy_on_write_enter, _saved_hooks_exit }
