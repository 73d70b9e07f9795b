//! What most interpreters name: operations, tensors and what is attached to them, the chain.

pub(super) use crate::array::Array;
pub(super) use crate::bind::bind_at;
pub(super) use crate::error::{Error, Result};
pub(super) use crate::interp::{self, Interp, Tag};
pub(super) use crate::op::{Class, Op, Outputs};
pub(super) use crate::tensor::{Payload, Tensor, Tensors, Traced};
pub(super) use smallvec::SmallVec;
pub(super) use std::sync::Arc;
