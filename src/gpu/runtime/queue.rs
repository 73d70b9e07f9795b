//! Launching kernels: commands are recorded and submitted in batches.
//!
//! A launch costs about a microsecond and a submission about fifty. So launches are collected in a list,
//! which becomes one compute pass at a read-back, after 64 commands, or once enough memory is touched for the
//! GPU to start early. Parameters go with the commands, as immediates; where the adapter has none, or not
//! enough, those of a batch share one uniform buffer, written once per submission. Read
//! next: `src/gpu/runtime/pipeline.rs`, which makes the kernels.

use super::device::{Gpu, gpu};
use super::pipeline::Pipeline;
use super::pool::{bindable, too_large};
use super::profile::Work;
use super::recorder::UNIFORM_WINDOW;
use super::waiting::{Bound, Flow, Kept, Launch, waits};
use crate::array::buffer::Buffer;
use crate::error::{Error, Result};
use crate::process::sync::lock;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;

/// How long the host waits for the GPU before it reports an error.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(300);

/// Records one run of `kernel` over `buffers` (in the order of its bindings) with `groups` workgroups.
///
/// `params` are the words of the kernel's structure of parameters. Workgroups beyond the grid limit are
/// folded into y and z; kernels compute `wid.x + n.x * (wid.y + n.y * wid.z)` and ignore the excess. `work`
/// is for a profile, if one is being taken.
pub fn launch(
    gpu: &Gpu, kernel: &Arc<Pipeline>, buffers: &[&Buffer], params: &[u32], groups: u64, flow: Flow,
    work: Work,
) -> Result<()> {
    check(gpu, kernel, buffers, params)?;
    let grid = fold(groups, gpu.limits.max_compute_workgroups_per_dimension).ok_or_else(|| {
        Error::memory(format!("gpu:{}: {}: too large for one launch", gpu.index, kernel.name))
    })?;
    let bound: SmallVec<[Bound; 16]> = buffers.iter().map(|x| Bound::new(x)).collect::<Result<_>>()?;
    let bytes = |bound: &Bound| bound.window.map_or(bound.raw.size(), |(_, bytes)| bytes);
    if let Some(i) = bound.iter().position(|bound| bytes(bound) > bindable(&gpu.limits)) {
        return Err(too_large(gpu, &kernel.name, buffers[i].bytes()));
    }
    let wait = {
        let mut recorder = lock(&gpu.recorder);
        if waits() {
            let (kernel, bound) = (kernel.clone(), bound.iter().map(Kept::new).collect());
            recorder.wait(gpu, Launch { kernel, bound, params: params.into(), groups, work, flow });
        } else {
            recorder.settle(gpu);
            recorder.dispatch(gpu, kernel, &bound, params, grid, work);
        }
        recorder.next_wait(false)
    };
    match wait {
        Some(submission) => wait_for(gpu, submission),
        None => Ok(()),
    }
}

fn check(gpu: &Gpu, kernel: &Pipeline, buffers: &[&Buffer], params: &[u32]) -> Result<()> {
    let layout = &kernel.layout;
    if buffers.len() == layout.writable.len() && params.len() * 4 <= UNIFORM_WINDOW && !params.is_empty() {
        return Ok(());
    }
    Err(Error::device(format!(
        "internal: gpu:{}: {} takes {} buffers, got {} with {} parameters",
        gpu.index,
        kernel.name,
        layout.writable.len(),
        buffers.len(),
        params.len()
    )))
}

/// Workgroup counts along x, y, z whose product is at least `groups`, and as close to it as possible.
pub(crate) fn fold(groups: u64, most: u32) -> Option<[u32; 3]> {
    let most = u64::from(most);
    let z = groups.div_ceil(most * most);
    let y = groups.div_ceil(z).div_ceil(most);
    let x = groups.div_ceil(z * y);
    (z <= most).then_some([x as u32, y as u32, z as u32])
}

/// Submits the recorded work of GPU `index` without waiting for it.
pub fn flush(index: u8) -> Result<()> {
    let gpu = gpu(index)?;
    lock(&gpu.recorder).submit(gpu);
    gpu.fault.check(index)
}

/// Submits the recorded work of GPU `index` and waits until it is done. Raises what indexing kernels have
/// reported since the last read-back.
pub fn synchronize(index: u8) -> Result<()> {
    let gpu = gpu(index)?;
    super::transfer::raise_reports(gpu)?;
    synchronize_gpu(gpu)
}

pub(crate) fn synchronize_gpu(gpu: &Gpu) -> Result<()> {
    let last = {
        let mut recorder = lock(&gpu.recorder);
        recorder.submit(gpu);
        recorder.next_wait(true)
    };
    match last {
        Some(submission) => wait_for(gpu, submission),
        None => gpu.fault.check(gpu.index),
    }
}

/// Waits for a submission, at most [`TIMEOUT`].
pub(crate) fn wait_for(gpu: &Gpu, submission: wgpu::SubmissionIndex) -> Result<()> {
    let waited =
        gpu.device.poll(wgpu::PollType::Wait { submission_index: Some(submission), timeout: Some(TIMEOUT) });
    gpu.fault.check(gpu.index)?;
    waited.map(|_| ()).map_err(|e| match e {
        wgpu::PollError::Timeout => Error::device(format!(
            "gpu:{} did not finish within {} s; the driver may be hung",
            gpu.index,
            TIMEOUT.as_secs()
        )),
        e => Error::device(format!("gpu:{}: {e}", gpu.index)),
    })
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn grids_cover_their_work() {
        for groups in [1, 65535, 65536, 65537, 1 << 20, 65535 * 65535, 65535 * 65535 + 1, 1 << 40] {
            let [x, y, z] = fold(groups, 65535).map_or([0; 3], |g| g.map(u64::from));
            assert!(
                x * y * z >= groups && x * y * z < groups + groups / 100 + 65536,
                "{groups}: {x} {y} {z}"
            );
            assert!(x <= 65535 && y <= 65535);
        }
        assert_eq!(fold(1 << 50, 65535), None);
    }
}
