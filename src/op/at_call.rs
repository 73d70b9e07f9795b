//! What changes from call to call of one operation.

use std::hash::{Hash, Hasher};

/// A value that is given at a call and is no part of what the operation is: the position of random numbers,
/// the number of a step, memory to write. All are equal and hash alike, so that what is kept for an operation
/// (a compiled kernel, a step of a program) serves every call of it.
#[derive(Clone, Copy, Default, Debug)]
pub struct AtCall<T>(pub T);

impl<T> PartialEq for AtCall<T> {
    fn eq(&self, _other: &AtCall<T>) -> bool {
        true
    }
}

impl<T> Eq for AtCall<T> {}

impl<T> Hash for AtCall<T> {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}
