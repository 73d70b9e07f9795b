//! What almost every file of this folder uses: tensors and their objects, arguments, errors and calls of both
//! languages, tables of methods and functions.

pub use crate::array::Array;
pub use crate::array::buffer::Device;
pub use crate::array::dtype::DType;
pub use crate::array::shape::Shape;
pub use crate::error::{Error, Named, Result};
pub(crate) use crate::interp;
pub use crate::py::args::{Arg, AsTensor, Whole, run, whole};
pub use crate::py::detach::{Callback, Detach, attached};
pub use crate::py::error::{foreign, no_tensor, type_error, value_error};
pub(crate) use crate::py::tensor::table::{functions, methods, named, readings, views};
pub use crate::py::tensor::view::{refresh, value};
pub use crate::py::tensor::{PyTensor, ReadState};
pub use crate::tensor::Tensor;
pub use pyo3::prelude::*;
pub use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyTuple};
pub use std::sync::Arc;
