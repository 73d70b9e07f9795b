//! The buffer protocol: how NumPy and `memoryview` see a tensor's memory without a copy.
//!
//! The exporting object is immutable, unlike a tensor, whose memory may be exchanged under a name. It keeps
//! the array alive for as long as a view of it exists.

use crate::array::Array;
use crate::array::dtype::DType;
use crate::py::data::numpy;
use crate::py::tensor::PyTensor;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_int, c_void};

/// An array that exports its memory.
#[pyclass(module = "wengert._core", frozen)]
pub struct Memory {
    array: Array,
}

impl Memory {
    /// An exporter of an array on the CPU.
    pub fn new(array: Array) -> Memory {
        Memory { array }
    }
}

/// Shape and strides in bytes, which must outlive the view.
struct Layout {
    shape: Vec<ffi::Py_ssize_t>,
    strides: Vec<ffi::Py_ssize_t>,
}

/// The 64-bit integers of NumPy, which are C's `long` where that has 64 bits: compiled code tells it from
/// `long long`.
const INT64: [&CStr; 2] = if size_of::<std::ffi::c_long>() == 8 { [c"l", c"L"] } else { [c"q", c"Q"] };

/// The format of an element in the language of the `struct` module; bfloat16 travels as its bits.
fn format(dtype: DType) -> &'static CStr {
    match dtype {
        DType::Bool => c"?",
        DType::U8 => c"B",
        DType::I8 => c"b",
        DType::U16 => c"H",
        DType::I16 => c"h",
        DType::U32 => c"I",
        DType::I32 => c"i",
        DType::U64 => INT64[1],
        DType::I64 => INT64[0],
        DType::F16 => c"e",
        DType::BF16 => c"H",
        DType::F32 => c"f",
        DType::F64 => c"d",
        DType::C64 => c"Zf",
        DType::C128 => c"Zd",
    }
}

/// Whether a request of these flags may see the array as it lies.
fn fits(array: &Array, flags: c_int) -> bool {
    let asks = |flag: c_int| flags & flag == flag;
    let transposed = || {
        let axes: Vec<u8> = (0..array.rank() as u8).rev().collect();
        array.permute(&axes).is_ok_and(|transposed| transposed.is_contiguous())
    };
    if asks(ffi::PyBUF_F_CONTIGUOUS) {
        return array.numel() == 0 || transposed();
    }
    let strides = asks(ffi::PyBUF_STRIDES) && !asks(ffi::PyBUF_C_CONTIGUOUS);
    let any = asks(ffi::PyBUF_ANY_CONTIGUOUS);
    array.numel() == 0 || array.is_contiguous() || (any && transposed()) || (strides && !any)
}

#[pymethods]
impl Memory {
    // SAFETY: the interpreter passes a view to be filled in.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let array = &slf.get().array;
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill in"));
        }
        // SAFETY: as above; a request that fails leaves no owner.
        unsafe { (*view).obj = std::ptr::null_mut() };
        if !fits(array, flags) {
            return Err(PyBufferError::new_err(
                "this tensor is not contiguous in the order asked for; ask for strides, or call contiguous()",
            ));
        }
        let size = array.dtype().size();
        let layout = Box::new(Layout {
            shape: array.shape().iter().map(|d| d as ffi::Py_ssize_t).collect(),
            strides: array.strides().iter().map(|s| s * size as ffi::Py_ssize_t).collect(),
        });
        let address = array.buffer().ptr().wrapping_add(array.offset() * size);
        let shown = |flag: c_int, p: *const ffi::Py_ssize_t| {
            if flags & flag == flag { p.cast_mut() } else { std::ptr::null_mut() }
        };
        // SAFETY: `view` points to a view that nobody else uses; the layout is freed in `__releasebuffer__`.
        unsafe {
            (*view).buf = address.cast::<c_void>();
            (*view).len = (array.numel() * size) as ffi::Py_ssize_t;
            (*view).itemsize = size as ffi::Py_ssize_t;
            (*view).readonly = 0;
            (*view).ndim = array.rank() as c_int;
            (*view).format = match flags & ffi::PyBUF_FORMAT == ffi::PyBUF_FORMAT {
                true => format(array.dtype()).as_ptr().cast_mut(),
                false => std::ptr::null_mut(),
            };
            (*view).shape = shown(ffi::PyBUF_ND, layout.shape.as_ptr());
            (*view).strides = shown(ffi::PyBUF_STRIDES, layout.strides.as_ptr());
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = Box::into_raw(layout).cast::<c_void>();
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }

    // SAFETY: the interpreter passes a view that `__getbuffer__` filled in, once.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `internal` is the layout that `__getbuffer__` leaked for this view.
        unsafe { drop(Box::from_raw((*view).internal.cast::<Layout>())) };
    }
}

#[pymethods]
impl PyTensor {
    // SAFETY: the interpreter passes a view to be filled in.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let array = numpy::exportable(&*slf.get().value()?, "numpy")
            .map_err(|e| PyBufferError::new_err(e.to_string()))?
            .clone();
        if array.dtype() == DType::BF16 {
            return Err(PyBufferError::new_err(
                "the buffer protocol has no bfloat16; convert with .float() first",
            ));
        }
        let memory = Bound::new(slf.py(), Memory::new(array))?;
        // SAFETY: as for this function; the view will belong to `memory`.
        unsafe { Memory::__getbuffer__(memory, view, flags) }
    }
}
