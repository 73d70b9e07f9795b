//! The GPUs of this process: enumerated once, opened on first use, never closed but by [`reset`].
//!
//! Drivers do not survive concurrent creation or destruction of devices, so the instance and each device are
//! created under a lock and leaked. A software adapter is used only if `WENGERT_GPU=software` requests it, or
//! if there is no other and a program names `gpu`. Read next: `src/gpu/runtime/queue.rs`.

use super::compiler::Compiler;
use super::disk::DiskCache;
use super::fault::Fault;
use super::info::{Info, describe, name_of, offered, rank};
use super::matrices;
use super::pipeline::{Pipelines, parameters_layout};
use super::pool::Pool;
use super::profile;
use super::recorder::Recorder;
use super::status::Status;
use super::upload::Uploads;
use crate::array::Array;
use crate::error::{Error, Result};
use crate::gpu::runtime::transfer::Constant;
use crate::gpu::shader::halves::{Halves, Matrices};
use crate::process::forks::{count_forks, forks};
use crate::process::sync::lock;
use rustc_hash::FxHashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// The number of GPUs that can be addressed.
const MAX_DEVICES: usize = 16;

/// One opened GPU.
pub struct Gpu {
    /// Its index: the `0` of `gpu:0`.
    pub(crate) index: u8,
    /// Its number among the GPUs that this process has opened.
    pub(crate) serial: u64,
    /// The process that opened it, and how often that was forked.
    process: (u32, u32),
    /// Whether [`reset`] has taken it out of use.
    retired: AtomicBool,
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) limits: wgpu::Limits,
    /// The bytes of parameters that a launch can pass as immediates; 0 where there are none.
    pub(crate) immediates: usize,
    /// The layout of the bind group of parameters that are in a buffer.
    pub(crate) parameters: wgpu::BindGroupLayout,
    pub(crate) fault: Arc<Fault>,
    pub(crate) pool: Mutex<Pool>,
    pub(crate) recorder: Mutex<Recorder>,
    pub(crate) uploads: Mutex<Uploads>,
    /// Bytes of short writes by the host since the last submission, which hold staging memory until then.
    pub(crate) pending: AtomicUsize,
    pub(crate) pipelines: Mutex<Pipelines>,
    pub(crate) compiler: Arc<Compiler>,
    /// Cached constants.
    pub(crate) constants: Mutex<FxHashMap<Constant, Array>>,
    /// Errors that indexing kernels report.
    pub(crate) status: Mutex<Status>,
    /// The matrices of the hardware that products of float16 may take, or why there are none.
    pub(crate) matrices: std::result::Result<Matrices, String>,
    /// How products of float16 are multiplied, and why not otherwise, once that is known.
    pub(crate) halves: OnceLock<(Halves, String)>,
    subgroup: usize,
    info: Info,
}

// ---- adapters

struct Adapters {
    list: Vec<wgpu::Adapter>,
    /// Whether the adapters may be used without being named explicitly.
    trusted: bool,
}

static ADAPTERS: OnceLock<Adapters> = OnceLock::new();
/// The GPUs in use, each a leaked box.
static DEVICES: [AtomicPtr<Gpu>; MAX_DEVICES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_DEVICES];
static OPENING: Mutex<()> = Mutex::new(());
static OPENED: AtomicU64 = AtomicU64::new(0);

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
    let wants_software = matches!(chosen("WENGERT_GPU", &["software"]), Ok(Some(_)));
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

/// GPU `index` if it is open.
#[inline]
fn opened(index: u8) -> Option<&'static Gpu> {
    // SAFETY: the pointers are null or come from boxes that are never freed.
    unsafe { DEVICES.get(index as usize)?.load(Ordering::Acquire).as_ref() }
}

/// GPU `index`, opened on the first call.
#[inline]
pub fn gpu(index: u8) -> Result<&'static Gpu> {
    let gpu = match opened(index) {
        Some(gpu) => gpu,
        None => open(index)?,
    };
    gpu.check()?;
    Ok(gpu)
}

/// Which of the `choices` that a variable of the environment knows it has, if it has one.
fn chosen(variable: &str, choices: &[&'static str]) -> Result<Option<&'static str>> {
    let given = std::env::var(variable).unwrap_or_default();
    let found = choices.iter().find(|&&choice| choice == given).copied();
    if found.is_none() && !given.is_empty() {
        return Err(Error::value(format!(
            "the environment has {variable}={given}: '{}' expected, or nothing",
            choices.join("' or '")
        )));
    }
    Ok(found)
}

#[cold]
fn open(index: u8) -> Result<&'static Gpu> {
    chosen("WENGERT_GPU", &["software"])?;
    let small = chosen("WENGERT_GPU_LIMITS", &["small", "standard"])? == Some("small");
    let _guard = lock(&OPENING);
    let found = &adapters().list;
    let (Some(adapter), Some(slot)) = (found.get(index as usize), DEVICES.get(index as usize)) else {
        return Err(missing(index, found.len()));
    };
    if let Some(gpu) = opened(index) {
        return Ok(gpu);
    }
    count_forks();
    let gpu = catch_unwind(AssertUnwindSafe(|| Gpu::new(index, adapter, small))).unwrap_or_else(|_| {
        Err(Error::device(format!("gpu:{index}: its driver failed while it was being opened")))
    })?;
    let gpu: &'static Gpu = Box::leak(Box::new(gpu));
    slot.store(std::ptr::from_ref(gpu).cast_mut(), Ordering::Release);
    Ok(gpu)
}

/// Takes GPU `index` out of use, also after it was lost: its tensors raise, and the next use opens it anew.
pub fn reset(index: u8) -> Result<()> {
    RESETS.fetch_add(1, Ordering::Relaxed);
    let _guard = lock(&OPENING);
    let found = adapters().list.len();
    if usize::from(index) >= found {
        return Err(missing(index, found));
    }
    let Some(gpu) = opened(index) else { return Ok(()) };
    gpu.check_process()?;
    if !gpu.fault.is_lost() {
        // Its tensors go in any case; what the work reports no longer matters.
        let _ = super::queue::synchronize_gpu(gpu);
    }
    DEVICES[index as usize].store(std::ptr::null_mut(), Ordering::Release);
    gpu.retire();
    Ok(())
}

static RESETS: AtomicU64 = AtomicU64::new(0);

/// How often [`reset`] was called: what holds memory of a GPU from before is out of date.
pub fn resets() -> u64 {
    RESETS.load(Ordering::Relaxed)
}

/// Writes the compiled pipelines of all GPUs to disk, at the end of the process, once what was submitted has
/// run: a driver in software compiles what it runs, with libraries that are then taken down.
pub fn save_pipelines() {
    stop_compiling();
    for gpu in (0..MAX_DEVICES as u8).filter_map(opened) {
        if gpu.check().is_ok() {
            let timeout = Some(Duration::from_secs(10));
            let _ = gpu.device.poll(wgpu::PollType::Wait { submission_index: None, timeout });
            gpu.compiler.disk.iter().for_each(DiskCache::save);
        }
    }
}

/// Waits for the threads that compile, at the end of the process.
pub(super) fn stop_compiling() {
    for gpu in (0..MAX_DEVICES as u8).filter_map(opened).filter(|gpu| !gpu.is_foreign()) {
        gpu.compiler.threads.stop();
    }
}

/// Records what waits on all GPUs.
pub(crate) fn settle_all() {
    for gpu in (0..MAX_DEVICES as u8).filter_map(opened) {
        if gpu.check().is_ok() {
            lock(&gpu.recorder).settle(gpu);
        }
    }
}

/// Destroys the device of GPU `index`, as a driver does that gives up; for tests.
pub fn lose(index: u8) -> Result<()> {
    let gpu = gpu(index)?;
    gpu.device.destroy();
    gpu.fault.raise("destroyed for a test".to_string(), true);
    Ok(())
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
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        self.process.1 != forks()
    }

    /// Whether [`reset`] has taken the device out of use.
    #[inline]
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Raises if the device cannot be used, or the driver has reported an error.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        self.check_process()?;
        self.fault.check(self.index)
    }

    fn check_process(&self) -> Result<()> {
        if self.is_foreign() { Err(self.foreign()) } else { Ok(()) }
    }

    #[cold]
    fn foreign(&self) -> Error {
        Error::device(format!(
            "gpu:{} was opened by process {} and cannot be used by its forked child {}; start workers with \
             the 'spawn' method",
            self.index,
            self.process.0,
            std::process::id()
        ))
    }

    /// The error of a tensor whose device is out of use.
    #[cold]
    pub(crate) fn gone(&self) -> Error {
        Error::device(format!(
            "this tensor was on gpu:{0} before wengert.gpu.reset({0}), which ended it; make it anew",
            self.index
        ))
    }

    /// Gives up what the device holds but its tensors, which return their memory when they are dropped.
    fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.compiler.threads.stop();
        profile::abandon(self);
        lock(&self.recorder).clear();
        let held = (
            std::mem::take(&mut *lock(&self.constants)),
            std::mem::take(&mut *lock(&self.status)),
            std::mem::take(&mut *lock(&self.pipelines)),
            std::mem::take(&mut *lock(&self.uploads)),
        );
        drop(held);
        drop(lock(&self.pool).empty());
        self.device.destroy();
    }

    fn new(index: u8, adapter: &wgpu::Adapter, small: bool) -> Result<Gpu> {
        let (features, limits) = offered(adapter, small);
        let request = |more: wgpu::Features, experimental_features| {
            let desc = wgpu::DeviceDescriptor {
                label: Some("wengert"),
                required_features: features | more,
                required_limits: limits.clone(),
                memory_hints: wgpu::MemoryHints::MemoryUsage,
                experimental_features,
                ..Default::default()
            };
            pollster::block_on(adapter.request_device(&desc))
        };
        let (opened, matrices) = matrices::opened(adapter, features, request);
        let (device, queue) = opened.map_err(|e| {
            Error::device(format!("gpu:{index} ({}) cannot be opened: {e}", adapter.get_info().name))
        })?;
        let features = device.features();
        let fault = Arc::new(Fault::default());
        let sink = fault.clone();
        let earlier = move |e| format!("gpu:{index} reported an error in earlier work: {e}");
        device.on_uncaptured_error(Arc::new(move |e: wgpu::Error| sink.raise(earlier(e), false)));
        let sink = fault.clone();
        device.set_device_lost_callback(move |reason, message| {
            sink.raise(format!("{reason:?}: {message}"), true)
        });
        let parameters = parameters_layout(&device);
        let disk = DiskCache::open(&device, &adapter.get_info());
        let can_pass = features.contains(wgpu::Features::IMMEDIATES);
        let info = describe(adapter, features, &limits, queue.get_timestamp_period());
        let subgroup = match features.contains(wgpu::Features::SUBGROUP) {
            true => (info.subgroup.0 as usize).clamp(1, 128),
            false => 1,
        };
        Ok(Gpu {
            index,
            serial: OPENED.fetch_add(1, Ordering::Relaxed),
            process: (std::process::id(), forks()),
            retired: AtomicBool::new(false),
            immediates: if can_pass { limits.max_immediate_size.min(MOST_IMMEDIATES) as usize } else { 0 },
            matrices,
            halves: OnceLock::new(),
            subgroup,
            info,
            pool: Mutex::new(Pool::new(&limits)),
            recorder: Mutex::new(Recorder::new(&device, &parameters)),
            uploads: Mutex::default(),
            pending: AtomicUsize::new(0),
            pipelines: Mutex::default(),
            compiler: Arc::new(Compiler::new(index, device.clone(), disk)),
            constants: Mutex::default(),
            status: Mutex::default(),
            device,
            queue,
            limits,
            parameters,
            fault,
        })
    }
}

/// The most bytes of parameters that are passed as immediates: wgpu keeps account of so many.
const MOST_IMMEDIATES: u32 = 256;
