//! The size-class cache of CPU memory: free lists of blocks, per thread for small ones and shared for large
//! ones. A block is a header and the data behind it.

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

/// Classes: 1..=8 units of 64 bytes, then four steps per doubling.
const CLASSES: usize = 8 + 4 * 44;
/// Blocks up to this class (64 KiB) stay on their thread, without a lock.
const SMALL: usize = 8 + 4 * 7;
/// Blocks kept per class and thread: so many, or so many bytes of them if those are more. A step of training
/// makes hundreds of small tensors and lets go of them together.
const SMALL_KEPT: usize = 64;
const SMALL_KEPT_BYTES: usize = 1 << 20;
/// Blocks from this size on are laid out for huge pages: one page fault instead of 512, and one entry of the
/// processor's table of pages.
const HUGE_FROM: usize = 4 << 20;
/// The size of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// The class of blocks that hold so many bytes.
pub(crate) fn class_of(bytes: usize) -> u8 {
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
    let size = class_bytes(class).checked_add(HEADER)?;
    Layout::from_size_align(size, if size >= HUGE_FROM { HUGE_PAGE } else { ALIGN }).ok()
}

/// Asks for huge pages behind a large block that was just made.
fn advise(block: NonNull<Header>, layout: Layout) {
    #[cfg(target_os = "linux")]
    if layout.align() == HUGE_PAGE {
        let whole = layout.size() / HUGE_PAGE * HUGE_PAGE;
        // SAFETY: the block is as long as that; the advice changes no contents, and a refusal changes
        // nothing.
        unsafe { libc::madvise(block.as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (block, layout);
}

/// A new block of this class from the system, for a tensor of so many bytes. There is none without memory for
/// what is small and must not fail.
fn fresh(class: u8, bytes: usize) -> Result<NonNull<Header>> {
    let out_of_memory =
        || Error::memory(format!("cannot allocate {bytes} bytes; {} bytes are in use", live_bytes()));
    let layout = layout(class).ok_or_else(out_of_memory)?;
    let ask = || match crate::process::blocks::refill() {
        // SAFETY: the layout has a non-zero size.
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
        // SAFETY: the block was allocated by `fresh` with the layout of its class.
        unsafe { std::alloc::dealloc(header.as_ptr().cast(), layout) }
    }
}

/// Blocks that came from the system.
static FRESH: AtomicI64 = AtomicI64::new(0);
/// Large blocks that were used again.
static REUSED: AtomicI64 = AtomicI64::new(0);

/// How many allocations asked the system for memory, since the start.
pub fn fresh_allocations() -> i64 {
    FRESH.load(Ordering::Relaxed)
}

/// How many allocations were served from memory kept for reuse, since the start.
pub fn reused_allocations() -> i64 {
    REUSED.load(Ordering::Relaxed) + small_reused()
}

/// Bytes of large blocks that are kept.
static CACHED: AtomicI64 = AtomicI64::new(0);
/// The cache holds at most this many bytes of large blocks.
static LIMIT: AtomicI64 = AtomicI64::new(1 << 30);

/// Bytes of host memory kept for reuse.
pub fn cached_bytes() -> i64 {
    CACHED.load(Ordering::Relaxed) + small_cached()
}

/// Sets the most bytes of large blocks that are kept for reuse, 1 GiB at the start; gives back what there is.
pub fn set_cache_limit(bytes: usize) {
    LIMIT.store(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
    empty_cache();
}

struct Blocks(Vec<Vec<NonNull<Header>>>);

// SAFETY: the blocks in a free list have no other user.
unsafe impl Send for Blocks {}

impl Blocks {
    const fn new() -> Blocks {
        Blocks(Vec::new())
    }

    #[inline]
    fn class(&mut self, class: u8) -> &mut Vec<NonNull<Header>> {
        if self.0.is_empty() {
            self.0.resize_with(CLASSES, Vec::new);
        }
        &mut self.0[class as usize]
    }

    /// Frees all blocks; how many bytes they had.
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

/// Bytes of a block of this class with its header.
#[inline]
fn block_bytes(class: u8) -> i64 {
    (class_bytes(class) + HEADER) as i64
}

/// What a thread has of its own.
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
    static LOCAL: Local = Local { blocks: RefCell::new(Blocks::new()), counts: Counts::register() };
}
static LARGE_BLOCKS: Mutex<Blocks> = Mutex::new(Blocks::new());

/// The cache of large blocks and the counts of memory, locked.
pub(crate) struct CacheLock(#[allow(dead_code)] (MutexGuard<'static, Blocks>, CountsLock));

/// Locks the cache of large blocks and the counts of memory.
pub(crate) fn lock_cache() -> CacheLock {
    CacheLock((lock(&LARGE_BLOCKS), lock_counts()))
}

/// The two free lists.
pub(crate) static CACHE: Cache = Cache;

/// The two free lists: per thread for small blocks, shared for large ones.
pub(crate) struct Cache;

impl Cache {
    /// A block of this class that is kept, if there is one, for a tensor of so many bytes, which are counted.
    #[inline]
    pub(crate) fn take(&self, class: u8, bytes: usize) -> Option<NonNull<Header>> {
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

    /// A new block of this class for a tensor of so many bytes, which are counted.
    #[cold]
    pub(crate) fn make(&self, class: u8, bytes: usize) -> Result<NonNull<Header>> {
        let header = fresh(class, bytes)?;
        if LOCAL.try_with(|local| local.counts.add_live(bytes as i64)).is_err() {
            add_without_thread(bytes as i64);
        }
        Ok(header)
    }

    /// Keeps or frees a block of a tensor of so many bytes.
    #[inline]
    pub(crate) fn put(&self, class: u8, bytes: usize, header: NonNull<Header>) {
        let kept = LOCAL.try_with(|local| {
            local.counts.add_live(-(bytes as i64));
            if class as usize >= SMALL {
                return keep_large(class, header);
            }
            let mut blocks = local.blocks.borrow_mut();
            let list = blocks.class(class);
            let keep = list.len() < SMALL_KEPT.max(SMALL_KEPT_BYTES / class_bytes(class));
            if keep {
                list.push(header);
                local.counts.add_cached(block_bytes(class));
            }
            keep
        });
        match kept {
            Ok(true) => {}
            Ok(false) => free(class, header),
            Err(_) => {
                add_without_thread(-(bytes as i64));
                free(class, header);
            }
        }
    }
}

fn take_large(class: u8) -> Option<NonNull<Header>> {
    let header = lock(&LARGE_BLOCKS).class(class).pop()?;
    CACHED.fetch_sub(block_bytes(class), Ordering::Relaxed);
    REUSED.fetch_add(1, Ordering::Relaxed);
    Some(header)
}

/// Keeps a large block, unless that would be too much.
fn keep_large(class: u8, header: NonNull<Header>) -> bool {
    let size = block_bytes(class);
    if CACHED.fetch_add(size, Ordering::Relaxed) + size > LIMIT.load(Ordering::Relaxed) {
        CACHED.fetch_sub(size, Ordering::Relaxed);
        return false;
    }
    lock(&LARGE_BLOCKS).class(class).push(header);
    true
}

/// Returns all cached memory of this thread, all large blocks, and what the C library keeps, to the system.
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

/// Tells the C library to give back what was freed block by block, which it keeps otherwise.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    // SAFETY: it goes through the C library's own lists, under its own locks.
    unsafe { libc::malloc_trim(0) };
}

/// Other C libraries have no such call.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

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
