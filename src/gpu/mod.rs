//! The GPU: the only folder that knows `wgpu`.
//!
//! Reading order, in `runtime`: `device` (which GPUs there are), `pool` (memory), `queue` and `recorder` (how
//! work gets to the GPU), `pipeline` (how a shader becomes a kernel), `transfer` and `status` (what comes
//! back). Then `shader` (the shader's text), `kernels`, and `program` (shaders of users).

pub mod kernels;
pub mod program;
pub mod runtime;
pub mod shader;
#[cfg(test)]
mod tests;

pub use crate::gpu::runtime::device::{count, describe_adapters, info, is_available};
pub use crate::gpu::runtime::pipeline::{kernel, max_buffers};
pub use crate::gpu::runtime::pool::{alloc, empty_cache, stats, storage_bytes};
pub use crate::gpu::runtime::queue::{flush, launch, synchronize};
pub use crate::gpu::runtime::status::status;
pub use crate::gpu::runtime::transfer::{download, scalar, upload};
