//! `wengert.Tensor`: the Python object around the core's `Tensor`. This file holds the properties of a
//! tensor; operators, methods, indexing and differentiation are in files beside it.

pub(crate) mod attach;
pub(crate) mod complex;
pub(crate) mod constructor;
pub(crate) mod conversion;
pub(crate) mod functions;
pub(crate) mod index;
pub(crate) mod key;
pub(crate) mod linalg;
pub(crate) mod methods;
pub(crate) mod object;
pub(crate) mod operators;
pub(crate) mod options;
pub(crate) mod real_complex;
pub(crate) mod rearrange;
pub(crate) mod reduce;
pub(crate) mod scan;
pub(crate) mod selection;
pub(crate) mod shaping;
pub(crate) mod table;
pub(crate) mod view;

use crate::array::defaults;
use crate::py::autograd::staging;
use crate::py::data::dtype::{PyDType, PyDevice, dtype_object, is_cuda_gpu, optional_device};
use crate::py::data::format;
use crate::py::data::{layout::Format, reading::item};
use crate::py::prelude::*;
pub use crate::py::tensor::object::{PyTensor, ReadState};
use crate::py::tensor::{constructor::of_kind, object::State};
use crate::tape::node::{Edge, Handle, Node};
use crate::tape::saving;
use crate::tensor::Payload;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::sync::PyOnceLock;

/// The versions of the array API standard whose functions are all in `wengert.numpy`.
const ARRAY_API: [&str; 4] = ["2021.12", "2022.12", "2023.12", "2024.12"];

/// Returns a new object of class `Tensor`.
#[inline]
pub fn wrap(py: Python<'_>, t: Tensor) -> PyResult<Py<PyTensor>> {
    Py::new(py, PyTensor::from(t))
}

/// [`wrap`], as an object of any class.
pub fn object(py: Python<'_>, t: Tensor) -> PyResult<Bound<'_, PyAny>> {
    Ok(wrap(py, t)?.into_bound(py).into_any())
}

/// Exchanges the tensor behind a Python object. The old one is dropped last: dropping its owner may run
/// Python code that uses this object.
pub fn replace(slf: &Bound<'_, PyTensor>, next: Tensor) -> PyResult<()> {
    if slf.get().try_read().is_some_and(|this| same(&this.t, &next)) {
        return Ok(());
    }
    changed(slf, |this| std::mem::replace(&mut this.t, next)).map(drop)
}

/// Changes an object's state by `f`, which returns what it replaces, as dropping that may run Python code.
pub fn changed<T>(slf: &Bound<'_, PyTensor>, f: impl FnOnce(&mut State) -> T) -> PyResult<T> {
    slf.get().change(f).ok_or_else(in_use)
}

/// The error for a tensor that cannot be exchanged because it is in use.
#[cold]
pub fn in_use() -> PyErr {
    PyRuntimeError::new_err(
        "this tensor is exchanged while another thread computes with it; give each thread its own tensor \
         object, as from detach(), or hold a lock",
    )
}

/// Whether two tensors are the same view of the same memory, with the same history.
pub fn same(a: &Tensor, b: &Tensor) -> bool {
    match (a, b) {
        (Tensor::Traced(a), Tensor::Traced(b)) => Arc::ptr_eq(a, b),
        (Tensor::Array(a), Tensor::Array(b)) => a.is(b),
        _ => false,
    }
}

/// Makes `t` a leaf of the innermost ambient tape; returns `t` itself if it is recorded there already.
pub fn require_grad(t: &Tensor) -> PyResult<Tensor> {
    if !t.dtype().is_differentiable() {
        return Err(Error::autodiff(format!(
            "only floating point tensors have gradients, got {}; convert with .float() first",
            t.dtype()
        ))
        .into());
    }
    if saving::is_inference(t) && !crate::array::buffer::inference() {
        return Err(Error::autodiff(format!(
            "the {} tensor of shape {} was made in inference_mode() and cannot require a gradient outside \
             of it; call requires_grad_() on a clone() of it",
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

/// Returns the edge of a tensor that is a leaf.
pub fn leaf(t: &Tensor) -> Option<Edge> {
    t.edge().filter(|e| e.node.is_leaf())
}

/// Returns `value` with the history of `like`.
pub fn with_history(like: &Tensor, value: Tensor) -> Tensor {
    match (like.traced(), like.edge()) {
        (Some(t), Some(Edge { node, index })) => value.on_tape(t.tag, Handle::new(node), index),
        _ => value,
    }
}

/// Returns the kind of tracer, for messages and printing; `None` for plain and recorded values.
pub fn tracer(t: &Tensor) -> Option<&'static str> {
    let mut at = t;
    while let Some(traced) = at.traced() {
        match traced.payload {
            Payload::Dual { .. } => return Some("Dual"),
            Payload::Batched { .. } => return Some("Batched"),
            Payload::Linearized { .. } => return Some("Linearized"),
            Payload::Donated { .. } => return Some("Donated"),
            Payload::Taped { .. } => at = traced.inner(),
        }
    }
    None
}

/// The strides in elements; inside `vmap` those of one example.
fn strides(t: &Tensor) -> Vec<isize> {
    match t {
        Tensor::Array(array) => array.strides(),
        Tensor::Traced(traced) => {
            let mut strides = strides(traced.inner());
            if let Payload::Batched { axis, .. } = traced.payload {
                strides.remove(axis);
            }
            strides
        }
    }
}

readings! { PyTensor, |object| object.read().t;
    /// Number of axes.
    #[getter]
    ndim -> usize = |t| t.rank();
    /// Returns the number of axes.
    dim -> usize = |t| t.rank();
    /// Tells whether the memory is pinned: none is.
    is_pinned -> bool = |_t| false;
    /// Returns the number of axes.
    ndimension -> usize = |t| t.rank();
    /// Counts the elements.
    numel -> usize = |t| t.numel();
    /// Counts the elements.
    nelement -> usize = |t| t.numel();
    /// Where the tensor lies.
    #[getter(device)]
    home -> PyDevice = |t| PyDevice { device: t.device() };
    /// Whether the tensor is on the CPU.
    #[getter]
    is_cpu -> bool = |t| t.device() == Device::Cpu;
    /// Whether the tensor is on a GPU and the environment calls GPUs so (`WENGERT_CUDA=gpu`).
    #[getter]
    is_cuda -> bool = |t| t.device() != Device::Cpu && is_cuda_gpu();
    /// Whether the tensor is on a GPU.
    #[getter]
    is_gpu -> bool = |t| t.device() != Device::Cpu;
    /// Whether the tensor is sparse: none is.
    #[getter]
    is_sparse -> bool = |_t| false;
    /// Whether the tensor is quantised: none is.
    #[getter]
    is_quantized -> bool = |_t| false;
    /// Whether the tensor has a shape alone and no elements: none has.
    #[getter]
    is_meta -> bool = |_t| false;
    /// Whether the tensor is on a device of the kind `xpu`: none is.
    #[getter]
    is_xpu -> bool = |_t| false;
    /// Whether the tensor is on a device of the kind `mps`: none is.
    #[getter]
    is_mps -> bool = |_t| false;
    /// Bytes per element.
    #[getter]
    itemsize -> usize = |t| t.dtype().size();
    /// Returns the bytes per element.
    element_size -> usize = |t| t.dtype().size();
    /// Bytes of all elements.
    #[getter]
    nbytes -> usize = |t| t.numel() * t.dtype().size();
    /// Tells whether the dtype is a type of real floating point numbers.
    is_floating_point -> bool = |t| t.dtype().is_float();
    /// Tells whether the dtype is complex.
    is_complex -> bool = |t| t.dtype().is_complex();
    /// Tells whether the memory was made in `inference_mode()`: no tape keeps it, nothing outside writes it.
    is_inference -> bool = |t| saving::is_inference(t);
    /// How many in-place writes the memory has seen.
    #[getter]
    _version -> u32 = |t| staging::version(t);
}

#[pymethods]
impl PyTensor {
    /// `Tensor(2, 3)` is a float32 tensor of this shape, to be filled; `Tensor(data)` has the elements of
    /// nested lists or of an array as float32, or shares the memory of a tensor, without its history. Use
    /// `wengert.tensor` to keep the dtype of the data, and for a single number. `set_default_dtype` chooses
    /// another dtype than float32.
    #[new]
    #[pyo3(signature = (*size, data=None, requires_grad=false, device=None))]
    fn new(
        size: &Bound<'_, PyTuple>, data: Option<&Bound<'_, PyAny>>, requires_grad: bool,
        device: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        let given = match data {
            None => size.clone(),
            Some(data) if size.is_empty() => PyTuple::new(size.py(), [data])?,
            Some(_) => {
                return Err(type_error("Tensor: data is given by position and by name; give it once"));
            }
        };
        let t = of_kind("Tensor", &given, defaults::float(), optional_device(device)?)?;
        let t = if requires_grad { require_grad(&t)? } else { t };
        Ok(if interp::is_plain() { t.into() } else { PyTensor::sharing(t, None) })
    }

    /// The lengths of the axes, as a tuple.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.read().t.shape().iter())
    }

    /// The number of elements, a number; called (`x.size()`, `x.size(0)`), the shape or the length of one
    /// axis.
    #[getter]
    fn size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static SIZE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let numel = self.read().t.numel();
        SIZE.import(py, "wengert._results", "Size")?.call1((numel, self.shape(py)?))
    }

    /// Changed copies, as in JAX: `x.at[i].set(v)`, `add`, `multiply`, `min`, `max`, ...; `x` stays as it is.
    #[getter]
    fn at<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        static AT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        AT.import(slf.py(), "wengert.numpy._updates", "At")?.call1((slf,))
    }

    /// Returns the functions of the array API standard: `wengert.numpy`. Raises ValueError for a version of
    /// the standard that it does not follow.
    #[pyo3(signature = (*, api_version=None))]
    fn __array_namespace__<'py>(
        &self, py: Python<'py>, api_version: Option<&str>,
    ) -> PyResult<Bound<'py, PyModule>> {
        match api_version {
            Some(version) if !ARRAY_API.contains(&version) => Err(value_error(format!(
                "__array_namespace__: version '{version}' of the array API standard is not one of {}",
                ARRAY_API.join(", ")
            ))),
            _ => py.import("wengert.numpy"),
        }
    }

    /// The element type: `wengert.float32` and so on.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyDType>> {
        dtype_object(py, self.read().t.dtype())
    }

    /// How the elements are stored: `wengert.strided`, always.
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static STRIDED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        STRIDED.import(py, "wengert._kinds", "strided").cloned()
    }

    /// Returns the strides in elements, or that of one axis; inside `vmap` those of one example.
    #[pyo3(signature = (dim=None))]
    fn stride<'py>(&self, py: Python<'py>, dim: Option<Whole>) -> PyResult<Bound<'py, PyAny>> {
        let t = self.value()?;
        let strides = strides(&t);
        Ok(match dim {
            None => PyTuple::new(py, strides)?.into_any(),
            Some(d) => PyInt::new(py, strides[t.shape().axis(d.0, "stride")?]).into_any(),
        })
    }

    /// Returns the position of the first element in the shared memory, in elements.
    fn storage_offset(&self) -> PyResult<usize> {
        crate::watch::script::refuse(|| "storage_offset(), another in each run; ask after the call".into());
        Ok(self.value()?.array("storage_offset")?.offset())
    }

    /// Returns the address of the first element. For memory that the host cannot address it is a number for
    /// comparison: equal where two tensors begin at the same element.
    fn data_ptr(&self) -> PyResult<usize> {
        /// Ids of buffers are at least this far apart.
        const ALIGNED: usize = 16;
        crate::watch::script::refuse(|| "data_ptr(), another in each run; ask after the call".into());
        let array = self.value()?.array("data_ptr")?.clone();
        let base = match array.buffer().ptr() as usize {
            0 => (array.buffer().id() / ALIGNED) << 20,
            base => base,
        };
        Ok(base + array.offset() * array.dtype().size())
    }

    /// Tells whether the elements lie in row-major order without gaps; with `memory_format`, in that order.
    #[pyo3(signature = (memory_format=None))]
    fn is_contiguous(&self, memory_format: Option<Format>) -> PyResult<bool> {
        let t = self.value()?;
        if let Some(order) = memory_format.and_then(|format| format.order()) {
            return Ok(t.rank() == order.len() && PyTensor::from(t.permute(order)?).is_contiguous(None)?);
        }
        if let Some(array) = t.concrete() {
            return Ok(array.is_contiguous());
        }
        let lengths = t.shape().to_vec();
        let mut pairs = lengths.iter().zip(strides(&t)).rev().filter(|(n, _)| **n != 1);
        let in_order = pairs.try_fold(1, |step, (n, stride)| (stride == step).then_some(step * *n as isize));
        Ok(t.numel() == 0 || in_order.is_some())
    }

    /// NumPy leaves operators with tensors to this class.
    #[classattr]
    fn __array_priority__() -> i32 {
        1000
    }

    /// NumPy's functions of single elements: `np.sin(x)`, and operators with an array on the left.
    #[pyo3(signature = (ufunc, method, *inputs, **kwargs))]
    fn __array_ufunc__<'py>(
        slf: &Bound<'py, Self>, ufunc: Bound<'py, PyAny>, method: Bound<'py, PyAny>,
        inputs: Bound<'py, PyTuple>, kwargs: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static UFUNC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let kwargs = kwargs.unwrap_or_else(|| PyDict::new(slf.py()));
        let run = UFUNC.import(slf.py(), "wengert.numpy._protocols", "ufunc")?;
        run.call1((slf, ufunc, method, inputs, kwargs))
    }

    /// NumPy's other functions: `np.concatenate([x, y])`.
    fn __array_function__<'py>(
        slf: &Bound<'py, Self>, func: Bound<'py, PyAny>, types: Bound<'py, PyAny>, args: Bound<'py, PyAny>,
        kwargs: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let run = FUNCTION.import(slf.py(), "wengert.numpy._protocols", "function")?;
        run.call1((slf, func, types, args, kwargs))
    }

    fn __len__(&self) -> PyResult<usize> {
        if self.read().t.rank() == 0 {
            return Err(PyTypeError::new_err("len() of a tensor without axes; use item() or numel()"));
        }
        Ok(self.read().t.shape().at(0))
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let shape = slf.read().t.shape();
        if shape.rank() == 0 {
            return Err(PyTypeError::new_err("a tensor without axes cannot be iterated over; use item()"));
        }
        // Rows are created on demand: a broadcast tensor may have billions. SAFETY: `slf` has `__getitem__`,
        // as `PySeqIter_New` wants; `slf.py()`: this thread is attached.
        unsafe { Bound::from_owned_ptr_or_err(slf.py(), pyo3::ffi::PySeqIter_New(slf.as_ptr())) }
    }

    fn __hash__(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr() as usize >> 4
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let t = self.value()?;
        Ok(py.detached(|| format::tensor(&t))?)
    }

    fn __format__<'py>(&self, py: Python<'py>, spec: &str) -> PyResult<Bound<'py, PyAny>> {
        let t = self.value()?;
        if !spec.is_empty() && t.numel() != 1 {
            return Err(type_error(format!(
                "format: '{spec}' formats tensors of one element, this one has the shape {}; use .tolist()",
                t.shape()
            )));
        }
        if spec.is_empty() || tracer(&t).is_some() {
            return Ok(format::tensor(&t)?.into_pyobject(py)?.into_any());
        }
        item(py, &t)?.call_method1("__format__", (spec,))
    }
}
