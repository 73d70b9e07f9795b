//! Methods with attributes or several tensors: products, limits, selection, gathering, normalisation.

use crate::error::{Error, Named, Result};
use crate::interp::{self, autocast};
use crate::ops::indexing::nonzero;
use crate::ops::pointwise::compare::Logic;
use crate::py::args::{Arg, AsTensor, either, one_of, optional_whole, run, whole};
use crate::py::data::reading::item;
use crate::py::relative::{Compared, Relative, clamp};
use crate::py::tensor::PyTensor;
use crate::py::tensor::operators::logical;
use crate::py::tensor::selection::{hidden_mask, selection};
use crate::tensor::Tensor;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Raises unless the tensors have these numbers of axes.
fn ranks(op: &str, operands: &[(&Tensor, usize)]) -> Result<()> {
    for (x, rank) in operands {
        if x.rank() != *rank {
            return Err(Error::shape(format!(
                "{op}: operands with {} axes expected, got shapes {}",
                operands.iter().map(|o| o.1.to_string()).collect::<Vec<_>>().join(" and "),
                operands.iter().map(|o| o.0.shape().to_string()).collect::<Vec<_>>().join(" and ")
            )));
        }
    }
    Ok(())
}

fn product(name: &str, py: Python<'_>, x: &Tensor, y: &Tensor) -> PyResult<PyTensor> {
    run(py, x.numel().max(y.numel()), || x.matmul(y).named(name)).map(PyTensor::from)
}

impl PyTensor {
    /// Returns this tensor and another operand beside it.
    fn pair(&self, other: &Relative<'_>) -> PyResult<(Tensor, Tensor)> {
        let x = self.value()?.into_owned();
        let y = other.tensor(&x)?;
        Ok((x, y))
    }
}

#[pymethods]
impl PyTensor {
    /// Matrix product as NumPy's: vectors are rows or columns, leading axes broadcast.
    /// VJP: `g @ y.mT` and `x.mT @ g`; saves both operands.
    fn matmul(&self, py: Python<'_>, other: Relative<'_>) -> PyResult<PyTensor> {
        let (x, y) = self.pair(&other)?;
        product("matmul", py, &x, &y)
    }

    /// Product of two matrices.
    fn mm(&self, py: Python<'_>, mat2: Relative<'_>) -> PyResult<PyTensor> {
        let (x, y) = self.pair(&mat2)?;
        ranks("mm", &[(&x, 2), (&y, 2)])?;
        product("mm", py, &x, &y)
    }

    /// Products of two batches of matrices.
    fn bmm(&self, py: Python<'_>, mat2: Relative<'_>) -> PyResult<PyTensor> {
        let (x, y) = self.pair(&mat2)?;
        ranks("bmm", &[(&x, 3), (&y, 3)])?;
        product("bmm", py, &x, &y)
    }

    /// Product of a matrix and a vector.
    fn mv(&self, py: Python<'_>, vec: Relative<'_>) -> PyResult<PyTensor> {
        let (x, y) = self.pair(&vec)?;
        ranks("mv", &[(&x, 2), (&y, 1)])?;
        product("mv", py, &x, &y)
    }

    /// Inner product of two vectors.
    fn dot(&self, py: Python<'_>, other: Relative<'_>) -> PyResult<PyTensor> {
        let (x, y) = self.pair(&other)?;
        ranks("dot", &[(&x, 1), (&y, 1)])?;
        // Autocast does not lower this product: a single sum makes no use of matrix units.
        let (x, y) = autocast::widest(&x, &y)?;
        let _region = interp::autocasting().then(|| interp::enter_autocast(None));
        product("dot", py, &x, &y)
    }

    /// Outer product of two vectors: `out[i, j] = x[i] * y[j]`.
    fn outer(&self, py: Python<'_>, vec2: Relative<'_>) -> PyResult<PyTensor> {
        let (x, y) = self.pair(&vec2)?;
        ranks("outer", &[(&x, 1), (&y, 1)])?;
        self.apply(py, |x| x.unsqueeze(1)?.mul(&y).named("outer"))
    }

    /// Values limited to `[min, max]`, numbers or tensors; the derivative at a bound is 1.
    #[pyo3(signature = (min=None, max=None))]
    fn clamp(&self, py: Python<'_>, min: Option<Compared>, max: Option<Compared>) -> PyResult<PyTensor> {
        clamp(py, &*self.value()?, min, max).map(PyTensor::from)
    }

    /// The same as `clamp`.
    #[pyo3(signature = (min=None, max=None))]
    fn clip(&self, py: Python<'_>, min: Option<Compared>, max: Option<Compared>) -> PyResult<PyTensor> {
        clamp(py, &*self.value()?, min, max).map(PyTensor::from)
    }

    /// `log(1 + exp(beta x)) / beta`, linear where `beta x > threshold`. VJP: `g * sigmoid(beta x)`.
    #[pyo3(signature = (beta=1.0, threshold=20.0))]
    fn softplus(&self, py: Python<'_>, beta: f64, threshold: f64) -> PyResult<PyTensor> {
        self.apply(py, |x| x.softplus(beta, threshold))
    }

    /// Gaussian error linear unit `x * Phi(x)`; `approximate="tanh"` for the approximation by tanh.
    #[pyo3(signature = (approximate="none"))]
    fn gelu(&self, py: Python<'_>, approximate: &str) -> PyResult<PyTensor> {
        let tanh = match approximate {
            "none" => false,
            "tanh" => true,
            other => {
                return Err(Error::value(format!(
                    "gelu: approximate must be 'none' or 'tanh', got '{other}'"
                ))
                .into());
            }
        };
        self.apply(py, |x| x.gelu(tanh).named("gelu"))
    }

    /// `x` where `condition` holds, `other` elsewhere. No gradient flows through what is not picked.
    fn r#where(&self, py: Python<'_>, condition: &PyTensor, other: Arg) -> PyResult<PyTensor> {
        let mask = &*condition.value()?;
        self.apply(py, |x| mask.select(x, other.operand()).named("where"))
    }

    /// This tensor with `value` where `mask` holds.
    fn masked_fill(&self, py: Python<'_>, mask: AsTensor, value: Arg) -> PyResult<PyTensor> {
        self.apply(py, |x| x.masked_fill(&mask.0, value.operand()).named("masked_fill"))
    }

    /// The elements where `mask` holds, in one axis. Their number depends on the data.
    fn masked_select<'py>(&self, mask: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = mask.py();
        let hidden = hidden_mask(mask)?;
        let mask: AsTensor = mask.extract()?;
        let wide = self.read().t.shape().broadcast(&mask.0.shape()).unwrap_or(self.read().t.shape());
        if let Some((key, mask)) = hidden {
            return selection(py, &self.value()?.expand(&wide)?, &key, &mask.expand(&wide)?);
        }
        // A tensor without axes counts as a vector of one element.
        let wide = if wide.rank() == 0 { wide.inserted(0, 1)? } else { wide };
        let found = nonzero(&mask.0.expand(&wide).named("masked_select")?)?;
        let indices = (0..found.shape().at(1) as i64)
            .map(|k| found.select_index(1, k).map(Some))
            .collect::<Result<Vec<_>>>()?;
        let out = self.value()?.expand(&wide)?.index(&indices).named("masked_select")?;
        let out = PyTensor::from(out);
        Ok(Bound::new(py, out)?.into_any())
    }

    /// The positions of elements that are not zero, one row each; `as_tuple=True` gives one tensor per axis.
    #[pyo3(signature = (*, as_tuple=false))]
    fn nonzero<'py>(&self, py: Python<'py>, as_tuple: bool) -> PyResult<Bound<'py, PyAny>> {
        let t = self.value()?;
        // As a tuple, a tensor without axes counts as a vector of one element.
        let found = if as_tuple && t.rank() == 0 { nonzero(&t.unsqueeze(0)?)? } else { nonzero(&t)? };
        if !as_tuple {
            return Ok(Bound::new(py, PyTensor::from(found))?.into_any());
        }
        let columns = (0..found.shape().at(1) as i64)
            .map(|k| Py::new(py, PyTensor::from(found.select_index(1, k)?)))
            .collect::<PyResult<Vec<_>>>()?;
        Ok(PyTuple::new(py, columns)?.into_any())
    }

    /// Elements of the flattened tensor at `index`; along `dim`, rows picked by a vector of indices.
    #[pyo3(signature = (index, dim=None, *, axis=None))]
    fn take(
        &self,
        py: Python<'_>,
        index: AsTensor,
        #[pyo3(from_py_with = optional_whole)] dim: Option<i64>,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<PyTensor> {
        let axis = one_of(dim, axis)?;
        self.apply(py, |x| match axis {
            Some(axis) => x.take(&index.0, axis),
            None => x.flatten(0, -1)?.take(&index.0, 0),
        })
    }

    /// Rows along `dim` picked by a vector of indices. VJP: rows of `g` added at the indices.
    fn index_select(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole)] dim: i64,
        index: AsTensor,
    ) -> PyResult<PyTensor> {
        self.apply(py, |x| x.index_select(dim, &index.0).named("index_select"))
    }

    /// One element per index along `dim`: `out[i][j] = x[index[i][j]][j]` for `dim=0`.
    fn gather(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole)] dim: i64,
        index: AsTensor,
    ) -> PyResult<PyTensor> {
        self.apply(py, |x| x.gather(dim, &index.0))
    }

    /// Elements along `dim` at `index`, which broadcasts against the other axes; without `dim`, of the
    /// flattened tensor.
    #[pyo3(signature = (indices, dim=None, *, axis=None))]
    fn take_along_dim(
        &self,
        py: Python<'_>,
        indices: AsTensor,
        #[pyo3(from_py_with = optional_whole)] dim: Option<i64>,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<PyTensor> {
        let axis = one_of(dim, axis)?;
        self.apply(py, |x| {
            let Some(axis) = axis else {
                return x.flatten(0, -1)?.take(&indices.0.flatten(0, -1)?, 0);
            };
            let i = x.shape().axis(axis, "take_along_dim")?;
            let index = &indices.0;
            if index.rank() != x.rank() {
                return x.gather(axis, index);
            }
            let (a, b) = (x.shape().with(i, 1), index.shape().with(i, 1));
            let Some(wide) = a.broadcast(&b) else {
                return x.gather(axis, index);
            };
            let own = x.expand(&wide.with(i, x.shape().at(i)))?;
            own.gather(axis, &index.expand(&wide.with(i, index.shape().at(i)))?)
        })
    }

    /// This tensor with the elements of `src` added at `index` along `dim`.
    fn scatter_add(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole)] dim: i64,
        index: AsTensor,
        src: Relative<'_>,
    ) -> PyResult<PyTensor> {
        let (_, src) = self.pair(&src)?;
        self.apply(py, |x| x.scatter_add(dim, &index.0, &src).named("scatter_add"))
    }

    /// This tensor with rows of `source` added along `dim` at a vector of indices.
    #[pyo3(signature = (dim, index, source, *, alpha=Arg::Int(1)))]
    fn index_add(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole)] dim: i64,
        index: AsTensor,
        source: Relative<'_>,
        alpha: Arg,
    ) -> PyResult<PyTensor> {
        let (_, source) = self.pair(&source)?;
        let scaled = match alpha {
            Arg::Int(1) | Arg::Float(1.0) => source,
            _ => source.mul(alpha.operand()).named("index_add")?,
        };
        self.apply(py, |x| x.index_add(dim, &index.0, &scaled).named("index_add"))
    }

    /// `exp(x) / sum(exp(x))` along `dim`. VJP: `y * (g - sum(g * y))`; saves the output.
    #[pyo3(signature = (dim=None, *, dtype=None, axis=None))]
    fn softmax(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = optional_whole)] dim: Option<i64>,
        dtype: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<PyTensor> {
        let dtype = crate::py::data::dtype::optional_dtype(dtype)?.unwrap_or(self.read().t.dtype());
        let axis = either(dim, axis, -1)?;
        self.apply(py, |x| x.cast(dtype)?.softmax(axis))
    }

    /// `log(softmax(x))` along `dim`, accurate where softmax underflows. VJP: `g - exp(y) * sum(g)`; saves
    /// the output.
    #[pyo3(signature = (dim=None, *, dtype=None, axis=None))]
    fn log_softmax(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = optional_whole)] dim: Option<i64>,
        dtype: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = optional_whole)] axis: Option<i64>,
    ) -> PyResult<PyTensor> {
        let dtype = crate::py::data::dtype::optional_dtype(dtype)?.unwrap_or(self.read().t.dtype());
        let axis = either(dim, axis, -1)?;
        self.apply(py, |x| x.cast(dtype)?.log_softmax(axis))
    }

    /// Truth values: both.
    fn logical_and(&self, py: Python<'_>, other: Arg) -> PyResult<PyTensor> {
        logical(py, &*self.value()?, &other, Logic::And).map(PyTensor::from)
    }

    /// Truth values: at least one.
    fn logical_or(&self, py: Python<'_>, other: Arg) -> PyResult<PyTensor> {
        logical(py, &*self.value()?, &other, Logic::Or).map(PyTensor::from)
    }

    /// Truth values: exactly one.
    fn logical_xor(&self, py: Python<'_>, other: Arg) -> PyResult<PyTensor> {
        logical(py, &*self.value()?, &other, Logic::Xor).map(PyTensor::from)
    }

    /// Truth values: the opposite.
    fn logical_not(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.apply(py, Tensor::logical_not)
    }

    /// Where the elements are not a number.
    fn isnan(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.apply(py, |x| x.ne(x))
    }

    /// Where the elements are infinite.
    fn isinf(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.apply(py, Tensor::is_infinite)
    }

    /// Where the elements are neither infinite nor NaN.
    fn isfinite(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.apply(py, Tensor::is_finite)
    }

    /// Where `|x - y| <= atol + rtol * |y|`.
    #[pyo3(signature = (other, rtol=1e-5, atol=1e-8, equal_nan=false))]
    fn isclose(
        &self,
        py: Python<'_>,
        other: Compared,
        rtol: f64,
        atol: f64,
        equal_nan: bool,
    ) -> PyResult<PyTensor> {
        self.apply(py, |x| x.close(other.0.operand(), rtol, atol, equal_nan).named("isclose"))
    }

    /// Whether all elements are close: `|x - y| <= atol + rtol * |y|`.
    #[pyo3(signature = (other, rtol=1e-5, atol=1e-8, equal_nan=false))]
    fn allclose(
        &self,
        py: Python<'_>,
        other: Compared,
        rtol: f64,
        atol: f64,
        equal_nan: bool,
    ) -> PyResult<bool> {
        let close = self.value()?.close(other.0.operand(), rtol, atol, equal_nan).named("allclose")?;
        let all = close.all(None, false)?;
        item(py, &all)?.is_truthy()
    }

    /// Whether shapes and all elements are the same.
    fn equal(&self, py: Python<'_>, other: Compared) -> PyResult<bool> {
        let other = other.0;
        if let Arg::Tensor(other) = &other
            && self.read().t.shape() != other.shape()
        {
            return Ok(false);
        }
        if !matches!(other, Arg::Tensor(_)) && self.read().t.shape().rank() > 0 {
            return Ok(false);
        }
        item(py, &self.value()?.eq(other.operand()).named("equal")?.all(None, false)?)?.is_truthy()
    }
}
