//! Methods that change the shape or the order of elements.

use crate::array::shape::MAX_RANK;
use crate::ops::views::join::split;
use crate::py::args::{Dims, Listed, MOST_ROWS, amount, count, inferred_shape, integers, one_of, position};
use crate::py::data::dtype::PyDType;
use crate::py::prelude::*;
use crate::py::tensor::attach::{apply as view_of, apply_all};
use crate::py::tensor::rearrange::{diagonal, expanded, matrix_or_diagonal, moved, pieces, rolled, tiled};
use smallvec::SmallVec;

/// Returns views as a tuple of tensors.
fn views_of<'py>(
    slf: &Bound<'py, PyTensor>, f: impl Fn(&Tensor) -> Result<Vec<Tensor>>,
) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(slf.py(), apply_all(slf, f)?)
}

fn shape_of(slf: &Bound<'_, PyTensor>) -> Shape {
    slf.read().t.shape()
}

/// Returns the length of an axis, on behalf of the method `name`.
fn length_of(slf: &Bound<'_, PyTensor>, axis: i64, name: &str) -> PyResult<usize> {
    let own = shape_of(slf);
    Ok(own.at(own.axis(axis, name)?))
}

/// Returns the numbers given, one or several; none for None.
fn all(numbers: &Dims) -> &[i64] {
    numbers.0.as_deref().unwrap_or_default()
}

views! {
    /// This tensor with the shape of `other`; as `reshape`.
    view_as(other: &PyTensor) = |x| x.reshape(&other.read().t.shape());
    /// This tensor with the shape of `other`.
    reshape_as(other: &PyTensor) = |x| x.reshape(&other.read().t.shape());
    /// Axes in the order given.
    #[pyo3(signature = (*dims))]
    permute(dims: &Bound<'_, PyTuple>) = {
        let order = integers(dims)?;
        move |x| x.permute(&order)
    };
    /// Two axes exchanged.
    swapaxes(axis0: Whole, axis1: Whole) = |x| x.transpose(axis0.0, axis1.0).named("swapaxes");
    /// Axes moved to new positions, the others in order.
    movedim(source: Dims, destination: Dims) = |x| moved(x, all(&source), all(&destination));
    /// Axes moved to new positions, the others in order.
    moveaxis(source: Dims, destination: Dims) = |x| moved(x, all(&source), all(&destination));
    /// Without the axes of length 1, or only those in `dim`.
    #[pyo3(signature = (dim=Dims(None), *, axis=None))]
    squeeze(dim: Dims, axis: Option<Dims>) = {
        let dims = dim.or(axis)?;
        move |x| x.squeeze(dims.0.as_deref())
    };
    /// Broadcast to the shape of `other`.
    expand_as(other: &PyTensor) = |x| x.expand(&other.read().t.shape());
    /// Axes `start_dim` to `end_dim` merged into one.
    #[pyo3(signature = (start_dim=0, end_dim=-1))]
    flatten(
        #[pyo3(from_py_with = whole)] start_dim: i64,
        #[pyo3(from_py_with = whole)] end_dim: i64,
    ) = |x| x.flatten(start_dim, end_dim);
    /// All elements in one axis.
    ravel() = |x| x.flatten(0, -1);
    /// The element at `index` along `dim`, without that axis.
    select(dim: Whole, #[pyo3(from_py_with = position)] index: i64) = |x| x.select_index(dim.0, index);
    /// The last two axes exchanged.
    #[getter(mT)]
    matrix_transposed() = |x| if x.rank() == 0 { Ok(x.clone()) } else { x.transpose(-2, -1) };
    /// All axes in reverse order.
    #[getter(T)]
    reversed() = |x| x.permute(&(0..x.rank() as i64).rev().collect::<SmallVec<[i64; MAX_RANK]>>());
    /// The diagonal of the last two axes of a matrix; see `diagonal` for other axes.
    #[pyo3(signature = (offset=0, dim1=0, dim2=1))]
    diagonal(
        #[pyo3(from_py_with = whole)] offset: i64,
        #[pyo3(from_py_with = whole)] dim1: i64,
        #[pyo3(from_py_with = whole)] dim2: i64,
    ) = |x| diagonal(x, offset, dim1, dim2);
}

methods! {
    /// Reversed along `dims`. A copy.
    #[pyo3(signature = (*dims))]
    flip(dims: &Bound<'_, PyTuple>) = {
        let axes = integers(dims)?;
        move |x| x.flip(&axes)
    };
    /// Elements shifted by `shifts` along `dims`, those pushed out coming back in at the other end. A copy.
    #[pyo3(signature = (shifts, dims=Dims(None)))]
    roll(shifts: Dims, dims: Dims) = |x| {
        match &dims.0 {
            Some(dims) => rolled(x, all(&shifts), dims),
            None => rolled(&x.flatten(0, -1)?, all(&shifts), &[0])?.reshape(&x.shape()),
        }
    };
    /// The lower triangle of the last two axes, zero above `diagonal`.
    #[pyo3(signature = (diagonal=0))]
    tril(#[pyo3(from_py_with = whole)] diagonal: i64) = |x| x.triangle(diagonal, false).named("tril");
    /// The upper triangle of the last two axes, zero below `diagonal`.
    #[pyo3(signature = (diagonal=0))]
    triu(#[pyo3(from_py_with = whole)] diagonal: i64) = |x| x.triangle(diagonal, true).named("triu");
    /// A vector as a diagonal matrix, or the diagonal of a matrix. A copy; `diagonal()` gives the view.
    #[pyo3(signature = (diagonal=0))]
    diag(#[pyo3(from_py_with = whole)] diagonal: i64) = |x| matrix_or_diagonal(x, diagonal);
    /// Sum of the diagonal of a matrix.
    trace() = |x| diagonal(x, 0, 0, 1).named("trace")?.sum(None, false);
}

#[pymethods]
impl PyTensor {
    /// The same elements in row-major order with another shape; one length may be -1. A view if possible.
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

    /// Two axes exchanged; without arguments, all axes reversed.
    #[pyo3(signature = (dim0=None, dim1=None, *, axis0=None, axis1=None))]
    fn transpose(
        slf: &Bound<'_, Self>, dim0: Option<Whole>, dim1: Option<Whole>, axis0: Option<Whole>,
        axis1: Option<Whole>,
    ) -> PyResult<PyTensor> {
        match (dim0.or(axis0), dim1.or(axis1)) {
            (None, None) => Self::reversed(slf),
            (Some(a), Some(b)) => view_of(slf, |x| x.transpose(a.0, b.0)),
            _ => Err(type_error("transpose: two axes expected")),
        }
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

    /// With a new axis of length 1 at `dim`.
    #[pyo3(signature = (dim=None, *, axis=None))]
    fn unsqueeze(slf: &Bound<'_, Self>, dim: Option<Whole>, axis: Option<Whole>) -> PyResult<PyTensor> {
        let at = one_of(dim, axis)?
            .ok_or_else(|| type_error("unsqueeze: the position of the new axis expected"))?;
        view_of(slf, |x| x.unsqueeze(at.0))
    }

    /// Broadcast to a larger shape without a copy; -1 keeps a length.
    #[pyo3(signature = (*sizes))]
    fn expand(slf: &Bound<'_, Self>, sizes: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let wanted = expanded(&shape_of(slf), &integers(sizes)?)?;
        view_of(slf, |x| x.expand(&wanted))
    }

    /// Broadcast to `shape` without a copy.
    #[pyo3(signature = (*shape))]
    fn broadcast_to(slf: &Bound<'_, Self>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        Self::expand(slf, shape)
    }

    /// Axis `dim` split into axes of these lengths; one may be -1.
    fn unflatten(slf: &Bound<'_, Self>, dim: Whole, sizes: Listed) -> PyResult<PyTensor> {
        let own = shape_of(slf);
        let i = own.axis(dim.0, "unflatten")?;
        let parts = inferred_shape(&sizes.0, own.at(i))?;
        let mut dims = own.to_vec();
        dims.splice(i..=i, parts.iter());
        let wanted = Shape::new(&dims)?;
        view_of(slf, |x| x.reshape(&wanted).named("unflatten"))
    }

    /// `length` elements from `start` along `dim`.
    fn narrow(
        slf: &Bound<'_, Self>, dim: Whole, start: Whole, #[pyo3(from_py_with = amount)] length: usize,
    ) -> PyResult<PyTensor> {
        let size = length_of(slf, dim.0, "narrow")? as i64;
        let start = if start.0 < 0 { start.0 + size } else { start.0 };
        let start = usize::try_from(start)
            .map_err(|_| value_error(format!("narrow: start {start} is out of range")))?;
        view_of(slf, |x| x.narrow(dim.0, start, length))
    }

    /// Parts of `size` elements (or of these sizes) along `dim`, as views.
    #[pyo3(signature = (split_size, dim=0, *, axis=None))]
    fn split<'py>(
        slf: &Bound<'py, Self>, split_size: Dims, #[pyo3(from_py_with = whole)] dim: i64, axis: Option<Whole>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let axis = axis.map_or(dim, |axis| axis.0);
        let length = length_of(slf, axis, "split")?;
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
        slf: &Bound<'py, Self>, #[pyo3(from_py_with = amount)] chunks: usize,
        #[pyo3(from_py_with = whole)] dim: i64, axis: Option<Whole>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let axis = axis.map_or(dim, |axis| axis.0);
        if chunks == 0 {
            return Err(value_error("chunk: at least one part expected, got 0"));
        }
        let length = length_of(slf, axis, "chunk")?;
        let sizes = pieces(length, length.div_ceil(chunks).max(1));
        views_of(slf, |x| split(x, &sizes, axis))
    }

    /// The slices along `dim`, as views without that axis.
    #[pyo3(signature = (dim=0, *, axis=None))]
    fn unbind<'py>(
        slf: &Bound<'py, Self>, #[pyo3(from_py_with = whole)] dim: i64, axis: Option<Whole>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let axis = axis.map_or(dim, |axis| axis.0);
        let length = length_of(slf, axis, "unbind")?;
        if length > MOST_ROWS {
            return Err(value_error(format!(
                "unbind: {length} tensors are too many for a tuple, of which {MOST_ROWS} is the most; \
                 narrow() the axis first"
            )));
        }
        let length = length as i64;
        views_of(slf, |x| (0..length).map(|i| x.select_index(axis, i)).collect())
    }

    /// The tensor laid side by side, `dims[i]` times along axis `i`. A copy.
    #[pyo3(signature = (*dims))]
    fn repeat(&self, dims: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let (counts, rank) = (integers(dims)?, self.read().t.rank());
        if counts.len() < rank {
            return Err(value_error(format!(
                "repeat: {} counts given for {rank} axes; give one for each",
                counts.len()
            )));
        }
        Ok(tiled(&*self.value()?, &counts)?.into())
    }

    /// The tensor laid side by side; missing leading counts are 1. A copy.
    #[pyo3(signature = (*dims))]
    fn tile(&self, dims: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let given = integers(dims)?;
        let mut counts = vec![1; self.read().t.rank().saturating_sub(given.len())];
        counts.extend(given);
        Ok(tiled(&*self.value()?, &counts)?.into())
    }
}
