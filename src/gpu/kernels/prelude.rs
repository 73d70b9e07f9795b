//! What most kernels name: arrays, launches, the arrays a shader reads, the arithmetic it is made for.

pub(super) use super::copy::{cast, contiguous, index_of};
pub(super) use super::dispatch::{Dispatch, dtype_of_rows, like, words_of};
pub(super) use crate::array::Array;
pub(super) use crate::array::dtype::DType;
pub(super) use crate::array::nest::Nest;
pub(super) use crate::array::shape::Shape;
pub(super) use crate::error::{Error, Result};
pub(super) use crate::gpu::shader::template::{arithmetic, is_long, per_word};
