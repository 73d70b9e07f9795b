//! What products of complex numbers and Fourier transforms are told.

/// The operand of a product whose zeros make the product zero, whatever the other operand is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Gate {
    /// Neither: `0 * inf` is NaN.
    Open,
    /// The left one.
    Left,
    /// The right one.
    Right,
}

/// Parameters of a transform of real numbers; see [`RealFft`](crate::ops::fft::RealFft).
#[derive(Clone, Copy)]
pub struct Half {
    /// Number of real numbers.
    pub n: usize,
    /// Whether the sign of the exponent is negated.
    pub inverse: bool,
    /// Whether elements that stand for themselves and their mirror image count twice.
    pub doubled: bool,
    /// Factor of the result.
    pub scale: f64,
}
