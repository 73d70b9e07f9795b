//! What tensors are made of where nobody says: the dtype of floats, one for the process, and the device, one
//! for each thread, as in PyTorch.

use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::error::{Error, Result};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The dtypes that floats may become.
const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

/// The place in [`FLOATS`] of the one that they do become.
static FLOAT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static DEVICE: Cell<Option<Device>> = const { Cell::new(None) };
    /// What the open regions of [`enter_device`] found.
    static FOUND: RefCell<Vec<Option<Device>>> = const { RefCell::new(Vec::new()) };
}

/// The dtype of Python's floats, of new tensors, and of results of integers that are none.
#[inline]
pub fn float() -> DType {
    FLOATS[FLOAT.load(Ordering::Relaxed) % FLOATS.len()]
}

/// Whether this is the dtype of floats, or that of complex numbers of such parts.
pub fn is_natural(dtype: DType) -> bool {
    dtype == float() || dtype == float().complex()
}

/// Makes `dtype` the one of floats. Raises for one that is not of floats.
pub fn set_float(dtype: DType) -> Result<()> {
    let place = FLOATS.iter().position(|&float| float == dtype);
    let place = place.ok_or_else(|| {
        Error::dtype(format!("set_default_dtype: a floating point dtype expected, got {dtype}"))
    })?;
    FLOAT.store(place, Ordering::Relaxed);
    Ok(())
}

/// The device that this thread has chosen for new tensors, if any.
#[inline]
pub fn chosen_device() -> Option<Device> {
    DEVICE.get()
}

/// The device of new tensors: the chosen one, or the CPU.
#[inline]
pub fn device() -> Device {
    DEVICE.get().unwrap_or_default()
}

/// Chooses the device of new tensors of this thread; `None` for the CPU, and to leave data where they are.
pub fn choose_device(device: Option<Device>) {
    DEVICE.set(device);
}

/// Chooses a device until [`leave_device`].
pub fn enter_device(device: Device) {
    FOUND.with_borrow_mut(|found| found.push(DEVICE.replace(Some(device))));
}

/// Ends the innermost region of [`enter_device`]; false where there is none.
pub fn leave_device() -> bool {
    let found = FOUND.with_borrow_mut(Vec::pop);
    if let Some(before) = found {
        DEVICE.set(before);
    }
    found.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_restore_what_they_found() {
        choose_device(Some(Device::Gpu(1)));
        enter_device(Device::Cpu);
        enter_device(Device::Gpu(0));
        assert_eq!(device(), Device::Gpu(0));
        assert!(leave_device() && device() == Device::Cpu);
        assert!(leave_device() && device() == Device::Gpu(1));
        assert!(!leave_device());
        choose_device(None);
        assert_eq!((device(), chosen_device()), (Device::Cpu, None));
    }
}
