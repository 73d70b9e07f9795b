//! Argument types: axes, shapes and operands. One parser each accepts every spelling that a user may write.

use crate::ops::pointwise::operand::Operand;
use crate::py::data::{convert, numpy};
use crate::py::prelude::*;
use crate::py::relative::{in_double, is_double};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyValueError};
use pyo3::types::{PyComplex, PyComplexMethods, PyFloat, PyIterator};

/// Work on more elements than this releases the interpreter lock.
pub const LARGE: usize = 32 * 1024;

/// Runs `f`, without the interpreter lock if it handles many elements.
#[inline]
pub fn run<T: Send>(py: Python<'_>, elements: usize, f: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let out = if elements > LARGE { py.detached(f) } else { f() };
    out.map_err(PyErr::from)
}

/// Implements the extraction of an argument of this type from a Python object.
macro_rules! extracted {
    ($type:ty, |$obj:ident| $body:expr) => {
        impl<'a, 'py> FromPyObject<'a, 'py> for $type {
            type Error = PyErr;

            #[inline]
            fn extract(obj: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
                let $obj: &Bound<'py, PyAny> = &obj;
                $body
            }
        }
    };
}
pub(in crate::py) use extracted;

/// An axis or a length: an integer, not a bool.
pub struct Whole(pub i64);

extracted!(Whole, |obj| {
    if let Ok(truth) = obj.cast::<PyBool>() {
        let given = if truth.is_true() { "True" } else { "False" };
        return Err(type_error(format!(
            "an integer expected for an axis or a length, got {given}; pass a bool by the name of its \
             parameter"
        )));
    }
    integer(obj).map(Whole)
});

/// Returns an integer; a bool counts as 0 or 1.
pub fn integer(obj: &Bound<'_, PyAny>) -> PyResult<i64> {
    fitting(obj, |obj| too_large(obj))
}

/// Returns an index of one element along an axis.
pub fn position(obj: &Bound<'_, PyAny>) -> PyResult<i64> {
    fitting(obj, |obj| beyond_every_axis(obj))
}

/// Returns an integer, or the error `beyond` if it does not fit into int64.
fn fitting<'py>(obj: &Bound<'py, PyAny>, beyond: fn(&Bound<'py, PyAny>) -> PyErr) -> PyResult<i64> {
    obj.extract().map_err(|error: PyErr| match error.is_instance_of::<PyOverflowError>(obj.py()) {
        true => beyond(obj),
        false => error,
    })
}

/// The error for an index that does not fit into int64.
#[cold]
pub fn beyond_every_axis(index: impl std::fmt::Display) -> PyErr {
    PyIndexError::new_err(format!("index {index} is beyond the end of every axis"))
}

/// The error for an integer that does not fit into int64.
#[cold]
pub fn too_large(integer: impl std::fmt::Display) -> PyErr {
    value_error(format!("the integer {integer} does not fit into int64"))
}

/// Extracts a [`Whole`] as its integer, for `from_py_with`.
pub fn whole(obj: &Bound<'_, PyAny>) -> PyResult<i64> {
    obj.extract::<Whole>().map(|n| n.0)
}

/// [`whole`], or None.
pub fn optional_whole(obj: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if obj.is_none() { Ok(None) } else { whole(obj).map(Some) }
}

/// [`whole`] for a number of elements, which must not be negative.
pub fn amount(obj: &Bound<'_, PyAny>) -> PyResult<usize> {
    count("a number of elements", whole(obj)?)
}

/// Unwraps a list of [`Whole`].
pub fn unwrapped(numbers: Vec<Whole>) -> Vec<i64> {
    numbers.into_iter().map(|n| n.0).collect()
}

/// One axis, several axes, or none given.
#[derive(Default)]
pub struct Dims(pub Option<Vec<i64>>);

extracted!(Dims, |obj| {
    if obj.is_none() {
        return Ok(Dims(None));
    }
    let what = || type_error("an axis is an integer, a sequence of integers, or None for all of them");
    one_or_several(obj, whole, what).map(|axes| Dims(Some(axes)))
});

/// One integer, read by `one`, or a list of [`Whole`]; the error `what()` for an object that is neither.
pub fn one_or_several<'py>(
    obj: &Bound<'py, PyAny>, one: fn(&Bound<'py, PyAny>) -> PyResult<i64>, what: impl FnOnce() -> PyErr,
) -> PyResult<Vec<i64>> {
    if obj.is_instance_of::<PyInt>() {
        return Ok(vec![one(obj)?]);
    }
    if let Ok(only) = obj.extract::<i64>() {
        return Ok(vec![only]);
    }
    // A ValueError is about the numbers themselves.
    let explained = |e: PyErr| if e.is_instance_of::<PyValueError>(obj.py()) { e } else { what() };
    listed(obj).map(unwrapped).map_err(explained)
}

impl Dims {
    /// Returns the axes as the core takes them; an empty sequence means all, as in PyTorch.
    pub fn get(&self) -> Option<&[i64]> {
        self.0.as_deref().filter(|axes| !axes.is_empty())
    }

    /// Returns `self`, or the same argument given under its other name.
    pub fn or(self, other: Option<Dims>) -> PyResult<Dims> {
        Ok(one_of(self.0.is_some().then_some(Dims(self.0)), other)?.unwrap_or(Dims(None)))
    }
}

/// Extracts a sequence with one number per axis. The reported length is checked before anything is allocated.
pub fn listed<'py, T>(obj: &Bound<'py, PyAny>) -> PyResult<Vec<T>>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    let length = obj.len()?;
    if length > MOST_LISTED {
        return Err(value_error(format!(
            "a sequence with a number per axis expected, got one of length {length}"
        )));
    }
    obj.extract()
}

/// The longest sequence of numbers per axis that is accepted; generous.
const MOST_LISTED: usize = 1024;

/// One integer per axis, as an argument.
pub struct Listed(pub Vec<i64>);

extracted!(Listed, |obj| listed(obj).map(unwrapped).map(Listed));

/// Returns the argument given as `dim` or as `axis`; raises TypeError where both were.
pub fn one_of<T>(dim: Option<T>, axis: Option<T>) -> PyResult<Option<T>> {
    match (dim, axis) {
        (Some(_), Some(_)) => Err(type_error("dim and axis are two names of one argument; give one of them")),
        (dim, axis) => Ok(dim.or(axis)),
    }
}

/// [`one_of`], or `default`.
pub fn either<T>(dim: Option<T>, axis: Option<T>, default: T) -> PyResult<T> {
    Ok(one_of(dim, axis)?.unwrap_or(default))
}

/// Returns the integers of `f(2, 3)` or `f((2, 3))`.
pub fn integers(args: &Bound<'_, PyTuple>) -> PyResult<Vec<i64>> {
    if args.len() == 1 {
        let only = args.get_item(0)?;
        if only.is_instance_of::<PyTuple>() || only.is_instance_of::<PyList>() {
            return only.extract().map(unwrapped);
        }
    }
    args.extract().map(unwrapped)
}

/// Converts to a count, which must not be negative; `what` names function and argument in the error.
pub fn count(what: &str, n: i64) -> PyResult<usize> {
    usize::try_from(n).map_err(|_| value_error(format!("{what} cannot be negative, got {n}")))
}

/// Returns the shape of these lengths, all of which are known.
pub fn shape(lengths: &[i64]) -> PyResult<Shape> {
    let dims = lengths.iter().map(|&d| count("axis lengths", d)).collect::<PyResult<Vec<_>>>()?;
    Ok(Shape::new(&dims)?)
}

/// Returns a shape from an integer or a sequence of integers.
pub fn shape_from(obj: &Bound<'_, PyAny>) -> PyResult<Shape> {
    if obj.is_instance_of::<PyInt>() {
        return shape(&[obj.extract::<Whole>()?.0]);
    }
    if let Ok(n) = obj.extract::<i64>() {
        return shape(&[n]);
    }
    shape(&unwrapped(listed(obj)?))
}

/// Returns the shape of `numel` elements, inferring one length of -1.
pub fn inferred_shape(lengths: &[i64], numel: usize) -> PyResult<Shape> {
    let Some(unknown) = lengths.iter().position(|&d| d == -1) else { return shape(lengths) };
    let others = lengths.iter().enumerate().filter(|&(i, _)| i != unknown);
    let known = others.fold(1, |known: i64, (_, &d)| known.saturating_mul(d));
    if lengths.iter().filter(|&&d| d < 0).count() > 1 || known <= 0 || numel as i64 % known != 0 {
        return Err(Error::shape(format!(
            "reshape: {numel} elements cannot take the shape {lengths:?}; one length may be -1, and the \
             others must divide the number of elements"
        ))
        .into());
    }
    let mut dims = lengths.to_vec();
    dims[unknown] = numel as i64 / known;
    shape(&dims)
}

/// An operand from Python: a tensor, or a scalar that adapts to the dtype of the other operand.
pub enum Arg {
    /// A tensor, or an array converted to one.
    Tensor(Tensor),
    /// A bool.
    Bool(bool),
    /// An integer; it may be out of range of every dtype.
    Int(i128),
    /// A float.
    Float(f64),
    /// A complex number: real and imaginary part.
    Complex(f64, f64),
}

impl Arg {
    /// Returns the operand in the form that the core takes.
    pub fn operand(&self) -> Operand<'_> {
        match self {
            Arg::Tensor(t) => Operand::Tensor(t),
            Arg::Bool(v) => Operand::Bool(*v),
            Arg::Int(v) => Operand::Int(*v),
            Arg::Float(v) => Operand::Float(*v),
            Arg::Complex(re, im) => Operand::Complex(*re, *im),
        }
    }

    /// Returns a tensor that serves as operand together with `x`; a number keeps its full precision.
    pub fn tensor_with(&self, x: &Tensor) -> Result<Tensor> {
        self.operand().tensor_with(x)
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        match self {
            Arg::Tensor(t) => t.numel(),
            _ => 1,
        }
    }

    /// Converts an operand; returns `None` for an object that is not one.
    #[inline]
    pub fn from_any(obj: &Bound<'_, PyAny>) -> PyResult<Option<Arg>> {
        if let Ok(t) = obj.cast::<PyTensor>() {
            return Ok(Some(Arg::Tensor(value(t)?)));
        }
        if let Ok(v) = obj.cast::<PyFloat>() {
            return Ok(Some(Arg::Float(v.value())));
        }
        if let Ok(v) = obj.cast::<PyBool>() {
            return Ok(Some(Arg::Bool(v.is_true())));
        }
        if obj.is_instance_of::<PyInt>() {
            return Ok(Some(Arg::Int(obj.extract::<i64>().map_or_else(|_| large(obj), |v| Ok(v.into()))?)));
        }
        if let Ok(v) = obj.cast::<PyComplex>() {
            return Ok(Some(Arg::Complex(v.real(), v.imag())));
        }
        Arg::from_other(obj)
    }

    /// [`Arg::from_any`] for a comparison or a bound: accepts integers of any size, as they need no dtype.
    pub fn compared(obj: &Bound<'_, PyAny>) -> PyResult<Option<Arg>> {
        if obj.is_exact_instance_of::<PyInt>() && obj.extract::<i64>().is_err() {
            let end = if obj.gt(0)? { i128::MAX } else { i128::MIN };
            return Ok(Some(Arg::Int(large(obj).unwrap_or(end))));
        }
        Arg::from_any(obj)
    }

    /// Converts NumPy arrays and scalars, and other objects that describe an array.
    #[cold]
    fn from_other(obj: &Bound<'_, PyAny>) -> PyResult<Option<Arg>> {
        if !convert::is_array(obj) {
            return Ok(None);
        }
        if convert::is_numpy_scalar(obj) {
            return Arg::from_any(&obj.call_method0("item")?);
        }
        Ok(Some(Arg::Tensor(numpy::share(obj)?)))
    }
}

extracted!(Arg, |obj| Arg::from_any(obj)?.ok_or_else(|| not_an_operand(obj)));

/// Extracts an integer that does not fit into int64.
#[cold]
fn large(obj: &Bound<'_, PyAny>) -> PyResult<i128> {
    obj.extract().map_err(|_| too_large(obj))
}

/// The error for an object that is not an operand.
#[cold]
pub fn not_an_operand(obj: &Bound<'_, PyAny>) -> PyErr {
    let name = obj.get_type().name().map_or_else(|_| "this".into(), |n| n.to_string());
    type_error(format!(
        "a tensor, an array or a number expected, got {name}; lists become tensors with wengert.tensor"
    ))
}

/// A tensor argument; arrays and numbers are converted.
pub struct AsTensor(pub Tensor);

extracted!(AsTensor, |obj| convert::as_tensor(obj).map(AsTensor));

// As an argument a `Tensor` is an object of its class, and nothing that would be converted to one.
extracted!(Tensor, |obj| value(obj.cast::<PyTensor>()?));

// A `Tensor` that is returned to Python, or given to a function there, becomes a new object.
impl<'py> IntoPyObject<'py> for Tensor {
    type Target = PyTensor;
    type Output = Bound<'py, PyTensor>;
    type Error = PyErr;

    #[inline]
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyTensor>> {
        Bound::new(py, PyTensor::from(self))
    }
}

impl<'py> IntoPyObject<'py> for &Tensor {
    type Target = PyTensor;
    type Output = Bound<'py, PyTensor>;
    type Error = PyErr;

    #[inline]
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyTensor>> {
        self.clone().into_pyobject(py)
    }
}

/// Extracts all [`members`].
pub fn collected<'py, T, C>(obj: &Bound<'py, PyAny>) -> PyResult<C>
where
    T: FromPyObjectOwned<'py>,
    C: FromIterator<T>,
{
    members(obj)?.map(|x| x?.extract::<T>().map_err(Into::into)).collect()
}

/// Iterates over a list of tensors. The rows of a tensor count as one, unless there are more than
/// [`MOST_ROWS`] (a broadcast tensor may have billions).
pub fn members<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    if let Ok(t) = obj.cast::<PyTensor>() {
        let shape = t.read().t.shape();
        if shape.rank() > 0 && shape.at(0) > MOST_ROWS {
            return Err(value_error(format!(
                "a list of tensors expected, got one tensor of shape {shape}, whose rows are too many for a \
                 list"
            )));
        }
    }
    obj.try_iter()
}

/// The most rows for which a tensor is accepted as a list of tensors.
pub const MOST_ROWS: usize = 1 << 24;

/// A list of tensors.
pub struct Tensors(pub Vec<Tensor>);

extracted!(Tensors, |obj| {
    let all = members(obj)?.map(|x| x?.extract::<AsTensor>().map(|t| t.0)).collect::<PyResult<Vec<_>>>()?;
    // Python numbers among them keep full precision next to tensors of double precision.
    if (obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>()) && all.iter().any(is_double) {
        let doubled = obj.try_iter()?.zip(all).map(|(x, t)| in_double(&x?, t));
        return doubled.collect::<PyResult<_>>().map(Tensors);
    }
    Ok(Tensors(all))
});
