//! Leaves: nodes of tensors that require a gradient, and the handles by which values refer to nodes.

use super::{Edges, Node, Origin, SEQ};
use crate::interp::Tag;
use crate::process::sync::lock;
use crate::tensor::{Aval, Tensor};
use crate::watch::debug;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

impl Node {
    /// Returns the node of a tensor that requires a gradient.
    pub fn leaf(tag: Tag, aval: Aval) -> Node {
        Node {
            seq: SEQ.fetch_add(1, Ordering::Relaxed),
            tag,
            origin: Origin::Leaf {
                grad: Mutex::new(None),
                handles: AtomicUsize::new(0),
                now: OnceLock::new(),
            },
            edges: Edges::new(),
            outputs: smallvec::smallvec![aval],
            location: debug::location(),
            hooks: ManuallyDrop::new(OnceLock::new()),
        }
    }

    /// Makes `value` a leaf of the tape `tag`.
    pub fn leaf_tensor(tag: Tag, value: Tensor) -> Tensor {
        let aval = value.aval();
        let node = Handle::new(Arc::new(Node::leaf(tag, aval)));
        value.on_tape(tag, node, 0)
    }

    /// Whether this is a leaf.
    pub fn is_leaf(&self) -> bool {
        matches!(self.origin, Origin::Leaf { .. })
    }

    /// The gradient slot of a leaf.
    pub fn grad(&self) -> Option<MutexGuard<'_, Option<Tensor>>> {
        let Origin::Leaf { grad, .. } = &self.origin else { return None };
        Some(lock(grad))
    }

    /// An upper bound on the edges to this leaf: strong references minus handles minus `known`, the
    /// references that the caller holds itself. `usize::MAX` for an operation.
    #[inline]
    pub fn edges_to(self: &Arc<Self>, known: usize) -> usize {
        let Origin::Leaf { handles, .. } = &self.origin else { return usize::MAX };
        let before = handles.load(Ordering::Acquire);
        let edges = Arc::strong_count(self).saturating_sub(before + known);
        // If another thread makes or drops handles meanwhile, the count is meaningless.
        if handles.load(Ordering::Acquire) == before { edges } else { usize::MAX }
    }

    /// Whether a value still refers to this leaf; true for an operation.
    pub fn has_handle(&self) -> bool {
        let Origin::Leaf { handles, .. } = &self.origin else { return true };
        handles.load(Ordering::Acquire) != 0
    }

    /// Records `next` as the new leaf of this leaf's tensor object.
    pub fn exchange(&self, next: &Arc<Node>) {
        if let (Origin::Leaf { now, .. }, Origin::Leaf { now: again, .. }) = (&self.origin, &next.origin) {
            let now = now.get_or_init(Arc::default);
            *lock(now) = Arc::downgrade(next);
            let _ = again.set(now.clone());
        }
    }

    /// The leaf that replaced this one, if one did.
    pub fn exchanged(self: &Arc<Self>) -> Option<Weak<Node>> {
        let Origin::Leaf { now, .. } = &self.origin else { return None };
        Some(lock(now.get()?).clone()).filter(|now| now.as_ptr() != Arc::as_ptr(self))
    }
}

/// A reference from a value to its node.
///
/// The gradient of a leaf belongs to the leaf's values, not to the graph, and is dropped with the last
/// handle: a gradient computed with `create_graph` leads back to the leaf and would keep it alive.
pub struct Handle(Arc<Node>);

impl Handle {
    /// Returns a handle to `node`.
    #[inline]
    pub fn new(node: Arc<Node>) -> Handle {
        if let Origin::Leaf { handles, .. } = &node.origin {
            handles.fetch_add(1, Ordering::Relaxed);
        }
        Handle(node)
    }

    /// The node.
    #[inline]
    pub fn node(&self) -> &Arc<Node> {
        &self.0
    }
}

impl Clone for Handle {
    fn clone(&self) -> Handle {
        Handle::new(self.0.clone())
    }
}

impl std::ops::Deref for Handle {
    type Target = Node;
    fn deref(&self) -> &Node {
        &self.0
    }
}

impl Drop for Handle {
    #[inline]
    fn drop(&mut self) {
        if let Origin::Leaf { grad, handles, .. } = &self.0.origin
            && handles.fetch_sub(1, Ordering::AcqRel) == 1
        {
            let grad = lock(grad).take();
            drop(grad);
        }
    }
}
