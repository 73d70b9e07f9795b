//! Methods that copy, detach, or change dtype and device.

use crate::py::autograd::debug;
use crate::py::data::dtype::{
    PyDevice, device_from_name, device_of, dtype_of, gpu_index, optional_device, optional_dtype,
};
use crate::py::data::layout::Format;
use crate::py::data::reading::item;
use crate::py::prelude::*;
use crate::py::tensor::attach::{detached, is_contiguous};
use crate::py::tensor::constructor::dtype_of_class;
use crate::py::tensor::wrap;
use pyo3::types::{PyComplex, PyInt, PyString};
use smallvec::SmallVec;

#[pymethods]
impl PyTensor {
    /// Returns a copy in row-major order, or this tensor if it lies so already. `memory_format` changes
    /// nothing.
    #[pyo3(signature = (memory_format=None))]
    fn contiguous(slf: &Bound<'_, Self>, memory_format: Option<Format>) -> PyResult<Py<PyTensor>> {
        let _ = memory_format;
        let t = value(slf)?;
        if is_contiguous(slf, &t) {
            return Ok(slf.clone().unbind());
        }
        wrap(slf.py(), slf.py().detached(|| t.copied())?)
    }

    /// Returns a copy, through which gradients flow. `memory_format` changes nothing.
    #[pyo3(signature = (*, memory_format=None))]
    fn clone(&self, py: Python<'_>, memory_format: Option<Format>) -> PyResult<PyTensor> {
        let _ = memory_format;
        self.apply(py, Tensor::copied)
    }

    /// Returns a tensor that shares the memory and has no history.
    fn detach(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        let t = slf.get().value()?.into_owned();
        debug::left("detach()", &t);
        detached(slf, &t, t.detach())
    }

    /// Returns this tensor on another device, itself if it is there; the array API standard's name of
    /// `to(device)`. Raises ValueError for a stream, which no device has.
    #[pyo3(signature = (device, /, *, stream=None))]
    fn to_device<'py>(
        slf: &Bound<'py, Self>, device: &Bound<'py, PyAny>, stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match stream {
            Some(stream) => Err(value_error(format!(
                "to_device: devices have no streams to choose from, got stream={stream}"
            ))),
            None => slf.call_method1("to", (device,)),
        }
    }

    /// Returns the one element as a complex number.
    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.get_type::<PyComplex>().call1((item(py, &*self.value()?)?,))
    }

    /// Returns this tensor with another dtype, on another device, or both, as named or as `other` has them;
    /// itself if nothing changes. Gradients flow through. `non_blocking` and `memory_format` change nothing.
    #[pyo3(
        signature = (*args, dtype=None, device=None, copy=false, non_blocking=false, memory_format=None)
    )]
    fn to<'py>(
        slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>, dtype: Option<&Bound<'py, PyAny>>,
        device: Option<&Bound<'py, PyAny>>, copy: bool, non_blocking: bool, memory_format: Option<Format>,
    ) -> PyResult<Py<PyTensor>> {
        let _ = (non_blocking, memory_format);
        let (mut dtype, mut device) = (optional_dtype(dtype)?, optional_device(device)?);
        // By position, `non_blocking` and `copy` follow.
        let mut flags = SmallVec::<[bool; 2]>::new();
        for arg in args {
            if arg.is_none() {
                continue;
            }
            if let (Ok(flag), true) = (arg.cast::<PyBool>(), flags.len() < 2) {
                flags.push(flag.is_true());
                continue;
            }
            if let Ok(other) = arg.cast::<PyTensor>() {
                let other = other.read();
                (dtype, device) = (Some(other.t.dtype()), Some(other.t.device()));
            } else if arg.is_instance_of::<PyDevice>() || is_device_name(&arg) {
                device = Some(device_of(&arg)?);
            } else {
                dtype = Some(dtype_of(&arg)?);
            }
        }
        convert_to(slf, dtype, device, copy || flags.get(1) == Some(&true))
    }

    /// Returns this tensor converted to `dtype`, NumPy's name of `to(dtype)`; a copy, but with `copy=False`
    /// itself where nothing changes.
    #[pyo3(signature = (dtype, *, copy=true))]
    fn astype(slf: &Bound<'_, Self>, dtype: &Bound<'_, PyAny>, copy: bool) -> PyResult<Py<PyTensor>> {
        convert_to(slf, Some(dtype_of(dtype)?), None, copy)
    }

    /// Returns a copy, through which gradients flow: NumPy's name of `clone`.
    fn copy(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.apply(py, Tensor::copied)
    }

    /// Returns this tensor, whose numbers are there when a program reads them: in JAX, where to wait.
    fn block_until_ready(slf: &Bound<'_, Self>) -> Py<PyTensor> {
        slf.clone().unbind()
    }

    /// Returns this tensor on the CPU.
    fn cpu(slf: &Bound<'_, Self>) -> PyResult<Py<PyTensor>> {
        convert_to(slf, None, Some(Device::Cpu), false)
    }

    /// Returns this tensor on a GPU.
    #[pyo3(signature = (index=None))]
    fn gpu(slf: &Bound<'_, Self>, index: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyTensor>> {
        let index = index.map_or(Ok(0), |i| gpu_index("gpu", i))?;
        convert_to(slf, None, Some(Device::Gpu(index)), false)
    }

    /// Returns this tensor on the GPU of number `device`, where `WENGERT_CUDA=gpu` calls GPUs so. Raises
    /// ValueError elsewhere.
    #[pyo3(signature = (device=None, non_blocking=false, memory_format=None))]
    fn cuda(
        slf: &Bound<'_, Self>, device: Option<&Bound<'_, PyAny>>, non_blocking: bool,
        memory_format: Option<Format>,
    ) -> PyResult<Py<PyTensor>> {
        let _ = (non_blocking, memory_format);
        let first = device_from_name("cuda")?;
        let device = match device {
            Some(index) if index.is_instance_of::<PyInt>() => Device::Gpu(gpu_index("cuda", index)?),
            Some(name) => device_of(name)?,
            None => first,
        };
        convert_to(slf, None, Some(device), false)
    }

    /// Returns this tensor: transfers to a GPU need no memory that is pinned.
    #[pyo3(signature = (device=None))]
    fn pin_memory(slf: &Bound<'_, Self>, device: Option<&Bound<'_, PyAny>>) -> Py<PyTensor> {
        let _ = device;
        slf.clone().unbind()
    }

    /// Returns this tensor converted to `dtype`, which may be a class such as `FloatTensor`, or the name of
    /// one; without an argument, the name of its dtype. `non_blocking` changes nothing.
    #[pyo3(name = "type", signature = (dtype=None, non_blocking=false))]
    fn type_<'py>(
        slf: &Bound<'py, Self>, dtype: Option<&Bound<'py, PyAny>>, non_blocking: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = non_blocking;
        match dtype {
            Some(d) => {
                let name = d.getattr("__name__").and_then(|n| n.extract::<String>());
                let class = d.extract::<String>().or(name).ok().and_then(|name| dtype_of_class(&name));
                let dtype = class.map_or_else(|| dtype_of(d), Ok)?;
                Ok(convert_to(slf, Some(dtype), None, false)?.into_bound(slf.py()).into_any())
            }
            None => Ok(PyString::new(slf.py(), &format!("wengert.{}", slf.read().t.dtype())).into_any()),
        }
    }

    /// Returns this tensor converted to the dtype of `other`.
    fn type_as(slf: &Bound<'_, Self>, other: &Bound<'_, PyTensor>) -> PyResult<Py<PyTensor>> {
        let dtype = other.read().t.dtype();
        convert_to(slf, Some(dtype), None, false)
    }
}

macro_rules! casts {
    ($($(#[$doc:meta])* $method:ident $name:literal $dtype:ident;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[$doc])*
                #[pyo3(name = $name)]
                fn $method(slf: &Bound<'_, Self>) -> PyResult<Py<PyTensor>> {
                    convert_to(slf, Some(DType::$dtype), None, false)
                }
            )*
        }
    };
}

casts! {
    /// Returns this tensor as float32.
    to_float "float" F32;
    /// Returns this tensor as float64.
    to_double "double" F64;
    /// Returns this tensor as float16.
    to_half "half" F16;
    /// Returns this tensor as bfloat16.
    to_bfloat16 "bfloat16" BF16;
    /// Returns this tensor as int32.
    to_int "int" I32;
    /// Returns this tensor as int64.
    to_long "long" I64;
    /// Returns this tensor as int16.
    to_short "short" I16;
    /// Returns this tensor as int8.
    to_char "char" I8;
    /// Returns this tensor as uint8.
    to_byte "byte" U8;
    /// Returns this tensor as complex64.
    to_cfloat "cfloat" C64;
    /// Returns this tensor as complex128.
    to_cdouble "cdouble" C128;
    /// Returns this tensor as bool: true where it is not zero.
    to_bool "bool" Bool;
}

fn is_device_name(obj: &Bound<'_, PyAny>) -> bool {
    obj.extract::<&str>().is_ok_and(|s| DType::from_name(s.trim_start_matches("wengert.")).is_none())
}

fn convert_to(
    slf: &Bound<'_, PyTensor>, dtype: Option<DType>, device: Option<Device>, copy: bool,
) -> PyResult<Py<PyTensor>> {
    let t = value(slf)?;
    let (dtype, device) = (dtype.unwrap_or(t.dtype()), device.unwrap_or(t.device()));
    if dtype == t.dtype() && device == t.device() {
        return if copy { wrap(slf.py(), t.copied()?) } else { Ok(slf.clone().unbind()) };
    }
    // Converts on the side where both dtypes exist: wide numbers are narrowed before they go to a GPU.
    let out = slf.py().detached(|| {
        if device == Device::Cpu {
            t.to_device(device)?.cast(dtype)
        } else {
            t.cast(dtype)?.to_device(device)
        }
    })?;
    wrap(slf.py(), out)
}
