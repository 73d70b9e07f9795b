//! Transforms of Python functions of lists; `python/wengert/transforms/__init__.py` flattens arguments.

use crate::autodiff::linearize::{self, Linear};
use crate::autodiff::transform::{self, Pullback};
use crate::interp::{Randomness, branch};
use crate::py::data::dtype::{PyDType, dtype_object, dtype_of};
use crate::py::prelude::*;
use pyo3::exceptions::PyRuntimeError;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Calls a Python function of a list of tensors that returns a list of tensors.
fn call(function: &Bound<'_, PyAny>, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let inputs: Vec<PyTensor> = inputs.iter().map(|t| PyTensor::argument(t.clone())).collect();
    function.run((inputs,), None).and_then(|out| out.extract()).map_err(foreign)
}

/// The backward pass of a function at a point: call it with one cotangent (or None) per output.
#[pyclass(name = "Pullback", module = "wengert._core")]
pub struct PyPullback(pub Pullback);

#[pymethods]
impl PyPullback {
    /// The cotangents of the inputs. `retain=False` frees what was saved.
    #[pyo3(signature = (cotangents, retain=true))]
    fn __call__(&self, py: Python<'_>, cotangents: Vec<Option<Tensor>>, retain: bool) -> Result<Vec<Tensor>> {
        py.detached(|| self.0.call(&cotangents, retain))
    }
}

/// The derivative of a function at a point: call it with one tangent per input.
#[pyclass(name = "Linear", module = "wengert._core")]
pub struct PyLinear(pub Linear);

#[pymethods]
impl PyLinear {
    /// The tangents of the outputs.
    fn __call__(&self, py: Python<'_>, tangents: Vec<Tensor>) -> Result<Vec<Tensor>> {
        py.detached(|| self.0.call(&tangents))
    }

    /// Forgets the outputs from `count` on.
    fn keep(&mut self, count: usize) {
        self.0.keep(count);
    }

    /// The same map with other coefficients.
    fn at(&self, coefficients: Vec<Tensor>) -> PyLinear {
        PyLinear(self.0.at(coefficients))
    }

    /// Its coefficients; raises if one of them was written to since.
    fn coefficients(&self) -> Result<Vec<Tensor>> {
        self.0.constants()
    }
}

readings! { PyLinear, |object| object.0;
    /// Bytes of memory that it holds; what several operations share counts once for each.
    #[getter]
    nbytes -> usize = |linear| linear.bytes();
    /// The number of operations that a call runs.
    #[getter]
    operations -> usize = |linear| linear.operations();
}

functions! {
    /// Runs a function of a list of tensors and records it: its outputs and its pullback, which is for
    /// batches of cotangents if it is `batched`.
    #[pyo3(signature = (function, primals, batched=false))]
    _vjp(
        function: &Bound<'_, PyAny>, primals: Vec<Tensor>, batched: bool,
    ) -> Result<(Vec<Tensor>, PyPullback)> = {
        let made = || transform::vjp(|x| call(function, x), &primals);
        let made = if batched { interp::apart(made) } else { made() };
        made.map(|(out, pullback)| (out, PyPullback(pullback)))
    };
    /// Pushes tangents (None is zero) through a function of a list of tensors: outputs and their tangents.
    _jvp(
        function: &Bound<'_, PyAny>, primals: Vec<Tensor>, tangents: Vec<Option<Tensor>>,
    ) -> Result<(Vec<Tensor>, Vec<Tensor>)> = transform::jvp(|x| call(function, x), &primals, &tangents);
    /// Runs a function of a list of tensors once: its outputs, and its derivative there.
    _linearize(function: &Bound<'_, PyAny>, primals: Vec<Tensor>) -> Result<(Vec<Tensor>, PyLinear)> =
        linearize::linearize(|x| call(function, x), &primals).map(|(out, linear)| (out, PyLinear(linear)));
    /// Runs a function of a list of tensors once for a batch: its outputs, each with its batch axis in front,
    /// or as it is (and None) where it does not depend on the batch. `randomness` is "error", "same" or
    /// "different".
    #[pyo3(signature = (function, inputs, in_axes, size, randomness="same"))]
    _vmap(
        function: &Bound<'_, PyAny>, inputs: Vec<Tensor>, in_axes: Vec<Option<usize>>, size: usize,
        randomness: &str,
    ) -> Result<Vec<(Tensor, Option<usize>)>> = {
        let level = transform::batching(size, Randomness::named(randomness));
        transform::vmap(level, |x| call(function, x), &inputs, &in_axes)
    };
    /// Whether a forward mode or a batch is in force, where values are replaced instead of written.
    _replaces_values() -> bool = !interp::is_plain() && interp::replaces_values();
}

/// Calls a function as a branch that is taken where `taken` holds: what it reads from outside has a
/// derivative there alone.
#[pyfunction]
fn _in_branch<'py>(taken: Tensor, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    branch::within(taken, || function.call0())?
}

/// `x` where `flag` holds, `y` elsewhere, recorded whether or not recording is on.
#[pyfunction]
fn _choose(flag: Tensor, x: Tensor, y: Tensor) -> Result<Tensor> {
    branch::choose(&flag, &x, &y)
}

/// The examples that take the branch that runs; None outside of branches.
#[pyfunction]
fn _branch_taken() -> Option<Tensor> {
    branch::examples()
}

/// Whether it is known that no example takes the branch that runs.
#[pyfunction]
fn _is_branch_idle() -> Result<bool> {
    branch::is_idle()
}

/// An operand of the branch that runs: a copy of `x`, as two objects, to see whether one is written.
#[pyfunction]
fn _branch_operand(x: Tensor) -> Result<(Tensor, Tensor)> {
    let copy = branch::operand(&x)?;
    Ok((copy.clone(), copy))
}

thread_local! {
    /// The autocast regions that this thread is in, with their ids, innermost last.
    static REGIONS: RefCell<Vec<(u64, interp::InterpGuard)>> = const { RefCell::new(Vec::new()) };
}

/// The id of the next region.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Enters an autocast region; None turns casting off. Returns the number of the region.
#[pyfunction]
fn _autocast_enter(dtype: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    let dtype = dtype.map(dtype_of).transpose()?;
    if let Some(d) = dtype.filter(|d| !matches!(d, DType::F16 | DType::BF16)) {
        return Err(Error::dtype(format!("autocast: float16 or bfloat16 expected, got {d}")).into());
    }
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let guard = interp::enter_autocast(dtype);
    REGIONS.with_borrow_mut(|r| r.push((number, guard)));
    Ok(number)
}

/// Leaves the autocast region of this number. One that is not the innermost, as in a generator that ends
/// early, leaves those within it as they are.
#[pyfunction]
fn _autocast_exit(number: u64) -> PyResult<()> {
    let left = REGIONS.with_borrow_mut(|r| {
        let at = r.iter().position(|(own, _)| *own == number)?;
        let (_, guard) = r.remove(at);
        match r.get_mut(at) {
            Some((_, inner)) => guard.end_before(inner),
            None => drop(guard),
        }
        Some(())
    });
    left.ok_or_else(|| PyRuntimeError::new_err("autocast: a region must end on the thread that began it"))
}

/// Raises unless this names a kind of device, of this package or of PyTorch; regions apply to all devices.
fn check_device_type(name: &str, device_type: Option<&str>) -> PyResult<()> {
    let kind = device_type.map(|d| d.split(':').next().unwrap_or(d));
    match kind {
        None | Some("cpu" | "gpu" | "cuda" | "mps" | "xpu") => Ok(()),
        Some(other) => Err(value_error(format!(
            "{name}: {other:?} is not a device; expected 'cpu' or 'gpu', or nothing at all"
        ))),
    }
}

/// Tells whether an autocast region is in force on this thread. Regions hold for all devices, so
/// `device_type` changes nothing. Raises ValueError where it names no device.
#[pyfunction]
#[pyo3(signature = (device_type=None))]
fn is_autocast_enabled(device_type: Option<&str>) -> PyResult<bool> {
    check_device_type("is_autocast_enabled", device_type)?;
    Ok(interp::autocasting())
}

/// Returns the low precision of the autocast region in force, on every device; None outside. Raises
/// ValueError for a `device_type` that names no device.
#[pyfunction]
#[pyo3(signature = (device_type=None))]
fn get_autocast_dtype(py: Python<'_>, device_type: Option<&str>) -> PyResult<Option<Py<PyDType>>> {
    check_device_type("get_autocast_dtype", device_type)?;
    let dtype = interp::autocast_of(&interp::current()).flatten();
    dtype.map(|d| dtype_object(py, d)).transpose()
}

/// What the autocast region around casts to, None where it turns casting off; nothing outside of a region.
#[pyfunction]
fn _autocast_around(py: Python<'_>) -> PyResult<Vec<Option<Py<PyDType>>>> {
    let around = interp::autocast_of(&interp::current());
    around.into_iter().map(|low| low.map(|d| dtype_object(py, d)).transpose()).collect()
}

/// Calls a function outside of the autocast region around.
#[pyfunction]
fn _without_autocast<'py>(function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let _region = interp::leave_autocast();
    function.call0()
}

exports! {
    classes: PyPullback, PyLinear;
    functions: _linearize, _vjp, _jvp, _vmap, _replaces_values, _in_branch, _branch_operand, _branch_taken,
        _is_branch_idle, _choose, _autocast_enter, _autocast_exit, _autocast_around, _without_autocast,
        is_autocast_enabled, get_autocast_dtype
}
