//! The Python extension module `wengert._core`; only this folder uses `pyo3`.
//!
//! Reading order: `src/py/tensor/object.rs` (the object), `src/py/tensor/operators.rs` (the hot path),
//! `src/py/args.rs` (arguments), `src/py/data/convert.rs` (data in and out), `src/py/autograd/mod.rs`. The
//! Python package adds pytrees, contexts and layers.

// Slots that our macros expand to would otherwise be linted inside the code that pyo3 generates.
#![allow(unsafe_op_in_unsafe_fn)]

mod args;
mod autograd;
mod clamp;
pub mod data;
mod detach;
mod error;
mod interrupt;
mod nn;
mod relative;
mod tensor;
pub mod writes;

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: crate::process::blocks::Blocks = crate::process::blocks::Blocks;

/// The Rust core of wengert; use it through the package `wengert`.
#[pymodule(gil_used = false)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::fork::protect();
    interrupt::register();
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    tensor::object::register(m)?;
    error::register(m)?;
    autograd::collect::register(m)?;
    autograd::node::register(m)?;
    autograd::hooks::register(m)?;
    autograd::levels::register(m)?;
    autograd::location::register();
    autograd::debug::register(m)?;
    data::dtype::register(m)?;
    data::create::register(m)?;
    data::random::register(m)?;
    tensor::functions::register(m)?;
    tensor::complex::register(m)?;
    autograd::transform::register(m)?;
    autograd::direct::register(m)?;
    autograd::saving::register(m)?;
    autograd::script::register(m)?;
    autograd::custom::register(m)?;
    writes::aliasing::register(m)?;
    data::device::register(m)?;
    nn::register(m)?;
    nn::conv::register(m)?;
    tensor::linalg::register(m)?;
    nn::ops::register(m)?;
    #[cfg(feature = "gpu")]
    nn::program::register(m)?;
    nn::optim::register(m)?;
    m.add_function(wrap_pyfunction!(data::numpy::from_numpy, m)?)?;
    m.add_function(wrap_pyfunction!(data::convert::_as_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(tensor::constructor::_of_kind, m)?)?;
    m.add_function(wrap_pyfunction!(data::pickle::_rebuild, m)?)?;
    m.add_function(wrap_pyfunction!(data::dlpack::from_dlpack, m)?)?;
    m.add_function(wrap_pyfunction!(autograd::_backward, m)?)?;
    m.add_function(wrap_pyfunction!(autograd::_grad, m)?)?;
    m.add_function(wrap_pyfunction!(autograd::_set_grad_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(autograd::_restore_grad, m)?)?;
    m.add_function(wrap_pyfunction!(autograd::is_grad_enabled, m)?)?;
    m.add_class::<autograd::PyInferenceState>()?;
    m.add_function(wrap_pyfunction!(autograd::_set_inference, m)?)?;
    m.add_function(wrap_pyfunction!(autograd::_restore_inference, m)?)?;
    m.add_function(wrap_pyfunction!(autograd::is_inference_mode_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(autograd::checkpoint::checkpoint, m)?)
}
