//! The GPU as `wgpu` shows it: memory, pipelines, the queue, transfers, faults.

pub(crate) mod device;
pub(crate) mod pipeline;
pub(crate) mod pool;
pub(crate) mod queue;
pub(crate) mod recorder;
pub(crate) mod status;
pub(crate) mod transfer;
