//! What almost every file of this folder uses: tensors and their objects, errors and calls of both languages.

pub use crate::error::{Error, Result};
pub use crate::py::detach::{Callback, Detach, attached};
pub use crate::py::error::{foreign, type_error, value_error};
pub use crate::py::tensor::view::{refresh, value};
pub use crate::py::tensor::{PyTensor, ReadState};
pub use crate::tensor::Tensor;
pub use pyo3::prelude::*;
pub use pyo3::types::{PyDict, PyList, PyTuple};
pub use std::sync::Arc;
