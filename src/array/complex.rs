//! Complex numbers as elements: a pair of floats, the real part first. Kernels only move such pairs; complex
//! arithmetic is composed of operations on the parts. Read next: `src/ops/complex/mod.rs`.

/// A complex number. A pair of `f32` is moved as one 8-byte word, and aligned as one.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default, Debug)]
#[repr(C, align(8))]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}
