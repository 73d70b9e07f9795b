//! What a GPU is and can do, in words and numbers.

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

/// The kinds of adapters in order of preference, with their names.
const KINDS: [(wgpu::DeviceType, &str); 5] = [
    (wgpu::DeviceType::DiscreteGpu, "discrete"),
    (wgpu::DeviceType::IntegratedGpu, "integrated"),
    (wgpu::DeviceType::VirtualGpu, "virtual"),
    (wgpu::DeviceType::Other, "other"),
    (wgpu::DeviceType::Cpu, "software"),
];

/// The place of a kind in that order.
pub(super) fn rank(kind: wgpu::DeviceType) -> usize {
    KINDS.iter().position(|known| known.0 == kind).unwrap_or_default()
}

/// The name of a kind.
pub(super) fn name_of(kind: wgpu::DeviceType) -> &'static str {
    KINDS[rank(kind)].1
}

/// The limits that kernels depend on, by name.
macro_rules! limits {
    ($limits:ident: $($name:ident),*) => { vec![$((stringify!($name).to_string(), $limits.$name as u64)),*] };
}

/// The properties of a GPU that was opened with these features and limits, and of whose clock a tick takes
/// `period` nanoseconds.
pub(super) fn describe(
    adapter: &wgpu::Adapter, features: wgpu::Features, limits: &wgpu::Limits, period: f32,
) -> Info {
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

/// The features and limits with which a GPU is opened: those of the adapter. `WENGERT_GPU_LIMITS=small`
/// leaves what every kernel can do with, as tests want it.
pub fn offered(adapter: &wgpu::Adapter, small: bool) -> (wgpu::Features, wgpu::Limits) {
    let least = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS;
    let all = least
        | wgpu::Features::SHADER_F16
        | wgpu::Features::SUBGROUP
        | wgpu::Features::SUBGROUP_BARRIER
        | wgpu::Features::IMMEDIATES
        | wgpu::Features::PIPELINE_CACHE;
    let limits = adapter.limits();
    if !small {
        return (adapter.features() & all, limits);
    }
    let small = wgpu::Limits {
        max_compute_workgroup_storage_size: 16 << 10,
        max_storage_buffer_binding_size: 1 << 20,
        max_storage_buffers_per_shader_stage: 8,
        max_compute_workgroups_per_dimension: 64,
        max_immediate_size: 0,
        ..limits
    };
    (adapter.features() & least, small)
}
