//! The size-class cache of CPU memory: free lists of blocks, per thread for small blocks and shared for large
//! ones. A block is a header followed by its data.

use super::counts::{
    Counts, CountsLock, add_without_thread, live_bytes, lock_counts, small_cached, small_reused,
};
use super::{ALIGN, HEADER, Header};
use crate::error::{Error, Result};
use crate::process::sync::lock;
use std::alloc::Layout;
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Number of size classes: 1..=8 units of 64 bytes, then four steps per doubling.
const CLASSES: usize = 8 + 4 * 44;
/// Blocks below this class (up to 64 KiB) are cached per thread, without a lock.
const SMALL: usize = 8 + 4 * 7;
/// Small blocks cached per class and thread: this many, or `SMALL_KEPT_BYTES` of them if that is more. A
/// training step allocates hundreds of small tensors and frees them together.
const SMALL_KEPT: usize = 64;
const SMALL_KEPT_BYTES: usize = 1 << 20;
/// Blocks from this size on are aligned for huge pages: one page fault and one TLB entry instead of 512.
const HUGE_FROM: usize = 4 << 20;
const HUGE_PAGE: usize = 2 << 20;

/// The smallest class whose blocks hold this many bytes.
pub(crate) fn class_of(bytes: usize) -> u8 {
    let n = bytes.div_ceil(ALIGN).max(1);
    if n <= 8 {
        return (n - 1) as u8;
    }
    let shift = (n - 1).ilog2() as usize - 2;
    (8 + 4 * (shift - 1) + ((n - 1) >> shift) - 4) as u8
}

/// Data bytes of a block of this class, without its header.
fn class_bytes(class: u8) -> usize {
    let c = class as usize;
    if c < 8 {
        return (c + 1) * ALIGN;
    }
    let (shift, step) = ((c - 8) / 4 + 1, (c - 8) % 4);
    ((5 + step) << shift) * ALIGN
}

fn layout(class: u8) -> Option<Layout> {
    let size = class_bytes(class).checked_add(HEADER)?;
    Layout::from_size_align(size, if size >= HUGE_FROM { HUGE_PAGE } else { ALIGN }).ok()
}

/// Asks the system for huge pages under a new large block.
fn advise(block: NonNull<Header>, layout: Layout) {
    #[cfg(target_os = "linux")]
    if layout.align() == HUGE_PAGE {
        let whole = layout.size() / HUGE_PAGE * HUGE_PAGE;
        // SAFETY: these bytes lie inside the block; the advice changes no contents, a refusal has no effect.
        unsafe { libc::madvise(block.as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (block, layout);
}

/// Allocates a block of this class from the system, for a tensor of `bytes` bytes. Fails while the reserve
/// for small infallible requests (`src/process/blocks/spare.rs`) cannot be refilled.
fn fresh(class: u8, bytes: usize) -> Result<NonNull<Header>> {
    let out_of_memory =
        || Error::memory(format!("cannot allocate {bytes} bytes; {} bytes are in use", live_bytes()));
    let layout = layout(class).ok_or_else(out_of_memory)?;
    let ask = || match crate::process::blocks::refill() {
        // SAFETY: the layout contains a header, so its size is not zero.
        true => NonNull::new(unsafe { std::alloc::alloc(layout) }.cast()),
        false => None,
    };
    let retry = || {
        empty_cache();
        ask()
    };
    let header = ask().or_else(retry).ok_or_else(out_of_memory)?;
    FRESH.fetch_add(1, Ordering::Relaxed);
    advise(header, layout);
    Ok(header)
}

fn free(class: u8, header: NonNull<Header>) {
    if let Some(layout) = layout(class) {
        // SAFETY: `fresh` allocated the block with the layout of its class, and the caller gives it up.
        unsafe { std::alloc::dealloc(header.as_ptr().cast(), layout) }
    }
}

/// Number of blocks allocated from the system.
static FRESH: AtomicI64 = AtomicI64::new(0);
/// Number of allocations served from cached large blocks.
static REUSED: AtomicI64 = AtomicI64::new(0);

/// Number of allocations that took memory from the system, since the start.
pub fn fresh_allocations() -> i64 {
    FRESH.load(Ordering::Relaxed)
}

/// Number of allocations served from cached memory, since the start.
pub fn reused_allocations() -> i64 {
    REUSED.load(Ordering::Relaxed) + small_reused()
}

/// Bytes of cached large blocks.
static CACHED: AtomicI64 = AtomicI64::new(0);
/// The most bytes of large blocks that are cached.
static LIMIT: AtomicI64 = AtomicI64::new(1 << 30);

/// Bytes of cached host memory.
pub fn cached_bytes() -> i64 {
    CACHED.load(Ordering::Relaxed) + small_cached()
}

/// Sets the most bytes of large blocks that are cached (default 1 GiB), and empties the cache.
pub fn set_cache_limit(bytes: usize) {
    LIMIT.store(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
    empty_cache();
}

struct Blocks(Vec<Vec<NonNull<Header>>>);

// SAFETY: a block in a free list belongs to that list alone, so it may be used on any thread.
unsafe impl Send for Blocks {}

impl Blocks {
    #[inline]
    fn class(&mut self, class: u8) -> &mut Vec<NonNull<Header>> {
        if self.0.is_empty() {
            self.0.resize_with(CLASSES, Vec::new);
        }
        &mut self.0[class as usize]
    }

    /// Frees all blocks and returns their bytes.
    fn clear(&mut self) -> i64 {
        let mut freed = 0;
        for (class, list) in self.0.iter_mut().enumerate() {
            for header in list.drain(..) {
                freed += block_bytes(class as u8);
                free(class as u8, header);
            }
        }
        freed
    }
}

/// Bytes of a block of this class, including its header.
#[inline]
fn block_bytes(class: u8) -> i64 {
    (class_bytes(class) + HEADER) as i64
}

/// The small blocks and counts of a thread.
struct Local {
    blocks: RefCell<Blocks>,
    counts: Arc<Counts>,
}

impl Drop for Local {
    fn drop(&mut self) {
        self.blocks.get_mut().clear();
        self.counts.retire();
    }
}

thread_local! {
    static LOCAL: Local = Local { blocks: RefCell::new(Blocks(Vec::new())), counts: Counts::register() };
}
static LARGE_BLOCKS: Mutex<Blocks> = Mutex::new(Blocks(Vec::new()));

/// Guard of the locked cache of large blocks and memory counts.
pub(crate) struct CacheLock(#[allow(dead_code)] (MutexGuard<'static, Blocks>, CountsLock));

/// Locks the cache of large blocks and the counts of memory.
pub(crate) fn lock_cache() -> CacheLock {
    CacheLock((lock(&LARGE_BLOCKS), lock_counts()))
}

/// Takes a cached block of this class, if there is one, and counts the `bytes` of its tensor.
#[inline]
pub(crate) fn take(class: u8, bytes: usize) -> Option<NonNull<Header>> {
    LOCAL
        .try_with(|local| {
            let header = match class as usize >= SMALL {
                true => take_large(class)?,
                false => {
                    let header = local.blocks.borrow_mut().class(class).pop()?;
                    local.counts.add_reused(block_bytes(class));
                    header
                }
            };
            local.counts.add_live(bytes as i64);
            Some(header)
        })
        .unwrap_or(None)
}

/// Allocates a block of this class, and counts the `bytes` of its tensor.
#[cold]
pub(crate) fn make(class: u8, bytes: usize) -> Result<NonNull<Header>> {
    let header = fresh(class, bytes)?;
    if LOCAL.try_with(|local| local.counts.add_live(bytes as i64)).is_err() {
        add_without_thread(bytes as i64);
    }
    Ok(header)
}

/// Caches or frees a block, whose tensor had `bytes` bytes.
#[inline]
pub(crate) fn put(class: u8, bytes: usize, header: NonNull<Header>) {
    let kept = LOCAL.try_with(|local| {
        local.counts.add_live(-(bytes as i64));
        if class as usize >= SMALL {
            return keep_large(class, header);
        }
        let mut blocks = local.blocks.borrow_mut();
        let list = blocks.class(class);
        let keep =
            list.len() < SMALL_KEPT.max(SMALL_KEPT_BYTES / class_bytes(class)) && try_push(list, header);
        if keep {
            local.counts.add_cached(block_bytes(class));
        }
        keep
    });
    if kept.is_err() {
        add_without_thread(-(bytes as i64));
    }
    if kept != Ok(true) {
        free(class, header);
    }
}

/// Adds a block to a list; returns false if the list would have to grow and there is no memory.
#[inline(always)]
fn try_push(list: &mut Vec<NonNull<Header>>, header: NonNull<Header>) -> bool {
    if list.len() == list.capacity() && list.try_reserve(1).is_err() {
        return false;
    }
    list.push(header);
    true
}

fn take_large(class: u8) -> Option<NonNull<Header>> {
    let header = lock(&LARGE_BLOCKS).class(class).pop()?;
    CACHED.fetch_sub(block_bytes(class), Ordering::Relaxed);
    REUSED.fetch_add(1, Ordering::Relaxed);
    Some(header)
}

/// Caches a large block unless that would exceed `LIMIT`; returns whether it did.
fn keep_large(class: u8, header: NonNull<Header>) -> bool {
    let size = block_bytes(class);
    let fits = CACHED.fetch_add(size, Ordering::Relaxed) + size <= LIMIT.load(Ordering::Relaxed);
    let keep = fits && try_push(lock(&LARGE_BLOCKS).class(class), header);
    if !keep {
        CACHED.fetch_sub(size, Ordering::Relaxed);
    }
    keep
}

/// Returns to the system the cached memory of this thread, all large blocks, and what the C library keeps.
pub fn empty_cache() {
    let _ = LOCAL.try_with(|local| {
        let freed = local.blocks.borrow_mut().clear();
        local.counts.add_cached(-freed);
    });
    let freed = lock(&LARGE_BLOCKS).clear();
    CACHED.fetch_sub(freed, Ordering::Relaxed);
    crate::process::blocks::empty();
    trim();
}

/// Tells the C library to return freed memory to the system, which it keeps otherwise.
fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` touches only the C library's own lists, under its own locks.
    unsafe {
        libc::malloc_trim(0)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_blocks_are_reused_and_begin_on_huge_pages() {
        let (bytes, before) = (9 << 20, (fresh_allocations(), reused_allocations()));
        let class = class_of(bytes);
        let Ok(block) = fresh(class, bytes) else { return };
        assert!(fresh_allocations() > before.0 && (block.as_ptr() as usize).is_multiple_of(HUGE_PAGE));
        assert!(keep_large(class, block));
        let again = take_large(class);
        assert!(again.is_some() && reused_allocations() > before.1);
        again.inspect(|&block| free(class, block));
    }

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
