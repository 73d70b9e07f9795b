//! Functions about the machine: GPUs, threads, memory.

use crate::array::buffer;
use crate::cpu::run::threads;
#[cfg(feature = "gpu")]
use crate::gpu::runtime::profile::{self, Launch};
use crate::py::args::{count, integer};
#[cfg(feature = "gpu")]
use crate::py::data::dtype::gpu_index;
use crate::py::prelude::*;
use pyo3::types::IntoPyDict;

/// Sets the number of CPU threads that large operations use.
#[pyfunction]
fn set_num_threads(threads: &Bound<'_, PyAny>) -> PyResult<()> {
    match usize::try_from(integer(threads)?) {
        Ok(n) if n > 0 => {
            threads::set_num_threads(n);
            Ok(())
        }
        _ => Err(value_error(format!("set_num_threads: at least one thread expected, got {threads}"))),
    }
}

/// Host memory: bytes that tensors hold and held at most, kept for reuse, allocations, entries of the tape.
#[pyfunction]
fn _memory_stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    named!(
        py,
        live_bytes = buffer::live_bytes(),
        peak_bytes = buffer::peak_bytes(),
        cached_bytes = buffer::cached_bytes(),
        fresh_allocations = buffer::fresh_allocations(),
        reused_allocations = buffer::reused_allocations(),
        live_nodes = crate::tape::node::live_nodes(),
    )
}

functions! {
    /// Returns the number of CPU threads that large operations use.
    get_num_threads() -> usize = threads::num_threads();
    /// Begins the search for the peak anew.
    _reset_peak() = buffer::reset_peak();
    /// Gives host memory that is kept for reuse back to the system.
    _empty_cache() = buffer::empty_cache();
    /// Lets only `count` more blocks of `large` bytes or more be made, to test short memory. None ends that.
    #[pyo3(signature = (count=None, large=65536))]
    _fail_allocations(count: Option<usize>, large: usize) =
        crate::process::blocks::fail_after(count.unwrap_or(0), count.map_or(usize::MAX, |_| large));
}

/// Sets the most bytes of large blocks that are kept for reuse.
#[pyfunction]
fn _set_cache_limit(bytes: &Bound<'_, PyAny>) -> PyResult<()> {
    buffer::set_cache_limit(count("set_cache_limit: bytes", integer(bytes)?)?);
    Ok(())
}

/// Functions that find nothing, the default of their result, without support of GPUs.
macro_rules! found {
    ($($(#[$doc:meta])* $name:ident -> $type:ty = $find:path;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            fn $name(py: Python<'_>) -> $type {
                #[cfg(feature = "gpu")]
                return py.detached($find);
                #[cfg(not(feature = "gpu"))]
                return py.detached(<$type>::default);
            }
        )*
    };
}

found! {
    /// Whether a GPU is there; never raises.
    _gpu_is_available -> bool = crate::gpu::is_available;
    /// How many GPUs there are.
    _gpu_device_count -> usize = crate::gpu::count;
    /// The adapters behind `gpu:0`, `gpu:1`, …, a line each.
    _gpu_adapters -> Vec<String> = crate::gpu::describe_adapters;
}

/// Returns what a GPU is and can do.
#[cfg(feature = "gpu")]
#[pyfunction]
fn _gpu_info<'py>(py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let index = gpu_index("gpu.info", index)?;
    let (info, products) = py.detached(|| {
        crate::gpu::info(index).and_then(|info| Ok((info, crate::gpu::kernels::matmul::described(index)?)))
    })?;
    let limits = info.limits.into_py_dict(py)?;
    let has = |name: &str| info.features.iter().any(|feature| feature == name);
    let (subgroups, float16) = (has("subgroup"), has("shader_f16"));
    named!(
        py,
        adapter = info.adapter,
        backend = info.backend,
        driver = info.driver,
        device_type = info.device_type,
        vendor_id = info.ids.0,
        device_id = info.ids.1,
        subgroups = subgroups,
        subgroup_size = info.subgroup,
        cooperative_matrices = info.cooperative_matrices,
        timestamps = info.timestamp_period.is_some(),
        timestamp_period = info.timestamp_period,
        float16 = float16,
        float16_products = products,
        features = info.features,
        limits = limits,
    )
}

/// Waits until a GPU has done all that was queued.
#[cfg(feature = "gpu")]
#[pyfunction]
fn _gpu_synchronize(py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<()> {
    let index = gpu_index("gpu.synchronize", index)?;
    Ok(py.detached(|| crate::gpu::synchronize(index))?)
}

/// Gives GPU memory that is kept for reuse back to the system.
#[cfg(feature = "gpu")]
#[pyfunction]
fn _gpu_empty_cache(py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<()> {
    let index = gpu_index("gpu.empty_cache", index)?;
    Ok(py.detached(|| crate::gpu::empty_cache(index))?)
}

/// Begins the search for the peak of a GPU's memory anew.
#[cfg(feature = "gpu")]
#[pyfunction]
fn _gpu_reset_peak(py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<()> {
    let index = gpu_index("gpu.reset_peak", index)?;
    Ok(py.detached(|| crate::gpu::reset_peak(index))?)
}

/// Takes a GPU out of use; the next use opens it anew.
#[cfg(feature = "gpu")]
#[pyfunction]
fn _gpu_reset(py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<()> {
    let index = gpu_index("gpu.reset", index)?;
    Ok(py.detached(|| crate::gpu::reset(index))?)
}

/// Destroys the device of a GPU, as a driver does that gives up; for tests.
#[cfg(feature = "gpu")]
#[pyfunction]
fn _gpu_lose(py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<()> {
    let index = gpu_index("gpu", index)?;
    Ok(py.detached(|| crate::gpu::lose(index))?)
}

/// Writes the compiled kernels of all GPUs to disk.
#[cfg(feature = "gpu")]
#[pyfunction]
fn _gpu_save_pipelines(py: Python<'_>) {
    py.detached(crate::gpu::save_pipelines);
}

/// Begins to time each launch on a GPU.
#[cfg(feature = "gpu")]
#[pyfunction]
fn _gpu_profile_begin(py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<()> {
    let index = gpu_index("gpu.profile", index)?;
    Ok(py.detached(|| profile::begin(index))?)
}

/// Ends the profile of a GPU; returns of each launch kernel, variant, bytes, operations, begin and end.
#[cfg(feature = "gpu")]
#[pyfunction]
fn _gpu_profile_end(py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Vec<Launch>> {
    let index = gpu_index("gpu.profile", index)?;
    Ok(py.detached(|| profile::end(index))?)
}

/// Name, entry point and WGSL of every kernel that a GPU has compiled.
#[cfg(feature = "gpu")]
#[pyfunction]
fn _gpu_texts(py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Vec<(String, &'static str, String)>> {
    let index = gpu_index("gpu", index)?;
    Ok(py.detached(|| crate::gpu::texts(index))?)
}

/// Memory and work of a GPU, in numbers.
#[cfg(feature = "gpu")]
#[pyfunction]
fn _gpu_memory_stats<'py>(py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let index = gpu_index("gpu.memory_stats", index)?;
    let s = py.detached(|| crate::gpu::stats(index))?;
    named!(
        py,
        live_bytes = s.live_bytes,
        peak_bytes = s.peak_bytes,
        cached_bytes = s.cached_bytes,
        buffers_created = s.buffers_created,
        pipelines_created = s.pipelines_created,
        most_compiling = s.most_compiling,
        bind_groups_created = s.bind_groups_created,
        dispatches = s.dispatches,
        submits = s.submits,
    )
}

exports! {
    functions: set_num_threads, get_num_threads, _memory_stats, _set_cache_limit, _reset_peak, _empty_cache,
        _fail_allocations, _gpu_is_available, _gpu_device_count, _gpu_adapters,
        #[cfg(feature = "gpu")] _gpu_info, #[cfg(feature = "gpu")] _gpu_synchronize,
        #[cfg(feature = "gpu")] _gpu_empty_cache, #[cfg(feature = "gpu")] _gpu_memory_stats,
        #[cfg(feature = "gpu")] _gpu_reset_peak, #[cfg(feature = "gpu")] _gpu_reset,
        #[cfg(feature = "gpu")] _gpu_lose, #[cfg(feature = "gpu")] _gpu_save_pipelines,
        #[cfg(feature = "gpu")] _gpu_profile_begin, #[cfg(feature = "gpu")] _gpu_profile_end,
        #[cfg(feature = "gpu")] _gpu_texts
}
