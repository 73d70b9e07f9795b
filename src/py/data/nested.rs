//! Conversion between nested lists of numbers and tensors.

use crate::array::buffer::{collect_at_most, grow, lengthen, with_capacity};
use crate::array::complex::Complex;
use crate::array::defaults;
use crate::array::dtype::{Element, Truth};
use crate::array::shape::MAX_RANK;
use crate::py::args::too_large;
use crate::py::data::convert::element;
use crate::py::prelude::*;
use pyo3::IntoPyObjectExt;
use pyo3::types::{PyComplex, PyComplexMethods, PyFloat};

/// The kind of a number, in order of promotion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Class {
    #[default]
    Bool,
    Int,
    Float,
    Complex,
}

/// Returns a Python number as integer, float and class; of a complex number the float is its real part.
pub fn number(obj: &Bound<'_, PyAny>) -> PyResult<Option<(i128, f64, Class)>> {
    if let Ok(v) = obj.cast::<PyFloat>() {
        return Ok(Some((0, v.value(), Class::Float)));
    }
    if let Ok(v) = obj.cast::<PyBool>() {
        return Ok(Some((v.is_true().into(), v.is_true().into(), Class::Bool)));
    }
    if obj.is_instance_of::<PyInt>() {
        let v = match obj.extract::<i64>() {
            Ok(v) => v.into(),
            Err(_) => obj.extract::<u64>().map(i128::from).map_err(|_| too_large(obj))?,
        };
        return Ok(Some((v, v as f64, Class::Int)));
    }
    if let Ok(v) = obj.cast::<PyComplex>() {
        return Ok(Some((0, v.real(), Class::Complex)));
    }
    Ok(None)
}

/// Returns a number as a tensor without axes.
pub fn scalar(obj: &Bound<'_, PyAny>, (int, float, class): (i128, f64, Class)) -> PyResult<Tensor> {
    Ok(match class {
        Class::Complex => Array::from_slice(&[Complex { re: float, im: imaginary(obj) }], Shape::SCALAR)
            .and_then(|a| Tensor::Array(a).cast(defaults::float().complex())),
        Class::Float => Tensor::scalar(float, defaults::float(), Device::Cpu),
        Class::Int => Tensor::from_slice(&[i64::try_from(int).map_err(|_| too_large(int))?], &[]),
        Class::Bool => Tensor::from_slice(&[Truth::from(int != 0)], &[]),
    }?)
}

/// Whether this is a number of NumPy's that is also one of Python's: it keeps its dtype.
fn has_own_dtype(obj: &Bound<'_, PyAny>) -> bool {
    let is_pythons = obj.is_exact_instance_of::<PyFloat>() || obj.is_exact_instance_of::<PyComplex>();
    let is_such = obj.is_instance_of::<PyFloat>() || obj.is_instance_of::<PyComplex>();
    is_such && !is_pythons && obj.hasattr("dtype").unwrap_or(false)
}

fn imaginary(obj: &Bound<'_, PyAny>) -> f64 {
    obj.cast::<PyComplex>().map_or(0.0, |v| v.imag())
}

/// Numbers collected from nested lists.
#[derive(Default)]
struct Nested {
    shape: Vec<usize>,
    ints: Vec<i128>,
    floats: Vec<f64>,
    /// Imaginary parts; empty until the first complex number, then 0 for the numbers before it.
    imaginary: Vec<f64>,
    class: Class,
    /// Whether an element is a tensor or array.
    mixed: bool,
}

impl Nested {
    fn collect(&mut self, obj: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        if obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
            let length = obj.len()?;
            if depth == self.shape.len() {
                if !self.floats.is_empty() || depth >= MAX_RANK {
                    return Err(self.ragged(length, depth));
                }
                self.shape.push(length);
            } else if self.shape[depth] != length {
                return Err(self.ragged(length, depth));
            }
            for i in 0..length {
                self.collect(&obj.get_item(i)?, depth + 1)?;
                if self.mixed {
                    break;
                }
            }
            return Ok(());
        }
        let found = if has_own_dtype(obj) { None } else { number(obj)? };
        let Some((int, float, class)) = found else {
            self.mixed = true;
            return Ok(());
        };
        if depth != self.shape.len() {
            return Err(value_error(format!(
                "nested lists of unequal depth: a number where a list of {} elements was expected",
                self.shape[depth]
            )));
        }
        if class == Class::Complex {
            lengthen(&mut self.imaginary, 0.0, self.floats.len())?;
            grow(&mut self.imaginary)?;
            self.imaginary.push(imaginary(obj));
        }
        grow(&mut self.ints)?;
        grow(&mut self.floats)?;
        self.ints.push(int);
        self.floats.push(float);
        self.class = self.class.max(class);
        Ok(())
    }

    /// Returns the collected complex numbers.
    fn complex(&mut self) -> crate::error::Result<Tensor> {
        lengthen(&mut self.imaginary, 0.0, self.floats.len())?;
        let pairs = self.floats.iter().zip(&self.imaginary);
        let all = collect_at_most(self.floats.len(), pairs.map(|(&re, &im)| Complex { re, im }))?;
        Tensor::from_slice(&all, &self.shape)
    }

    /// Returns the collected integers as int64; an error if one does not fit.
    fn whole(&self) -> PyResult<Vec<i64>> {
        let mut whole = with_capacity(self.ints.len())?;
        for &v in &self.ints {
            whole.push(i64::try_from(v).map_err(|_| too_large(v))?);
        }
        Ok(whole)
    }

    #[cold]
    fn ragged(&self, length: usize, depth: usize) -> PyErr {
        value_error(match self.shape.get(depth) {
            Some(expected) => format!(
                "nested lists of unequal length: {length} elements in axis {depth}, expected {expected}"
            ),
            None if depth >= MAX_RANK => format!(
                "lists nested more than {depth} deep, and a tensor has at most {depth} axes; a list that \
                 contains itself has no shape"
            ),
            None => format!(
                "nested lists of unequal depth: a list of {length} elements where a number was expected"
            ),
        })
    }
}

/// Converts nested lists to a tensor. Elements may be tensors or arrays of one shape, which are stacked with
/// their history. `depth` is the number of lists around this one; bounded, as a list may hold itself.
pub fn from_nested(obj: &Bound<'_, PyAny>, depth: usize) -> PyResult<Tensor> {
    if depth >= MAX_RANK {
        return Err(value_error(format!(
            "lists nested more than {MAX_RANK} deep cannot become a tensor, which has at most that many axes"
        )));
    }
    let mut all = Nested::default();
    all.collect(obj, 0)?;
    if all.mixed {
        let parts = obj.try_iter()?.map(|x| element(&x?, depth + 1)).collect::<PyResult<Vec<_>>>()?;
        return Ok(crate::ops::views::join::stack(&parts, 0)?);
    }
    let class = if all.floats.is_empty() { Class::Float } else { all.class };
    Ok(match class {
        Class::Complex => all.complex()?.cast(defaults::float().complex())?,
        Class::Float if defaults::float() != DType::F32 => {
            Tensor::from_slice(&all.floats, &all.shape)?.cast(defaults::float())?
        }
        Class::Float => {
            let values = collect_at_most(all.floats.len(), all.floats.iter().map(|f| *f as f32))?;
            Tensor::from_slice(&values, &all.shape)?
        }
        Class::Int => Tensor::from_slice(&all.whole()?, &all.shape)?,
        Class::Bool => {
            let values = collect_at_most(all.ints.len(), all.ints.iter().map(|&v| Truth::from(v != 0)))?;
            Tensor::from_slice(&values, &all.shape)?
        }
    })
}

/// Converts Python numbers to `dtype` without passing floats through another one; integers must fit. Returns
/// `None` for the dtype of floats, and where [`from_nested`] and a cast lose nothing or report the error.
pub fn from_nested_as(obj: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Option<Tensor>> {
    let is_list = obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>();
    let is_number =
        obj.is_instance_of::<PyFloat>() || obj.is_instance_of::<PyInt>() || obj.is_instance_of::<PyComplex>();
    if dtype == defaults::float() || !(is_list || is_number) {
        return Ok(None);
    }
    let mut all = Nested::default();
    all.collect(obj, 0)?;
    if all.mixed || (all.class == Class::Complex && !dtype.is_complex()) {
        return Ok(None);
    }
    if dtype.is_complex() {
        return Ok(Some(all.complex()?.cast(dtype)?));
    }
    if all.class == Class::Float || dtype == DType::F64 {
        all.floats.iter().try_for_each(|&value| dtype.check_fits_float(value))?;
        return Ok(Some(Tensor::from_slice(&all.floats, &all.shape)?.cast(dtype)?));
    }
    for &value in &all.ints {
        dtype.check_fits(value)?;
    }
    if dtype == DType::U64 {
        let exact = collect_at_most(all.ints.len(), all.ints.iter().map(|&v| v as u64))?;
        return Ok(Some(Tensor::from_slice(&exact, &all.shape)?));
    }
    Ok(None)
}

fn list_of<'py, T: Element, V>(
    py: Python<'py>, a: &Array, axis: usize, at: usize, value: &dyn Fn(T) -> V,
) -> PyResult<Bound<'py, PyAny>>
where
    V: IntoPyObject<'py>,
{
    let data = a.slice::<T>()?;
    if axis == a.rank() {
        return value(data[at]).into_bound_py_any(py);
    }
    let step: usize = (axis + 1..a.rank()).map(|i| a.dim(i)).product();
    let mut items = with_capacity(a.dim(axis))?;
    for i in 0..a.dim(axis) {
        items.push(list_of(py, a, axis + 1, at + i * step, value)?);
    }
    Ok(PyList::new(py, items)?.into_any())
}

fn python(py: Python<'_>, re: f64, im: f64) -> Bound<'_, PyComplex> {
    PyComplex::from_doubles(py, re, im)
}

/// Converts to nested lists of Python numbers.
pub fn to_list<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    let host = crate::cpu::pointwise::copy::computed(&py.detached(|| array.to_device(Device::Cpu))?)?;
    match host.dtype() {
        DType::Bool => list_of::<Truth, bool>(py, &host, 0, 0, &Truth::is_true),
        DType::I64 => list_of::<i64, i64>(py, &host, 0, 0, &|v| v),
        DType::U64 => list_of::<u64, u64>(py, &host, 0, 0, &|v| v),
        DType::F32 => list_of::<f32, f64>(py, &host, 0, 0, &f64::from),
        DType::F64 => list_of::<f64, f64>(py, &host, 0, 0, &|v| v),
        DType::C64 => list_of::<Complex<f32>, _>(py, &host, 0, 0, &|v| python(py, v.re.into(), v.im.into())),
        DType::C128 => list_of::<Complex<f64>, _>(py, &host, 0, 0, &|v| python(py, v.re, v.im)),
        _ => list_of::<i32, i32>(py, &host, 0, 0, &|v| v),
    }
}
