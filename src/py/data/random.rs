//! Random tensors, from the default stream or from a [`Generator`](super::generator::Generator).

use crate::array::random::draw_from;
use crate::ops::pointwise::operand::meeting;
use crate::ops::reduce::index_type;
use crate::py::args::{amount, count, integers, shape, shape_from};
use crate::py::data::create::{Any, made, of_shape, place_beside};
use crate::py::data::dtype::{device_or_default, optional_dtype};
use crate::py::data::generator::Stream;
use crate::py::data::layout::Format;
use crate::py::data::out::{Out, place_in, stored};
use crate::py::prelude::*;
use crate::py::tensor::options::starred;
use smallvec::SmallVec;

type Draw = fn(Shape, DType, Device) -> Result<Tensor>;

fn drawn(draw: Draw) -> impl Fn(Python<'_>, Shape, DType, Device, Stream) -> PyResult<Tensor> {
    move |py, shape, dtype, device, stream| {
        let _stream = draw_from(stream.own())?;
        run(py, shape.numel(), || draw(shape, dtype, device))
    }
}

of_shape! {
    [
        generator: Stream = Stream::DEFAULT;
        "(*size, generator=None, out=None, dtype=None, device=None, requires_grad=False)"
        "(input, *, generator=None, dtype=None, device=None, requires_grad=False, memory_format=None)"
    ]
    /// Draws uniform random numbers on `[0, 1)`, from `generator` or the default stream. Complex ones have
    /// two such parts.
    rand rand_like = drawn(Tensor::rand);
    /// Draws standard normal random numbers, from `generator` or the default stream. The parts of complex
    /// ones have a variance of one half.
    randn randn_like = drawn(Tensor::randn);
}

/// Draws uniform random integers in `[low, high)`: `randint(high, size)` or `randint(low, high, size)`.
#[pyfunction]
#[pyo3(
    signature = (
        low=None, high=None, size=None, *, generator=Stream::DEFAULT, out=None, dtype=None, device=None,
        requires_grad=false
    ),
    text_signature =
        "(low, high, size=None, *, generator=None, out=None, dtype=None, device=None, requires_grad=False)"
)]
#[allow(clippy::too_many_arguments)]
fn randint<'py>(
    py: Python<'py>, low: Option<Whole>, high: Any<'_, 'py>, size: Any<'_, 'py>, generator: Stream,
    out: Out<'py>, dtype: Any<'_, 'py>, device: Any<'_, 'py>, requires_grad: bool,
) -> PyResult<Bound<'py, PyTensor>> {
    let (low, high, shape) = match (low, high, size) {
        (low, Some(high), Some(size)) => (low.map_or(0, |low| low.0), whole(high)?, shape_from(size)?),
        (Some(low), Some(size), None) | (Some(low), None, Some(size)) => (0, low.0, shape_from(size)?),
        _ => return Err(type_error("randint: a bound and a size expected, as in randint(10, (2, 3))")),
    };
    let (dtype, device) = match &out {
        Some(out) => place_beside(&out.read().t, dtype, device)?,
        None => {
            let device = device_or_default(device)?;
            (optional_dtype(dtype)?.unwrap_or(index_type(device)), device)
        }
    };
    let _stream = draw_from(generator.own())?;
    stored(py, "randint", Tensor::randint(low, high, shape, dtype, device)?, requires_grad, out)
}

/// Draws integers from `low` to `high - 1` (with one bound, from 0) in the shape, dtype and device of
/// `input`.
#[pyfunction]
#[pyo3(
    signature = (
        input, low, high=None, *, generator=Stream::DEFAULT, dtype=None, device=None, requires_grad=false
    ),
    text_signature =
        "(input, low, high=None, *, generator=None, dtype=None, device=None, requires_grad=False)"
)]
#[allow(clippy::too_many_arguments)]
fn randint_like(
    input: AsTensor, low: Whole, high: Option<Whole>, generator: Stream, dtype: Any, device: Any,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let (dtype, device) = place_beside(&input.0, dtype, device)?;
    let (low, high) = high.map_or((0, low.0), |high| (low.0, high.0));
    let _stream = draw_from(generator.own())?;
    made(Tensor::randint(low, high, input.0.shape(), dtype, device).named("randint_like")?, requires_grad)
}

/// Returns the numbers `0..n` in random order: int64 (int32 on a GPU), or of `dtype`.
#[pyfunction]
#[pyo3(
    signature = (n, *, generator=Stream::DEFAULT, out=None, dtype=None, device=None),
    text_signature = "(n, *, generator=None, out=None, dtype=None, device=None)"
)]
fn randperm<'py>(
    py: Python<'py>, n: Whole, generator: Stream, out: Out<'py>, dtype: Any<'_, 'py>, device: Any<'_, 'py>,
) -> PyResult<Bound<'py, PyTensor>> {
    let dtype = optional_dtype(dtype)?.or(out.as_ref().map(|out| out.read().t.dtype()));
    let _stream = draw_from(generator.own())?;
    let order = Tensor::permutation(count("randperm: n", n.0)?, device_or_default(device)?)?;
    stored(py, "randperm", dtype.map_or(Ok(order.clone()), |dtype| order.cast(dtype))?, false, out)
}

/// Raises for a negative standard deviation. Tensors of a GPU, or of a transform, are not looked at.
pub fn check_deviation(name: &str, std: &Arg) -> Result<()> {
    let least = match std {
        Arg::Float(v) => *v,
        Arg::Int(v) => *v as f64,
        Arg::Tensor(t) if t.numel() > 0 && t.device() == Device::Cpu && t.dtype().is_float() => {
            match t.detach().concrete() {
                // A program looks at the answer alone.
                Some(_) if t.detach().lt(0.0)?.any(None, false)?.item()? != 0.0 => {
                    t.detach().amin(None, false)?.item()?
                }
                _ => 0.0,
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
#[pyo3(
    signature = (mean, std=None, size=None, *, generator=Stream::DEFAULT, out=None, dtype=None, device=None),
    text_signature = "(mean, std=None, size=None, *, generator=None, out=None, dtype=None, device=None)"
)]
#[allow(clippy::too_many_arguments)]
fn normal<'py>(
    py: Python<'py>, mean: Arg, std: Option<Arg>, size: Any<'_, 'py>, generator: Stream, out: Out<'py>,
    dtype: Any<'_, 'py>, device: Any<'_, 'py>,
) -> PyResult<Bound<'py, PyTensor>> {
    let (dtype, place) = place_in(&out, dtype, device)?;
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
    let _stream = draw_from(generator.own())?;
    let noise = Tensor::randn(shape, dtype, device)?;
    let moved = || noise.mul(std.operand())?.add(mean.operand());
    stored(py, "normal", run(py, noise.numel(), || moved().named("normal"))?, false, out)
}

exports! {
    functions: rand, rand_like, randn, randn_like, randint, randint_like, randperm, normal
}

methods! {
    /// Draws 1 with the probability that each element gives (or with probability `p`), else 0. No gradient.
    #[pyo3(
        signature = (p=None, *, generator=Stream::DEFAULT),
        text_signature = "($self, p=None, *, generator=None)"
    )]
    bernoulli(p: Option<f64>, generator: Stream) = |x| {
        let _stream = draw_from(generator.own())?;
        match p {
            Some(p) => Tensor::full(x.shape(), p, x.dtype(), x.device())?.bernoulli(),
            None => x.bernoulli(),
        }
    };
    /// Draws `num_samples` indices along the last axis of one or two, drawn with probabilities proportional
    /// to the elements. Without `replacement` the positions of a row differ. No gradient.
    #[pyo3(
        signature = (num_samples, replacement=false, *, generator=Stream::DEFAULT),
        text_signature = "($self, num_samples, replacement=False, *, generator=None)"
    )]
    multinomial(
        #[pyo3(from_py_with = amount)] num_samples: usize, replacement: bool, generator: Stream
    ) = |x| {
        let _stream = draw_from(generator.own())?;
        x.multinomial(num_samples, replacement)
    };
}
