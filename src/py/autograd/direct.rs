//! The plain cases of the transforms in one call: functions of tensors, and gradients by a tree of tensors.
//!
//! For every other case (several arguments, auxiliary data, numbers among the leaves, names of axes) the
//! functions of this file return `None` before calling anything, and the Python package takes arguments and
//! results apart itself (`python/wengert/transforms/__init__.py`).

use crate::array::shape::normalize_axis;
use crate::autodiff::transform::{self, Pullback};
use crate::interp::Randomness;
use crate::ops::complex::join;
use crate::py::args::collected;
use crate::py::prelude::*;
use crate::py::tree::TreeDef;
use pyo3::IntoPyObjectExt;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::slice::from_ref;

type Any<'py> = Bound<'py, PyAny>;

/// Returns the tensors of a tuple, if it holds nothing else.
fn all_tensors(tuple: &Bound<'_, PyTuple>) -> PyResult<Option<Vec<Tensor>>> {
    let all = tuple.iter().all(|x| x.is_instance_of::<PyTensor>());
    all.then(|| collected(tuple)).transpose()
}

/// Returns the tensors among leaves, if there are no others.
fn tensors_of(leaves: &[Any<'_>]) -> PyResult<Option<Vec<Tensor>>> {
    let tensor = |x: &Any<'_>| x.cast::<PyTensor>().ok().map(|t| value(t)).transpose();
    leaves.iter().map(tensor).collect::<PyResult<_>>()
}

/// A Python function with all of its arguments.
struct Call<'a, 'py> {
    function: &'a Any<'py>,
    args: &'a Bound<'py, PyTuple>,
    kwargs: Option<&'a Bound<'py, PyDict>>,
    /// Index of the first argument that the transform replaces.
    at: usize,
    /// The structure of that argument, if it is a tree of tensors: then it alone is replaced.
    tree: Option<TreeDef>,
    /// The structure of the latest result.
    structure: RefCell<Option<TreeDef>>,
}

impl<'a, 'py> Call<'a, 'py> {
    /// The call of a function of tensors.
    fn of_tensors(
        function: &'a Any<'py>, args: &'a Bound<'py, PyTuple>, kwargs: Option<&'a Bound<'py, PyDict>>,
    ) -> Self {
        Call { function, args, kwargs, at: 0, tree: None, structure: RefCell::default() }
    }

    /// The call, and the leaves of argument `at` (which may count from the end) if all of them are
    /// differentiable tensors, and there is one.
    fn of_argument(
        function: &'a Any<'py>, args: &'a Bound<'py, PyTuple>, kwargs: Option<&'a Bound<'py, PyDict>>,
        at: isize,
    ) -> PyResult<Option<(Self, Vec<Tensor>)>> {
        let Ok(at) = normalize_axis(at as i64, args.len(), "argnums") else { return Ok(None) };
        let argument = args.get_item(at)?;
        let (leaves, tree) = match argument.is_instance_of::<PyTensor>() {
            true => (vec![argument], None),
            false => {
                let (leaves, tree) = TreeDef::of(&argument, None)?;
                (leaves, Some(tree))
            }
        };
        let Some(x) = tensors_of(&leaves)? else { return Ok(None) };
        let has_derivatives = !x.is_empty() && x.iter().all(|x| x.dtype().is_differentiable());
        let call = Call { function, args, kwargs, at, tree, structure: RefCell::default() };
        Ok(has_derivatives.then_some((call, x)))
    }

    /// [`Call::of_argument`] if that is one tensor.
    fn of_tensor(
        function: &'a Any<'py>, args: &'a Bound<'py, PyTuple>, kwargs: Option<&'a Bound<'py, PyDict>>,
        at: isize,
    ) -> PyResult<Option<(Self, Tensor)>> {
        let found = Call::of_argument(function, args, kwargs, at)?.filter(|(call, _)| call.tree.is_none());
        Ok(found.map(|(call, mut x)| (call, x.remove(0))))
    }

    /// Calls the function with `x` in the place of as many arguments, or of the leaves of one.
    fn result(&self, x: &[Tensor]) -> PyResult<Any<'py>> {
        let py = self.function.py();
        let leaf = |x: &Tensor| PyTensor::argument(x.clone()).into_bound_py_any(py);
        let replaced: SmallVec<[Any<'py>; 8]> = match &self.tree {
            Some(tree) => SmallVec::from_iter([tree.build(py, x.iter().map(leaf))?]),
            None => x.iter().map(leaf).collect::<PyResult<_>>()?,
        };
        let argument = |(i, given): (usize, Any<'py>)| {
            i.checked_sub(self.at).and_then(|i| replaced.get(i)).cloned().unwrap_or(given)
        };
        let args: SmallVec<[Any<'py>; 8]> = self.args.iter().enumerate().map(argument).collect();
        self.function.run(PyTuple::new(py, args)?, self.kwargs)
    }

    /// [`Call::result`] as leaves; remembers its structure. `flatten` takes results apart of which a leaf is
    /// no tensor, or raises.
    fn leaves(&self, x: &[Tensor], flatten: &Any<'py>) -> Result<Vec<Tensor>> {
        let taken_apart = || {
            let result = self.result(x)?;
            let (leaves, structure) = TreeDef::of(&result, None)?;
            if let Some(leaves) = tensors_of(&leaves)? {
                return Ok((leaves, structure));
            }
            let (leaves, _): (_, Any<'py>) = flatten.call1((result,))?.extract()?;
            Ok((leaves, structure))
        };
        let (leaves, structure) = taken_apart().map_err(foreign)?;
        self.structure.replace(Some(structure));
        Ok(leaves)
    }

    /// Puts leaves together again as those of the latest result were.
    fn build(&self, leaves: Vec<Tensor>) -> PyResult<Any<'py>> {
        let py = self.function.py();
        let structure = self.structure.borrow();
        let structure = structure.as_ref().ok_or_else(|| value_error("the function was not called"))?;
        structure.build(py, leaves.into_iter().map(|x| x.into_bound_py_any(py)))
    }
}

/// Value and gradient of a scalar function with respect to argument `at`; None unless that is a floating
/// point tensor or a tree of such. `scalar` makes a tensor of any other result, or raises.
#[pyfunction]
fn _grad_of_argument<'py>(
    function: &Any<'py>, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>, at: isize,
    scalar: &Any<'py>,
) -> PyResult<Option<(Tensor, Any<'py>)>> {
    let py = function.py();
    let Some((call, x)) = Call::of_argument(function, args, kwargs, at)? else { return Ok(None) };
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
    let (mut out, pullback) = transform::vjp(|x| run(x).map_err(foreign), &x)?;
    let out = out.remove(0);
    let seed = [Some(out.ones_like()?)];
    let gradients = py.detached(|| pullback.call(&seed, false))?;
    let mut gradients = gradients.into_iter().map(|x| x.into_bound_py_any(py));
    let gradient = match &call.tree {
        Some(tree) => tree.build(py, gradients)?,
        None => gradients.next().ok_or_else(|| value_error("grad: no gradient came back"))??,
    };
    Ok(Some((out, gradient)))
}

/// Value of a function of tensors and its derivative along others; None unless all are tensors that fit.
#[pyfunction]
fn _jvp_of_tensors<'py>(
    function: &Any<'py>, primals: &Bound<'py, PyTuple>, tangents: &Bound<'py, PyTuple>, flatten: &Any<'py>,
) -> PyResult<Option<(Any<'py>, Any<'py>)>> {
    let (Some(x), Some(t)) = (all_tensors(primals)?, all_tensors(tangents)?) else { return Ok(None) };
    if x.len() != t.len() || !x.iter().all(|x| x.dtype().is_differentiable()) {
        return Ok(None);
    }
    let call = Call::of_tensors(function, primals, None);
    let t: Vec<Option<Tensor>> = t.into_iter().map(Some).collect();
    let (out, moved) = transform::jvp(|x| call.leaves(x, flatten), &x, &t)?;
    Ok(Some((call.build(out)?, call.build(moved)?)))
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
    randomness: &str, flatten: &Any<'py>,
) -> PyResult<Option<Any<'py>>> {
    let Some(x) = all_tensors(args)? else { return Ok(None) };
    let Some((axes, size)) = batch_axes(&x, in_axes) else { return Ok(None) };
    let call = Call::of_tensors(function, args, kwargs);
    let randomness = Randomness::named(randomness);
    let out = transform::vmap_in_front(size, randomness, |x| call.leaves(x, flatten), &x, &axes)?;
    call.build(out).map(Some)
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
    flatten: &Any<'py>,
) -> PyResult<Option<Any<'py>>> {
    let Some((call, x)) = Call::of_tensor(function, args, kwargs, at)? else { return Ok(None) };
    let (out, pullback) = transform::vjp(|x| interp::apart(|| call.leaves(x, flatten)), from_ref(&x))?;
    let rows = || (0..out.len()).map(|i| jacobian_rows(&pullback, &out, i, &x)).collect::<Result<_>>();
    call.build(function.py().detached(rows)?).map(Some)
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
    let part = |value| Tensor::scalar(value, y.dtype().real(), y.device());
    let unit = if y.dtype().is_complex() { join(&part(0.0)?, &part(1.0)?)? } else { part(1.0)? };
    // One row needs no batch.
    let rows = |turned: bool| -> Result<Tensor> {
        let pull = |g: Tensor| pull(if turned { g.mul(&unit)? } else { g });
        let mut rows = if y.numel() == 1 { pull(y.ones_like()?)? } else { on_basis(y, pull)? };
        rows.remove(0).reshape(&shape)
    };
    if y.dtype().is_complex() && !x.dtype().is_complex() {
        // A real tensor gets the real part of a gradient: the imaginary one is that of a turned cotangent.
        return join(&rows(false)?, &rows(true)?);
    }
    rows(false)
}

/// The Jacobian of a function with respect to the tensor that is argument `at`, column by column; None if
/// that is no floating point tensor.
#[pyfunction]
fn _jacfwd_of_tensor<'py>(
    function: &Any<'py>, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>, at: isize,
    flatten: &Any<'py>,
) -> PyResult<Option<Any<'py>>> {
    let Some((call, x)) = Call::of_tensor(function, args, kwargs, at)? else { return Ok(None) };
    let push = |t| Ok(transform::jvp(|x| call.leaves(x, flatten), from_ref(&x), &[Some(t)])?.1);
    let columns = on_basis(&x, push)?.into_iter().map(|moved| {
        let last = moved.rank() - 1;
        let shape = chained(&moved.shape().removed(0), &x.shape())?;
        moved.move_axis(0, last)?.reshape(&shape)?.contiguous()
    });
    call.build(columns.collect::<Result<_>>()?).map(Some)
}

exports! {
    functions: _grad_of_argument, _jvp_of_tensors, _vmap_of_tensors, _jacrev_of_tensor, _jacfwd_of_tensor
}
