//! The list of commands that are not submitted yet, and the pooled objects needed to record them.

use super::device::Gpu;
use super::pipeline::Pipeline;
use super::pool::{Stats, allocation};
use super::profile::{Profile, Work};
use super::transfer::{CHUNK, Staging};
use crate::array::buffer::Buffer;
use crate::error::Result;
use crate::process::sync::lock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// Commands per submission.
pub(crate) const BATCH: usize = 64;
/// Bytes of touched memory per submission.
const BATCH_BYTES: u64 = 512 << 20;
/// Bytes of parameters per submission.
const UNIFORM_BYTES: usize = 64 << 10;
/// Bytes of parameters that are visible to one kernel.
pub(crate) const UNIFORM_WINDOW: usize = 1024;
/// Submissions in flight before the host waits for the oldest.
const IN_FLIGHT: usize = 16;
/// Bind groups cached; a full cache is cleared.
const BIND_GROUPS: usize = 4096;

/// A recorded command.
enum Command {
    /// `offset` is that of the parameters, if there are any.
    Dispatch {
        pipeline: wgpu::ComputePipeline,
        group: wgpu::BindGroup,
        offset: Option<u32>,
        groups: [u32; 3],
    },
    Copy {
        from: (wgpu::Buffer, u64),
        to: (wgpu::Buffer, u64),
        size: u64,
    },
}

/// The key of a bind group: its layout and the ids of its buffers.
type GroupKey = (u32, SmallVec<[u64; 8]>);

/// The commands of a GPU that are not submitted yet, and the state needed to record them.
pub struct Recorder {
    commands: Vec<Command>,
    touched: u64,
    /// Bytes that the host has written since the last submission.
    uploaded: usize,
    parameters: Vec<u8>,
    uniform: wgpu::Buffer,
    alignment: usize,
    groups: FxHashMap<GroupKey, wgpu::BindGroup>,
    in_flight: VecDeque<wgpu::SubmissionIndex>,
    /// Staging buffers for read-back.
    pub(crate) staging: Staging,
    /// The number of the batch being recorded.
    pub(crate) epoch: u64,
    pub(crate) stats: Stats,
    /// The profile that is being taken.
    pub(crate) profile: Option<Profile>,
}

impl Recorder {
    pub(crate) fn new(device: &wgpu::Device) -> Recorder {
        let uniform = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("parameters"),
            size: (UNIFORM_BYTES + UNIFORM_WINDOW) as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        Recorder {
            commands: Vec::with_capacity(BATCH),
            touched: 0,
            uploaded: 0,
            parameters: Vec::with_capacity(UNIFORM_BYTES),
            uniform,
            alignment: device.limits().min_uniform_buffer_offset_alignment.max(16) as usize,
            groups: FxHashMap::default(),
            in_flight: VecDeque::new(),
            staging: Staging::default(),
            epoch: 1,
            stats: Stats::default(),
            profile: None,
        }
    }

    /// Drops the bind groups of buffers that were freed.
    pub(crate) fn forget(&mut self, dead: &mut Vec<u64>) {
        if !dead.is_empty() {
            self.groups.retain(|(_, ids), _| !ids.iter().any(|id| dead.contains(id)));
            dead.clear();
        }
    }

    /// Stores a launch's parameters and returns their offset.
    fn push_parameters(&mut self, words: &[u32]) -> u32 {
        let start = self.parameters.len().next_multiple_of(self.alignment);
        self.parameters.resize(start, 0);
        self.parameters.extend_from_slice(bytemuck::cast_slice(words));
        start as u32
    }

    fn has_room_for(&self, words: &[u32]) -> bool {
        self.parameters.len().next_multiple_of(self.alignment) + words.len() * 4 <= UNIFORM_BYTES
    }

    /// Returns the bind group of `kernel` over `buffers`, cached if possible.
    fn group(&mut self, gpu: &Gpu, kernel: &Pipeline, buffers: &[&Buffer]) -> Result<wgpu::BindGroup> {
        let mut ids = SmallVec::new();
        for buffer in buffers {
            ids.push(self.touch(buffer)?);
        }
        let key = (kernel.layout.id, ids);
        if let Some(group) = self.groups.get(&key) {
            return Ok(group.clone());
        }
        let mut entries = Vec::with_capacity(buffers.len() + 1);
        for (i, buffer) in buffers.iter().enumerate() {
            let resource = allocation(buffer)?.block.raw.as_entire_binding();
            entries.push(wgpu::BindGroupEntry { binding: i as u32, resource });
        }
        entries.push(wgpu::BindGroupEntry {
            binding: buffers.len() as u32,
            resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer: &self.uniform,
                offset: 0,
                size: wgpu::BufferSize::new(UNIFORM_WINDOW as u64),
            }),
        });
        let group = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &kernel.layout.raw,
            entries: &entries,
        });
        if self.groups.len() >= BIND_GROUPS {
            self.groups.clear();
        }
        self.groups.insert(key, group.clone());
        self.stats.bind_groups_created += 1;
        Ok(group)
    }

    /// Records a launch; submits the batch if it is large enough.
    pub(crate) fn dispatch(
        &mut self, gpu: &Gpu, kernel: &Pipeline, buffers: &[&Buffer], params: &[u32], groups: [u32; 3],
        work: Work,
    ) -> Result<()> {
        if !self.has_room_for(params) {
            self.submit(gpu);
        }
        let group = self.group(gpu, kernel, buffers)?;
        let (pipeline, offset) = (kernel.pipeline.clone(), Some(self.push_parameters(params)));
        self.push(gpu, Command::Dispatch { pipeline, group, offset, groups }, work);
        Ok(())
    }

    /// Records a dispatch of a user's shader over these buffers, which `group` binds.
    pub(crate) fn dispatch_group<'a>(
        &mut self, gpu: &Gpu, pipeline: &wgpu::ComputePipeline, group: wgpu::BindGroup,
        buffers: impl Iterator<Item = &'a Buffer>, groups: [u32; 3], work: Work,
    ) -> Result<()> {
        for buffer in buffers {
            self.touch(buffer)?;
        }
        let pipeline = pipeline.clone();
        self.push(gpu, Command::Dispatch { pipeline, group, offset: None, groups }, work);
        Ok(())
    }

    /// Notes that the batch uses a buffer; returns its id.
    fn touch(&mut self, buffer: &Buffer) -> Result<u64> {
        let block = &allocation(buffer)?.block;
        block.epoch.store(self.epoch, Ordering::Relaxed);
        self.touched += block.raw.size();
        Ok(block.id)
    }

    /// Adds a dispatch; submits the batch if it is large enough.
    fn push(&mut self, gpu: &Gpu, dispatch: Command, work: Work) {
        self.commands.push(dispatch);
        if let Some(profile) = &mut self.profile {
            profile.launches.push(work);
        }
        self.stats.dispatches += 1;
        if self.commands.len() >= BATCH || self.touched >= BATCH_BYTES {
            self.submit(gpu);
        }
    }

    /// Counts bytes written by the host; returns how many await a submission, from 0 again at [`CHUNK`].
    pub(crate) fn count_upload(&mut self, bytes: usize) -> usize {
        let total = self.uploaded + bytes;
        self.uploaded = if total >= CHUNK { 0 } else { total };
        total
    }

    /// Records a copy between two buffers.
    pub(crate) fn copy(&mut self, from: (&wgpu::Buffer, u64), to: (&wgpu::Buffer, u64), size: u64) {
        let (from, to) = ((from.0.clone(), from.1), (to.0.clone(), to.1));
        self.commands.push(Command::Copy { from, to, size });
        self.touched += size;
    }

    /// Submits the recorded commands, if any.
    pub(crate) fn submit(&mut self, gpu: &Gpu) {
        self.forget(&mut lock(&gpu.pool).dead);
        if self.commands.is_empty() {
            return;
        }
        if !self.parameters.is_empty() {
            gpu.queue.write_buffer(&self.uniform, 0, &self.parameters);
            self.parameters.clear();
        }
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encode(&mut encoder, &self.commands, self.profile.as_ref().map(|p| &p.queries));
        if let Some(profile) = &mut self.profile {
            profile.resolve(gpu, &mut encoder);
        }
        self.in_flight.push_back(gpu.queue.submit([encoder.finish()]));
        self.commands.clear();
        self.touched = 0;
        self.uploaded = 0;
        self.epoch += 1;
        self.stats.submits += 1;
    }

    /// The newest submission.
    pub(crate) fn last_submission(&self) -> Option<wgpu::SubmissionIndex> {
        self.in_flight.back().cloned()
    }

    /// Returns the submission to wait for: the newest if `all`, else the oldest if too many are in flight.
    pub(crate) fn next_wait(&mut self, all: bool) -> Option<wgpu::SubmissionIndex> {
        if all {
            let last = self.in_flight.pop_back();
            self.in_flight.clear();
            return last;
        }
        if self.in_flight.len() > IN_FLIGHT { self.in_flight.pop_front() } else { None }
    }
}

/// Encodes the commands: one compute pass per run of dispatches, or per dispatch with two timestamps each.
fn encode(encoder: &mut wgpu::CommandEncoder, commands: &[Command], timestamps: Option<&wgpu::QuerySet>) {
    let mut rest = commands;
    let mut next = 0..;
    let mut stamp = |query_set| wgpu::ComputePassTimestampWrites {
        query_set,
        beginning_of_pass_write_index: next.next(),
        end_of_pass_write_index: next.next(),
    };
    while let Some(first) = rest.first() {
        if let Command::Copy { from, to, size } = first {
            encoder.copy_buffer_to_buffer(&from.0, from.1, &to.0, to.1, *size);
            rest = &rest[1..];
            continue;
        }
        let timestamp_writes = timestamps.map(&mut stamp);
        let mut pass =
            encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes });
        while let Some(Command::Dispatch { pipeline, group, offset, groups }) = rest.first() {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, group, offset.as_slice());
            pass.dispatch_workgroups(groups[0], groups[1], groups[2]);
            rest = &rest[1..];
            if timestamps.is_some() {
                break;
            }
        }
    }
}
