//! References from the tape to Python objects: callables in hooks, objects packed by saved-tensor hooks.
//!
//! The core cannot look into these objects, but Python's garbage collector must find them: otherwise a hook
//! that closes over its own tensor would keep both alive for ever.
//! Read next: `src/py/autograd/collect.rs`, which walks them.

use crate::tensor::Tensor;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// Whether the tape holds any Python object.
#[inline]
pub fn any() -> bool {
    ALIVE.load(Ordering::Relaxed) != 0
}

/// A counted reference from the tape to a Python object, which is shared with its callers.
pub struct HostRef(Arc<dyn Any + Send + Sync>);

impl HostRef {
    /// Counts a reference that the tape is about to hold.
    pub fn new(object: Arc<dyn Any + Send + Sync>) -> HostRef {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        HostRef(object)
    }

    /// The object, if it has this type.
    pub fn object<T: 'static>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl Drop for HostRef {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A part of a [`Holder`].
pub enum HeldPart<'a> {
    /// A reference to a Python object.
    Host(&'a HostRef),
    /// A tensor.
    Tensor(&'a Tensor),
    /// A holder that others may share.
    Shared(Arc<dyn Holder>),
}

/// Something on the tape that may hold Python objects.
pub trait Holder: Send + Sync {
    /// Shows its parts to `see`; by default, none that matter to Python's garbage collector.
    fn parts(&self, _see: &mut dyn FnMut(HeldPart<'_>)) {}
}
