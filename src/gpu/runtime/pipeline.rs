//! Pipelines: WGSL text compiled once per GPU, by threads in the background, and cached.
//!
//! Pipelines of the same layout (which bindings are writable) share their bind groups. This crate's shaders
//! are compiled without run-time checks in release builds, since the host proves the bounds, and with them in
//! debug builds. Read next: `src/gpu/runtime/compiler.rs`, the threads;
//! `src/gpu/shader/template.rs`, the text.

use super::compiler::Compiler;
use super::device::{Gpu, gpu};
use super::fault::guarded;
use crate::error::{Error, Result};
use crate::gpu::shader::merge::{self, Link, Member, Needs};
use crate::process::sync::lock;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// A shader entry point, compiled or about to be.
pub struct Pipeline {
    pub(crate) name: String,
    entry: &'static str,
    text: String,
    pub(crate) layout: Arc<Layout>,
    compiler: Arc<Compiler>,
    compiled: OnceLock<Result<wgpu::ComputePipeline>>,
    /// What it needs of a kernel that stands for several, if it can be in one.
    needs: OnceLock<Option<Needs>>,
}

/// The layout of a kernel's bindings.
pub struct Layout {
    /// Unique on its GPU.
    pub(crate) id: u32,
    /// For each storage buffer, in order, whether the kernel writes it.
    pub(crate) writable: Vec<bool>,
    pub(crate) parameters: Parameters,
    pub(crate) raw: wgpu::BindGroupLayout,
    pipeline: wgpu::PipelineLayout,
}

/// How a kernel gets its parameters. The texts have them in a uniform buffer behind the other bindings; that
/// is changed when a text is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Parameters {
    /// There are none.
    None,
    /// With the commands.
    Immediates,
    /// In a uniform buffer, the only binding of group 1, so that other groups do not depend on which buffer.
    Buffer,
}

impl Parameters {
    /// How so many words are passed.
    fn of(gpu: &Gpu, words: usize) -> Parameters {
        if words * 4 <= gpu.immediates { Parameters::Immediates } else { Parameters::Buffer }
    }

    /// The text of a kernel that gets its parameters so.
    fn apply(self, text: &str) -> Cow<'_, str> {
        let declaration = "var<uniform> p";
        let start = text.find(declaration).and_then(|at| Some((text[..at].rfind("@group")?, at)));
        let Some((start, at)) = start else { return text.into() };
        let new = match self {
            Parameters::None => return text.into(),
            Parameters::Immediates => "var<immediate> p",
            Parameters::Buffer => "@group(1) @binding(0) var<uniform> p",
        };
        format!("{}{new}{}", &text[..start], &text[at + declaration.len()..]).into()
    }
}

/// What tells pipelines of one name apart.
#[derive(PartialEq, Eq, Hash)]
pub struct Variant {
    /// The entry point.
    pub entry: &'static str,
    /// Dtypes, flags and sizes.
    pub parts: SmallVec<[u64; 16]>,
    /// The inputs that are bound as writable.
    pub aliased: SmallVec<[usize; 2]>,
}

/// What a kernel is called with.
#[derive(Clone, Copy)]
pub struct Signature<'a> {
    /// For each storage buffer, in order, whether the kernel writes it.
    pub writable: &'a [bool],
    /// The words of its parameters.
    pub words: usize,
}

/// What tells kernels that stand for several apart: the addresses of these, which stay, as no pipeline is
/// dropped before its GPU is closed; and how they follow each other.
type MergedKey = SmallVec<[u64; 20]>;

/// So many sets of kernels that met once are known at most; then all are forgotten.
const MET: usize = 4096;

/// The pipelines of a GPU, by name and variant, and the layouts that they share.
#[derive(Default)]
pub struct Pipelines {
    by_name: FxHashMap<Box<str>, FxHashMap<Variant, Arc<Pipeline>>>,
    layouts: Vec<Arc<Layout>>,
    /// Sets of kernels that met once.
    met: FxHashSet<MergedKey>,
    /// The kernels that stand for several; `None` where the driver takes none.
    merged: FxHashMap<MergedKey, Option<Arc<Pipeline>>>,
    /// The number of pipelines made.
    pub(crate) made: u64,
}

impl Pipelines {
    fn layout(&mut self, gpu: &Gpu, writable: &[bool], parameters: Parameters) -> Arc<Layout> {
        let is_it = |l: &&Arc<Layout>| l.writable == writable && l.parameters == parameters;
        if let Some(found) = self.layouts.iter().find(is_it) {
            return found.clone();
        }
        let (raw, pipeline) = layouts(gpu, None, (0..).zip(writable.iter().copied()), parameters);
        let id = self.layouts.len() as u32;
        let made = Arc::new(Layout { id, writable: writable.into(), parameters, raw, pipeline });
        self.layouts.push(made.clone());
        made
    }

    /// A pipeline of one entry point of `text`, which a thread begins to compile.
    fn make(
        &mut self, gpu: &Gpu, name: &str, entry: &'static str, writable: &[bool], parameters: Parameters,
        text: String,
    ) -> Result<Arc<Pipeline>> {
        if writable.len() as u32 > gpu.limits.max_storage_buffers_per_shader_stage {
            let count = writable.len();
            let why = format!("it needs {count} buffers at once, more than this GPU has");
            return Err(failed(gpu.index, name, &why));
        }
        self.made += 1;
        let made = Arc::new(Pipeline {
            name: name.into(),
            entry,
            text,
            layout: self.layout(gpu, writable, parameters),
            compiler: gpu.compiler.clone(),
            compiled: OnceLock::new(),
            needs: OnceLock::new(),
        });
        let job = made.clone();
        gpu.compiler.threads.run(move || {
            let _ = job.compiled();
        });
        Ok(made)
    }

    fn find(&self, name: &str, variant: &Variant) -> Option<Result<Arc<Pipeline>>> {
        Some(self.by_name.get(name)?.get(variant)?.unless_failed())
    }
}

/// The error of a kernel that does not compile.
fn failed(index: u8, name: &str, why: &str) -> Error {
    Error::device(format!("gpu:{index}: kernel {name} does not compile: {why}"))
}

/// Returns the pipeline `name`, `variant` of a GPU; `build` makes its WGSL text the first time. `variant`
/// must distinguish everything that `build` and `signature` depend on besides the name. It may be compiled
/// later: an error of that is raised where the work is submitted, and here from then on.
pub fn kernel(
    gpu: &Gpu, name: &str, variant: Variant, signature: Signature, build: impl FnOnce() -> Result<String>,
) -> Result<Arc<Pipeline>> {
    if let Some(found) = lock(&gpu.pipelines).find(name, &variant) {
        return found;
    }
    let text = build()?;
    let mut pipelines = lock(&gpu.pipelines);
    // Another thread may have made it meanwhile.
    if let Some(found) = pipelines.find(name, &variant) {
        return found;
    }
    let parameters = Parameters::of(gpu, signature.words);
    let made = pipelines.make(gpu, name, variant.entry, signature.writable, parameters, text)?;
    pipelines.by_name.entry(name.into()).or_default().insert(variant, made.clone());
    Ok(made)
}

/// Name, entry point and text of every pipeline of GPU `index`, in the order of names and texts.
pub fn texts(index: u8) -> Result<Vec<(String, &'static str, String)>> {
    let all: Vec<Arc<Pipeline>> =
        lock(&gpu(index)?.pipelines).by_name.values().flat_map(|v| v.values().cloned()).collect();
    let compiled = all.iter().filter(|p| p.compiled().is_ok());
    let mut found: Vec<_> = compiled.map(|p| (p.name.clone(), p.entry, p.text.clone())).collect();
    found.sort();
    Ok(found)
}

/// The number of storage buffers that a kernel on GPU `index` can bind.
pub fn max_buffers(index: u8) -> Result<usize> {
    let limits = &gpu(index)?.limits;
    // One binding is reserved for the parameters.
    let bindings = limits.max_bindings_per_bind_group.saturating_sub(1);
    Ok(limits.max_storage_buffers_per_shader_stage.min(bindings) as usize)
}

impl Pipeline {
    /// What it is compiled to, by the first that asks; others wait.
    pub(crate) fn compiled(&self) -> Result<&wgpu::ComputePipeline, &Error> {
        self.compiled.get_or_init(|| self.compile()).as_ref()
    }

    /// It, but an error if it is known not to compile.
    fn unless_failed(self: &Arc<Self>) -> Result<Arc<Pipeline>> {
        match self.compiled.get() {
            Some(Err(error)) => Err(error.clone()),
            _ => Ok(self.clone()),
        }
    }

    fn compile(&self) -> Result<wgpu::ComputePipeline> {
        let Pipeline { name, compiler, .. } = self;
        let device = &compiler.device;
        // The scopes of errors are the thread's.
        let (made, error) = guarded(device, SHADER_ERRORS, || {
            // Otherwise one thread of each workgroup clears its memory. The kernels write before they read.
            let clears = false;
            compiler.counted(|| {
                let module = module(device, name, &self.layout.parameters.apply(&self.text));
                compiler.pipeline((name, self.entry), &self.layout.pipeline, &module, &[], clears)
            })
        });
        error.map_or(Ok(made), |e| Err(failed(compiler.index, name, &e.to_string())))
    }

    /// What it needs of a kernel that stands for several; `None` if it cannot be in one.
    pub(crate) fn needs(&self) -> Option<&Needs> {
        self.needs.get_or_init(|| Needs::of(&self.text, self.entry)).as_ref()
    }

    /// It as a member of a kernel that stands for several.
    pub(crate) fn member(&self, link: Option<Link>) -> Option<Member<'_>> {
        let (needs, bindings) = (self.needs()?, self.layout.writable.len());
        Some(Member { text: &self.text, entry: self.entry, needs, bindings, link, unread: 0 })
    }
}

/// The kernel that stands for several, whose bindings follow one another. It is made when they meet for the
/// second time, and takes their place if the driver takes it.
pub(crate) fn merged(gpu: &Gpu, all: &[(&Arc<Pipeline>, Member)]) -> Option<Arc<Pipeline>> {
    let mut key = MergedKey::new();
    for (kernel, Member { link, unread, .. }) in all {
        let link = link.map_or([0; 3], |link| [link.member as u64, link.binding as u64, link.takes]);
        key.extend([Arc::as_ptr(kernel) as u64, *unread]);
        key.extend(link);
    }
    let mut pipelines = lock(&gpu.pipelines);
    if let Some(known) = pipelines.merged.get(&key) {
        return known.clone();
    }
    if !pipelines.met.remove(&key) {
        if pipelines.met.len() >= MET {
            pipelines.met.clear();
        }
        pipelines.met.insert(key);
        return None;
    }
    drop(pipelines);
    let made = merge_all(gpu, all);
    lock(&gpu.pipelines).merged.insert(key, made.clone());
    made
}

fn merge_all(gpu: &Gpu, all: &[(&Arc<Pipeline>, Member)]) -> Option<Arc<Pipeline>> {
    let members: Vec<Member> = all.iter().map(|(_, member)| *member).collect();
    let text = merge::merged(&members)?;
    let mut writable = Vec::new();
    for (kernel, member) in all {
        let bound = kernel.layout.writable.iter().enumerate().filter(|(k, _)| member.binds(*k));
        writable.extend(bound.map(|(_, &writable)| writable));
    }
    let words = merge::words(members.iter().map(|member| member.needs));
    let names: Vec<&str> = all.iter().map(|(kernel, _)| kernel.name.as_str()).collect();
    let (name, parameters) = (names.join(" | "), Parameters::of(gpu, words));
    lock(&gpu.pipelines).make(gpu, &name, "main", &writable, parameters, text).ok()
}

/// A binding of a buffer of this type.
fn entry(binding: u32, ty: wgpu::BufferBindingType) -> wgpu::BindGroupLayoutEntry {
    let has_dynamic_offset = ty == wgpu::BufferBindingType::Uniform;
    let ty = wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size: None };
    wgpu::BindGroupLayoutEntry { binding, visibility: wgpu::ShaderStages::COMPUTE, ty, count: None }
}

/// The layout of the bind group of parameters in a buffer.
pub(crate) fn parameters_layout(device: &wgpu::Device) -> wgpu::BindGroupLayout {
    let entries = [entry(0, wgpu::BufferBindingType::Uniform)];
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("parameters"),
        entries: &entries,
    })
}

/// The layouts of a bind group of storage buffers, given by number and whether they are written, and of a
/// pipeline that takes it.
pub(crate) fn layouts(
    gpu: &Gpu, label: Option<&str>, bindings: impl Iterator<Item = (u32, bool)>, parameters: Parameters,
) -> (wgpu::BindGroupLayout, wgpu::PipelineLayout) {
    let storage = |(number, writable): (u32, bool)| {
        entry(number, wgpu::BufferBindingType::Storage { read_only: !writable })
    };
    let entries: Vec<_> = bindings.map(storage).collect();
    let desc = wgpu::BindGroupLayoutDescriptor { label, entries: &entries };
    let group = gpu.device.create_bind_group_layout(&desc);
    let groups = [Some(&group), Some(&gpu.parameters)];
    let pipeline = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label,
        bind_group_layouts: &groups[..1 + usize::from(parameters == Parameters::Buffer)],
        immediate_size: if parameters == Parameters::Immediates { gpu.immediates as u32 } else { 0 },
    });
    (group, pipeline)
}

/// The kinds of errors that a driver reports of a shader.
pub(crate) const SHADER_ERRORS: [wgpu::ErrorFilter; 2] =
    [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::Validation];

fn module(device: &wgpu::Device, name: &str, text: &str) -> wgpu::ShaderModule {
    let desc =
        wgpu::ShaderModuleDescriptor { label: Some(name), source: wgpu::ShaderSource::Wgsl(text.into()) };
    if cfg!(debug_assertions) {
        return device.create_shader_module(desc);
    }
    // SAFETY: without run-time checks the shader must not access out of bounds or loop forever. The text is
    // one of this crate's shaders: its index arithmetic stays inside the buffers for the shapes and strides
    // that the host passes, and its loops end. Debug builds run the same shaders with the checks on.
    unsafe { device.create_shader_module_trusted(desc, wgpu::ShaderRuntimeChecks::unchecked()) }
}

#[cfg(test)]
mod tests {
    use super::Parameters;

    #[test]
    fn parameters_leave_the_group_of_the_tensors() {
        let text = "var<storage, read> x: X;\n@group(0) @binding(2) var<uniform> p: Params;\nfn f() {}\n";
        let line = |parameters: Parameters| parameters.apply(text).lines().nth(1).map(str::to_string);
        assert_eq!(line(Parameters::Immediates).as_deref(), Some("var<immediate> p: Params;"));
        let group = "@group(1) @binding(0) var<uniform> p: Params;";
        assert_eq!(line(Parameters::Buffer).as_deref(), Some(group));
        assert_eq!(Parameters::None.apply(text), text);
        assert_eq!(Parameters::Immediates.apply("fn f() {}"), "fn f() {}");
    }
}
