//! Methods along one axis: scans, sorting, normalisation, and searches that the Python package builds on.

use crate::ops::views::join;
use crate::py::args::{amount, either};
use crate::py::data::create::Any;
use crate::py::data::dtype::optional_dtype;
use crate::py::prelude::*;
use crate::py::tensor::reduce::difference;
use crate::py::writes::aliasing::unaliased;
use pyo3::sync::PyOnceLock;

/// Applies `f` in `dtype` if given, where integers may widen: the result is cast to `dtype` again.
pub fn in_dtype(
    x: &Tensor, dtype: Option<DType>, f: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    match dtype {
        Some(dtype) => f(&x.cast(dtype)?)?.cast(dtype),
        None => f(x),
    }
}

/// Applies `f` in `dtype` if given.
fn cast_first(x: &Tensor, dtype: Option<DType>, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    match dtype {
        Some(dtype) => f(&x.cast(dtype)?),
        None => f(x),
    }
}

impl PyTensor {
    /// Returns the pair (values, indices) that `f` finds, named as in PyTorch.
    pub(crate) fn values_and_indices<'py>(
        &self, py: Python<'py>, f: impl FnOnce(&Tensor) -> Result<(Tensor, Tensor)> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let t = self.value()?;
        let (values, indices) = run(py, t.numel(), || f(&t))?;
        let both = (unaliased(values, &t)?, indices);
        pair(py, "Along", both)
    }
}

/// Two results as a named tuple, one of the classes of `wengert._results`.
pub fn pair<'py>(py: Python<'py>, class: &str, both: (Tensor, Tensor)) -> PyResult<Bound<'py, PyAny>> {
    static RESULTS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let results = RESULTS.get_or_try_init(py, || py.import("wengert._results").map(Bound::unbind))?;
    results.bind(py).getattr(class)?.call1(both)
}

/// Methods along an axis, by default the one given, with a dtype to compute in.
macro_rules! along {
    ($how:ident: $($(#[$doc:meta])* $method:ident $default:literal;)*) => {
        methods! { $(
            $(#[$doc])*
            #[pyo3(signature = (dim=None, *, dtype=None, axis=None))]
            $method(dim: Option<Whole>, dtype: Any, axis: Option<Whole>) = {
                let (axis, dtype) = (either(dim, axis, Whole($default))?.0, optional_dtype(dtype)?);
                move |x| $how(x, dtype, |x| x.$method(axis))
            };
        )* }
    };
}

/// Methods whose result is a pair (values, indices).
macro_rules! pairs {
    ($($(#[$attribute:meta])* $method:ident($($parameter:tt)*) = $value:expr;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[$attribute])*
                fn $method<'py>(&self, py: Python<'py>, $($parameter)*) -> PyResult<Bound<'py, PyAny>> {
                    self.values_and_indices(py, $value)
                }
            )*
        }
    };
}

along! { in_dtype:
    /// Returns the cumulative sum along `dim`, in `dtype` if given. Integers and bools are summed as int64.
    cumsum 0;
    /// Returns the cumulative product along `dim`, in `dtype` if given, exact in its gradient at zeros too.
    /// Integers and bools are multiplied as int64 (int32 on a GPU). VJP: a first-order recurrence from the
    /// back; saves input and output.
    cumprod 0;
}

along! { cast_first:
    /// Returns `exp(x) / sum(exp(x))` along `dim`. VJP: `y * (g - sum(g * y))`; saves the output.
    softmax -1;
    /// Returns `log(softmax(x))` along `dim`, accurate where softmax underflows. VJP: `g - exp(y) * sum(g)`;
    /// saves the output.
    log_softmax -1;
}

pairs! {
    /// Returns the largest element so far along `dim`, and its index: the pair (values, indices). The last of
    /// equal elements; NaN counts as the largest. VJP: gradients go to their elements; saves the indices.
    #[pyo3(signature = (dim=None, *, axis=None))]
    cummax(dim: Option<Whole>, axis: Option<Whole>) = {
        let axis = either(dim, axis, Whole(0))?.0;
        move |x| x.cummax(axis)
    };
    /// Returns the smallest element so far along `dim`, and its index: the pair (values, indices). The last
    /// of equal elements; NaN counts as the smallest. VJP: gradients go to their elements; saves the indices.
    #[pyo3(signature = (dim=None, *, axis=None))]
    cummin(dim: Option<Whole>, axis: Option<Whole>) = {
        let axis = either(dim, axis, Whole(0))?.0;
        move |x| x.cummin(axis)
    };
    /// Sorts along `dim`: the elements in order, and the indices where they were, the pair (values, indices).
    /// Equal elements always keep their order (`stable` is accepted); NaN counts as the largest. VJP: each
    /// gradient goes back to where its element was; saves the indices.
    #[pyo3(
        signature = (dim=-1, descending=false, stable=true, *, axis=None),
        text_signature = "($self, dim=-1, descending=False, stable=True, *, axis=None)"
    )]
    sort(#[pyo3(from_py_with = whole)] dim: i64, descending: bool, stable: bool, axis: Option<Whole>) = {
        let _ = stable;
        |x| x.sort(axis.map_or(dim, |axis| axis.0), descending).named("sort")
    };
    /// Returns the `k` largest (or smallest) elements along `dim` in sorted order (`sorted` is accepted), and
    /// their indices: the pair (values, indices). VJP: gradients go back to their elements; saves the
    /// indices.
    #[pyo3(
        signature = (k, dim=-1, largest=true, sorted=true, *, axis=None),
        text_signature = "($self, k, dim=-1, largest=True, sorted=True, *, axis=None)"
    )]
    topk(
        #[pyo3(from_py_with = amount)] k: usize,
        #[pyo3(from_py_with = whole)] dim: i64,
        largest: bool,
        sorted: bool,
        axis: Option<Whole>,
    ) = {
        let _ = sorted;
        |x| x.topk(k, axis.map_or(dim, |axis| axis.0), largest)
    };
}

methods! {
    /// Returns `log(cumsum(exp(x)))` along `dim`, without overflow.
    #[pyo3(signature = (dim=None, *, axis=None))]
    logcumsumexp(dim: Option<Whole>, axis: Option<Whole>) = {
        let axis = either(dim, axis, Whole(0))?.0;
        move |x| x.logcumsumexp(axis)
    };
    /// Returns the indices that sort `dim`. Equal elements keep their order, `stable` or not; NaN is the
    /// largest.
    #[pyo3(
        signature = (dim=-1, descending=false, stable=true, *, axis=None),
        text_signature = "($self, dim=-1, descending=False, stable=True, *, axis=None)"
    )]
    argsort(#[pyo3(from_py_with = whole)] dim: i64, descending: bool, stable: bool, axis: Option<Whole>) = {
        let _ = stable;
        |x| x.argsort(axis.map_or(dim, |axis| axis.0), descending)
    };
    /// Computes the first-order recurrence `s[i] = decay[i] * s[i-1] + x[i]` along `dim`, with nothing before
    /// the first; from the back with `reverse`. `decay` broadcasts with the tensor. VJP: the same recurrence
    /// the other way round; saves decays and result.
    #[pyo3(
        signature = (decay, dim=-1, reverse=false, *, axis=None),
        text_signature = "($self, decay, dim=-1, reverse=False, *, axis=None)"
    )]
    linear_recurrence(
        decay: Arg,
        #[pyo3(from_py_with = whole)] dim: i64,
        reverse: bool,
        axis: Option<Whole>,
    ) = |x| x.linear_recurrence(&decay.tensor_with(x)?, axis.map_or(dim, |axis| axis.0), reverse);
    /// Returns the differences of neighbours along `dim`, `x[1:] - x[:-1]`, `n` times, with `prepend` before
    /// the first and `append` behind the last: numbers, or tensors of this shape but for `dim`.
    #[pyo3(
        signature = (n=1, dim=-1, prepend=None, append=None, *, axis=None),
        text_signature = "($self, n=1, dim=-1, prepend=None, append=None, *, axis=None)"
    )]
    diff(
        #[pyo3(from_py_with = amount)] n: usize,
        #[pyo3(from_py_with = whole)] dim: i64,
        prepend: Option<Arg>,
        append: Option<Arg>,
        axis: Option<Whole>,
    ) = {
        let axis = either((dim != -1).then_some(Whole(dim)), axis, Whole(-1))?.0;
        move |x| {
        let own = x.shape().with(x.shape().axis(axis, "diff")?, 1);
        let end = |given: Option<Arg>| -> Result<Option<Tensor>> {
            let given = given.map(|end| end.tensor_with(x)?.to_device(x.device())).transpose()?;
            given.map(|end| if end.rank() == 0 { end.expand(&own) } else { Ok(end) }).transpose()
        };
        let ends = if n == 0 { [None, None] } else { [end(prepend)?, end(append)?] };
        let [before, after] = ends;
        let parts: Vec<Tensor> = before.into_iter().chain([x.clone()]).chain(after).collect();
        let x = if let [only] = &parts[..] { only.clone() } else { join::cat(&parts, axis).named("diff")? };
        // After as many differences as elements, nothing is left.
        let rounds = n.min(x.shape().at(x.shape().axis(axis, "diff")?));
        (0..rounds).try_fold(x, |x, _| difference(&x, axis))
        }
    };

    _search_sorted(values: Arg, right: bool) = |x| x.search_sorted(&values.tensor_with(x)?, right);
}
