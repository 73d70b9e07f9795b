//! wengert: a tensor library built for differentiation.
//!
//! The crate is named after R. E. Wengert, whose 1964 list of elementary operations is what everyone now
//! calls the tape.
//!
//! The modules are listed by floors: each uses those above it in this list, never those below, but for the
//! exceptions that `tests/layers.rs` names with their reasons. Reading order: [`ops::pointwise::unary`] is
//! all of one-variable calculus in one table; [`op`] is the list of operations and the classes that derive
//! their rules; [`bind`] is the one door through which every operation runs; [`interp`] holds the
//! interpreters that decide what running means (evaluate, record, push a tangent, batch, write down, cast);
//! [`tape`] is what recording leaves, and [`autodiff`] walks it.

// Errors.
pub mod error;

// What the core needs of the process: blocks of memory, interrupts, locks.
pub mod process;

// Functions of real numbers, for any lane.
pub mod math;

// Values without derivatives: buffers, dtypes, shapes, arrays.
pub mod array;

// What the kernels of both devices are called with.
pub mod arguments;

// Kernels: they know nothing of differentiation.
pub mod cpu;
#[cfg(feature = "gpu")]
pub mod gpu;

// The choice between them.
pub(crate) mod device;

// The core, one knot: an operation runs by interpreters, which record it on a tape, whose rules are
// operations.
pub mod bind;
pub mod interp;
pub mod op;
pub mod tape;
pub mod tensor;
pub mod watch;

// The operations.
pub mod ops;

// The walk along the tape, and transforms of functions.
pub mod autodiff;

// Steps of optimisers.
pub mod optim;

// Every lock of the process, for a fork.
pub mod fork;

// The Python extension module.
#[cfg(feature = "python")]
mod py;
