//! Methods that change the shape, order or place of elements, and conversions of dtype and device.

use crate::error::{Error, Result};
use crate::ops::view::{self};
use crate::py::args::{Dims, inferred_shape, integers, shape};
use crate::py::error::{type_error, value_error};
use crate::py::rearrange::{diagonal, diagonal_matrix, expanded, moved, pieces, rolled, tiled};
use crate::py::tensor::PyTensor;
use crate::shape::Shape;
use crate::tensor::Tensor;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Views as a tuple of tensors.
fn views<'py>(py: Python<'py>, parts: Vec<Tensor>) -> PyResult<Bound<'py, PyTuple>> {
    let parts = parts.into_iter().map(|t| Py::new(py, PyTensor::sharing(t))).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, parts)
}

/// The axes exchanged by a transposition, under any of their names.
fn two(a: Option<i64>, b: Option<i64>, name: &str) -> PyResult<(i64, i64)> {
    match (a, b) {
        (Some(a), Some(b)) => Ok((a, b)),
        _ => Err(type_error(format!("{name}: two axes expected"))),
    }
}

#[pymethods]
impl PyTensor {
    /// The same elements in row-major order with another shape; one length may be -1. Shares memory where it
    /// can.
    #[pyo3(signature = (*shape))]
    fn reshape(&self, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let shape = inferred_shape(&integers(shape)?, self.t.numel())?;
        self.apply_view(|x| x.reshape(&shape))
    }

    /// The same memory with another shape. Raises ShapeError where the layout would need a copy: use reshape.
    #[pyo3(signature = (*shape))]
    fn view(&self, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let shape = inferred_shape(&integers(shape)?, self.t.numel())?;
        if let Some(array) = self.t.concrete()
            && array.shape().numel() == shape.numel()
            && array.reshape_view(&shape).is_none()
        {
            return Err(Error::shape(format!(
                "view: a tensor of shape {} with strides {:?} has no view of shape {shape}; use reshape, which copies",
                array.shape(),
                array.strides()
            ))
            .into());
        }
        self.apply_view(|x| x.reshape(&shape))
    }

    /// This tensor with the shape of `other`; as `reshape`.
    fn view_as(&self, other: &PyTensor) -> PyResult<PyTensor> {
        self.apply_view(|x| x.reshape(&other.t.shape()))
    }

    /// This tensor with the shape of `other`.
    fn reshape_as(&self, other: &PyTensor) -> PyResult<PyTensor> {
        self.apply_view(|x| x.reshape(&other.t.shape()))
    }

    /// Axes in the order given.
    #[pyo3(signature = (*dims))]
    fn permute(&self, dims: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let order = integers(dims)?;
        self.apply_view(|x| x.permute(&order))
    }

    /// Two axes exchanged; without arguments, all axes reversed.
    #[pyo3(signature = (dim0=None, dim1=None, *, axis0=None, axis1=None))]
    fn transpose(
        &self,
        dim0: Option<i64>,
        dim1: Option<i64>,
        axis0: Option<i64>,
        axis1: Option<i64>,
    ) -> PyResult<PyTensor> {
        if dim0.or(dim1).or(axis0).or(axis1).is_none() {
            return self.reversed();
        }
        let (a, b) = two(dim0.or(axis0), dim1.or(axis1), "transpose")?;
        self.apply_view(|x| x.transpose(a, b))
    }

    /// Two axes exchanged.
    fn swapaxes(&self, axis0: i64, axis1: i64) -> PyResult<PyTensor> {
        self.apply_view(|x| x.transpose(axis0, axis1))
    }

    /// The matrix transposed; tensors with fewer than two axes are returned as they are.
    fn t(&self) -> PyResult<PyTensor> {
        if self.t.rank() > 2 {
            return Err(Error::shape(format!(
                "t: at most two axes expected, got shape {}; use mT or transpose",
                self.t.shape()
            ))
            .into());
        }
        self.reversed()
    }

    /// All axes in reverse order.
    #[getter(T)]
    fn reversed(&self) -> PyResult<PyTensor> {
        let order: Vec<i64> = (0..self.t.rank() as i64).rev().collect();
        self.apply_view(|x| x.permute(&order))
    }

    /// The last two axes exchanged.
    #[getter(mT)]
    fn matrix_transposed(&self) -> PyResult<PyTensor> {
        self.apply_view(|x| x.transpose(-2, -1))
    }

    /// Axes moved to new positions, the others in order.
    fn movedim(&self, source: Dims, destination: Dims) -> PyResult<PyTensor> {
        let (from, to) = (source.0.unwrap_or_default(), destination.0.unwrap_or_default());
        self.apply_view(|x| moved(x, &from, &to))
    }

    /// Axes moved to new positions, the others in order.
    fn moveaxis(&self, source: Dims, destination: Dims) -> PyResult<PyTensor> {
        self.movedim(source, destination)
    }

    /// Without the axes of length 1, or only those in `dim`.
    #[pyo3(signature = (dim=Dims(None), *, axis=None))]
    fn squeeze(&self, dim: Dims, axis: Option<Dims>) -> PyResult<PyTensor> {
        let dims = dim.or(axis);
        self.apply_view(|x| x.squeeze(dims.get()))
    }

    /// With a new axis of length 1 at `dim`.
    #[pyo3(signature = (dim=None, *, axis=None))]
    fn unsqueeze(&self, dim: Option<i64>, axis: Option<i64>) -> PyResult<PyTensor> {
        let at =
            dim.or(axis).ok_or_else(|| type_error("unsqueeze: the position of the new axis expected"))?;
        self.apply_view(|x| x.unsqueeze(at))
    }

    /// Broadcast to a larger shape without a copy; -1 keeps a length.
    #[pyo3(signature = (*sizes))]
    fn expand(&self, sizes: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let wanted = expanded(&self.t.shape(), &integers(sizes)?)?;
        self.apply_view(|x| x.expand(&wanted))
    }

    /// Broadcast to the shape of `other`.
    fn expand_as(&self, other: &PyTensor) -> PyResult<PyTensor> {
        self.apply_view(|x| x.expand(&other.t.shape()))
    }

    /// Broadcast to `shape` without a copy.
    #[pyo3(signature = (*shape))]
    fn broadcast_to(&self, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        self.expand(shape)
    }

    /// Axes `start_dim` to `end_dim` merged into one.
    #[pyo3(signature = (start_dim=0, end_dim=-1))]
    fn flatten(&self, start_dim: i64, end_dim: i64) -> PyResult<PyTensor> {
        self.apply_view(|x| x.flatten(start_dim, end_dim))
    }

    /// All elements in one axis.
    fn ravel(&self) -> PyResult<PyTensor> {
        self.apply_view(|x| x.flatten(0, -1))
    }

    /// Axis `dim` split into axes of these lengths; one may be -1.
    fn unflatten(&self, dim: i64, sizes: Vec<i64>) -> PyResult<PyTensor> {
        let own = self.t.shape();
        let i = own.axis(dim, "unflatten")?;
        let parts = inferred_shape(&sizes, own.at(i))?;
        let mut dims = own.to_vec();
        dims.splice(i..=i, parts.iter());
        let wanted = Shape::new(&dims)?;
        self.apply_view(|x| x.reshape(&wanted))
    }

    /// `length` elements from `start` along `dim`.
    fn narrow(&self, dim: i64, start: i64, length: usize) -> PyResult<PyTensor> {
        let size = self.t.shape().at(self.t.shape().axis(dim, "narrow")?) as i64;
        let start = if start < 0 { start + size } else { start };
        let start = usize::try_from(start)
            .map_err(|_| value_error(format!("narrow: start {start} is out of range")))?;
        self.apply_view(|x| x.narrow(dim, start, length))
    }

    /// The element at `index` along `dim`, without that axis.
    fn select(&self, dim: i64, index: i64) -> PyResult<PyTensor> {
        self.apply_view(|x| x.select_index(dim, index))
    }

    /// Reversed along `dims`.
    #[pyo3(signature = (*dims))]
    fn flip(&self, dims: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let axes = integers(dims)?;
        Ok(PyTensor::from(self.t.flip(&axes)?))
    }

    /// Elements shifted by `shifts` along `dims`, those pushed out coming back in at the other end.
    #[pyo3(signature = (shifts, dims=Dims(None)))]
    fn roll(&self, shifts: Dims, dims: Dims) -> PyResult<PyTensor> {
        let shifts = shifts.0.unwrap_or_default();
        let Some(dims) = dims.0 else {
            let flat = rolled(&self.t.flatten(0, -1)?, &shifts, &[0])?;
            return Ok(flat.reshape(&self.t.shape())?.into());
        };
        Ok(rolled(&self.t, &shifts, &dims)?.into())
    }

    /// Parts of `size` elements (or of these sizes) along `dim`, as views.
    #[pyo3(signature = (split_size, dim=0, *, axis=None))]
    fn split<'py>(
        &self,
        py: Python<'py>,
        split_size: Dims,
        dim: i64,
        axis: Option<i64>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let axis = axis.unwrap_or(dim);
        let length = self.t.shape().at(self.t.shape().axis(axis, "split")?);
        let sizes = match split_size.0.as_deref() {
            Some([n]) if *n > 0 => pieces(length, *n as usize),
            Some(sizes) => shape(sizes)?.to_vec(),
            None => return Err(type_error("split: a size or a sequence of sizes expected")),
        };
        views(py, view::split(&self.t, &sizes, axis)?)
    }

    /// `chunks` parts of nearly equal length along `dim`, as views.
    #[pyo3(signature = (chunks, dim=0, *, axis=None))]
    fn chunk<'py>(
        &self,
        py: Python<'py>,
        chunks: usize,
        dim: i64,
        axis: Option<i64>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let axis = axis.unwrap_or(dim);
        if chunks == 0 {
            return Err(value_error("chunk: at least one part expected, got 0"));
        }
        let length = self.t.shape().at(self.t.shape().axis(axis, "chunk")?);
        views(py, view::split(&self.t, &pieces(length, length.div_ceil(chunks).max(1)), axis)?)
    }

    /// The slices along `dim`, as views without that axis.
    #[pyo3(signature = (dim=0, *, axis=None))]
    fn unbind<'py>(&self, py: Python<'py>, dim: i64, axis: Option<i64>) -> PyResult<Bound<'py, PyTuple>> {
        let axis = axis.unwrap_or(dim);
        let length = self.t.shape().at(self.t.shape().axis(axis, "unbind")?) as i64;
        views(py, (0..length).map(|i| self.t.select_index(axis, i)).collect::<Result<_>>()?)
    }

    /// The tensor laid side by side, `dims[i]` times along axis `i`.
    #[pyo3(signature = (*dims))]
    fn repeat(&self, dims: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let counts = integers(dims)?;
        if counts.len() < self.t.rank() {
            return Err(value_error(format!(
                "repeat: {} counts given for {} axes; give one for each",
                counts.len(),
                self.t.rank()
            )));
        }
        Ok(tiled(&self.t, &counts)?.into())
    }

    /// The tensor laid side by side; missing leading counts are 1.
    #[pyo3(signature = (*dims))]
    fn tile(&self, dims: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let mut counts = integers(dims)?;
        while counts.len() < self.t.rank() {
            counts.insert(0, 1);
        }
        Ok(tiled(&self.t, &counts)?.into())
    }

    /// The lower triangle of the last two axes, zero above `diagonal`.
    #[pyo3(signature = (diagonal=0))]
    fn tril(&self, py: Python<'_>, diagonal: i64) -> PyResult<PyTensor> {
        self.apply(py, |x| x.triangle(diagonal, false))
    }

    /// The upper triangle of the last two axes, zero below `diagonal`.
    #[pyo3(signature = (diagonal=0))]
    fn triu(&self, py: Python<'_>, diagonal: i64) -> PyResult<PyTensor> {
        self.apply(py, |x| x.triangle(diagonal, true))
    }

    /// The diagonal of the last two axes of a matrix; see `diagonal` for other axes.
    #[pyo3(signature = (offset=0, dim1=0, dim2=1))]
    fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> PyResult<PyTensor> {
        Ok(diagonal(&self.t, offset, dim1, dim2)?.into())
    }

    /// A vector as a diagonal matrix, or the diagonal of a matrix.
    #[pyo3(signature = (diagonal=0))]
    fn diag(&self, diagonal: i64) -> PyResult<PyTensor> {
        match self.t.rank() {
            1 => Ok(diagonal_matrix(&self.t, diagonal)?.into()),
            2 => self.diagonal(diagonal, 0, 1),
            _ => {
                Err(Error::shape(format!("diag: one or two axes expected, got shape {}", self.t.shape()))
                    .into())
            }
        }
    }

    /// Sum of the diagonal of a matrix.
    fn trace(&self) -> PyResult<PyTensor> {
        Ok(diagonal(&self.t, 0, 0, 1)?.sum(None, false)?.into())
    }
}
