//! Methods that scan along an axis, and searches that functions of the Python package are built on.

use crate::py::args::{Arg, AsTensor, either, optional_whole, whole};
use crate::py::tensor::PyTensor;
use crate::py::tensor::sort::pair;
use pyo3::prelude::*;

#[pymethods]
impl PyTensor {
    /// The cumulative product along `dim`, in `dtype` if given, exact in its gradient at zeros too. Integers
    /// and bools are multiplied as int64 (int32 on a GPU). VJP: a first-order recurrence from the back; saves
    /// input and output.
    #[pyo3(signature = (dim=None, *, dtype=None, axis=None))]
    fn cumprod(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = optional_whole)] dim: Option<i64>,
        dtype: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<PyTensor> {
        let axis = either(dim, axis, 0)?;
        self.in_dtype(py, dtype, |x| x.cumprod(axis))
    }

    /// The largest element so far along `dim`, and where it is: the pair (values, indices). The last of equal
    /// elements; NaN counts as the largest. VJP: each gradient goes to where its element is; saves the
    /// indices.
    #[pyo3(signature = (dim=None, *, axis=None))]
    fn cummax<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = optional_whole)] dim: Option<i64>,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let t = self.value()?;
        let axis = either(dim, axis, 0)?;
        pair(py, &t, || t.cummax(axis))
    }

    /// The smallest element so far along `dim`, and where it is: the pair (values, indices). The last of
    /// equal elements; NaN counts as the smallest. VJP: each gradient goes to where its element is; saves the
    /// indices.
    #[pyo3(signature = (dim=None, *, axis=None))]
    fn cummin<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = optional_whole)] dim: Option<i64>,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let t = self.value()?;
        let axis = either(dim, axis, 0)?;
        pair(py, &t, || t.cummin(axis))
    }

    /// `log(cumsum(exp(x)))` along `dim`, without overflow.
    #[pyo3(signature = (dim=None, *, axis=None))]
    fn logcumsumexp(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = optional_whole)] dim: Option<i64>,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<PyTensor> {
        let axis = either(dim, axis, 0)?;
        self.apply(py, |x| x.logcumsumexp(axis))
    }

    /// The first-order recurrence `s[i] = decay[i] * s[i-1] + x[i]` along `dim`, with nothing before the
    /// first; from the back with `reverse`. `decay` broadcasts with the tensor. VJP: the same recurrence the
    /// other way round; saves decays and result.
    #[pyo3(signature = (decay, dim=-1, reverse=false, *, axis=None))]
    fn linear_recurrence(
        &self,
        py: Python<'_>,
        decay: Arg,
        #[pyo3(from_py_with = whole)] dim: i64,
        reverse: bool,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<PyTensor> {
        self.apply(py, |x| x.linear_recurrence(&decay.tensor_with(x)?, axis.unwrap_or(dim), reverse))
    }

    fn _search_sorted(&self, py: Python<'_>, values: Arg, right: bool) -> PyResult<PyTensor> {
        self.apply(py, |x| x.search_sorted(&values.tensor_with(x)?, right))
    }

    fn _scatter_last(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole)] dim: i64,
        length: usize,
    ) -> PyResult<PyTensor> {
        self.apply(py, |x| x.scatter_last(dim, length))
    }

    fn _scatter_extreme(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole)] dim: i64,
        index: AsTensor,
        source: AsTensor,
        largest: bool,
    ) -> PyResult<PyTensor> {
        self.apply(py, |x| x.scatter_extreme(dim, &index.0, &source.0, largest))
    }
}
