//! The operations, one family per file. Start with `unary.rs`: all of one-variable calculus in one table.

pub mod attention;
pub mod binary;
pub mod bundle;
pub mod cast;
pub mod compare;
pub mod create;
pub mod custom;
pub mod elementwise;
pub mod formulas;
pub mod index;
pub mod inplace;
pub mod integer;
pub mod jet;
pub mod join;
pub mod linear;
pub mod loss;
pub mod matmul;
pub mod mean;
pub mod norm;
pub mod operand;
pub mod random;
pub mod reduce;
pub mod region;
pub mod sort;
pub mod strided;
pub mod sym;
pub mod table;
pub mod unary;
pub mod view;

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

/// One output.
macro_rules! one {
    ($out:expr) => {
        $out.map(|y| smallvec::smallvec![y])
    };
}
pub(crate) use one;
