//! Transfers between host and GPU: upload, read-back and cached constants.
//!
//! A `bool` is one byte on the host and one 32-bit word on the GPU; other dtypes have the same bytes on both.

use super::device::{Gpu, gpu};
use super::pool::{allocation, create, storage_bytes};
use super::queue::{TIMEOUT, wait_for};
use super::status;
use crate::array::Array;
use crate::array::buffer::{Buffer, Device};
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::error::{Error, Result};
use crate::process::sync::lock;
use smallvec::{SmallVec, smallvec};
use std::sync::mpsc::channel;

/// Bytes per write to the queue; each write uses a staging buffer of that size.
pub(crate) const CHUNK: usize = 64 << 20;
/// Constants cached per GPU.
const CONSTANTS: usize = 1024;

/// Copies a contiguous CPU array to GPU `index`.
pub fn upload(x: &Array, index: u8) -> Result<Array> {
    let gpu = gpu(index)?;
    let out = Array::empty(x.shape(), x.dtype(), Device::Gpu(index))?;
    if x.numel() == 0 {
        return Ok(out);
    }
    let block = &allocation(out.buffer())?.block;
    {
        // A write by the host bypasses recorded commands: submit those that still use this memory first.
        let mut recorder = lock(&gpu.recorder);
        if allocation(out.buffer())?.is_recorded(recorder.epoch) {
            recorder.submit(gpu);
        }
    }
    match x.dtype() {
        DType::Bool => {
            let words: Vec<u32> = x.slice::<bool>()?.iter().map(|&b| u32::from(b)).collect();
            write(gpu, &block.raw, bytemuck::cast_slice(&words))?;
        }
        DType::F32 => write(gpu, &block.raw, bytemuck::cast_slice(x.slice::<f32>()?))?,
        DType::I32 => write(gpu, &block.raw, bytemuck::cast_slice(x.slice::<i32>()?))?,
        DType::U32 => write(gpu, &block.raw, bytemuck::cast_slice(x.slice::<u32>()?))?,
        DType::F16 => write(gpu, &block.raw, bytemuck::cast_slice(x.slice::<half::f16>()?))?,
        DType::BF16 => write(gpu, &block.raw, bytemuck::cast_slice(x.slice::<half::bf16>()?))?,
        _ => return Err(unreadable(x)),
    }
    gpu.fault.check(index)?;
    Ok(out)
}

#[cold]
fn unreadable(x: &Array) -> Error {
    Error::dtype(format!("internal: {x:?} cannot be moved to a gpu"))
}

/// Writes `bytes` at the start of a buffer; pads a last half word with zeros.
fn write(gpu: &Gpu, to: &wgpu::Buffer, bytes: &[u8]) -> Result<()> {
    let (whole, rest) = bytes.split_at(bytes.len() & !3);
    for (i, chunk) in whole.chunks(CHUNK).enumerate() {
        write_chunk(gpu, to, (i * CHUNK) as u64, chunk)?;
        if lock(&gpu.recorder).count_upload(chunk.len()) >= CHUNK {
            // Staging memory is held until its write is submitted: wait, so that it does not accumulate.
            let sent = gpu.queue.submit([]);
            wait_for(gpu, sent)?;
        }
    }
    if !rest.is_empty() {
        let mut word = [0u8; 4];
        word[..rest.len()].copy_from_slice(rest);
        write_chunk(gpu, to, whole.len() as u64, &word)?;
    }
    Ok(())
}

fn write_chunk(gpu: &Gpu, to: &wgpu::Buffer, offset: u64, chunk: &[u8]) -> Result<()> {
    let Some(size) = wgpu::BufferSize::new(chunk.len() as u64) else {
        return Ok(());
    };
    let Some(mut view) = gpu.queue.write_buffer_with(to, offset, size) else {
        gpu.fault.check(gpu.index)?;
        return Err(Error::memory(format!("gpu:{}: no staging memory for {size} bytes", gpu.index)));
    };
    view.copy_from_slice(chunk);
    Ok(())
}

/// Copies a GPU array to a contiguous CPU array. Submits all recorded work and waits for it.
pub fn download(x: &Array) -> Result<Array> {
    let Device::Gpu(index) = x.device() else {
        return Err(unreadable(x));
    };
    if x.numel() == 0 {
        return Array::empty(x.shape(), x.dtype(), Device::Cpu);
    }
    let packed;
    let x = if x.is_contiguous() {
        x
    } else {
        packed = crate::gpu::kernels::copy::contiguous(x)?;
        &packed
    };
    let gpu = gpu(index)?;
    let mut out = Array::empty(x.shape(), x.dtype(), Device::Cpu)?;
    // Halves may start in the middle of a word: read whole words and skip the first element.
    let per_word = if x.dtype().size() == 2 { 2 } else { 1 };
    let first = x.offset() / per_word;
    let size = ((x.offset() + x.numel()).div_ceil(per_word) - first) as u64 * 4;
    let reports = status::to_read(gpu);
    let mut parts: SmallVec<[_; 2]> = smallvec![(x.buffer(), first as u64 * 4, size)];
    parts.extend(reports.iter().map(|words| (words.buffer(), 0, 8)));
    let mut found = [0; 2];
    read(gpu, &parts, |bytes| {
        let (own, rest) = bytes.split_at(size as usize);
        if let Ok(words) = bytemuck::try_cast_slice::<u8, u32>(rest) {
            found[..words.len()].copy_from_slice(words);
        }
        unpack(own, x.offset() % per_word, &mut out)
    })?;
    if reports.is_some() {
        status::judge(gpu, found[0], found[1])?;
    }
    Ok(out)
}

/// Waits for the recorded work and raises what indexing kernels have reported since the last read-back.
pub(crate) fn raise_reports(gpu: &Gpu) -> Result<()> {
    let Some(words) = status::to_read(gpu) else {
        return Ok(());
    };
    let mut found = [0; 2];
    read(gpu, &[(words.buffer(), 0, 8)], |bytes| {
        found.copy_from_slice(bytemuck::cast_slice(bytes));
        Ok(())
    })?;
    status::judge(gpu, found[0], found[1])
}

/// Copies ranges `(buffer, offset, size)` to the host, concatenated, and passes the bytes to `use_bytes`.
fn read(gpu: &Gpu, parts: &[(&Buffer, u64, u64)], use_bytes: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
    let size = parts.iter().map(|p| p.2).sum();
    let staging = lock(&gpu.recorder).staging.take(gpu, size)?;
    let result = read_through(gpu, parts, size, &staging, use_bytes);
    // After an error the buffer may still be mapped, so it is dropped.
    if result.is_ok() {
        lock(&gpu.recorder).staging.give_back(staging);
    }
    result
}

fn read_through(
    gpu: &Gpu, parts: &[(&Buffer, u64, u64)], size: u64, staging: &wgpu::Buffer,
    use_bytes: impl FnOnce(&[u8]) -> Result<()>,
) -> Result<()> {
    let (sender, receiver) = channel();
    let submission = {
        let mut recorder = lock(&gpu.recorder);
        let mut at = 0;
        for &(buffer, offset, size) in parts {
            recorder.copy((&allocation(buffer)?.block.raw, offset), (staging, at), size);
            at += size;
        }
        recorder.submit(gpu);
        // If the channel is closed, the reader has given up already.
        staging.map_async(wgpu::MapMode::Read, 0..size, move |r| sender.send(r).unwrap_or_default());
        recorder.last_submission()
    };
    if let Some(submission) = submission {
        wait_for(gpu, submission)?;
    }
    let failed = |why: String| Error::device(format!("gpu:{}: read-back failed: {why}", gpu.index));
    // The callback may run on another thread that polled first.
    receiver.recv_timeout(TIMEOUT).map_err(|e| failed(e.to_string()))?.map_err(|e| failed(e.to_string()))?;
    let view = staging.get_mapped_range(0..size).map_err(|e| failed(e.to_string()))?;
    let result = use_bytes(&view);
    drop(view);
    staging.unmap();
    result
}

/// Fills `out` from words read back from the GPU, skipping `skip` elements.
fn unpack(bytes: &[u8], skip: usize, out: &mut Array) -> Result<()> {
    match out.dtype() {
        DType::Bool => {
            let words: &[u32] = bytemuck::cast_slice(bytes);
            for (to, &word) in out.slice_mut::<bool>()?.iter_mut().zip(words) {
                *to = word != 0;
            }
        }
        DType::F32 => fill(out.slice_mut::<f32>()?, bytes),
        DType::I32 => fill(out.slice_mut::<i32>()?, bytes),
        DType::U32 => fill(out.slice_mut::<u32>()?, bytes),
        DType::F16 => fill(out.slice_mut::<half::f16>()?, &bytes[2 * skip..]),
        DType::BF16 => fill(out.slice_mut::<half::bf16>()?, &bytes[2 * skip..]),
        _ => return Err(unreadable(out)),
    }
    Ok(())
}

fn fill<T: bytemuck::Pod>(to: &mut [T], bytes: &[u8]) {
    let n = std::mem::size_of_val(to);
    bytemuck::cast_slice_mut(to).copy_from_slice(&bytes[..n]);
}

/// Idle staging buffers for read-back, smallest first.
#[derive(Default)]
pub struct Staging(Vec<wgpu::Buffer>);

/// The number of idle staging buffers kept per GPU.
const STAGING_KEPT: usize = 8;
/// A larger staging buffer is not kept.
const STAGING_LARGEST: u64 = 256 << 20;

impl Staging {
    fn take(&mut self, gpu: &Gpu, size: u64) -> Result<wgpu::Buffer> {
        if let Some(i) = self.0.iter().position(|b| b.size() >= size && b.size() <= size.max(1 << 16) * 4) {
            return Ok(self.0.remove(i));
        }
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        create(gpu, size.next_power_of_two().max(256).min(gpu.limits.max_buffer_size & !15), usage)
            .map_err(|e| Error::memory(format!("gpu:{}: no staging memory for {size} bytes: {e}", gpu.index)))
    }

    fn give_back(&mut self, buffer: wgpu::Buffer) {
        if buffer.size() <= STAGING_LARGEST {
            if self.0.len() >= STAGING_KEPT {
                self.0.remove(0);
            }
            let at = self.0.partition_point(|b| b.size() < buffer.size());
            self.0.insert(at, buffer);
        }
    }
}

/// A 0-d constant, shared by all callers that ask for the same value. It must not be written to.
pub fn scalar(index: u8, value: f64, dtype: DType) -> Result<Array> {
    constant(index, &[value], dtype)?.with_layout(Shape::SCALAR, &[], 0)
}

/// A constant array of a few values, shared by all callers that ask for them. It must not be written to.
pub fn constant(index: u8, values: &[f64], dtype: DType) -> Result<Array> {
    let key = (values.iter().map(|v| v.to_bits()).collect(), dtype);
    let gpu = gpu(index)?;
    if let Some(found) = lock(&gpu.constants).get(&key) {
        return Ok(found.clone());
    }
    storage_bytes(index, 1, dtype)?;
    let mut host = Array::empty(Shape::new(&[values.len()])?, dtype, Device::Cpu)?;
    crate::dispatch!(dtype, T => {
        for (to, &value) in host.slice_mut::<T>()?.iter_mut().zip(values) {
            *to = <T as crate::array::dtype::Element>::from_f64(value);
        }
    });
    let out = crate::array::buffer::outside_inference(|| upload(&host, index))?;
    let old = {
        let mut constants = lock(&gpu.constants);
        let full = constants.len() >= CONSTANTS;
        let old = if full { std::mem::take(&mut *constants) } else { Default::default() };
        constants.insert(key, out.clone());
        old
    };
    // Dropping the last handles returns their memory to the pool: do it outside of the lock.
    drop(old);
    Ok(out)
}
