//! Frees a graph of any depth without recursion.
//!
//! Dropping a node releases others, which may be freed with it; plain destructors would nest as deep as the
//! graph. Instead the first node freed on a thread opens a list, nested ones push their fields onto it, and
//! the first empties it. Saved tensors, hooks and gradients are deferred too where they may hold nodes in
//! turn: a checkpoint's inputs, a Python object, the gradient of a gradient.

use crate::tape::hooks::Hooks;
use crate::tape::node::{Edge, Node, Saved};
use crate::tensor::Traced;
use std::cell::RefCell;
use std::sync::Arc;

/// A field of a dropped node whose own drop may free further nodes.
#[allow(dead_code)]
pub enum Deferred {
    /// A node that nothing else holds.
    Entry(Arc<Node>),
    /// Saved tensors that are not all plain arrays.
    Saved(Box<Saved>),
    /// The hooks of a node.
    Hooks(Box<Hooks>),
    /// The gradient of a leaf, if it is on a tape itself.
    Gradient(Arc<Traced>),
}

thread_local! {
    /// The deferred drops of this thread; `None` while no drop is in progress.
    static PENDING: RefCell<Option<Vec<Deferred>>> = const { RefCell::new(None) };
}

/// Drops an edge of a dropped node.
#[inline]
pub fn drop_edge(edge: Edge) {
    // Two threads may drop edges at once, so the count alone does not tell which is last.
    if Arc::strong_count(&edge.node) == 1 {
        drop_later(Deferred::Entry(edge.node));
    } else if let Some(node) = Arc::into_inner(edge.node) {
        drop_later(Deferred::Entry(Arc::new(node)));
    }
}

/// Drops `field` at once, or after the drop in progress on this thread.
pub fn drop_later(field: Deferred) {
    let mut field = Some(field);
    let outermost = PENDING.try_with(|pending| match &mut *pending.borrow_mut() {
        Some(waiting) => {
            waiting.extend(field.take());
            false
        }
        none => {
            *none = Some(Vec::new());
            true
        }
    });
    // At the end of a thread the list is gone, and `field` is dropped here.
    if outermost != Ok(true) {
        return;
    }
    drop(field);
    while let Some(next) = PENDING.with_borrow_mut(|waiting| waiting.as_mut().and_then(Vec::pop)) {
        drop(next);
    }
    PENDING.set(None);
}
