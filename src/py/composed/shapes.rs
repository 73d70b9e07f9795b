//! Shapes: repeating, turning, windows, diagonals, and the places of triangles.

use crate::array::buffer::{collect_at_most, with_capacity};
use crate::array::shape::normalize_axis;
use crate::ops::reduce::index_type;
use crate::py::args::{Listed, count, extracted};
use crate::py::composed::{check_axes, composed};
use crate::py::data::create::Any;
use crate::py::data::dtype::{device_or_default, optional_dtype};
use crate::py::prelude::*;
use crate::py::relative::operand;
use crate::py::tensor::rearrange::{matrix_or_diagonal, moved};

/// Returns at least a vector, and one of its axes counted from the front.
pub fn on_axis(name: &str, x: &Tensor, dim: i64) -> Result<(Tensor, usize)> {
    let axis = normalize_axis(dim, x.rank().max(1), name)?;
    Ok((x.at_least_vector()?, axis))
}

/// `0, 1, …` in the integer type that indices have on a device.
pub fn positions(n: usize, device: Device) -> Result<Tensor> {
    Tensor::arange(0.0, 1.0, n, index_type(device), device)
}

/// The argument `dim` of a function, whose error names the function: an integer, or what was given instead.
pub struct Axis(pub Result<i64, String>);

extracted!(Axis, |obj| match obj.extract::<Whole>() {
    Ok(dim) => Ok(Axis(Ok(dim.0))),
    Err(_) => Ok(Axis(Err(obj.repr()?.to_string()))),
});

impl Axis {
    /// Returns the integer that the function `name` was given.
    pub fn of(self, name: &str) -> Result<i64> {
        self.0.map_err(|given| Error::dtype(format!("{name}: dim must be an integer, got {given}")))
    }
}

/// The indices of the slices of an axis of this length that are repeated, each in a row.
fn repeated(counts: &Tensor, length: usize) -> PyResult<Tensor> {
    let fits = counts.rank() < 2 && [1, length].contains(&counts.numel());
    if !fits || counts.dtype().is_differentiable() {
        return Err(value_error(format!(
            "repeat_interleave: repeats must be a number or a vector of {length} integers, got wengert.{} of \
             shape {}",
            counts.dtype(),
            counts.shape()
        )));
    }
    counts.array("repeat_interleave")?;
    if counts.device() != Device::Cpu && length > 0 {
        return repeated_there(counts, length);
    }
    let each = counts.to_vec()?;
    let all = || (0..length).map(|i| (i, if each.len() == 1 { each[0] } else { each[i] }));
    let total: f64 = all().map(|(_, n)| n).sum();
    check_repeats(all().fold(0.0, |least, (_, n)| n.min(least)), total, 32)?;
    let places = all().flat_map(|(i, n)| std::iter::repeat_n(i as i64, n as usize));
    let places = collect_at_most(total as usize, places)?;
    Ok(Tensor::from_slice(&places, &[places.len()])?)
}

/// [`repeated`] on a GPU, from which the smallest count and the sum of all are read.
fn repeated_there(counts: &Tensor, length: usize) -> PyResult<Tensor> {
    let each = counts.cast(DType::I32)?.at_least_vector()?.expand(&Shape::new(&[length])?)?;
    let total = each.cast(DType::F32)?.sum(None, false)?.item()?;
    check_repeats(each.amin(None, false)?.item()?, total, 31)?;
    let ends = each.cumsum(0)?;
    let total = ends.select_index(0, -1)?.item()? as usize;
    Ok(ends.search_sorted(&positions(total, counts.device())?, true)?)
}

/// Raises for counts of which one is negative, or which add up to more than these bits hold.
fn check_repeats(least: f64, total: f64, bits: i32) -> PyResult<()> {
    if least < 0.0 {
        return Err(value_error("repeat_interleave: repeats must not be negative"));
    }
    if total >= f64::from(2).powi(bits) {
        return Err(Error::shape(format!(
            "repeat_interleave: {total:.3e} elements are too many; an axis holds at most 2^{bits} - 1"
        ))
        .into());
    }
    Ok(())
}

/// Raises for another length than a caller expects of the result.
fn check_length(total: usize, expected: Option<i64>) -> PyResult<()> {
    match expected {
        Some(expected) if expected != total as i64 => Err(value_error(format!(
            "repeat_interleave: output_size is {expected}, but repeats add up to {total}; leave it out"
        ))),
        _ => Ok(()),
    }
}

/// Matrices over two new axes, with the last axis of `x` on a diagonal.
fn diagonals(x: &Tensor, offset: i64, [a, b]: [usize; 2]) -> Result<Tensor> {
    let length = x.shape().at(x.rank() - 1);
    let size = length.saturating_add(offset.unsigned_abs() as usize);
    let places = positions(size, x.device())?;
    let here = places.unsqueeze(0)?.sub(&places.unsqueeze(1)?)?.eq(offset)?;
    let mut widths = vec![(0, 0); x.rank()];
    widths[x.rank() - 1] = (offset.max(0), offset.saturating_neg().max(0));
    let wide = x.pad(&widths, 0.0)?.unsqueeze(-2)?;
    moved(&here.select(&wide, &x.scalar_like(0.0)?)?, &[-2, -1], &[a as i64, b as i64])
}

/// Windows of `size` elements every `step` along an axis, as a new last axis.
fn windows(x: &Tensor, dim: i64, size: usize, step: usize) -> Result<Tensor> {
    let (wide, axis) = on_axis("unfold", x, dim)?;
    if x.rank() == 0 {
        // The one window of a number is a vector.
        return wide.narrow(0, 0, size);
    }
    let count = (wide.shape().at(axis) - size) / step + 1;
    let begins = positions(count, x.device())?.mul(step as i64)?.unsqueeze(1)?;
    let places = begins.add(&positions(size, x.device())?)?;
    moved(&wide.take(&places, axis as i64)?, &[axis as i64 + 1], &[-1])
}

/// Rotates by quarter turns from axis `a` towards axis `b`.
fn rotated(x: &Tensor, quarters: i64, [a, b]: [i64; 2]) -> Result<Tensor> {
    match quarters.rem_euclid(4) {
        0 => Ok(x.clone()),
        1 => x.transpose(a, b)?.flip(&[a]),
        2 => x.flip(&[a, b]),
        _ => x.transpose(a, b)?.flip(&[b]),
    }
}

#[pymethods]
impl PyTensor {
    /// Repeats each element (along `dim`, each slice) `repeats` times in a row.
    ///
    /// Args:
    ///     repeats: one number for all, or a vector with one for each. Without it, `input` is that vector,
    ///         and what is repeated are the numbers 0, 1, 2, ….
    ///     dim: the axis; without it, of the flattened tensor.
    ///     output_size: the length of the result.
    ///
    /// Raises:
    ///     ValueError: for repeats that do not fit, and another `output_size` than they add up to.
    #[pyo3(signature = (repeats=None, dim=None, *, output_size=None))]
    fn repeat_interleave(
        &self, py: Python<'_>, repeats: Any, dim: Option<Whole>, output_size: Option<i64>,
    ) -> PyResult<PyTensor> {
        let name = "repeat_interleave";
        let (x, repeats) = match repeats.filter(|repeats| !repeats.is_none()) {
            None => {
                let counts = self.value()?.into_owned();
                (positions(counts.numel(), counts.device())?, counts)
            }
            Some(repeats) => {
                let counts = operand(name, repeats)?;
                if repeats.is_instance_of::<PyInt>() && counts.item()? < 0.0 {
                    let given = counts.item()?;
                    return Err(value_error(format!("{name}: repeats must not be negative, got {given}")));
                }
                (self.value()?.into_owned(), counts)
            }
        };
        let (wide, axis) = match dim {
            None => (x.flatten(0, -1)?, 0),
            Some(dim) => on_axis(name, &x, dim.0)?,
        };
        let length = wide.shape().at(axis);
        if repeats.rank() == 0 && repeats.dtype().is_integer() {
            let own = wide.shape();
            let times = count("repeat_interleave: repeats", repeats.item()? as i64)?;
            let total = length.saturating_mul(times);
            check_length(total, output_size)?;
            let mut lengths = own.to_vec();
            lengths[axis] = total;
            return composed(py, name, &x, || {
                let each = wide.unsqueeze(axis as i64 + 1)?.expand(&own.inserted(axis + 1, times)?)?;
                each.reshape(&Shape::new(&lengths)?)
            });
        }
        let places = repeated(&repeats, length)?;
        check_length(places.numel(), output_size)?;
        composed(py, name, &x, || {
            wide.index_select(axis as i64, &places.cast(index_type(x.device()))?.to_device(x.device())?)
        })
    }

    /// Returns matrices over two new axes whose diagonal is the last axis of `input`, zero elsewhere.
    #[pyo3(
        signature = (offset=0, dim1=None, dim2=None),
        text_signature = "($self, offset=0, dim1=-2, dim2=-1)"
    )]
    fn diag_embed(
        &self, py: Python<'_>, #[pyo3(from_py_with = whole)] offset: i64, dim1: Any, dim2: Any,
    ) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        check_axes("diag_embed", x, 1)?;
        let rank = x.rank() + 1;
        let axis = |dim: Any, own: i64| match dim {
            Some(dim) => Ok(normalize_axis(dim.extract::<Axis>()?.of("diag_embed")?, rank, "diag_embed")?),
            None => Ok::<_, PyErr>((rank as i64 + own) as usize),
        };
        let (a, b) = (axis(dim1, -2)?, axis(dim2, -1)?);
        if a == b {
            let [a, b] =
                [(dim1, -2), (dim2, -1)].map(|(dim, own)| dim.map_or(own.to_string(), |dim| dim.to_string()));
            return Err(value_error(format!(
                "diag_embed: two different axes expected, got {a} and {b} of {rank}"
            )));
        }
        composed(py, "diag_embed", x, || diagonals(x, offset, [a, b]))
    }

    /// Returns windows of `size` elements every `step` along an axis; the window is a new last axis. A copy.
    #[pyo3(signature = (dimension, size, step=1))]
    fn unfold(
        &self, py: Python<'_>, #[pyo3(from_py_with = whole)] dimension: i64,
        #[pyo3(from_py_with = whole)] size: i64, #[pyo3(from_py_with = whole)] step: i64,
    ) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let (wide, axis) = on_axis("unfold", x, dimension)?;
        let length = wide.shape().at(axis);
        if size < 0 || size > length as i64 || step < 1 {
            return Err(value_error(format!(
                "unfold: windows of {size} every {step} do not fit axis {dimension} of length {length}; the \
                 size is at most the length, the step at least 1"
            )));
        }
        composed(py, "unfold", x, || windows(x, dimension, size as usize, step as usize))
    }

    /// Rotates by `k` quarter turns in the plane of `dims`, from `dims[0]` towards `dims[1]`. A copy.
    #[pyo3(signature = (k=1, dims=Listed(vec![0, 1])), text_signature = "($self, k=1, dims=(0, 1))")]
    fn rot90(
        &self, py: Python<'_>, #[pyo3(from_py_with = whole)] k: i64, dims: Listed,
    ) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let rank = x.rank();
        let turns = |dim: i64| dim.rem_euclid(rank.max(1) as i64);
        let [a, b] = match dims.0[..] {
            [a, b] if turns(a) != turns(b) => [a, b],
            _ => {
                let given: Vec<String> = dims.0.iter().map(ToString::to_string).collect();
                return Err(value_error(format!(
                    "rot90: two different axes expected, got ({}) for a tensor with {rank} axes",
                    given.join(", ")
                )));
            }
        };
        composed(py, "rot90", x, || rotated(x, k, [a, b]))
    }
}

methods! {
    /// Makes a matrix with all elements of `input`, in their order, on a diagonal, zero elsewhere.
    #[pyo3(signature = (offset=0))]
    diagflat(#[pyo3(from_py_with = whole)] offset: i64) =
        |x| matrix_or_diagonal(&x.flatten(0, -1)?, offset).named("diagflat");
}

/// The number of places `(i, j)` of a matrix with `j - i <= offset`.
fn below(rows: i64, columns: i64, offset: i64) -> i128 {
    let [rows, columns, offset] = [rows, columns, offset].map(i128::from);
    // The sum of the lengths of rows, which grow by one from 0 to `columns`.
    let up_to = |n: i128| {
        let growing = n.clamp(0, columns);
        (growing * (growing + 1) / 2).saturating_add((n - columns).max(0).saturating_mul(columns))
    };
    up_to(offset + rows).saturating_sub(up_to(offset))
}

/// The places of the lower or the upper triangle of a matrix, in the order of rows.
fn triangle(
    name: &str, (rows, columns): (i64, i64), offset: i64, (dtype, device): (Any, Any), upper: bool,
) -> PyResult<PyTensor> {
    if rows < 0 || columns < 0 {
        return Err(value_error(format!(
            "{name}: rows and columns cannot be negative, got {rows} and {columns}"
        )));
    }
    let device = device_or_default(device)?;
    let dtype = optional_dtype(dtype)?.unwrap_or(index_type(device));
    let count = match upper {
        true => i128::from(rows) * i128::from(columns) - below(rows, columns, offset.saturating_sub(1)),
        false => below(rows, columns, offset),
    };
    let shape = Shape::new(&[2, usize::try_from(count).unwrap_or(usize::MAX)]).named(name)?;
    let mut places = with_capacity::<i64>(shape.numel())?;
    let range = |row: i64| match upper {
        true => row.saturating_add(offset).clamp(0, columns)..columns,
        false => 0..row.saturating_add(offset).saturating_add(1).clamp(0, columns),
    };
    let full = match upper {
        true => 0..columns.saturating_sub(offset).clamp(0, rows),
        false => offset.saturating_neg().clamp(0, rows)..rows,
    };
    let full = if columns == 0 { 0..0 } else { full };
    for row in full.clone() {
        places.extend(range(row).map(|_| row));
    }
    places.extend(full.flat_map(range));
    Ok(Tensor::from_slice(&places, &shape.to_vec())?.cast(dtype)?.to_device(device)?.into())
}

/// Returns rows and columns of the lower triangle of a matrix, up to diagonal `offset`, as a tensor of two
/// rows.
///
/// int64, or int32 on a GPU, unless `dtype` says otherwise.
#[pyfunction]
#[pyo3(signature = (row, col, offset=0, *, dtype=None, device=None))]
fn tril_indices(
    row: Whole, col: Whole, #[pyo3(from_py_with = whole)] offset: i64, dtype: Any, device: Any,
) -> PyResult<PyTensor> {
    triangle("tril_indices", (row.0, col.0), offset, (dtype, device), false)
}

/// Returns rows and columns of the upper triangle of a matrix, from diagonal `offset` on, as a tensor of two
/// rows.
///
/// int64, or int32 on a GPU, unless `dtype` says otherwise.
#[pyfunction]
#[pyo3(signature = (row, col, offset=0, *, dtype=None, device=None))]
fn triu_indices(
    row: Whole, col: Whole, #[pyo3(from_py_with = whole)] offset: i64, dtype: Any, device: Any,
) -> PyResult<PyTensor> {
    triangle("triu_indices", (row.0, col.0), offset, (dtype, device), true)
}

exports! { functions: tril_indices, triu_indices }
