//! Non-temporal stores, for results so large that they would be evicted from the cache before they are read.
//!
//! An ordinary store first reads the cache line that it writes. Where operands and result together exceed the
//! last-level cache, that read is a quarter of an addition's traffic, and useless. So results are made tile
//! by tile in L1 and leave it with non-temporal stores. Where everything fits, these would be slower, because
//! the next reader finds the result in memory only; hence [`pays`].

use super::isa::{Isa, isa};

/// Assumed size of the last-level cache that one core can use; it is not queried.
const LAST_LEVEL: usize = 32 << 20;

/// Whether a loop that reads and writes so many bytes in all should write past the cache.
pub fn pays(bytes: usize) -> bool {
    cfg!(target_arch = "x86_64") && bytes > LAST_LEVEL && isa() != Isa::Baseline
}

/// Copies `bytes` from a tile to memory with non-temporal stores.
///
/// # Safety
/// Both ranges exist and do not overlap. [`fence`] is called before another thread reads the result.
pub unsafe fn stream(to: *mut u8, from: *const u8, bytes: usize) {
    let head = to.align_offset(LINE).min(bytes);
    let lines = (bytes - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: guaranteed by the caller.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        stream_lines(to.add(head), from.add(head), lines);
        std::ptr::copy_nonoverlapping(from.add(tail), to.add(tail), bytes - tail);
    }
}

/// Writes `value` to `n` elements with non-temporal stores.
///
/// # Safety
/// The elements exist. [`fence`] is called before another thread reads them.
pub unsafe fn fill<T: Copy>(to: *mut T, value: T, n: usize) {
    let tile = [value; 512];
    for at in (0..n).step_by(tile.len()) {
        // SAFETY: guaranteed by the caller; the tile has as many elements.
        unsafe { stream(to.add(at).cast(), tile.as_ptr().cast(), tile.len().min(n - at) * size_of::<T>()) };
    }
}

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// Copies whole lines: with half a line per store, memory is a third slower.
///
/// # Safety
/// As for [`stream`]; `to` is aligned.
unsafe fn stream_lines(to: *mut u8, from: *const u8, lines: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        #[target_feature(enable = "avx512f")]
        unsafe fn avx512(to: *mut u8, from: *const u8, lines: usize) {
            for at in (0..lines).map(|i| i * LINE) {
                // SAFETY: guaranteed by the caller.
                unsafe { _mm512_stream_si512(to.add(at).cast(), _mm512_loadu_si512(from.add(at).cast())) };
            }
        }
        #[target_feature(enable = "avx2")]
        unsafe fn avx2(to: *mut u8, from: *const u8, lines: usize) {
            for at in (0..2 * lines).map(|i| i * LINE / 2) {
                // SAFETY: guaranteed by the caller.
                unsafe { _mm256_stream_si256(to.add(at).cast(), _mm256_loadu_si256(from.add(at).cast())) };
            }
        }
        match isa() {
            // SAFETY: `isa` found these features on this processor; the rest is guaranteed by the caller.
            Isa::Avx512 => return unsafe { avx512(to, from, lines) },
            // SAFETY: as above.
            Isa::Avx2 => return unsafe { avx2(to, from, lines) },
            Isa::Baseline => {}
        }
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::ptr::copy_nonoverlapping(from, to, lines * LINE) };
}

/// Makes the writes of [`stream`] visible to other threads in the order that they expect.
#[inline(always)]
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of the target.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_any_length_to_any_place() {
        let from: Vec<u8> = (0..300u32).map(|i| i as u8).collect();
        for start in [0, 1, 16, 63] {
            for n in [0, 1, 63, 64, 65, 200] {
                let mut to = vec![255u8; 300];
                // SAFETY: both are long enough.
                unsafe { stream(to.as_mut_ptr().add(start), from.as_ptr(), n) };
                fence();
                assert!(to[start..start + n] == from[..n] && to[start + n..].iter().all(|&b| b == 255));
            }
        }
        assert!(!pays(1 << 20));
    }
}
