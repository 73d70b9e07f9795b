//! Vectors as long as a tensor, whose memory may not be there: an error where `vec!` would end the process.

use super::live_bytes;
use crate::error::{Error, Result};
use crate::process::blocks;

/// An empty vector with room for `n` elements.
pub fn room<T>(n: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    match out.try_reserve_exact(n) {
        Ok(()) => Ok(out),
        Err(_) => Err(missing(n.saturating_mul(size_of::<T>()))),
    }
}

/// `n` times `value`.
pub fn filled<T: Clone>(value: T, n: usize) -> Result<Vec<T>> {
    let mut out = room(n)?;
    out.resize(n, value);
    Ok(out)
}

/// The numbers that an iterator gives, of which there are at most `n`.
pub fn gathered<T>(n: usize, from: impl Iterator<Item = T>) -> Result<Vec<T>> {
    let mut out = room(n)?;
    out.extend(from.take(n));
    Ok(out)
}

/// Makes room for one more element, doubling what there is.
#[inline]
pub fn grow<T>(list: &mut Vec<T>) -> Result<()> {
    if list.len() < list.capacity() {
        return Ok(());
    }
    list.try_reserve(1).map_err(|_| missing(list.len().saturating_mul(2 * size_of::<T>())))
}

/// Makes a list `n` elements long, where it is shorter, with this value behind what it has.
pub fn lengthen<T: Clone>(list: &mut Vec<T>, value: T, n: usize) -> Result<()> {
    let more = n.saturating_sub(list.len());
    list.try_reserve(more).map_err(|_| missing(n.saturating_mul(size_of::<T>())))?;
    list.resize(n.max(list.len()), value);
    Ok(())
}

/// Calls `f`, which takes up to so many bytes without asking whether there are any; an error if there are
/// not.
pub fn with_room<R>(bytes: usize, f: impl FnOnce() -> R) -> Result<R> {
    blocks::with_spare(bytes, f).ok_or_else(|| missing(bytes))
}

#[cold]
fn missing(bytes: usize) -> Error {
    Error::memory(format!(
        "cannot allocate {bytes} bytes of working memory; {} bytes are in use by tensors",
        live_bytes()
    ))
}
