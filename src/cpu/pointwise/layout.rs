//! What the operands of an elementwise loop have in common, and where they share memory.

use crate::cpu::prelude::*;

/// Returns the common shape of all operands under NumPy's broadcasting rules.
pub fn broadcast(x: &[&Array]) -> Result<Shape> {
    let mut shape = x.first().map_or(Shape::SCALAR, |a| a.shape());
    for a in x.iter().skip(1) {
        shape = shape.broadcast(&a.shape()).ok_or_else(|| {
            Error::shape(format!("internal: shapes {shape} and {} do not broadcast together", a.shape()))
        })?;
    }
    Ok(shape)
}

/// Returns the dtype of all operands.
pub fn common_dtype(x: &[&Array]) -> Result<DType> {
    let dtype = x.first().map_or(DType::F32, |a| a.dtype());
    match x.iter().find(|a| a.dtype() != dtype) {
        None => Ok(dtype),
        Some(other) => {
            Err(Error::dtype(format!("internal: one dtype expected, got {dtype} and {}", other.dtype())))
        }
    }
}

/// The result dtype of an elementwise rule: that of the operands, or the half dtype if they meet float32.
#[inline(always)]
pub fn rule_dtype(x: &[&Array]) -> Result<DType> {
    match x {
        [first, others @ ..] if others.iter().all(|a| a.dtype() == first.dtype()) => Ok(first.dtype()),
        _ => mixed_dtype(x),
    }
}

/// [`rule_dtype`] of operands that differ.
fn mixed_dtype(x: &[&Array]) -> Result<DType> {
    DType::of_rule(x.iter().map(|a| a.dtype())).map_or_else(|| common_dtype(x), Ok)
}

/// The error of a kernel called for a dtype that it does not have, which is a bug of the caller.
#[cold]
pub fn wrong_dtype(kernel: &str, dtype: DType) -> Error {
    Error::dtype(format!("internal: the {kernel} kernel got dtype {dtype}"))
}

/// Returns the addresses of the first byte and one past the last byte of a view.
fn extent(a: &Array) -> (isize, isize) {
    let size = a.dtype().size() as isize;
    let first = a.buffer().ptr() as isize + a.offset() as isize * size;
    let (mut low, mut high) = (first, first + size);
    for i in 0..a.rank() {
        let reach = (a.dim(i) as isize - 1) * a.stride(i) * size;
        low += reach.min(0);
        high += reach.max(0);
    }
    (low, high)
}

/// Whether two views may share memory.
pub fn overlaps(a: &Array, b: &Array) -> bool {
    let ((a0, a1), (b0, b1)) = (extent(a), extent(b));
    a.numel() > 0 && b.numel() > 0 && a0 < b1 && b0 < a1
}
