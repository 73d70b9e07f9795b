//! Methods that change the shape or the order of elements.

use crate::array::shape::{MAX_RANK, Shape};
use crate::error::{Error, Named, Result};
use crate::ops::views::join::split;
use crate::py::args::{
    Dims, Listed, MOST_ROWS, amount, count, inferred_shape, integers, one_of, optional_whole, position, whole,
};
use crate::py::data::dtype::PyDType;
use crate::py::error::{type_error, value_error};
use crate::py::tensor::attach::{apply as view_of, apply_all};
use crate::py::tensor::rearrange::{diagonal, diagonal_matrix, expanded, moved, pieces, rolled, tiled};
use crate::py::tensor::view::value;
use crate::py::tensor::{PyTensor, ReadState};
use crate::tensor::Tensor;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Returns views as a tuple of tensors.
fn views_of<'py>(
    slf: &Bound<'py, PyTensor>,
    f: impl Fn(&Tensor) -> Result<Vec<Tensor>>,
) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(slf.py(), apply_all(slf, f)?)
}

fn shape_of(slf: &Bound<'_, PyTensor>) -> Shape {
    slf.read().t.shape()
}

/// Returns the two axes of a transposition, or an error if one is missing.
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
    fn reshape(slf: &Bound<'_, Self>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let shape = inferred_shape(&integers(shape)?, shape_of(slf).numel())?;
        view_of(slf, |x| x.reshape(&shape))
    }

    /// The same memory with another shape. Raises ShapeError where the layout would need a copy: use reshape.
    #[pyo3(signature = (*shape))]
    fn view(slf: &Bound<'_, Self>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        if shape.get_item(0).is_ok_and(|first| first.is_instance_of::<PyDType>()) {
            return Err(type_error(
                "view: lengths of axes expected, got a dtype; .to(dtype) converts, and \
                 from_numpy(x.numpy().view(...)) reads the memory as another type",
            ));
        }
        let shape = inferred_shape(&integers(shape)?, shape_of(slf).numel())?;
        if let Some(array) = value(slf)?.concrete()
            && array.shape().numel() == shape.numel()
            && array.reshape_view(&shape).is_none()
        {
            return Err(Error::shape(format!(
                "view: a tensor of shape {} with strides {:?} has no view of shape {shape}; use reshape, \
                 which copies",
                array.shape(),
                array.strides()
            ))
            .into());
        }
        view_of(slf, |x| x.reshape(&shape))
    }

    /// This tensor with the shape of `other`; as `reshape`.
    fn view_as(slf: &Bound<'_, Self>, other: &PyTensor) -> PyResult<PyTensor> {
        view_of(slf, |x| x.reshape(&other.read().t.shape()))
    }

    /// This tensor with the shape of `other`.
    fn reshape_as(slf: &Bound<'_, Self>, other: &PyTensor) -> PyResult<PyTensor> {
        view_of(slf, |x| x.reshape(&other.read().t.shape()))
    }

    /// Axes in the order given.
    #[pyo3(signature = (*dims))]
    fn permute(slf: &Bound<'_, Self>, dims: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let order = integers(dims)?;
        view_of(slf, |x| x.permute(&order))
    }

    /// Two axes exchanged; without arguments, all axes reversed.
    #[pyo3(signature = (dim0=None, dim1=None, *, axis0=None, axis1=None))]
    fn transpose(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = optional_whole)] dim0: Option<i64>,
        #[pyo3(from_py_with = optional_whole)] dim1: Option<i64>,
        #[pyo3(from_py_with = optional_whole)] axis0: Option<i64>,
        #[pyo3(from_py_with = optional_whole)] axis1: Option<i64>,
    ) -> PyResult<PyTensor> {
        if dim0.or(dim1).or(axis0).or(axis1).is_none() {
            return Self::reversed(slf);
        }
        let (a, b) = two(dim0.or(axis0), dim1.or(axis1), "transpose")?;
        view_of(slf, |x| x.transpose(a, b))
    }

    /// Two axes exchanged.
    fn swapaxes(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = whole)] axis0: i64,
        #[pyo3(from_py_with = whole)] axis1: i64,
    ) -> PyResult<PyTensor> {
        view_of(slf, |x| x.transpose(axis0, axis1).named("swapaxes"))
    }

    /// The matrix transposed; tensors with fewer than two axes are returned as they are.
    fn t(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        if shape_of(slf).rank() > 2 {
            return Err(Error::shape(format!(
                "t: at most two axes expected, got shape {}; use mT or transpose",
                shape_of(slf)
            ))
            .into());
        }
        Self::reversed(slf)
    }

    /// All axes in reverse order.
    #[getter(T)]
    fn reversed(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        let rank = shape_of(slf).rank();
        let mut order = [0; MAX_RANK];
        for (i, axis) in order[..rank].iter_mut().rev().enumerate() {
            *axis = i as i64;
        }
        view_of(slf, |x| x.permute(&order[..rank]))
    }

    /// The last two axes exchanged.
    #[getter(mT)]
    fn matrix_transposed(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        if shape_of(slf).rank() == 0 {
            return Self::reversed(slf);
        }
        view_of(slf, |x| x.transpose(-2, -1))
    }

    /// Axes moved to new positions, the others in order.
    fn movedim(slf: &Bound<'_, Self>, source: Dims, destination: Dims) -> PyResult<PyTensor> {
        let (from, to) = (source.0.unwrap_or_default(), destination.0.unwrap_or_default());
        view_of(slf, |x| moved(x, &from, &to))
    }

    /// Axes moved to new positions, the others in order.
    fn moveaxis(slf: &Bound<'_, Self>, source: Dims, destination: Dims) -> PyResult<PyTensor> {
        Self::movedim(slf, source, destination)
    }

    /// Without the axes of length 1, or only those in `dim`.
    #[pyo3(signature = (dim=Dims(None), *, axis=None))]
    fn squeeze(slf: &Bound<'_, Self>, dim: Dims, axis: Option<Dims>) -> PyResult<PyTensor> {
        let dims = dim.or(axis)?;
        view_of(slf, |x| x.squeeze(dims.0.as_deref()))
    }

    /// With a new axis of length 1 at `dim`.
    #[pyo3(signature = (dim=None, *, axis=None))]
    fn unsqueeze(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = optional_whole)] dim: Option<i64>,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<PyTensor> {
        let at = one_of(dim, axis)?
            .ok_or_else(|| type_error("unsqueeze: the position of the new axis expected"))?;
        view_of(slf, |x| x.unsqueeze(at))
    }

    /// Broadcast to a larger shape without a copy; -1 keeps a length.
    #[pyo3(signature = (*sizes))]
    fn expand(slf: &Bound<'_, Self>, sizes: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let wanted = expanded(&shape_of(slf), &integers(sizes)?)?;
        view_of(slf, |x| x.expand(&wanted))
    }

    /// Broadcast to the shape of `other`.
    fn expand_as(slf: &Bound<'_, Self>, other: &PyTensor) -> PyResult<PyTensor> {
        view_of(slf, |x| x.expand(&other.read().t.shape()))
    }

    /// Broadcast to `shape` without a copy.
    #[pyo3(signature = (*shape))]
    fn broadcast_to(slf: &Bound<'_, Self>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        Self::expand(slf, shape)
    }

    /// Axes `start_dim` to `end_dim` merged into one.
    #[pyo3(signature = (start_dim=0, end_dim=-1))]
    fn flatten(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = whole)] start_dim: i64,
        #[pyo3(from_py_with = whole)] end_dim: i64,
    ) -> PyResult<PyTensor> {
        view_of(slf, |x| x.flatten(start_dim, end_dim))
    }

    /// All elements in one axis.
    fn ravel(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        view_of(slf, |x| x.flatten(0, -1))
    }

    /// Axis `dim` split into axes of these lengths; one may be -1.
    fn unflatten(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = whole)] dim: i64,
        sizes: Listed,
    ) -> PyResult<PyTensor> {
        let own = shape_of(slf);
        let i = own.axis(dim, "unflatten")?;
        let parts = inferred_shape(&sizes.0, own.at(i))?;
        let mut dims = own.to_vec();
        dims.splice(i..=i, parts.iter());
        let wanted = Shape::new(&dims)?;
        view_of(slf, |x| x.reshape(&wanted).named("unflatten"))
    }

    /// `length` elements from `start` along `dim`.
    fn narrow(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = whole)] dim: i64,
        #[pyo3(from_py_with = whole)] start: i64,
        #[pyo3(from_py_with = amount)] length: usize,
    ) -> PyResult<PyTensor> {
        let size = shape_of(slf).at(shape_of(slf).axis(dim, "narrow")?) as i64;
        let start = if start < 0 { start + size } else { start };
        let start = usize::try_from(start)
            .map_err(|_| value_error(format!("narrow: start {start} is out of range")))?;
        view_of(slf, |x| x.narrow(dim, start, length))
    }

    /// The element at `index` along `dim`, without that axis.
    fn select(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = whole)] dim: i64,
        #[pyo3(from_py_with = position)] index: i64,
    ) -> PyResult<PyTensor> {
        view_of(slf, |x| x.select_index(dim, index))
    }

    /// Reversed along `dims`.
    #[pyo3(signature = (*dims))]
    fn flip(&self, dims: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let axes = integers(dims)?;
        Ok(PyTensor::from(self.value()?.flip(&axes)?))
    }

    /// Elements shifted by `shifts` along `dims`, those pushed out coming back in at the other end.
    #[pyo3(signature = (shifts, dims=Dims(None)))]
    fn roll(&self, shifts: Dims, dims: Dims) -> PyResult<PyTensor> {
        let shifts = shifts.0.unwrap_or_default();
        let Some(dims) = dims.0 else {
            let flat = rolled(&self.value()?.flatten(0, -1)?, &shifts, &[0])?;
            return Ok(flat.reshape(&self.read().t.shape())?.into());
        };
        Ok(rolled(&*self.value()?, &shifts, &dims)?.into())
    }

    /// Parts of `size` elements (or of these sizes) along `dim`, as views.
    #[pyo3(signature = (split_size, dim=0, *, axis=None))]
    fn split<'py>(
        slf: &Bound<'py, Self>,
        split_size: Dims,
        #[pyo3(from_py_with = whole)] dim: i64,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let axis = axis.unwrap_or(dim);
        let own = shape_of(slf);
        let length = own.at(own.axis(axis, "split")?);
        let sizes = match split_size.0.as_deref() {
            Some([n]) if *n > 0 => pieces(length, *n as usize),
            Some(sizes) => sizes.iter().map(|&n| count("split: a size", n)).collect::<PyResult<_>>()?,
            None => return Err(type_error("split: a size or a sequence of sizes expected")),
        };
        views_of(slf, |x| split(x, &sizes, axis))
    }

    /// `chunks` parts of nearly equal length along `dim`, as views.
    #[pyo3(signature = (chunks, dim=0, *, axis=None))]
    fn chunk<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = amount)] chunks: usize,
        #[pyo3(from_py_with = whole)] dim: i64,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let axis = axis.unwrap_or(dim);
        if chunks == 0 {
            return Err(value_error("chunk: at least one part expected, got 0"));
        }
        let own = shape_of(slf);
        let length = own.at(own.axis(axis, "chunk")?);
        let sizes = pieces(length, length.div_ceil(chunks).max(1));
        views_of(slf, |x| split(x, &sizes, axis))
    }

    /// The slices along `dim`, as views without that axis.
    #[pyo3(signature = (dim=0, *, axis=None))]
    fn unbind<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = whole)] dim: i64,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let axis = axis.unwrap_or(dim);
        let own = shape_of(slf);
        let length = own.at(own.axis(axis, "unbind")?);
        if length > MOST_ROWS {
            return Err(value_error(format!(
                "unbind: {length} tensors are too many for a tuple, of which {MOST_ROWS} is the most; \
                 narrow() the axis first"
            )));
        }
        let length = length as i64;
        views_of(slf, |x| (0..length).map(|i| x.select_index(axis, i)).collect())
    }

    /// The tensor laid side by side, `dims[i]` times along axis `i`.
    #[pyo3(signature = (*dims))]
    fn repeat(&self, dims: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let counts = integers(dims)?;
        if counts.len() < self.read().t.rank() {
            return Err(value_error(format!(
                "repeat: {} counts given for {} axes; give one for each",
                counts.len(),
                self.read().t.rank()
            )));
        }
        Ok(tiled(&*self.value()?, &counts)?.into())
    }

    /// The tensor laid side by side; missing leading counts are 1.
    #[pyo3(signature = (*dims))]
    fn tile(&self, dims: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let mut counts = integers(dims)?;
        while counts.len() < self.read().t.rank() {
            counts.insert(0, 1);
        }
        Ok(tiled(&*self.value()?, &counts)?.into())
    }

    /// The lower triangle of the last two axes, zero above `diagonal`.
    #[pyo3(signature = (diagonal=0))]
    fn tril(&self, py: Python<'_>, #[pyo3(from_py_with = whole)] diagonal: i64) -> PyResult<PyTensor> {
        self.apply(py, |x| x.triangle(diagonal, false).named("tril"))
    }

    /// The upper triangle of the last two axes, zero below `diagonal`.
    #[pyo3(signature = (diagonal=0))]
    fn triu(&self, py: Python<'_>, #[pyo3(from_py_with = whole)] diagonal: i64) -> PyResult<PyTensor> {
        self.apply(py, |x| x.triangle(diagonal, true).named("triu"))
    }

    /// The diagonal of the last two axes of a matrix; see `diagonal` for other axes.
    #[pyo3(signature = (offset=0, dim1=0, dim2=1))]
    fn diagonal(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = whole)] offset: i64,
        #[pyo3(from_py_with = whole)] dim1: i64,
        #[pyo3(from_py_with = whole)] dim2: i64,
    ) -> PyResult<PyTensor> {
        view_of(slf, |x| diagonal(x, offset, dim1, dim2))
    }

    /// A vector as a diagonal matrix, or the diagonal of a matrix.
    #[pyo3(signature = (diagonal=0))]
    fn diag(slf: &Bound<'_, Self>, #[pyo3(from_py_with = whole)] diagonal: i64) -> PyResult<PyTensor> {
        match shape_of(slf).rank() {
            1 => Ok(diagonal_matrix(&value(slf)?, diagonal)?.into()),
            2 => Self::diagonal(slf, diagonal, 0, 1),
            _ => {
                Err(Error::shape(format!("diag: one or two axes expected, got shape {}", shape_of(slf)))
                    .into())
            }
        }
    }

    /// Sum of the diagonal of a matrix.
    fn trace(&self) -> PyResult<PyTensor> {
        Ok(diagonal(&*self.value()?, 0, 0, 1).named("trace")?.sum(None, false)?.into())
    }
}
