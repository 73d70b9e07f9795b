//! `Buffer`: reference-counted, 64-byte aligned memory from a size-class cache, or memory of another owner.
//!
//! A buffer is one pointer to a header. CPU data follows the header in the same allocation, so that a small
//! tensor costs one access to a thread-local free list. Memory is cached because fresh pages cost more than
//! most kernels. The header holds the version that in-place writes bump and that saved tensors compare.
//! Read next: `src/array/mod.rs`, the strided view of a buffer.

mod cache;
mod counts;
mod fallible;
mod handles;

pub(crate) use cache::{CacheLock, lock_cache};
pub use cache::{cached_bytes, empty_cache, fresh_allocations, reused_allocations, set_cache_limit};
pub use counts::{live_bytes, peak_bytes, reset_peak, restore_peak};
pub use fallible::{collect_at_most, filled, grow, lengthen, with_capacity, with_reserve};

use crate::error::Result;
use cache::class_of;
use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicUsize, Ordering, fence};

/// Alignment of cached CPU memory: one cache line, one AVX-512 register.
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
    /// The number of the last in-place operation; see `src/array/writers.rs`.
    writer: AtomicU16,
    class: u8,
    device: Device,
    inference: bool,
    /// The tag that [`Buffer::born`] returns, in 48 bits.
    born_high: u16,
    born_low: u32,
    /// The header this one aliases, or itself.
    root: *const Header,
    /// The owner of foreign memory: a NumPy array, a GPU allocation, an [`Alias`]. `None` for cached memory.
    owner: Option<Owner>,
}

/// What keeps foreign memory alive.
type Owner = Box<dyn Any + Send + Sync>;

impl Header {
    /// Returns the header of a new buffer. The caller sets `class`, of cached memory, and `root`.
    #[inline(always)]
    fn new(data: *mut u8, bytes: usize, device: Device, marks: Marks, owner: Option<Owner>) -> Header {
        let Marks { inference, born } = marks;
        // 48 bits suffice for the number of transforms and branches in a process.
        let (born_high, born_low) = ((born >> 32) as u16, born as u32);
        let (refs, version, writer) = (AtomicUsize::new(1), AtomicU32::new(0), AtomicU16::new(0));
        Header {
            refs,
            data,
            bytes,
            version,
            writer,
            class: 0,
            device,
            inference,
            born_high,
            born_low,
            root: std::ptr::null(),
            owner,
        }
    }
}

const HEADER: usize = std::mem::size_of::<Header>();
const _: () = assert!(HEADER == ALIGN);

/// The owner of a header that aliases this buffer.
struct Alias(Buffer);

/// Marks of the memory that a thread allocates.
#[derive(Clone, Copy)]
struct Marks {
    inference: bool,
    /// The tag of the youngest transform or branch that the thread is in.
    born: u64,
}

thread_local! {
    static MARKS: Cell<Marks> = const { Cell::new(Marks { inference: false, born: 0 }) };
}

/// Sets whether memory that this thread allocates is marked as made in inference mode; returns the old value.
pub fn set_inference(on: bool) -> bool {
    let marks = MARKS.get();
    MARKS.set(Marks { inference: on, ..marks });
    marks.inference
}

/// Marks memory that this thread allocates with the tag of a transform or branch, unless that of a younger
/// one is in force; returns the tag to restore.
pub fn enter_transform(tag: u64) -> u64 {
    let marks = MARKS.get();
    MARKS.set(Marks { born: tag.max(marks.born), ..marks });
    marks.born
}

/// Restores the tag that [`enter_transform`] returned.
pub fn leave_transform(before: u64) {
    // `try_with`: a region that was never left may be dropped while its thread ends.
    let _ = MARKS.try_with(|marks| marks.set(Marks { born: before, ..marks.get() }));
}

/// Runs `f` with inference mode off for allocations: its memory outlives inference mode.
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

/// Whether memory that this thread allocates is marked as made in inference mode.
pub fn inference() -> bool {
    MARKS.get().inference
}

/// Reference-counted memory of one device.
pub struct Buffer(NonNull<Header>);

// SAFETY: a shared header is mutated through atomics only. The data is plain memory; callers of the library
// order its writers, as with NumPy arrays.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// The range of its addresses; on a GPU, a range that identifies the memory.
    pub(crate) fn span(&self) -> (usize, usize) {
        match self.device() {
            Device::Cpu => (self.ptr() as usize, self.ptr() as usize + self.bytes()),
            Device::Gpu(_) => (self.id(), self.id() + 1),
        }
    }

    /// Allocates at least `bytes` bytes of uninitialised host memory.
    pub fn alloc(bytes: usize) -> Result<Buffer> {
        let class = class_of(bytes);
        let header = match cache::take(class, bytes) {
            Some(header) => header,
            None => cache::make(class, bytes)?,
        };
        // SAFETY: the cache handed out `header`, a block of this class, to this call alone.
        unsafe {
            let data = header.as_ptr().cast::<u8>().add(HEADER);
            header.as_ptr().write(Header::new(data, bytes, Device::Cpu, MARKS.get(), None));
            (*header.as_ptr()).class = class;
            (*header.as_ptr()).root = header.as_ptr();
        }
        Ok(Buffer(header))
    }

    /// Wraps memory that `owner` keeps alive; `data` is null for memory that the host cannot address.
    pub fn foreign(data: *mut u8, bytes: usize, device: Device, owner: Owner) -> Buffer {
        Buffer::owned(data, bytes, device, MARKS.get(), owner)
    }

    fn owned(data: *mut u8, bytes: usize, device: Device, marks: Marks, owner: Owner) -> Buffer {
        let header = Box::leak(Box::new(Header::new(data, bytes, device, marks, Some(owner))));
        header.root = header;
        Buffer(NonNull::from(header))
    }

    /// Returns the same memory with a separate version: neither notices in-place writes through the other.
    pub fn alias(&self) -> Buffer {
        let whole = self.owner::<Alias>().map_or(self, |alias| &alias.0).clone();
        let root = whole.0.as_ptr();
        let h = self.header();
        let marks = Marks { inference: h.inference, born: self.born() };
        let mut alias = Buffer::owned(h.data, h.bytes, h.device, marks, Box::new(Alias(whole)));
        // SAFETY: `Buffer::owned` just made this header, and `alias` is its only handle.
        unsafe { alias.0.as_mut() }.root = root;
        alias
    }

    #[inline(always)]
    fn header(&self) -> &Header {
        // SAFETY: `self` holds a reference count, so the header is alive.
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

    /// The owner given to [`Buffer::foreign`], if it has type `T`; an alias returns that of its memory.
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

    /// The tag of the youngest transform or branch in which the memory was made; 0 outside of all.
    pub fn born(&self) -> u64 {
        u64::from(self.header().born_high) << 32 | u64::from(self.header().born_low)
    }

    /// Whether this handle is the only one, and not an alias.
    #[inline]
    pub fn is_unique(&self) -> bool {
        let h = self.header();
        h.refs.load(Ordering::Acquire) == 1 && std::ptr::eq(h.root, h)
    }

    /// Whether this is host memory with another owner, such as a NumPy array or an aliased buffer.
    pub fn is_borrowed(&self) -> bool {
        self.header().owner.is_some() && self.device() == Device::Cpu
    }

    /// Whether both are handles to, or aliases of, the same memory.
    pub fn same(&self, other: &Buffer) -> bool {
        self.header().root == other.header().root
    }

    /// A number that identifies the memory while it is alive; aliases share it.
    pub fn id(&self) -> usize {
        self.header().root as usize
    }

    /// The number of in-place writes recorded so far.
    #[inline]
    pub fn version(&self) -> u32 {
        self.header().version.load(Ordering::Relaxed)
    }

    /// Sets the number of writes of memory that an operation in a script made just now: nothing has saved it.
    pub fn set_version(&self, version: u32) {
        self.header().version.store(version, Ordering::Relaxed);
    }

    /// [`Buffer::version`] of the memory that this one is an alias of; its own if it is none.
    pub fn root_version(&self) -> u32 {
        self.owner::<Alias>().map_or(self, |alias| &alias.0).version()
    }

    /// Sets [`Buffer::root_version`], where memory holds again what it held at that version.
    pub fn restore_version(&self, version: u32) {
        self.owner::<Alias>().map_or(self, |alias| &alias.0).set_version(version);
    }

    /// Records an in-place write.
    pub fn bump_version(&self) {
        self.header().version.fetch_add(1, Ordering::Relaxed);
    }

    /// Records an in-place write by the operation named `writer`.
    pub fn written_by(&self, writer: &str) {
        self.written_as(crate::array::writers::number(writer));
    }

    /// Records an in-place write by the operation with this number.
    pub fn written_as(&self, writer: u16) {
        self.header().writer.store(writer, Ordering::Relaxed);
        self.bump_version();
    }

    /// The name of the last operation that wrote in place, if any did.
    pub fn writer(&self) -> Option<&'static str> {
        crate::array::writers::name(self.header().writer.load(Ordering::Relaxed))
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

/// The number of threads that watch which memory is released.
static WATCHERS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The numbers of the memory released so far, where this thread watches.
    static RELEASED: RefCell<Option<Vec<usize>>> = const { RefCell::new(None) };
}

/// Begins or ends watching, in this thread, which memory it releases.
pub fn watch_releases(on: bool) {
    match (RELEASED.replace(on.then(Vec::new)).is_some(), on) {
        (false, true) => drop(WATCHERS.fetch_add(1, Ordering::Relaxed)),
        (true, false) => drop(WATCHERS.fetch_sub(1, Ordering::Relaxed)),
        _ => {}
    }
}

/// Gives `f` the numbers ([`Buffer::id`]) of memory that this thread released since the last call.
pub fn released(mut f: impl FnMut(usize)) {
    RELEASED.with_borrow_mut(|released| released.iter_mut().for_each(|all| all.drain(..).for_each(&mut f)))
}

/// Takes note of released memory; an alias is none.
#[cold]
fn note_release(id: usize, is_root: bool) {
    let _ = RELEASED.try_with(|released| {
        if let (true, Ok(mut released)) = (is_root, released.try_borrow_mut())
            && let Some(released) = &mut *released
        {
            released.push(id);
        }
    });
}

/// Returns the memory of a dead header to the cache or its owner.
fn release(header: NonNull<Header>) {
    // SAFETY: `drop` saw the last reference count go, so nothing else refers to the header.
    let h = unsafe { &mut *header.as_ptr() };
    if WATCHERS.load(Ordering::Relaxed) != 0 {
        note_release(h.root as usize, std::ptr::eq(h.root, h));
    }
    if h.owner.is_some() {
        // SAFETY: headers with an owner come from `Box::leak` in `Buffer::owned`; `h` is not used again.
        drop(unsafe { Box::from_raw(header.as_ptr()) });
        return;
    }
    cache::put(h.class, h.bytes, header);
}

#[cfg(test)]
mod tests {
    use super::*;

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
