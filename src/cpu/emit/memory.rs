//! Memory that holds machine code: written first, executable afterwards, never both at once.
//!
//! Systems may refuse such memory (SELinux, `MemoryDenyWriteExecute` of systemd); programs then run by tiles.

use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many functions there may be at once: systems limit the mappings of a process.
const MOST: usize = 8192;

/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A mapping with machine code.
pub struct Executable {
    at: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory is only read and executed until the last owner drops it.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl Executable {
    /// Puts code into memory; `None` if the system refuses.
    pub fn new(code: &[u8]) -> Option<Executable> {
        if COUNT.fetch_add(1, Ordering::Relaxed) >= MOST {
            COUNT.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let made = Executable::mapped(code);
        if made.is_none() {
            COUNT.fetch_sub(1, Ordering::Relaxed);
        }
        made
    }

    fn mapped(code: &[u8]) -> Option<Executable> {
        let (read_write, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
        // SAFETY: a fresh mapping of whole pages, which nobody else knows.
        let at = unsafe { libc::mmap(null_mut(), code.len(), read_write, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return None;
        }
        let made = NonNull::new(at.cast::<u8>()).map(|at| (at, code.len()))?;
        // SAFETY: the mapping has room for the code, and is not shared yet.
        let refused = unsafe {
            std::ptr::copy_nonoverlapping(code.as_ptr(), made.0.as_ptr(), made.1);
            libc::mprotect(at, made.1, libc::PROT_READ | libc::PROT_EXEC) != 0
        };
        if refused {
            // SAFETY: it is this mapping, and nobody knows it.
            unsafe { libc::munmap(at, made.1) };
            return None;
        }
        Some(Executable { at: made.0, length: made.1 })
    }

    /// Where the code begins.
    pub fn start(&self) -> *const u8 {
        self.at.as_ptr()
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: the mapping is of this length, and nobody runs its code any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.length) };
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}
