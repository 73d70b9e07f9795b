//! What changes from call to call of one operation.

use std::hash::{Hash, Hasher};

/// A value that is given at a call and is no part of what the operation is: the position of random numbers, a
/// learning rate, memory to write. All are equal and hash alike, so that what is kept for an operation (a
/// compiled kernel, a step of a program) serves every call of it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Given<T>(pub T);

impl<T> PartialEq for Given<T> {
    fn eq(&self, _other: &Given<T>) -> bool {
        true
    }
}

impl<T> Eq for Given<T> {}

impl<T> Hash for Given<T> {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}
