//! Parts of tensors along an axis, at given places or of given lengths; and turning them over.

use crate::ops::views::join::split;
use crate::py::args::{Listed, MOST_ROWS, count, integer};
use crate::py::composed::check_axes;
use crate::py::prelude::*;
use crate::py::tensor::shaping::views_of;

type Parts<'py> = PyResult<Bound<'py, PyTuple>>;

/// Where the parts but the first begin along an axis of this length.
fn places(given: &Bound<'_, PyAny>, length: usize) -> PyResult<Vec<i64>> {
    let listed =
        if given.is_instance_of::<PyTensor>() { given.call_method0("tolist")? } else { given.clone() };
    if listed.is_instance_of::<PyInt>() {
        let n = integer(&listed)?;
        if n < 1 {
            return Err(value_error(format!("tensor_split: at least one part expected, got {n}")));
        }
        if n > MOST_ROWS as i64 {
            return Err(value_error(format!("tensor_split: at most {MOST_ROWS} parts expected, got {n}")));
        }
        let (least, longer) = (length as i64 / n, length as i64 % n);
        return Ok((1..n).map(|i| i * least + i.min(longer)).collect());
    }
    let wrong = || -> PyResult<PyErr> {
        let given = given.repr()?;
        Ok(type_error(format!(
            "tensor_split: a number of parts or a sequence of integers expected, got {given}"
        )))
    };
    if !(listed.is_instance_of::<PyList>() || listed.is_instance_of::<PyTuple>()) {
        return Err(wrong()?);
    }
    let mut all = Vec::new();
    for place in listed.try_iter()? {
        let place = place?;
        if !place.is_instance_of::<PyInt>() {
            return Err(wrong()?);
        }
        all.push(integer(&place)?);
    }
    Ok(all)
}

/// The parts along `dim` of a tensor, as [`PyTensor::tensor_split`] says.
fn split_at<'py>(slf: &Bound<'py, PyTensor>, given: &Bound<'py, PyAny>, dim: i64) -> Parts<'py> {
    let own = slf.read().t.shape();
    let length = own.at(own.axis(dim, "tensor_split")?);
    let inner = places(given, length)?;
    // As in a slice, places count from the end where they are negative, and end with the axis.
    let at = |i: i64| (if i < 0 { i + length as i64 } else { i }).clamp(0, length as i64) as usize;
    let begins = std::iter::once(0).chain(inner.iter().map(|&i| at(i)));
    let ends = inner.iter().map(|&i| at(i)).chain([length]);
    let parts: Vec<_> = begins.zip(ends).map(|(from, to)| (from, to.saturating_sub(from))).collect();
    views_of(slf, |x| parts.iter().map(|&(from, length)| x.narrow(dim, from, length)).collect())
}

/// The parts along an axis that the tensor must have, of one length where their number is given.
fn even<'py>(
    name: &str, slf: &Bound<'py, PyTensor>, given: &Bound<'py, PyAny>, dim: usize, least: usize,
) -> Parts<'py> {
    let own = slf.read().t.shape();
    if own.rank() < least {
        return Err(Error::shape(format!("{name}: at least {least} axes expected, got shape {own}")).into());
    }
    let length = own.at(dim);
    if given.is_instance_of::<PyInt>() {
        let n = integer(given)?;
        if n < 1 || length as i64 % n != 0 {
            return Err(value_error(format!(
                "{name}: axis {dim} of length {length} does not divide into {n} equal parts; tensor_split \
                 makes unequal ones"
            )));
        }
    }
    split_at(slf, given, dim as i64)
}

#[pymethods]
impl PyTensor {
    /// Splits along `dim` into views.
    ///
    /// Args:
    ///     indices_or_sections: how many parts, the first of which are one longer where the length does not
    ///         divide; or the places where parts begin, a sequence or a vector of integers, as in slices.
    #[pyo3(signature = (indices_or_sections, dim=0))]
    fn tensor_split<'py>(
        slf: &Bound<'py, Self>, indices_or_sections: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = whole)] dim: i64,
    ) -> Parts<'py> {
        check_axes("tensor_split", &slf.read().t, 1)?;
        split_at(slf, indices_or_sections, dim)
    }

    /// Splits along the second axis, vectors along their only one; see `tensor_split`.
    fn hsplit<'py>(slf: &Bound<'py, Self>, indices_or_sections: &Bound<'py, PyAny>) -> Parts<'py> {
        let axis = usize::from(slf.read().t.rank() != 1);
        even("hsplit", slf, indices_or_sections, axis, 1)
    }

    /// Splits along the first axis of a tensor with at least two; see `tensor_split`.
    fn vsplit<'py>(slf: &Bound<'py, Self>, indices_or_sections: &Bound<'py, PyAny>) -> Parts<'py> {
        even("vsplit", slf, indices_or_sections, 0, 2)
    }

    /// Splits along the third axis; see `tensor_split`.
    fn dsplit<'py>(slf: &Bound<'py, Self>, indices_or_sections: &Bound<'py, PyAny>) -> Parts<'py> {
        even("dsplit", slf, indices_or_sections, 2, 3)
    }

    /// Splits into parts of these lengths along `dim`, which are views.
    #[pyo3(signature = (split_sizes, dim=0))]
    fn split_with_sizes<'py>(
        slf: &Bound<'py, Self>, split_sizes: Listed, #[pyo3(from_py_with = whole)] dim: i64,
    ) -> Parts<'py> {
        let sizes = split_sizes.0.iter().map(|&n| count("split_with_sizes: a size", n));
        let sizes = sizes.collect::<PyResult<Vec<_>>>()?;
        views_of(slf, |x| split(x, &sizes, dim).named("split_with_sizes"))
    }

    /// Returns the conjugate transposes of the matrices in the last two axes.
    fn adjoint(slf: &Bound<'_, Self>) -> PyResult<PyTensor> {
        Self::adjoint_matrices(slf)
    }
}

methods! {
    /// Reverses the second axis.
    fliplr() = |x| {
        check_axes("fliplr", x, 2)?;
        x.flip(&[1])
    };
    /// Reverses the first axis.
    flipud() = |x| {
        check_axes("flipud", x, 1)?;
        x.flip(&[0])
    };
    /// Sorts the elements along the first axis.
    msort() = |x| Ok(x.sort(0, false).named("msort")?.0);
}
