//! Transfers between host and GPU: upload (by `src/gpu/runtime/upload.rs`), read-back and cached constants.
//!
//! Bools and narrow integers are words of 32 bits on the GPU; other dtypes have the same bytes on both.

use super::device::{Gpu, gpu};
use super::pool::{allocation, create, storage_bytes};
use super::queue::{TIMEOUT, wait_for};
use super::status;
use super::upload::write;
use crate::array::Array;
use crate::array::buffer::{Buffer, Device};
use crate::array::dtype::{DType, Element, Truth};
use crate::array::shape::Shape;
use crate::error::{Error, Result};
use crate::gpu::kernels::complex::{is_paired, paired};
use crate::process::sync::lock;
use smallvec::SmallVec;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;

/// Constants cached per GPU.
const CONSTANTS: usize = 1024;

/// Runs an expression with `$t` bound to the element type of `$x`, whose bytes are the same on both sides.
macro_rules! with_element {
    ($x:expr, $t:ident => $body:expr) => {
        crate::dispatch!(@ $x.dtype(), $t, $body;
            DType::F32 => f32, DType::I32 => i32, DType::U32 => u32, DType::F16 => half::f16,
            DType::BF16 => half::bf16; _other => return Err(unreadable($x)))
    };
}

/// [`with_element`] for elements that are shorter on the host than the word that stands for them on the GPU;
/// `$else` for others.
macro_rules! with_short {
    ($x:expr, $t:ident => $body:expr, $else:expr) => {
        crate::dispatch!(@ $x.dtype(), $t, $body;
            DType::Bool => Truth, DType::U8 => u8, DType::I8 => i8, DType::U16 => u16,
            DType::I16 => i16; _other => $else)
    };
}

/// The elements of a contiguous array along one axis.
fn line_of(x: &Array) -> Result<Array> {
    x.with_layout(Shape::new(&[x.numel()])?, &[1], x.offset())
}

/// The elements of `line` in the shape of `x`.
fn shaped_as(x: &Array, line: &Array) -> Result<Array> {
    let strides = x.shape().strides();
    line.with_layout(x.shape(), &strides[..x.rank()], line.offset())
}

/// Copies a contiguous CPU array to GPU `index`.
pub fn upload(x: &Array, index: u8) -> Result<Array> {
    if is_paired(x) {
        return shaped_as(x, &paired(&line_of(x)?, |pairs| upload(pairs, index))?);
    }
    let gpu = gpu(index)?;
    let out = Array::empty(x.shape(), x.dtype(), Device::Gpu(index))?;
    if x.numel() == 0 {
        return Ok(out);
    }
    let block = &allocation(out.buffer())?.block;
    {
        // A write by the host bypasses recorded commands: submit those that still use this memory first.
        let mut recorder = lock(&gpu.recorder);
        if block.epoch.load(Ordering::Relaxed) >= recorder.epoch {
            recorder.submit(gpu);
        }
    }
    with_short!(
        x,
        T => {
            let words: Vec<u32> = x.slice::<T>()?.iter().map(|v| v.to_i64() as u32).collect();
            write(gpu, &block.raw, bytemuck::cast_slice(&words))?;
        },
        with_element!(x, T => write(gpu, &block.raw, bytemuck::cast_slice(x.slice::<T>()?))?)
    );
    gpu.fault.check(index)?;
    Ok(out)
}

#[cold]
fn unreadable(x: &Array) -> Error {
    Error::dtype(format!("internal: {x:?} cannot be moved to a gpu"))
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
    if is_paired(x) {
        return shaped_as(x, &paired(&line_of(x)?, download)?);
    }
    let gpu = gpu(index)?;
    let mut out = Array::empty(x.shape(), x.dtype(), Device::Cpu)?;
    // Halves may start in the middle of a word: read whole words and skip the first element.
    let per_word = if x.dtype().is_half() { 2 } else { 1 };
    let first = x.offset() / per_word;
    let size = ((x.offset() + x.numel()).div_ceil(per_word) - first) as u64 * 4;
    let part = (x.buffer(), first as u64 * 4, size);
    read(gpu, Some(part), |bytes| unpack(bytes, x.offset() % per_word, &mut out))?;
    Ok(out)
}

/// Waits for the recorded work and raises what indexing kernels have reported since the last read-back.
pub(crate) fn raise_reports(gpu: &Gpu) -> Result<()> {
    read(gpu, None, |_| Ok(()))
}

/// Copies the range `(buffer, offset, size)` to the host and passes its bytes to `use_bytes`. Raises what
/// indexing kernels have reported.
fn read(
    gpu: &Gpu, part: Option<(&Buffer, u64, u64)>, use_bytes: impl FnOnce(&[u8]) -> Result<()>,
) -> Result<()> {
    let reports = status::to_read(gpu);
    let mut parts = SmallVec::<[_; 2]>::new();
    for (buffer, offset, size) in part.into_iter().chain(reports.iter().map(|words| (words.buffer(), 0, 8))) {
        parts.push((&allocation(buffer)?.block.raw, offset, size));
    }
    let mut found = [0; 2];
    read_buffers(gpu, &parts, |bytes| {
        let (own, rest) = bytes.split_at(part.map_or(0, |p| p.2 as usize));
        if let Ok(words) = bytemuck::try_cast_slice::<u8, u32>(rest) {
            found[..words.len()].copy_from_slice(words);
        }
        use_bytes(own)
    })?;
    reports.as_ref().map_or(Ok(()), |words| status::judge(gpu, words, found))
}

/// A buffer, an offset in it and a number of bytes.
type Part<'a> = (&'a wgpu::Buffer, u64, u64);

/// Copies parts of buffers to the host, one behind the other, and passes the bytes to `use_bytes`.
pub(crate) fn read_buffers(
    gpu: &Gpu, parts: &[Part], use_bytes: impl FnOnce(&[u8]) -> Result<()>,
) -> Result<()> {
    let size = parts.iter().map(|p| p.2).sum();
    if size == 0 {
        return Ok(());
    }
    let staging = lock(&gpu.recorder).staging.take(gpu, size)?;
    read_through(gpu, parts, size, &staging, use_bytes)?;
    // After an error the buffer may still be mapped, so it is dropped.
    lock(&gpu.recorder).staging.give_back(staging);
    Ok(())
}

fn read_through(
    gpu: &Gpu, parts: &[Part], size: u64, staging: &wgpu::Buffer, use_bytes: impl FnOnce(&[u8]) -> Result<()>,
) -> Result<()> {
    let (sender, receiver) = channel();
    let submission = {
        let mut recorder = lock(&gpu.recorder);
        recorder.settle(gpu);
        let mut at = 0;
        for &(buffer, offset, size) in parts {
            recorder.copy((buffer, offset), (staging, at), size);
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
    with_short!(
        out,
        T => {
            let words: &[u32] = bytemuck::cast_slice(bytes);
            for (to, &word) in out.slice_mut::<T>()?.iter_mut().zip(words) {
                *to = T::from_i64(word.into());
            }
        },
        with_element!(out, T => {
            let to: &mut [u8] = bytemuck::cast_slice_mut(out.slice_mut::<T>()?);
            to.copy_from_slice(&bytes[skip * size_of::<T>()..][..size_of_val(to)]);
        })
    );
    Ok(())
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

/// Arrays that never change and are cached.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Constant {
    /// A 0-d one, by the bits of its value.
    Scalar(u64, DType),
    /// Twiddle factors of Fourier transforms, by the logarithm of the length of two launches, or 0.
    Twiddles(u32),
    /// The chirp of a Fourier transform of this length.
    Chirp(usize),
    /// The transform of its conjugate.
    ChirpFilter(usize),
}

/// A larger constant is made anew each time.
const CONSTANT_LARGEST: usize = 1 << 20;

/// A 0-d constant, shared by all callers that ask for the same value. It must not be written to.
pub fn scalar(index: u8, value: f64, dtype: DType) -> Result<Array> {
    constant(index, Constant::Scalar(value.to_bits(), dtype), || {
        storage_bytes(index, 1, dtype)?;
        Array::full(Shape::SCALAR, value, dtype)
    })
}

/// A constant, which `make` computes on the host or on the GPU; shared by all callers that ask for it. It
/// must not be written to.
pub fn constant(index: u8, key: Constant, make: impl FnOnce() -> Result<Array>) -> Result<Array> {
    let gpu = gpu(index)?;
    if let Some(found) = lock(&gpu.constants).get(&key) {
        return Ok(found.clone());
    }
    let out = crate::array::buffer::outside_inference(|| make()?.to_device(Device::Gpu(index)))?;
    if out.buffer().bytes() > CONSTANT_LARGEST {
        return Ok(out);
    }
    let old = {
        let mut constants = lock(&gpu.constants);
        let full = constants.len() >= CONSTANTS;
        let old = full.then(|| std::mem::take(&mut *constants));
        constants.insert(key, out.clone());
        old
    };
    // Dropping the last handles returns their memory to the pool: do it outside of the lock.
    drop(old);
    Ok(out)
}
