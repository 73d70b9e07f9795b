//! Several tensors brought to one shape, or joined.

use crate::ops::views::join::{cat, stack};
use crate::py::args::{Tensors, members, shape_from};
use crate::py::prelude::*;
use crate::py::relative::operands;
use crate::py::tensor::attach::{apply as view_of, apply_all as view_all_of};

type Given<'a, 'py> = &'a Bound<'py, PyTuple>;

/// The members of a sequence as objects: tensors as they are, so that views of them are views.
fn objects<'py>(name: &str, given: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyTensor>>> {
    let parts = members(given)?.zip(operands(name, given)?);
    let own = |(x, t): (PyResult<Bound<'py, PyAny>>, Tensor)| match x?.cast_into::<PyTensor>() {
        Ok(own) => Ok(own),
        Err(_) => Bound::new(given.py(), PyTensor::from(t)),
    };
    parts.map(own).collect()
}

/// The shape of a grid over vectors of `lengths`, with those of the others than vector `i` as 1 in front.
fn along(lengths: &[usize], i: usize) -> Result<[Shape; 2]> {
    let mut own = vec![1; lengths.len()];
    own[i] = lengths[i];
    Ok([Shape::new(&own)?, Shape::new(lengths)?])
}

/// Returns views as a tuple of objects.
fn tuple(py: Python<'_>, views: impl Iterator<Item = PyResult<PyTensor>>) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, views.collect::<PyResult<Vec<_>>>()?)
}

/// The common shape of several.
fn common(name: &str, shapes: &[Shape]) -> Result<Shape> {
    let joined = shapes.iter().try_fold(Shape::SCALAR, |all, shape| all.broadcast(shape));
    joined.ok_or_else(|| {
        let listed: Vec<String> = shapes.iter().map(ToString::to_string).collect();
        Error::shape(format!("{name}: shapes {} do not broadcast", listed.join(", ")))
    })
}

/// The only list among arguments, or all of them.
fn one_list<'py>(tensors: Given<'_, 'py>) -> PyResult<(Bound<'py, PyAny>, bool)> {
    if tensors.len() == 1 {
        let only = tensors.get_item(0)?;
        if only.is_instance_of::<PyList>() || only.is_instance_of::<PyTuple>() {
            return Ok((only, true));
        }
    }
    Ok((tensors.clone().into_any(), false))
}

/// Gives a tensor at least `rank` axes: a vector is a row, a matrix the front of a block, as in NumPy.
fn at_least(x: &Tensor, rank: usize) -> Result<Tensor> {
    let n = x.numel();
    match (x.rank(), rank) {
        (own, least) if own >= least => Ok(x.clone()),
        (0 | 1, 1) => x.reshape(&Shape::new(&[n])?),
        (0 | 1, 2) => x.reshape(&Shape::new(&[1, n])?),
        (0 | 1, _) => x.reshape(&Shape::new(&[1, n, 1])?),
        _ => x.unsqueeze(-1),
    }
}

/// [`at_least`] of one tensor, or of each of several.
fn each_at_least<'py>(name: &str, tensors: Given<'_, 'py>, rank: usize) -> PyResult<Bound<'py, PyAny>> {
    let py = tensors.py();
    let (given, is_list) = one_list(tensors)?;
    let one = |x: Bound<'py, PyTensor>| match x.read().t.rank() < rank {
        true => Bound::new(py, view_of(&x, |x| at_least(x, rank))?),
        false => Ok(x.clone()),
    };
    let parts = objects(name, &given)?.into_iter().map(one).collect::<PyResult<Vec<_>>>()?;
    match &parts[..] {
        [only] if !is_list => Ok(only.clone().into_any()),
        _ => Ok(PyTuple::new(py, parts)?.into_any()),
    }
}

/// Joins the tensors of a sequence along an axis, each brought to a shape; `axis` may depend on the first.
fn stacked(
    name: &str, tensors: &Bound<'_, PyAny>, shaped: impl Fn(&Tensor) -> Result<Tensor>,
    axis: impl Fn(&Tensor) -> i64,
) -> PyResult<PyTensor> {
    let parts = operands(name, tensors)?.iter().map(shaped).collect::<Result<Vec<_>>>()?;
    let axis = parts.first().map_or(0, axis);
    run(tensors.py(), parts.iter().map(Tensor::numel).sum(), || cat(&parts, axis).named(name))
        .map(PyTensor::from)
}

/// Returns the elements of tensors as one vector, one tensor after the other; without derivatives.
#[pyfunction]
fn _flatten_tensors(tensors: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    let flat = |x: &Tensor| x.detach().reshape(&Shape::new(&[x.numel()])?);
    stacked("flatten_tensors", tensors, flat, |_| 0)
}

/// Returns views of a vector with the shapes of tensors, one after the other; what is left over is ignored.
#[pyfunction]
fn _unflatten_tensors(vector: &Bound<'_, PyTensor>, like: Tensors) -> PyResult<Vec<PyTensor>> {
    view_all_of(vector, |vector| {
        let mut start = 0;
        let part = |x: &Tensor| {
            start += x.numel();
            vector.narrow(0, start - x.numel(), x.numel())?.reshape(&x.shape())
        };
        like.0.iter().map(part).collect()
    })
}

/// Returns the coordinates of a grid: tensor `i` holds the `i`-th coordinate of every point.
///
/// Args:
///     tensors: the coordinates along each axis, vectors or numbers; or one list of them.
///     indexing: `"ij"` puts the first along the first axis, `"xy"` exchanges the first two axes.
#[pyfunction]
#[pyo3(signature = (*tensors, indexing="ij"))]
fn meshgrid<'py>(tensors: Given<'_, 'py>, indexing: &str) -> PyResult<Bound<'py, PyTuple>> {
    if !["ij", "xy"].contains(&indexing) {
        return Err(value_error(format!("meshgrid: indexing must be 'ij' or 'xy', got '{indexing}'")));
    }
    let given = objects("meshgrid", &one_list(tensors)?.0)?;
    if let Some(wrong) = given.iter().map(|x| x.read().t.shape()).find(|shape| shape.rank() > 1) {
        return Err(Error::shape(format!("meshgrid: vectors or numbers expected, got shape {wrong}")).into());
    }
    let lengths: Vec<usize> = given.iter().map(|x| x.read().t.numel()).collect();
    let exchanged = indexing == "xy" && given.len() > 1;
    let coordinate = |(i, x): (usize, &Bound<'py, PyTensor>)| {
        let [own, all] = along(&lengths, i)?;
        view_of(x, |x| {
            let wide = x.reshape(&own)?.expand(&all)?;
            if exchanged { wide.transpose(0, 1) } else { Ok(wide) }
        })
    };
    tuple(tensors.py(), given.iter().enumerate().map(coordinate))
}

/// Expands all tensors to their common shape.
#[pyfunction]
#[pyo3(signature = (*tensors))]
fn broadcast_tensors<'py>(tensors: Given<'_, 'py>) -> PyResult<Bound<'py, PyTuple>> {
    let given = objects("broadcast_tensors", tensors)?;
    let shape = common("broadcast_tensors", &given.iter().map(|x| x.read().t.shape()).collect::<Vec<_>>())?;
    tuple(tensors.py(), given.iter().map(|x| view_of(x, |x| x.expand(&shape))))
}

/// Returns the common shape of operands of these shapes, each a sequence of lengths or the length of a
/// vector.
#[pyfunction]
#[pyo3(signature = (*shapes))]
fn broadcast_shapes<'py>(shapes: Given<'_, 'py>) -> PyResult<Bound<'py, PyTuple>> {
    let given = shapes.iter().map(|shape| shape_from(&shape)).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(shapes.py(), common("broadcast_shapes", &given)?.iter())
}

/// Joins tensors along the first axis; vectors become rows.
#[pyfunction]
fn vstack(tensors: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    stacked("vstack", tensors, |x| at_least(x, 2), |_| 0)
}

/// Joins tensors along the second axis, vectors along their only one.
#[pyfunction]
fn hstack(tensors: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    stacked("hstack", tensors, |x| at_least(x, 1), |first| i64::from(first.rank() > 1))
}

/// Joins tensors along the third axis, after `atleast_3d`.
#[pyfunction]
fn dstack(tensors: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    stacked("dstack", tensors, |x| at_least(x, 3), |_| 2)
}

/// Joins tensors along the second axis; numbers and vectors are columns.
#[pyfunction]
fn column_stack(tensors: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    let column = |x: &Tensor| if x.rank() > 1 { Ok(x.clone()) } else { at_least(x, 1)?.unsqueeze(-1) };
    stacked("column_stack", tensors, column, |_| 1)
}

/// Returns numbers as vectors of one element, everything else as it is.
#[pyfunction]
#[pyo3(signature = (*tensors))]
fn atleast_1d<'py>(tensors: Given<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    each_at_least("atleast_1d", tensors, 1)
}

/// Returns numbers and vectors as matrices of one row, everything else as it is.
#[pyfunction]
#[pyo3(signature = (*tensors))]
fn atleast_2d<'py>(tensors: Given<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    each_at_least("atleast_2d", tensors, 2)
}

/// Gives tensors at least three axes: a vector along the second axis, a matrix along the first two.
#[pyfunction]
#[pyo3(signature = (*tensors))]
fn atleast_3d<'py>(tensors: Given<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    each_at_least("atleast_3d", tensors, 3)
}

/// Makes a matrix with these matrices along its diagonal, zero elsewhere; vectors are rows.
#[pyfunction]
#[pyo3(signature = (*tensors))]
fn block_diag(py: Python<'_>, tensors: Given<'_, '_>) -> PyResult<PyTensor> {
    let given = operands("block_diag", tensors)?;
    let blocks = given.iter().map(|x| at_least(x, 2)).collect::<Result<Vec<_>>>()?;
    if blocks.iter().any(|x| x.rank() != 2) {
        let shapes: Vec<String> = blocks.iter().map(|x| x.shape().to_string()).collect();
        return Err(
            Error::shape(format!("block_diag: matrices expected, got shapes {}", shapes.join(", "))).into()
        );
    }
    let width = |blocks: &[Tensor]| blocks.iter().map(|x| x.shape().at(1) as i64).sum::<i64>();
    let joined = || -> Result<Tensor> {
        let row =
            |(i, x): (usize, &Tensor)| x.pad(&[(0, 0), (width(&blocks[..i]), width(&blocks[i + 1..]))], 0.0);
        let rows = blocks.iter().enumerate().map(row).collect::<Result<Vec<_>>>()?;
        match rows.is_empty() {
            true => Tensor::zeros(Shape::new(&[1, 0])?, DType::F32, Device::Cpu),
            false => cat(&rows, 0),
        }
    };
    run(py, blocks.iter().map(Tensor::numel).sum(), || joined().named("block_diag")).map(PyTensor::from)
}

/// Returns all tuples with one element of each vector, as rows.
#[pyfunction]
#[pyo3(signature = (*tensors))]
fn cartesian_prod(py: Python<'_>, tensors: Given<'_, '_>) -> PyResult<PyTensor> {
    let given = objects("cartesian_prod", tensors)?;
    if let [only] = &given[..] {
        return view_of(only, |x| x.flatten(0, -1));
    }
    let vectors = given.iter().map(value).collect::<PyResult<Vec<_>>>()?;
    let lengths: Vec<usize> = vectors.iter().map(Tensor::numel).collect();
    let column = |(i, x): (usize, &Tensor)| {
        let [own, all] = along(&lengths, i)?;
        x.reshape(&own)?.expand(&all)?.flatten(0, -1)
    };
    let columns = || vectors.iter().enumerate().map(column).collect::<Result<Vec<_>>>();
    let elements = lengths.iter().fold(1, |all: usize, &n| all.saturating_mul(n));
    run(py, elements, || stack(&columns()?, 1).named("cartesian_prod")).map(PyTensor::from)
}

exports! {
    functions: _flatten_tensors, _unflatten_tensors, meshgrid, broadcast_tensors, broadcast_shapes, vstack,
        hstack, dstack, column_stack,
        atleast_1d, atleast_2d, atleast_3d, block_diag, cartesian_prod
}
