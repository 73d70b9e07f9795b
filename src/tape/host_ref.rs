//! What the tape holds of the host language: Python callables in hooks, what saved-tensor hooks packed.
//!
//! The core cannot see into these objects, but the host's garbage collector must be able to find them, or a
//! hook that closes over its own tensor would keep both alive for ever. `src/py/autograd/collect.rs` walks
//! them.

use crate::tensor::Tensor;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// Whether the tape holds anything of the host language at all.
#[inline]
pub fn any() -> bool {
    ALIVE.load(Ordering::Relaxed) != 0
}

/// One reference to an object of the host language, shared by whoever calls it.
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

/// What something on the tape is made of.
pub enum Part<'a> {
    /// A reference to an object of the host language.
    Host(&'a HostRef),
    /// A value.
    Tensor(&'a Tensor),
    /// Something that others may hold as well.
    Shared(Arc<dyn Holder>),
}

/// Something on the tape that may hold objects of the host language.
pub trait Holder: Send + Sync {
    /// Names its parts; nothing that the host's collector needs to know, by default.
    fn parts(&self, _see: &mut dyn FnMut(Part<'_>)) {}
}
