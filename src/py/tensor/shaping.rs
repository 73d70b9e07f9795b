//! Methods that change the shape or the order of elements.

use crate::array::shape::MAX_RANK;
use crate::ops::views::join::split;
use crate::ops::views::strided::as_strided;
use crate::py::args::{
    Dims, Listed, MOST_ROWS, amount, count, either, inferred_shape, integers, one_of, position,
};
use crate::py::data::dtype::PyDType;
use crate::py::prelude::*;
use crate::py::tensor::attach::{across, apply as view_of, apply_all};
use crate::py::tensor::options::{renamed, starred};
use crate::py::tensor::rearrange::{diagonal, expanded, matrix_or_diagonal, moved, pieces, rolled, tiled};
use smallvec::SmallVec;

/// Returns views as a tuple of tensors.
pub fn views_of<'py>(
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

/// Returns the same bytes as another dtype, in the same memory.
fn read_as(slf: &Bound<'_, PyTensor>, dtype: DType) -> PyResult<PyTensor> {
    let t = value(slf)?;
    if t.dtype() == dtype {
        return view_of(slf, |x| Ok(x.clone()));
    }
    if t.dtype().is_complex() != dtype.is_complex() && t.dtype().real() == dtype.real() {
        // The kind of numbers alone decides: where views are located, the dtype is another one.
        let other = |x: DType| if x.is_complex() { x.real() } else { x.complex() };
        return across(slf, |x| x.bitcast(other(x.dtype())));
    }
    let out = t.bitcast(dtype)?;
    if let Some(array) = t.concrete()
        && out.concrete().is_some_and(|out| !out.buffer().same(array.buffer()))
    {
        return Err(Error::shape(format!(
            "view: a {} tensor of shape {} with strides {:?} cannot be read as {dtype} in place; call \
             contiguous() first, which copies",
            array.dtype(),
            array.shape(),
            array.strides()
        ))
        .into());
    }
    Ok(if interp::is_plain() { out.into() } else { PyTensor::sharing(out, None) })
}

/// Returns the numbers given, one or several; none for None.
fn all(numbers: &Dims) -> &[i64] {
    numbers.0.as_deref().unwrap_or_default()
}

views! {
    /// Returns the tensor whose element `i` is element `storage_offset + sum(i * stride)` of this one in
    /// row-major order. A view where this one is contiguous and lengths and strides rule out that elements
    /// meet, else a copy. Raises IndexError where an element lies outside.
    #[pyo3(signature = (size, stride, storage_offset=0))]
    as_strided(
        size: Listed, stride: Listed, #[pyo3(from_py_with = amount)] storage_offset: usize
    ) = {
        let lengths = size.0.iter().map(|&n| count("as_strided: a length", n)).collect::<PyResult<Vec<_>>>()?;
        let strides: Vec<isize> = stride.0.iter().map(|&n| n as isize).collect();
        move |x| as_strided(x, &lengths, &strides, storage_offset)
    };
    /// Returns this tensor with the shape of `other`; as `reshape`.
    view_as(other: &PyTensor) = |x| x.reshape(&other.read().t.shape());
    /// Returns this tensor with the shape of `other`.
    reshape_as(other: &PyTensor) = |x| x.reshape(&other.read().t.shape());
    /// Returns the view with its axes in the order given.
    #[pyo3(signature = (*args, dims=None), text_signature = "($self, *dims)")]
    permute(args: &Bound<'_, PyTuple>, dims: Option<&Bound<'_, PyAny>>) = {
        let order = integers(&starred("permute", args, [("dims", dims)])?)?;
        move |x| x.permute(&order)
    };
    /// Exchanges two axes. A view.
    #[pyo3(
        signature = (axis0=None, axis1=None, *, dim0=None, dim1=None),
        text_signature = "($self, axis0, axis1)"
    )]
    swapaxes(axis0: Option<Whole>, axis1: Option<Whole>, dim0: Option<Whole>, dim1: Option<Whole>) = {
        let a = renamed("swapaxes", ["axis0", "dim0"], axis0, dim0)?.0;
        let b = renamed("swapaxes", ["axis1", "dim1"], axis1, dim1)?.0;
        move |x| x.transpose(a, b).named("swapaxes")
    };
    /// Moves axes to new positions; the others keep their order. A view.
    movedim(source: Dims, destination: Dims) = |x| moved(x, all(&source), all(&destination));
    /// Moves axes to new positions; the others keep their order. A view.
    moveaxis(source: Dims, destination: Dims) = |x| moved(x, all(&source), all(&destination));
    /// Removes the axes of length 1, or only those in `dim`. A view.
    #[pyo3(signature = (dim=Dims(None), *, axis=None), text_signature = "($self, dim=None, *, axis=None)")]
    squeeze(dim: Dims, axis: Option<Dims>) = {
        let dims = dim.or(axis)?;
        move |x| x.squeeze(dims.0.as_deref())
    };
    /// Broadcasts to the shape of `other`. A view.
    expand_as(other: &PyTensor) = |x| x.expand(&other.read().t.shape());
    /// Merges the axes `start_dim` to `end_dim` into one.
    #[pyo3(signature = (start_dim=0, end_dim=-1), text_signature = "($self, start_dim=0, end_dim=-1)")]
    flatten(
        #[pyo3(from_py_with = whole)] start_dim: i64,
        #[pyo3(from_py_with = whole)] end_dim: i64,
    ) = |x| x.flatten(start_dim, end_dim);
    /// Returns all elements in one axis.
    ravel() = |x| x.flatten(0, -1);
    /// Returns the view at `index` along `dim`, without that axis.
    select(dim: Whole, #[pyo3(from_py_with = position)] index: i64) = |x| x.select_index(dim.0, index);
    /// The last two axes exchanged.
    #[getter(mT)]
    matrix_transposed() = |x| if x.rank() == 0 { Ok(x.clone()) } else { x.transpose(-2, -1) };
    /// All axes in reverse order.
    #[getter(T)]
    reversed() = |x| x.permute(&(0..x.rank() as i64).rev().collect::<SmallVec<[i64; MAX_RANK]>>());
    /// Returns a view of the diagonal of axes `dim1` and `dim2`, the first two by default, as the last axis.
    #[pyo3(signature = (offset=0, dim1=0, dim2=1))]
    diagonal(
        #[pyo3(from_py_with = whole)] offset: i64,
        #[pyo3(from_py_with = whole)] dim1: i64,
        #[pyo3(from_py_with = whole)] dim2: i64,
    ) = |x| diagonal(x, offset, dim1, dim2);
}

methods! {
    __reversed__() = |x| if x.rank() == 0 { Ok(x.clone()) } else { x.flip(&[0]) };
    /// Reverses the order of the elements along `dims`. A copy.
    #[pyo3(signature = (*args, dims=None, axis=None), text_signature = "($self, *dims)")]
    flip(args: &Bound<'_, PyTuple>, dims: Option<&Bound<'_, PyAny>>, axis: Option<&Bound<'_, PyAny>>) = {
        let axes = integers(&starred("flip", args, [("dims", dims), ("axis", axis)])?)?;
        move |x| x.flip(&axes)
    };
    /// Shifts the elements by `shifts` along `dims`; those pushed out come in at the other end. A copy.
    #[pyo3(signature = (shifts, dims=Dims(None)), text_signature = "($self, shifts, dims=None)")]
    roll(shifts: Dims, dims: Dims) = |x| {
        match &dims.0 {
            Some(dims) => rolled(x, all(&shifts), dims),
            None => rolled(&x.flatten(0, -1)?, all(&shifts), &[0])?.reshape(&x.shape()),
        }
    };
    /// Returns the lower triangle of the last two axes, zero above `diagonal`.
    #[pyo3(signature = (diagonal=0))]
    tril(#[pyo3(from_py_with = whole)] diagonal: i64) = |x| x.triangle(diagonal, false).named("tril");
    /// Returns the upper triangle of the last two axes, zero below `diagonal`.
    #[pyo3(signature = (diagonal=0))]
    triu(#[pyo3(from_py_with = whole)] diagonal: i64) = |x| x.triangle(diagonal, true).named("triu");
    /// Makes a diagonal matrix of a vector, or takes the diagonal of a matrix. A copy; `diagonal()` gives the
    /// view.
    #[pyo3(signature = (diagonal=0))]
    diag(#[pyo3(from_py_with = whole)] diagonal: i64) = |x| matrix_or_diagonal(x, diagonal);
    /// Sums the diagonal of a matrix; `wengert.linalg.trace` takes many. Raises ShapeError where there are
    /// not two axes.
    trace() = |x| match x.rank() {
        2 => diagonal(x, 0, 0, 1).named("trace")?.sum(None, false),
        _ => Err(Error::shape(format!(
            "trace: a matrix expected, got shape {}; linalg.trace sums the diagonals of many",
            x.shape()
        ))),
    };
}

#[pymethods]
impl PyTensor {
    /// Returns the same elements in row-major order with another shape; one length may be -1. A view if
    /// possible.
    #[pyo3(signature = (*args, shape=None), text_signature = "($self, *shape)")]
    fn reshape<'py>(
        slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>, shape: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<PyTensor> {
        let shape = starred("reshape", args, [("shape", shape)])?;
        let shape = inferred_shape(&integers(&shape)?, shape_of(slf).numel())?;
        view_of(slf, |x| x.reshape(&shape))
    }

    /// Returns a view of another shape, or the same bytes as another dtype. Where its size differs, the last
    /// axis becomes longer or shorter. Gradients pass between complex numbers and their parts alone, and
    /// inside `vmap` and `jvp` a view of another dtype is a tensor of its own. Raises ShapeError where the
    /// layout would need a copy: use reshape, or contiguous.
    #[pyo3(signature = (*args, size=None, dtype=None), text_signature = "($self, *shape, dtype=None)")]
    fn view<'py>(
        slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>, size: Option<&Bound<'py, PyAny>>,
        dtype: Option<PyRef<'py, PyDType>>,
    ) -> PyResult<PyTensor> {
        let first = args.get_item(0).ok().and_then(|first| first.extract::<PyRef<'py, PyDType>>().ok());
        if let Some(dtype) = dtype.or(first) {
            return read_as(slf, dtype.dtype);
        }
        let shape = &starred("view", args, [("size", size)])?;
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

    /// Exchanges two axes; without arguments, reverses the order of all axes. A view.
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

    /// Transposes a matrix; tensors with fewer than two axes are returned as they are.
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

    /// Inserts a new axis of length 1 at `dim`. A view.
    #[pyo3(signature = (dim=None, *, axis=None))]
    fn unsqueeze(slf: &Bound<'_, Self>, dim: Option<Whole>, axis: Option<Whole>) -> PyResult<PyTensor> {
        let at = one_of(dim, axis)?
            .ok_or_else(|| type_error("unsqueeze: the position of the new axis expected"))?;
        view_of(slf, |x| x.unsqueeze(at.0))
    }

    /// Broadcasts to a larger shape without a copy; -1 keeps a length.
    #[pyo3(signature = (*args, size=None), text_signature = "($self, *sizes)")]
    fn expand<'py>(
        slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>, size: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<PyTensor> {
        let wanted = expanded(&shape_of(slf), &integers(&starred("expand", args, [("size", size)])?)?)?;
        view_of(slf, |x| x.expand(&wanted))
    }

    /// Broadcasts to `shape` without a copy.
    #[pyo3(signature = (*args, size=None), text_signature = "($self, *shape)")]
    fn broadcast_to<'py>(
        slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>, size: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<PyTensor> {
        Self::expand(slf, args, size)
    }

    /// Splits axis `dim` into axes of these lengths, one of which may be -1. A view. Raises ShapeError where
    /// the lengths do not multiply to that of the axis.
    fn unflatten(slf: &Bound<'_, Self>, dim: Whole, sizes: Listed) -> PyResult<PyTensor> {
        let own = shape_of(slf);
        let i = own.axis(dim.0, "unflatten")?;
        let parts = inferred_shape(&sizes.0, own.at(i))?;
        // Of a tensor without elements every shape with a 0 would do.
        if parts.numel() != own.at(i) {
            return Err(Error::shape(format!(
                "unflatten: axis {} of length {} in shape {own} does not split into {:?}; their \
                 product must be the length",
                dim.0,
                own.at(i),
                sizes.0
            ))
            .into());
        }
        let mut dims = own.to_vec();
        dims.splice(i..=i, parts.iter());
        let wanted = Shape::new(&dims)?;
        view_of(slf, |x| x.reshape(&wanted).named("unflatten"))
    }

    /// Returns the view of `length` elements from `start` along `dim`.
    fn narrow(
        slf: &Bound<'_, Self>, dim: Whole, start: Whole, #[pyo3(from_py_with = amount)] length: usize,
    ) -> PyResult<PyTensor> {
        let size = length_of(slf, dim.0, "narrow")? as i64;
        let start = if start.0 < 0 { start.0 + size } else { start.0 };
        let start = usize::try_from(start)
            .map_err(|_| value_error(format!("narrow: start {start} is out of range")))?;
        view_of(slf, |x| x.narrow(dim.0, start, length))
    }

    /// Splits into parts of `split_size` elements (or of these sizes) along `dim`: a tuple of views.
    #[pyo3(
        signature = (split_size=None, dim=0, *, axis=None, split_size_or_sections=None),
        text_signature = "($self, split_size, dim=0, *, axis=None)"
    )]
    fn split<'py>(
        slf: &Bound<'py, Self>, split_size: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = whole)] dim: i64, axis: Option<Whole>,
        split_size_or_sections: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let names = ["split_size", "split_size_or_sections"];
        let split_size = renamed("split", names, split_size, split_size_or_sections)?;
        let axis = axis.map_or(dim, |axis| axis.0);
        let length = length_of(slf, axis, "split")?;
        let sizes = match split_size.extract::<Whole>() {
            Ok(Whole(n)) if n > 0 => pieces(length, n as usize),
            Ok(Whole(0)) if length == 0 => vec![0],
            Ok(Whole(n)) => return Err(value_error(format!("split: a size of 1 or more expected, got {n}"))),
            Err(_) => {
                let wrong = format!("split: a size or a list of sizes expected, got {split_size}");
                let sizes: Listed = split_size.extract().map_err(|_| Error::dtype(wrong))?;
                sizes.0.iter().map(|&n| count("split: a size", n)).collect::<PyResult<_>>()?
            }
        };
        views_of(slf, |x| split(x, &sizes, axis))
    }

    /// Splits into `chunks` parts of nearly equal length along `dim`, views; an empty axis into empty ones.
    #[pyo3(signature = (chunks, dim=0, *, axis=None))]
    fn chunk<'py>(
        slf: &Bound<'py, Self>, #[pyo3(from_py_with = amount)] chunks: usize,
        #[pyo3(from_py_with = whole)] dim: i64, axis: Option<Whole>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let axis = either((dim != 0).then_some(Whole(dim)), axis, Whole(0))?.0;
        if !(1..=MOST_ROWS).contains(&chunks) {
            return Err(value_error(format!("chunk: from 1 to {MOST_ROWS} parts expected, got {chunks}")));
        }
        let length = length_of(slf, axis, "chunk")?;
        let sizes = if length == 0 { vec![0; chunks] } else { pieces(length, length.div_ceil(chunks)) };
        views_of(slf, |x| split(x, &sizes, axis))
    }

    /// Returns the tuple of slices along `dim`, which are views without that axis.
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

    /// Repeats the tensor side by side, `dims[i]` times along axis `i`. A copy.
    #[pyo3(signature = (*args, repeats=None), text_signature = "($self, *dims)")]
    fn repeat<'py>(
        &self, args: &Bound<'py, PyTuple>, repeats: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<PyTensor> {
        let counts = integers(&starred("repeat", args, [("repeats", repeats)])?)?;
        let rank = self.read().t.rank();
        if counts.len() < rank {
            return Err(value_error(format!(
                "repeat: {} counts given for {rank} axes; give one for each",
                counts.len()
            )));
        }
        Ok(tiled(&*self.value()?, &counts)?.into())
    }

    /// Repeats the tensor side by side; missing leading counts are 1. A copy.
    #[pyo3(signature = (*args, dims=None), text_signature = "($self, *dims)")]
    fn tile<'py>(&self, args: &Bound<'py, PyTuple>, dims: Option<&Bound<'py, PyAny>>) -> PyResult<PyTensor> {
        let given = integers(&starred("tile", args, [("dims", dims)])?)?;
        let mut counts = vec![1; self.read().t.rank().saturating_sub(given.len())];
        counts.extend(given);
        Ok(tiled(&*self.value()?, &counts)?.into())
    }
}
