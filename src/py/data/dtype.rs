//! `wengert.float32` and the other dtypes, and `wengert.device`: immutable objects, equal to their names.

use crate::array::defaults;
use crate::py::data::convert;
use crate::py::prelude::*;
use crate::py::tensor::object;
use pyo3::exceptions::{PyOverflowError, PyRuntimeError};
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyString, PyType};

/// The type of a tensor's elements; one object per type, also found as `wengert.float32` and so on.
///
/// It equals its name, NumPy's dtype of that name, and NumPy's scalar type.
#[pyclass(name = "dtype", module = "wengert", frozen)]
pub struct PyDType {
    pub dtype: DType,
}

static SINGLETONS: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();

fn singletons(py: Python<'_>) -> PyResult<&'static Vec<Py<PyDType>>> {
    SINGLETONS
        .get_or_try_init(py, || DType::ALL.iter().map(|&dtype| Py::new(py, PyDType { dtype })).collect())
}

/// Returns the singleton object of a dtype.
pub fn dtype_object(py: Python<'_>, dtype: DType) -> PyResult<Py<PyDType>> {
    let all = singletons(py)?;
    let i = DType::ALL.iter().position(|&d| d == dtype).unwrap_or(0);
    Ok(all[i].clone_ref(py))
}

/// Returns the dtype that one of Python's own number types means as an argument.
fn of_python(class: &Bound<'_, PyAny>) -> Option<DType> {
    let py = class.py();
    let types = [
        (py.get_type::<PyComplex>(), DType::C128),
        (py.get_type::<PyFloat>(), DType::F64),
        (py.get_type::<PyInt>(), DType::I64),
        (py.get_type::<PyBool>(), DType::Bool),
    ];
    types.into_iter().find(|(own, _)| class.is(own)).map(|(_, dtype)| dtype)
}

/// Parses every spelling of a dtype; `None` for anything else.
fn parse(obj: &Bound<'_, PyAny>) -> Option<DType> {
    if let Ok(d) = obj.cast::<PyDType>() {
        return Some(d.get().dtype);
    }
    if let Ok(class) = obj.cast::<PyType>() {
        let named = || DType::from_name(class.name().ok()?.to_str().ok()?.trim_end_matches('_'));
        return of_python(class).or_else(named);
    }
    if let Ok(name) = obj.cast::<PyString>() {
        return DType::from_name(name.to_str().ok()?.trim_start_matches("wengert."));
    }
    // NumPy's dtype objects.
    let name = obj.getattr("name").ok()?;
    DType::from_name(name.cast::<PyString>().ok()?.to_str().ok()?)
}

/// Parses the dtype given as an object, a string, a NumPy dtype, or `float`, `int`, `bool`.
pub fn dtype_of(obj: &Bound<'_, PyAny>) -> PyResult<DType> {
    parse(obj).ok_or_else(|| {
        let shown = obj.repr().map_or_else(|_| "this object".into(), |r| r.to_string());
        type_error(format!("{shown} is not a dtype of wengert; expected one of {}", DType::names()))
    })
}

/// [`dtype_of`] where the argument may be missing.
pub fn optional_dtype(obj: Option<&Bound<'_, PyAny>>) -> PyResult<Option<DType>> {
    obj.map(dtype_of).transpose()
}

readings! { PyDType, |object| object.dtype;
    /// The name: `float32`.
    #[getter]
    name -> &'static str = |d| d.name();
    /// Bytes per element.
    #[getter]
    itemsize -> usize = |d| d.size();
    /// Whether this is a complex type.
    #[getter]
    is_complex -> bool = |d| d.is_complex();
    /// Whether numbers of this type have derivatives: floating point and complex ones.
    #[getter]
    is_differentiable -> bool = |d| d.is_differentiable();
    /// Whether this is a type of real floating point numbers.
    #[getter]
    is_floating_point -> bool = |d| d.is_float();
    __repr__ -> String = |d| format!("wengert.{d}");
    __reduce__ -> &'static str = |d| d.name();
}

#[pymethods]
impl PyDType {
    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyString::new(py, self.dtype.name()).hash()
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        // As an argument `float` means float64, but it does not equal float64.
        of_python(other).is_none() && parse(other) == Some(self.dtype)
    }
    /// Returns a number, list, array or tensor as a tensor of this type with memory of its own, as NumPy's
    /// types do: `float32(3)`. Gradients flow through.
    #[pyo3(signature = (value, /))]
    fn __call__<'py>(slf: &Bound<'py, Self>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if value.is_instance_of::<PyTensor>() {
            return value.call_method1("astype", (slf,));
        }
        object(value.py(), convert::build(value, Some(slf.get().dtype), None, true)?)
    }
    /// NumPy's dtype of the same name; bfloat16 needs the package ml_dtypes.
    #[getter]
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numpy_dtype(py, self.dtype)
    }
}

/// Returns NumPy's dtype of the same name.
pub fn numpy_dtype(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    let make = py.import("numpy")?.getattr("dtype")?;
    if dtype != DType::BF16 {
        return make.call1((dtype.name(),));
    }
    let package = py.import("ml_dtypes").map_err(|_| {
        type_error("NumPy has no bfloat16; convert with .float() first, or install the package ml_dtypes")
    })?;
    make.call1((package.getattr("bfloat16")?,))
}

/// Where a tensor lies: `wengert.device("cpu")`, `wengert.device("gpu:0")`. It equals its name. As a context
/// it is where new tensors of this thread lie, as `set_default_device` makes it.
#[pyclass(name = "device", module = "wengert", frozen)]
pub struct PyDevice {
    pub device: Device,
}

/// Parses the device given as an object or a string.
pub fn device_of(obj: &Bound<'_, PyAny>) -> PyResult<Device> {
    if let Ok(d) = obj.cast::<PyDevice>() {
        return Ok(d.get().device);
    }
    if let Ok(name) = obj.cast::<PyString>() {
        return device_from_name(name.to_str()?);
    }
    Err(type_error(format!(
        "a device is named by a string such as 'cpu' or 'gpu:0', got {}",
        obj.get_type().name()?
    )))
}

/// Extracts the index of a GPU, an argument of the function `name`.
pub fn gpu_index(name: &str, index: &Bound<'_, PyAny>) -> PyResult<u8> {
    let text = || {
        let shown = index.repr().map_or_else(|_| "this object".into(), |shown| shown.to_string());
        format!("{name}: the index of a GPU is an integer from 0 to 255, got {shown}")
    };
    match index.extract::<u8>() {
        _ if index.is_instance_of::<PyBool>() => Err(type_error(text())),
        Err(error) if error.is_instance_of::<PyOverflowError>(index.py()) => Err(value_error(text())),
        found => found.map_err(|_| type_error(text())),
    }
}

/// [`device_of`] where the argument may be missing.
pub fn optional_device(obj: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Device>> {
    obj.map(device_of).transpose()
}

/// The device of a new tensor: the given one, or the default.
pub fn device_or_default(obj: Option<&Bound<'_, PyAny>>) -> PyResult<Device> {
    obj.map_or_else(|| Ok(defaults::device()), device_of)
}

/// Whether the environment says that programs call GPUs `cuda`: `WENGERT_CUDA=gpu`.
pub fn is_cuda_gpu() -> bool {
    std::env::var_os("WENGERT_CUDA").is_some_and(|value| value == "gpu")
}

/// [`is_cuda_gpu`]; raises where the variable has another value, which would change nothing.
fn checked_cuda() -> PyResult<bool> {
    match std::env::var_os("WENGERT_CUDA") {
        Some(value) if !value.is_empty() && value != "gpu" => Err(value_error(format!(
            "WENGERT_CUDA={} in the environment is not understood; set WENGERT_CUDA=gpu to call GPUs 'cuda', \
             or unset it",
            value.display()
        ))),
        _ => Ok(is_cuda_gpu()),
    }
}

/// Parses the name of a device; the error lists the valid names.
pub fn device_from_name(name: &str) -> PyResult<Device> {
    let unknown =
        || value_error(format!("'{name}' is not a device; expected 'cpu', 'gpu' or 'gpu:0', 'gpu:1', ..."));
    let (kind, index) = name.split_once(':').map_or((name, None), |(kind, index)| (kind, Some(index)));
    match (kind, index) {
        ("cpu", None | Some("0")) => Ok(Device::Cpu),
        ("cuda", _) if !checked_cuda()? => Err(value_error(format!(
            "'{name}' is not a device: GPUs are called 'gpu' whoever made them; write device='gpu', or set \
             WENGERT_CUDA=gpu in the environment for programs that say cuda"
        ))),
        ("gpu" | "cuda", None) => Ok(Device::Gpu(0)),
        ("gpu" | "cuda", Some(index)) => Ok(Device::Gpu(index.parse().map_err(|_| unknown())?)),
        _ => Err(unknown()),
    }
}

/// The name of a device as a program calls it.
pub fn name_of(device: Device) -> String {
    match device {
        Device::Gpu(index) if is_cuda_gpu() => format!("cuda:{index}"),
        device => device.to_string(),
    }
}

/// What [`checked_cuda`] says.
#[pyfunction]
fn _is_cuda_gpu() -> PyResult<bool> {
    checked_cuda()
}

/// Returns the dtype of new floats: float32, or what `set_default_dtype` chose.
///
/// Example:
///     >>> wg.get_default_dtype()
///     wengert.float32
#[pyfunction]
fn get_default_dtype(py: Python<'_>) -> PyResult<Py<PyDType>> {
    dtype_object(py, defaults::float())
}

/// Makes `d` the dtype of new floats, for all threads: of Python's floats, of tensors made without `dtype=`,
/// and of results of integers that are none, such as `sqrt`. Complex numbers get parts of it (of float32
/// where it is a half). Tensors that exist keep theirs, and a number beside one adapts to it as before.
///
/// Args:
///     d: float32, float64, float16 or bfloat16.
///
/// Raises:
///     TypeError: for any other dtype.
///
/// Example:
///     >>> wg.set_default_dtype(wg.float64)
///     >>> wg.tensor(0.1).dtype
///     wengert.float64
///     >>> wg.set_default_dtype(wg.float32)
#[pyfunction]
fn set_default_dtype(d: &Bound<'_, PyAny>) -> PyResult<()> {
    Ok(defaults::set_float(dtype_of(d)?)?)
}

/// Returns the device on which this thread makes tensors: the CPU, or what `set_default_device` or a
/// `with wengert.device(...)` chose.
///
/// Example:
///     >>> wg.get_default_device()
///     device('cpu')
#[pyfunction]
fn get_default_device() -> PyDevice {
    PyDevice { device: defaults::device() }
}

/// Makes `device` the one on which this thread makes tensors where no `device=` is given, and to which arrays
/// and lists go that become one. Tensors made of another, like another, or by operations, lie where that
/// does.
///
/// `with wengert.device("gpu"):` does the same for a block. Other threads, such as those of a `DataLoader`,
/// go on with the CPU.
///
/// Args:
///     device: a device or its name; None is the CPU again.
///
/// Raises:
///     ValueError: for what is not the name of a device.
///
/// Example:
///     >>> wg.set_default_device("cpu")
///     >>> wg.zeros(2).device
///     device('cpu')
#[pyfunction]
fn set_default_device(device: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    defaults::choose_device(optional_device(device)?);
    Ok(())
}

#[pymethods]
impl PyDevice {
    /// A device from its name, and its index if that is not part of the name.
    #[new]
    #[pyo3(signature = (name, index=None))]
    fn new(name: &Bound<'_, PyAny>, index: Option<&Bound<'_, PyAny>>) -> PyResult<PyDevice> {
        let mut device = device_of(name)?;
        let index = index.map(|i| gpu_index("device", i)).transpose()?;
        if let (Device::Gpu(own), Some(given)) = (&mut device, index) {
            *own = given;
        }
        Ok(PyDevice { device })
    }
    /// Makes this the default device of the thread until the end of the block.
    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        defaults::enter_device(slf.device);
        slf
    }
    /// Ends the block.
    #[pyo3(signature = (*_exc))]
    fn __exit__(&self, _exc: &Bound<'_, PyTuple>) -> PyResult<()> {
        if defaults::leave_device() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err("device: a block must end on the thread that began it"))
    }
    fn __reduce__(&self, py: Python<'_>) -> (Py<PyAny>, (String,)) {
        (py.get_type::<PyDevice>().into_any().unbind(), (self.device.to_string(),))
    }
    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyString::new(py, &self.device.to_string()).hash()
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        device_of(other).is_ok_and(|device| device == self.device)
    }
}

readings! { PyDevice, |object| object.device;
    /// `cpu` or `gpu`, which `WENGERT_CUDA=gpu` calls `cuda`.
    #[getter(r#type)]
    kind -> &'static str = |device| match device {
        Device::Cpu => "cpu",
        _ if is_cuda_gpu() => "cuda",
        _ => "gpu",
    };
    /// The number of the GPU; `None` for the CPU.
    #[getter]
    index -> Option<u8> = |device| match device {
        Device::Cpu => None,
        Device::Gpu(i) => Some(*i),
    };
    __repr__ -> String = |device| format!("device('{}')", name_of(*device));
    __str__ -> String = |device| name_of(*device);
}

/// Registers the classes and one object per dtype.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyDType>()?;
    m.add_class::<PyDevice>()?;
    m.add_function(wrap_pyfunction!(_is_cuda_gpu, m)?)?;
    m.add_function(wrap_pyfunction!(get_default_dtype, m)?)?;
    m.add_function(wrap_pyfunction!(set_default_dtype, m)?)?;
    m.add_function(wrap_pyfunction!(get_default_device, m)?)?;
    m.add_function(wrap_pyfunction!(set_default_device, m)?)?;
    for dtype in DType::ALL {
        m.add(dtype.name(), dtype_object(m.py(), dtype)?)?;
    }
    Ok(())
}
