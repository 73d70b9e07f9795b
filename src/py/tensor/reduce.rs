//! Reduction methods: sums, means, extrema, norms.

use crate::ops::pointwise::binary::Binary;
use crate::ops::views::region::Region;
use crate::py::args::{Dims, integers, one_of, shape};
use crate::py::data::create::Any;
use crate::py::data::dtype::optional_dtype;
use crate::py::prelude::*;
use crate::py::tensor::{object, operators::binary_of, scan::in_dtype};
use crate::py::writes::aliasing::unaliased;

/// Returns axes and `keepdim` of a reduction, from either spelling.
fn over(dim: Dims, keepdim: bool, axis: Option<Dims>, keepdims: Option<bool>) -> PyResult<(Dims, bool)> {
    Ok((dim.or(axis)?, keepdims.unwrap_or(keepdim)))
}

/// Returns the axes given; unlike for sums, an empty sequence means none, as in PyTorch and NumPy.
fn given(dims: &Dims) -> Option<&[i64]> {
    dims.0.as_deref()
}

/// Returns the axes of `std` and `var`, and the number subtracted from the number of elements. A bool in
/// place of the axes is `unbiased`, as in PyTorch.
fn axes_and_correction<'py>(
    name: &str, dim: Option<&Bound<'py, PyAny>>, unbiased: Option<&Bound<'py, PyAny>>,
    correction: Option<f64>,
) -> PyResult<(Dims, f64)> {
    let (dims, unbiased) = match dim {
        Some(truth) if unbiased.is_none() && truth.is_instance_of::<PyBool>() => (Dims(None), Some(truth)),
        Some(dim) => (dim.extract()?, unbiased),
        None => (Dims(None), unbiased),
    };
    let Some(unbiased) = unbiased else { return Ok((dims, correction.unwrap_or(1.0))) };
    let Ok(truth) = unbiased.cast::<PyBool>() else {
        return Err(type_error(format!(
            "{name}: unbiased must be a bool, got {}; several axes are one argument, dim=(0, 1), and any \
             other correction is correction=",
            unbiased.get_type().name()?
        )));
    };
    match correction {
        None => Ok((dims, f64::from(truth.is_true()))),
        Some(correction) => Err(value_error(format!(
            "{name}: give either unbiased or correction, got {unbiased} and {correction}"
        ))),
    }
}

/// Methods with one signature each: over axes, read by a function; over axes, with a dtype to compute in;
/// moments about the mean, alone and with the mean; indices of extrema.
macro_rules! reductions {
    (over $axes:path: $($(#[$doc:meta])* $method:ident;)*) => {
        methods! { $(
            $(#[$doc])*
            #[pyo3(
                signature = (dim=Dims(None), keepdim=false, *, axis=None, keepdims=None),
                text_signature = "($self, dim=None, keepdim=False, *, axis=None, keepdims=None)"
            )]
            $method(dim: Dims, keepdim: bool, axis: Option<Dims>, keepdims: Option<bool>) = {
                let (dims, keep) = over(dim, keepdim, axis, keepdims)?;
                move |x| x.$method($axes(&dims), keep).named(stringify!($method))
            };
        )* }
    };
    (with dtype: $($(#[$doc:meta])* $method:ident;)*) => {
        methods! { $(
            $(#[$doc])*
            #[pyo3(
                signature = (dim=Dims(None), keepdim=false, *, dtype=None, axis=None, keepdims=None),
                text_signature = "($self, dim=None, keepdim=False, *, dtype=None, axis=None, keepdims=None)"
            )]
            $method(dim: Dims, keepdim: bool, dtype: Any, axis: Option<Dims>, keepdims: Option<bool>) = {
                let (dims, keep) = over(dim, keepdim, axis, keepdims)?;
                let dtype = optional_dtype(dtype)?;
                move |x| in_dtype(x, dtype, |x| x.$method(dims.get(), keep))
            };
        )* }
    };
    (about the mean: $($(#[$doc:meta])* $method:ident;)*) => {
        methods! { $(
            $(#[$doc])*
            #[pyo3(signature = (
                dim=None, unbiased=None, keepdim=false, *, correction=None, axis=None, keepdims=None
            ))]
            #[allow(clippy::too_many_arguments)]
            $method(
                dim: Any, unbiased: Any, keepdim: bool, correction: Option<f64>, axis: Option<Dims>,
                keepdims: Option<bool>,
            ) = {
                let (dims, correction) = axes_and_correction(stringify!($method), dim, unbiased, correction)?;
                let (dims, keep) = over(dims, keepdim, axis, keepdims)?;
                move |x| x.$method(dims.get(), correction, keep).named(stringify!($method))
            };
        )* }
    };
    (with the mean: $($(#[$doc:meta])* $method:ident = $moment:ident;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[$doc])*
                #[pyo3(signature = (
                    dim=None, unbiased=None, keepdim=false, *, correction=None, axis=None, keepdims=None
                ))]
                #[allow(clippy::too_many_arguments)]
                fn $method(
                    &self, py: Python<'_>, dim: Any, unbiased: Any, keepdim: bool, correction: Option<f64>,
                    axis: Option<Dims>, keepdims: Option<bool>,
                ) -> PyResult<(PyTensor, PyTensor)> {
                    let name = stringify!($method);
                    let (dims, correction) = axes_and_correction(name, dim, unbiased, correction)?;
                    let (dims, keep) = over(dims, keepdim, axis, keepdims)?;
                    let moment = self.apply(py, |x| x.$moment(dims.get(), correction, keep).named(name))?;
                    Ok((moment, self.apply(py, |x| x.mean(dims.get(), keep).named(name))?))
                }
            )*
        }
    };
    (places: $($(#[$doc:meta])* $method:ident;)*) => {
        methods! { $(
            $(#[$doc])*
            #[pyo3(signature = (dim=None, keepdim=false, *, axis=None, keepdims=None))]
            $method(dim: Option<Whole>, keepdim: bool, axis: Option<Whole>, keepdims: Option<bool>) = {
                let dim = one_of(dim, axis)?.map(|axis| axis.0);
                move |x| x.$method(dim, keepdims.unwrap_or(keepdim))
            };
        )* }
    };
    (extrema: $($(#[$doc:meta])* $method:ident = $kinds:expr;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[$doc])*
                #[pyo3(
                    signature = (dim=None, keepdim=false, *, axis=None, keepdims=None, other=None),
                    text_signature = "($self, dim=None, keepdim=False, *, axis=None, keepdims=None)"
                )]
                fn $method<'py>(
                    &self,
                    py: Python<'py>,
                    dim: Any<'_, 'py>,
                    keepdim: bool,
                    axis: Any<'_, 'py>,
                    keepdims: Option<bool>,
                    other: Any<'_, 'py>,
                ) -> PyResult<Bound<'py, PyAny>> {
                    let axis = one_of(one_of(dim, axis)?, other)?;
                    extremum(stringify!($method), self, py, axis, keepdims.unwrap_or(keepdim), $kinds)
                }
            )*
        }
    };
}

reductions! { over Dims::get:
    /// Returns the maximum over `dim` (all axes by default); elements that tie share the gradient evenly.
    amax;
    /// Returns the minimum over `dim` (all axes by default); elements that tie share the gradient evenly.
    amin;
    /// Returns `log(sum(exp(x)))` over `dim` (all axes by default), without overflow. VJP: `g * softmax(x)`.
    logsumexp;
}

reductions! { over given:
    /// Tells whether any element is true, over `dim` (all axes by default, none for an empty sequence).
    any;
    /// Tells whether all elements are true, over `dim` (all axes by default, none for an empty sequence).
    all;
}

reductions! { with dtype:
    /// Sums over `dim` (all axes by default). Integers and bools are summed as int64. VJP: `g`, broadcast.
    sum;
    /// Returns the product over `dim` (all axes by default). VJP: `g * out / x`, exact where elements are
    /// zero.
    prod;
    /// Returns the arithmetic mean over `dim` (all axes by default). Integers raise TypeError. VJP: `g / n`,
    /// broadcast.
    mean;
}

reductions! { about the mean:
    /// Returns the variance over `dim`: squared deviations from the mean, summed and divided by `n -
    /// correction`, `n - 1` by default. `unbiased=False` is the correction 0; a bool in place of `dim` is
    /// `unbiased`.
    var;
    /// Returns the standard deviation over `dim`: the square root of `var`, whose sum is divided by `n - 1`
    /// by default. Its gradient is 0 where it is 0.
    std;
}

reductions! { with the mean:
    /// Returns variance and mean along `dim`, or of all elements; see `var`.
    var_mean = var;
    /// Returns standard deviation and mean along `dim`, or of all elements; see `std`.
    std_mean = std;
}

reductions! { extrema:
    /// Returns the largest element; with `dim`, the pair (values, indices) along it, whose gradient goes to
    /// the first maximum; with a tensor, the larger of both, elementwise.
    max = (Tensor::amax, Tensor::max_along, Binary::Maximum);
    /// Returns the smallest element; with `dim`, the pair (values, indices) along it, whose gradient goes to
    /// the first minimum; with a tensor, the smaller of both, elementwise.
    min = (Tensor::amin, Tensor::min_along, Binary::Minimum);
}

reductions! { places:
    /// Returns the index of the first maximum along `dim`, or in the flattened tensor.
    argmax;
    /// Returns the index of the first minimum along `dim`, or in the flattened tensor.
    argmin;
}

methods! {
    /// Counts the elements that are not zero, over `dim` (all axes by default).
    #[pyo3(signature = (dim=Dims(None), *, axis=None), text_signature = "($self, dim=None, *, axis=None)")]
    count_nonzero(dim: Dims, axis: Option<Dims>) = {
        let dims = dim.or(axis)?;
        move |x| x.count_nonzero(dims.get(), false)
    };
}

#[pymethods]
impl PyTensor {
    /// Sums to the shape `size`, from which this tensor could have been broadcast: the transpose of `expand`.
    ///
    /// Raises:
    ///     ShapeError: `size` does not broadcast to the shape of this tensor.
    ///
    /// Example:
    ///     >>> wg.ones(2, 3).sum_to_size(1, 3)
    ///     tensor([[2., 2., 2.]])
    #[pyo3(signature = (*size))]
    fn sum_to_size(&self, py: Python<'_>, size: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let (own, wanted) = (self.read().t.shape(), integers(size)?);
        let fits = |lead: usize| {
            wanted.iter().zip(own.iter().skip(lead)).all(|(&n, length)| n == 1 || n == length as i64)
        };
        let Some(lead) = own.rank().checked_sub(wanted.len()).filter(|&lead| fits(lead)) else {
            return Err(Error::shape(format!(
                "sum_to_size: shape {} does not broadcast to that of the tensor, {own}",
                PyTuple::new(py, &wanted)?
            ))
            .into());
        };
        let wanted = shape(&wanted)?;
        let longer = |&i: &usize| i < lead || wanted.at(i - lead) != own.at(i);
        let axes: Vec<i64> = (0..own.rank()).filter(longer).map(|i| i as i64).collect();
        self.apply(py, |x| match axes.is_empty() {
            true => x.copied(),
            false => x.sum(Some(&axes), false)?.reshape(&wanted),
        })
    }

    /// Returns the `p`-norm of the elements along `dim`, or of all: `sum(abs(x) ** p) ** (1 / p)`.
    ///
    /// Args:
    ///     p: any number, 2 by default; `inf` and `-inf` are the extremes of the magnitudes, 0 counts what is
    ///         not zero. `"fro"` is 2; `"nuc"` is the sum of the singular values of matrices, in the last two
    ///         axes or in `dim`.
    ///     dim: an axis or several.
    ///     dtype: what it is computed in.
    ///
    /// The gradient of an element that is zero is zero.
    ///
    /// Raises:
    ///     ValueError: another name; of no elements, where `p` is negative or infinite.
    #[pyo3(
        name = "norm",
        signature = (p=None, dim=Dims(None), keepdim=false, dtype=None, *, axis=None, keepdims=None),
        text_signature = "($self, p=None, dim=None, keepdim=False, dtype=None, *, axis=None, keepdims=None)"
    )]
    #[allow(clippy::too_many_arguments)]
    fn p_norm<'py>(
        slf: &Bound<'py, Self>, py: Python<'py>, p: Any<'_, 'py>, dim: Dims, keepdim: bool,
        dtype: Any<'_, 'py>, axis: Option<Dims>, keepdims: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (dims, keep) = over(dim, keepdim, axis, keepdims)?;
        let x = &value(slf)?;
        let x = &optional_dtype(dtype)?.map_or(Ok(x.clone()), |dtype| x.cast(dtype))?;
        let name = p.and_then(|p| p.extract::<String>().ok());
        let p = match (name.as_deref(), p) {
            (Some("fro"), _) | (None, None) => 2.0,
            (Some("nuc"), _) => {
                let axes = PyTuple::new(py, dims.0.as_deref().unwrap_or(&[-2, -1]))?;
                let norms = py.import("wengert.linalg")?.getattr("matrix_norm")?;
                return norms.call1((PyTensor::from(x.clone()), "nuc", axes, keep));
            }
            (Some(name), _) => {
                return Err(value_error(format!("norm: p must be a number, 'fro' or 'nuc', got '{name}'")));
            }
            (None, Some(p)) => p.extract()?,
        };
        object(py, run(py, x.numel(), || unaliased(norm(x, p, dims.get(), keep).named("norm")?, x))?)
    }
}

/// `x[1:] - x[:-1]` along `axis`.
pub fn difference(x: &Tensor, axis: i64) -> Result<Tensor> {
    let i = x.shape().axis(axis, "diff")?;
    let Some(length) = x.shape().at(i).checked_sub(1) else { return Ok(x.clone()) };
    let mut front = Region::whole(&x.shape());
    front.lengths = front.lengths.with(i, length);
    let mut back = front.clone();
    back.starts[i] = 1;
    let (after, before) = (x.slice(back)?, x.slice(front)?);
    // The difference of bools is whether they differ.
    if x.dtype() == DType::Bool { after.ne(&before) } else { after.sub(&before) }
}

/// The `p`-norm. Its gradient at 0 is 0, as the denominator is never 0. Integers become floats first.
pub fn norm(x: &Tensor, p: f64, axes: Option<&[i64]>, keep: bool) -> Result<Tensor> {
    if x.dtype().is_complex() {
        return norm(&x.abs()?, p, axes, keep);
    }
    let own = x.shape();
    if p < 0.0 && own.axes(axes, "norm")?.iter().any(|i| own.at(i) == 0) {
        return Err(Error::value(format!(
            "norm: the norm of order {p} of no elements, the shape is {own}; pass at least one"
        )));
    }
    let x = x.cast(x.dtype().to_float())?;
    x.accumulated(|x| norm_of_reals(x, p, axes, keep))
}

fn norm_of_reals(x: &Tensor, p: f64, axes: Option<&[i64]>, keep: bool) -> Result<Tensor> {
    if p == 0.0 {
        return x.ne(0i64)?.cast(x.dtype())?.sum(axes, keep)?.depending_on(x);
    }
    if p.is_infinite() {
        let size = x.abs()?;
        return if p > 0.0 { size.amax(axes, keep) } else { size.amin(axes, keep) };
    }
    if p == 1.0 {
        return x.abs()?.sum(axes, keep);
    }
    if 0.0 < p && p < 1.0 {
        // The slope of a power below 1 is infinite at 0, where it never looks.
        let (size, zero) = (x.abs()?, x.detach().eq(0i64)?);
        let powers = zero.select(0.0, &zero.select(1.0, &size)?.pow(p)?)?;
        return powers.sum(axes, keep)?.pow(1.0 / p);
    }
    x.homogeneous(axes, 1, p, |x| {
        let total = if p == 2.0 { x.square()?.sum(axes, keep)? } else { x.abs()?.pow(p)?.sum(axes, keep)? };
        let out = total.rooted(|total| if p == 2.0 { total.sqrt() } else { total.pow(1.0 / p) })?;
        // The root of a negative order is infinite where all elements are.
        Ok((if p < 0.0 { total.eq(0i64)?.select(f64::INFINITY, &out)? } else { out }, total))
    })
}

type Reduction = fn(&Tensor, Option<&[i64]>, bool) -> Result<Tensor>;
type Along = fn(&Tensor, i64, bool) -> Result<(Tensor, Tensor)>;

/// `max` and `min` in their three meanings: over all elements, along an axis, of two tensors.
fn extremum<'py>(
    name: &str, x: &PyTensor, py: Python<'py>, dim: Option<&Bound<'py, PyAny>>, keep: bool,
    (all, along, of_two): (Reduction, Along, Binary),
) -> PyResult<Bound<'py, PyAny>> {
    let Some(dim) = dim.filter(|d| !d.is_none()) else {
        let t = x.value()?;
        return object(py, run(py, t.numel(), || unaliased(all(&t, None, keep).named(name)?, &t))?);
    };
    if let Ok(other) = dim.cast::<PyTensor>() {
        return object(py, binary_of(py, &*x.value()?, &Arg::Tensor(value(other)?), of_two, false)?);
    }
    let axis = dim.extract::<Whole>()?.0;
    x.values_and_indices(py, |t| along(t, axis, keep).named(name))
}
