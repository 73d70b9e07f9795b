//! The GPU: the only folder that knows `wgpu`.
//!
//! Reading order: `device` (which GPUs there are), `pool` (memory), `queue` and `recorder` (how work gets to
//! the GPU), `pipeline` and `template` (how a shader file becomes a kernel), `transfer` and `status` (what
//! comes back), `kernels`, and `program` (shaders of users).

mod device;
pub mod kernels;
mod pipeline;
mod pool;
pub mod program;
mod queue;
mod recorder;
mod status;
pub mod template;
#[cfg(test)]
mod tests;
mod transfer;
pub mod wgsl;

pub use device::{Info, count, describe_adapters, info, is_available};
pub use pipeline::{Kernel, kernel, max_buffers};
pub use pool::{Stats, alloc, empty_cache, stats, storage_bytes};
pub use queue::{flush, launch, synchronize};
pub use status::status;
pub use transfer::{constant, download, scalar, upload};
