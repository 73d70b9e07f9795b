//! wengert: a tensor library built for differentiation.
//!
//! The crate is named after R. E. Wengert, whose list of elementary operations (1964) is now called the tape.
//!
//! The modules are listed by floors: each uses those above it in this list, never those below, but for the
//! exceptions that `tests/layers.rs` names with their reasons. Reading order: `src/ops/pointwise/unary.rs` is
//! all of one-variable calculus in one table; `op` is the list of operations and the classes that derive
//! their rules; `bind` is the single entry point of every operation; `interp` holds the
//! interpreters that decide what running means (evaluate, record, push a tangent, batch, record a program,
//! cast); `tape` is what recording leaves, and `autodiff` walks it.
//!
//! The interface for programs in Rust is [`Tensor`] with its methods, [`grad`], [`value_and_grad`], [`vjp`],
//! [`jvp`], [`vmap`] and [`optim`]; `examples/train.rs` trains a network with it.

// Dead code is reported in the build with the Python module and the GPU alone, which uses everything.
#![cfg_attr(not(all(feature = "python", feature = "gpu")), allow(dead_code, unused_imports))]
// Readers of the source follow links between private items, too.
#![allow(rustdoc::private_intra_doc_links)]

// Errors.
pub(crate) mod error;

// What the core needs of the process: blocks of memory, interrupts, locks.
pub(crate) mod process;

// Functions of real numbers, generic over the number type: a scalar, a vector, an expression of a shader.
pub(crate) mod math;

// Values without derivatives: buffers, dtypes, shapes, arrays.
pub(crate) mod array;

// What the kernels of both devices are called with.
pub(crate) mod arguments;

// Kernels: they know nothing of differentiation.
pub(crate) mod cpu;
#[cfg(feature = "gpu")]
pub(crate) mod gpu;

// The choice between them.
pub(crate) mod device;

// The core, modules that need each other: an operation runs by interpreters, which record it on a tape, whose
// rules are operations.
pub(crate) mod bind;
pub(crate) mod interp;
pub(crate) mod op;
pub(crate) mod tape;
pub(crate) mod tensor;
pub(crate) mod watch;

// The operations.
pub(crate) mod ops;

// The walk along the tape, and transforms of functions.
pub(crate) mod autodiff;

// Steps of optimisers.
pub mod optim;

// Every lock of the process, for a fork.
pub(crate) mod fork;

// The Python extension module.
#[cfg(feature = "python")]
mod py;

// The interface for programs in Rust, and re-exports for tests and benchmarks.
pub use array::buffer::Device;
pub use array::dtype::{DType, Element, Truth};
pub use array::shape::{Axes, Shape};
pub use autodiff::functions::{grad, value_and_grad, vmap};
pub use autodiff::transform::{Pullback, jvp, vjp};
pub use error::{Error, Kind, Result};
pub use tensor::Tensor;
#[doc(hidden)]
pub mod internals;
