//! Questions about tensors and their elements, and where elements are.

use crate::ops::reduce::index_type;
use crate::py::args::{self, Dims};
use crate::py::data::dtype::{PyDType, dtype_object, dtype_of};
use crate::py::data::reading::item;
use crate::py::prelude::*;
use crate::py::relative::{Relative, operand};
use pyo3::types::PyType;

#[pymethods]
impl PyTensor {
    /// Returns the indices of the elements that are not zero, as rows.
    fn argwhere<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.nonzero(py, false)
    }

    /// Tells whether the only element is not zero.
    ///
    /// Raises:
    ///     ValueError: there is not exactly one element.
    fn is_nonzero(&self, py: Python<'_>) -> PyResult<bool> {
        let t = self.value()?;
        if t.numel() != 1 {
            return Err(value_error(format!(
                "is_nonzero: one element expected, got shape {}; any() and all() reduce several",
                t.shape()
            )));
        }
        item(py, &t)?.is_truthy()
    }

    /// Tells whether both have one shape.
    fn is_same_size(&self, other: Relative<'_>) -> PyResult<bool> {
        let t = self.value()?;
        Ok(other.beside("is_same_size", &t)?.shape() == t.shape())
    }
}

#[pymethods]
impl PyTensor {
    /// Tells whether the elements are still to be conjugated when they are read: never, as `conj` does it.
    fn is_conj(&self) -> bool {
        false
    }

    /// Tells whether the elements are still to be negated when they are read: never.
    fn is_neg(&self) -> bool {
        false
    }

    /// Returns the tensor itself, whose elements are conjugated already where they are to be.
    fn resolve_conj(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Returns the tensor itself, whose elements are negated already where they are to be.
    fn resolve_neg(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Raises TypeError: there are no complex numbers of halves; `cfloat()` converts to complex64.
    ///
    /// Example:
    ///     >>> try:
    ///     ...     wg.ones(1).chalf()
    ///     ... except TypeError as error:
    ///     ...     print(str(error)[:6])
    ///     chalf:
    fn chalf(&self) -> PyResult<()> {
        Err(type_error("chalf: there are no complex numbers of halves; convert to complex64 with .cfloat()"))
    }

    /// Raises TypeError: there are no sparse tensors.
    ///
    /// Example:
    ///     >>> try:
    ///     ...     wg.eye(2).to_sparse()
    ///     ... except TypeError as error:
    ///     ...     print(str(error)[:10])
    ///     to_sparse:
    #[pyo3(signature = (*args, **kwargs))]
    fn to_sparse(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let _ = (args, kwargs);
        Err(type_error(
            "to_sparse: there are no sparse tensors; keep x.nonzero() and x[x != 0], and add by index_add or \
             scatter_add",
        ))
    }

    /// Returns the tensor itself for the class `Tensor`.
    ///
    /// Args:
    ///     cls: the class.
    ///
    /// Raises:
    ///     TypeError: for a subclass, since results of operations are plain tensors.
    ///
    /// Example:
    ///     >>> wg.ones(1).as_subclass(wg.Tensor)
    ///     tensor([1.])
    fn as_subclass<'py>(slf: &Bound<'py, Self>, cls: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        if cls.is(slf.py().get_type::<PyTensor>()) {
            return Ok(slf.clone());
        }
        let class = cls.getattr_opt("__name__")?.unwrap_or_else(|| cls.clone()).repr()?;
        Err(type_error(format!(
            "as_subclass: operations return plain tensors, not {class}; keep the tensor in an attribute of a \
             class of your own"
        )))
    }
}

readings! { PyTensor, |object| object.read().t;
    /// Tells whether the dtype has negative numbers.
    is_signed -> bool = |t| !t.dtype().is_unsigned() && t.dtype() != DType::Bool;
    /// Returns the number of the GPU that holds the elements; -1 on the CPU.
    get_device -> i64 = |t| if let Device::Gpu(index) = t.device() { i64::from(index) } else { -1 };
}

methods! {
    /// Tells where the imaginary part is zero; everywhere in real tensors.
    isreal() = |x| match x.dtype().is_complex() {
        true => x.imag()?.eq(0i64),
        false => Tensor::full(x.shape(), 1.0, DType::Bool, x.device()),
    };
}

functions! {
    /// Tells whether an object is a tensor.
    is_tensor(obj: &Bound<'_, PyAny>) -> bool = obj.is_instance_of::<PyTensor>();
    /// Returns the dtype of results of tensors of these dtypes.
    promote_types(type1: &Bound<'_, PyAny>, type2: &Bound<'_, PyAny>) -> PyResult<Py<PyDType>> =
        dtype_object(type1.py(), dtype_of(type1)?.promote(dtype_of(type2)?));
    /// Tells whether PyTorch converts a dtype in operations: never from a kind of numbers to a narrower one.
    ///
    /// The kinds are bool, integers, floating point and complex numbers.
    can_cast(from_: &Bound<'_, PyAny>, to: &Bound<'_, PyAny>) -> PyResult<bool> =
        Ok(dtype_of(from_)?.category() <= dtype_of(to)?.category());
}

/// Returns the name of the type of an object, with its module; of a tensor that of its dtype.
///
/// Args:
///     o: any object.
#[pyfunction]
fn typename(o: &Bound<'_, PyAny>) -> PyResult<String> {
    if o.is_instance_of::<PyTensor>() {
        return o.call_method0("type")?.str()?.extract();
    }
    let class = o.cast::<PyType>().map_or_else(|_| o.get_type(), Clone::clone);
    let (module, name) = (class.module()?, class.qualname()?);
    let is_builtin = module == "builtins" || module == "__builtin__";
    Ok(if is_builtin { name.to_string() } else { format!("{module}.{name}") })
}

/// Returns the coordinates of elements that are numbered in row-major order, one tensor for each axis of
/// `shape`.
///
/// Raises:
///     IndexError: a number is outside of the shape.
#[pyfunction]
fn unravel_index<'py>(indices: &Bound<'py, PyAny>, shape: Dims) -> PyResult<Bound<'py, PyTuple>> {
    let py = indices.py();
    let mut left = operand("unravel_index", indices)?;
    if !left.dtype().is_integer() {
        let dtype = left.dtype();
        return Err(type_error(format!(
            "unravel_index: integers expected, got wengert.{dtype}; convert with .long() first"
        )));
    }
    let lengths = shape.0.unwrap_or_default();
    let whole = args::shape(&lengths)?;
    let count = lengths.iter().product::<i64>();
    if left.numel() > 0 {
        let (least, most) = (left.amin(None, false)?, left.amax(None, false)?);
        if least.lt(0i64)?.item()? != 0.0 || most.ge(count)?.item()? != 0.0 {
            let (least, most) = (least.item()?, most.item()?);
            return Err(Error::index(format!(
                "unravel_index: indices from {least} to {most} for {count} elements of shape {whole}"
            ))
            .into());
        }
    }
    // A narrow dtype may not hold a length.
    left = left.cast(index_type(left.device()))?;
    let mut coordinates = Vec::new();
    for &n in lengths.iter().rev() {
        coordinates.push(if n > 0 { left.remainder(n)? } else { left.clone() });
        left = if n > 0 { left.floor_divide(n)? } else { left };
    }
    PyTuple::new(py, coordinates.into_iter().rev().map(PyTensor::from))
}

exports! { functions: is_tensor, promote_types, can_cast, typename, unravel_index }
