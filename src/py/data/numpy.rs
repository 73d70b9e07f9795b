//! NumPy arrays without a copy: in through `__array_interface__`, out through the buffer protocol.

use crate::array::buffer::Buffer;
use crate::array::dtype::Category;
use crate::cpu::pointwise::copy;
use crate::py::args::listed;
use crate::py::data::convert::unsupported;
use crate::py::data::dlpack;
use crate::py::data::dtype::numpy_dtype;
use crate::py::data::memory::Memory;
use crate::py::prelude::*;
use crate::watch::{absent, script};
use pyo3::exceptions::{PyBufferError, PyRuntimeError};
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyString, PyType};

/// Keeps a Python object alive for as long as a tensor uses its memory.
struct Keeper(#[allow(dead_code)] Py<PyAny>);

/// Returns a tensor over the memory of an array; a copy where layout or alignment do not allow sharing.
pub fn share(obj: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = obj.py();
    let Some(interface) = obj.getattr_opt(pyo3::intern!(py, "__array_interface__"))? else {
        return dlpack::import(obj);
    };
    // The interface of a NumPy scalar describes an array that is already freed; `asarray` copies the scalar.
    static NDARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if !obj.is_instance(NDARRAY.import(py, "numpy", "ndarray")?)? {
        return share(&py.import("numpy")?.call_method1("asarray", (obj,))?);
    }
    let interface = interface.cast_into::<PyDict>().map_err(|_| unsupported(obj))?;
    let part = |name: &str| interface.get_item(name)?.ok_or_else(|| unsupported(obj));
    let dtype = array_dtype(obj, &part("typestr")?)?;
    let data = interface.get_item(pyo3::intern!(py, "data"))?.filter(|d| d.is_instance_of::<PyTuple>());
    let Some(data) = data else {
        // The interface has a buffer object instead of an address; NumPy reads it.
        return share(&py.import("numpy")?.call_method1("array", (obj,))?);
    };
    let shape: Vec<usize> = listed(&part("shape")?)?;
    let shape = Shape::new(&shape)?;
    let (address, read_only): (usize, bool) = data.extract()?;
    let size = dtype.size() as isize;
    let strides: Vec<isize> = match interface.get_item(pyo3::intern!(py, "strides"))?.filter(|s| !s.is_none())
    {
        Some(strides) => listed(&strides)?,
        None => shape.strides()[..shape.rank()].iter().map(|s| s * size).collect(),
    };
    let aligned = address % dtype.align() == 0 && strides.iter().all(|s| s % size == 0);
    if !aligned || read_only {
        // Copies memory that is read-only, or unaligned, or whose strides are no multiple of an element.
        let kwargs = [("order", "C")].into_py_dict(py)?;
        return share(&py.import("numpy")?.call_method("array", (obj,), Some(&kwargs))?);
    }
    let strides: Vec<isize> = strides.iter().map(|s| s / size).collect();
    Ok(foreign(address, shape, &strides, dtype, Box::new(Keeper(obj.clone().unbind())))?.into())
}

/// Returns an array over memory that `owner` keeps alive; `address` is that of its first element.
pub fn foreign(
    address: usize, shape: Shape, strides: &[isize], dtype: DType,
    owner: Box<dyn std::any::Any + Send + Sync>,
) -> PyResult<Array> {
    let (strides, size) = (settled(&shape, strides), dtype.size());
    let (low, high) = extent(address, &shape, &strides, size).ok_or_else(|| {
        PyBufferError::new_err(format!(
            "the array of shape {shape} with strides {strides:?} has elements beyond the address space; its \
             description is wrong"
        ))
    })?;
    let start = (address as isize + low * size as isize) as *mut u8;
    let buffer = Buffer::foreign(start, (high - low + 1) as usize * size, Device::Cpu, owner);
    truth(Array::strided(buffer, shape, &strides, low.unsigned_abs(), dtype)?)
}

/// Replaces strides that are never used, which may have any value, by row-major ones: those of axes of length
/// 1, and all of them where there is no element.
fn settled(shape: &Shape, strides: &[isize]) -> Vec<isize> {
    let own = shape.strides();
    let used = |i: usize| shape.at(i) > 1 && shape.numel() > 0;
    strides.iter().enumerate().map(|(i, &s)| if used(i) { s } else { own[i] }).collect()
}

/// Returns the lowest and highest element offset of an array, relative to the element at `address`; `None` if
/// an element lies outside the address space.
fn extent(address: usize, shape: &Shape, strides: &[isize], size: usize) -> Option<(isize, isize)> {
    if shape.numel() == 0 {
        return Some((0, -1));
    }
    let (mut low, mut high) = (0isize, 0isize);
    for (d, &s) in shape.iter().zip(strides) {
        let reach = isize::try_from(d - 1).ok()?.checked_mul(s)?;
        let end = if reach < 0 { &mut low } else { &mut high };
        *end = end.checked_add(reach)?;
    }
    let bytes = |n: isize| n.checked_mul(size as isize);
    let inside = |a: Option<isize>| a.filter(|&a| a > 0);
    let first = isize::try_from(address).ok();
    inside(first?.checked_add(bytes(low)?))?;
    inside(first?.checked_add(bytes(high.checked_add(1)?)?))?;
    bytes(high.checked_sub(low)?.checked_add(1)?)?;
    Some((low, high))
}

/// Returns a bool array from elsewhere, copied if it holds bytes other than 0 and 1, invalid as `bool`.
pub fn truth(array: Array) -> PyResult<Array> {
    if array.dtype() != DType::Bool {
        return Ok(array);
    }
    let bytes =
        Array::strided(array.buffer().clone(), array.shape(), &array.strides(), array.offset(), DType::U8)?;
    let flat = copy::contiguous(&bytes)?;
    let is_valid = flat.slice::<u8>()?.iter().all(|&b| b <= 1);
    Ok(if is_valid { array } else { copy::cast(&flat, DType::Bool)? })
}

/// Returns the dtype's name in NumPy's array interface; `None` for bfloat16, which has none there.
fn kind_of(dtype: DType) -> Option<String> {
    let kind = match dtype.category() {
        Category::Bool => 'b',
        Category::Int if dtype.is_unsigned() => 'u',
        Category::Int => 'i',
        Category::Float => 'f',
        Category::Complex => 'c',
    };
    (dtype != DType::BF16).then(|| format!("{kind}{}", dtype.size()))
}

/// Parses the dtype in NumPy's array interface; the error advises a conversion.
fn array_dtype(array: &Bound<'_, PyAny>, description: &Bound<'_, PyAny>) -> PyResult<DType> {
    let description: &str = &description.cast::<PyString>()?.to_string();
    let native = if cfg!(target_endian = "little") { '<' } else { '>' };
    let (order, kind) = description.split_at_checked(1).unwrap_or(("", ""));
    if order.starts_with(['|', native])
        && let Some(dtype) = DType::ALL.into_iter().find(|&dtype| kind_of(dtype).as_deref() == Some(kind))
    {
        return Ok(dtype);
    }
    let name: String = array.getattr("dtype")?.getattr("name")?.extract()?;
    match DType::from_name(&name) {
        Some(DType::BF16) => Ok(DType::BF16),
        Some(_) => Err(type_error(format!(
            "arrays in foreign byte order are not accepted; convert with array.astype('{name}')"
        ))),
        None => Err(type_error(format!(
            "arrays of dtype {name} are not accepted; convert with array.astype, for example to float32"
        ))),
    }
}

/// Returns the array of a tensor that may be exported: on the CPU, without history.
pub fn exportable<'a>(t: &'a Tensor, what: &str) -> PyResult<&'a Array> {
    if t.edge().is_some() {
        // Lists of losses, as programs plot and average them.
        let of_number =
            if t.rank() == 0 { ", or item() for its number, as in [x.item() for x in losses]" } else { "" };
        return Err(PyRuntimeError::new_err(format!(
            "{what} of a tensor that requires a gradient would leave the tape; call detach() first, as in \
             x.detach().{what}(){of_number}"
        )));
    }
    let array = t.array(what)?;
    if array.device() != Device::Cpu {
        return Err(type_error(format!(
            "{what} of a tensor on {}; copy it to the host first, as in x.cpu().{what}()",
            array.device()
        )));
    }
    absent::check(what, array)?;
    script::refuse(|| format!("{what}(), which takes values out of the program; {}", script::INSTEAD));
    Ok(array)
}

/// Returns a NumPy array over the memory of a tensor.
pub fn to_numpy<'py>(py: Python<'py>, t: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let array = exportable(t, "numpy")?;
    let dtype = if array.dtype() == DType::BF16 { Some(numpy_dtype(py, DType::BF16)?) } else { None };
    let memory = Bound::new(py, Memory::new(array.clone()))?;
    let out = py.import("numpy")?.call_method1(pyo3::intern!(py, "asarray"), (memory,))?;
    match dtype {
        Some(dtype) => out.call_method1("view", (dtype,)),
        None => Ok(out),
    }
}

/// Returns a tensor over the memory of a NumPy array: writing to one writes to the other.
///
/// Any strides and the dtypes bool, integers of 8 to 64 bits with and without sign, float16, float32,
/// float64, complex64, complex128 (and bfloat16 of ml_dtypes) are taken without a copy; read-only arrays are
/// copied. Other dtypes raise TypeError.
#[pyfunction]
pub fn from_numpy(array: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    if !array.hasattr("__array_interface__")? {
        return Err(type_error(format!("from_numpy: an array expected, got {}", array.get_type().name()?)));
    }
    Ok(PyTensor::from(share(array)?))
}
