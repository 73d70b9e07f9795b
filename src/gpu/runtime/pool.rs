//! GPU memory: one whole wgpu buffer per tensor, from a pool of size classes.
//!
//! wgpu orders work per whole buffer, so slices of a shared buffer would wait for each other needlessly.
//! Recorded work may still read a buffer that is given back. Its next user is recorded later on the same
//! queue, so reuse needs no wait. Only writes by the host bypass the queue, hence the `epoch` (see
//! `src/gpu/runtime/transfer.rs`).

use super::device::{Gpu, gpu};
use super::fault::guarded;
use crate::array::Array;
use crate::array::buffer::{Buffer, Device};
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::error::{Error, Result};
use crate::process::sync::lock;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory of one tensor on a GPU: the owner inside its [`Buffer`].
pub struct Allocation {
    pub(crate) gpu: &'static Gpu,
    pub(crate) block: ManuallyDrop<Block>,
}

/// A part of the memory of a tensor, as the owner of a [`Buffer`]: kernels bind it like whole memory.
struct Window {
    whole: Buffer,
    start: u64,
}

/// A wgpu buffer with its id.
pub(crate) struct Block {
    pub(crate) raw: wgpu::Buffer,
    /// Unique during the life of the device.
    pub(crate) id: u64,
    /// The last batch of commands that uses the buffer, or [`WAITS`].
    pub(crate) epoch: Arc<AtomicU64>,
}

/// The batch of commands of a launch that waits to be recorded.
pub(crate) const WAITS: u64 = u64::MAX;
/// The most bytes that were given back and that launches which wait use: more is used anew at once.
const HELD: u64 = 64 << 20;

impl Block {
    fn size(&self) -> u64 {
        self.raw.size()
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // A forked child must not touch the parent's driver objects, so it leaks them.
        if self.gpu.is_foreign() {
            return;
        }
        // SAFETY: `drop` runs once and nothing else takes the block, so it is valid here and not used again.
        let block = unsafe { ManuallyDrop::take(&mut self.block) };
        let dead = {
            let mut pool = lock(&self.gpu.pool);
            let mut dead = pool.give_back(block);
            if self.gpu.is_retired() {
                dead = pool.empty();
            }
            dead
        };
        drop(dead);
    }
}

/// Statistics of a GPU's memory and queue since the process started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Bytes in buffers that tensors hold.
    pub live_bytes: u64,
    /// The largest value of `live_bytes`, since the start or [`reset_peak`].
    pub peak_bytes: u64,
    /// Bytes in buffers kept for reuse.
    pub cached_bytes: u64,
    /// wgpu buffers created.
    pub buffers_created: u64,
    /// Pipelines made, to be compiled.
    pub pipelines_created: u64,
    /// The most pipelines that were compiled at once.
    pub most_compiling: u64,
    /// Bind groups created.
    pub bind_groups_created: u64,
    /// Kernels launched.
    pub dispatches: u64,
    /// Batches of commands submitted.
    pub submits: u64,
}

/// The free buffers of a GPU.
pub struct Pool {
    free: BTreeMap<u64, VecDeque<(u64, Block)>>,
    /// What launches that wait use, by id, and its bytes.
    held: FxHashMap<u64, Block>,
    held_bytes: u64,
    clock: u64,
    next_id: u64,
    /// The largest buffer, and the most of one that a kernel can bind.
    limit: u64,
    bindable: u64,
    pub(crate) stats: Stats,
    /// Ids of freed buffers; their bind groups are dropped at the next flush.
    pub(crate) dead: Vec<u64>,
}

/// Bytes that the pool may always cache, whatever the tensors use.
const ALWAYS_KEPT: u64 = 1 << 30;

impl Pool {
    pub(crate) fn new(limits: &wgpu::Limits) -> Pool {
        let (limit, bindable) = (limits.max_buffer_size & !31, bindable(limits));
        let (free, stats, dead) = (BTreeMap::new(), Stats::default(), Vec::new());
        let held = FxHashMap::default();
        Pool { free, held, held_bytes: 0, clock: 0, next_id: 0, limit, bindable, stats, dead }
    }

    /// Returns the size of the class that holds `bytes`; there are eight classes per doubling.
    fn class(&self, bytes: u64) -> u64 {
        let bytes = bytes.max(256);
        let step = (bytes.next_power_of_two() / 16).max(256);
        // Memory that can be bound at once stays so.
        let most = if bytes <= self.bindable { self.bindable } else { self.limit };
        bytes.next_multiple_of(step).min(most)
    }

    fn count_live(&mut self, bytes: u64) {
        self.stats.live_bytes += bytes;
        self.stats.peak_bytes = self.stats.peak_bytes.max(self.stats.live_bytes);
    }

    fn take(&mut self, class: u64) -> Option<Block> {
        let (_, block) = self.free.get_mut(&class)?.pop_back()?;
        self.stats.cached_bytes -= block.size();
        self.count_live(block.size());
        Some(block)
    }

    /// Takes a buffer back; returns those that the pool no longer caches.
    fn give_back(&mut self, block: Block) -> Vec<Block> {
        self.stats.live_bytes -= block.size();
        self.stats.cached_bytes += block.size();
        if block.epoch.load(Ordering::Relaxed) == WAITS && self.held_bytes + block.size() <= HELD {
            self.held_bytes += block.size();
            self.held.insert(block.id, block);
            return Vec::new();
        }
        self.put(block);
        // Nothing is freed up to the largest footprint so far: a training step repeats its sizes.
        let most = ALWAYS_KEPT.max(self.stats.peak_bytes + self.stats.peak_bytes / 8);
        self.trim(most.saturating_sub(self.stats.live_bytes))
    }

    fn put(&mut self, block: Block) {
        self.clock += 1;
        self.free.entry(block.size()).or_default().push_back((self.clock, block));
    }

    /// Frees all buffers, on whose launches nobody waits any more.
    pub(crate) fn empty(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.held).into_values().for_each(|block| self.put(block));
        self.held_bytes = 0;
        self.trim(0)
    }

    /// Whether this memory was given back and launches wait that use it.
    pub(crate) fn holds(&self, id: u64) -> bool {
        self.held.contains_key(&id)
    }

    /// Lets memory that no launch which waits uses any more be used anew, if it was given back.
    pub(crate) fn release(&mut self, ids: impl Iterator<Item = u64>) {
        for id in ids {
            if let Some(block) = self.held.remove(&id) {
                self.held_bytes -= block.size();
                self.put(block);
            }
        }
    }

    /// Frees the buffers that have been unused the longest until at most `keep` bytes are cached.
    pub(crate) fn trim(&mut self, keep: u64) -> Vec<Block> {
        let mut out = Vec::new();
        while self.stats.cached_bytes > keep {
            let age = |list: &VecDeque<(u64, Block)>| list.front().map_or(u64::MAX, |(stamp, _)| *stamp);
            let Some(list) = self.free.values_mut().min_by_key(|list| age(list)) else {
                break;
            };
            let Some((_, block)) = list.pop_front() else {
                break;
            };
            self.stats.cached_bytes -= block.size();
            self.dead.push(block.id);
            out.push(block);
        }
        out
    }
}

/// Bytes of a tensor on a GPU. If the GPU lacks the dtype, the error suggests what to do.
pub fn storage_bytes(index: u8, numel: usize, dtype: DType) -> Result<u64> {
    let n = numel as u64;
    match dtype {
        DType::F16 | DType::BF16 => Ok(n.div_ceil(2) * 4),
        DType::C64 | DType::I64 | DType::U64 => Ok(n * 8),
        DType::F64 => Err(no_dtype(index, dtype, "convert with .float() (float32)")),
        DType::C128 => Err(no_dtype(index, dtype, "convert with .to(wengert.complex64)")),
        // Bools and narrow integers take a word each.
        _ => Ok(n * 4),
    }
}

#[cold]
fn no_dtype(index: u8, dtype: DType, advice: &str) -> Error {
    Error::dtype(format!("gpu:{index} has no {dtype}; {advice} or use device='cpu'"))
}

/// Allocates memory for a contiguous tensor on GPU `index`.
pub fn alloc(index: u8, shape: &Shape, dtype: DType) -> Result<Buffer> {
    let gpu = gpu(index)?;
    let bytes = storage_bytes(index, shape.numel(), dtype)?;
    let block = block(gpu, bytes).map_err(|e| {
        Error::memory(format!("gpu:{index}: a {dtype} tensor of shape {shape}, {bytes} bytes: {e}"))
    })?;
    let owner = Allocation { gpu, block: ManuallyDrop::new(block) };
    Ok(Buffer::foreign(std::ptr::null_mut(), bytes as usize, Device::Gpu(index), Box::new(owner)))
}

/// Returns a buffer of at least `bytes` bytes; the error is only the reason.
fn block(gpu: &'static Gpu, bytes: u64) -> Result<Block, String> {
    let (class, id) = {
        let mut pool = lock(&gpu.pool);
        if bytes > pool.limit {
            let limit = pool.limit;
            return Err(format!(
                "one buffer holds at most {limit} bytes here (max_buffer_size); split the tensor"
            ));
        }
        let class = pool.class(bytes);
        if let Some(block) = pool.take(class) {
            return Ok(block);
        }
        pool.next_id += 1;
        pool.stats.buffers_created += 1;
        (class, pool.next_id)
    };
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let raw = match create(gpu, class, usage) {
        Ok(raw) => raw,
        Err(_) => {
            // Free the cached buffers and retry, once the queue has finished with them.
            empty_cache_of(gpu);
            create(gpu, class, usage)?
        }
    };
    lock(&gpu.pool).count_live(class);
    Ok(Block { raw, id, epoch: Arc::default() })
}

/// Creates a wgpu buffer; the error is only the reason.
pub(crate) fn create(gpu: &Gpu, size: u64, usage: wgpu::BufferUsages) -> Result<wgpu::Buffer, String> {
    let desc = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
    let kinds = [wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Validation];
    let (raw, error) = guarded(&gpu.device, kinds, || gpu.device.create_buffer(&desc));
    match error {
        None => Ok(raw),
        Some(wgpu::Error::OutOfMemory { .. }) => {
            let live = lock(&gpu.pool).stats.live_bytes;
            Err(format!("out of memory; tensors hold {live} bytes"))
        }
        Some(e) => Err(e.to_string()),
    }
}

/// The bytes of a buffer that a kernel can bind at once.
pub(crate) fn bindable(limits: &wgpu::Limits) -> u64 {
    limits.max_storage_buffer_binding_size.min(limits.max_buffer_size) & !31
}

/// The error of a tensor that a kernel cannot bind, and that is not taken in pieces.
#[cold]
pub(crate) fn too_large(gpu: &Gpu, kernel: &str, bytes: usize) -> Error {
    let limit = bindable(&gpu.limits);
    Error::memory(format!(
        "gpu:{}: {kernel} takes a tensor of {bytes} bytes whole, and a kernel here binds at most {limit} \
         bytes of one (max_storage_buffer_binding_size); compute it in parts, such as x[i:j].clone(), or \
         with device='cpu'",
        gpu.index
    ))
}

/// The allocation behind a buffer; an error for one whose device is out of use, an internal one for a buffer
/// on another kind of device.
#[inline]
pub(crate) fn allocation(buffer: &Buffer) -> Result<&Allocation> {
    match buffer.owner::<Allocation>() {
        Some(found) if !found.gpu.is_retired() => Ok(found),
        found => allocation_of_part(buffer, found),
    }
}

#[cold]
fn allocation_of_part<'a>(buffer: &'a Buffer, found: Option<&Allocation>) -> Result<&'a Allocation> {
    match (found, buffer.owner::<Window>()) {
        (Some(found), _) => Err(found.gpu.gone()),
        (_, Some(window)) => allocation(&window.whole),
        _ => Err(Error::device(format!("internal: a gpu tensor expected, got one on {}", buffer.device()))),
    }
}

/// The GPU that holds `x`, after checking that it can be used.
#[inline]
pub(crate) fn gpu_of(x: &Array) -> Result<&'static Gpu> {
    let gpu = allocation(x.buffer())?.gpu;
    gpu.check()?;
    Ok(gpu)
}

/// The bytes `start..end` of a buffer as one of its own.
pub(crate) fn window(buffer: &Buffer, start: u64, end: u64) -> Buffer {
    let owner = match buffer.owner::<Window>() {
        Some(outer) => Window { whole: outer.whole.clone(), start: outer.start + start },
        None => Window { whole: buffer.clone(), start },
    };
    Buffer::foreign(std::ptr::null_mut(), (end - start) as usize, buffer.device(), Box::new(owner))
}

/// Where a buffer starts in its allocation and how many bytes a kernel binds, if it is a [`window`].
pub(crate) fn window_of(buffer: &Buffer) -> Option<(u64, u64)> {
    // A kernel may write the padding behind the last elements, up to four of two words.
    buffer.owner::<Window>().map(|window| (window.start, (buffer.bytes() as u64).next_multiple_of(32)))
}

/// Returns all cached memory of GPU `index` to the driver.
pub fn empty_cache(index: u8) -> Result<()> {
    empty_cache_of(gpu(index)?);
    Ok(())
}

fn empty_cache_of(gpu: &Gpu) {
    // An error here does not concern the memory; the next launch raises it.
    let _ = super::queue::synchronize_gpu(gpu);
    let dead = lock(&gpu.pool).trim(0);
    lock(&gpu.recorder).forget(&mut lock(&gpu.pool).dead);
    *lock(&gpu.uploads) = Default::default();
    drop(dead);
    let _ = gpu.device.poll(wgpu::PollType::Poll);
}

/// Begins the search for the peak of GPU `index` anew.
pub fn reset_peak(index: u8) -> Result<()> {
    let gpu = gpu(index)?;
    let stats = &mut lock(&gpu.pool).stats;
    stats.peak_bytes = stats.live_bytes;
    Ok(())
}

/// Statistics of memory and queue of GPU `index`.
pub fn stats(index: u8) -> Result<Stats> {
    let gpu = gpu(index)?;
    let recorded = {
        let mut recorder = lock(&gpu.recorder);
        recorder.settle(gpu);
        recorder.stats
    };
    let pipelines_created = lock(&gpu.pipelines).made;
    let stats = lock(&gpu.pool).stats;
    Ok(Stats {
        pipelines_created,
        most_compiling: gpu.compiler.most(),
        bind_groups_created: recorded.bind_groups_created,
        dispatches: recorded.dispatches,
        submits: recorded.submits,
        ..stats
    })
}
