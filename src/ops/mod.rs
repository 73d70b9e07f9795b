//! The operations, one family per file. Start with `unary.rs`: all of one-variable calculus in one table.

pub mod alone;
pub mod attention;
pub mod binary;
pub mod bitwise;
pub mod bundle;
pub mod cast;
pub mod compare;
pub mod complex;
pub mod conv;
pub mod convolve;
pub mod create;
pub mod custom;
pub mod elementwise;
pub mod fft;
pub mod formulas;
pub mod history;
pub mod index;
pub mod indexing;
pub mod inplace;
pub mod integer;
pub mod jet;
pub mod join;
pub mod linalg;
pub mod linear;
pub mod loss;
pub mod matmul;
pub mod mean;
pub mod moments;
pub mod neighbour;
pub mod norm;
pub mod operand;
pub mod patches;
pub mod pool;
pub mod random;
pub mod reading;
pub mod reduce;
pub mod region;
pub mod rows;
pub mod scan;
pub mod search;
pub mod smooth;
pub mod sort;
pub mod strided;
pub mod sym;
pub mod table;
pub mod truth;
pub mod unary;
pub mod view;
pub mod writable;

use crate::array::Array;
use crate::buffer::Device;
use crate::dtype::DType;
use crate::error::Result;
use smallvec::SmallVec;

/// Calls the kernel of this name in the folder of the device that holds `$x`: `on_device!(x, reduce::sum(x,
/// axes))`.
macro_rules! on_device {
    ($x:expr, $module:ident :: $function:ident ($($arg:expr),* $(,)?)) => {
        match $x.device() {
            $crate::buffer::Device::Cpu => $crate::cpu::$module::$function($($arg),*),
            #[cfg(feature = "gpu")]
            $crate::buffer::Device::Gpu(_) => $crate::gpu::kernels::$module::$function($($arg),*),
            #[cfg(not(feature = "gpu"))]
            $crate::buffer::Device::Gpu(_) => {
                Err($crate::error::Error::device("this build of wengert has no GPU support"))
            }
        }
    };
}
pub(crate) use on_device;

/// Runs a kernel that only the CPU has: operands on a GPU are read back, and the result is sent there, positions as
/// int32.
pub(crate) fn on_host(x: &[&Array], kernel: impl FnOnce(&[&Array]) -> Result<Array>) -> Result<Array> {
    let device = x[0].device();
    if device == Device::Cpu {
        return kernel(x);
    }
    let host: SmallVec<[Array; 4]> = x.iter().map(|x| x.to_device(Device::Cpu)).collect::<Result<_>>()?;
    let out = kernel(&host.iter().collect::<SmallVec<[&Array; 4]>>())?;
    let dtype = if out.dtype() == DType::I64 { DType::I32 } else { out.dtype() };
    crate::cpu::copy::cast(&out, dtype)?.to_device(device)
}

/// One output.
macro_rules! one {
    ($out:expr) => {
        $out.map(|y| smallvec::smallvec![y])
    };
}
pub(crate) use one;
