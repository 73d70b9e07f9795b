//! The stack of custom-function calls of this thread. It identifies a function that closes over a tensor of
//! an enclosing transform: its forward runs below that transform, where the tensor is meaningless.

use crate::error::Error;
use crate::interp::{Interp, Tag};
use crate::process::on_drop::OnDrop;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// The name and the interpreter chain of each call, innermost last.
    static CALLS: RefCell<Vec<(&'static str, Arc<Interp>)>> = const { RefCell::new(Vec::new()) };
}

/// Pushes a call of the function `name` under `chain` until the guard is dropped.
pub fn begin(name: &'static str, chain: Arc<Interp>) -> OnDrop<impl FnMut()> {
    CALLS.with_borrow_mut(|calls| calls.push((name, chain)));
    // Drops outside the borrow.
    OnDrop(|| drop(CALLS.try_with(|calls| calls.borrow_mut().pop())))
}

/// The error for a value of the interpreter `tag` that a custom function's forward closes over; `None` if
/// that interpreter encloses no call.
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
