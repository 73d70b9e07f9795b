//! What most factorisations name: matrices and their numbers, errors, and the memory and options of `faer`.

pub(super) use super::Cost;
pub(super) use super::field::{Field, Matrices, graded, in_field, magnitude, product, rescale, scale};
pub(super) use crate::arguments::linalg::Failure;
pub(super) use crate::array::Array;
pub(super) use crate::error::Result;
pub(super) use faer::diag::Diag;
pub(super) use faer::dyn_stack::{MemBuffer, MemStack};
pub(super) use faer::prelude::*;
pub(super) use faer::{Conj, Par, Spec};
