//! Working memory of loops, kept by each thread from one call to the next: fresh pages would cost a tenth of
//! a convolution.

use super::threads::Shared;
use crate::array::buffer::filled;
use crate::error::Result;
use std::cell::RefCell;
use std::marker::PhantomData;

/// A cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code, reason = "memory that is written through pointers")] [u8; 64]);

/// Limits of a thread's cache: number of buffers, and number of lines in all (64 MB).
const KEPT: (usize, usize) = (16, 1 << 20);

thread_local! {
    static FREE: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// A scratch buffer for elements of one type, aligned to cache lines. The thread that drops it caches it.
pub struct Scratch<T> {
    lines: Vec<Line>,
    of: PhantomData<T>,
}

impl<T> Scratch<T> {
    /// Returns memory for `n` elements, with unspecified contents.
    pub fn new(n: usize) -> Result<Scratch<T>> {
        Ok(Scratch { lines: taken(lines_for::<T>(n))?, of: PhantomData })
    }

    /// Returns memory for `n` elements, all bits 0.
    pub fn zeroed(n: usize) -> Result<Scratch<T>> {
        let mut scratch = Scratch::new(n)?;
        scratch.lines[..lines_for::<T>(n)].fill(Line([0; 64]));
        Ok(scratch)
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
        let mut lines = taken(total)?;
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
    n.saturating_mul(size_of::<T>()).div_ceil(size_of::<Line>())
}

/// Takes the smallest cached buffer of at least `lines` lines, or allocates one.
#[inline(never)]
fn taken(lines: usize) -> Result<Vec<Line>> {
    let kept = FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        let fitting = free.iter().enumerate().filter(|(_, kept)| kept.len() >= lines);
        let best = fitting.min_by_key(|(_, kept)| kept.len()).map(|(i, _)| i);
        best.map(|i| free.swap_remove(i))
    });
    match kept {
        Ok(Some(kept)) => Ok(kept),
        // None is large enough, or the thread is ending and its cache is gone.
        _ => filled(Line([0; 64]), lines),
    }
}

/// Caches a buffer. Beyond [`KEPT`], drops the largest one if it exceeds a quarter of it, else the smallest.
#[inline(never)]
fn given_back(lines: Vec<Line>) {
    let _ = FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        free.push(lines);
        while free.len() > KEPT.0 || free.iter().map(Vec::len).sum::<usize>() > KEPT.1 {
            let smallest = (0..free.len()).min_by_key(|&i| free[i].len()).unwrap_or(0);
            let largest = (0..free.len()).max_by_key(|&i| free[i].len()).unwrap_or(0);
            let too_long = free[largest].len() > KEPT.1 / 4;
            free.swap_remove(if too_long { largest } else { smallest });
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
        let many: Vec<Scratch<u8>> = (0..40).map(|i| Scratch::new(64 * i)).collect::<Result<_>>()?;
        drop(many);
        drop(Scratch::<u8>::new(100 << 20)?);
        let (count, lines) = FREE.with_borrow(|free| (free.len(), free.iter().map(Vec::len).sum::<usize>()));
        assert!(count <= KEPT.0 && lines <= KEPT.1, "{count} pieces, {lines} lines");
        Ok(())
    }

    #[test]
    fn parts_do_not_overlap() -> Result<()> {
        let (_scratch, [a, b, c]) = Scratch::<f32>::parts([3, 0, 17])?;
        assert_eq!((b as usize - a as usize, c as usize - b as usize), (64, 0));
        Ok(())
    }
}
