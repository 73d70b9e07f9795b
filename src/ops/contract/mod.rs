//! Contractions: matrix products, convolutions, and windows.

use crate::array::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

pub mod conv;
pub mod convolve;
pub mod cross;
pub mod integers;
pub mod linear;
pub mod matmul;
pub mod patches;
pub mod pool;

/// The bias of a result of this dtype. Raises for one of a higher kind, of which parts would be lost.
fn bias_for(op: &str, bias: &Tensor, dtype: DType) -> Result<Tensor> {
    if bias.dtype().category() > dtype.category() {
        return Err(Error::dtype(format!(
            "{op}: a bias of {} for a result of {dtype}; convert input and weight first",
            bias.dtype()
        )));
    }
    bias.cast(dtype)
}
