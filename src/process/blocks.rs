//! An allocator: freed small blocks wait in lists of their thread, in front of the system's allocator.
//!
//! A forward pass makes thousands of tape entries and values, and its backward frees them all. The C library
//! keeps seven freed blocks of a size at hand and merges and splits the others, which took 6 % of the time of
//! a graph of scalars. Here a block goes to its list and comes back from it in a few instructions. The Python
//! extension has this allocator; programs in Rust choose their own, or this one. Read next:
//! `src/process/blocks/spare.rs`, memory kept back for requests that must not fail.

mod spare;

pub use spare::{refill, with as with_spare};

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Sizes are rounded up to multiples of this.
const STEP: usize = 32;
/// How many sizes have lists: blocks up to 1 KiB.
const CLASSES: usize = 32;
/// Bytes that may wait in one list.
const LIMIT: usize = 1 << 20;
/// The alignment of every block.
const ALIGN: usize = 16;

/// Lists of freed blocks in front of [`System`].
pub struct Blocks;

/// Freed blocks of one size; the first word of each is the address of the next.
struct List {
    first: Cell<*mut u8>,
    bytes: Cell<usize>,
}

/// The lists of a thread.
struct Lists([List; CLASSES]);

thread_local! {
    static LISTS: Lists =
        const { Lists([const { List { first: Cell::new(null_mut()), bytes: Cell::new(0) } }; CLASSES]) };
}

/// The list for blocks of this layout, if there is one.
#[inline(always)]
fn class(layout: Layout) -> Option<usize> {
    let class = layout.size().wrapping_sub(1) / STEP;
    (class < CLASSES && layout.align() <= ALIGN).then_some(class)
}

/// What the blocks of a class are to the system.
#[inline(always)]
fn whole(class: usize) -> Layout {
    // SAFETY: the alignment is a power of two and the size small.
    unsafe { Layout::from_size_align_unchecked((class + 1) * STEP, ALIGN) }
}

impl List {
    /// Takes a block out.
    #[inline(always)]
    fn take(&self, size: usize) -> Option<*mut u8> {
        let block = self.first.get();
        if block.is_null() {
            return None;
        }
        // SAFETY: blocks in the list are free, and their first word is the next block's address.
        self.first.set(unsafe { block.cast::<*mut u8>().read() });
        self.bytes.set(self.bytes.get() - size);
        Some(block)
    }

    /// Puts a block in, if there is room; says whether there was.
    ///
    /// # Safety
    /// The block is free, and of this list's size.
    #[inline(always)]
    unsafe fn put(&self, block: *mut u8, size: usize) -> bool {
        let bytes = self.bytes.get() + size;
        if bytes > LIMIT {
            return false;
        }
        // SAFETY: nobody uses the block, which is larger than a word.
        unsafe { block.cast::<*mut u8>().write(self.first.get()) };
        self.first.set(block);
        self.bytes.set(bytes);
        true
    }
}

/// Gives the blocks that wait in this thread's lists back to the system.
pub fn empty() {
    let _ = LISTS.try_with(Lists::clear);
}

impl Lists {
    fn clear(&self) {
        for (class, list) in self.0.iter().enumerate() {
            let layout = whole(class);
            while let Some(block) = list.take(layout.size()) {
                // SAFETY: the block came from the system with this layout.
                unsafe { System.dealloc(block, layout) };
            }
        }
    }
}

impl Drop for Lists {
    /// Gives all blocks back when the thread ends.
    fn drop(&mut self) {
        self.clear();
    }
}

/// Blocks of so many bytes or more count as large for [`fail_after`]; none do at the start.
static LARGE: AtomicUsize = AtomicUsize::new(usize::MAX);
/// How many more large blocks there are before there are no more.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Lets `count` more blocks of `large` bytes or more be made, and no further one: how short memory is tested.
/// A `large` of `usize::MAX` ends that.
pub fn fail_after(count: usize, large: usize) {
    LARGE.store(usize::MAX, Ordering::Relaxed);
    refill();
    LEFT.store(count, Ordering::Relaxed);
    LARGE.store(large, Ordering::Relaxed);
}

/// Whether a block of this size must fail for a test.
#[inline(always)]
fn fails(size: usize) -> bool {
    size >= LARGE.load(Ordering::Relaxed) && is_over()
}

#[cold]
fn is_over() -> bool {
    LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
}

/// A block from the system, unless it must fail for a test.
///
/// # Safety
/// The size is not zero.
#[inline]
unsafe fn system(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promise.
    if fails(layout.size()) { null_mut() } else { unsafe { System.alloc(layout) } }
}

/// A block from the system, or from what is kept back.
///
/// # Safety
/// The size is not zero.
#[inline]
unsafe fn block(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let block = system(layout);
        if block.is_null() { spare::instead(layout) } else { block }
    }
}

// SAFETY: a block has the size and alignment of its class, which are at least those asked for; it is in use
// or in one list, never both; whatever has no class is the system's.
unsafe impl GlobalAlloc for Blocks {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: here and below, the caller's promise.
        let Some(class) = class(layout) else {
            // SAFETY: the caller's promise.
            return unsafe { block(layout) };
        };
        let whole = whole(class);
        match LISTS.try_with(|lists| lists.0[class].take(whole.size())) {
            Ok(Some(block)) => block,
            // No block waits, or the thread is ending.
            // SAFETY: the caller's promise; the size of a class is not zero.
            _ => unsafe { block(whole) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block is the system's, with this layout.
        let Some(class) = class(layout) else { return unsafe { System.dealloc(block, layout) } };
        let whole = whole(class);
        // SAFETY: the block is free now, and of this class.
        if LISTS.try_with(|lists| unsafe { lists.0[class].put(block, whole.size()) }) != Ok(true) {
            // SAFETY: the block has the layout of its class, and no list took it.
            unsafe { System.dealloc(block, whole) };
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if class(layout).is_none() && !fails(layout.size()) {
            // SAFETY: the caller's promise.
            let block = unsafe { System.alloc_zeroed(layout) };
            if !block.is_null() {
                return block;
            }
        }
        // SAFETY: the caller's promise.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            // SAFETY: the block has at least that size.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the new size is a valid one.
        let next = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (class(layout), class(next)) {
            (None, None) => {
                let longer =
                    // SAFETY: the block is the system's, with this layout.
                    if fails(size) { null_mut() } else { unsafe { System.realloc(block, layout, size) } };
                if longer.is_null() {
                    // SAFETY: the block has this layout, and the other one this size.
                    unsafe { self.moved(block, layout, spare::instead(next), size) }
                } else {
                    longer
                }
            }
            (before, after) if before == after => block,
            // SAFETY: the block has this layout, and the other one this size.
            _ => unsafe { self.moved(block, layout, self.alloc(next), size) },
        }
    }
}

impl Blocks {
    /// Moves what a block holds to another, if there is one.
    ///
    /// # Safety
    /// The block has this layout, and the other one this size.
    unsafe fn moved(&self, from: *mut u8, layout: Layout, to: *mut u8, size: usize) -> *mut u8 {
        if !to.is_null() {
            // SAFETY: the caller's promise.
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
        // SAFETY: the alignments below are powers of two, the sizes small.
        unsafe { Layout::from_size_align_unchecked(size, align) }
    }

    #[test]
    fn a_freed_block_comes_back_to_its_size() {
        // SAFETY: every block is freed once, with the layout that it has then.
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
            // SAFETY: as above; only the block's own bytes are written and read.
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
        // SAFETY: as above; addresses cross threads as numbers, and each block is freed once.
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
