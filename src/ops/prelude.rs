//! What nearly every file of operations names.

pub(crate) use crate::array::Array;
pub(crate) use crate::array::buffer::Device;
pub(crate) use crate::array::dtype::DType;
pub(crate) use crate::array::shape::Shape;
pub(crate) use crate::bind::bind;
pub(crate) use crate::device::on_device;
pub(crate) use crate::error::{Error, Result};
pub(crate) use crate::op::{
    Arrays, Batched, BatchedOutputs, Bilinear, Composite, Discrete, General, Grads, Kernel, Linear, Needs,
    Operation, Own, Saves, added, aligned, batch, first_in_front, in_front, in_place, no_output, transpose,
};
pub(crate) use crate::ops::{first, kernel, one, outputs};
pub(crate) use crate::tape::node::Vjp;
pub(crate) use crate::tensor::{Tensor, Tensors};
pub(crate) use crate::watch::cost;
pub(crate) use smallvec::{SmallVec, smallvec};
