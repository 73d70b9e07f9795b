//! An allocator with per-thread free lists of small blocks, in front of the system allocator.
//!
//! A forward pass allocates thousands of nodes and values, and its backward frees them all. The C library
//! caches seven freed blocks per size and merges and splits the others, which took 6 % of the time of a graph
//! of scalars. Here a block enters and leaves its list in a few instructions. The Python extension installs
//! this allocator; Rust programs choose their own, or this one.
//! Read next: `src/process/blocks/spare.rs`, memory reserved for requests that must not fail.

mod spare;

pub use spare::{refill, with as with_spare};

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Sizes are rounded up to multiples of this.
const STEP: usize = 32;
/// Number of block sizes with lists: up to 1 KiB.
const CLASSES: usize = 32;
/// The most bytes in one list.
const LIMIT: usize = 1 << 20;
/// The alignment of every block.
const ALIGN: usize = 16;

/// The allocator: free lists in front of [`System`].
pub struct Blocks;

/// A free list of blocks of one size; the first word of each block is the address of the next.
struct List {
    first: Cell<*mut u8>,
    bytes: Cell<usize>,
}

struct Lists([List; CLASSES]);

thread_local! {
    static LISTS: Lists =
        const { Lists([const { List { first: Cell::new(null_mut()), bytes: Cell::new(0) } }; CLASSES]) };
}

/// The class of blocks of this layout, if there is one.
#[inline(always)]
fn class(layout: Layout) -> Option<usize> {
    let class = layout.size().wrapping_sub(1) / STEP;
    (class < CLASSES && layout.align() <= ALIGN).then_some(class)
}

/// The layout with which the blocks of a class are requested from the system.
#[inline(always)]
fn whole(class: usize) -> Layout {
    // SAFETY: the alignment is a power of two, and the size is at most 1 KiB.
    unsafe { Layout::from_size_align_unchecked((class + 1) * STEP, ALIGN) }
}

impl List {
    #[inline(always)]
    fn take(&self, size: usize) -> Option<*mut u8> {
        let block = self.first.get();
        if block.is_null() {
            return None;
        }
        // SAFETY: blocks in the list are free, and `put` wrote the next address into their first word.
        self.first.set(unsafe { block.cast::<*mut u8>().read() });
        self.bytes.set(self.bytes.get() - size);
        Some(block)
    }

    /// Adds a block unless that would exceed `LIMIT`; returns whether it did.
    ///
    /// # Safety
    /// The block is free, and has this list's size.
    #[inline(always)]
    unsafe fn put(&self, block: *mut u8, size: usize) -> bool {
        let bytes = self.bytes.get() + size;
        if bytes > LIMIT {
            return false;
        }
        // SAFETY: the caller promises a free block, and every class is larger than a word.
        unsafe { block.cast::<*mut u8>().write(self.first.get()) };
        self.first.set(block);
        self.bytes.set(bytes);
        true
    }
}

/// Returns the blocks in this thread's lists to the system.
pub fn empty() {
    let _ = LISTS.try_with(Lists::clear);
}

impl Lists {
    fn clear(&self) {
        for (class, list) in self.0.iter().enumerate() {
            let layout = whole(class);
            while let Some(block) = list.take(layout.size()) {
                // SAFETY: the system made the block with the layout of its class; the list gave it up.
                unsafe { System.dealloc(block, layout) };
            }
        }
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The size from which blocks count as large for [`fail_after`]; at the start, none do.
static LARGE: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Number of large blocks that may still be allocated.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Makes allocations of `large` bytes or more fail after `count` more of them, for tests of short memory. A
/// `large` of `usize::MAX` ends that.
pub fn fail_after(count: usize, large: usize) {
    LARGE.store(usize::MAX, Ordering::Relaxed);
    refill();
    LEFT.store(count, Ordering::Relaxed);
    LARGE.store(large, Ordering::Relaxed);
}

/// Whether a request of this size must fail for a test.
#[inline(always)]
fn fails(size: usize) -> bool {
    size >= LARGE.load(Ordering::Relaxed) && is_over()
}

#[cold]
fn is_over() -> bool {
    LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
}

/// Allocates from the system, unless the request must fail for a test.
///
/// # Safety
/// The size is not zero.
#[inline]
unsafe fn system(layout: Layout) -> *mut u8 {
    // SAFETY: the caller promises a size that is not zero.
    if fails(layout.size()) { null_mut() } else { unsafe { System.alloc(layout) } }
}

/// Allocates from the system, or from the reserve.
///
/// # Safety
/// The size is not zero.
#[inline]
unsafe fn block(layout: Layout) -> *mut u8 {
    // SAFETY: the caller promises a size that is not zero.
    unsafe {
        let block = system(layout);
        if block.is_null() { spare::instead(layout) } else { block }
    }
}

// SAFETY: a block has the size and alignment of its class, which are at least those requested. It is either
// in use or in one list, never both. Requests without a class go to the system.
unsafe impl GlobalAlloc for Blocks {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: here and below, `GlobalAlloc`'s caller promises a size that is not zero.
        let Some(class) = class(layout) else {
            // SAFETY: the caller promises a size that is not zero.
            return unsafe { block(layout) };
        };
        let whole = whole(class);
        match LISTS.try_with(|lists| lists.0[class].take(whole.size())) {
            Ok(Some(block)) => block,
            // The list is empty, or the thread is ending.
            // SAFETY: the size of a class is not zero.
            _ => unsafe { block(whole) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: a block without a class came from the system with this layout, and the caller gives it up.
        let Some(class) = class(layout) else { return unsafe { System.dealloc(block, layout) } };
        let whole = whole(class);
        // SAFETY: the caller gives the block up, and `alloc` made it with the layout of this class.
        if LISTS.try_with(|lists| unsafe { lists.0[class].put(block, whole.size()) }) != Ok(true) {
            // SAFETY: `alloc` made the block with the layout of its class, and no list took it.
            unsafe { System.dealloc(block, whole) };
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if class(layout).is_none() && !fails(layout.size()) {
            // SAFETY: the caller promises a size that is not zero.
            let block = unsafe { System.alloc_zeroed(layout) };
            if !block.is_null() {
                return block;
            }
        }
        // SAFETY: the caller promises a size that is not zero.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            // SAFETY: `alloc` returned a block of at least that size.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that `size` with this alignment is a valid layout.
        let next = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (class(layout), class(next)) {
            (None, None) => {
                let longer =
                    // SAFETY: a block without a class came from the system with this layout.
                    if fails(size) { null_mut() } else { unsafe { System.realloc(block, layout, size) } };
                if longer.is_null() {
                    // SAFETY: the caller's block has `layout`; the new block, if any, has `size` bytes.
                    unsafe { self.moved(block, layout, spare::instead(next), size) }
                } else {
                    longer
                }
            }
            (before, after) if before == after => block,
            // SAFETY: the caller's block has `layout`; the new block, if any, has `size` bytes.
            _ => unsafe { self.moved(block, layout, self.alloc(next), size) },
        }
    }
}

impl Blocks {
    /// Moves the contents of `from` to `to` and frees `from`; does nothing if `to` is null.
    ///
    /// # Safety
    /// `from` has `layout`; `to` is null or a distinct block of `size` bytes.
    unsafe fn moved(&self, from: *mut u8, layout: Layout, to: *mut u8, size: usize) -> *mut u8 {
        if !to.is_null() {
            // SAFETY: the caller promises distinct blocks of at least the bytes that are copied.
            unsafe {
                to.copy_from_nonoverlapping(from, layout.size().min(size));
                self.dealloc(from, layout);
            }
        }
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        // SAFETY: the alignments below are powers of two, and the sizes small.
        unsafe { Layout::from_size_align_unchecked(size, align) }
    }

    #[test]
    fn a_freed_block_comes_back_to_its_size() {
        // SAFETY: every block is freed once, with its current layout.
        unsafe {
            let first = Blocks.alloc(layout(440, 8));
            Blocks.dealloc(first, layout(440, 8));
            let other = Blocks.alloc(layout(200, 8));
            assert_ne!(other, first);
            let again = Blocks.alloc(layout(430, 16));
            assert_eq!(again, first);
            Blocks.dealloc(again, layout(430, 16));
            Blocks.dealloc(other, layout(200, 8));
        }
    }

    #[test]
    fn blocks_are_aligned_apart_and_keep_what_they_hold() {
        let sizes = [1, 8, 31, 32, 33, 64, 200, 1023, 1024, 1025, 5000];
        for align in [1, 8, 16, 64, 4096] {
            // SAFETY: each block is freed once, with its current layout; only its own bytes are accessed.
            unsafe {
                let blocks: Vec<*mut u8> =
                    sizes.iter().map(|&n| Blocks.alloc_zeroed(layout(n, align))).collect();
                for (&block, &n) in blocks.iter().zip(&sizes) {
                    assert_eq!(block as usize % align, 0);
                    assert!(std::slice::from_raw_parts(block, n).iter().all(|&byte| byte == 0));
                    block.write_bytes(n as u8 | 1, n);
                }
                for (&block, &n) in blocks.iter().zip(&sizes) {
                    // Within its class, to another, to the system and back.
                    let mut now = (block, n);
                    for next in [n + 1, 2 * n, 3000, n] {
                        now = (Blocks.realloc(now.0, layout(now.1, align), next), next);
                        let kept = std::slice::from_raw_parts(now.0, n.min(3000));
                        assert!(
                            kept.iter().all(|&byte| byte == n as u8 | 1),
                            "{n} to {next}, aligned to {align}"
                        );
                    }
                    Blocks.dealloc(now.0, layout(n, align));
                }
            }
        }
    }

    #[test]
    fn lists_are_bounded_and_end_with_their_thread() {
        let count = 2 * LIMIT / 1024;
        // SAFETY: each block is freed once, with its layout; addresses cross threads as numbers.
        let taken =
            || unsafe { (0..count).map(|_| Blocks.alloc(layout(1024, 8)) as usize).collect::<Vec<_>>() };
        let freed = move |blocks: Vec<usize>| {
            // SAFETY: each block was taken with this layout.
            blocks.iter().for_each(|&block| unsafe { Blocks.dealloc(block as *mut u8, layout(1024, 8)) });
            LISTS.with(|lists| lists.0[CLASSES - 1].bytes.get())
        };
        let blocks = taken();
        let kept = std::thread::spawn(move || freed(blocks)).join();
        assert_eq!(kept.ok(), Some(LIMIT));
        assert!(freed(taken()) <= LIMIT);
    }
}
