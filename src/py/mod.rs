//! The Python extension module `wengert._core`: the only folder that knows `pyo3`.
//!
//! Reading order: `tensor` (the object), `operators` (the hot path), `args` (what users may write), `convert`
//! (data in and out), `autograd`, `transform`. The Python package around it adds pytrees, contexts and
//! layers.

// Slots that our macros spell out would otherwise be linted inside the code that pyo3 generates for them.
#![allow(unsafe_op_in_unsafe_fn)]

mod aliasing;
mod args;
mod aside;
mod assign;
mod attach;
mod autograd;
mod beside;
mod checkpoint;
mod collect;
mod complex;
mod constructor;
mod conv;
mod conversion;
mod convert;
mod create;
mod custom;
mod debug;
mod device;
mod direct;
mod dlpack;
mod dtype;
mod error;
mod format;
mod functions;
mod hooks;
mod index;
mod inplace;
mod interrupt;
mod key;
mod kind;
mod lanes;
mod limits;
mod linalg;
mod memory;
mod methods;
mod nested;
mod nn;
mod node;
mod numpy;
mod object;
mod operators;
mod ops;
mod optim;
mod outer;
mod pickle;
mod place;
#[cfg(feature = "gpu")]
mod program;
mod random;
mod reading;
mod rearrange;
mod reduce;
mod rows;
mod saving;
mod scan;
mod selection;
mod shaping;
mod sort;
mod tensor;
mod transform;
mod view;

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: crate::blocks::Blocks = crate::blocks::Blocks;

/// The Rust core of wengert; use it through the package `wengert`.
#[pymodule(gil_used = false)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::fork::protect();
    interrupt::register();
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    object::register(m)?;
    error::register(m)?;
    collect::register(m)?;
    node::register(m)?;
    hooks::register(m)?;
    lanes::register(m)?;
    place::register();
    debug::register(m)?;
    dtype::register(m)?;
    create::register(m)?;
    random::register(m)?;
    functions::register(m)?;
    complex::register(m)?;
    transform::register(m)?;
    direct::register(m)?;
    saving::register(m)?;
    custom::register(m)?;
    aliasing::register(m)?;
    device::register(m)?;
    nn::register(m)?;
    conv::register(m)?;
    linalg::register(m)?;
    ops::register(m)?;
    #[cfg(feature = "gpu")]
    program::register(m)?;
    optim::register(m)?;
    m.add_function(wrap_pyfunction!(numpy::from_numpy, m)?)?;
    m.add_function(wrap_pyfunction!(convert::_as_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(constructor::_of_kind, m)?)?;
    m.add_function(wrap_pyfunction!(pickle::_rebuild, m)?)?;
    m.add_function(wrap_pyfunction!(dlpack::from_dlpack, m)?)?;
    m.add_function(wrap_pyfunction!(autograd::_backward, m)?)?;
    m.add_function(wrap_pyfunction!(autograd::_grad, m)?)?;
    m.add_function(wrap_pyfunction!(autograd::_set_grad_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(autograd::_restore_grad, m)?)?;
    m.add_function(wrap_pyfunction!(autograd::is_grad_enabled, m)?)?;
    m.add_class::<autograd::PyInferenceState>()?;
    m.add_function(wrap_pyfunction!(autograd::_set_inference, m)?)?;
    m.add_function(wrap_pyfunction!(autograd::_restore_inference, m)?)?;
    m.add_function(wrap_pyfunction!(autograd::is_inference_mode_enabled, m)?)?;
    m.add_function(wrap_pyfunction!(checkpoint::checkpoint, m)?)
}
