//! Working memory of loops, kept by each thread: fresh pages would cost a tenth of a convolution.

use super::threads::Shared;
use crate::array::buffer::filled;
use crate::error::Result;
use std::cell::RefCell;
use std::marker::PhantomData;

/// A cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct CacheLine(#[allow(dead_code, reason = "memory that is written through pointers")] [u8; 64]);

/// How many buffers a thread caches.
const MOST_BUFFERS: usize = 16;
/// How many lines they may have together: 64 MB.
const MOST_LINES: usize = 1 << 20;

thread_local! {
    static FREE: RefCell<Vec<Vec<CacheLine>>> = const { RefCell::new(Vec::new()) };
}

/// A scratch buffer for elements of one type, aligned to cache lines. The thread that drops it caches it.
pub struct Scratch<T> {
    lines: Vec<CacheLine>,
    of: PhantomData<T>,
}

impl<T> Scratch<T> {
    /// Returns memory for `n` elements, with unspecified contents.
    pub fn new(n: usize) -> Result<Scratch<T>> {
        Ok(Scratch { lines: taken(lines_for::<T>(n), false)?, of: PhantomData })
    }

    /// Returns memory for `n` elements, all bits 0.
    pub fn zeroed(n: usize) -> Result<Scratch<T>> {
        Ok(Scratch { lines: taken(lines_for::<T>(n), true)?, of: PhantomData })
    }

    /// Returns memory in parts of these lengths, and the start of each; the contents are unspecified.
    #[inline(always)]
    pub fn parts<const N: usize>(lengths: [usize; N]) -> Result<(Scratch<T>, [*mut T; N])> {
        let mut at = [0; N];
        let mut total = 0;
        for (at, length) in at.iter_mut().zip(lengths) {
            *at = total;
            total += lines_for::<T>(length);
        }
        let mut lines = taken(total, false)?;
        let start = lines.as_mut_ptr();
        Ok((Scratch { lines, of: PhantomData }, at.map(|at| start.wrapping_add(at).cast::<T>())))
    }

    /// Returns a pointer to the first element.
    pub fn ptr(&mut self) -> *mut T {
        self.lines.as_mut_ptr().cast()
    }

    /// Returns a pointer to the first element, for a loop whose chunks use separate parts.
    pub fn shared(&mut self) -> Shared<T> {
        Shared::new(self.ptr())
    }
}

fn lines_for<T>(n: usize) -> usize {
    n.saturating_mul(size_of::<T>()).div_ceil(size_of::<CacheLine>())
}

/// The smallest cached buffer of at least `lines` lines, or a new one; filled with zeros if asked.
#[inline(never)]
fn taken(lines: usize, zeroed: bool) -> Result<Vec<CacheLine>> {
    if lines == 0 {
        return Ok(Vec::new());
    }
    let cached = FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        let fitting = free.iter().enumerate().filter(|(_, cached)| cached.len() >= lines);
        let best = fitting.min_by_key(|(_, cached)| cached.len()).map(|(i, _)| i);
        best.map(|i| free.swap_remove(i))
    });
    if let Ok(Some(mut cached)) = cached {
        if zeroed {
            cached[..lines].fill(CacheLine([0; 64]));
        }
        return Ok(cached);
    }
    filled(CacheLine([0; 64]), lines).or_else(|_| {
        // What is cached is too small, but it may be what is missing.
        let _ = FREE.try_with(RefCell::take);
        filled(CacheLine([0; 64]), lines)
    })
}

/// Caches a buffer. Where there are too many, drops the smallest; where they are too long, the largest.
#[inline(never)]
fn given_back(lines: Vec<CacheLine>) {
    if lines.is_empty() {
        return;
    }
    let _ = FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        free.push(lines);
        let length = |free: &[Vec<CacheLine>], i: usize| free[i].len();
        if free.iter().map(Vec::len).sum::<usize>() > MOST_LINES {
            let largest = (0..free.len()).max_by_key(|&i| length(&free, i)).unwrap_or(0);
            free.swap_remove(largest);
        }
        if free.len() > MOST_BUFFERS {
            let smallest = (0..free.len()).min_by_key(|&i| length(&free, i)).unwrap_or(0);
            free.swap_remove(smallest);
        }
    });
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        given_back(std::mem::take(&mut self.lines));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_and_bounded() -> Result<()> {
        let first = Scratch::<f32>::new(1000)?.ptr();
        let mut again = Scratch::<f64>::new(500)?;
        assert_eq!(again.ptr().cast(), first, "the same memory for another type");
        assert_eq!(again.ptr() as usize % 64, 0);
        let mut other = Scratch::<f32>::zeroed(100)?;
        assert_ne!(other.ptr().cast(), again.ptr());
        let large = Scratch::<u8>::new(20 << 20)?.ptr();
        let many: Vec<Scratch<u8>> = (0..40).map(|i| Scratch::new(64 * i)).collect::<Result<_>>()?;
        drop(many);
        drop(Scratch::<u8>::new(100 << 20)?);
        assert_eq!(Scratch::<u8>::new(20 << 20)?.ptr(), large, "small buffers do not evict a large one");
        let (count, lines) = FREE.with_borrow(|free| (free.len(), free.iter().map(Vec::len).sum::<usize>()));
        assert!(count <= MOST_BUFFERS && lines <= MOST_LINES, "{count} buffers, {lines} lines");
        Ok(())
    }

    #[test]
    fn parts_do_not_overlap() -> Result<()> {
        let (_scratch, [a, b, c]) = Scratch::<f32>::parts([3, 0, 17])?;
        assert_eq!((b as usize - a as usize, c as usize - b as usize), (64, 0));
        Ok(())
    }
}
