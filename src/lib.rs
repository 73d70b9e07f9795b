//! wengert: a tensor library built for differentiation.
//!
//! The crate is named after R. E. Wengert, whose 1964 list of elementary operations is what everyone now
//! calls the tape.
//!
//! Reading order: [`ops::unary`] is all of one-variable calculus in one table; [`op`] is the list of
//! operations and the classes that derive their rules; [`bind`] is the one door through which every operation
//! runs; [`interp`] holds the interpreters that decide what running means (evaluate, record, push a tangent,
//! batch, write down, cast); [`autodiff`] walks the tape. Below all that, [`mod@array`], [`buffer`], [`dtype`] and
//! [`shape`] are values without derivatives, and [`cpu`] and `gpu` are kernels that know no operation by name.
//! [`cost`] counts; [`blocks`] is an allocator that suits a tape.

pub mod array;
pub mod autodiff;
pub mod bind;
pub mod blocks;
pub mod buffer;
pub mod complex;
pub mod cost;
pub mod cpu;
pub mod dtype;
pub mod error;
pub mod fork;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod interp;
pub mod interrupt;
pub mod math;
pub mod op;
pub mod ops;
pub mod optim;
#[cfg(feature = "python")]
mod py;
pub mod random;
pub mod real;
pub mod shape;
pub mod tensor;
pub mod window;
mod writers;
