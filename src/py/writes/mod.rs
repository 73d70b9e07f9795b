//! Writing through Python objects: in place, to views, and inside transforms.

pub(crate) mod aliasing;
pub(crate) mod assign;
mod fills;
pub(crate) mod inplace;
mod layout;
mod numbers;
pub(crate) mod outer;
pub(crate) mod rows;
pub(crate) mod storage;
