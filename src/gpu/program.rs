//! Users' WGSL shaders, parsed, validated, and run with all run-time checks.
//!
//! The declarations of the shader determine how it is called: its read-only storage buffers are the inputs,
//! its writable ones the outputs, in the order of their bindings; the element types are the dtypes. Unlike
//! this crate's kernels (`src/gpu/runtime/pipeline.rs`) it is always compiled with run-time checks, and each
//! buffer is bound with exactly the bytes of its tensor, so that `arrayLength` is its length.

use super::kernels::copy::{from_start, index_of};
use super::kernels::create::full;
use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::error::{Error, Result};
use crate::gpu::runtime::device::{Gpu, gpu};
use crate::gpu::runtime::fault::guarded;
use crate::gpu::runtime::pipeline::{Parameters, SHADER_ERRORS, layouts};
use crate::gpu::runtime::pool::{allocation, storage_bytes};
use crate::gpu::runtime::profile::{self, Work};
use crate::process::sync::lock;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};
use wgpu::naga;

/// A storage buffer of a shader.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The name of the variable.
    pub name: String,
    /// The number of its binding in group 0.
    number: u32,
    /// The dtype of the tensor.
    pub dtype: DType,
    writable: bool,
}

/// A user's shader.
pub struct Program {
    /// Its name in errors.
    pub name: String,
    source: String,
    entry: String,
    constants: Vec<(String, f64)>,
    /// The inputs in the order of their bindings.
    pub inputs: Vec<Binding>,
    /// The outputs in the order of their bindings.
    pub outputs: Vec<Binding>,
    /// The size of a workgroup along x, y and z.
    pub workgroup: [u32; 3],
    /// By the serial number of the GPU.
    compiled: Mutex<FxHashMap<u64, Arc<Compiled>>>,
}

/// A shader compiled for one GPU.
struct Compiled {
    layout: wgpu::BindGroupLayout,
    pipeline: wgpu::ComputePipeline,
}

impl Program {
    /// Parses and validates `source`. `entry` may be omitted if there is only one compute entry point;
    /// `constants` are values of its `override` declarations.
    pub fn new(
        name: &str, source: &str, entry: Option<&str>, constants: &[(String, f64)],
    ) -> Result<Program> {
        let wrong = |why: &str| Error::value(format!("gpu.kernel {name}: {why}"));
        let refused =
            |why: &str, message: String| wrong(&format!("the shader {why}\n{}", message.trim_end()));
        let module = naga::front::wgsl::parse_str(source)
            .map_err(|e| refused("does not parse", e.emit_to_string(source)))?;
        let flags = naga::valid::ValidationFlags::all();
        let info = naga::valid::Validator::new(flags, naga::valid::Capabilities::all())
            .validate(&module)
            .map_err(|e| refused("is not valid", e.emit_to_string(source)))?;
        let entry = entry_point(&module, entry).map_err(|why| wrong(&why))?;
        let mut values = naga::back::PipelineConstants::default();
        values.extend(constants.iter().cloned());
        let stage = Some((naga::ShaderStage::Compute, entry.as_str()));
        let resolved = naga::back::pipeline_constants::process_overrides(&module, &info, stage, &values)
            .map_err(|e| wrong(&format!("constants: {e}")))?
            .0;
        let workgroup = resolved.entry_points.iter().find(|p| p.name == entry).map(|p| p.workgroup_size);
        let all = bindings(&module).map_err(|why| wrong(&why))?;
        let (outputs, inputs): (Vec<Binding>, Vec<Binding>) = all.into_iter().partition(|b| b.writable);
        if outputs.is_empty() {
            return Err(wrong(
                "the shader declares no output; declare one as \
                 `@group(0) @binding(1) var<storage, read_write> out: array<f32>;`",
            ));
        }
        Ok(Program {
            name: name.to_string(),
            source: source.to_string(),
            entry,
            constants: constants.to_vec(),
            inputs,
            outputs,
            workgroup: workgroup.unwrap_or([1; 3]),
            compiled: Mutex::default(),
        })
    }

    /// Runs the shader with `groups` workgroups. Returns one output per shape, initialised to zeros.
    pub fn run(&self, inputs: &[&Array], shapes: &[Shape], groups: [u32; 3]) -> Result<Vec<Array>> {
        let index = self.check(inputs)?;
        let gpu = gpu(index)?;
        let most = gpu.limits.max_compute_workgroups_per_dimension;
        if let Some(n) = groups.iter().find(|&&n| n > most) {
            return Err(Error::value(format!(
                "gpu.kernel {}: {n} workgroups along one axis, but gpu:{index} takes at most {most}; use \
                 more axes or larger workgroups",
                self.name
            )));
        }
        let inputs = inputs.iter().map(|x| from_start(x)).collect::<Result<Vec<_>>>()?;
        let made = self.outputs.iter().zip(shapes).map(|(b, &shape)| full(index, shape, 0.0, b.dtype));
        let outputs = made.collect::<Result<Vec<_>>>()?;
        if groups.contains(&0) || outputs.iter().all(|y| y.numel() == 0) {
            return Ok(outputs);
        }
        let compiled = self.compiled(gpu)?;
        let arrays = inputs.iter().chain(&outputs);
        let bound: Vec<(u32, &Array)> =
            self.inputs.iter().chain(&self.outputs).map(|b| b.number).zip(arrays).collect();
        self.dispatch(gpu, &compiled, &bound, groups)?;
        Ok(outputs)
    }

    /// Returns the GPU of the inputs, after checking them against the shader's declarations.
    fn check(&self, inputs: &[&Array]) -> Result<u8> {
        let name = &self.name;
        for (b, x) in self.inputs.iter().zip(inputs) {
            if x.device() == Device::Cpu {
                return Err(Error::device(format!(
                    "gpu.kernel {name}: input {} is on the cpu, and WGSL runs on a GPU alone; move it with \
                     .to('gpu')",
                    b.name
                )));
            }
            if x.device() != inputs[0].device() {
                return Err(Error::device(format!(
                    "gpu.kernel {name}: input {} is on {}, the others are on {}; move it with .to()",
                    b.name,
                    x.device(),
                    inputs[0].device()
                )));
            }
            if x.dtype() != b.dtype {
                return Err(Error::dtype(format!(
                    "gpu.kernel {name}: input {} is {}, but the shader declares elements of {}; convert it \
                     with .to(wengert.{})",
                    b.name,
                    x.dtype(),
                    b.dtype,
                    b.dtype
                )));
            }
        }
        inputs.first().map_or(Ok(0), |x| index_of(x))
    }

    fn compiled(&self, gpu: &Gpu) -> Result<Arc<Compiled>> {
        if let Some(found) = lock(&self.compiled).get(&gpu.serial) {
            return Ok(found.clone());
        }
        let made = Arc::new(self.compile(gpu)?);
        lock(&self.compiled).insert(gpu.serial, made.clone());
        Ok(made)
    }

    fn compile(&self, gpu: &Gpu) -> Result<Compiled> {
        let name = &self.name;
        let constants: Vec<(&str, f64)> = self.constants.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        let compiler = &gpu.compiler;
        let (made, error) = guarded(&gpu.device, SHADER_ERRORS, || {
            let bindings = self.inputs.iter().chain(&self.outputs).map(|b| (b.number, b.writable));
            let (layout, pipelines) = layouts(gpu, Some(name), bindings, Parameters::None);
            let module = gpu.device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(name),
                source: wgpu::ShaderSource::Wgsl(self.source.as_str().into()),
            });
            let compile = || compiler.pipeline((name, &self.entry), &pipelines, &module, &constants, true);
            let pipeline = compiler.counted(compile);
            Compiled { layout, pipeline }
        });
        match error {
            Some(e) => Err(Error::device(format!(
                "gpu.kernel {name}: gpu:{} does not take the shader: {e}",
                gpu.index
            ))),
            None => Ok(made),
        }
    }

    fn dispatch(&self, gpu: &Gpu, made: &Compiled, bound: &[(u32, &Array)], groups: [u32; 3]) -> Result<()> {
        let mut entries = Vec::with_capacity(bound.len());
        for (number, x) in bound {
            let bytes = storage_bytes(gpu.index, x.numel(), x.dtype())?.max(4);
            let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer: &allocation(x.buffer())?.block.raw,
                offset: 0,
                size: wgpu::BufferSize::new(bytes),
            });
            entries.push(wgpu::BindGroupEntry { binding: *number, resource });
        }
        let (group, error) = guarded(&gpu.device, [wgpu::ErrorFilter::Validation], || {
            gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some(&self.name),
                layout: &made.layout,
                entries: &entries,
            })
        });
        if let Some(e) = error {
            return Err(Error::device(format!("gpu.kernel {}: its buffers do not fit: {e}", self.name)));
        }
        let work = if profile::is_on() { self.work(gpu.index, bound) } else { Work::default() };
        let buffers = bound.iter().map(|(_, x)| x.buffer());
        lock(&gpu.recorder).dispatch_group(gpu, &made.pipeline, group, buffers, groups, work)
    }

    /// What a profile says about a launch.
    fn work(&self, index: u8, bound: &[(u32, &Array)]) -> Work {
        let operands: Vec<&Array> = bound.iter().map(|(_, x)| *x).collect();
        let bytes = profile::bytes_of(index, &operands);
        Work { kernel: self.name.clone(), variant: "user".into(), bytes, flops: None }
    }
}

/// The name of the compute entry point, `wanted` or the only one.
fn entry_point(module: &naga::Module, wanted: Option<&str>) -> Result<String, String> {
    let stage = naga::ShaderStage::Compute;
    let names: Vec<&str> =
        module.entry_points.iter().filter(|p| p.stage == stage).map(|p| p.name.as_str()).collect();
    match wanted {
        Some(name) if names.contains(&name) => Ok(name.to_string()),
        Some(name) => Err(format!("no compute entry point is named '{name}'; there are {}", listed(&names))),
        None if names.len() == 1 => Ok(names[0].to_string()),
        None => Err(format!("which entry point? Pass entry= to choose; there are {}", listed(&names))),
    }
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// The storage buffers of a shader in the order of their bindings.
fn bindings(module: &naga::Module) -> Result<Vec<Binding>, String> {
    let mut found = Vec::new();
    for (_, variable) in module.global_variables.iter() {
        let name = variable.name.clone().unwrap_or_default();
        let writable = match variable.space {
            naga::AddressSpace::Storage { access } => access.contains(naga::StorageAccess::STORE),
            naga::AddressSpace::Private | naga::AddressSpace::WorkGroup => continue,
            _ => {
                return Err(format!(
                    "variable {name} is no storage buffer, and nothing would be bound to it; declare \
                     numbers as `override {name}: f32;` and pass constants=, or pass a tensor"
                ));
            }
        };
        let number = match &variable.binding {
            Some(at) if at.group == 0 => at.binding,
            _ => return Err(format!("variable {name} is not in group 0; declare it with @group(0)")),
        };
        let dtype = element(module, variable.ty).ok_or_else(|| {
            format!("variable {name} is no array of f32, i32, u32 or f16 (or vectors of them without gaps)")
        })?;
        if writable && dtype == DType::Bool {
            return Err(format!("output {name} has elements of u32, which no tensor has; use i32 or f32"));
        }
        found.push(Binding { name, number, dtype, writable });
    }
    found.sort_by_key(|b| b.number);
    Ok(found)
}

/// The dtype whose elements an array of this type holds.
fn element(module: &naga::Module, ty: naga::Handle<naga::Type>) -> Option<DType> {
    use naga::{ScalarKind, TypeInner};
    let TypeInner::Array { base, stride, .. } = module.types[ty].inner else { return None };
    let (scalar, parts) = match module.types[base].inner {
        TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => (scalar, 1),
        TypeInner::Vector { size, scalar } => (scalar, size as u32),
        _ => return None,
    };
    if u32::from(scalar.width) * parts != stride {
        return None;
    }
    match (scalar.kind, scalar.width) {
        (ScalarKind::Float, 4) => Some(DType::F32),
        (ScalarKind::Float, 2) => Some(DType::F16),
        (ScalarKind::Sint, 4) => Some(DType::I32),
        (ScalarKind::Uint, 4) => Some(DType::Bool),
        _ => None,
    }
}
