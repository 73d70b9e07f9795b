//! Profiles: the time of each launch, taken by the GPU's own clock.
//!
//! While a GPU is profiled, every launch is a compute pass of its own, with a timestamp before and one behind
//! it. They stay on the GPU until the profile ends. Without a profile a launch tests one flag. Tables and
//! sums are Python's (`python/wengert/_gpu_profile.py`).

use super::device::{Gpu, gpu, info};
use super::recorder::BATCH;
use super::transfer::read_buffers;
use crate::array::Array;
use crate::error::{Error, Result};
use crate::gpu::kernels::matmul::described;
use crate::gpu::storage_bytes;
use crate::process::sync::lock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The GPUs that are profiled.
static PROFILED: AtomicUsize = AtomicUsize::new(0);
/// Bytes of the timestamps of a batch, two for each launch, and batches per buffer.
const SLOT: u64 = 16 * BATCH as u64;
const SLOTS: u64 = 64;

/// A launch without its times.
#[derive(Default)]
pub struct Work {
    /// The name of the kernel.
    pub kernel: String,
    /// Its entry point, if it has several, and the dtypes of its operands.
    pub variant: String,
    /// Bytes of its operands, each counted once.
    pub bytes: u64,
    /// Floating point operations, where they are known.
    pub flops: Option<u64>,
}

impl Work {
    /// Adds that of a kernel in the same launch.
    pub(crate) fn add(&mut self, other: Work) {
        for (own, other) in [(&mut self.kernel, other.kernel), (&mut self.variant, other.variant)] {
            if !own.is_empty() {
                own.push_str(" | ");
            }
            own.push_str(&other);
        }
        self.bytes += other.bytes;
        self.flops = self.flops.into_iter().chain(other.flops).reduce(|a, b| a + b);
    }
}

/// A launch: kernel, variant, bytes and operations as in [`Work`], and when it began and ended, in seconds
/// since the first launch of the profile began.
pub type Launch = (String, String, u64, Option<u64>, f64, f64);

/// The launches of a GPU since its profile began.
pub struct Profile {
    pub(crate) queries: wgpu::QuerySet,
    pub(crate) launches: Vec<Work>,
    /// The number of launches of each batch, and their sum.
    batches: Vec<usize>,
    batched: usize,
    /// Memory for the timestamps of [`SLOTS`] batches each.
    buffers: Vec<wgpu::Buffer>,
}

/// Whether any GPU is profiled.
#[inline]
pub fn is_on() -> bool {
    PROFILED.load(Ordering::Relaxed) != 0
}

/// Bytes of the elements of these operands, as they are stored; what is bound twice counts once.
pub fn bytes_of(index: u8, operands: &[&Array]) -> u64 {
    // Axes of stride 0 repeat what is stored once.
    let stored =
        |x: &Array| -> usize { (0..x.rank()).filter(|&i| x.stride(i) != 0).map(|i| x.dim(i)).product() };
    let same = |x: &Array, y: &Array| {
        x.buffer().same(y.buffer()) && x.offset() == y.offset() && stored(x) == stored(y)
    };
    let first = operands.iter().enumerate().filter(|(i, x)| !operands[..*i].iter().any(|y| same(x, y)));
    first.map(|(_, x)| storage_bytes(index, stored(x), x.dtype()).unwrap_or(0)).sum()
}

/// Refuses a GPU of these features that has no clock for kernels.
fn check_clock(index: u8, adapter: &str, features: wgpu::Features) -> Result<()> {
    if features.contains(wgpu::Features::TIMESTAMP_QUERY) {
        return Ok(());
    }
    Err(Error::device(format!(
        "gpu.profile: gpu:{index} ({adapter}) has no timestamp queries (the feature timestamp_query), so it \
         cannot time kernels; call gpu.synchronize() before and after the work and read time.perf_counter()"
    )))
}

/// Begins to profile GPU `index`.
pub fn begin(index: u8) -> Result<()> {
    let gpu = gpu(index)?;
    // What is tested on first use is no part of a profile.
    described(index)?;
    check_clock(index, &info(index)?.adapter, gpu.device.features())?;
    let mut recorder = lock(&gpu.recorder);
    if recorder.profile.is_some() {
        return Err(Error::device(format!(
            "gpu.profile: gpu:{index} is being profiled, here or by another thread, and profiles do not \
             nest: leave that one first"
        )));
    }
    recorder.submit(gpu);
    let queries = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
        label: Some("profile"),
        ty: wgpu::QueryType::Timestamp,
        count: 2 * BATCH as u32,
    });
    let (launches, batches, buffers) = (Vec::new(), Vec::new(), Vec::new());
    recorder.profile = Some(Profile { queries, launches, batches, batched: 0, buffers });
    PROFILED.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Ends the profile of GPU `index`: waits for its launches and returns them in their order.
pub fn end(index: u8) -> Result<Vec<Launch>> {
    // An error of earlier work ends it as well.
    let gpu = gpu(index).or_else(|error| {
        stop(gpu(index)?);
        Err(error)
    })?;
    stop(gpu).map_or(Ok(Vec::new()), |profile| profile.read(gpu))
}

/// Takes the profile off a GPU.
fn stop(gpu: &Gpu) -> Option<Profile> {
    let mut recorder = lock(&gpu.recorder);
    recorder.submit(gpu);
    recorder.profile.take().inspect(|_| {
        PROFILED.fetch_sub(1, Ordering::Relaxed);
    })
}

/// Ends the profile of a GPU that goes out of use.
pub(crate) fn abandon(gpu: &Gpu) {
    if lock(&gpu.recorder).profile.take().is_some() {
        PROFILED.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Profile {
    /// Writes the timestamps of the launches since the last call to memory.
    pub(crate) fn resolve(&mut self, gpu: &Gpu, encoder: &mut wgpu::CommandEncoder) {
        let (count, slot) = (self.launches.len() - self.batched, self.batches.len() as u64 % SLOTS);
        if count == 0 {
            return;
        }
        if slot == 0 {
            self.buffers.push(gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("timestamps"),
                size: SLOT * SLOTS,
                usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            }));
        }
        let Some(to) = self.buffers.last() else { return };
        encoder.resolve_query_set(&self.queries, 0..2 * count as u32, to, slot * SLOT);
        self.batches.push(count);
        self.batched += count;
    }

    /// The launches with their times.
    fn read(self, gpu: &Gpu) -> Result<Vec<Launch>> {
        let mut stamps: Vec<[u64; 2]> = Vec::with_capacity(self.launches.len());
        let parts: Vec<_> = self.buffers.iter().map(|b| (b, 0, b.size())).collect();
        read_buffers(gpu, &parts, |bytes| {
            let slots = bytemuck::cast_slice(bytes).chunks(BATCH);
            slots.zip(&self.batches).for_each(|(slot, &count)| stamps.extend(slot.iter().take(count)));
            Ok(())
        })?;
        let first = stamps.first().map_or(0, |stamp| stamp[0]);
        let tick = f64::from(gpu.queue.get_timestamp_period()) * 1e-9;
        let seconds = |ticks: u64| ticks.saturating_sub(first) as f64 * tick;
        let row = |(x, [begin, end]): (Work, [u64; 2])| {
            (x.kernel, x.variant, x.bytes, x.flops, seconds(begin), seconds(end))
        };
        Ok(self.launches.into_iter().zip(stamps).map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::check_clock;

    #[test]
    fn a_gpu_without_a_clock_is_refused() {
        assert!(check_clock(0, "card", wgpu::Features::TIMESTAMP_QUERY).is_ok());
        let error = check_clock(1, "card", wgpu::Features::SHADER_F16).err().map(|e| e.to_string());
        assert_eq!(
            error.as_deref(),
            Some(
                "gpu.profile: gpu:1 (card) has no timestamp queries (the feature timestamp_query), so it \
                 cannot time kernels; call gpu.synchronize() before and after the work and read \
                 time.perf_counter()"
            )
        );
    }
}
