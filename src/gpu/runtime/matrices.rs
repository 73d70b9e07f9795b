//! Products of small matrices by the hardware: the choice of them, and devices that are opened with them.

use crate::gpu::shader::halves::Matrices;

/// A device and its queue.
type Opened = Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError>;

/// The matrices with factors of float16 and sums of float32 that an adapter offers, or why kernels cannot use
/// them.
fn offered(adapter: &wgpu::Adapter, features: wgpu::Features) -> Result<Matrices, String> {
    if std::env::var_os("WENGERT_GPU_LIMITS").is_some_and(|v| !v.is_empty()) {
        return Err("WENGERT_GPU_LIMITS leaves experimental features out".to_string());
    }
    let info = adapter.get_info();
    let has_type = features.contains(wgpu::Features::SHADER_F16);
    let has_matrices = adapter.features().contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX);
    if !has_type || !has_matrices {
        return Err("the adapter offers no matrices".to_string());
    }
    choice(&adapter.cooperative_matrix_properties(), (info.subgroup_min_size, info.subgroup_max_size))
}

/// The largest of these matrices that kernels can use, for subgroups of these least and most threads.
fn choice(offers: &[wgpu::CooperativeMatrixProperties], subgroup: (u32, u32)) -> Result<Matrices, String> {
    use wgpu::CooperativeScalarType::{F16, F32};
    let fits = |m: &&wgpu::CooperativeMatrixProperties| {
        (m.m_size, m.ab_type, m.cr_type) == (m.n_size, F16, F32) && m.m_size == m.k_size
    };
    let Some(side) = offers.iter().filter(fits).map(|m| m.m_size).max() else {
        return Err("the adapter offers no square matrices of float16 with sums in float32".to_string());
    };
    match subgroup {
        (8..=64, most) if most == subgroup.0 && most.is_power_of_two() => {
            Ok(Matrices { side, subgroup: most })
        }
        (least, most) => Err(format!("subgroups have {least} to {most} threads, not a known number")),
    }
}

/// Opens a device: with matrices if it offers such and can be opened with them, else without.
pub(super) fn opened(
    adapter: &wgpu::Adapter, features: wgpu::Features,
    request: impl Fn(wgpu::Features, wgpu::ExperimentalFeatures) -> Opened,
) -> (Opened, Result<Matrices, String>) {
    let none = wgpu::Features::empty();
    let without = |why| (request(none, wgpu::ExperimentalFeatures::disabled()), Err(why));
    let matrices = match offered(adapter, features) {
        Ok(matrices) => matrices,
        Err(why) => return without(why),
    };
    // SAFETY: the feature adds instructions to shaders that use it, which are this crate's alone; they access
    // the arrays of the shader inside of their bounds. Results are tested before they are trusted.
    let experimental = unsafe { wgpu::ExperimentalFeatures::enabled() };
    match request(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX, experimental) {
        Ok(opened) => (Ok(opened), Ok(matrices)),
        Err(e) => without(format!("the adapter cannot be opened with matrices: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::choice;
    use crate::gpu::shader::halves::Matrices;
    use wgpu::CooperativeScalarType::{F16, F32};

    fn offer(
        sizes: [u32; 3], ab_type: wgpu::CooperativeScalarType, cr_type: wgpu::CooperativeScalarType,
    ) -> wgpu::CooperativeMatrixProperties {
        let [m_size, n_size, k_size] = sizes;
        wgpu::CooperativeMatrixProperties {
            m_size,
            n_size,
            k_size,
            ab_type,
            cr_type,
            saturating_accumulation: false,
        }
    }

    #[test]
    fn the_largest_square_of_halves_with_wide_sums_is_chosen() {
        let offers = [
            offer([8, 8, 8], F16, F32),
            offer([16, 16, 16], F16, F16),
            offer([16, 16, 16], F32, F32),
            offer([16, 8, 16], F16, F32),
        ];
        assert_eq!(choice(&offers, (32, 32)), Ok(Matrices { side: 8, subgroup: 32 }));
        assert!(choice(&offers[1..], (32, 32)).is_err_and(|why| why.contains("no square matrices")));
        assert!(choice(&offers, (32, 64)).is_err_and(|why| why.contains("32 to 64 threads")));
        let more = [offers.as_slice(), &[offer([16, 16, 16], F16, F32)]].concat();
        assert_eq!(choice(&more, (8, 8)), Ok(Matrices { side: 16, subgroup: 8 }));
    }
}
