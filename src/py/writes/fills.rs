//! In-place methods that fill a tensor with random numbers.

use crate::array::random::draw_from;
use crate::ops::pointwise::operand::Operand;
use crate::ops::random::check_range;
use crate::py::args::extracted;
use crate::py::data::generator::Stream;
use crate::py::data::random::check_deviation;
use crate::py::prelude::*;
use crate::py::tensor::options::renamed;
use crate::py::writes::assign::{This, assigned, assignments};
use crate::watch::debug::{Modes, suspend};

/// Uniform numbers of the shape of `x`, in float64 for float64 and else in float32.
fn uniform(x: &Tensor) -> Result<Tensor> {
    Tensor::rand(x.shape(), wide(x), x.device())
}

/// The type in which the numbers for `x` are computed.
fn wide(x: &Tensor) -> DType {
    if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Whether a number of this dtype is next to `bound`, and not an infinity.
fn holds(dtype: DType, bound: f64) -> bool {
    match dtype.real() {
        DType::F32 => (bound as f32).is_finite(),
        other => other.nearest_half(bound).is_finite(),
    }
}

/// An upper bound that may be missing, or None: without an end.
enum Upper {
    Missing,
    Given(Option<i64>),
}

extracted!(Upper, |obj| {
    if obj.is_none() { Ok(Upper::Given(None)) } else { Ok(Upper::Given(Some(obj.extract::<Whole>()?.0))) }
});

/// Raises for a number that is not positive.
fn check_positive(name: &str, what: &str, value: f64) -> Result<()> {
    if value > 0.0 {
        return Ok(());
    }
    Err(Error::value(format!("{name}: a positive {what} expected, got {value}")))
}

/// Raises for a tensor that holds no real numbers with fractions.
fn check_float(name: &str, x: &Tensor) -> Result<()> {
    if x.dtype().is_float() {
        return Ok(());
    }
    Err(Error::dtype(format!("{name}: a floating point tensor expected, got {}", x.dtype())))
}

/// The integers that `random_` draws where nothing limits them: those that the dtype holds one by one.
fn range_of(dtype: DType) -> (i64, i64) {
    let bits = match dtype {
        DType::F64 => f64::MANTISSA_DIGITS,
        DType::F16 => 11,
        DType::BF16 => 8,
        _ if !dtype.is_integer() && dtype != DType::Bool => f32::MANTISSA_DIGITS,
        _ => return (0, i64::try_from(dtype.range().1).unwrap_or(i64::MAX).saturating_add(1)),
    };
    (0, (1 << bits) + 1)
}

assignments! {
    /// Fills with uniform numbers on `[low, high)`, in place. Raises ValueError where `low` exceeds `high`.
    #[pyo3(
        signature = (low=None, high=None, *, generator=Stream::DEFAULT, from=None, to=None),
        text_signature = "($self, low=0.0, high=1.0, *, generator=None)"
    )]
    uniform_(
        low: Option<f64>, high: Option<f64>, generator: Stream, from: Option<f64>, to: Option<f64>
    ) = "uniform", {
        let low = renamed("uniform_", ["low", "from"], low.or(from.is_none().then_some(0.0)), from)?;
        let high = renamed("uniform_", ["high", "to"], high.or(to.is_none().then_some(1.0)), to)?;
        if low > high {
            return Err(value_error(format!("uniform_: low must not exceed high, got {low} and {high}")));
        }
        if !(high - low).is_finite() {
            return Err(value_error(format!(
                "uniform_: bounds a finite distance apart expected, got {low} and {high}"
            )));
        }
        move |x| {
            if [low, high].iter().any(|&bound| !holds(x.dtype(), bound)) {
                return Err(Error::value(format!(
                    "uniform_: bounds within the range of {} expected, got {low} and {high}",
                    x.dtype()
                )));
            }
            let _stream = draw_from(generator.own())?;
            let numbers = Tensor::rand(x.shape(), x.dtype(), x.device())?.cast(wide(x))?;
            numbers.mul(high - low)?.add(low)?.cast(x.dtype())
        }
    };
    /// Fills with normal numbers of this mean and standard deviation, in place. Raises ValueError for a
    /// negative `std`.
    #[pyo3(
        signature = (mean=0.0, std=1.0, *, generator=Stream::DEFAULT),
        text_signature = "($self, mean=0.0, std=1.0, *, generator=None)"
    )]
    normal_(mean: f64, std: f64, generator: Stream) = "normal", |x| {
        check_deviation("normal_", &Arg::Float(std))?;
        let _stream = draw_from(generator.own())?;
        Tensor::randn(x.shape(), x.dtype(), x.device())?.mul(std)?.add(mean)
    };
    /// Fills with numbers whose logarithms are normal with this mean and standard deviation, in place.
    #[pyo3(
        signature = (mean=1.0, std=2.0, *, generator=Stream::DEFAULT),
        text_signature = "($self, mean=1.0, std=2.0, *, generator=None)"
    )]
    log_normal_(mean: f64, std: f64, generator: Stream) = "log_normal", |x| {
        check_float("log_normal_", x)?;
        check_positive("log_normal_", "standard deviation", std)?;
        let _stream = draw_from(generator.own())?;
        Tensor::randn(x.shape(), wide(x), x.device())?.mul(std)?.add(mean)?.exp()?.cast(x.dtype())
    };
    /// Fills with exponential numbers of rate `lambd`, whose mean is `1 / lambd`, in place.
    #[pyo3(
        signature = (lambd=1.0, *, generator=Stream::DEFAULT),
        text_signature = "($self, lambd=1.0, *, generator=None)"
    )]
    exponential_(lambd: f64, generator: Stream) = "exponential", |x| {
        check_float("exponential_", x)?;
        check_positive("exponential_", "rate", lambd)?;
        let _stream = draw_from(generator.own())?;
        uniform(x)?.neg()?.log1p()?.div(-lambd)?.cast(x.dtype())
    };
    /// Fills with the number of trials up to the first success, each of probability `p`, in place.
    #[pyo3(
        signature = (p, *, generator=Stream::DEFAULT), text_signature = "($self, p, *, generator=None)"
    )]
    geometric_(p: f64, generator: Stream) = "geometric", |x| {
        if !(p > 0.0 && p < 1.0) {
            return Err(Error::value(format!("geometric_: p lies between 0 and 1, got {p}")));
        }
        let _stream = draw_from(generator.own())?;
        uniform(x)?.neg()?.log1p()?.div((-p).ln_1p())?.floor()?.add(1.0)?.cast(x.dtype())
    };
    /// Fills with numbers of the Cauchy distribution around `median`, half of them within `sigma`, in place.
    #[pyo3(
        signature = (median=0.0, sigma=1.0, *, generator=Stream::DEFAULT),
        text_signature = "($self, median=0.0, sigma=1.0, *, generator=None)"
    )]
    cauchy_(median: f64, sigma: f64, generator: Stream) = "cauchy", |x| {
        check_float("cauchy_", x)?;
        check_positive("cauchy_", "sigma", sigma)?;
        let _stream = draw_from(generator.own())?;
        let angle = uniform(x)?.sub(0.5)?.mul(std::f64::consts::PI)?;
        angle.tan()?.mul(sigma)?.add(median)?.cast(x.dtype())
    };
    /// Fills with ones and zeros, ones with probability `p`, a number or a tensor that broadcasts, in place.
    /// Raises ValueError where a probability is outside of 0 to 1.
    #[pyo3(
        signature = (p=Arg::Float(0.5), *, generator=Stream::DEFAULT),
        text_signature = "($self, p=0.5, *, generator=None)"
    )]
    bernoulli_(p: Arg, generator: Stream) = "bernoulli", |x| {
        let _stream = draw_from(generator.own())?;
        if let Operand::Tensor(p) = p.operand() {
            return p.detach().expand(&x.shape())?.bernoulli()?.cast(x.dtype());
        }
        let p = {
            // A number, which is the same in every run of a program.
            let _quiet = suspend(Modes::SCRIPT);
            p.tensor_with(x)?.cast(DType::F64)?.item()?
        };
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::value(format!("bernoulli_: p is a probability between 0 and 1, got {p}")));
        }
        Tensor::rand(x.shape(), DType::F32, x.device())?.lt(p)?.cast(x.dtype())
    };
    /// Fills with integers from `low` to `high - 1`, in place; with one argument, from 0 to that less one;
    /// without, with any that the dtype holds, and so from `low` on where `high` is None. Raises ValueError
    /// for bounds that the dtype does not hold.
    #[pyo3(
        signature = (
            low=None, high=Upper::Missing, *, generator=Stream::DEFAULT, from=None, to=Upper::Missing
        ),
        text_signature = "($self, low=None, high=None, *, generator=None)"
    )]
    random_(low: Option<Whole>, high: Upper, generator: Stream, from: Option<Whole>, to: Upper) = "random", {
        let low = low.map(|low| low.0);
        let only = low.filter(|_| from.is_none() && matches!((&high, &to), (Upper::Missing, Upper::Missing)));
        let end = [high, to].into_iter().find_map(|upper| match upper {
            Upper::Given(end) => end,
            Upper::Missing => None,
        });
        let start = from.map(|from| from.0).or(low.filter(|_| only.is_none())).unwrap_or(0);
        let end = end.or(only);
        move |x| {
            let (low, high) = (start, end.unwrap_or(range_of(x.dtype()).1));
            check_range("random_", low, high, x.dtype())?;
            let _stream = draw_from(generator.own())?;
            // Floating point numbers would be refused beyond those that they hold one by one.
            let dtype = match x.device() {
                Device::Cpu if !x.dtype().is_integer() => DType::I64,
                _ => x.dtype(),
            };
            Tensor::randint(low, high, x.shape(), dtype, x.device()).named("random_")?.cast(x.dtype())
        }
    };
}
