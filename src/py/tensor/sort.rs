//! Sorting methods.

use crate::error::{Named, Result};
use crate::py::args::{amount, optional_whole, run, whole};
use crate::py::tensor::{PyTensor, wrap};
use crate::tensor::Tensor;
use pyo3::prelude::*;

/// Returns a pair (values, indices), named as in PyTorch.
pub fn pair<'py>(
    py: Python<'py>,
    x: &Tensor,
    f: impl FnOnce() -> Result<(Tensor, Tensor)> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let (values, indices) = run(py, x.numel(), f)?;
    let both = (wrap(py, values)?, wrap(py, indices)?);
    py.import("wengert._results")?.getattr("Along")?.call1(both)
}

#[pymethods]
impl PyTensor {
    /// The elements in sorted order along `dim`, and where they were: the pair (values, indices). Equal
    /// elements always keep their order (`stable` is accepted); NaN counts as the largest. VJP: each gradient
    /// goes back to where its element was; saves the indices.
    #[pyo3(signature = (dim=-1, descending=false, stable=true, *, axis=None))]
    fn sort<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = whole)] dim: i64,
        descending: bool,
        stable: bool,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stable;
        let t = self.value()?;
        pair(py, &t, || t.sort(axis.unwrap_or(dim), descending).named("sort"))
    }

    /// The positions that sort `dim`. Equal elements always keep their order (`stable` is accepted); NaN
    /// counts as the largest.
    #[pyo3(signature = (dim=-1, descending=false, stable=true, *, axis=None))]
    fn argsort(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole)] dim: i64,
        descending: bool,
        stable: bool,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<PyTensor> {
        let _ = stable;
        self.apply(py, |x| x.argsort(axis.unwrap_or(dim), descending))
    }

    /// The `k` largest (or smallest) elements along `dim` in sorted order (`sorted` is accepted), and where
    /// they were: the pair (values, indices). VJP: each gradient goes back to where its element was; saves
    /// the indices.
    #[pyo3(signature = (k, dim=-1, largest=true, sorted=true, *, axis=None))]
    fn topk<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = amount)] k: usize,
        #[pyo3(from_py_with = whole)] dim: i64,
        largest: bool,
        sorted: bool,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = sorted;
        let t = self.value()?;
        pair(py, &t, || t.topk(k, axis.unwrap_or(dim), largest))
    }
}
