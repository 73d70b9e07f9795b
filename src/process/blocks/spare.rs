//! Memory that is kept back for code that takes it without asking whether there is any: a vector that fails
//! to grow ends the process. The allocator turns to it when the system has no more.
//!
//! Requests for a little, such as an entry of the tape, share one block of the process. It is let go of for
//! the first of them that fails; tensors cannot be made until it is there again, so that short memory is
//! noticed where it can be said. A library that needs much, such as that of the factorisations, runs with a
//! block of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Requests for up to so many bytes are taken to succeed.
const LITTLE: usize = 1 << 16;
/// What is kept back for them.
const SPARE: usize = 1 << 20;

static BLOCK: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// What of it is still to be had.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// A block of a thread: where it is, unless it was let go of; its bytes; those still to be had.
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

/// Gives a block back to the system.
///
/// # Safety
/// It is null, or has so many bytes and came from the system; nobody uses it.
unsafe fn let_go(block: *mut u8, bytes: usize) {
    if let (false, Some(layout)) = (block.is_null(), layout(bytes)) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) };
    }
}

/// A block for a request that the system has no memory for; null if nothing was kept back for it.
///
/// # Safety
/// The size is not zero.
#[cold]
pub unsafe fn instead(request: Layout) -> *mut u8 {
    let size = request.size();
    // SAFETY: the blocks are this module's, and taken out before they are let go of; the caller's promise.
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

/// Keeps a block for small requests back again, if it was let go of; whether there is one.
pub fn refill() -> bool {
    if !BLOCK.load(Ordering::Relaxed).is_null() {
        return true;
    }
    let Some(layout) = layout(SPARE) else { return false };
    // SAFETY: the size is not zero; what loses the race goes back.
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

/// Calls `f` with a block of this thread kept back, for requests of up to so many bytes in all; `None` if
/// there is not that much.
pub fn with<R>(bytes: usize, f: impl FnOnce() -> R) -> Option<R> {
    if bytes <= LITTLE {
        return Some(f());
    }
    /// Restores what was kept back before, also if `f` panics.
    struct Restore(Own);
    impl Drop for Restore {
        fn drop(&mut self) {
            let own = OWN.replace(self.0);
            // SAFETY: the block is this thread's.
            unsafe { let_go(own.block, own.bytes) };
        }
    }
    // SAFETY: the size is not zero.
    let block = unsafe { super::system(layout(bytes)?) };
    if block.is_null() {
        return None;
    }
    let _restore = Restore(OWN.replace(Own { block, bytes, left: bytes }));
    Some(f())
}
