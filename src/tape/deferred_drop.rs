//! Freeing a graph of any depth without recursion.
//!
//! An entry that dies lets go of others, which may die with it; left to themselves the destructors would nest
//! as deep as the graph. Instead the first one to die on a thread opens a list, later ones put what they let
//! go of into it, and the first empties it. Saved values, hooks and gradients go the same way where they may
//! hold entries in turn: a checkpoint's inputs, a Python object, the gradient of a gradient.

use crate::tape::hooks::Hooks;
use crate::tape::node::{Edge, Node, Saved};
use crate::tensor::Traced;
use std::cell::RefCell;
use std::sync::Arc;

/// What a dead entry let go of, if dropping it may end further entries. It is held, never read.
#[allow(dead_code)]
pub enum Deferred {
    /// An entry that nobody else holds.
    Entry(Arc<Node>),
    /// Saved values that are more than plain arrays.
    Saved(Box<Saved>),
    /// The callbacks of an entry.
    Hooks(Box<Hooks>),
    /// A recorded gradient.
    Gradient(Arc<Traced>),
}

thread_local! {
    /// What waits to be dropped on this thread; `None` while nothing is being dropped.
    static PENDING: RefCell<Option<Vec<Deferred>>> = const { RefCell::new(None) };
}

/// Drops an edge of a dead entry.
#[inline]
pub fn drop_edge(edge: Edge) {
    // Two threads may let go at once, so the count alone does not tell who is last.
    if Arc::strong_count(&edge.node) == 1 {
        drop_later(Deferred::Entry(edge.node));
    } else if let Some(node) = Arc::into_inner(edge.node) {
        drop_later(Deferred::Entry(Arc::new(node)));
    }
}

/// Drops `field`, now or as soon as the thread is done with what it is dropping.
pub fn drop_later(field: Deferred) {
    let mut field = Some(field);
    let outermost = PENDING.try_with(|pending| {
        let mut pending = pending.borrow_mut();
        match (pending.as_mut(), field.take()) {
            (Some(waiting), Some(field)) => {
                waiting.push(field);
                false
            }
            (_, first) => {
                field = first;
                *pending = Some(Vec::new());
                true
            }
        }
    });
    // Without the list, at the end of a thread, `field` is dropped right here.
    if outermost != Ok(true) {
        return;
    }
    drop(field);
    while let Some(next) = PENDING.with(|g| g.borrow_mut().as_mut().and_then(Vec::pop)) {
        drop(next);
    }
    PENDING.with(|g| *g.borrow_mut() = None);
}
