//! What most files of this folder name: tensors, nodes, edges between them, tags of interpreters, errors.

pub(super) use crate::error::{Error, Result};
pub(super) use crate::interp::{self, Tag};
pub(super) use crate::tape::node::{Edge, Node};
pub(super) use crate::tensor::{Aval, Payload, Tensor};
pub(super) use smallvec::SmallVec;
pub(super) use std::sync::Arc;
