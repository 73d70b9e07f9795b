//! What most kernels name: arrays and their element types, conversions, threads, loops for this processor;
//! in tests also arrays of every dtype and layout.

pub(crate) use crate::array::Array;
pub(crate) use crate::array::buffer::{Device, filled};
pub(crate) use crate::array::dtype::{DType, Element};
pub(crate) use crate::array::nest::Nest;
pub(crate) use crate::array::shape::{MAX_RANK, Shape};
pub(crate) use crate::cpu::pointwise::copy::{cast, computed, contiguous};
pub(crate) use crate::cpu::pointwise::layout::{common_dtype, wrong_dtype};
pub(crate) use crate::cpu::run::isa::{PlainBody, run_plain, run_widest};
#[cfg(test)]
pub(crate) use crate::cpu::run::testing::*;
pub(crate) use crate::cpu::run::threads::{GRAIN, Shared, parallel_for, try_parallel_for};
pub(crate) use crate::error::{Error, Result};
pub(crate) use crate::{dispatch, dispatch_computed};
