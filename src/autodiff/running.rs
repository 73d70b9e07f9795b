//! The stack of backward walks running on this thread, which hooks may query.

use super::prelude::*;
use crate::process::on_drop::OnDrop;
use crate::tape::ancestors::ancestors;
use rustc_hash::FxHashSet;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A set of nodes.
pub type Nodes = Rc<FxHashSet<*const Node>>;
/// A callback at the end of a walk.
pub type Finally = Box<dyn FnOnce() -> Result<()>>;

struct Running {
    id: u64,
    roots: SmallVec<[Arc<Node>; 1]>,
    /// The nodes that the walk can visit, computed when first needed.
    reach: Option<Nodes>,
    finally: Vec<Finally>,
}

static IDS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static RUNNING: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
}

/// Begins a walk from `roots`, which lasts until the guard is dropped. `reach` is the set of nodes that it
/// visits, if known already.
pub fn enter(roots: SmallVec<[Arc<Node>; 1]>, reach: Option<Nodes>) -> OnDrop<impl FnMut()> {
    let id = IDS.fetch_add(1, Ordering::Relaxed);
    RUNNING.with_borrow_mut(|r| r.push(Running { id, roots, reach, finally: Vec::new() }));
    // Drops outside the borrow: callbacks and nodes may hold Python objects with destructors.
    OnDrop(|| drop(RUNNING.try_with(|r| r.borrow_mut().pop())))
}

/// Runs the callbacks registered for the end of the innermost walk.
pub fn finish() -> Result<()> {
    loop {
        let next = RUNNING.with_borrow_mut(|r| {
            let finally = &mut r.last_mut()?.finally;
            (!finally.is_empty()).then(|| finally.remove(0))
        });
        match next {
            Some(callback) => callback()?,
            None => return Ok(()),
        }
    }
}

/// Registers a callback for the end of the innermost walk; returns false outside of one.
pub fn at_end(callback: Finally) -> bool {
    RUNNING.with_borrow_mut(|r| r.last_mut().map(|running| running.finally.push(callback)).is_some())
}

/// The ids of the running walks, innermost last.
pub fn ids() -> Vec<u64> {
    RUNNING.with_borrow(|r| r.iter().map(|running| running.id).collect())
}

/// Whether the innermost walk can visit this node.
pub fn reaches(node: &Arc<Node>) -> bool {
    let known = RUNNING.with_borrow(|r| r.last().map(|w| (w.reach.clone(), w.roots.clone())));
    let Some((reach, roots)) = known else { return false };
    let reach = reach.unwrap_or_else(|| {
        let reach: Nodes = Rc::new(ancestors(&roots, 0).into_iter().map(Arc::as_ptr).collect());
        RUNNING.with_borrow_mut(|r| {
            if let Some(running) = r.last_mut() {
                running.reach = Some(reach.clone());
            }
        });
        reach
    });
    reach.contains(&Arc::as_ptr(node))
}
