//! Views between real and complex: the real parts of complex numbers, and complex numbers made of real pairs.
//! Such a view counts elements of its own kind; the root is converted to that kind for reads and writes.

use crate::ops::writes::history::{self, Keep};
use crate::py::prelude::*;

/// Returns `root` in the kind of its views: complex numbers as pairs, or pairs as complex numbers.
pub fn counted(root: &Tensor, complex: bool) -> Result<Tensor> {
    match (root.dtype().is_complex(), complex) {
        (true, false) => root.view_as_real(),
        (false, true) => root.reshape(&Shape::new(&[root.numel() / 2, 2])?)?.view_as_complex(),
        _ => Ok(root.clone()),
    }
}

/// Inverts [`counted`]: returns `next` in the kind of `root`.
pub fn recounted(next: Tensor, root: &Tensor) -> Result<Tensor> {
    match (root.dtype().is_complex(), next.dtype().is_complex()) {
        (true, false) => next.view_as_complex(),
        (false, true) => next.view_as_real()?.reshape(&root.shape()),
        _ => Ok(next),
    }
}

/// Converts a number of elements of one kind to the other.
pub fn rescaled(count: usize, from: DType, to: DType) -> usize {
    match (from.is_complex(), to.is_complex()) {
        (true, false) => count * 2,
        (false, true) => count / 2,
        _ => count,
    }
}

/// Returns the value of a root after `write`, a write into a part, in the kind of the written view.
pub fn in_kind(
    old: &Tensor, complex: bool, write: impl FnOnce(&Tensor) -> Result<Option<Tensor>>,
) -> Result<Option<Tensor>> {
    if old.dtype().is_complex() == complex {
        return write(old);
    }
    match write(&counted(old, complex)?)? {
        Some(next) => history::kept(old, &recounted(next, old)?, Keep::Unrecorded).map(Some),
        None => Ok(None),
    }
}
