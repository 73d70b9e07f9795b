//! One block of a matrix product, computed serially.

use crate::dtype::Element;

/// A float that the `gemm` crate multiplies.
pub trait Gemm: Element + std::ops::AddAssign {}
impl Gemm for f32 {}
impl Gemm for f64 {}

/// One block of a product: `out[m, n] = a[m, k] b[k, n]`, with row and column strides.
pub struct Block<T> {
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// Depth.
    pub k: usize,
    /// The result, whose rows are contiguous.
    pub out: *mut T,
    /// Elements from one row of the result to the next.
    pub out_stride: isize,
    /// Left operand.
    pub a: *const T,
    /// Its row and column strides.
    pub a_strides: (isize, isize),
    /// Right operand.
    pub b: *const T,
    /// Its row and column strides.
    pub b_strides: (isize, isize),
}

impl<T: Gemm> Block<T> {
    /// Computes the block.
    ///
    /// # Safety
    /// The operands and the output exist in this size, and nobody else writes the output.
    pub unsafe fn multiply(self) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.m * self.n * self.k <= 256 {
                return self.multiply_tiny();
            }
            gemm::gemm(
                self.m,
                self.n,
                self.k,
                self.out,
                1,
                self.out_stride,
                false,
                self.a,
                self.a_strides.1,
                self.a_strides.0,
                self.b,
                self.b_strides.1,
                self.b_strides.0,
                T::from_f64(0.0),
                T::from_f64(1.0),
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    }

    /// The product by definition, where calling the other would cost more than the arithmetic.
    ///
    /// # Safety
    /// As [`Block::multiply`].
    unsafe fn multiply_tiny(self) {
        // SAFETY: the caller's promise.
        unsafe {
            for i in 0..self.m as isize {
                for j in 0..self.n as isize {
                    let mut total = 0.0;
                    for l in 0..self.k as isize {
                        let a = *self.a.offset(i * self.a_strides.0 + l * self.a_strides.1);
                        total += a.to_f64()
                            * (*self.b.offset(l * self.b_strides.0 + j * self.b_strides.1)).to_f64();
                    }
                    *self.out.offset(i * self.out_stride + j) = T::from_f64(total);
                }
            }
        }
    }
}
