//! The buffer protocol: NumPy and `memoryview` access a tensor's memory without a copy.
//!
//! The exporting object is immutable, unlike a tensor, whose memory can be exchanged. It keeps the array
//! alive as long as a view of it exists.

use crate::py::data::numpy;
use crate::py::prelude::*;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use std::ffi::{CStr, c_int, c_void};

/// An array that exports its memory.
#[pyclass(module = "wengert._core", frozen)]
pub struct Memory {
    array: Array,
}

impl Memory {
    /// Returns an exporter of an array on the CPU.
    pub fn new(array: Array) -> Memory {
        Memory { array }
    }
}

/// Shape and strides in bytes, which must outlive the view.
struct Layout {
    shape: Vec<ffi::Py_ssize_t>,
    strides: Vec<ffi::Py_ssize_t>,
}

/// Format of NumPy's 64-bit integers: C's `long` if it has 64 bits, which compilers tell from `long long`.
const INT64: [&CStr; 2] = if size_of::<std::ffi::c_long>() == 8 { [c"l", c"L"] } else { [c"q", c"Q"] };

/// The element format in the syntax of Python's `struct` module; bfloat16 is exported as its bits.
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

/// Whether the layout of the array satisfies a request with these flags.
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
    // SAFETY: the interpreter passes a pointer to a view to fill in; null is checked for.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let array = &slf.get().array;
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill in"));
        }
        // SAFETY: `view` is not null and ours to fill in; a failed request must leave no owner.
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
        // SAFETY: `view` is ours to fill in; its pointers live until `__releasebuffer__` frees the layout.
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

    // SAFETY: the interpreter passes each view that `__getbuffer__` filled in, once.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `internal` is the layout that `__getbuffer__` leaked for this view.
        unsafe { drop(Box::from_raw((*view).internal.cast::<Layout>())) };
    }
}

#[pymethods]
impl PyTensor {
    // SAFETY: the interpreter passes a pointer to a view for this function to fill in.
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
        // SAFETY: the caller's promise about `view` is passed on; the view will be owned by `memory`.
        unsafe { Memory::__getbuffer__(memory, view, flags) }
    }
}
