//! The list of commands that are not submitted yet, and the pooled objects needed to record them.

use super::device::Gpu;
use super::fault::Fault;
use super::pipeline::{Parameters, Pipeline, merged};
use super::pool::{Stats, WAITS};
use super::profile::{Profile, Work};
use super::queue::fold;
use super::transfer::Staging;
use super::waiting::{Bound, Kept, Launch, Unit, Waiting, as_one, members, sets};
use crate::array::buffer::Buffer;
use crate::error::Result;
use crate::process::sync::lock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Commands per submission.
pub(crate) const BATCH: usize = 64;
/// Bytes of touched memory per submission.
const BATCH_BYTES: u64 = 512 << 20;
/// Bytes of parameters per submission.
const UNIFORM_BYTES: usize = 64 << 10;
/// Bytes of parameters that are visible to one kernel.
pub(crate) const UNIFORM_WINDOW: usize = 1024;
/// Buffers of parameters, taken in turn by submissions.
const RING: usize = 4;
/// Submissions in flight before the host waits for the oldest.
const IN_FLIGHT: usize = 16;
/// Bind groups cached; a full cache is cleared.
const BIND_GROUPS: usize = 4096;

/// What a dispatch runs.
enum Code {
    Kernel(Arc<Pipeline>),
    Program(wgpu::ComputePipeline),
}

/// A recorded command.
enum Command {
    Dispatch {
        code: Code,
        group: wgpu::BindGroup,
        parameters: Passed,
        /// Workgroups along x, y and z.
        groups: [u32; 3],
    },
    Copy {
        from: (wgpu::Buffer, u64),
        to: (wgpu::Buffer, u64),
        size: u64,
    },
}

/// Where the parameters of a launch are.
enum Passed {
    None,
    /// Among the immediates of the batch.
    Immediates(Range<usize>),
    /// At this offset of the buffer of the batch.
    Buffer(u32),
}

/// The key of a bind group: its layout and the ids of its buffers.
type GroupKey = (u32, SmallVec<[u64; 8]>);

/// The commands of a GPU that are not submitted yet, and the state needed to record them.
pub struct Recorder {
    commands: Vec<Command>,
    touched: u64,
    immediates: Vec<u8>,
    parameters: Vec<u8>,
    /// Buffers for the parameters of a batch, with their bind groups, taken in turn: the queue writes that of
    /// a batch while those before still run.
    uniforms: [(wgpu::Buffer, wgpu::BindGroup); RING],
    alignment: usize,
    groups: FxHashMap<GroupKey, wgpu::BindGroup>,
    in_flight: VecDeque<wgpu::SubmissionIndex>,
    waiting: Waiting,
    /// Staging buffers for read-back.
    pub(crate) staging: Staging,
    /// The number of the batch being recorded.
    pub(crate) epoch: u64,
    pub(crate) stats: Stats,
    /// The profile that is being taken.
    pub(crate) profile: Option<Profile>,
}

impl Recorder {
    pub(crate) fn new(device: &wgpu::Device, layout: &wgpu::BindGroupLayout) -> Recorder {
        Recorder {
            commands: Vec::with_capacity(BATCH),
            touched: 0,
            immediates: Vec::new(),
            parameters: Vec::new(),
            uniforms: std::array::from_fn(|_| uniform(device, layout)),
            alignment: device.limits().min_uniform_buffer_offset_alignment.max(16) as usize,
            groups: FxHashMap::default(),
            in_flight: VecDeque::new(),
            waiting: Waiting::default(),
            staging: Staging::default(),
            epoch: 1,
            stats: Stats::default(),
            profile: None,
        }
    }

    /// Drops all that the device made, which is to be destroyed.
    pub(crate) fn clear(&mut self) {
        self.waiting = Waiting::default();
        self.commands.clear();
        self.immediates.clear();
        self.parameters.clear();
        self.groups.clear();
        self.in_flight.clear();
        self.staging = Staging::default();
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

    /// Returns the bind group of `kernel` over this memory, cached if possible.
    fn group(&mut self, gpu: &Gpu, kernel: &Pipeline, all: &[Bound]) -> wgpu::BindGroup {
        let mut ids = SmallVec::new();
        for bound in all {
            self.touch(bound);
            ids.push(bound.id);
        }
        let key = (kernel.layout.id, ids);
        if let Some(group) = self.groups.get(&key) {
            return group.clone();
        }
        let mut entries = Vec::with_capacity(all.len());
        for (i, bound) in all.iter().enumerate() {
            let (offset, bytes) = bound.window.unwrap_or((0, bound.raw.size()));
            let binding =
                wgpu::BufferBinding { buffer: bound.raw, offset, size: wgpu::BufferSize::new(bytes) };
            entries.push(wgpu::BindGroupEntry {
                binding: i as u32,
                resource: wgpu::BindingResource::Buffer(binding),
            });
        }
        let group = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &kernel.layout.raw,
            entries: &entries,
        });
        if self.groups.len() >= BIND_GROUPS {
            self.groups.clear();
        }
        if all.iter().all(|bound| bound.window.is_none()) {
            self.groups.insert(key, group.clone());
        }
        self.stats.bind_groups_created += 1;
        group
    }

    /// Takes a launch up to be recorded with others that it needs nothing of.
    pub(crate) fn wait(&mut self, gpu: &Gpu, launch: Launch) {
        self.waiting.push(gpu, launch);
        if self.waiting.bytes() >= BATCH_BYTES {
            self.settle(gpu);
        } else if self.waiting.is_full() {
            self.record(gpu, 1);
        }
    }

    /// Records all launches that wait.
    pub(crate) fn settle(&mut self, gpu: &Gpu) {
        if !self.waiting.is_empty() {
            self.record(gpu, usize::MAX);
        }
    }

    /// Records the first so many levels of the waiting launches.
    fn record(&mut self, gpu: &Gpu, most: usize) {
        let levels: Vec<Vec<Unit>> = {
            let pool = lock(&gpu.pool);
            std::iter::from_fn(|| self.waiting.pop(self.epoch, |id| pool.holds(id))).take(most).collect()
        };
        // All kernels that stand for several begin to be compiled before the first is needed.
        let merge = |set: Vec<Unit>| {
            let kernel = members(&set).filter(|all| all.len() > 1).and_then(|all| merged(gpu, &all));
            (kernel, set)
        };
        let sets: Vec<_> = levels.into_iter().flat_map(|level| sets(gpu, level)).map(merge).collect();
        for (kernel, set) in sets {
            let all: Vec<Launch> = match kernel.filter(|kernel| kernel.compiled().is_ok()) {
                Some(kernel) => vec![as_one(kernel, set)],
                None => set.into_iter().flatten().collect(),
            };
            for launch in all {
                let bound: SmallVec<[Bound; 8]> = launch.bound.iter().map(Kept::bound).collect();
                let Some(grid) = fold(launch.groups, gpu.limits.max_compute_workgroups_per_dimension) else {
                    gpu.fault.raise(format!("internal: {}: too large", launch.kernel.name), false);
                    continue;
                };
                self.dispatch(gpu, &launch.kernel, &bound, &launch.params, grid, launch.work);
            }
        }
        lock(&gpu.pool).release(self.waiting.done());
    }

    /// Records a launch; submits the batch if it is large enough.
    pub(crate) fn dispatch(
        &mut self, gpu: &Gpu, kernel: &Arc<Pipeline>, bound: &[Bound], params: &[u32], groups: [u32; 3],
        work: Work,
    ) {
        let is_in_buffer = kernel.layout.parameters == Parameters::Buffer;
        if is_in_buffer && !self.has_room_for(params) {
            self.submit_recorded(gpu);
        }
        let group = self.group(gpu, kernel, bound);
        let parameters = if is_in_buffer {
            Passed::Buffer(self.push_parameters(params))
        } else {
            let start = self.immediates.len();
            self.immediates.extend_from_slice(bytemuck::cast_slice(params));
            Passed::Immediates(start..self.immediates.len())
        };
        let code = Code::Kernel(kernel.clone());
        self.push(gpu, Command::Dispatch { code, group, parameters, groups }, work);
    }

    /// Records a dispatch of a user's shader over these buffers, which `group` binds.
    pub(crate) fn dispatch_group<'a>(
        &mut self, gpu: &Gpu, pipeline: &wgpu::ComputePipeline, group: wgpu::BindGroup,
        buffers: impl Iterator<Item = &'a Buffer>, groups: [u32; 3], work: Work,
    ) -> Result<()> {
        self.settle(gpu);
        for buffer in buffers {
            self.touch(&Bound::new(buffer)?);
        }
        let code = Code::Program(pipeline.clone());
        self.push(gpu, Command::Dispatch { code, group, parameters: Passed::None, groups }, work);
        Ok(())
    }

    /// Notes that the batch uses memory, if no launch that waits does.
    fn touch(&mut self, bound: &Bound) {
        if bound.epoch.load(Ordering::Relaxed) != WAITS {
            bound.epoch.store(self.epoch, Ordering::Relaxed);
        }
        self.touched += bound.raw.size();
    }

    /// Adds a dispatch; submits the batch if it is large enough.
    fn push(&mut self, gpu: &Gpu, dispatch: Command, work: Work) {
        self.commands.push(dispatch);
        if let Some(profile) = &mut self.profile {
            profile.launches.push(work);
        }
        self.stats.dispatches += 1;
        if self.commands.len() >= BATCH || self.touched >= BATCH_BYTES {
            self.submit_recorded(gpu);
        }
    }

    /// Records a copy between two buffers.
    pub(crate) fn copy(&mut self, from: (&wgpu::Buffer, u64), to: (&wgpu::Buffer, u64), size: u64) {
        let (from, to) = ((from.0.clone(), from.1), (to.0.clone(), to.1));
        self.commands.push(Command::Copy { from, to, size });
        self.touched += size;
    }

    /// Submits all commands, if there are any.
    pub(crate) fn submit(&mut self, gpu: &Gpu) {
        self.settle(gpu);
        self.submit_recorded(gpu);
    }

    /// Submits the recorded commands, if any.
    fn submit_recorded(&mut self, gpu: &Gpu) {
        self.forget(&mut lock(&gpu.pool).dead);
        if self.commands.is_empty() {
            return;
        }
        let (uniform, group) = &self.uniforms[self.epoch as usize % RING];
        if !self.parameters.is_empty() {
            gpu.queue.write_buffer(uniform, 0, &self.parameters);
            self.parameters.clear();
        }
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let timestamps = self.profile.as_ref().map(|p| &p.queries);
        encode(&gpu.fault, &mut encoder, &self.commands, (&self.immediates[..], group), timestamps);
        if let Some(profile) = &mut self.profile {
            profile.resolve(gpu, &mut encoder);
        }
        self.in_flight.push_back(gpu.queue.submit([encoder.finish()]));
        self.commands.clear();
        self.immediates.clear();
        self.touched = 0;
        gpu.pending.store(0, Ordering::Relaxed);
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

/// A buffer for parameters, and its bind group.
fn uniform(device: &wgpu::Device, layout: &wgpu::BindGroupLayout) -> (wgpu::Buffer, wgpu::BindGroup) {
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("parameters"),
        size: (UNIFORM_BYTES + UNIFORM_WINDOW) as u64,
        usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let window = wgpu::BufferBinding {
        buffer: &buffer,
        offset: 0,
        size: wgpu::BufferSize::new(UNIFORM_WINDOW as u64),
    };
    let entries = [wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::Buffer(window) }];
    let group =
        device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries });
    (buffer, group)
}

/// Encodes the commands: one compute pass per run of dispatches, or per dispatch with two timestamps each.
/// The parameters are among the immediates, or in the buffer of the bind group. Waits for kernels that are
/// still being compiled; what does not compile is reported, and the rest runs without it.
fn encode(
    fault: &Fault, encoder: &mut wgpu::CommandEncoder, commands: &[Command],
    (immediates, uniform): (&[u8], &wgpu::BindGroup), timestamps: Option<&wgpu::QuerySet>,
) {
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
        while let Some(Command::Dispatch { code, group, parameters, groups }) = rest.first() {
            let compiled = match code {
                Code::Kernel(kernel) => kernel.compiled(),
                Code::Program(pipeline) => Ok(pipeline),
            };
            match compiled {
                Ok(pipeline) => {
                    pass.set_pipeline(pipeline);
                    pass.set_bind_group(0, group, &[]);
                    match parameters {
                        Passed::None => {}
                        Passed::Immediates(range) => pass.set_immediates(0, &immediates[range.clone()]),
                        Passed::Buffer(offset) => pass.set_bind_group(1, uniform, &[*offset]),
                    }
                    pass.dispatch_workgroups(groups[0], groups[1], groups[2]);
                }
                Err(error) => fault.raise(error.to_string(), false),
            }
            rest = &rest[1..];
            if timestamps.is_some() {
                break;
            }
        }
    }
}
