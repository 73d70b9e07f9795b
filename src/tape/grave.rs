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
pub enum Remains {
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
    static GRAVE: RefCell<Option<Vec<Remains>>> = const { RefCell::new(None) };
}

/// Drops an edge of a dead entry.
#[inline]
pub fn bury_edge(edge: Edge) {
    // Two threads may let go at once, so the count alone does not tell who is last.
    if Arc::strong_count(&edge.node) == 1 {
        bury(Remains::Entry(edge.node));
    } else if let Some(node) = Arc::into_inner(edge.node) {
        bury(Remains::Entry(Arc::new(node)));
    }
}

/// Drops `remains`, now or as soon as the thread is done with what it is dropping.
pub fn bury(remains: Remains) {
    let mut remains = Some(remains);
    let outermost = GRAVE.try_with(|grave| {
        let mut grave = grave.borrow_mut();
        match (grave.as_mut(), remains.take()) {
            (Some(waiting), Some(remains)) => {
                waiting.push(remains);
                false
            }
            (_, first) => {
                remains = first;
                *grave = Some(Vec::new());
                true
            }
        }
    });
    // Without the list, at the end of a thread, `remains` is dropped right here.
    if outermost != Ok(true) {
        return;
    }
    drop(remains);
    while let Some(next) = GRAVE.with(|g| g.borrow_mut().as_mut().and_then(Vec::pop)) {
        drop(next);
    }
    GRAVE.with(|g| *g.borrow_mut() = None);
}
