//! Random tensors from the default stream, and access to the stream's state.

use crate::array::random;
use crate::ops::pointwise::operand::meeting;
use crate::py::args::{amount, count, integers, shape, shape_from};
use crate::py::data::create::{Any, integer, made, of_shape, place, place_beside};
use crate::py::data::dtype::{optional_device, optional_dtype};
use crate::py::prelude::*;
use crate::py::tensor::options::starred;
use pyo3::exceptions::PyOverflowError;
use smallvec::SmallVec;

type Draw = fn(Shape, DType, Device) -> Result<Tensor>;

fn drawn(draw: Draw) -> impl Fn(Python<'_>, Shape, DType, Device) -> PyResult<Tensor> {
    move |py, shape, dtype, device| run(py, shape.numel(), || draw(shape, dtype, device))
}

of_shape! {
    /// Draws uniform random numbers on `[0, 1)`, from the default generator.
    rand rand_like = drawn(Tensor::rand);
    /// Draws standard normal random numbers, from the default generator.
    randn randn_like = drawn(Tensor::randn);
}

/// Draws uniform random integers in `[low, high)`: `randint(high, size)` or `randint(low, high, size)`.
#[pyfunction]
#[pyo3(
    signature = (low=None, high=None, size=None, *, dtype=None, device=None),
    text_signature = "(low, high, size=None, *, dtype=None, device=None)"
)]
fn randint(low: Option<Whole>, high: Any, size: Any, dtype: Any, device: Any) -> PyResult<PyTensor> {
    let (low, high, shape) = match (low, high, size) {
        (low, Some(high), Some(size)) => (low.map_or(0, |low| low.0), whole(high)?, shape_from(size)?),
        (Some(low), Some(size), None) | (Some(low), None, Some(size)) => (0, low.0, shape_from(size)?),
        _ => return Err(type_error("randint: a bound and a size expected, as in randint(10, (2, 3))")),
    };
    let device = optional_device(device)?.unwrap_or_default();
    let dtype = optional_dtype(dtype)?.unwrap_or(integer(device));
    made(Tensor::randint(low, high, shape, dtype, device)?, false)
}

/// Returns the numbers `0..n` in random order: int64 (int32 on a GPU), or of `dtype`.
#[pyfunction]
#[pyo3(signature = (n, *, dtype=None, device=None))]
fn randperm(n: Whole, dtype: Any, device: Any) -> PyResult<PyTensor> {
    let dtype = optional_dtype(dtype)?;
    let order =
        Tensor::permutation(count("randperm: n", n.0)?, optional_device(device)?.unwrap_or_default())?;
    made(dtype.map_or(Ok(order.clone()), |dtype| order.cast(dtype))?, false)
}

/// Raises for a negative standard deviation. Tensors of a GPU, or of a transform, are not looked at.
pub fn check_deviation(name: &str, std: &Arg) -> Result<()> {
    let least = match std {
        Arg::Float(v) => *v,
        Arg::Int(v) => *v as f64,
        Arg::Tensor(t) if t.numel() > 0 && t.device() == Device::Cpu && t.dtype().is_float() => {
            match t.detach().concrete() {
                Some(_) => t.detach().amin(None, false)?.item()?,
                None => 0.0,
            }
        }
        _ => 0.0,
    };
    if least < 0.0 {
        return Err(Error::value(format!("{name}: std must not be negative, got {least}")));
    }
    Ok(())
}

/// Draws normal random numbers; `mean` and `std` are numbers (then `size` is the shape) or tensors. Raises
/// ValueError for a negative `std`.
#[pyfunction]
#[pyo3(signature = (mean, std=None, size=None, *, dtype=None, device=None))]
fn normal(
    py: Python<'_>, mean: Arg, std: Option<Arg>, size: Any, dtype: Any, device: Any,
) -> PyResult<PyTensor> {
    let (dtype, place) = place(dtype, device)?;
    let std = std.unwrap_or(Arg::Float(1.0));
    check_deviation("normal", &std)?;
    // The numbers are drawn on the device of the tensors.
    let tensors = [&mean, &std].into_iter().filter_map(|arg| match arg {
        Arg::Tensor(t) => Some(t),
        _ => None,
    });
    let tensors: SmallVec<[&Tensor; 2]> = tensors.collect();
    let device = if device.is_none() && !tensors.is_empty() { meeting(&tensors).device() } else { place };
    let shape = match (size, &mean, &std) {
        (Some(size), _, _) => shape_from(size)?,
        (None, Arg::Tensor(m), Arg::Tensor(s)) => m
            .shape()
            .broadcast(&s.shape())
            .ok_or_else(|| value_error("normal: mean and std do not broadcast"))?,
        (None, Arg::Tensor(t), _) | (None, _, Arg::Tensor(t)) => t.shape(),
        _ => return Err(type_error("normal: give size where mean and std are numbers")),
    };
    let noise = Tensor::randn(shape, dtype, device)?;
    let moved = || noise.mul(std.operand())?.add(mean.operand());
    made(run(py, noise.numel(), || moved().named("normal"))?, false)
}

/// Starts the default random stream over with this seed of 64 bits; the same numbers follow on every device.
///
/// Without it every process draws numbers of its own, from a seed that the system gives (see `initial_seed`);
/// so do forked children, unless a seed was set before the fork, which they then share.
#[pyfunction]
fn manual_seed(seed: &Bound<'_, PyAny>) -> PyResult<()> {
    // Negative seeds wrap modulo 2^64, as in PyTorch.
    let bits = seed.extract::<u64>().or_else(|_| seed.extract::<i64>().map(|s| s as u64));
    let bits = bits.map_err(|error| match error.is_instance_of::<PyOverflowError>(seed.py()) {
        true => value_error(format!(
            "manual_seed: a seed from -2^63 to 2^64 - 1 expected, got {seed}; take it modulo 2**64"
        )),
        false => match seed.get_type().name() {
            Ok(name) => type_error(format!("manual_seed: an integer expected, got {name}")),
            Err(error) => error,
        },
    })?;
    random::manual_seed(bits);
    Ok(())
}

functions! {
    /// Starts the default random stream over with a seed from the system, and returns that seed.
    seed() -> u64 = random::seed();
    /// Returns the seed of the default random stream: of the last `manual_seed` or `seed`, at first one that
    /// the system gave.
    initial_seed() -> u64 = random::state().seed;
    /// Returns seed and position of the default random stream.
    get_rng_state() -> (u64, u64) = {
        let s = random::state();
        (s.seed, s.offset)
    };
    /// Puts the default random stream where `get_rng_state` found it.
    set_rng_state(state: &Bound<'_, PyAny>) -> PyResult<()> = {
        let (seed, offset) = state.extract().map_err(|_| {
            let given = state.repr().map_or_else(|_| String::new(), |text| format!(", got {text}"));
            type_error(format!("set_rng_state: what get_rng_state returned expected{given}"))
        })?;
        random::set_state(random::State { seed, offset });
        Ok(())
    };
}

exports! {
    functions: rand, rand_like, randn, randn_like, randint, randperm, normal, manual_seed, seed,
        initial_seed, get_rng_state, set_rng_state
}

methods! {
    /// Draws 1 with the probability that each element gives (or with probability `p`), else 0. No gradient.
    #[pyo3(signature = (p=None))]
    bernoulli(p: Option<f64>) = |x| match p {
        Some(p) => Tensor::full(x.shape(), p, x.dtype(), x.device())?.bernoulli(),
        None => x.bernoulli(),
    };
    /// Draws `num_samples` indices along the last axis of one or two, drawn with probabilities proportional
    /// to the elements. Without `replacement` the positions of a row differ. No gradient.
    #[pyo3(signature = (num_samples, replacement=false))]
    multinomial(#[pyo3(from_py_with = amount)] num_samples: usize, replacement: bool) =
        |x| x.multinomial(num_samples, replacement);
}
