//! Reserved memory for infallible allocations, which abort the process when they fail, as a growing `Vec`
//! does. The allocator uses it when the system has no memory left.
//!
//! Small requests, such as a node of the tape, share one block per process, which is freed for the first of
//! them that fails. Tensors cannot be allocated until the block is back, so that short memory shows where it
//! can be reported. `faer`, with large requests, runs with its own reserve ([`with`]).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The largest small request, in bytes.
const LITTLE: usize = 1 << 16;
/// Bytes reserved for small requests.
const SPARE: usize = 1 << 20;

static BLOCK: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// Bytes of the reserve not yet granted.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// The reserve of a thread: its block (null once freed), its bytes, and those not yet granted.
#[derive(Clone, Copy)]
struct Own {
    block: *mut u8,
    bytes: usize,
    left: usize,
}

const NONE: Own = Own { block: null_mut(), bytes: 0, left: 0 };

thread_local! {
    static OWN: Cell<Own> = const { Cell::new(NONE) };
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, super::ALIGN).ok()
}

/// Returns a block to the system.
///
/// # Safety
/// The block is null, or an unused block of `bytes` bytes from the system.
unsafe fn let_go(block: *mut u8, bytes: usize) {
    if let (false, Some(layout)) = (block.is_null(), layout(bytes)) {
        // SAFETY: the caller promises an unused block from the system, of this size and alignment.
        unsafe { System.dealloc(block, layout) };
    }
}

/// Serves a request that the system denied by freeing a reserve and asking again; null if none covers it.
///
/// # Safety
/// The size is not zero.
#[cold]
pub unsafe fn instead(request: Layout) -> *mut u8 {
    let size = request.size();
    // SAFETY: each block is this module's own and is taken out of its cell before it is freed. The caller
    // promises a size that is not zero.
    unsafe {
        let own = OWN.try_with(Cell::get).unwrap_or(NONE);
        if own.left >= size {
            let _ = OWN.try_with(|cell| cell.set(Own { block: null_mut(), left: own.left - size, ..own }));
            let_go(own.block, own.bytes);
            return System.alloc(request);
        }
        let take = |left: usize| left.checked_sub(size);
        if size > LITTLE || LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return null_mut();
        }
        let_go(BLOCK.swap(null_mut(), Ordering::AcqRel), SPARE);
        System.alloc(request)
    }
}

/// Allocates the reserve for small requests anew if it was freed; returns whether there is one.
pub fn refill() -> bool {
    if !BLOCK.load(Ordering::Relaxed).is_null() {
        return true;
    }
    let Some(layout) = layout(SPARE) else { return false };
    // SAFETY: the size is not zero. A block that loses the race was never shared, and is freed with its size.
    unsafe {
        let block = super::system(layout);
        if block.is_null() {
            return false;
        }
        match BLOCK.compare_exchange(null_mut(), block, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => LEFT.store(SPARE, Ordering::Relaxed),
            Err(_) => let_go(block, SPARE),
        }
    }
    true
}

/// Calls `f` with a reserve of `bytes` bytes for infallible requests of this thread; `None` without memory.
pub fn with<R>(bytes: usize, f: impl FnOnce() -> R) -> Option<R> {
    if bytes <= LITTLE {
        return Some(f());
    }
    /// Restores the previous reserve, also if `f` panics.
    struct Restore(Own);
    impl Drop for Restore {
        fn drop(&mut self) {
            let own = OWN.replace(self.0);
            // SAFETY: the block is this thread's reserve, of `bytes` bytes, and is out of its cell.
            unsafe { let_go(own.block, own.bytes) };
        }
    }
    // SAFETY: `bytes` exceeds `LITTLE`, so the size is not zero.
    let block = unsafe { super::system(layout(bytes)?) };
    if block.is_null() {
        return None;
    }
    let _restore = Restore(OWN.replace(Own { block, bytes, left: bytes }));
    Some(f())
}
