//! Python data to tensors and back: nested lists, NumPy arrays without a copy, bytes.
//!
//! An array comes in through `__array_interface__` and is kept alive by the tensor's buffer; it goes out through the
//! buffer protocol (`src/py/memory.rs`). Other array libraries come in by DLPack (`src/py/dlpack.rs`).

use crate::array::Array;
use crate::buffer::{Buffer, Device};
use crate::dtype::{DType, Element};
use crate::error::Error;
use crate::py::args::AsTensor;
use crate::py::dlpack;
use crate::py::dtype::numpy_dtype;
use crate::py::error::{type_error, value_error};
use crate::py::memory::Memory;
use crate::py::tensor::{PyTensor, require_grad, wrap};
use crate::shape::Shape;
use crate::tensor::Tensor;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

/// Whether an object describes an array: NumPy's interface, or DLPack.
pub fn is_array(obj: &Bound<'_, PyAny>) -> bool {
    let py = obj.py();
    obj.hasattr(pyo3::intern!(py, "__array_interface__"))
        .unwrap_or(false)
        || obj
            .hasattr(pyo3::intern!(py, "__dlpack__"))
            .unwrap_or(false)
}

/// Whether an object is a NumPy scalar such as `numpy.float32(1)`, which behaves as a number.
pub fn is_numpy_scalar(obj: &Bound<'_, PyAny>) -> bool {
    static GENERIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = GENERIC.import(obj.py(), "numpy", "generic");
    class.is_ok_and(|class| obj.is_instance(class).unwrap_or(false))
}

/// Keeps a Python object alive for as long as a tensor uses its memory.
struct Keeper(#[allow(dead_code)] Py<PyAny>);

/// A tensor over the memory of an array; a copy where layout or alignment do not allow that.
pub fn share(obj: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = obj.py();
    let Some(interface) = obj.getattr_opt(pyo3::intern!(py, "__array_interface__"))? else {
        return dlpack::import(obj);
    };
    let interface = interface.cast_into::<PyDict>().map_err(|_| unsupported(obj))?;
    let part = |name: &str| interface.get_item(name)?.ok_or_else(|| unsupported(obj));
    let dtype = array_dtype(obj, &part("typestr")?)?;
    let data = interface.get_item(pyo3::intern!(py, "data"))?.filter(|d| d.is_instance_of::<PyTuple>());
    let Some(data) = data else {
        // An interface that hands out a buffer object instead of an address: NumPy reads it.
        return share(&py.import("numpy")?.call_method1("array", (obj,))?);
    };
    let shape: Vec<usize> = part("shape")?.extract()?;
    let shape = Shape::new(&shape)?;
    let (address, read_only): (usize, bool) = data.extract()?;
    let size = dtype.size() as isize;
    let strides: Vec<isize> = match interface.get_item(pyo3::intern!(py, "strides"))?.filter(|s| !s.is_none()) {
        Some(strides) => strides.extract()?,
        None => shape.strides()[..shape.rank()].iter().map(|s| s * size).collect(),
    };
    let aligned = address % dtype.size() == 0 && strides.iter().all(|s| s % size == 0);
    if !aligned || read_only {
        // Memory that must not be written, or that no slice of numbers can describe.
        let kwargs = PyDict::new(py);
        kwargs.set_item("order", "C")?;
        return share(&py.import("numpy")?.call_method("array", (obj,), Some(&kwargs))?);
    }
    let strides: Vec<isize> = strides.iter().map(|s| s / size).collect();
    Ok(foreign(address, shape, &strides, dtype, Box::new(Keeper(obj.clone().unbind())))?.into())
}

/// An array over memory that `owner` keeps alive; `address` is that of its first element.
pub fn foreign(
    address: usize,
    shape: Shape,
    strides: &[isize],
    dtype: DType,
    owner: Box<dyn std::any::Any + Send + Sync>,
) -> PyResult<Array> {
    let extent = |positive: bool| -> isize {
        shape
            .iter()
            .zip(strides)
            .filter(|(d, s)| *d > 0 && (**s > 0) == positive)
            .map(|(d, s)| (d as isize - 1) * s)
            .sum()
    };
    let size = dtype.size();
    let (low, high) = if shape.numel() == 0 {
        (0, -1)
    } else {
        (extent(false), extent(true))
    };
    let start = (address as isize + low * size as isize) as *mut u8;
    let buffer = Buffer::foreign(start, (high - low + 1) as usize * size, Device::Cpu, owner);
    Ok(Array::strided(
        buffer,
        shape,
        strides,
        low.unsigned_abs(),
        dtype,
    )?)
}

/// The dtype of an array from its description in NumPy's array interface, or an error with advice.
fn array_dtype(array: &Bound<'_, PyAny>, description: &Bound<'_, PyAny>) -> PyResult<DType> {
    let description: &str = &description.cast::<PyString>()?.to_string();
    let native = if cfg!(target_endian = "little") { '<' } else { '>' };
    let (order, kind) = description.split_at_checked(1).unwrap_or(("", ""));
    if order.starts_with(['|', native]) {
        match kind {
            "b1" => return Ok(DType::Bool),
            "u1" => return Ok(DType::U8),
            "i4" => return Ok(DType::I32),
            "i8" => return Ok(DType::I64),
            "f2" => return Ok(DType::F16),
            "f4" => return Ok(DType::F32),
            "f8" => return Ok(DType::F64),
            _ => {}
        }
    }
    let name: String = array.getattr("dtype")?.getattr("name")?.extract()?;
    let advice = match name.as_str() {
        "bfloat16" => return Ok(DType::BF16),
        _ if DType::from_name(&name).is_some() => {
            return Err(type_error(format!(
                "arrays in foreign byte order are not accepted; convert with array.astype('{name}')"
            )));
        }
        "int8" | "int16" | "uint16" => "int32",
        "uint32" | "uint64" => "int64",
        "complex64" | "complex128" => "float32, for real and imaginary part",
        _ => "float32",
    };
    Err(type_error(format!(
        "arrays of dtype {name} are not accepted; convert with array.astype, for example to {advice}"
    )))
}

/// Whatever becomes a tensor, sharing memory where it can: tensors, arrays, numbers, nested lists.
pub fn as_tensor(obj: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    if let Ok(t) = obj.cast::<PyTensor>() {
        return Ok(t.borrow().t.clone());
    }
    if obj.is_exact_instance_of::<PyFloat>() {
        return Ok(Tensor::scalar(obj.extract()?, DType::F32, Device::Cpu)?);
    }
    if obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
        return from_nested(obj);
    }
    // NumPy's float64 scalar is a Python float, but says what it is.
    if let Some(number) = number(obj)?
        && !(number.2 == Class::Float && is_array(obj))
    {
        return Ok(scalar(number)?);
    }
    if is_array(obj) {
        return share(obj);
    }
    if obj.hasattr("__array__")? {
        return share(&obj.py().import("numpy")?.call_method1("asarray", (obj,))?);
    }
    if obj.is_instance_of::<PyString>() || obj.is_instance_of::<PyDict>() {
        return Err(unsupported(obj));
    }
    if obj.hasattr("__len__")? && obj.hasattr("__getitem__")? {
        return from_nested(
            &PyList::new(obj.py(), obj.try_iter()?.collect::<PyResult<Vec<_>>>()?)?.into_any(),
        );
    }
    Err(unsupported(obj))
}

#[cold]
fn unsupported(obj: &Bound<'_, PyAny>) -> PyErr {
    let name = obj
        .get_type()
        .name()
        .map_or_else(|_| String::new(), |n| n.to_string());
    type_error(format!(
        "{name} cannot become a tensor; expected a number, nested lists of numbers, or an array"
    ))
}

/// What a number is, in order of promotion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Class {
    Bool,
    Int,
    Float,
}

/// A Python number: as an integer, as a float, and what it is.
fn number(obj: &Bound<'_, PyAny>) -> PyResult<Option<(i64, f64, Class)>> {
    if let Ok(v) = obj.cast::<PyFloat>() {
        return Ok(Some((0, v.value(), Class::Float)));
    }
    if let Ok(v) = obj.cast::<PyBool>() {
        return Ok(Some((
            i64::from(v.is_true()),
            f64::from(v.is_true()),
            Class::Bool,
        )));
    }
    if obj.is_instance_of::<PyInt>() {
        let v: i64 = obj
            .extract()
            .map_err(|_| value_error(format!("the integer {obj} does not fit into int64")))?;
        return Ok(Some((v, v as f64, Class::Int)));
    }
    Ok(None)
}

fn scalar((int, float, class): (i64, f64, Class)) -> crate::error::Result<Tensor> {
    match class {
        Class::Float => Tensor::scalar(float, DType::F32, Device::Cpu),
        Class::Int => Tensor::from_slice(&[int], &[]),
        Class::Bool => Tensor::from_slice(&[int != 0], &[]),
    }
}

/// Numbers collected from nested lists.
struct Nested {
    shape: Vec<usize>,
    ints: Vec<i64>,
    floats: Vec<f64>,
    class: Class,
    /// Whether an element is a tensor or array.
    mixed: bool,
}

impl Nested {
    fn collect(&mut self, obj: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        if obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
            let length = obj.len()?;
            if depth == self.shape.len() {
                if !self.floats.is_empty() || depth >= crate::shape::MAX_RANK {
                    return Err(self.ragged(length, depth));
                }
                self.shape.push(length);
            } else if self.shape[depth] != length {
                return Err(self.ragged(length, depth));
            }
            for i in 0..length {
                self.collect(&obj.get_item(i)?, depth + 1)?;
                if self.mixed {
                    return Ok(());
                }
            }
            return Ok(());
        }
        let Some((int, float, class)) = number(obj)? else {
            self.mixed = true;
            return Ok(());
        };
        if depth != self.shape.len() {
            return Err(value_error(format!(
                "nested lists of unequal depth: a number where a list of {} elements was expected",
                self.shape[depth]
            )));
        }
        self.ints.push(int);
        self.floats.push(float);
        self.class = self.class.max(class);
        Ok(())
    }

    #[cold]
    fn ragged(&self, length: usize, depth: usize) -> PyErr {
        value_error(match self.shape.get(depth) {
            Some(expected) => format!(
                "nested lists of unequal length: {length} elements in axis {depth}, expected {expected}"
            ),
            None => "nested lists of unequal depth".to_string(),
        })
    }
}

/// A tensor of nested lists. Elements may themselves be tensors or arrays of one shape; those are stacked, with history.
fn from_nested(obj: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let mut all = Nested {
        shape: Vec::new(),
        ints: Vec::new(),
        floats: Vec::new(),
        class: Class::Bool,
        mixed: false,
    };
    all.collect(obj, 0)?;
    if all.mixed {
        let parts = obj
            .try_iter()?
            .map(|x| as_tensor(&x?))
            .collect::<PyResult<Vec<_>>>()?;
        return Ok(crate::ops::view::stack(&parts, 0)?);
    }
    let class = if all.floats.is_empty() {
        Class::Float
    } else {
        all.class
    };
    Ok(match class {
        Class::Float => {
            let values: Vec<f32> = all
                .floats
                .iter()
                .zip(&all.ints)
                .map(|(f, _)| *f as f32)
                .collect();
            Tensor::from_slice(&values, &all.shape)?
        }
        Class::Int => Tensor::from_slice(&all.ints, &all.shape)?,
        Class::Bool => {
            let values: Vec<bool> = all.ints.iter().map(|&v| v != 0).collect();
            Tensor::from_slice(&values, &all.shape)?
        }
    })
}

/// Numbers of a nested list in float64, for `tensor(list, dtype=float64)`, which must not pass through float32.
fn from_nested_as(obj: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Option<Tensor>> {
    let is_list = obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>();
    if dtype != DType::F64 || !(is_list || obj.is_instance_of::<PyFloat>()) {
        return Ok(None);
    }
    let mut all = Nested {
        shape: Vec::new(),
        ints: Vec::new(),
        floats: Vec::new(),
        class: Class::Bool,
        mixed: false,
    };
    all.collect(obj, 0)?;
    Ok(if all.mixed {
        None
    } else {
        Some(Tensor::from_slice(&all.floats, &all.shape)?)
    })
}

/// `wengert.tensor` and `wengert.as_tensor`, which differ in whether they always copy.
pub fn build(
    obj: &Bound<'_, PyAny>,
    dtype: Option<DType>,
    device: Option<Device>,
    copy: bool,
) -> PyResult<Tensor> {
    let direct = match dtype {
        Some(dtype) => from_nested_as(obj, dtype)?,
        None => None,
    };
    let was_tensor = obj.is_instance_of::<PyTensor>();
    let t = match direct {
        Some(t) => {
            return Ok(match device {
                Some(device) => t.to_device(device)?,
                None => t,
            });
        }
        None => as_tensor(obj)?,
    };
    let t = if copy && was_tensor { t.detach() } else { t };
    let (dtype, device) = (dtype.unwrap_or(t.dtype()), device.unwrap_or(t.device()));
    let shared = was_tensor || is_array(obj);
    if copy && shared && dtype == t.dtype() && device == t.device() {
        return Ok(t.copied()?);
    }
    Ok(if device == Device::Cpu {
        t.to_device(device)?.cast(dtype)?
    } else {
        t.cast(dtype)?.to_device(device)?
    })
}

fn list_of<'py, T: Element, V>(
    py: Python<'py>,
    a: &Array,
    axis: usize,
    at: usize,
    value: &dyn Fn(T) -> V,
) -> PyResult<Bound<'py, PyAny>>
where
    V: IntoPyObject<'py>,
{
    let data = a.slice::<T>()?;
    if axis == a.rank() {
        return value(data[at]).into_bound_py_any(py);
    }
    let step: usize = (axis + 1..a.rank()).map(|i| a.dim(i)).product();
    let items = (0..a.dim(axis))
        .map(|i| list_of(py, a, axis + 1, at + i * step, value))
        .collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, items)?.into_any())
}

/// Nested lists of Python numbers.
pub fn to_list<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    let host = crate::cpu::copy::contiguous(&py.detach(|| array.to_device(Device::Cpu))?)?;
    match host.dtype() {
        DType::Bool => list_of::<bool, bool>(py, &host, 0, 0, &|v| v),
        DType::U8 => list_of::<u8, u8>(py, &host, 0, 0, &|v| v),
        DType::I32 => list_of::<i32, i32>(py, &host, 0, 0, &|v| v),
        DType::I64 => list_of::<i64, i64>(py, &host, 0, 0, &|v| v),
        DType::F16 => list_of::<half::f16, f64>(py, &host, 0, 0, &|v| v.to_f64()),
        DType::BF16 => list_of::<half::bf16, f64>(py, &host, 0, 0, &|v| v.to_f64()),
        DType::F32 => list_of::<f32, f64>(py, &host, 0, 0, &f64::from),
        DType::F64 => list_of::<f64, f64>(py, &host, 0, 0, &|v| v),
    }
}

/// The array of a tensor that may leave: on the CPU, without history.
pub fn exportable<'a>(t: &'a Tensor, what: &str) -> PyResult<&'a Array> {
    if t.edge().is_some() {
        return Err(PyRuntimeError::new_err(format!(
            "{what} of a tensor that requires a gradient would leave the tape; call detach() first, as in \
             x.detach().{what}()"
        )));
    }
    let array = t.array(what)?;
    if array.device() != Device::Cpu {
        return Err(type_error(format!(
            "{what} of a tensor on {}; copy it to the host first, as in x.cpu().{what}()",
            array.device()
        )));
    }
    Ok(array)
}

/// A NumPy array over the memory of a tensor.
pub fn to_numpy<'py>(py: Python<'py>, t: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let array = exportable(t, "numpy")?;
    let dtype = if array.dtype() == DType::BF16 {
        Some(numpy_dtype(py, DType::BF16)?)
    } else {
        None
    };
    let memory = Bound::new(py, Memory::new(array.clone()))?;
    let out = py
        .import("numpy")?
        .call_method1(pyo3::intern!(py, "asarray"), (memory,))?;
    match dtype {
        Some(dtype) => out.call_method1("view", (dtype,)),
        None => Ok(out),
    }
}

/// What pickling stores: bytes, shape, dtype.
pub fn state<'py>(py: Python<'py>, t: &Tensor) -> PyResult<Bound<'py, PyTuple>> {
    let host = t.array("pickling")?.to_device(Device::Cpu)?;
    let host = crate::cpu::copy::contiguous(&host)?;
    let bytes = crate::dispatch!(host.dtype(), T => bytes_of(host.slice::<T>()?));
    let shape = PyTuple::new(py, host.shape().iter())?;
    let parts = [
        PyBytes::new(py, bytes).into_any(),
        shape.into_any(),
        PyString::new(py, host.dtype().name()).into_any(),
    ];
    PyTuple::new(py, parts)
}

fn bytes_of<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: elements are plain numbers without padding.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), std::mem::size_of_val(values)) }
}

/// A tensor from what `state` stored.
#[pyfunction]
pub fn _rebuild<'py>(
    class: &Bound<'py, PyType>,
    state: (Vec<u8>, Vec<usize>, String),
    requires_grad: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (bytes, shape, name) = state;
    let dtype =
        DType::from_name(&name).ok_or_else(|| value_error(format!("unknown dtype '{name}'")))?;
    let shape = Shape::new(&shape)?;
    if bytes.len() != shape.numel() * dtype.size() {
        return Err(Error::value(format!(
            "{} bytes do not make a {name} tensor of shape {shape}",
            bytes.len()
        ))
        .into());
    }
    let array = Array::empty(shape, dtype, Device::Cpu)?;
    // SAFETY: the buffer is fresh and holds at least this many bytes.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), array.buffer().ptr(), bytes.len()) };
    let t = Tensor::Array(array);
    let t = if requires_grad { require_grad(&t)? } else { t };
    let py = class.py();
    let plain = wrap(py, t)?.into_bound(py).into_any();
    if class.is(py.get_type::<PyTensor>()) {
        Ok(plain)
    } else {
        class.call1((plain,))
    }
}

/// A tensor over the memory of a NumPy array: writing to one writes to the other.
///
/// Any strides and the dtypes bool, uint8, int32, int64, float16, float32, float64 (and bfloat16 of ml_dtypes) are
/// taken without a copy; read-only arrays are copied. Other dtypes raise TypeError.
#[pyfunction]
pub fn from_numpy(array: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    if !array.hasattr("__array_interface__")? {
        return Err(type_error(format!(
            "from_numpy: an array expected, got {}",
            array.get_type().name()?
        )));
    }
    Ok(PyTensor::from(share(array)?))
}

/// A tensor as it is, for arguments of Python functions: arrays are shared, lists and numbers converted.
#[pyfunction]
pub fn _as_tensor(obj: AsTensor) -> PyTensor {
    PyTensor::from(obj.0)
}
