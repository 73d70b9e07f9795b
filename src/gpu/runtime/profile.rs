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
use crate::gpu::storage_bytes;
use crate::process::sync::lock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The GPUs that are profiled.
static PROFILED: AtomicUsize = AtomicUsize::new(0);
/// Bytes of the timestamps of a launch.
const STAMPS: u64 = 16;
/// Bytes of a buffer of timestamps.
const BUFFER: u64 = 64 << 10;

/// What a profile tells of a launch besides its times.
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

/// A launch with its begin and its end, in seconds since the first launch of the profile began.
pub struct Launch {
    /// What was launched.
    pub work: Work,
    /// When it began and ended.
    pub span: [f64; 2],
}

/// The launches of a GPU since its profile began.
pub struct Profile {
    pub(crate) queries: wgpu::QuerySet,
    pub(crate) launches: Vec<Work>,
    /// The launches whose timestamps have a place.
    placed: usize,
    buffers: Vec<wgpu::Buffer>,
    /// The bytes in use of the last buffer.
    used: u64,
    /// For each batch its buffer, its offset there and the number of its launches.
    batches: Vec<(usize, u64, usize)>,
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
    check_clock(index, &info(index)?.adapter, gpu.device.features())?;
    let mut recorder = lock(&gpu.recorder);
    if recorder.profile.is_some() {
        return Err(Error::device(format!(
            "gpu.profile: gpu:{index} is profiled already, and profiles do not nest; leave the first one \
             before"
        )));
    }
    recorder.submit(gpu);
    let queries = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
        label: Some("profile"),
        ty: wgpu::QueryType::Timestamp,
        count: 2 * BATCH as u32,
    });
    let (launches, buffers, batches) = (Vec::new(), Vec::new(), Vec::new());
    recorder.profile = Some(Profile { queries, launches, placed: 0, buffers, used: BUFFER, batches });
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

impl Profile {
    /// Has the timestamps of the launches since the last call written to memory.
    pub(crate) fn resolve(&mut self, gpu: &Gpu, encoder: &mut wgpu::CommandEncoder) {
        let count = self.launches.len() - self.placed;
        if count == 0 {
            return;
        }
        if self.used + count as u64 * STAMPS > BUFFER {
            self.buffers.push(gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("timestamps"),
                size: BUFFER,
                usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            }));
            self.used = 0;
        }
        let Some(to) = self.buffers.last() else { return };
        encoder.resolve_query_set(&self.queries, 0..2 * count as u32, to, self.used);
        self.batches.push((self.buffers.len() - 1, self.used, count));
        self.placed += count;
        self.used =
            (self.used + count as u64 * STAMPS).next_multiple_of(wgpu::QUERY_RESOLVE_BUFFER_ALIGNMENT);
    }

    /// The launches with their times.
    fn read(self, gpu: &Gpu) -> Result<Vec<Launch>> {
        let mut stamps: Vec<[u64; 2]> = Vec::with_capacity(self.launches.len());
        let parts: Vec<_> = self.buffers.iter().map(|b| (b, 0, BUFFER)).collect();
        read_buffers(gpu, &parts, |bytes| {
            let all: &[[u64; 2]] = bytemuck::cast_slice(bytes);
            for &(buffer, offset, count) in &self.batches {
                let start = ((buffer as u64 * BUFFER + offset) / STAMPS) as usize;
                stamps.extend_from_slice(&all[start..start + count]);
            }
            Ok(())
        })?;
        let first = stamps.first().map_or(0, |stamp| stamp[0]);
        let tick = f64::from(gpu.queue.get_timestamp_period()) * 1e-9;
        let seconds = |ticks: u64| ticks.saturating_sub(first) as f64 * tick;
        let launches = self.launches.into_iter().zip(stamps);
        Ok(launches.map(|(work, stamp)| Launch { work, span: stamp.map(seconds) }).collect())
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
