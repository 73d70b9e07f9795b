//! The Python extension module `wengert._core`; only this folder uses `pyo3`.
//!
//! Reading order: `src/py/tensor/object.rs` (the object), `src/py/tensor/operators.rs` (the hot path),
//! `src/py/args.rs` (arguments), `src/py/data/convert.rs` (data in and out), `src/py/autograd/mod.rs`. The
//! Python package adds pytrees, contexts and layers.

// Slots that our macros expand to would otherwise be linted inside the code that pyo3 generates.
#![allow(unsafe_op_in_unsafe_fn)]

/// Defines `register`, which adds the classes and functions of a file to the module:
/// `exports! { classes: PyNode; functions: _bundle, _watch }`.
macro_rules! exports {
    ($(classes: $($class:ty),+;)? $(functions: $($(#[$attribute:meta])* $function:ident),+)?) => {
        /// Adds what this file exports to the module.
        pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            $($(m.add_class::<$class>()?;)+)?
            $($(
                $(#[$attribute])*
                m.add_function(wrap_pyfunction!($function, m)?)?;
            )+)?
            Ok(())
        }
    };
}

mod args;
mod autograd;
mod composed;
pub mod data;
mod detach;
mod error;
mod group;
mod names;
mod nn;
mod prelude;
mod relative;
mod tensor;
mod tree;
mod window;
pub mod writes;

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: crate::process::blocks::Blocks = crate::process::blocks::Blocks;

/// The Rust core of wengert; use it through the package `wengert`.
#[pymodule(gil_used = false)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! register {
        ($($($part:ident)::+),+ $(,)?) => { $($($part)::+::register(m)?;)+ };
    }
    crate::fork::protect();
    crate::process::interrupt::listen(detach::ask_signals);
    autograd::location::register();
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    register! {
        tensor::object, tensor::functions, tensor::complex, composed, tensor::linalg, error,
        writes::aliasing, writes::storage,
        data::dtype, data::create, data::ranges, data::random, data::generator, data::layout, data::device,
        data::format,
        nn, nn::conv, nn::ops, nn::optim, autograd, autograd::checkpoint, autograd::collect, autograd::custom,
        autograd::debug, autograd::direct, autograd::donating, autograd::forward, autograd::hooks,
        autograd::marks, autograd::node, autograd::fast_path, autograd::recorded, autograd::saving,
        autograd::shown, autograd::staging, autograd::transform, autograd::watched, group, tree, window,
    }
    #[cfg(feature = "gpu")]
    {
        register!(nn::program);
        m.py().import("atexit")?.call_method1("register", (m.getattr("_gpu_save_pipelines")?,))?;
    }
    m.add_function(wrap_pyfunction!(data::numpy::from_numpy, m)?)?;
    m.add_function(wrap_pyfunction!(data::convert::_as_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::constructor::_of_kind, m)?)?;
    m.add_function(wrap_pyfunction!(data::pickle::_rebuild, m)?)?;
    m.add_function(wrap_pyfunction!(data::dlpack::from_dlpack, m)?)?;
    names::register(m)
}
