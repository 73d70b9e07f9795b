//! The calls of custom functions that this thread is in: who uses a value of a transform around the call
//! without having it as an argument. The forward runs below that transform, where the value means nothing.

use crate::error::Error;
use crate::interp::{Interp, Tag};
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// Name and chain of interpreters of each call, innermost last.
    static CALLS: RefCell<Vec<(&'static str, Arc<Interp>)>> = const { RefCell::new(Vec::new()) };
}

/// Ends a call when dropped.
pub struct CallGuard(());

impl Drop for CallGuard {
    fn drop(&mut self) {
        let ended = CALLS.try_with(|calls| calls.borrow_mut().pop());
        // Outside the borrow.
        drop(ended);
    }
}

/// Begins a call of the function `name` under `chain`.
#[must_use]
pub fn begin(name: &'static str, chain: Arc<Interp>) -> CallGuard {
    CALLS.with_borrow_mut(|calls| calls.push((name, chain)));
    CallGuard(())
}

/// The error for a value of the interpreter `tag` that came into the forward of a custom function by a
/// closure; `None` if that interpreter is not around any call.
pub fn closure(tag: Tag) -> Option<Error> {
    let name = CALLS.with_borrow(|calls| {
        let around = |call: &&(&'static str, Arc<Interp>)| call.1.contains(tag);
        calls.iter().rev().find(around).map(|call| call.0)
    })?;
    Some(Error::autodiff(format!(
        "{name}: the function closes over a tensor of an enclosing transform, and its rules would miss the \
         derivative; make it an argument, or detach() it outside of the function"
    )))
}
