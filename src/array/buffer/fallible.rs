//! Scratch vectors of tensor size: out of memory is an error here, where `vec!` would abort the process.

use super::live_bytes;
use crate::error::{Error, Result};
use crate::process::blocks;

/// Returns an empty vector with capacity for `n` elements.
pub fn with_capacity<T>(n: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    match out.try_reserve_exact(n) {
        Ok(()) => Ok(out),
        Err(_) => Err(missing(n.saturating_mul(size_of::<T>()))),
    }
}

/// Returns a vector of `n` copies of `value`.
pub fn filled<T: Clone>(value: T, n: usize) -> Result<Vec<T>> {
    let mut out = with_capacity(n)?;
    out.resize(n, value);
    Ok(out)
}

/// Collects at most `n` items of an iterator.
pub fn collect_at_most<T>(n: usize, from: impl Iterator<Item = T>) -> Result<Vec<T>> {
    let mut out = with_capacity(n)?;
    out.extend(from.take(n));
    Ok(out)
}

/// Ensures capacity for one more element, growing geometrically.
#[inline]
pub fn grow<T>(list: &mut Vec<T>) -> Result<()> {
    if list.len() < list.capacity() {
        return Ok(());
    }
    list.try_reserve(1).map_err(|_| missing(list.len().saturating_mul(2 * size_of::<T>())))
}

/// Appends copies of `value` until `list` has `n` elements; leaves a longer list alone.
pub fn lengthen<T: Clone>(list: &mut Vec<T>, value: T, n: usize) -> Result<()> {
    let more = n.saturating_sub(list.len());
    list.try_reserve(more).map_err(|_| missing(n.saturating_mul(size_of::<T>())))?;
    list.resize(n.max(list.len()), value);
    Ok(())
}

/// Calls `f`, which allocates up to `bytes` bytes infallibly; an error if they cannot be set aside first.
pub fn with_reserve<R>(bytes: usize, f: impl FnOnce() -> R) -> Result<R> {
    blocks::with_spare(bytes, f).ok_or_else(|| missing(bytes))
}

#[cold]
fn missing(bytes: usize) -> Error {
    Error::memory(format!(
        "cannot allocate {bytes} bytes of working memory; {} bytes are in use by tensors",
        live_bytes()
    ))
}
