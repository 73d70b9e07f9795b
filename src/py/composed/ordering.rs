//! Order statistics and distinct elements, by sorting and gathering. Read next:
//! `src/py/composed/quantiles.rs`.

use crate::ops::indexing::nonzero;
use crate::ops::pointwise::compare::Logic;
use crate::ops::pointwise::operand::Operand;
use crate::ops::reduce::index_type;
use crate::ops::views::join::cat;
use crate::py::composed::shapes::{Axis, on_axis, positions};
use crate::py::prelude::*;
use crate::py::tensor::object;
use crate::py::tensor::rearrange::moved;
use crate::py::tensor::reduce::difference;
use crate::py::writes::aliasing::unaliased;

/// The elements at one index per line along an axis, and the indices, without the axis unless it is to stay.
fn along(x: &Tensor, wide: &Tensor, index: &Tensor, axis: usize, keep: bool) -> Result<(Tensor, Tensor)> {
    let values = wide.gather(axis as i64, index)?;
    if x.rank() == 0 {
        return Ok((values.reshape(&Shape::SCALAR)?, index.reshape(&Shape::SCALAR)?));
    }
    let without = |t: &Tensor| if keep { Ok(t.clone()) } else { t.squeeze(Some(&[axis as i64])) };
    Ok((without(&values)?, without(index)?))
}

/// Raises for a line of no elements, which has no `what`.
fn check_elements(name: &str, what: &str, x: &Tensor, dim: i64, length: usize) -> Result<()> {
    match length {
        0 => {
            Err(Error::value(format!("{name}: axis {dim} of shape {} is empty and has no {what}", x.shape())))
        }
        _ => Ok(()),
    }
}

/// How to find the median: on behalf of which method, along which axis that may stay, and whether NaN counts.
#[derive(Clone, Copy)]
struct Median {
    name: &'static str,
    keep: bool,
    skips_nan: bool,
}

impl Median {
    /// The medians along an axis, and where they are.
    fn along(self, x: &Tensor, dim: i64) -> Result<(Tensor, Tensor)> {
        let (wide, axis) = on_axis(self.name, x, dim)?;
        let (length, at) = (wide.shape().at(axis), axis as i64);
        check_elements(self.name, "median", x, dim, length)?;
        let order = wide.argsort(at, false)?;
        let mut index = order.narrow(at, (length - 1) / 2, 1)?;
        if wide.dtype().is_float() {
            let plain = wide.detach();
            let nan = plain.ne(&plain)?;
            // NaN sorts to the end, behind so many others.
            let count = nan.logical_not()?.sum(Some(&[at]), true)?;
            let place = |count: &Tensor| order.gather(at, &count.cast(order.dtype())?);
            index = if self.skips_nan {
                place(&count.sub(1i64)?.floor_divide(2i64)?.clamp(Some(Operand::Int(0)), None)?)?
            } else {
                let first = place(&count.clamp(None, Some(Operand::Int(length as i128 - 1)))?)?;
                nan.any(Some(&[at]), true)?.select(&first, &index)?
            };
        }
        along(x, &wide, &index, axis, self.keep)
    }

    /// The median of all elements, whose gradient those equal to it share.
    fn of_all(self, x: &Tensor) -> Result<Tensor> {
        let flat = x.flatten(0, -1)?;
        let is_float = flat.dtype().is_float();
        if flat.numel() == 0 {
            if !is_float {
                return Err(Error::value(format!(
                    "{}: no elements, the shape is {}, and wengert.{} has no NaN to say so",
                    self.name,
                    x.shape(),
                    x.dtype()
                )));
            }
            return flat.sum(None, false)?.mul(f64::NAN);
        }
        let plain = flat.detach();
        let (value, _) = Median { keep: false, ..self }.along(&plain, 0)?;
        if !is_float {
            return Ok(value);
        }
        // The same as the largest of the elements equal to it, which share the gradient.
        let both_nan = plain.ne(&plain)?.logical(&value.ne(&value)?, Logic::And)?;
        let others = plain.eq(&value)?.logical(&both_nan, Logic::Or)?.logical_not()?;
        // Of infinite ones too: those that are not the same lie on the other side of all numbers.
        let side = value.gt(0i64)?.select(&value.ones_like()?, &value.constant_like(-1.0)?)?;
        flat.mul(&side)?.masked_fill(&others, f64::NEG_INFINITY)?.amax(None, false)?.mul(&side)
    }

    /// The method of a tensor: of all elements, or along an axis.
    fn of<'py>(self, py: Python<'py>, x: &PyTensor, dim: Option<Axis>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(dim) = dim {
            let dim = dim.of(self.name)?;
            return x.values_and_indices(py, |x| self.along(x, dim).named(self.name));
        }
        let t = x.value()?;
        object(py, run(py, t.numel(), || unaliased(self.of_all(&t).named(self.name)?, &t))?)
    }
}

/// The index of the last occurrence of the most frequent element of each line along an axis.
fn most_frequent(wide: &Tensor, axis: usize) -> Result<Tensor> {
    let line = moved(&wide.detach(), &[axis as i64], &[-1])?;
    let length = wide.shape().at(axis);
    let order = line.argsort(-1, false)?;
    let sorted = line.gather(-1, &order)?;
    let differ = sorted.narrow(-1, 1, length - 1)?.ne(&sorted.narrow(-1, 0, length - 1)?)?;
    let first = Tensor::full(sorted.narrow(-1, 0, 1)?.shape(), 1.0, DType::Bool, wide.device())?;
    let begins = cat(&[first, differ], -1)?;
    let at = positions(length, wide.device())?.expand(&order.shape())?;
    let (start, _) = begins.select(&at, 0i64)?.cummax(-1)?;
    // The longest run so far ends here; the first of equal lengths has the smallest value.
    let end = at.sub(&start)?.argmax(Some(-1), true)?;
    moved(&order.gather(-1, &end)?, &[-1], &[axis as i64])
}

#[pymethods]
impl PyTensor {
    /// Returns the `k`-th smallest element along `dim` (1 is the smallest), and its index: the pair (values,
    /// indices).
    ///
    /// NaN counts as the largest. The gradient goes to where the element is.
    ///
    /// Raises:
    ///     ValueError: `k` is not between 1 and the length of the axis.
    #[pyo3(
        signature = (k, dim=Axis(Ok(-1)), keepdim=false),
        text_signature = "($self, k, dim=-1, keepdim=False)"
    )]
    fn kthvalue<'py>(&self, k: &Bound<'py, PyAny>, dim: Axis, keepdim: bool) -> PyResult<Bound<'py, PyAny>> {
        let dim = dim.of("kthvalue")?;
        let (wide, axis) = on_axis("kthvalue", &*self.value()?, dim)?;
        let length = wide.shape().at(axis);
        let number = if k.is_instance_of::<PyInt>() { k.extract::<usize>().ok() } else { None };
        let Some(place) = number.filter(|place| (1..=length).contains(place)) else {
            return Err(value_error(format!(
                "kthvalue: k = {} is out of range for axis {dim} of length {length}; k is between 1 and \
                 {length}",
                k.repr()?
            )));
        };
        k.extract::<Whole>()?;
        let found = |x: &Tensor| {
            let index = wide.topk(place, axis as i64, false)?.1.narrow(axis as i64, place - 1, 1)?;
            along(x, &wide, &index, axis, keepdim)
        };
        self.values_and_indices(k.py(), |x| found(x).named("kthvalue"))
    }

    /// Returns the median: the middle element in sorted order, the lower one of two; NaN of none, or with a
    /// NaN.
    ///
    /// Args:
    ///     dim: the axis; without it, of all elements.
    ///     keepdim: keep the axis with length 1.
    ///
    /// Returns:
    ///     The pair (values, indices) along `dim`, whose gradient goes to where the element is; or one value,
    ///     whose gradient is shared by the elements equal to it.
    ///
    /// Raises:
    ///     ValueError: of no elements along `dim`, or of no integers.
    #[pyo3(signature = (dim=None, keepdim=false))]
    fn median<'py>(&self, py: Python<'py>, dim: Option<Axis>, keepdim: bool) -> PyResult<Bound<'py, PyAny>> {
        Median { name: "median", keep: keepdim, skips_nan: false }.of(py, self, dim)
    }

    /// Returns `median` of the elements that are not NaN; NaN where there are none.
    #[pyo3(signature = (dim=None, keepdim=false))]
    fn nanmedian<'py>(
        &self, py: Python<'py>, dim: Option<Axis>, keepdim: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        Median { name: "nanmedian", keep: keepdim, skips_nan: true }.of(py, self, dim)
    }

    /// Returns the most frequent element along `dim`, the smallest of several, and the index of its last
    /// occurrence.
    #[pyo3(
        signature = (dim=Axis(Ok(-1)), keepdim=false),
        text_signature = "($self, dim=-1, keepdim=False)"
    )]
    fn mode<'py>(&self, py: Python<'py>, dim: Axis, keepdim: bool) -> PyResult<Bound<'py, PyAny>> {
        let dim = dim.of("mode")?;
        let found = |x: &Tensor| {
            let (wide, axis) = on_axis("mode", x, dim)?;
            check_elements("mode", "mode", x, dim, wide.shape().at(axis))?;
            along(x, &wide, &most_frequent(&wide, axis)?, axis, keepdim)
        };
        self.values_and_indices(py, |x| found(x).named("mode"))
    }
}

/// What to find of distinct elements.
#[derive(Clone, Copy)]
struct Distinct {
    dim: Option<i64>,
    inverse: bool,
    counts: bool,
    sorts: bool,
}

/// The order that sorts rows as words are ordered.
fn order_of(rows: &Tensor) -> Result<Tensor> {
    let mut keys = rows.detach();
    if keys.dtype().is_complex() {
        keys = keys.view_as_real()?.flatten(1, -1)?;
    }
    let mut order = positions(rows.shape().at(0), rows.device())?;
    // Stable sorts from the last column to the first.
    for column in (0..keys.shape().at(1)).rev() {
        let next = keys.select_index(1, column as i64)?.index_select(0, &order)?.argsort(0, false)?;
        order = order.index_select(0, &next)?;
    }
    Ok(order)
}

impl Distinct {
    /// The first of each run of equal rows, after sorting by `order`, and what else is asked for.
    fn of_rows(self, rows: &Tensor, order: Option<&Tensor>) -> Result<Vec<Tensor>> {
        let (count, device) = (rows.shape().at(0), rows.device());
        let placed = match order {
            Some(order) => rows.index_select(0, order)?,
            None => rows.clone(),
        };
        let mut begins = Tensor::full(Shape::new(&[count])?, 1.0, DType::Bool, device)?;
        if count > 1 {
            let differ = placed.narrow(0, 1, count - 1)?.ne(&placed.narrow(0, 0, count - 1)?)?;
            begins = cat(&[begins.narrow(0, 0, 1)?, differ.any(Some(&[1]), false)?], 0)?;
        }
        let first = nonzero(&begins)?.flatten(0, -1)?;
        let mut found = vec![placed.index_select(0, &first)?];
        if self.inverse {
            let group = begins.cumsum(0)?.cast(index_type(device))?.sub(1i64)?;
            found.push(match order {
                Some(order) => group.index_select(0, &order.argsort(0, false)?)?,
                None => group,
            });
        }
        if self.counts {
            let end = Tensor::full(Shape::new(&[1])?, count as f64, first.dtype(), device)?;
            found.push(difference(&cat(&[first, end], 0)?, 0)?);
        }
        Ok(found)
    }

    /// The distinct elements of a tensor, or its distinct slices along an axis, and what else is asked for.
    fn find(self, name: &str, x: &Tensor) -> Result<Vec<Tensor>> {
        let (front, axis) = match self.dim {
            None => (x.flatten(0, -1)?, 0),
            Some(dim) => {
                let (wide, axis) = on_axis(name, x, dim)?;
                (moved(&wide, &[axis as i64], &[0])?, axis as i64)
            }
        };
        let own = front.shape();
        let (length, width) = (own.at(0), own.part(1, own.rank()));
        let columns = if x.numel() == 0 { 0 } else { width.numel() };
        let rows = front.reshape(&Shape::new(&[length, columns])?)?;
        let order = if self.sorts { Some(order_of(&rows)?) } else { None };
        let mut found = self.of_rows(&rows, order.as_ref())?;
        let count = found[0].shape().at(0);
        found[0] = moved(&found[0].reshape(&width.inserted(0, count)?)?, &[0], &[axis])?;
        if self.inverse && self.dim.is_none() {
            found[1] = found[1].reshape(&x.shape())?;
        }
        Ok(found)
    }

    /// The method of a tensor: one result, or a tuple.
    fn of<'py>(self, py: Python<'py>, name: &str, x: &PyTensor) -> PyResult<Bound<'py, PyAny>> {
        let x = x.value()?.into_owned();
        let found = run(py, x.numel(), || self.find(name, &x).named(name))?;
        match &found[..] {
            [only] => object(py, only.clone()),
            _ => Ok(PyTuple::new(py, found.into_iter().map(PyTensor::from))?.into_any()),
        }
    }
}

#[pymethods]
impl PyTensor {
    /// Returns the distinct elements, ascending; along `dim`, the distinct slices. Each NaN is distinct.
    ///
    /// Complex numbers ascend by their real parts, then by their imaginary ones, as in NumPy.
    ///
    /// Args:
    ///     sorted: accepted; the result is always sorted.
    ///     return_inverse: also return where each element is in the result.
    ///     return_counts: also return how often each one occurs.
    ///
    /// Returns:
    ///     The elements, or a tuple of them and what was asked for. The gradient goes to the first of equal
    ///     elements.
    #[pyo3(signature = (sorted=true, return_inverse=false, return_counts=false, dim=None))]
    fn unique<'py>(
        &self, py: Python<'py>, sorted: bool, return_inverse: bool, return_counts: bool, dim: Option<Axis>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = sorted;
        let (name, counts) = ("unique", return_counts);
        let dim = dim.map(|dim| dim.of(name)).transpose()?;
        Distinct { dim, inverse: return_inverse, counts, sorts: true }.of(py, name, self)
    }

    /// Returns `unique` of neighbours only: the first of each run of equal elements, in their order.
    #[pyo3(signature = (return_inverse=false, return_counts=false, dim=None))]
    fn unique_consecutive<'py>(
        &self, py: Python<'py>, return_inverse: bool, return_counts: bool, dim: Option<Axis>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (name, counts) = ("unique_consecutive", return_counts);
        let dim = dim.map(|dim| dim.of(name)).transpose()?;
        Distinct { dim, inverse: return_inverse, counts, sorts: false }.of(py, name, self)
    }
}
