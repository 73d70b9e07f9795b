//! Fast paths of the transforms for functions whose arguments are tensors.
//!
//! The Python package flattens arguments and unflattens results (`python/wengert/transforms/__init__.py`),
//! which costs more than a small function does. The functions of this file handle the plain cases in one
//! call. For every other case they return `None` before calling anything, and the general path is taken.
//! Results may be trees: the helpers for those are passed in.

use crate::array::shape::{Shape, normalize_axis};
use crate::autodiff::transform::{self, Pullback, batching};
use crate::error::Result;
use crate::interp::Randomness;
use crate::py::detach::{Callback, Detach};
use crate::py::error::foreign;
use crate::py::tensor::view::value;
use crate::py::tensor::{PyTensor, wrap};
use crate::tensor::Tensor;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyTuple};
use smallvec::SmallVec;
use std::cell::RefCell;

type Any<'py> = Bound<'py, PyAny>;

/// How a result is rebuilt from its leaves.
enum Structure {
    One,
    Tuple,
    Tree(Py<PyAny>),
}

/// The helpers that flatten results (`flatten(result)` gives leaves and structure) and rebuild them
/// (`unflatten(structure, leaves)`).
struct Trees<'a, 'py> {
    flatten: &'a Any<'py>,
    unflatten: &'a Any<'py>,
}

impl Trees<'_, '_> {
    fn leaves(&self, result: &Any<'_>) -> PyResult<(Vec<Tensor>, Structure)> {
        if let Ok(t) = result.cast::<PyTensor>() {
            return Ok((vec![value(t)?], Structure::One));
        }
        if let Ok(tuple) = result.cast_exact::<PyTuple>()
            && tuple.iter().all(|x| x.is_instance_of::<PyTensor>())
        {
            return Ok((tensors(tuple.iter())?, Structure::Tuple));
        }
        let (leaves, structure): (Vec<Any>, Py<PyAny>) = self.flatten.call1((result,))?.extract()?;
        Ok((tensors(leaves)?, Structure::Tree(structure)))
    }

    fn build(&self, py: Python<'_>, structure: &Structure, leaves: Vec<Tensor>) -> PyResult<Py<PyAny>> {
        let mut leaves = leaves.into_iter().map(|t| wrap(py, t)).collect::<PyResult<Vec<_>>>()?;
        match structure {
            Structure::One => match leaves.pop() {
                Some(t) => Ok(t.into_any()),
                None => Ok(py.None()),
            },
            Structure::Tuple => Ok(PyTuple::new(py, leaves)?.into_any().unbind()),
            Structure::Tree(structure) => Ok(self.unflatten.call1((structure, leaves))?.unbind()),
        }
    }
}

fn tensors<'py>(objects: impl IntoIterator<Item = Any<'py>>) -> PyResult<Vec<Tensor>> {
    objects.into_iter().map(|x| value(x.cast::<PyTensor>()?)).collect()
}

/// Returns the tensors of a tuple, if it holds nothing else.
fn all_tensors(tuple: &Bound<'_, PyTuple>) -> PyResult<Option<Vec<Tensor>>> {
    if tuple.iter().all(|x| x.is_instance_of::<PyTensor>()) {
        tensors(tuple.iter()).map(Some)
    } else {
        Ok(None)
    }
}

/// A Python function with all of its arguments.
struct Call<'a, 'py> {
    function: &'a Any<'py>,
    args: &'a Bound<'py, PyTuple>,
    kwargs: Option<&'a Bound<'py, PyDict>>,
    /// Index of the differentiated argument.
    at: usize,
}

impl<'py> Call<'_, 'py> {
    /// Returns the differentiated argument, if it is a tensor of a differentiable dtype.
    fn primal(&self) -> PyResult<Option<Tensor>> {
        match self.args.get_item(self.at)?.cast::<PyTensor>() {
            Ok(t) => Ok(Some(value(t)?).filter(|t| t.dtype().is_differentiable())),
            Err(_) => Ok(None),
        }
    }

    /// Calls the function with `x` as the differentiated argument.
    fn result(&self, x: &Tensor) -> PyResult<Any<'py>> {
        let py = self.function.py();
        let x = Py::new(py, PyTensor::argument(x.clone()))?;
        if self.args.len() == 1 {
            return self.function.run((x,), self.kwargs);
        }
        let mut args: SmallVec<[Any<'py>; 8]> = self.args.iter().collect();
        args[self.at] = x.into_bound(py).into_any();
        self.function.run(PyTuple::new(py, args)?, self.kwargs)
    }
}

/// Resolves an index that may count from the end; `None` if out of range.
fn position(at: isize, length: usize) -> Option<usize> {
    normalize_axis(at as i64, length, "argnums").ok()
}

/// Value and gradient of a scalar function with respect to the tensor that is argument `at`; None if it is no
/// floating point tensor. `scalar` makes a tensor of any other result, or raises.
#[pyfunction]
fn _grad_of_tensor(
    py: Python<'_>,
    function: &Any<'_>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
    at: isize,
    scalar: &Any<'_>,
) -> PyResult<Option<(Py<PyTensor>, Py<PyTensor>)>> {
    let Some(at) = position(at, args.len()) else { return Ok(None) };
    let call = Call { function, args, kwargs, at };
    let Some(x) = call.primal()? else { return Ok(None) };
    let run = |x: &[Tensor]| -> PyResult<Vec<Tensor>> {
        let result = call.result(&x[0])?;
        if let Ok(t) = result.cast::<PyTensor>() {
            let t = value(t)?;
            if t.rank() == 0 && t.dtype().is_float() {
                return Ok(vec![t]);
            }
        }
        tensors([scalar.call1((result, function))?])
    };
    let (mut out, pullback) = transform::vjp(|x| run(x).map_err(foreign), &[x])?;
    let out = out.remove(0);
    let seed = [Some(out.ones_like()?)];
    let mut gradient = py.detached(|| pullback.call(&seed, false))?;
    Ok(Some((wrap(py, out)?, wrap(py, gradient.remove(0))?)))
}

/// Value of a function of tensors and its derivative along other tensors; None unless all arguments are
/// tensors that fit together.
#[pyfunction]
fn _jvp_of_tensors(
    py: Python<'_>,
    function: &Any<'_>,
    primals: &Bound<'_, PyTuple>,
    tangents: &Bound<'_, PyTuple>,
    flatten: &Any<'_>,
    unflatten: &Any<'_>,
) -> PyResult<Option<(Py<PyAny>, Py<PyAny>)>> {
    let (Some(x), Some(t)) = (all_tensors(primals)?, all_tensors(tangents)?) else { return Ok(None) };
    if x.len() != t.len() || !x.iter().all(|x| x.dtype().is_differentiable()) {
        return Ok(None);
    }
    let trees = Trees { flatten, unflatten };
    let structure = RefCell::new(Structure::One);
    let run = |x: &[Tensor]| -> PyResult<Vec<Tensor>> {
        let (leaves, found) = trees.leaves(&applied(function, x, None)?)?;
        structure.replace(found);
        Ok(leaves)
    };
    let t: Vec<Option<Tensor>> = t.into_iter().map(Some).collect();
    let (out, moved) = transform::jvp(|x| run(x).map_err(foreign), &x, &t)?;
    let structure = structure.into_inner();
    Ok(Some((trees.build(py, &structure, out)?, trees.build(py, &structure, moved)?)))
}

/// Calls a Python function of these tensors.
fn applied<'py>(
    function: &Any<'py>,
    x: &[Tensor],
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Any<'py>> {
    let py = function.py();
    let argument = |x: &Tensor| Py::new(py, PyTensor::argument(x.clone()));
    let wrapped = x.iter().map(argument).collect::<PyResult<SmallVec<[Py<PyTensor>; 8]>>>()?;
    function.run(PyTuple::new(py, wrapped)?, kwargs)
}

/// Extracts an axis that is an integer or None; returns `None` for anything else.
fn axis_of(axis: &Any<'_>) -> Option<Option<i64>> {
    if axis.is_none() {
        return Some(None);
    }
    let is_int = axis.is_exact_instance_of::<PyInt>() && !axis.is_instance_of::<PyBool>();
    if is_int { axis.extract().ok().map(Some) } else { None }
}

/// Returns the batch axis of each argument and the batch size; `None` unless each axis is an integer or None
/// and all sizes agree.
fn batch_axes(x: &[Tensor], in_axes: &Any<'_>) -> Option<(Vec<Option<usize>>, usize)> {
    let given: SmallVec<[Option<i64>; 8]> = match in_axes.cast_exact::<PyTuple>() {
        Ok(tuple) if tuple.len() == x.len() => tuple.iter().map(|a| axis_of(&a)).collect::<Option<_>>()?,
        Ok(_) => return None,
        Err(_) => std::iter::repeat_n(axis_of(in_axes)?, x.len()).collect(),
    };
    let (mut axes, mut size) = (Vec::with_capacity(x.len()), None);
    for (x, axis) in x.iter().zip(given) {
        let axis = match axis {
            Some(axis) => Some(normalize_axis(axis, x.rank(), "vmap").ok()?),
            None => None,
        };
        let length = axis.map(|axis| x.shape().at(axis));
        if length.is_some() && size.is_some() && length != size {
            return None;
        }
        size = size.or(length);
        axes.push(axis);
    }
    Some((axes, size?))
}

/// Runs a function of tensors for a batch, with the batch axes of its results in front; None unless all
/// arguments are tensors, and their axes integers that fit together.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn _vmap_of_tensors(
    py: Python<'_>,
    function: &Any<'_>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
    in_axes: &Any<'_>,
    randomness: &str,
    flatten: &Any<'_>,
    unflatten: &Any<'_>,
) -> PyResult<Option<Py<PyAny>>> {
    let Some(x) = all_tensors(args)? else { return Ok(None) };
    let Some((axes, size)) = batch_axes(&x, in_axes) else { return Ok(None) };
    let trees = Trees { flatten, unflatten };
    let structure = RefCell::new(Structure::One);
    let run = |x: &[Tensor]| -> PyResult<Vec<Tensor>> {
        let (leaves, found) = trees.leaves(&applied(function, x, kwargs)?)?;
        structure.replace(found);
        Ok(leaves)
    };
    let level = batching(size, Randomness::named(randomness));
    let out = transform::vmap(level, |x| run(x).map_err(foreign), &x, &axes)?;
    let out = out.into_iter().map(|(y, axis)| in_front(&y, axis, size)).collect::<Result<_>>()?;
    trees.build(py, &structure.into_inner(), out).map(Some)
}

/// Moves the batch axis to the front, or broadcasts `y` along a new one.
fn in_front(y: &Tensor, axis: Option<usize>, size: usize) -> Result<Tensor> {
    match axis {
        Some(axis) => y.move_axis(axis, 0),
        None => y.expand(&y.shape().inserted(0, size)?),
    }
}

/// Concatenates two shapes.
fn chained(a: &Shape, b: &Shape) -> Result<Shape> {
    Shape::new(&a.iter().chain(b.iter()).collect::<SmallVec<[usize; 16]>>())
}

/// All unit vectors of the space of `x`, stacked along a new first axis.
fn basis(x: &Tensor) -> Result<Tensor> {
    let n = x.numel();
    Tensor::eye(n, n, x.dtype(), x.device())?.reshape(&x.shape().inserted(0, n)?)
}

/// The Jacobian of a function with one tensor as result with respect to the tensor that is argument `at`, row
/// by row. None if that is no floating point tensor; `one` makes a tensor of any other result, or raises.
#[pyfunction]
fn _jacrev_of_tensor(
    py: Python<'_>,
    function: &Any<'_>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
    at: isize,
    flatten: &Any<'_>,
    unflatten: &Any<'_>,
) -> PyResult<Option<Py<PyAny>>> {
    let Some(at) = position(at, args.len()) else { return Ok(None) };
    let call = Call { function, args, kwargs, at };
    let Some(x) = call.primal()? else { return Ok(None) };
    let trees = Trees { flatten, unflatten };
    let structure = RefCell::new(Structure::One);
    let run = |x: &[Tensor]| -> PyResult<Vec<Tensor>> {
        let (leaves, found) = trees.leaves(&call.result(&x[0])?)?;
        structure.replace(found);
        Ok(leaves)
    };
    let (out, pullback) = transform::vjp(|x| run(x).map_err(foreign), std::slice::from_ref(&x))?;
    let rows = py.detached(|| -> Result<Vec<Tensor>> {
        (0..out.len()).map(|i| jacobian_rows(&pullback, &out, i, &x)).collect()
    })?;
    trees.build(py, &structure.into_inner(), rows).map(Some)
}

/// The Jacobian of output `i`, of shape `output + input`.
fn jacobian_rows(pullback: &Pullback, out: &[Tensor], i: usize, x: &Tensor) -> Result<Tensor> {
    let y = &out[i];
    let pull = |g: Tensor| {
        let mut cotangents: Vec<Option<Tensor>> = vec![None; out.len()];
        cotangents[i] = Some(g);
        pullback.call(&cotangents, true)
    };
    let shape = chained(&y.shape(), &x.shape())?;
    if y.numel() == 1 {
        // One row needs no batch.
        return pull(y.ones_like()?)?.remove(0).reshape(&shape);
    }
    let size = y.numel();
    let basis = basis(y)?;
    let found =
        transform::vmap(batching(size, Randomness::Same), |g| pull(g[0].clone()), &[basis], &[Some(0)])?;
    let (rows, axis) = &found[0];
    in_front(rows, *axis, size)?.reshape(&shape)
}

/// The Jacobian of a function with respect to the tensor that is argument `at`, column by column; None if
/// that is no floating point tensor.
#[pyfunction]
fn _jacfwd_of_tensor(
    py: Python<'_>,
    function: &Any<'_>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
    at: isize,
    flatten: &Any<'_>,
    unflatten: &Any<'_>,
) -> PyResult<Option<Py<PyAny>>> {
    let Some(at) = position(at, args.len()) else { return Ok(None) };
    let call = Call { function, args, kwargs, at };
    let Some(x) = call.primal()? else { return Ok(None) };
    let trees = Trees { flatten, unflatten };
    let structure = RefCell::new(Structure::One);
    let run = |x: &[Tensor]| -> PyResult<Vec<Tensor>> {
        let (leaves, found) = trees.leaves(&call.result(&x[0])?)?;
        structure.replace(found);
        Ok(leaves)
    };
    let (size, primal) = (x.numel(), std::slice::from_ref(&x));
    let push =
        |t: &[Tensor]| Ok(transform::jvp(|x| run(x).map_err(foreign), primal, &[Some(t[0].clone())])?.1);
    let basis = basis(&x)?;
    let found = transform::vmap(batching(size, Randomness::Same), push, &[basis], &[Some(0)])?;
    let columns = found.into_iter().map(|(moved, axis)| {
        let moved = in_front(&moved, axis, size)?;
        let last = moved.rank() - 1;
        let shape = chained(&moved.shape().removed(0), &x.shape())?;
        moved.move_axis(0, last)?.reshape(&shape)?.contiguous()
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    trees.build(py, &structure.into_inner(), columns).map(Some)
}

/// Registers the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_grad_of_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(_jvp_of_tensors, m)?)?;
    m.add_function(wrap_pyfunction!(_vmap_of_tensors, m)?)?;
    m.add_function(wrap_pyfunction!(_jacrev_of_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(_jacfwd_of_tensor, m)?)
}
