//! Leaves: tape entries of tensors that require a gradient, and the values that stand for them.

use super::{Edges, Node, Origin, SEQ};
use crate::interp::Tag;
use crate::process::sync::lock;
use crate::tensor::{Aval, Tensor};
use crate::watch::debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

impl Node {
    /// An entry for a tensor that requires a gradient.
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
            hooks: OnceLock::new(),
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
        match &self.origin {
            Origin::Leaf { grad, .. } => Some(lock(grad)),
            Origin::Op { .. } => None,
        }
    }

    /// How many edges of the tape lead to this leaf, at most: references to it that no value holds. `known`
    /// is how many more of them the caller knows to be no edges.
    #[inline]
    pub fn edges_to(self: &Arc<Self>, known: usize) -> usize {
        match &self.origin {
            Origin::Leaf { handles, .. } => {
                let before = handles.load(Ordering::Acquire);
                let edges = Arc::strong_count(self).saturating_sub(before + known);
                // Where another thread makes or drops values of the leaf right now, the count means nothing.
                if handles.load(Ordering::Acquire) == before { edges } else { usize::MAX }
            }
            Origin::Op { .. } => usize::MAX,
        }
    }

    /// Whether a value still stands for this entry, if it is a leaf.
    pub fn has_handle(&self) -> bool {
        match &self.origin {
            Origin::Leaf { handles, .. } => handles.load(Ordering::Acquire) != 0,
            Origin::Op { .. } => true,
        }
    }

    /// Notes that `next` is what the object of this leaf stands for from now on.
    pub fn exchange(&self, next: &Arc<Node>) {
        if let (Origin::Leaf { now, .. }, Origin::Leaf { now: again, .. }) = (&self.origin, &next.origin) {
            let now = now.get_or_init(Arc::default);
            *lock(now) = Arc::downgrade(next);
            let _ = again.set(now.clone());
        }
    }

    /// The leaf that took the place of this one, if one did.
    pub fn exchanged(self: &Arc<Self>) -> Option<Weak<Node>> {
        match &self.origin {
            Origin::Leaf { now, .. } => {
                now.get().map(|now| lock(now).clone()).filter(|now| now.as_ptr() != Arc::as_ptr(self))
            }
            Origin::Op { .. } => None,
        }
    }
}

/// A tape entry, held by a value that it made.
///
/// The gradient of a leaf belongs to the values that stand for the leaf, not to the graph: a gradient that
/// was computed with `create_graph` leads back to the leaf's entry, which would keep itself alive. So it goes
/// with the last handle.
pub struct Handle(Arc<Node>);

impl Handle {
    /// A handle to an entry.
    #[inline]
    pub fn new(node: Arc<Node>) -> Handle {
        if let Origin::Leaf { handles, .. } = &node.origin {
            handles.fetch_add(1, Ordering::Relaxed);
        }
        Handle(node)
    }

    /// The entry.
    #[inline]
    pub fn entry(&self) -> &Arc<Node> {
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
