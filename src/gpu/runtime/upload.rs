//! Writes by the host to buffers. Long ones go through two staging buffers in turn, which are kept: while the
//! GPU copies from one, the host fills the other.

use super::device::Gpu;
use super::fault::guarded;
use super::queue::{TIMEOUT, wait_for};
use crate::error::{Error, Result};
use crate::process::sync::lock;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};

/// Bytes of a staging buffer.
const PIECE: usize = 16 << 20;
/// From so many bytes on a write goes through staging buffers of its own; wgpu makes one for a shorter write.
const LONG: usize = 4 << 20;
/// Bytes of short writes after which the host waits for them to be done.
const PENDING: usize = 64 << 20;

/// The staging buffers of a GPU.
#[derive(Default)]
pub struct Uploads {
    pieces: [Option<Piece>; 2],
    /// Staging buffers made so far.
    pub(crate) made: usize,
}

/// A staging buffer: mapped, or to be mapped when a submission is done.
struct Piece {
    buffer: wgpu::Buffer,
    until: Option<(wgpu::SubmissionIndex, Receiver<Result<(), wgpu::BufferAsyncError>>)>,
}

impl Piece {
    fn new(gpu: &Gpu) -> Result<Piece> {
        let desc = wgpu::BufferDescriptor {
            label: Some("staging"),
            size: PIECE as u64,
            usage: wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: true,
        };
        let kinds = [wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Validation];
        match guarded(&gpu.device, kinds, || gpu.device.create_buffer(&desc)) {
            (buffer, None) => Ok(Piece { buffer, until: None }),
            (_, Some(e)) => {
                gpu.fault.check(gpu.index)?;
                Err(Error::memory(format!("gpu:{}: no staging memory of {PIECE} bytes: {e}", gpu.index)))
            }
        }
    }

    /// Copies `bytes` to `to`, once what was copied before has left the buffer.
    fn send(&mut self, gpu: &Gpu, to: &wgpu::Buffer, offset: u64, bytes: &[u8]) -> Result<()> {
        let failed = |why: String| -> Result<()> {
            gpu.fault.check(gpu.index)?;
            Err(Error::device(format!("gpu:{}: an upload failed: {why}", gpu.index)))
        };
        if let Some((submission, mapped)) = self.until.take() {
            wait_for(gpu, submission)?;
            match mapped.recv_timeout(TIMEOUT) {
                Ok(Ok(())) => {}
                Ok(Err(e)) => return failed(e.to_string()),
                Err(e) => return failed(e.to_string()),
            }
        }
        let size = bytes.len() as u64;
        match self.buffer.get_mapped_range_mut(0..size) {
            Ok(mut view) => view.copy_from_slice(bytes),
            Err(e) => return failed(e.to_string()),
        }
        self.buffer.unmap();
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(&self.buffer, 0, to, offset, size);
        let submission = gpu.queue.submit([encoder.finish()]);
        let (sender, receiver) = channel();
        self.buffer.map_async(wgpu::MapMode::Write, .., move |r| sender.send(r).unwrap_or_default());
        self.until = Some((submission, receiver));
        Ok(())
    }
}

/// Writes `bytes` at the start of a buffer; pads a last half word with zeros.
pub(crate) fn write(gpu: &Gpu, to: &wgpu::Buffer, bytes: &[u8]) -> Result<()> {
    let (whole, rest) = bytes.split_at(bytes.len() & !3);
    if whole.len() < LONG {
        write_short(gpu, to, 0, whole)?;
    } else {
        write_long(gpu, to, whole)?;
    }
    if rest.is_empty() {
        return Ok(());
    }
    let mut word = [0u8; 4];
    word[..rest.len()].copy_from_slice(rest);
    write_short(gpu, to, whole.len() as u64, &word)
}

fn write_long(gpu: &Gpu, to: &wgpu::Buffer, bytes: &[u8]) -> Result<()> {
    let mut uploads = lock(&gpu.uploads);
    for (i, part) in bytes.chunks(PIECE).enumerate() {
        // After an error a buffer is in an unknown state, so it is dropped.
        let mut piece = match uploads.pieces[i % 2].take() {
            Some(piece) => piece,
            None => {
                uploads.made += 1;
                Piece::new(gpu)?
            }
        };
        piece.send(gpu, to, (i * PIECE) as u64, part)?;
        uploads.pieces[i % 2] = Some(piece);
    }
    Ok(())
}

fn write_short(gpu: &Gpu, to: &wgpu::Buffer, offset: u64, bytes: &[u8]) -> Result<()> {
    let Some(size) = wgpu::BufferSize::new(bytes.len() as u64) else {
        return Ok(());
    };
    let Some(mut view) = gpu.queue.write_buffer_with(to, offset, size) else {
        gpu.fault.check(gpu.index)?;
        return Err(Error::memory(format!("gpu:{}: no staging memory for {size} bytes", gpu.index)));
    };
    view.copy_from_slice(bytes);
    drop(view);
    if gpu.pending.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len() >= PENDING {
        // Staging memory is held until its write is submitted: wait, so that it does not accumulate.
        gpu.pending.store(0, Ordering::Relaxed);
        let sent = gpu.queue.submit([]);
        wait_for(gpu, sent)?;
    }
    Ok(())
}
