//! The devices: the macros that choose between a kernel of the CPU and its counterpart on a GPU. An operation
//! with a kernel on the CPU alone names that itself.

use crate::arguments::chain::ChainLimits;
#[cfg(not(feature = "gpu"))]
use crate::arguments::chain::{Chain, Folding};
use crate::array::buffer::{Buffer, Device};
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::array::window::Window;
use crate::array::{Array, checked_bytes};
use crate::cpu;
use crate::cpu::product::epilogue::{Activation, Epilogue};
#[cfg(not(feature = "gpu"))]
use crate::error::Error;
use crate::error::Result;
#[cfg(feature = "gpu")]
use crate::gpu;
use crate::math::real::{Pointwise, PointwiseInt};
use crate::math::terms::Terms;

/// What every use of a GPU raises in a build without them.
#[cfg(not(feature = "gpu"))]
pub(crate) fn absent<T>() -> Result<T> {
    Err(Error::device("this build of wengert has no GPU support; use device='cpu'"))
}

/// Calls the kernel of this name in the folder of the device that holds `$x`: `on_device!(x, reduce::sum(x,
/// axes))`.
macro_rules! on_device {
    ($x:expr, $module:ident :: $function:ident ($($arg:expr),* $(,)?)) => {
        match $x.device() {
            $crate::array::buffer::Device::Cpu => $crate::cpu::$module::$function($($arg),*),
            #[cfg(feature = "gpu")]
            $crate::array::buffer::Device::Gpu(_) => $crate::gpu::kernels::$module::$function($($arg),*),
            #[cfg(not(feature = "gpu"))]
            $crate::array::buffer::Device::Gpu(_) => $crate::device::absent(),
        }
    };
}
pub(crate) use on_device;

/// Calls the kernel of this name that makes something new on `$device`; a GPU's is told its number first.
macro_rules! create_on {
    ($device:expr, $module:ident :: $function:ident ($($arg:expr),* $(,)?)) => {
        match $device {
            $crate::array::buffer::Device::Cpu => $crate::cpu::$module::$function($($arg),*),
            #[cfg(feature = "gpu")]
            $crate::array::buffer::Device::Gpu(index) => {
                $crate::gpu::kernels::$module::$function(index, $($arg),*)
            }
            #[cfg(not(feature = "gpu"))]
            $crate::array::buffer::Device::Gpu(_) => $crate::device::absent(),
        }
    };
}
pub(crate) use create_on;

/// Calls a function whose launches on GPUs become one where they need nothing of each other.
#[cfg(feature = "gpu")]
pub(crate) use gpu::merging;
#[cfg(not(feature = "gpu"))]
pub(crate) fn merging<T>(call: impl FnOnce() -> T) -> T {
    call()
}

/// A chain of elementwise operations as one kernel of a GPU.
#[cfg(feature = "gpu")]
pub(crate) use gpu::kernels::map::fused::Fused;

#[cfg(not(feature = "gpu"))]
#[derive(Clone)]
pub(crate) enum Fused {}

#[cfg(not(feature = "gpu"))]
impl Fused {
    pub fn new(_chain: Chain, _names: &[&str]) -> Option<Fused> {
        None
    }
    pub fn run(&self, _x: &[&Array], _out: &[&Array]) -> Result<()> {
        match *self {}
    }
    pub fn fold(&self, _x: &[&Array], _folding: &Folding, _shape: &Shape) -> Result<Array> {
        match *self {}
    }
}

/// The limits of kernels of a chain on this device, on the host none; `None` if it is gone.
pub(crate) fn chain_limits(device: Device) -> Option<ChainLimits> {
    const ALL: usize = usize::MAX / 8;
    match device {
        #[cfg(feature = "gpu")]
        Device::Gpu(index) => gpu::kernels::map::fused::limits(index).ok(),
        _ => Some(ChainLimits { arrays: ALL, lists: ALL, words: ALL, bytes: ALL }),
    }
}

/// How often GPUs were reset.
pub(crate) fn resets() -> u64 {
    #[cfg(feature = "gpu")]
    return gpu::resets();
    #[cfg(not(feature = "gpu"))]
    return 0;
}

impl Array {
    /// Uninitialised contiguous memory on `device`.
    pub fn empty(shape: Shape, dtype: DType, device: Device) -> Result<Array> {
        let bytes = checked_bytes(&shape, dtype)?;
        let buffer = match device {
            Device::Cpu => Buffer::alloc(bytes)?,
            #[cfg(feature = "gpu")]
            Device::Gpu(index) => gpu::alloc(index, &shape, dtype)?,
            #[cfg(not(feature = "gpu"))]
            Device::Gpu(_) => absent()?,
        };
        Array::from_buffer(buffer, shape, dtype)
    }

    /// Copies into a new contiguous array on the same device.
    pub fn copied(&self) -> Result<Array> {
        let out = Array::empty(self.shape(), self.dtype(), self.device())?;
        out.assign(self)?;
        Ok(out)
    }

    /// Writes the elements of `from`, of this shape, dtype and device, into this memory.
    pub(crate) fn assign(&self, from: &Array) -> Result<()> {
        on_device!(self, copy::copy_into(self, from))
    }

    /// A copy on `device`; the array itself if it is there already.
    pub fn to_device(&self, device: Device) -> Result<Array> {
        match (self.device(), device) {
            (a, b) if a == b => Ok(self.clone()),
            #[cfg(feature = "gpu")]
            (Device::Cpu, Device::Gpu(index)) => gpu::upload(&cpu::copy::contiguous(self)?, index),
            #[cfg(feature = "gpu")]
            (Device::Gpu(_), Device::Gpu(index)) => gpu::upload(&gpu::download(self)?, index),
            #[cfg(feature = "gpu")]
            _ => gpu::download(self),
            #[cfg(not(feature = "gpu"))]
            _ => absent(),
        }
    }
}

/// A 0-d constant that nothing may write to: on a GPU all equal ones share their memory.
pub(crate) fn constant(value: f64, dtype: DType, device: Device) -> Result<Array> {
    match device {
        #[cfg(feature = "gpu")]
        Device::Gpu(index) => gpu::scalar(index, value, dtype),
        _ => create_on!(device, create::full(Shape::SCALAR, value, dtype)),
    }
}

/// `rule` for every element of arrays of floats. `key` tells the rule from others of one name,
/// which a GPU compiles once whatever the attributes are.
#[inline(always)]
#[cfg_attr(not(feature = "gpu"), allow(unused_variables))]
pub(crate) fn pointwise<const N: usize, P: Pointwise<N>>(
    name: &'static str, key: impl FnOnce() -> [u64; 2], x: [&Array; N], rule: P,
) -> Result<Array> {
    match x.first().map_or(Device::Cpu, |x| x.device()) {
        Device::Cpu => cpu::pointwise::map::pointwise(x, rule),
        #[cfg(feature = "gpu")]
        Device::Gpu(_) => gpu::kernels::map::pointwise(name, key(), x, rule),
        #[cfg(not(feature = "gpu"))]
        Device::Gpu(_) => absent(),
    }
}

/// `sum += x` for floats where that is quicker in one go: few elements, or on a GPU. Returns whether it was
/// done.
///
/// # Safety
/// Nobody else reads or writes `sum` meanwhile.
#[inline(always)]
pub(crate) unsafe fn add_into(sum: &Array, x: &Array) -> Result<bool> {
    match sum.device() {
        // SAFETY: guaranteed by the caller.
        Device::Cpu => unsafe { cpu::pointwise::map::add_small(sum, x) },
        #[cfg(feature = "gpu")]
        Device::Gpu(_) => gpu::kernels::copy::add_into(sum, x),
        #[cfg(not(feature = "gpu"))]
        Device::Gpu(_) => absent(),
    }
}

/// `rule`, of this name, for every element of arrays of integers.
#[cfg_attr(not(feature = "gpu"), allow(unused_variables))]
pub(crate) fn pointwise_int<const N: usize, P: PointwiseInt<N>>(
    name: &'static str, x: [&Array; N], rule: P,
) -> Result<Array> {
    match x.first().map_or(Device::Cpu, |x| x.device()) {
        Device::Cpu => cpu::pointwise::map::pointwise_int(x, rule),
        #[cfg(feature = "gpu")]
        Device::Gpu(_) => gpu::kernels::map::pointwise_int(name, 0, x, rule),
        #[cfg(not(feature = "gpu"))]
        Device::Gpu(_) => absent(),
    }
}

/// A function of one number that follows a product of floats.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "gpu"), allow(dead_code))]
pub(crate) struct FusedActivation<'a> {
    /// Its name, and what it does: a GPU's kernel of the product applies any.
    pub name: &'a str,
    pub rule: &'a dyn Fn() -> Terms,
    /// The same for the CPU's kernel, if it can.
    pub in_cache: Option<&'a dyn Activation>,
}

/// `x w + bias`, and whether `act` has been applied to it. If so on a GPU, and `keeps_sum`, the sum itself
/// too.
#[cfg_attr(not(feature = "gpu"), allow(unused_variables))]
pub(crate) fn layer(
    x: &Array, w: &Array, bias: Option<&Array>, act: Option<FusedActivation>, keeps_sum: bool,
) -> Result<(Array, Option<Array>, bool)> {
    match x.device() {
        Device::Cpu => {
            let act = act.and_then(|act| act.in_cache);
            let epilogue = Epilogue { alpha: 1.0, bias, act };
            Ok((cpu::matmul::matmul_with(x, w, &epilogue)?, None, act.is_some()))
        }
        #[cfg(feature = "gpu")]
        Device::Gpu(_) => {
            let rule = act.map(|act| (act.name, act.rule));
            let epilogue = gpu::kernels::matmul::Epilogue::layer(bias, rule, keeps_sum);
            let (out, sum) = gpu::kernels::matmul::matmul_with(x, w, &epilogue)?;
            Ok((out, sum, act.is_some()))
        }
        #[cfg(not(feature = "gpu"))]
        Device::Gpu(_) => absent(),
    }
}

/// The convolution of `x` with `w`, neither of which is empty, plus `bias`, a number for each output channel;
/// nothing where no kernel does both.
#[cfg_attr(not(feature = "gpu"), allow(unused_variables))]
pub(crate) fn biased_convolution(
    x: &Array, w: &Array, bias: &Array, window: &Window, groups: usize,
) -> Result<Option<Array>> {
    match x.device() {
        Device::Cpu => cpu::conv::biased(x, w, Some(bias), window, groups).map(Some),
        #[cfg(feature = "gpu")]
        Device::Gpu(_) => gpu::kernels::conv::biased(x, w, bias, window, groups),
        #[cfg(not(feature = "gpu"))]
        Device::Gpu(_) => absent(),
    }
}
