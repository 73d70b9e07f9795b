//! The GPUs of this process: enumerated once, opened on first use, never closed.
//!
//! Drivers do not survive concurrent creation or destruction of devices, so the instance and each device are
//! created under a lock and leaked at exit. A software adapter is used only if `WENGERT_GPU=software`
//! requests it, or if there is no other and a program names `gpu`. Read next: `src/gpu/runtime/queue.rs`.

use super::pipeline::Pipelines;
use super::pool::Pool;
use super::recorder::Recorder;
use super::status::Status;
use crate::array::Array;
use crate::array::dtype::DType;
use crate::error::{Error, Result};
use crate::process::sync::lock;
use rustc_hash::FxHashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The number of GPUs that can be addressed.
const MAX_DEVICES: usize = 16;

/// One opened GPU.
pub struct Gpu {
    /// Its index: the `0` of `gpu:0`.
    pub(crate) index: u8,
    pid: u32,
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) limits: wgpu::Limits,
    pub(crate) fault: Arc<Fault>,
    pub(crate) pool: Mutex<Pool>,
    pub(crate) recorder: Mutex<Recorder>,
    pub(crate) pipelines: Mutex<Pipelines>,
    /// Cached constants, by the bits of their value and dtype.
    pub(crate) constants: Mutex<FxHashMap<(u64, DType), Array>>,
    /// Errors that indexing kernels report.
    pub(crate) status: Mutex<Status>,
    subgroup: usize,
    info: Info,
}

/// The properties of a GPU.
#[derive(Clone, Debug)]
pub struct Info {
    /// Name of the adapter.
    pub adapter: String,
    /// The graphics API: `vulkan`, `metal`, `dx12`.
    pub backend: String,
    /// Name and version of the driver.
    pub driver: String,
    /// `discrete`, `integrated`, `virtual`, `software` or `other`.
    pub device_type: &'static str,
    /// Smallest and largest subgroup size.
    pub subgroup: (u32, u32),
    /// The optional features in use.
    pub features: Vec<String>,
    /// Nanoseconds of a tick of the clock that times kernels, if there is one.
    pub timestamp_period: Option<f32>,
    /// The products of small matrices that the hardware offers: rows, columns and terms, and the dtypes of
    /// factors and sums.
    pub cooperative_matrices: Vec<([u32; 3], [String; 2])>,
    /// The numbers of the vendor and of the device.
    pub ids: (u32, u32),
    /// The limits that affect kernels, by name.
    pub limits: Vec<(String, u64)>,
}

/// Errors that the driver reports outside of a call, kept until the next call.
#[derive(Default)]
pub struct Fault {
    raised: AtomicBool,
    lost: AtomicBool,
    message: Mutex<Option<String>>,
}

impl Fault {
    fn raise(&self, message: String, lost: bool) {
        let mut slot = lock(&self.message);
        // Keep the first error: it causes those that follow.
        slot.get_or_insert(message);
        if lost {
            self.lost.store(true, Ordering::Release);
        }
        self.raised.store(true, Ordering::Release);
    }

    /// Raises the error reported since the last check; a lost device stays lost.
    pub(crate) fn check(&self, index: u8) -> Result<()> {
        if !self.raised.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(self.take(index))
    }

    #[cold]
    fn take(&self, index: u8) -> Error {
        let mut slot = lock(&self.message);
        if self.lost.load(Ordering::Acquire) {
            let why = slot.as_deref().unwrap_or("no reason given");
            return Error::device(format!(
                "gpu:{index} was lost ({why}); its tensors are gone, start a new process to use it again"
            ));
        }
        self.raised.store(false, Ordering::Release);
        let why = slot.take().unwrap_or_default();
        Error::device(format!("gpu:{index} reported an error in earlier work: {why}"))
    }
}

// ---- adapters

struct Adapters {
    list: Vec<wgpu::Adapter>,
    /// Whether the adapters may be used without being named explicitly.
    trusted: bool,
}

static ADAPTERS: OnceLock<Adapters> = OnceLock::new();
static DEVICES: [OnceLock<&'static Gpu>; MAX_DEVICES] = [const { OnceLock::new() }; MAX_DEVICES];
static OPENING: Mutex<()> = Mutex::new(());

/// The adapters in order of preference, enumerated on the first call. A driver that panics counts as absent.
fn adapters() -> &'static Adapters {
    ADAPTERS.get_or_init(|| {
        catch_unwind(AssertUnwindSafe(find_adapters)).unwrap_or(Adapters { list: Vec::new(), trusted: false })
    })
}

fn find_adapters() -> Adapters {
    let backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let mut desc = wgpu::InstanceDescriptor::new_without_display_handle();
    desc.backends = backends;
    desc.flags = wgpu::InstanceFlags::empty();
    // Leaked for the life of the process: its destruction can hang in a driver's thread-local destructors.
    let instance: &'static wgpu::Instance = Box::leak(Box::new(wgpu::Instance::new(desc)));
    let mut list = pollster::block_on(instance.enumerate_adapters(backends));
    let wants_software = std::env::var("WENGERT_GPU").is_ok_and(|v| v == "software");
    let is_software = |a: &wgpu::Adapter| a.get_info().device_type == wgpu::DeviceType::Cpu;
    let has_hardware = list.iter().any(|a| !is_software(a));
    list.retain(|a| is_software(a) == (wants_software || !has_hardware));
    // Two APIs may offer the same GPU: only the first API that has any is used.
    let order = [wgpu::Backend::Vulkan, wgpu::Backend::Metal, wgpu::Backend::Dx12];
    let backend = order.into_iter().find(|&b| list.iter().any(|a| a.get_info().backend == b));
    list.retain(|a| Some(a.get_info().backend) == backend);
    list.sort_by_key(|a| rank(a.get_info().device_type));
    list.truncate(MAX_DEVICES);
    Adapters { trusted: !list.is_empty() && (wants_software || has_hardware), list }
}

/// The kinds of adapters in order of preference, with their names.
const KINDS: [(wgpu::DeviceType, &str); 5] = [
    (wgpu::DeviceType::DiscreteGpu, "discrete"),
    (wgpu::DeviceType::IntegratedGpu, "integrated"),
    (wgpu::DeviceType::VirtualGpu, "virtual"),
    (wgpu::DeviceType::Other, "other"),
    (wgpu::DeviceType::Cpu, "software"),
];

fn rank(kind: wgpu::DeviceType) -> usize {
    KINDS.iter().position(|known| known.0 == kind).unwrap_or_default()
}

fn name_of(kind: wgpu::DeviceType) -> &'static str {
    KINDS[rank(kind)].1
}

/// Whether a GPU can be used: hardware, or a software adapter requested by `WENGERT_GPU=software`.
pub fn is_available() -> bool {
    adapters().trusted
}

/// Describes the adapters of `gpu:0`, `gpu:1`, …, one line each, without opening them. Without hardware a
/// software adapter is listed even if [`is_available`] does not count it.
pub fn describe_adapters() -> Vec<String> {
    let line = |a: &wgpu::Adapter| {
        let info = a.get_info();
        format!("{} ({}, {})", info.name, info.backend.to_str(), name_of(info.device_type))
    };
    adapters().list.iter().map(line).collect()
}

/// The number of GPUs that [`is_available`] counts.
pub fn count() -> usize {
    let found = adapters();
    if found.trusted { found.list.len() } else { 0 }
}

/// The properties of GPU `index`; opens it.
pub fn info(index: u8) -> Result<Info> {
    Ok(gpu(index)?.info.clone())
}

/// Whether GPU `index` is emulated on the CPU.
pub fn is_software(index: u8) -> Result<bool> {
    Ok(gpu(index)?.info.device_type == name_of(wgpu::DeviceType::Cpu))
}

/// The least size of a subgroup of GPU `index`, a power of two; 1 where shaders cannot use subgroups.
pub fn subgroup(index: u8) -> Result<usize> {
    Ok(gpu(index)?.subgroup)
}

/// GPU `index`, opened on the first call.
#[inline]
pub fn gpu(index: u8) -> Result<&'static Gpu> {
    let gpu = match DEVICES.get(index as usize).and_then(OnceLock::get) {
        Some(gpu) => gpu,
        None => open(index)?,
    };
    if gpu.is_foreign() {
        return Err(Error::device(format!(
            "gpu:{index} was opened by process {} and cannot be used by its forked child {}; start workers \
             with the 'spawn' method",
            gpu.pid,
            std::process::id()
        )));
    }
    gpu.fault.check(index)?;
    Ok(gpu)
}

#[cold]
fn open(index: u8) -> Result<&'static Gpu> {
    let _guard = lock(&OPENING);
    let found = &adapters().list;
    let (Some(adapter), Some(slot)) = (found.get(index as usize), DEVICES.get(index as usize)) else {
        return Err(missing(index, found.len()));
    };
    if let Some(gpu) = slot.get() {
        return Ok(gpu);
    }
    let gpu = catch_unwind(AssertUnwindSafe(|| Gpu::new(index, adapter))).unwrap_or_else(|_| {
        Err(Error::device(format!("gpu:{index}: its driver failed while it was being opened")))
    })?;
    Ok(slot.get_or_init(|| Box::leak(Box::new(gpu))))
}

#[cold]
fn missing(index: u8, found: usize) -> Error {
    Error::device(if found == 0 {
        "no GPU was found: no Vulkan, Metal or DirectX 12 driver answers; use device='cpu', or install \
         Mesa's software driver and set WENGERT_GPU=software"
            .to_string()
    } else {
        format!("gpu:{index} does not exist: {found} found, the last is gpu:{}", found - 1)
    })
}

impl Gpu {
    /// Whether another process opened the device (before a fork).
    pub(crate) fn is_foreign(&self) -> bool {
        self.pid != std::process::id()
    }

    /// Calls the driver. Returns the error of these kinds that it reports, of the first kind that has one.
    pub(crate) fn guarded<T, const N: usize>(
        &self, kinds: [wgpu::ErrorFilter; N], call: impl FnOnce() -> T,
    ) -> (T, Option<wgpu::Error>) {
        let scopes = kinds.map(|kind| self.device.push_error_scope(kind));
        let made = call();
        let errors = scopes.into_iter().rev().map(|scope| pollster::block_on(scope.pop()));
        (made, errors.fold(None, |inner, outer| outer.or(inner)))
    }

    fn new(index: u8, adapter: &wgpu::Adapter) -> Result<Gpu> {
        let wanted = wgpu::Features::SHADER_F16
            | wgpu::Features::SUBGROUP
            | wgpu::Features::SUBGROUP_BARRIER
            | wgpu::Features::TIMESTAMP_QUERY
            | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS;
        let features = adapter.features() & wanted;
        let limits = adapter.limits();
        let desc = wgpu::DeviceDescriptor {
            label: Some("wengert"),
            required_features: features,
            required_limits: limits.clone(),
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..Default::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&desc)).map_err(|e| {
            Error::device(format!("gpu:{index} ({}) cannot be opened: {e}", adapter.get_info().name))
        })?;
        let fault = Arc::new(Fault::default());
        let sink = fault.clone();
        device.on_uncaptured_error(Arc::new(move |e: wgpu::Error| sink.raise(e.to_string(), false)));
        let sink = fault.clone();
        device.set_device_lost_callback(move |reason, message| {
            sink.raise(format!("{reason:?}: {message}"), true)
        });
        let info = describe(adapter, features, &limits, queue.get_timestamp_period());
        let subgroup = match features.contains(wgpu::Features::SUBGROUP) {
            true => (info.subgroup.0 as usize).clamp(1, 128),
            false => 1,
        };
        Ok(Gpu {
            index,
            pid: std::process::id(),
            subgroup,
            info,
            pool: Mutex::new(Pool::new(&limits)),
            recorder: Mutex::new(Recorder::new(&device)),
            pipelines: Mutex::default(),
            constants: Mutex::default(),
            status: Mutex::default(),
            device,
            queue,
            limits,
            fault,
        })
    }
}

/// The limits that kernels depend on, by name.
macro_rules! limits {
    ($limits:ident: $($name:ident),*) => { vec![$((stringify!($name).to_string(), $limits.$name as u64)),*] };
}

fn describe(adapter: &wgpu::Adapter, features: wgpu::Features, limits: &wgpu::Limits, period: f32) -> Info {
    let info = adapter.get_info();
    let dtype = |kind| {
        format!("{kind:?}")
            .to_ascii_lowercase()
            .replace('f', "float")
            .replace('i', "int")
            .replace('u', "uint")
    };
    Info {
        adapter: info.name.clone(),
        backend: info.backend.to_str().to_string(),
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_string(),
        device_type: name_of(info.device_type),
        subgroup: (info.subgroup_min_size, info.subgroup_max_size),
        timestamp_period: features.contains(wgpu::Features::TIMESTAMP_QUERY).then_some(period),
        cooperative_matrices: (adapter.cooperative_matrix_properties().iter())
            .map(|m| ([m.m_size, m.n_size, m.k_size], [dtype(m.ab_type), dtype(m.cr_type)]))
            .collect(),
        ids: (info.vendor, info.device),
        features: features.iter_names().map(|(name, _)| name.to_ascii_lowercase()).collect(),
        limits: limits!(limits:
            max_buffer_size, max_storage_buffer_binding_size, max_storage_buffers_per_shader_stage,
            max_bindings_per_bind_group, max_uniform_buffer_binding_size,
            min_uniform_buffer_offset_alignment, max_immediate_size,
            max_compute_workgroup_storage_size, max_compute_invocations_per_workgroup,
            max_compute_workgroup_size_x, max_compute_workgroup_size_y, max_compute_workgroup_size_z,
            max_compute_workgroups_per_dimension),
    }
}
