//! The GPU: the only folder that uses `wgpu`.
//!
//! Reading order, in `src/gpu/runtime/`: `device` (the GPUs), `pool` (memory), `queue` and `recorder`
//! (submission), `waiting` (several launches as one), `pipeline` and `compiler` (shader to kernel),
//! `transfer` and `status` (read-back). Then `src/gpu/shader/`, the shaders' text; `src/gpu/kernels/`; and
//! `src/gpu/program.rs`, users' shaders.

/// The text of files of `shaders/`, one after another, without comments (`build.rs`).
macro_rules! shader {
    ($($file:literal),+) => {
        concat!($(include_str!(concat!(env!("OUT_DIR"), "/shaders/", $file, ".wgsl"))),+)
    };
}

/// A test that needs a GPU adapter and has the driver to itself.
#[cfg(test)]
macro_rules! gpu_test {
    ($name:ident, $body:block) => {
        #[test]
        #[ignore = "needs a GPU adapter"]
        fn $name() -> Result<()> {
            let _serial = crate::gpu::kernels::tests::serial();
            $body
            Ok(())
        }
    };
}

pub mod kernels;
pub mod program;
pub mod runtime;
pub mod shader;
#[cfg(test)]
#[path = "../../tests/kernels/gpu/device.rs"]
mod tests;

pub use crate::gpu::runtime::device::{
    count, describe_adapters, info, is_available, lose, reset, resets, save_pipelines,
};
pub use crate::gpu::runtime::pipeline::{Variant, kernel, max_buffers, texts};
pub use crate::gpu::runtime::pool::{alloc, empty_cache, reset_peak, stats, storage_bytes};
pub use crate::gpu::runtime::queue::{flush, launch, synchronize};
pub use crate::gpu::runtime::status::status;
pub use crate::gpu::runtime::transfer::{Constant, constant, download, scalar, upload};
pub use crate::gpu::runtime::waiting::{Flow, merging};
