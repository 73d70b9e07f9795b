//! Methods with attributes or several tensors: products, limits, selection, gathering, normalisation.

use crate::interp::autocast;
use crate::ops::indexing::nonzero;
use crate::ops::pointwise::unary::Parametric;
use crate::py::args::one_of;
use crate::py::data::reading::item;
use crate::py::prelude::*;
use crate::py::relative::{Compared, Relative, clamp};
use crate::py::tensor::options::renamed;
use crate::py::tensor::{object, selection::hidden_mask, selection::selection};
use crate::py::writes::aliasing::unaliased;

impl PyTensor {
    /// Returns this tensor and another operand beside it, which must have these numbers of axes if given.
    fn pair(
        &self, name: &str, other: &Relative<'_>, ranks: Option<[usize; 2]>,
    ) -> PyResult<(Tensor, Tensor)> {
        let x = self.value()?.into_owned();
        let y = other.tensor(&x)?;
        match ranks {
            Some([a, b]) if [a, b] != [x.rank(), y.rank()] => Err(Error::shape(format!(
                "{name}: operands with {a} and {b} axes expected, got shapes {} and {}",
                x.shape(),
                y.shape()
            ))
            .into()),
            _ => Ok((x, y)),
        }
    }
}

fn product(name: &str, py: Python<'_>, (x, y): (Tensor, Tensor)) -> PyResult<PyTensor> {
    run(py, x.numel().max(y.numel()), || x.matmul(&y).named(name)).map(PyTensor::from)
}

/// Products of two operands, with the numbers of axes that they must have.
macro_rules! products {
    ($($(#[$doc:meta])* $method:ident($other:ident) = $ranks:expr;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[$doc])*
                fn $method(&self, py: Python<'_>, $other: Relative<'_>) -> PyResult<PyTensor> {
                    let name = stringify!($method);
                    product(name, py, self.pair(name, &$other, $ranks)?)
                }
            )*
        }
    };
}

products! {
    /// Returns the product of two matrices.
    mm(mat2) = Some([2, 2]);
    /// Returns the products of two batches of matrices.
    bmm(mat2) = Some([3, 3]);
    /// Returns the product of a matrix and a vector.
    mv(vec) = Some([2, 1]);
}

methods! {
    /// Returns `log(1 + exp(beta x)) / beta`, linear where `beta x > threshold`. VJP: `g * sigmoid(beta x)`.
    #[pyo3(signature = (beta=1.0, threshold=20.0))]
    softplus(beta: f64, threshold: f64) = |x| x.softplus(beta, threshold);
    /// Returns the Gaussian error linear unit `x * Phi(x)`; `approximate="tanh"` for the approximation by
    /// tanh.
    #[pyo3(signature = (approximate="none"))]
    gelu(approximate: &str) = |x| match approximate {
        "none" => x.gelu(false).named("gelu"),
        "tanh" => x.gelu(true).named("gelu"),
        other => Err(Error::value(format!("gelu: approximate must be 'none' or 'tanh', got '{other}'"))),
    };

    /// Returns the exponential linear unit: `x` above 0, else `alpha (exp(x) - 1)`, both times `scale`.
    _elu(alpha: f64, scale: f64) = |x| x.parametric(Parametric::Elu, [alpha, scale]);
    /// Returns the leaky rectified linear unit: `x` above 0, else `negative_slope x`.
    _leaky_relu(negative_slope: f64) = |x| x.parametric(Parametric::LeakyRelu, [negative_slope, 0.0]);
    /// Moves `x` towards 0 by `lambd`, and 0 within it.
    _softshrink(lambd: f64) = |x| x.bounded(Parametric::Softshrink, [lambd, 0.0]);
    /// Returns `x` where `|x| > lambd`, else 0.
    _hardshrink(lambd: f64) = |x| x.bounded(Parametric::Hardshrink, [lambd, 0.0]);
    /// Returns the exponential linear unit with a smooth slope: `x` above 0, else `alpha (exp(x / alpha) -
    /// 1)`.
    _celu(alpha: f64) = |x| x.parametric(Parametric::Celu, [alpha, 0.0]);

    /// Returns this tensor with `value`, a number or a tensor without axes, where the bools `mask` are true;
    /// the two broadcast. `value` is converted to the dtype of the tensor; raises ValueError for a number
    /// that an integer dtype does not hold, and TypeError for a complex number that the dtype does not.
    masked_fill(mask: AsTensor, value: Arg) = |x| {
        check_mask("masked_fill", &mask.0)?;
        let value = filling("masked_fill", x, value)?;
        x.masked_fill(&mask.0, value.operand()).named("masked_fill")
    };
    /// Returns the rows along `dim` picked by a vector of indices. VJP: rows of `g` added at the indices.
    index_select(dim: Whole, index: AsTensor) = |x| x.index_select(dim.0, &index.0).named("index_select");
    /// Returns one element per index along `dim`: `out[i][j] = input[index[i][j]][j]` for `dim=0`.
    gather(dim: Whole, index: AsTensor) = |x| x.gather(dim.0, &index.0);
    /// Returns elements of the flattened tensor at `index`; along `dim`, rows picked by a vector of indices.
    #[pyo3(signature = (index, dim=None, *, axis=None))]
    take(index: AsTensor, dim: Option<Whole>, axis: Option<Whole>) = {
        let axis = one_of(dim, axis)?;
        move |x| match axis {
            Some(axis) => x.take(&index.0, axis.0),
            None => x.flatten(0, -1)?.take(&index.0, 0),
        }
    };
    /// Returns the elements that `indices` names along `dim`; the other axes broadcast. Without `dim`, of the
    /// flattened tensor. Raises IndexError for an index out of range, and ShapeError where the shapes do not
    /// broadcast.
    #[pyo3(signature = (indices, dim=None, *, axis=None))]
    take_along_dim(indices: AsTensor, dim: Option<Whole>, axis: Option<Whole>) = {
        let axis = one_of(dim, axis)?;
        move |x| match axis {
            Some(axis) => along(x, &indices.0, axis.0),
            None => x.flatten(0, -1)?.take(&indices.0.flatten(0, -1)?, 0),
        }
    };

    /// Tells where the elements are not a number.
    isnan() = |x| x.ne(x);
    /// Tells where the elements are infinite.
    isinf() = Tensor::is_infinite;
    /// Tells where the elements are neither infinite nor NaN.
    isfinite() = Tensor::is_finite;
    /// Tells where `|x - y| <= atol + rtol * |y|`.
    #[pyo3(signature = (other, rtol=1e-5, atol=1e-8, equal_nan=false))]
    isclose(other: Compared, rtol: f64, atol: f64, equal_nan: bool) =
        |x| x.close(other.0.operand(), rtol, atol, equal_nan).named("isclose");
}

/// Raises unless a mask consists of bools.
pub fn check_mask(name: &str, mask: &Tensor) -> Result<()> {
    match mask.dtype() {
        DType::Bool => Ok(()),
        other => {
            Err(Error::dtype(format!("{name}: a bool mask expected, got {other}; compare, as in mask != 0")))
        }
    }
}

/// Returns what fills elements of `x`: `value` in the dtype of `x`, which the result keeps.
pub fn filling(name: &str, x: &Tensor, value: Arg) -> Result<Arg> {
    let dtype = x.dtype();
    match value {
        Arg::Bool(_) | Arg::Int(_) | Arg::Float(_) if dtype.is_differentiable() => return Ok(value),
        Arg::Int(v) if dtype != DType::Bool => dtype.check_fits(v).named(name)?,
        Arg::Float(v) if dtype != DType::Bool => dtype.check_fits_float(v).named(name)?,
        _ => {}
    }
    let given = value.operand().tensor_with(x)?;
    if given.rank() > 0 {
        return Err(Error::shape(format!(
            "{name}: a number expected as value, got shape {}; where() takes several",
            given.shape()
        )));
    }
    if given.dtype().is_complex() && !dtype.is_complex() {
        return Err(Error::dtype(format!(
            "{name}: {dtype} does not hold complex numbers; convert with .to(wg.complex64) first"
        )));
    }
    Ok(Arg::Tensor(given.cast(dtype)?))
}

/// Elements along `axis` at `index`, which broadcasts against the other axes if it has as many.
fn along(x: &Tensor, index: &Tensor, axis: i64) -> Result<Tensor> {
    let i = x.shape().axis(axis, "take_along_dim")?;
    if index.rank() != x.rank() {
        return x.gather(axis, index);
    }
    let Some(wide) = x.shape().with(i, 1).broadcast(&index.shape().with(i, 1)) else {
        return Err(Error::shape(format!(
            "take_along_dim: indices of shape {} and a tensor of shape {} do not broadcast: lengths on \
             all axes but {axis} must be equal or 1",
            index.shape(),
            x.shape()
        )));
    };
    let own = x.expand(&wide.with(i, x.shape().at(i)))?;
    own.gather(axis, &index.expand(&wide.with(i, index.shape().at(i)))?)
}

/// The columns of a matrix of positions: an index for each axis.
fn columns(found: &Tensor) -> Result<Vec<Tensor>> {
    (0..found.shape().at(1) as i64).map(|k| found.select_index(1, k)).collect()
}

#[pymethods]
impl PyTensor {
    /// Returns the matrix product as NumPy's: vectors are rows or columns, leading axes broadcast. VJP: `g @
    /// y.mT` and `x.mT @ g`; saves the operand that the gradient
    /// of the other reads.
    #[pyo3(signature = (other=None, *, tensor2=None), text_signature = "($self, other)")]
    fn matmul(
        &self, py: Python<'_>, other: Option<Relative<'_>>, tensor2: Option<Relative<'_>>,
    ) -> PyResult<PyTensor> {
        let other = renamed("matmul", ["other", "tensor2"], other, tensor2)?;
        product("matmul", py, self.pair("matmul", &other, None)?)
    }

    /// Returns the inner product of two vectors.
    #[pyo3(signature = (other=None, *, tensor=None), text_signature = "($self, other)")]
    fn dot(
        &self, py: Python<'_>, other: Option<Relative<'_>>, tensor: Option<Relative<'_>>,
    ) -> PyResult<PyTensor> {
        let other = renamed("dot", ["other", "tensor"], other, tensor)?;
        let (x, y) = self.pair("dot", &other, Some([1, 1]))?;
        // Autocast does not lower this product: a single sum makes no use of matrix units.
        let both = autocast::widest(&x, &y)?;
        let _region = interp::autocasting().then(|| interp::enter_autocast(None));
        product("dot", py, both)
    }

    /// Returns the outer product of two vectors: `out[i, j] = x[i] * y[j]`.
    fn outer(&self, py: Python<'_>, vec2: Relative<'_>) -> PyResult<PyTensor> {
        let (_, y) = self.pair("outer", &vec2, Some([1, 1]))?;
        self.apply(py, |x| x.unsqueeze(1)?.mul(&y).named("outer"))
    }

    /// Limits values to `[min, max]`, numbers or tensors; the derivative at a bound is 1.
    #[pyo3(signature = (min=None, max=None))]
    fn clamp(&self, py: Python<'_>, min: Option<Compared>, max: Option<Compared>) -> PyResult<PyTensor> {
        clamp(py, "clamp", &*self.value()?, min, max).map(PyTensor::from)
    }

    /// Returns the elements, or `min` where they are smaller.
    fn clamp_min(&self, py: Python<'_>, min: Compared) -> PyResult<PyTensor> {
        clamp(py, "clamp_min", &*self.value()?, Some(min), None).map(PyTensor::from)
    }

    /// Returns the elements, or `max` where they are larger.
    fn clamp_max(&self, py: Python<'_>, max: Compared) -> PyResult<PyTensor> {
        clamp(py, "clamp_max", &*self.value()?, None, Some(max)).map(PyTensor::from)
    }

    /// Returns `x` where `condition` holds and `other` elsewhere. No gradient flows through what is not
    /// picked.
    fn r#where(&self, py: Python<'_>, condition: &PyTensor, other: Arg) -> PyResult<PyTensor> {
        let mask = &*condition.value()?;
        self.apply(py, |x| mask.select(x, other.operand()).named("where"))
    }

    /// Returns the elements where `mask` is true, in one axis. Their number depends on the data.
    fn masked_select<'py>(&self, mask: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = mask.py();
        let hidden = hidden_mask(mask)?;
        let mask: AsTensor = mask.extract()?;
        check_mask("masked_select", &mask.0)?;
        let wide = self.read().t.shape().broadcast(&mask.0.shape()).unwrap_or(self.read().t.shape());
        if let Some((key, mask)) = hidden {
            return selection(py, &self.value()?.expand(&wide)?, &key, &mask.expand(&wide)?);
        }
        // A tensor without axes counts as a vector of one element.
        let wide = if wide.rank() == 0 { wide.inserted(0, 1)? } else { wide };
        let found = nonzero(&mask.0.expand(&wide).named("masked_select")?)?;
        let indices: Vec<_> = columns(&found)?.into_iter().map(Some).collect();
        let x = self.value()?;
        object(py, unaliased(x.expand(&wide)?.index(&indices).named("masked_select")?, &x)?)
    }

    /// Returns the indices of the elements that are not zero, one row each; `as_tuple=True` gives one tensor
    /// per axis.
    #[pyo3(signature = (*, as_tuple=false))]
    pub fn nonzero<'py>(&self, py: Python<'py>, as_tuple: bool) -> PyResult<Bound<'py, PyAny>> {
        let t = self.value()?;
        if !as_tuple {
            return object(py, nonzero(&t)?);
        }
        // As a tuple, a tensor without axes counts as a vector of one element.
        let found = if t.rank() == 0 { nonzero(&t.unsqueeze(0)?)? } else { nonzero(&t)? };
        Ok(PyTuple::new(py, columns(&found)?.into_iter().map(PyTensor::from))?.into_any())
    }

    /// Returns the input with the elements of `src` added at `index` along `dim`:
    /// `out[index[i][j]][j] += src[i][j]` for `dim=0`. `index` and `src` may be smaller than the input.
    fn scatter_add(
        &self, py: Python<'_>, dim: Whole, index: AsTensor, src: Relative<'_>,
    ) -> PyResult<PyTensor> {
        let src = src.tensor(&*self.value()?)?;
        self.apply(py, |x| x.scatter_add(dim.0, &index.0, &src).named("scatter_add"))
    }

    /// Returns the input with rows of `source` added along `dim` at a vector of indices.
    #[pyo3(
        signature = (dim, index, source, *, alpha=Arg::Int(1)),
        text_signature = "($self, dim, index, source, *, alpha=1)"
    )]
    fn index_add(
        &self, py: Python<'_>, dim: Whole, index: AsTensor, source: Relative<'_>, alpha: Arg,
    ) -> PyResult<PyTensor> {
        let source = source.tensor(&*self.value()?)?;
        let scaled = match alpha {
            Arg::Int(1) | Arg::Float(1.0) => source,
            _ => source.mul(alpha.operand()).named("index_add")?,
        };
        self.apply(py, |x| x.index_add(dim.0, &index.0, &scaled).named("index_add"))
    }

    /// Tells whether all elements are close: `|x - y| <= atol + rtol * |y|`.
    #[pyo3(signature = (other, rtol=1e-5, atol=1e-8, equal_nan=false))]
    fn allclose(
        &self, py: Python<'_>, other: Compared, rtol: f64, atol: f64, equal_nan: bool,
    ) -> PyResult<bool> {
        let close = self.value()?.close(other.0.operand(), rtol, atol, equal_nan).named("allclose")?;
        item(py, &close.all(None, false)?)?.is_truthy()
    }

    /// Tells whether shapes and all elements are the same.
    fn equal(&self, py: Python<'_>, other: Compared) -> PyResult<bool> {
        let own = self.read().t.shape();
        let fits = match &other.0 {
            Arg::Tensor(other) => own == other.shape(),
            _ => own.rank() == 0,
        };
        if !fits {
            return Ok(false);
        }
        item(py, &self.value()?.eq(other.0.operand()).named("equal")?.all(None, false)?)?.is_truthy()
    }
}
