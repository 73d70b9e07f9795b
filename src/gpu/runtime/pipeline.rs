//! Kernels: WGSL text compiled once per GPU and cached.
//!
//! Bind group layouts are derived from the text (which bindings are writable, whether there are parameters),
//! so that kernels of the same layout share their bind groups. This crate's shaders are compiled without
//! run-time checks in release builds, since the host proves the bounds, and with them in debug builds. Read
//! next: `src/gpu/shader/template.rs`, the text.

use super::device::{Gpu, gpu};
use super::pool::allocation;
use crate::array::buffer::Buffer;
use crate::error::{Error, Result};
use crate::process::sync::lock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// A compiled shader entry point.
pub struct Kernel {
    pub(crate) name: String,
    entry: String,
    text: String,
    pub(crate) layout: Arc<Layout>,
    pub(crate) pipeline: wgpu::ComputePipeline,
    /// The variant whose buffers are all writable, for in-place launches.
    aliased: OnceLock<Arc<Kernel>>,
}

/// The layout of a kernel's bindings.
pub struct Layout {
    /// Unique on its GPU.
    pub(crate) id: u32,
    /// For each storage buffer, in order, whether the kernel writes it.
    pub(crate) writable: Vec<bool>,
    /// Whether a uniform structure of parameters follows the buffers.
    pub(crate) uniform: bool,
    pub(crate) raw: wgpu::BindGroupLayout,
    pipelines: wgpu::PipelineLayout,
}

impl Layout {
    /// Whether some buffer is bound both as writable and as read-only.
    pub(crate) fn writes(&self, buffers: &[&Buffer]) -> bool {
        let ids: SmallVec<[u64; 64]> =
            buffers.iter().map(|b| allocation(b).map_or(0, |a| a.block.id)).collect();
        let of = |writable: bool| ids.iter().zip(&self.writable).filter(move |(_, w)| **w == writable);
        of(true).any(|(written, _)| of(false).any(|(read, _)| read == written))
    }
}

/// What tells kernels of one name apart.
#[derive(PartialEq, Eq, Hash)]
pub struct Variant {
    /// The entry point.
    pub entry: &'static str,
    /// Dtypes, flags and sizes.
    pub parts: SmallVec<[u64; 16]>,
    /// A part of the text.
    pub text: Box<str>,
}

/// The kernels of a GPU, by name and variant.
#[derive(Default)]
pub struct Kernels {
    by_name: FxHashMap<Box<str>, FxHashMap<Variant, Arc<Kernel>>>,
    layouts: Vec<Arc<Layout>>,
    compiled: u64,
}

impl Kernels {
    pub(crate) fn compiled(&self) -> u64 {
        self.compiled
    }

    fn layout(&mut self, gpu: &Gpu, writable: Vec<bool>, uniform: bool) -> Arc<Layout> {
        if let Some(found) = self.layouts.iter().find(|l| l.writable == writable && l.uniform == uniform) {
            return found.clone();
        }
        let made = Arc::new(make_layout(gpu, self.layouts.len() as u32, writable, uniform));
        self.layouts.push(made.clone());
        made
    }
}

/// Returns the kernel `name`, `variant` of GPU `index`; `build` makes its WGSL text the first time. `variant`
/// must distinguish everything that `build` depends on besides the name.
pub fn kernel(
    index: u8,
    name: &str,
    variant: Variant,
    build: impl FnOnce() -> Result<String>,
) -> Result<Arc<Kernel>> {
    let gpu = gpu(index)?;
    if let Some(found) = lock(&gpu.kernels).by_name.get(name).and_then(|v| v.get(&variant)) {
        return Ok(found.clone());
    }
    // Two threads may compile the same kernel at the same time; either result is valid.
    let made = Arc::new(compile(gpu, name, variant.entry, build()?)?);
    lock(&gpu.kernels).by_name.entry(name.into()).or_default().insert(variant, made.clone());
    Ok(made)
}

/// The number of storage buffers that a kernel on GPU `index` can bind.
pub fn max_buffers(index: u8) -> Result<usize> {
    let limits = &gpu(index)?.limits;
    // One binding is reserved for the parameters.
    let bindings = limits.max_bindings_per_bind_group.saturating_sub(1);
    Ok(limits.max_storage_buffers_per_shader_stage.min(bindings) as usize)
}

impl Kernel {
    /// The variant of this kernel whose buffers are all writable.
    pub(crate) fn aliased(&self, gpu: &Gpu) -> Result<Arc<Kernel>> {
        if let Some(found) = self.aliased.get() {
            return Ok(found.clone());
        }
        let text = self.text.replace("var<storage, read>", "var<storage, read_write>");
        let made = Arc::new(compile(gpu, &self.name, &self.entry, text)?);
        Ok(self.aliased.get_or_init(|| made).clone())
    }
}

/// Parses a shader's bindings: whether each storage buffer, in order, is writable; whether a uniform follows.
fn bindings(text: &str) -> Option<(Vec<bool>, bool)> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for part in text.split("@binding(").skip(1) {
        let (number, rest) = part.split_once(')')?;
        let (space, _) = rest.split_once("var<")?.1.split_once('>')?;
        found.push((number.trim().parse().ok()?, space));
    }
    found.sort_unstable();
    let uniform = found.last().is_some_and(|(_, space)| *space == "uniform");
    let storage = &found[..found.len() - usize::from(uniform)];
    let in_order = storage.iter().enumerate().all(|(i, (n, space))| i == *n && space.starts_with("storage"));
    in_order.then(|| (storage.iter().map(|(_, space)| space.contains("read_write")).collect(), uniform))
}

fn make_layout(gpu: &Gpu, id: u32, writable: Vec<bool>, uniform: bool) -> Layout {
    let entry = |binding: usize, ty: wgpu::BufferBindingType, dynamic: bool| wgpu::BindGroupLayoutEntry {
        binding: binding as u32,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: dynamic, min_binding_size: None },
        count: None,
    };
    let mut entries: Vec<_> = writable
        .iter()
        .enumerate()
        .map(|(i, &w)| entry(i, wgpu::BufferBindingType::Storage { read_only: !w }, false))
        .collect();
    if uniform {
        entries.push(entry(writable.len(), wgpu::BufferBindingType::Uniform, true));
    }
    let desc = wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries };
    let raw = gpu.device.create_bind_group_layout(&desc);
    let pipelines = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&raw)],
        immediate_size: 0,
    });
    Layout { id, writable, uniform, raw, pipelines }
}

/// Compiles one entry point of `text`.
fn compile(gpu: &Gpu, name: &str, entry: &str, text: String) -> Result<Kernel> {
    let failed =
        |why: &str| Error::device(format!("gpu:{}: kernel {name} does not compile: {why}", gpu.index));
    let (writable, uniform) =
        bindings(&text).ok_or_else(|| failed("its bindings are not numbered in order"))?;
    let buffers = writable.len() as u32;
    if buffers > gpu.limits.max_storage_buffers_per_shader_stage {
        return Err(failed(&format!("it needs {buffers} buffers at once, more than this GPU has")));
    }
    let layout = {
        let mut kernels = lock(&gpu.kernels);
        kernels.compiled += 1;
        kernels.layout(gpu, writable, uniform)
    };
    let internal = gpu.device.push_error_scope(wgpu::ErrorFilter::Internal);
    let validation = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
    let module = module(gpu, name, &text);
    let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(name),
        layout: Some(&layout.pipelines),
        module: &module,
        entry_point: Some(entry),
        compilation_options: wgpu::PipelineCompilationOptions {
            constants: &[],
            // Otherwise one thread of each workgroup clears its memory. The kernels write before they read.
            zero_initialize_workgroup_memory: false,
        },
        cache: None,
    });
    let invalid = pollster::block_on(validation.pop());
    if let Some(e) = pollster::block_on(internal.pop()).or(invalid) {
        return Err(failed(&e.to_string()));
    }
    Ok(Kernel { name: name.into(), entry: entry.into(), text, layout, pipeline, aliased: OnceLock::new() })
}

fn module(gpu: &Gpu, name: &str, text: &str) -> wgpu::ShaderModule {
    let desc =
        wgpu::ShaderModuleDescriptor { label: Some(name), source: wgpu::ShaderSource::Wgsl(text.into()) };
    if cfg!(debug_assertions) {
        return gpu.device.create_shader_module(desc);
    }
    // SAFETY: without run-time checks the shader must not access out of bounds or loop forever. The text is
    // one of this crate's shaders: its index arithmetic stays inside the buffers for the shapes and strides
    // that the host passes, and its loops end. Debug builds run the same shaders with the checks on.
    unsafe { gpu.device.create_shader_module_trusted(desc, wgpu::ShaderRuntimeChecks::unchecked()) }
}

#[cfg(test)]
mod tests {
    use super::bindings;

    #[test]
    fn bindings_are_read_off_the_text() {
        let text = "@group(0) @binding(1) var<storage, read_write> o: array<u32>;\n\
                    @group(0) @binding(0) var<storage, read> x: array<u32>;\n\
                    @group(0) @binding(2) var<uniform> p: P;";
        assert_eq!(bindings(text), Some((vec![false, true], true)));
        assert_eq!(bindings("@group(0) @binding(1) var<storage, read> x: array<u32>;"), None);
    }
}
