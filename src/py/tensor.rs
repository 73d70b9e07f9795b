//! `wengert.Tensor`: the Python object around the core's `Tensor`. This file holds what every tensor can say
//! about itself; operators, methods, indexing and differentiation have files of their own beside it.

use crate::autodiff::node::{Edge, Handle, Node};
use crate::autodiff::saving;
use crate::buffer::Device;
use crate::dtype::DType;
use crate::error::Error;
use crate::interp;
use crate::py::args::{AsTensor, optional_whole};
use crate::py::aside::Aside;
use crate::py::debug;
use crate::py::dtype::{PyDType, PyDevice, dtype_object};
use crate::py::error::value_error;
pub use crate::py::object::{Look, PyTensor};
use crate::py::{format, nested, numpy};
use crate::tensor::{Payload, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyTuple};
use std::sync::Arc;

/// A new object of class `Tensor`.
#[inline]
pub fn wrap(py: Python<'_>, t: Tensor) -> PyResult<Py<PyTensor>> {
    Py::new(py, PyTensor::from(t))
}

/// Exchanges the tensor behind a Python object. The old one dies last: its owner may be a Python object that
/// looks at this one.
pub fn replace(slf: &Bound<'_, PyTensor>, next: Tensor) -> PyResult<()> {
    if slf.get().try_look().is_some_and(|this| same(&this.t, &next)) {
        return Ok(());
    }
    let old = slf.get().change(|this| std::mem::replace(&mut this.t, next)).ok_or_else(in_use)?;
    drop(old);
    Ok(())
}

/// The error for a tensor that cannot be exchanged now.
#[cold]
pub fn in_use() -> PyErr {
    PyRuntimeError::new_err(
        "this tensor is exchanged while another thread computes with it; give each thread its own tensor object, \
         as from detach(), or hold a lock",
    )
}

/// Whether both are one view of one memory with one history.
fn same(a: &Tensor, b: &Tensor) -> bool {
    match (a, b) {
        (Tensor::Traced(a), Tensor::Traced(b)) => Arc::ptr_eq(a, b),
        (Tensor::Array(a), Tensor::Array(b)) => {
            a.buffer().same(b.buffer())
                && a.offset() == b.offset()
                && a.shape() == b.shape()
                && a.dtype() == b.dtype()
                && a.strides() == b.strides()
        }
        _ => false,
    }
}

/// The shape as a Python tuple.
pub fn shape_tuple<'py>(py: Python<'py>, t: &Tensor) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, t.shape().iter())
}

/// Makes `t` a leaf of the current ambient tape; itself if it is recorded there already.
pub fn require_grad(t: &Tensor) -> PyResult<Tensor> {
    if !t.dtype().is_differentiable() {
        return Err(Error::autodiff(format!(
            "only floating point tensors have gradients, got {}; convert with .float() first",
            t.dtype()
        ))
        .into());
    }
    if saving::is_inference(t) && !crate::buffer::inference() {
        return Err(Error::autodiff(format!(
            "the {} tensor of shape {} was made in inference_mode() and cannot require a gradient outside of it; call \
             requires_grad_() on a clone() of it",
            t.dtype(),
            t.shape()
        ))
        .into());
    }
    let tag = interp::ambient().tag;
    if t.owned_by(tag).is_some() {
        return Ok(t.clone());
    }
    Ok(Node::leaf_tensor(tag, t.clone()))
}

/// The tape entry of a tensor that is a leaf.
pub fn leaf(t: &Tensor) -> Option<Edge> {
    t.edge().filter(|e| e.node.is_leaf())
}

/// The tensor with the history of `like` and the value `value`.
pub fn with_history(like: &Tensor, value: Tensor) -> Tensor {
    match (like.traced(), like.edge()) {
        (Some(t), Some(Edge { node, index })) => value.on_tape(t.tag, Handle::new(node), index),
        _ => value,
    }
}

/// The kind of tracer, for messages and printing.
pub fn tracer(t: &Tensor) -> Option<&'static str> {
    let mut at = t;
    while let Some(traced) = at.traced() {
        match traced.payload {
            Payload::Dual { .. } => return Some("Dual"),
            Payload::Batched { .. } => return Some("Batched"),
            Payload::Staged { .. } => return Some("Staged"),
            Payload::Taped { .. } => at = traced.inner(),
        }
    }
    None
}

/// The one element of a tensor as a Python number.
pub fn item<'py>(py: Python<'py>, t: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    if t.numel() != 1 {
        return Err(value_error(format!(
            "item: a tensor with one element expected, got shape {}; use tolist() or index it",
            t.shape()
        )));
    }
    let array = t.array("item")?;
    let value = py.aside(|| array.to_device(Device::Cpu))?;
    let value = crate::cpu::copy::contiguous(&value)?;
    Ok(match t.dtype() {
        DType::Bool => PyBool::new(py, value.item()? != 0.0).to_owned().into_any(),
        DType::U64 => PyInt::new(py, value.slice::<u64>()?[0]).into_any(),
        dtype if dtype.is_integer() => {
            PyInt::new(py, crate::cpu::copy::cast(&value, DType::I64)?.slice::<i64>()?[0]).into_any()
        }
        dtype if dtype.is_complex() => {
            let parts = Tensor::Array(value.as_real()?).to_vec()?;
            PyComplex::from_doubles(py, parts[0], parts[1]).into_any()
        }
        _ => PyFloat::new(py, value.item()?).into_any(),
    })
}

#[pymethods]
impl PyTensor {
    /// Shares the memory of `data` (a tensor, an array, or nested lists, which are copied), without its
    /// history.
    #[new]
    #[pyo3(signature = (data=None, *, requires_grad=false))]
    fn new(data: Option<AsTensor>, requires_grad: bool) -> PyResult<PyTensor> {
        let t = match data {
            Some(data) => {
                debug::left("Tensor()", &data.0);
                data.0.detach()
            }
            None => Tensor::from_slice::<f32>(&[], &[0])?,
        };
        Ok(PyTensor::from(if requires_grad { require_grad(&t)? } else { t }))
    }

    /// The lengths of the axes, as a tuple.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        shape_tuple(py, &self.look().t)
    }

    /// The shape, or the length of axis `dim`.
    #[pyo3(signature = (dim=None, *, axis=None))]
    fn size<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = optional_whole)] dim: Option<i64>,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(match dim.or(axis) {
            None => shape_tuple(py, &self.look().t)?.into_any(),
            Some(d) => {
                let shape = self.look().t.shape();
                PyInt::new(py, shape.at(shape.axis(d, "size")?)).into_any()
            }
        })
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.look().t.rank()
    }

    /// Number of axes.
    fn dim(&self) -> usize {
        self.look().t.rank()
    }

    /// Number of elements.
    fn numel(&self) -> usize {
        self.look().t.numel()
    }

    /// Number of elements.
    fn nelement(&self) -> usize {
        self.look().t.numel()
    }

    /// The element type: `wengert.float32` and so on.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyDType>> {
        dtype_object(py, self.look().t.dtype())
    }

    /// Where the tensor lies.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice { device: self.look().t.device() }
    }

    /// Whether the tensor is on a GPU.
    #[getter]
    fn is_gpu(&self) -> bool {
        self.look().t.device() != Device::Cpu
    }

    /// Bytes per element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.look().t.dtype().size()
    }

    /// Bytes per element.
    fn element_size(&self) -> usize {
        self.look().t.dtype().size()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.look().t.numel() * self.look().t.dtype().size()
    }

    /// Whether the dtype is a type of real floating point numbers.
    fn is_floating_point(&self) -> bool {
        self.look().t.dtype().is_float()
    }

    /// The strides in elements, or that of one axis.
    #[pyo3(signature = (dim=None))]
    fn stride<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = optional_whole)] dim: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let t = self.value()?;
        let array = t.array("stride")?;
        Ok(match dim {
            None => PyTuple::new(py, array.strides())?.into_any(),
            Some(d) => PyInt::new(py, array.stride(self.look().t.shape().axis(d, "stride")?)).into_any(),
        })
    }

    /// Position of the first element in the shared memory, in elements.
    fn storage_offset(&self) -> PyResult<usize> {
        Ok(self.value()?.array("storage_offset")?.offset())
    }

    /// Address of the first element; 0 for memory that the host cannot address.
    fn data_ptr(&self) -> PyResult<usize> {
        let t = self.value()?;
        let array = t.array("data_ptr")?;
        let base = array.buffer().ptr() as usize;
        Ok(if base == 0 { 0 } else { base + array.offset() * array.dtype().size() })
    }

    /// Whether the elements lie in row-major order without gaps.
    fn is_contiguous(&self) -> PyResult<bool> {
        Ok(self.value()?.array("is_contiguous")?.is_contiguous())
    }

    /// How many in-place writes the memory has seen.
    #[getter]
    fn _version(&self) -> u32 {
        crate::autodiff::saving::version(&self.look().t)
    }

    /// The one element as a Python number. Raises ValueError for any other number of elements.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let t = self.value()?;
        debug::left("item()", &t);
        item(py, &t)
    }

    /// The elements as nested lists of Python numbers; a number for a tensor without axes.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let t = self.value()?;
        debug::left("tolist()", &t);
        nested::to_list(py, t.array("tolist")?)
    }

    /// A NumPy array that shares the memory. Raises RuntimeError for a tensor that requires a gradient (call
    /// `detach()` first) and TypeError for one on a GPU (call `cpu()` first); `force=True` does both.
    #[pyo3(signature = (*, force=false))]
    fn numpy<'py>(&self, py: Python<'py>, force: bool) -> PyResult<Bound<'py, PyAny>> {
        let t = self.value()?.into_owned();
        debug::left("numpy()", &t);
        let t = if force { t.detach().to_device(Device::Cpu)? } else { t };
        numpy::to_numpy(py, &t)
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = numpy::to_numpy(py, &*self.value()?)?;
        let kwargs = PyDict::new(py);
        match dtype {
            Some(dtype) => {
                kwargs.set_item("copy", copy.unwrap_or(false))?;
                array.call_method("astype", (dtype,), Some(&kwargs))
            }
            None if copy == Some(true) => array.call_method0("copy"),
            None => Ok(array),
        }
    }

    /// NumPy leaves operators with tensors to this class.
    #[classattr]
    fn __array_priority__() -> i32 {
        1000
    }

    /// NumPy leaves operators with tensors to this class.
    #[classattr]
    fn __array_ufunc__(py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

    fn __len__(&self) -> PyResult<usize> {
        if self.look().t.rank() == 0 {
            return Err(PyTypeError::new_err("len() of a tensor without axes; use item() or numel()"));
        }
        Ok(self.look().t.shape().at(0))
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let shape = slf.look().t.shape();
        if shape.rank() == 0 {
            return Err(PyTypeError::new_err("a tensor without axes cannot be iterated over; use item()"));
        }
        // Rows are made as they are asked for: there may be billions, of one element repeated.
        // SAFETY: the tensor is an object with `__getitem__`, and the caller is attached.
        unsafe { Bound::from_owned_ptr_or_err(slf.py(), pyo3::ffi::PySeqIter_New(slf.as_ptr())) }
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        if self.look().t.numel() != 1 {
            return Err(PyRuntimeError::new_err(format!(
                "the truth value of a tensor of shape {} is ambiguous; use any() or all()",
                self.look().t.shape()
            )));
        }
        let t = self.value()?;
        debug::left("bool()", &t);
        t.array("bool")?;
        item(py, &t)?.is_truthy()
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let t = self.value()?;
        debug::left("int()", &t);
        py.get_type::<PyInt>().call1((item(py, &t)?,))
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        let t = self.value()?;
        debug::left("float()", &t);
        item(py, &t)?.extract()
    }

    fn __index__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.look().t.dtype().is_differentiable() || self.look().t.numel() != 1 {
            return Err(PyTypeError::new_err(format!(
                "only an integer tensor with one element is an index, got {} of shape {}",
                self.look().t.dtype(),
                self.look().t.shape()
            )));
        }
        py.get_type::<PyInt>().call1((item(py, &*self.value()?)?,))
    }

    fn __contains__(&self, py: Python<'_>, value: crate::py::args::Arg) -> PyResult<bool> {
        let found = self.value()?.detach().compare(value.operand(), crate::ops::compare::Relation::Eq)?;
        item(py, &found.any(None, false)?)?.is_truthy()
    }

    fn __hash__(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr() as usize >> 4
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let t = self.value()?;
        Ok(py.aside(|| format::tensor(&t))?)
    }

    fn __format__<'py>(&self, py: Python<'py>, spec: &str) -> PyResult<Bound<'py, PyAny>> {
        let t = self.value()?;
        if spec.is_empty() || t.numel() != 1 || tracer(&t).is_some() {
            return Ok(format::tensor(&t)?.into_pyobject(py)?.into_any());
        }
        item(py, &t)?.call_method1("__format__", (spec,))
    }
}
