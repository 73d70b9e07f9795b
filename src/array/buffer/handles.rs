//! How many handles there are to memory, by which a script finds what others keep.

use super::Buffer;
use std::sync::atomic::Ordering;

impl Buffer {
    /// The number of handles to this memory; one of each alias counts.
    pub fn handles(&self) -> usize {
        // SAFETY: a root outlives the headers that alias it, as these hold a handle to it.
        unsafe { (*self.header().root).refs.load(Ordering::Acquire) }
    }
}
