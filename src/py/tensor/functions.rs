//! Functions of several tensors that are no methods: joining, selecting, padding.

use crate::ops::views::join;
use crate::py::args::{Listed, Tensors, either};
use crate::py::data::dtype::PyDType;
use crate::py::prelude::*;
use crate::py::tensor::object;
use crate::py::writes::aliasing::unaliased;

/// Returns a result as an object of its own, or in the tensor given as `out`.
fn received<'py>(
    py: Python<'py>, name: &str, t: Tensor, out: Option<&Bound<'py, PyTensor>>,
) -> PyResult<Bound<'py, PyAny>> {
    match out {
        None => object(py, t),
        Some(out) => PyTensor::_store(out, name, AsTensor(t)).map(|()| out.clone().into_any()),
    }
}

/// The axis of [`joins`]. A tensor in its place is the second of several that came one by one.
fn join_axis(dim: &Bound<'_, PyAny>) -> PyResult<i64> {
    match dim.is_instance_of::<PyTensor>() {
        true => Err(type_error(
            "tensors to join come in one list or tuple, as in cat([x, y]); got a tensor as dim",
        )),
        false => whole(dim),
    }
}

/// Functions that join tensors along an axis.
macro_rules! joins {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (tensors, dim=0, *, axis=None, out=None))]
            fn $name<'py>(
                py: Python<'py>,
                tensors: Tensors,
                #[pyo3(from_py_with = join_axis)] dim: i64,
                axis: Option<Whole>,
                out: Option<&Bound<'py, PyTensor>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let elements = tensors.0.iter().map(Tensor::numel).sum();
                let axis = either((dim != 0).then_some(Whole(dim)), axis, Whole(0))?.0;
                let joined = || join::$name(&tensors.0, axis).named(stringify!($name));
                received(py, stringify!($name), run(py, elements, joined)?, out)
            }
        )*
    };
}

joins! {
    /// Joins tensors along `dim`; their shapes agree on all other axes. A copy. Vectors without elements join
    /// anything, as in PyTorch. Raises ShapeError for shapes that do not fit.
    cat;
    /// Joins tensors of one shape along a new axis.
    stack;
}

/// Returns `input` where `condition` holds and `other` elsewhere; all broadcast. No gradient flows through
/// what is not picked, so `where(x > 0, sqrt(x), x)` has a finite gradient everywhere. Without both: where it
/// is true.
#[pyfunction]
#[pyo3(name = "where", signature = (condition, input=None, other=None, *, out=None))]
fn where_<'py>(
    py: Python<'py>, condition: AsTensor, input: Option<Arg>, other: Option<Arg>,
    out: Option<&Bound<'py, PyTensor>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mask = &condition.0;
    match (input, other) {
        (Some(x), Some(y)) => {
            let elements = mask.numel().max(x.numel()).max(y.numel());
            received(py, "where", run(py, elements, || mask.select(x.operand(), y.operand()))?, out)
        }
        (None, None) => PyTensor::from(condition.0).nonzero(py, true),
        _ => Err(type_error("where: give both values, or only the condition")),
    }
}

/// Pads with `pad` elements of `value` around the axes, from the last on: (left, right, top, ...). A copy.
#[pyfunction]
#[pyo3(signature = (input, pad, value=0.0))]
fn _pad(py: Python<'_>, input: AsTensor, pad: Listed, value: f64) -> PyResult<PyTensor> {
    let (count, rank) = (pad.0.len(), input.0.rank());
    if !count.is_multiple_of(2) || count / 2 > rank {
        return Err(value_error(format!(
            "pad: an even number of widths for at most {rank} axes expected, got {count}"
        )));
    }
    let mut widths = vec![(0, 0); rank];
    for (i, pair) in pad.0.chunks_exact(2).enumerate() {
        widths[rank - 1 - i] = (pair[0], pair[1]);
    }
    run(py, input.0.numel(), || unaliased(input.0.pad(&widths, value)?, &input.0)).map(PyTensor::from)
}

/// Returns the dtype of an operation on these two.
#[pyfunction]
fn result_type(a: Arg, b: Arg) -> PyResult<PyDType> {
    let dtype = match (&a, &b) {
        (Arg::Tensor(t), other) | (other, Arg::Tensor(t)) => other.operand().result_type(t),
        _ => return Err(type_error("result_type: a tensor expected among the operands")),
    };
    Ok(PyDType { dtype })
}

exports! { functions: cat, stack, where_, _pad, result_type }
