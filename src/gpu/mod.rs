//! The GPU: the only folder that uses `wgpu`.
//!
//! Reading order, in `src/gpu/runtime/`: `device.rs` (the GPUs), `pool.rs` (memory), `queue.rs` and
//! `recorder.rs` (submission), `pipeline.rs` (shader to kernel), `transfer.rs` and `status.rs` (read-back).
//! Then `src/gpu/shader/` (shader text), `src/gpu/kernels/`, and `src/gpu/program.rs` (users' shaders).

pub mod kernels;
pub mod program;
pub mod runtime;
pub mod shader;
#[cfg(test)]
mod tests;

pub use crate::gpu::runtime::device::{Info, count, describe_adapters, info, is_available};
pub use crate::gpu::runtime::pipeline::{Kernel, kernel, max_buffers};
pub use crate::gpu::runtime::pool::{Stats, alloc, empty_cache, stats, storage_bytes};
pub use crate::gpu::runtime::queue::{flush, launch, synchronize};
pub use crate::gpu::runtime::status::status;
pub use crate::gpu::runtime::transfer::{constant, download, scalar, upload};
