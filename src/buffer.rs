//! `Buffer`: reference-counted, 64-byte aligned memory from a size-class cache, or memory that somebody else
//! owns.
//!
//! A buffer is one pointer to a header; CPU data follows the header in the same allocation, so that a small
//! tensor costs one trip to a thread-local free list. Fresh pages cost more than most kernels, hence the
//! cache. The header carries the version that in-place operations bump and saved values are checked against.
//! Read next: `src/array.rs`, the strided view of a buffer.

use crate::error::{Error, Result};
use std::alloc::Layout;
use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU16, AtomicU32, AtomicUsize, Ordering, fence};

/// Alignment of every CPU buffer: one cache line, one AVX-512 register.
pub const ALIGN: usize = 64;

/// Where a tensor's memory lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Device {
    /// Host memory.
    #[default]
    Cpu,
    /// The GPU with this index.
    Gpu(u8),
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Gpu(i) => write!(f, "gpu:{i}"),
        }
    }
}

#[repr(C, align(64))]
struct Header {
    refs: AtomicUsize,
    data: *mut u8,
    bytes: usize,
    version: AtomicU32,
    /// Who wrote last; see `src/writers.rs`.
    writer: AtomicU16,
    class: u8,
    device: Device,
    /// Whether the memory was made in inference mode.
    inference: bool,
    /// The header of the memory that this is another name of; its own otherwise.
    root: *const Header,
    /// The owner of memory that is not ours: a NumPy array, a GPU allocation. `None` for cached memory.
    owner: Option<Box<dyn Any + Send + Sync>>,
}

const HEADER: usize = std::mem::size_of::<Header>();
const _: () = assert!(HEADER == ALIGN);

/// The owner of a header that is another name of this memory.
struct Alias(Buffer);

thread_local! {
    /// Whether memory that this thread makes belongs to inference mode.
    static INFERENCE: Cell<bool> = const { Cell::new(false) };
}

/// Turns inference mode on or off for memory that this thread makes; returns how it was.
pub fn set_inference(on: bool) -> bool {
    INFERENCE.replace(on)
}

/// Runs `f`, which makes memory that outlives inference mode.
pub fn outside_inference<T>(f: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            set_inference(self.0);
        }
    }
    let _restore = Restore(set_inference(false));
    f()
}

/// Whether memory that this thread makes belongs to inference mode.
pub fn inference() -> bool {
    INFERENCE.get()
}

/// Shared, reference-counted memory of one device.
pub struct Buffer(NonNull<Header>);

// SAFETY: the header is only mutated through atomics; the data is plain memory whose writers are ordered by
// the tensor library's callers, as with NumPy arrays.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Uninitialised host memory of at least `bytes` bytes.
    pub fn alloc(bytes: usize) -> Result<Buffer> {
        let class = class_of(bytes);
        let header = match CACHE.with_small(class) {
            Some(header) => header,
            None => fresh(class, bytes)?,
        };
        count(bytes as i64);
        // SAFETY: `header` points to an allocation of this class that nobody else uses.
        unsafe {
            header.as_ptr().write(Header {
                refs: AtomicUsize::new(1),
                data: header.as_ptr().cast::<u8>().add(HEADER),
                bytes,
                version: AtomicU32::new(0),
                writer: AtomicU16::new(0),
                class,
                device: Device::Cpu,
                inference: INFERENCE.get(),
                root: header.as_ptr(),
                owner: None,
            });
        }
        Ok(Buffer(header))
    }

    /// Memory that `owner` keeps alive; `data` is null for memory that the host cannot address.
    pub fn foreign(data: *mut u8, bytes: usize, device: Device, owner: Box<dyn Any + Send + Sync>) -> Buffer {
        Buffer::owned(data, bytes, device, INFERENCE.get(), owner)
    }

    /// A header for memory that `owner` keeps alive.
    fn owned(
        data: *mut u8,
        bytes: usize,
        device: Device,
        inference: bool,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Buffer {
        let header = Box::leak(Box::new(Header {
            refs: AtomicUsize::new(1),
            data,
            bytes,
            version: AtomicU32::new(0),
            writer: AtomicU16::new(0),
            class: 0,
            device,
            inference,
            root: std::ptr::null(),
            owner: Some(owner),
        }));
        header.root = header;
        Buffer(NonNull::from(header))
    }

    /// The same memory with a version of its own: writes through either are not noticed by the other.
    pub fn alias(&self) -> Buffer {
        let whole = self.owner::<Alias>().map_or(self, |alias| &alias.0).clone();
        let root = whole.0.as_ptr();
        let h = self.header();
        let mut alias = Buffer::owned(h.data, h.bytes, h.device, h.inference, Box::new(Alias(whole)));
        // SAFETY: the header is new, so this is its only user.
        unsafe { alias.0.as_mut() }.root = root;
        alias
    }

    #[inline(always)]
    fn header(&self) -> &Header {
        // SAFETY: the header lives as long as any `Buffer` that points to it.
        unsafe { self.0.as_ref() }
    }

    /// Address of the first byte on the host; null on other devices.
    #[inline(always)]
    pub fn ptr(&self) -> *mut u8 {
        self.header().data
    }

    /// Requested size in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.header().bytes
    }

    /// The device that holds the memory.
    #[inline(always)]
    pub fn device(&self) -> Device {
        self.header().device
    }

    /// The owner given to [`Buffer::foreign`], if it has type `T`.
    pub fn owner<T: 'static>(&self) -> Option<&T> {
        let owner = self.header().owner.as_ref()?;
        match owner.downcast_ref::<Alias>() {
            Some(alias) if TypeId::of::<T>() != TypeId::of::<Alias>() => alias.0.owner(),
            _ => owner.downcast_ref(),
        }
    }

    /// Whether the memory was made in inference mode.
    #[inline]
    pub fn is_inference(&self) -> bool {
        self.header().inference
    }

    /// Whether this handle is the only one.
    #[inline]
    pub fn is_unique(&self) -> bool {
        let h = self.header();
        h.refs.load(Ordering::Acquire) == 1 && std::ptr::eq(h.root, h)
    }

    /// Whether this is host memory that somebody else owns, such as a NumPy array's, or another tensor.
    pub fn is_borrowed(&self) -> bool {
        self.header().owner.is_some() && self.device() == Device::Cpu
    }

    /// Whether both handles share one memory.
    pub fn same(&self, other: &Buffer) -> bool {
        self.header().root == other.header().root
    }

    /// A number that identifies the memory while it lives.
    pub fn id(&self) -> usize {
        self.header().root as usize
    }

    /// How many in-place writes this memory has seen.
    #[inline]
    pub fn version(&self) -> u32 {
        self.header().version.load(Ordering::Relaxed)
    }

    /// Records an in-place write.
    pub fn bump_version(&self) {
        self.header().version.fetch_add(1, Ordering::Relaxed);
    }

    /// Records an in-place write by the operation of this name.
    pub fn written_by(&self, writer: &str) {
        self.written_as(crate::writers::number(writer));
    }

    /// Records an in-place write by the operation with this number.
    pub fn written_as(&self, writer: u16) {
        self.header().writer.store(writer, Ordering::Relaxed);
        self.bump_version();
    }

    /// The operation that wrote last, if any did.
    pub fn writer(&self) -> Option<&'static str> {
        crate::writers::name(self.header().writer.load(Ordering::Relaxed))
    }
}

impl Clone for Buffer {
    #[inline(always)]
    fn clone(&self) -> Buffer {
        self.header().refs.fetch_add(1, Ordering::Relaxed);
        Buffer(self.0)
    }
}

impl Drop for Buffer {
    #[inline(always)]
    fn drop(&mut self) {
        if self.header().refs.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            release(self.0);
        }
    }
}

/// Gives the memory of a dead header back to its cache or owner.
fn release(header: NonNull<Header>) {
    // SAFETY: the last handle is gone, so this is the only reference.
    let h = unsafe { &mut *header.as_ptr() };
    if h.owner.is_some() {
        // SAFETY: headers with an owner come from `Box::leak` in `Buffer::foreign`.
        drop(unsafe { Box::from_raw(header.as_ptr()) });
        return;
    }
    LIVE.fetch_sub(h.bytes as i64, Ordering::Relaxed);
    let class = h.class;
    CACHE.put(class, header);
}

// ---- size classes
// -------------------------------------------------------------------------------------------------

/// Classes: 1..=8 units of 64 bytes, then four steps per doubling.
const CLASSES: usize = 8 + 4 * 44;
/// Blocks up to this class (64 KiB) stay on their thread, without a lock.
const SMALL: usize = 8 + 4 * 7;
/// Blocks kept per class and thread.
const SMALL_KEPT: usize = 64;

fn class_of(bytes: usize) -> u8 {
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

fn fresh(class: u8, bytes: usize) -> Result<NonNull<Header>> {
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

static LIVE: AtomicI64 = AtomicI64::new(0);
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
fn count(bytes: i64) {
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

static CACHE: Cache = Cache;

/// The two free lists: per thread for small blocks, shared for large ones.
struct Cache;

impl Cache {
    #[inline]
    fn with_small(&self, class: u8) -> Option<NonNull<Header>> {
        let header = if (class as usize) < SMALL {
            SMALL_BLOCKS.try_with(|b| b.borrow_mut().class(class).pop()).ok().flatten()
        } else {
            LARGE_BLOCKS.lock().unwrap_or_else(|e| e.into_inner()).class(class).pop()
        }?;
        CACHED.fetch_sub((class_bytes(class) + HEADER) as i64, Ordering::Relaxed);
        Some(header)
    }

    #[inline]
    fn put(&self, class: u8, header: NonNull<Header>) {
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

    #[test]
    fn memory_is_reused_and_counted() -> Result<()> {
        let a = Buffer::alloc(1000)?;
        let address = a.ptr() as usize;
        assert_eq!(address % ALIGN, 0);
        let b = a.clone();
        assert!(!a.is_unique());
        drop((a, b));
        assert_eq!(Buffer::alloc(990)?.ptr() as usize, address);
        Ok(())
    }
}
