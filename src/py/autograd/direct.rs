//! Fast paths of the transforms for functions whose arguments are tensors.
//!
//! The Python package flattens arguments and unflattens results (`python/wengert/transforms/__init__.py`),
//! which costs more than a small function does. The functions of this file handle the plain cases in one
//! call. For every other case they return `None` before calling anything, and the general path is taken.
//! Results may be trees: the helpers for those are passed in. `flatten(result)` gives leaves and structure,
//! `unflatten(structure, leaves)` the result again.

use crate::array::shape::normalize_axis;
use crate::autodiff::transform::{self, Pullback};
use crate::interp::Randomness;
use crate::py::args::collected;
use crate::py::prelude::*;
use pyo3::IntoPyObjectExt;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::slice::from_ref;

type Any<'py> = Bound<'py, PyAny>;

/// How a result is rebuilt from its leaves.
#[derive(Default)]
enum Structure {
    #[default]
    One,
    Tuple,
    Tree(Py<PyAny>),
}

/// Returns the tensors of a tuple, if it holds nothing else.
fn all_tensors(tuple: &Bound<'_, PyTuple>) -> PyResult<Option<Vec<Tensor>>> {
    let all = tuple.iter().all(|x| x.is_instance_of::<PyTensor>());
    all.then(|| collected(tuple)).transpose()
}

/// A Python function with all of its arguments.
struct Call<'a, 'py> {
    function: &'a Any<'py>,
    args: &'a Bound<'py, PyTuple>,
    kwargs: Option<&'a Bound<'py, PyDict>>,
    /// Index of the first argument that the transform replaces.
    at: usize,
    /// The structure of the latest result.
    structure: RefCell<Structure>,
}

impl<'a, 'py> Call<'a, 'py> {
    /// The call, and the argument `at` (which may count from the end) if that is a differentiable tensor.
    fn of_tensor(
        function: &'a Any<'py>, args: &'a Bound<'py, PyTuple>, kwargs: Option<&'a Bound<'py, PyDict>>,
        at: isize,
    ) -> PyResult<Option<(Self, Tensor)>> {
        let Ok(at) = normalize_axis(at as i64, args.len(), "argnums") else { return Ok(None) };
        let x = args.get_item(at)?;
        let Ok(x) = x.cast::<PyTensor>() else { return Ok(None) };
        let x = value(x)?;
        let call = Call { function, args, kwargs, at, structure: RefCell::default() };
        Ok(x.dtype().is_differentiable().then_some((call, x)))
    }

    /// Calls the function with `x` in the place of as many arguments.
    fn result(&self, x: &[Tensor]) -> PyResult<Any<'py>> {
        let py = self.function.py();
        let argument = |(i, given): (usize, Any<'py>)| match i.checked_sub(self.at).and_then(|i| x.get(i)) {
            Some(x) => PyTensor::argument(x.clone()).into_bound_py_any(py),
            None => Ok(given),
        };
        let args = self.args.iter().enumerate().map(argument);
        let args = args.collect::<PyResult<SmallVec<[Any<'py>; 8]>>>()?;
        self.function.run(PyTuple::new(py, args)?, self.kwargs)
    }

    /// [`Call::result`] as leaves; remembers its structure.
    fn leaves(&self, x: &[Tensor], flatten: &Any<'py>) -> Result<Vec<Tensor>> {
        let taken_apart = || {
            let result = self.result(x)?;
            if let Ok(t) = result.cast::<PyTensor>() {
                return Ok((vec![value(t)?], Structure::One));
            }
            if let Ok(tuple) = result.cast_exact::<PyTuple>()
                && let Some(leaves) = all_tensors(tuple)?
            {
                return Ok((leaves, Structure::Tuple));
            }
            let (leaves, structure): (_, Py<PyAny>) = flatten.call1((result,))?.extract()?;
            Ok((leaves, Structure::Tree(structure)))
        };
        let (leaves, structure) = taken_apart().map_err(foreign)?;
        self.structure.replace(structure);
        Ok(leaves)
    }

    /// Puts leaves together again as those of the latest result were.
    fn build(&self, leaves: Vec<Tensor>, unflatten: &Any<'py>) -> PyResult<Any<'py>> {
        let py = self.function.py();
        match &*self.structure.borrow() {
            Structure::One => leaves.into_iter().next().into_bound_py_any(py),
            Structure::Tuple => PyTuple::new(py, leaves)?.into_bound_py_any(py),
            Structure::Tree(structure) => unflatten.call1((structure, leaves)),
        }
    }
}

/// Value and gradient of a scalar function with respect to the tensor that is argument `at`; None if it is no
/// floating point tensor. `scalar` makes a tensor of any other result, or raises.
#[pyfunction]
fn _grad_of_tensor(
    function: &Any<'_>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>, at: isize,
    scalar: &Any<'_>,
) -> PyResult<Option<(Tensor, Tensor)>> {
    let Some((call, x)) = Call::of_tensor(function, args, kwargs, at)? else { return Ok(None) };
    let run = |x: &[Tensor]| -> PyResult<Vec<Tensor>> {
        let result = call.result(x)?;
        if let Ok(t) = result.cast::<PyTensor>() {
            let t = value(t)?;
            if t.rank() == 0 && t.dtype().is_float() {
                return Ok(vec![t]);
            }
        }
        Ok(vec![scalar.call1((result, function))?.extract()?])
    };
    let (mut out, pullback) = transform::vjp(|x| run(x).map_err(foreign), &[x])?;
    let out = out.remove(0);
    let seed = [Some(out.ones_like()?)];
    let mut gradient = function.py().detached(|| pullback.call(&seed, false))?;
    Ok(Some((out, gradient.remove(0))))
}

/// Value of a function of tensors and its derivative along others; None unless all are tensors that fit.
#[pyfunction]
fn _jvp_of_tensors<'py>(
    function: &Any<'py>, primals: &Bound<'py, PyTuple>, tangents: &Bound<'py, PyTuple>, flatten: &Any<'py>,
    unflatten: &Any<'py>,
) -> PyResult<Option<(Any<'py>, Any<'py>)>> {
    let (Some(x), Some(t)) = (all_tensors(primals)?, all_tensors(tangents)?) else { return Ok(None) };
    if x.len() != t.len() || !x.iter().all(|x| x.dtype().is_differentiable()) {
        return Ok(None);
    }
    let call = Call { function, args: primals, kwargs: None, at: 0, structure: RefCell::default() };
    let t: Vec<Option<Tensor>> = t.into_iter().map(Some).collect();
    let (out, moved) = transform::jvp(|x| call.leaves(x, flatten), &x, &t)?;
    Ok(Some((call.build(out, unflatten)?, call.build(moved, unflatten)?)))
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
fn _vmap_of_tensors<'py>(
    function: &Any<'py>, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>, in_axes: &Any<'py>,
    randomness: &str, flatten: &Any<'py>, unflatten: &Any<'py>,
) -> PyResult<Option<Any<'py>>> {
    let Some(x) = all_tensors(args)? else { return Ok(None) };
    let Some((axes, size)) = batch_axes(&x, in_axes) else { return Ok(None) };
    let call = Call { function, args, kwargs, at: 0, structure: RefCell::default() };
    let randomness = Randomness::named(randomness);
    let out = transform::vmap_in_front(size, randomness, |x| call.leaves(x, flatten), &x, &axes)?;
    call.build(out, unflatten).map(Some)
}

/// Concatenates two shapes.
fn chained(a: &Shape, b: &Shape) -> Result<Shape> {
    Shape::new(&a.iter().chain(b.iter()).collect::<SmallVec<[usize; 16]>>())
}

/// Runs `f` for all unit vectors of the space of `x` at once; its results have their batch axis in front.
fn on_basis(x: &Tensor, f: impl Fn(Tensor) -> Result<Vec<Tensor>>) -> Result<Vec<Tensor>> {
    let size = x.numel();
    let basis = Tensor::eye(size, size, x.dtype(), x.device())?.reshape(&x.shape().inserted(0, size)?)?;
    transform::vmap_in_front(size, Randomness::Same, |unit| f(unit[0].clone()), &[basis], &[Some(0)])
}

/// The Jacobian of a function with one tensor as result with respect to the tensor that is argument `at`, row
/// by row. None if that is no floating point tensor; `one` makes a tensor of any other result, or raises.
#[pyfunction]
fn _jacrev_of_tensor<'py>(
    function: &Any<'py>, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>, at: isize,
    flatten: &Any<'py>, unflatten: &Any<'py>,
) -> PyResult<Option<Any<'py>>> {
    let Some((call, x)) = Call::of_tensor(function, args, kwargs, at)? else { return Ok(None) };
    let (out, pullback) = transform::vjp(|x| call.leaves(x, flatten), from_ref(&x))?;
    let rows = || (0..out.len()).map(|i| jacobian_rows(&pullback, &out, i, &x)).collect::<Result<_>>();
    call.build(function.py().detached(rows)?, unflatten).map(Some)
}

/// The Jacobian of output `i`, of shape `output + input`.
fn jacobian_rows(pullback: &Pullback, out: &[Tensor], i: usize, x: &Tensor) -> Result<Tensor> {
    let y = &out[i];
    let pull = |g: Tensor| {
        let mut cotangents: Vec<Option<Tensor>> = vec![None; out.len()];
        cotangents[i] = Some(g);
        pullback.call(&cotangents, true)
    };
    // One row needs no batch.
    let mut rows = if y.numel() == 1 { pull(y.ones_like()?)? } else { on_basis(y, pull)? };
    rows.remove(0).reshape(&chained(&y.shape(), &x.shape())?)
}

/// The Jacobian of a function with respect to the tensor that is argument `at`, column by column; None if
/// that is no floating point tensor.
#[pyfunction]
fn _jacfwd_of_tensor<'py>(
    function: &Any<'py>, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>, at: isize,
    flatten: &Any<'py>, unflatten: &Any<'py>,
) -> PyResult<Option<Any<'py>>> {
    let Some((call, x)) = Call::of_tensor(function, args, kwargs, at)? else { return Ok(None) };
    let push = |t| Ok(transform::jvp(|x| call.leaves(x, flatten), from_ref(&x), &[Some(t)])?.1);
    let columns = on_basis(&x, push)?.into_iter().map(|moved| {
        let last = moved.rank() - 1;
        let shape = chained(&moved.shape().removed(0), &x.shape())?;
        moved.move_axis(0, last)?.reshape(&shape)?.contiguous()
    });
    call.build(columns.collect::<Result<_>>()?, unflatten).map(Some)
}

exports! {
    functions: _grad_of_tensor, _jvp_of_tensors, _vmap_of_tensors, _jacrev_of_tensor, _jacfwd_of_tensor
}
