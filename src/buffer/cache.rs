//! The size-class cache of CPU memory: free lists of blocks, per thread for small ones and shared for large ones.
//! A block is a header and the data behind it.

use super::{ALIGN, HEADER, Header};
use crate::error::{Error, Result};
use std::alloc::Layout;
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

/// Classes: 1..=8 units of 64 bytes, then four steps per doubling.
const CLASSES: usize = 8 + 4 * 44;
/// Blocks up to this class (64 KiB) stay on their thread, without a lock.
const SMALL: usize = 8 + 4 * 7;
/// Blocks kept per class and thread.
const SMALL_KEPT: usize = 64;

/// The class of blocks that hold so many bytes.
pub(super) fn class_of(bytes: usize) -> u8 {
    let n = bytes.div_ceil(ALIGN).max(1);
    if n <= 8 {
        return (n - 1) as u8;
    }
    let shift = (n - 1).ilog2() as usize - 2;
    (8 + 4 * (shift - 1) + ((n - 1) >> shift) - 4) as u8
}

/// Data bytes of a block of this class.
fn class_bytes(class: u8) -> usize {
    let c = class as usize;
    if c < 8 {
        return (c + 1) * ALIGN;
    }
    let (shift, step) = ((c - 8) / 4 + 1, (c - 8) % 4);
    ((5 + step) << shift) * ALIGN
}

fn layout(class: u8) -> Option<Layout> {
    Layout::from_size_align(class_bytes(class).checked_add(HEADER)?, ALIGN).ok()
}

/// A new block of this class from the system.
pub(super) fn fresh(class: u8, bytes: usize) -> Result<NonNull<Header>> {
    let out_of_memory =
        || Error::memory(format!("cannot allocate {bytes} bytes; {} bytes are in use", live_bytes()));
    let layout = layout(class).ok_or_else(out_of_memory)?;
    // SAFETY: the layout has a non-zero size.
    let mut block = unsafe { std::alloc::alloc(layout) };
    if block.is_null() {
        empty_cache();
        // SAFETY: as above.
        block = unsafe { std::alloc::alloc(layout) };
    }
    NonNull::new(block.cast()).ok_or_else(out_of_memory)
}

fn free(class: u8, header: NonNull<Header>) {
    if let Some(layout) = layout(class) {
        CACHED.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the block was allocated by `fresh` with the layout of its class.
        unsafe { std::alloc::dealloc(header.as_ptr().cast(), layout) }
    }
}

/// Bytes of live tensors.
pub(super) static LIVE: AtomicI64 = AtomicI64::new(0);
/// The most that [`LIVE`] has been.
static PEAK: AtomicI64 = AtomicI64::new(0);
static CACHED: AtomicI64 = AtomicI64::new(0);
/// The cache holds at most this many bytes of large blocks.
static LIMIT: AtomicI64 = AtomicI64::new(1 << 30);

/// Bytes of host memory held by live tensors.
pub fn live_bytes() -> i64 {
    LIVE.load(Ordering::Relaxed)
}

/// The most bytes of host memory that live tensors have held at once, since the start or [`reset_peak`].
pub fn peak_bytes() -> i64 {
    PEAK.load(Ordering::Relaxed).max(live_bytes())
}

/// Begins the search for the peak anew.
pub fn reset_peak() {
    PEAK.store(live_bytes(), Ordering::Relaxed);
}

/// Counts new memory.
#[inline]
pub(super) fn count(bytes: i64) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    if live > PEAK.load(Ordering::Relaxed) {
        PEAK.fetch_max(live, Ordering::Relaxed);
    }
}

/// Bytes of host memory kept for reuse.
pub fn cached_bytes() -> i64 {
    CACHED.load(Ordering::Relaxed)
}

/// Sets the most bytes of large blocks that are kept for reuse.
pub fn set_cache_limit(bytes: usize) {
    LIMIT.store(bytes as i64, Ordering::Relaxed);
    empty_cache();
}

struct Blocks(Vec<Vec<NonNull<Header>>>);

// SAFETY: the blocks in a free list have no other user.
unsafe impl Send for Blocks {}

impl Blocks {
    const fn new() -> Blocks {
        Blocks(Vec::new())
    }

    fn class(&mut self, class: u8) -> &mut Vec<NonNull<Header>> {
        if self.0.is_empty() {
            self.0.resize_with(CLASSES, Vec::new);
        }
        &mut self.0[class as usize]
    }

    fn clear(&mut self) {
        for (class, list) in self.0.iter_mut().enumerate() {
            for header in list.drain(..) {
                free(class as u8, header);
            }
        }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.clear();
    }
}

thread_local! {
    static SMALL_BLOCKS: RefCell<Blocks> = const { RefCell::new(Blocks::new()) };
}
static LARGE_BLOCKS: Mutex<Blocks> = Mutex::new(Blocks::new());

/// The cache of large blocks, locked.
pub(crate) struct CacheLock(#[allow(dead_code)] std::sync::MutexGuard<'static, Blocks>);

/// Locks the cache of large blocks.
pub(crate) fn lock_cache() -> CacheLock {
    CacheLock(LARGE_BLOCKS.lock().unwrap_or_else(|e| e.into_inner()))
}

/// The two free lists.
pub(super) static CACHE: Cache = Cache;

/// The two free lists: per thread for small blocks, shared for large ones.
pub(super) struct Cache;

impl Cache {
    #[inline]
    pub(super) fn with_small(&self, class: u8) -> Option<NonNull<Header>> {
        let header = if (class as usize) < SMALL {
            SMALL_BLOCKS.try_with(|b| b.borrow_mut().class(class).pop()).ok().flatten()
        } else {
            LARGE_BLOCKS.lock().unwrap_or_else(|e| e.into_inner()).class(class).pop()
        }?;
        CACHED.fetch_sub((class_bytes(class) + HEADER) as i64, Ordering::Relaxed);
        Some(header)
    }

    #[inline]
    pub(super) fn put(&self, class: u8, header: NonNull<Header>) {
        let size = (class_bytes(class) + HEADER) as i64;
        let total = CACHED.fetch_add(size, Ordering::Relaxed) + size;
        let kept = if (class as usize) < SMALL {
            SMALL_BLOCKS
                .try_with(|b| {
                    let mut blocks = b.borrow_mut();
                    let list = blocks.class(class);
                    let keep = list.len() < SMALL_KEPT;
                    if keep {
                        list.push(header);
                    }
                    keep
                })
                .unwrap_or(false)
        } else if total <= LIMIT.load(Ordering::Relaxed) {
            LARGE_BLOCKS.lock().unwrap_or_else(|e| e.into_inner()).class(class).push(header);
            true
        } else {
            false
        };
        if !kept {
            free(class, header);
        }
    }
}

/// Returns all cached memory of this thread, and all large blocks, to the system.
pub fn empty_cache() {
    let _ = SMALL_BLOCKS.try_with(|b| b.borrow_mut().clear());
    LARGE_BLOCKS.lock().unwrap_or_else(|e| e.into_inner()).clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_monotone_and_large_enough() {
        let mut last = 0;
        for bytes in (0..5000).chain((12..36).map(|p| (1usize << p) + 1)) {
            let class = class_of(bytes);
            assert!(class_bytes(class) >= bytes && class_bytes(class) <= bytes + bytes / 4 + 64, "{bytes}");
            assert!(class >= last && (class as usize) < CLASSES);
            last = class;
        }
    }
}
