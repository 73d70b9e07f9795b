//! The layer over `wgpu`: memory, pipelines, the queue, transfers, errors.

pub(crate) mod compiler;
pub(crate) mod device;
pub(crate) mod disk;
pub(crate) mod fault;
pub(crate) mod info;
pub(crate) mod matrices;
pub(crate) mod pipeline;
pub(crate) mod pool;
pub(crate) mod profile;
pub(crate) mod queue;
pub(crate) mod recorder;
pub(crate) mod status;
pub(crate) mod transfer;
pub(crate) mod upload;
pub(crate) mod waiting;
