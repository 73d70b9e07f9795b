//! Random tensors from the default stream, and access to the stream's state.

use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::array::random;
use crate::ops::pointwise::operand::meeting;
use crate::py::args::{Arg, AsTensor, amount, count, integers, run, shape, shape_from, whole};
use crate::py::data::create::{Any, made, place};
use crate::py::data::dtype::{optional_device, optional_dtype};
use crate::py::error::{type_error, value_error};
use crate::py::tensor::PyTensor;
use crate::py::tensor::operators::binary_of;
use crate::tensor::Tensor;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

macro_rules! random {
    ($($(#[$doc:meta])* $name:ident $like:ident;)*) => {
        $(
            $(#[$doc])*
            #[pyfunction]
            #[pyo3(signature = (*size, dtype=None, device=None, requires_grad=false))]
            fn $name(
                py: Python<'_>,
                size: &Bound<'_, PyTuple>,
                dtype: Any,
                device: Any,
                requires_grad: bool,
            ) -> PyResult<PyTensor> {
                let (dtype, device) = place(dtype, device)?;
                let shape = shape(&integers(size)?)?;
                made(run(py, shape.numel(), || Tensor::$name(shape, dtype, device))?, requires_grad)
            }

            $(#[$doc])*
            /// Shape, dtype and device are those of `input` where they are not given.
            #[pyfunction]
            #[pyo3(signature = (input, *, dtype=None, device=None, requires_grad=false))]
            fn $like(input: AsTensor, dtype: Any, device: Any, requires_grad: bool) -> PyResult<PyTensor> {
                let a = input.0.aval();
                let dtype = optional_dtype(dtype)?.unwrap_or(a.dtype);
                let device = optional_device(device)?.unwrap_or(a.device);
                made(Tensor::$name(a.shape, dtype, device)?, requires_grad)
            }
        )*
    };
}

random! {
    /// Uniform random numbers on `[0, 1)`, from the default generator.
    rand rand_like;
    /// Standard normal random numbers, from the default generator.
    randn randn_like;
}

/// Uniform random integers in `[low, high)`: `randint(high, size)` or `randint(low, high, size)`.
#[pyfunction]
#[pyo3(signature = (low, high, size=None, *, dtype=None, device=None))]
fn randint(
    #[pyo3(from_py_with = whole)] low: i64,
    high: &Bound<'_, PyAny>,
    size: Any,
    dtype: Any,
    device: Any,
) -> PyResult<PyTensor> {
    let (low, high, shape) = match size {
        Some(size) => (low, whole(high)?, shape_from(size)?),
        None => (0, low, shape_from(high)?),
    };
    let device = optional_device(device)?.unwrap_or_default();
    let natural = if device == Device::Cpu { DType::I64 } else { DType::I32 };
    let dtype = optional_dtype(dtype)?.unwrap_or(natural);
    made(Tensor::randint(low, high, shape, dtype, device)?, false)
}

/// The numbers `0..n` in random order: int64 (int32 on a GPU), or of `dtype`.
#[pyfunction]
#[pyo3(signature = (n, *, dtype=None, device=None))]
fn randperm(#[pyo3(from_py_with = whole)] n: i64, dtype: Any, device: Any) -> PyResult<PyTensor> {
    let dtype = optional_dtype(dtype)?;
    let order = Tensor::permutation(count("randperm: n", n)?, optional_device(device)?.unwrap_or_default())?;
    made(dtype.map_or(Ok(order.clone()), |dtype| order.cast(dtype))?, false)
}

/// Normal random numbers; `mean` and `std` are numbers (then `size` is the shape) or tensors.
#[pyfunction]
#[pyo3(signature = (mean, std=None, size=None, *, dtype=None, device=None))]
fn normal(
    py: Python<'_>,
    mean: Arg,
    std: Option<Arg>,
    size: Any,
    dtype: Any,
    device: Any,
) -> PyResult<PyTensor> {
    let given = optional_device(device)?;
    let (dtype, device) = place(dtype, device)?;
    let std = std.unwrap_or(Arg::Float(1.0));
    // The numbers are drawn on the device of the tensors.
    let tensors = [&mean, &std].into_iter().filter_map(|arg| match arg {
        Arg::Tensor(t) => Some(t),
        _ => None,
    });
    let tensors: SmallVec<[&Tensor; 2]> = tensors.collect();
    let device = match tensors.is_empty() {
        false => given.unwrap_or_else(|| meeting(&tensors).device()),
        true => device,
    };
    let shape = match (size, &mean, &std) {
        (Some(size), _, _) => shape_from(size)?,
        (None, Arg::Tensor(m), Arg::Tensor(s)) => m
            .shape()
            .broadcast(&s.shape())
            .ok_or_else(|| value_error("normal: mean and std do not broadcast"))?,
        (None, Arg::Tensor(t), _) | (None, _, Arg::Tensor(t)) => t.shape(),
        _ => {
            return Err(type_error("normal: give size where mean and std are numbers"));
        }
    };
    let noise = Tensor::randn(shape, dtype, device)?;
    let scaled = binary_of(py, &noise, &std, crate::ops::pointwise::binary::Binary::Mul, false)?;
    made(binary_of(py, &scaled, &mean, crate::ops::pointwise::binary::Binary::Add, false)?, false)
}

/// Starts the default random stream over with this seed of 64 bits; the same numbers follow on every device.
///
/// Without it every process draws numbers of its own, from a seed that the system gives (see `initial_seed`);
/// so do forked children, unless a seed was set before the fork, which they then share.
#[pyfunction]
fn manual_seed(seed: &Bound<'_, PyAny>) -> PyResult<()> {
    // Negative seeds wrap modulo 2^64, as in PyTorch.
    let bits = seed.extract::<u64>().or_else(|_| seed.extract::<i64>().map(|s| s as u64));
    match bits {
        Ok(bits) => random::manual_seed(bits),
        Err(e) if e.is_instance_of::<PyOverflowError>(seed.py()) => {
            return Err(value_error(format!(
                "manual_seed: a seed from -2^63 to 2^64 - 1 expected, got {seed}; take it modulo 2**64"
            )));
        }
        Err(_) => {
            return Err(type_error(format!(
                "manual_seed: an integer expected, got {}",
                seed.get_type().name()?
            )));
        }
    }
    Ok(())
}

/// Starts the default random stream over with a seed from the system, and returns that seed.
#[pyfunction]
fn _seed() -> u64 {
    random::seed()
}

/// Seed and position of the default random stream.
#[pyfunction]
fn get_rng_state() -> (u64, u64) {
    let s = random::state();
    (s.seed, s.offset)
}

/// Puts the default random stream where `get_rng_state` found it.
#[pyfunction]
fn set_rng_state(state: (u64, u64)) {
    random::set_state(random::State { seed: state.0, offset: state.1 });
}

/// Registers the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add {
        ($($name:ident),* $(,)?) => { $(m.add_function(wrap_pyfunction!($name, m)?)?;)* };
    }
    add!(
        rand, rand_like, randn, randn_like, randint, randperm, normal, manual_seed, _seed, get_rng_state,
        set_rng_state
    );
    Ok(())
}

#[pymethods]
impl PyTensor {
    /// 1 with the probability that each element gives, else 0. No gradient.
    fn bernoulli(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.apply(py, Tensor::bernoulli)
    }

    /// `num_samples` positions along the last axis of one or two, drawn with probabilities proportional to
    /// the elements. Without `replacement` the positions of a row differ. No gradient.
    #[pyo3(signature = (num_samples, replacement=false))]
    fn multinomial(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = amount)] num_samples: usize,
        replacement: bool,
    ) -> PyResult<PyTensor> {
        self.apply(py, |x| x.multinomial(num_samples, replacement))
    }
}
