//! DLPack: exchange of tensors with other libraries without a copy, by legacy and versioned (1.x) capsules.
//!
//! The layout of the structs is the standard's: <https://dmlc.github.io/dlpack/latest/c_api.html>.

use crate::array::dtype::Category;
use crate::array::shape::MAX_RANK;
use crate::py::data::numpy;
use crate::py::prelude::*;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::types::IntoPyDict;
use std::ffi::{CStr, c_void};

/// DLPack's device type of host memory.
const CPU: i32 = 1;
/// Flag: the memory must not be written.
const READ_ONLY: u64 = 1;
/// Flag: the exporter made a copy.
const COPIED: u64 = 2;

#[repr(C)]
#[derive(Clone, Copy)]
struct DlDevice {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
struct DlType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    ndim: i32,
    dtype: DlType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// Releases a struct, [`Legacy`] or [`Versioned`]; in C its parameter is a pointer to that.
type Deleter = unsafe extern "C" fn(*mut c_void);

#[repr(C)]
struct Legacy {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<Deleter>,
}

#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<Deleter>,
    flags: u64,
    tensor: DlTensor,
}

/// An exported struct, and the data that it points to.
#[repr(C)]
struct Exported<M> {
    managed: M,
    array: Array,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

const NAME: &CStr = c"dltensor";
const NAME_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

fn type_of(dtype: DType) -> DlType {
    let code = match dtype.category() {
        Category::Int if dtype.is_unsigned() => 1,
        Category::Int => 0,
        Category::Float if dtype == DType::BF16 => 4,
        Category::Float => 2,
        Category::Complex => 5,
        Category::Bool => 6,
    };
    DlType { code, bits: dtype.size() as u8 * 8, lanes: 1 }
}

unsafe extern "C" fn delete<M>(managed: *mut c_void) {
    // SAFETY: `export` leaked this box, whose first field is the struct; DLPack's deleter is called once.
    unsafe { drop(Box::from_raw(managed.cast::<Exported<M>>())) }
}

/// Returns the struct in a capsule, if the capsule has this name.
///
/// # Safety
/// `M` must be the struct that a capsule of this name holds.
unsafe fn held<M>(capsule: *mut ffi::PyObject, name: &CStr) -> Option<*mut M> {
    // SAFETY: the pointer is taken only after the name was checked.
    unsafe {
        let is_valid = ffi::PyCapsule_IsValid(capsule, name.as_ptr()) == 1;
        is_valid.then(|| ffi::PyCapsule_GetPointer(capsule, name.as_ptr()).cast())
    }
}

/// Frees a capsule that nobody consumed.
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule with either name was made by `capsule`, and is not consumed, so its struct lives.
    unsafe {
        let legacy = held::<Legacy>(capsule, NAME).map(|m| (m.cast(), (*m).deleter));
        let versioned = || held::<Versioned>(capsule, VERSIONED).map(|m| (m.cast(), (*m).deleter));
        if let Some((managed, Some(deleter))) = legacy.or_else(versioned) {
            deleter(managed);
        }
    }
}

/// Returns a capsule of the struct that `managed` makes of the description of `array`.
fn capsule<'py, M>(
    py: Python<'py>, name: &'static CStr, array: Array, managed: impl FnOnce(DlTensor) -> M,
) -> PyResult<Bound<'py, PyAny>> {
    let mut shape: Vec<i64> = array.shape().iter().map(|d| d as i64).collect();
    let mut strides: Vec<i64> = array.strides().iter().map(|&s| s as i64).collect();
    let tensor = DlTensor {
        data: array.buffer().ptr().wrapping_add(array.offset() * array.dtype().size()).cast(),
        device: DlDevice { kind: CPU, id: 0 },
        ndim: array.rank() as i32,
        dtype: type_of(array.dtype()),
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let exported = Box::into_raw(Box::new(Exported { managed: managed(tensor), array, shape, strides }));
    // SAFETY: the box is leaked, its first field is the struct; `name` is static, as `PyCapsule_New` wants.
    unsafe {
        let made = ffi::PyCapsule_New(exported.cast(), name.as_ptr(), Some(drop_capsule));
        Bound::from_owned_ptr_or_err(py, made)
    }
}

fn export<'py>(py: Python<'py>, array: Array, versioned: bool, copied: bool) -> PyResult<Bound<'py, PyAny>> {
    let context = std::ptr::null_mut();
    if versioned {
        let (deleter, flags) = (Some(delete::<Versioned> as Deleter), if copied { COPIED } else { 0 });
        return capsule(py, VERSIONED, array, |tensor| Versioned {
            major: 1,
            minor: 0,
            context,
            deleter,
            flags,
            tensor,
        });
    }
    let deleter = Some(delete::<Legacy> as Deleter);
    capsule(py, NAME, array, |tensor| Legacy { tensor, context, deleter })
}

#[pymethods]
impl PyTensor {
    /// Returns a DLPack capsule over the memory. Raises BufferError for one that requires a gradient or is on
    /// a GPU.
    ///
    /// Strides are those of the tensor. Not every library takes all of them: PyTorch fails at negative ones,
    /// as of `flip`, and JAX at everything that is not in row-major order; pass them `x.contiguous()`.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self, py: Python<'py>, stream: Option<&Bound<'py, PyAny>>, max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>, copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream;
        if dl_device.is_some_and(|d| d.0 != CPU) {
            return Err(PyBufferError::new_err("__dlpack__: only host memory can be exported"));
        }
        let t = self.value()?;
        let array = numpy::exportable(&t, "numpy")
            .map_err(|e| PyBufferError::new_err(e.value(py).to_string().replace("numpy", "__dlpack__")))?;
        let copied = copy == Some(true);
        let array = if copied { array.copied()? } else { array.clone() };
        export(py, array, max_version.is_some_and(|v| v.0 >= 1), copied)
    }

    /// Returns the device in DLPack's terms: `(1, 0)` for host memory.
    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        match self.read().t.device() {
            Device::Cpu => Ok((CPU, 0)),
            device => Err(PyBufferError::new_err(format!(
                "DLPack has no description of memory on {device}; copy it to the host with cpu()"
            ))),
        }
    }
}

/// The memory of another library, released when the tensor's buffer is dropped. The deleter is copied out
/// when the capsule is consumed, as the producer may overwrite or free the struct early.
struct Foreign {
    managed: *mut c_void,
    deleter: Option<Deleter>,
}

// SAFETY: DLPack allows its deleter to be called from any thread.
unsafe impl Send for Foreign {}
// SAFETY: shared references never use the pointer; only `drop` does.
unsafe impl Sync for Foreign {}

impl Drop for Foreign {
    fn drop(&mut self) {
        let Some(deleter) = self.deleter else { return };
        // Deleters of Python libraries release Python objects, which are gone once the interpreter has ended.
        // SAFETY: `consume` renamed the capsule, so nobody else calls the deleter.
        let _ = Python::try_attach(|_| unsafe { deleter(self.managed) });
    }
}

/// Consumes a capsule: returns the owner of the memory, the tensor it describes, and whether the memory must
/// be treated as read-only. A legacy struct has no such flag and counts as read-only; JAX's memory, which
/// must never be written, comes in legacy structs.
fn consume(capsule: &Bound<'_, PyAny>) -> PyResult<(Foreign, DlTensor, bool)> {
    let p = capsule.as_ptr();
    // SAFETY: the names are those of the standard for these structs. The struct is valid until the capsule is
    // consumed, and read before. Renaming the capsule keeps its owner from freeing the struct.
    unsafe {
        if let Some(managed) = held::<Versioned>(p, VERSIONED) {
            let m = &*managed;
            if m.major != 1 {
                return Err(PyBufferError::new_err(format!("DLPack {} is not supported, only 1", m.major)));
            }
            let owner = Foreign { managed: managed.cast(), deleter: m.deleter };
            let taken = (owner, m.tensor, m.flags & READ_ONLY != 0);
            ffi::PyCapsule_SetName(p, VERSIONED_USED.as_ptr());
            return Ok(taken);
        }
        if let Some(managed) = held::<Legacy>(p, NAME) {
            let m = &*managed;
            let taken = (Foreign { managed: managed.cast(), deleter: m.deleter }, m.tensor, true);
            ffi::PyCapsule_SetName(p, NAME_USED.as_ptr());
            return Ok(taken);
        }
    }
    Err(value_error("this DLPack capsule was consumed before, or is none"))
}

fn dtype_of(t: DlType) -> PyResult<DType> {
    DType::ALL.into_iter().find(|&dtype| type_of(dtype) == t).ok_or_else(|| {
        type_error(format!(
            "DLPack type (code {}, {} bits, {} lanes) is none of {}; convert before the export",
            t.code,
            t.bits,
            t.lanes,
            DType::names()
        ))
    })
}

/// Returns a tensor over the memory of an object with `__dlpack__`; copies memory that may be read-only.
pub fn import(obj: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = obj.py();
    let kwargs = [("max_version", (1, 0))].into_py_dict(py)?;
    let method = obj.getattr("__dlpack__").map_err(|_| {
        type_error(format!("from_dlpack: an object with __dlpack__ expected, got {}", obj.get_type()))
    })?;
    let capsule = match method.call((), Some(&kwargs)) {
        Ok(capsule) => capsule,
        // Libraries from before DLPack 1 do not accept this argument.
        Err(e) if e.is_instance_of::<pyo3::exceptions::PyTypeError>(py) => method.call0()?,
        Err(e) => return Err(e),
    };
    let (owner, tensor, read_only) = consume(&capsule)?;
    if tensor.device.kind != CPU {
        return Err(PyBufferError::new_err(
            "from_dlpack: only host memory is taken; copy the array to the CPU first",
        ));
    }
    let dtype = dtype_of(tensor.dtype)?;
    let (shape, strides) = layout(&tensor)?;
    let address = usize::try_from(tensor.byte_offset).ok().and_then(|n| n.checked_add(tensor.data as usize));
    let address = address.ok_or_else(|| wrong("a byte_offset beyond the address space"))?;
    if tensor.data.is_null() && shape.numel() > 0 {
        return Err(wrong(&format!("no memory for the elements of shape {shape}")));
    }
    if !address.is_multiple_of(dtype.align()) {
        return Err(PyBufferError::new_err("from_dlpack: the memory is not aligned to its elements"));
    }
    let array = numpy::foreign(address, shape, &strides, dtype, Box::new(owner))?;
    Ok(if read_only { array.copied()?.into() } else { array.into() })
}

/// The error for a struct with an impossible description.
#[cold]
fn wrong(what: &str) -> PyErr {
    PyBufferError::new_err(format!(
        "from_dlpack: the capsule describes {what}; the library that made it is at fault"
    ))
}

/// Reads shape and strides of a struct; null strides mean row-major order.
fn layout(tensor: &DlTensor) -> PyResult<(Shape, Vec<isize>)> {
    let rank = usize::try_from(tensor.ndim).map_err(|_| wrong(&format!("{} axes", tensor.ndim)))?;
    if rank > MAX_RANK {
        return Err(PyBufferError::new_err(format!(
            "from_dlpack: a tensor has at most {MAX_RANK} axes, got an array with {rank}; merge some before \
             the export"
        )));
    }
    if rank > 0 && tensor.shape.is_null() {
        return Err(wrong(&format!("{rank} axes without their lengths")));
    }
    // SAFETY: DLPack's producer guarantees `ndim` entries; null pointers are excluded.
    let listed = |p: *const i64| (0..rank).map(|i| unsafe { *p.add(i) }).collect::<Vec<_>>();
    let lengths = listed(tensor.shape);
    let dims: Result<Vec<usize>, _> = lengths.iter().map(|&d| usize::try_from(d)).collect();
    let shape = Shape::new(&dims.map_err(|_| wrong(&format!("axes of lengths {lengths:?}")))?)?;
    let strides = match tensor.strides.is_null() {
        true => shape.strides()[..rank].to_vec(),
        false => listed(tensor.strides).into_iter().map(|s| s as isize).collect(),
    };
    Ok((shape, strides))
}

/// Returns a tensor over the memory of an array of another library (NumPy, JAX, PyTorch, ...), by DLPack.
///
/// Read-only memory is copied, and so is that of capsules without a version (JAX's), which cannot say whether
/// it may be written. Raises BufferError for memory not on the host, and for impossible descriptions.
#[pyfunction]
pub fn from_dlpack(array: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    if let Ok(t) = array.cast::<PyTensor>() {
        return Ok(value(t)?.detach().into());
    }
    Ok(PyTensor::from(import(array)?))
}
