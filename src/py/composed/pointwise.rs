//! Functions of single elements that are a line of others.

use crate::ops::complex::undefined;
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::bitwise::{Bits, bitwise};
use crate::ops::pointwise::operand::{Operand, binary};
use crate::ops::pointwise::unary::Parametric;
use crate::py::composed::{composed, in_float32, in_widest, rounding_once};
use crate::py::data::create::Any;
use crate::py::prelude::*;
use crate::py::relative::{Relative, operand};
use std::f64::consts::{LN_2, PI};

/// Floating point numbers; integers become float32.
fn reals(name: &str, x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_complex() {
        return Err(undefined(name, &[x]));
    }
    x.cast(x.dtype().to_float())
}

/// The magnitude of a number; none of a tensor.
fn magnitude(number: &Arg) -> Option<f64> {
    match *number {
        Arg::Tensor(_) => None,
        Arg::Bool(v) => Some(f64::from(v)),
        Arg::Int(v) => Some((v as f64).abs()),
        Arg::Float(v) => Some(v.abs()),
        Arg::Complex(re, im) => Some(re.hypot(im)),
    }
}

/// `x + weight * (end - x)`, from the nearer end.
fn between(x: &Tensor, end: &Tensor, weight: &Arg) -> Result<Tensor> {
    let apart = end.sub(x)?;
    let less = match *weight {
        Arg::Tensor(ref weight) => {
            let nearer = weight.detach().abs()?.lt(0.5)?;
            let offset = nearer.select(weight, &weight.sub(1i64)?)?;
            return nearer.select(x, end)?.add(&offset.mul(&apart)?);
        }
        Arg::Bool(v) => Operand::Int(i128::from(v) - 1),
        Arg::Int(v) => Operand::Int(v - 1),
        Arg::Float(v) => Operand::Float(v - 1.0),
        Arg::Complex(re, im) => Operand::Complex(re - 1.0, im),
    };
    match magnitude(weight) {
        Some(size) if size < 0.5 => x.add(&apart.mul(weight.operand())?),
        _ => end.add(&apart.mul(less)?),
    }
}

/// `value * x`, where `value` loses its fraction if `whole`.
pub fn times(x: &Tensor, value: &Arg, whole: bool) -> Result<Tensor> {
    match value {
        Arg::Int(1) | Arg::Bool(true) => Ok(x.clone()),
        Arg::Float(v) if *v == 1.0 => Ok(x.clone()),
        Arg::Float(v) if whole => x.mul(Operand::Int(*v as i128)),
        value => x.mul(value.operand()),
    }
}

/// NaN and infinities replaced by numbers.
fn finite(x: &Tensor, [nan, most, least]: [Option<f64>; 3]) -> Result<Tensor> {
    if x.dtype().is_complex() {
        return finite(&x.view_as_real()?, [nan, most, least])?.view_as_complex();
    }
    let largest = match x.dtype() {
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(f32::from_bits(0x7f7f_0000)),
        DType::F32 => f64::from(f32::MAX),
        DType::F64 => f64::MAX,
        _ => return x.copied(),
    };
    let (most, least) = (most.unwrap_or(largest), least.unwrap_or(-largest));
    let out = x.masked_fill(&x.ne(x)?, nan.unwrap_or(0.0))?;
    let out = out.masked_fill(&x.eq(f64::INFINITY)?, most)?;
    out.masked_fill(&x.eq(f64::NEG_INFINITY)?, least)
}

/// The dtype of floating point numbers in which `x` and `y` meet.
pub fn meeting(x: &Tensor, y: &Tensor) -> DType {
    Operand::from(x).result_type(y).to_float()
}

/// `log2(2 ** x + 2 ** y)`.
fn logaddexp2(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let dtype = meeting(x, y);
    let (x, y) = (x.cast(dtype)?, y.cast(dtype)?);
    // The larger one is taken out, as the product with log(2) rounds.
    let top = finite(&x.maximum(&y)?.detach(), [Some(0.0); 3])?;
    let scaled = |x: &Tensor| x.sub(&top)?.mul(LN_2);
    scaled(&x)?.logaddexp(&scaled(&y)?)?.div(LN_2)?.add(&top)
}

fn mvlgamma(x: &Tensor, p: i64) -> Result<Tensor> {
    let x = reals("mvlgamma", x)?;
    let (last, p) = ((p - 1) as f64, p as f64);
    let x = x.masked_fill(&x.le(last / 2.0)?, f64::NAN)?;
    let halves = Tensor::arange(0.0, 1.0, p as usize, x.dtype(), x.device())?.div(2.0)?;
    let sum = x.unsqueeze(-1)?.sub(&halves)?.lgamma()?.sum(Some(&[-1]), false)?;
    sum.add(p * last / 4.0 * PI.ln())
}

/// A number given by name, or none.
pub fn number(name: &str, argument: &str, given: Any) -> PyResult<Option<f64>> {
    let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(None) };
    match given.extract() {
        Ok(number) => Ok(Some(number)),
        Err(_) => {
            let class = given.get_type().name()?;
            Err(type_error(format!("{name}: {argument} must be a number, got {class}")))
        }
    }
}

#[pymethods]
impl PyTensor {
    /// Returns `input + weight * (end - input)`; all broadcast.
    ///
    /// From weight 1/2 on it is `end - (1 - weight) * (end - input)`, so that both ends are met exactly.
    fn lerp(&self, py: Python<'_>, end: Relative<'_>, weight: Relative<'_>) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let more = [end.operand("lerp", x)?, weight.operand("lerp", x)?];
        composed(py, "lerp", x, || {
            rounding_once(x, more, |x, [end, weight]| between(x, &end.tensor_with(x)?, &weight))
        })
    }

    /// Returns `input + value * tensor1 * tensor2`; all broadcast. For integers `value` loses its fraction.
    #[pyo3(
        signature = (tensor1, tensor2, *, value=Arg::Int(1)),
        text_signature = "($self, tensor1, tensor2, *, value=1)"
    )]
    fn addcmul(
        &self, py: Python<'_>, tensor1: Relative<'_>, tensor2: Relative<'_>, value: Arg,
    ) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let more = [tensor1.operand("addcmul", x)?, tensor2.operand("addcmul", x)?];
        let scaled = |x: &Tensor, [a, b]: [Arg; 2]| {
            let (a, second) = (a.tensor_with(x)?, b.tensor_with(x)?);
            let whole = ![x, &a, &second].iter().any(|t| t.dtype().is_differentiable());
            x.add(&times(&a, &value, whole)?.mul(b.operand())?)
        };
        composed(py, "addcmul", x, || in_widest(x, more, |x, more| in_float32(x, more, scaled)))
    }

    /// Returns `input + value * tensor1 / tensor2`; all broadcast.
    #[pyo3(
        signature = (tensor1, tensor2, *, value=Arg::Int(1)),
        text_signature = "($self, tensor1, tensor2, *, value=1)"
    )]
    fn addcdiv(
        &self, py: Python<'_>, tensor1: Relative<'_>, tensor2: Relative<'_>, value: Arg,
    ) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let more = [tensor1.operand("addcdiv", x)?, tensor2.operand("addcdiv", x)?];
        let scaled = |x: &Tensor, [a, b]: [Arg; 2]| {
            x.add(&times(&a.tensor_with(x)?, &value, false)?.div(b.operand())?)
        };
        composed(py, "addcdiv", x, || in_widest(x, more, |x, more| in_float32(x, more, scaled)))
    }

    /// Returns `input * 2 ** other`.
    fn ldexp(&self, py: Python<'_>, other: Relative<'_>) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let more = [other.operand("ldexp", x)?];
        composed(py, "ldexp", x, || {
            in_float32(x, more, |x, [other]| {
                let other = other.tensor_with(x)?;
                // Powers of 2 in the type of the result, which holds the larger ones.
                let exponent = other.cast(meeting(x, &other))?;
                x.mul(&binary(Binary::Pow, 2.0.into(), (&exponent).into())?)
            })
        })
    }

    /// Returns `log2(2 ** input + 2 ** other)` without overflow.
    fn logaddexp2(&self, py: Python<'_>, other: Relative<'_>) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let more = [other.operand("logaddexp2", x)?];
        composed(py, "logaddexp2", x, || {
            rounding_once(x, more, |x, [other]| logaddexp2(x, &other.tensor_with(x)?))
        })
    }

    /// Returns `log(p / (1 - p))`, the inverse of the logistic function, of `input` clamped to `eps` and
    /// `1 - eps`.
    ///
    /// Integers become float32.
    #[pyo3(signature = (eps=None))]
    fn logit(&self, py: Python<'_>, eps: Any) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let eps = number("logit", "eps", eps)?;
        let bounds = eps.map_or([f64::NEG_INFINITY, f64::INFINITY], |eps| [eps, 1.0 - eps]);
        composed(py, "logit", x, || {
            in_float32(x, [], |x, []| reals("logit", x)?.parametric(Parametric::Logit, bounds))
        })
    }

    /// Returns `input ** exponent`, computed in float64, or in complex128 where one of the two is complex.
    fn float_power(&self, py: Python<'_>, exponent: Relative<'_>) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let wide = |t: &Tensor| if t.dtype().is_complex() { DType::C128 } else { DType::F64 };
        let base = x.cast(wide(x))?;
        let given = exponent.operand("float_power", &base)?;
        composed(py, "float_power", x, || match &given {
            Arg::Tensor(exponent) => {
                let dtype = wide(x).promote(wide(exponent));
                base.cast(dtype)?.pow(&exponent.cast(dtype)?)
            }
            number => base.pow(number.operand()),
        })
    }

    /// Returns the least common multiple of integers, not negative; 0 where either is 0.
    fn lcm(&self, py: Python<'_>, other: Relative<'_>) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let other = other.beside("lcm", x)?;
        composed(py, "lcm", x, || {
            let divisor = bitwise(Bits::Gcd, x.into(), (&other).into())?;
            let divisor = divisor.masked_fill(&divisor.eq(0i64)?, 1i64)?;
            x.floor_divide(&divisor)?.mul(&other)?.abs()
        })
    }

    /// Returns the logarithm of the multivariate gamma function of dimension `p`, where
    /// `input > (p - 1) / 2`; NaN elsewhere.
    ///
    /// It is `p (p - 1) / 4 * log(pi)` plus `lgamma(x - k / 2)` for `k` from 0 to `p - 1` (T. W. Anderson, An
    /// Introduction to Multivariate Statistical Analysis, 7.2), so its error is that of the largest of these.
    /// Integers become float32.
    fn mvlgamma(&self, py: Python<'_>, p: Whole) -> PyResult<PyTensor> {
        if p.0 < 1 {
            return Err(value_error(format!("mvlgamma: p must be at least 1, got {}", p.0)));
        }
        let x = &self.value()?.into_owned();
        composed(py, "mvlgamma", x, || rounding_once(x, [], |x, []| mvlgamma(x, p.0)))
    }

    /// Returns the tensor itself, as `+x`.
    fn positive(slf: Py<Self>) -> Py<Self> {
        slf
    }
}

methods! {
    /// Replaces NaN and infinities by numbers: NaN by 0, infinities by the largest finite ones where None is
    /// given.
    ///
    /// The gradient of what was replaced is zero.
    #[pyo3(signature = (nan=None, posinf=None, neginf=None))]
    nan_to_num(nan: Option<f64>, posinf: Option<f64>, neginf: Option<f64>) =
        |x| finite(x, [nan, posinf, neginf]).named("nan_to_num");
    /// Converts degrees to radians.
    deg2rad() = |x| x.mul(PI / 180.0).named("deg2rad");
    /// Converts radians to degrees.
    rad2deg() = |x| x.mul(180.0 / PI).named("rad2deg");
    /// Tells whether the sign is negative, that of zeros included; False for NaN.
    signbit() = |x| {
        if !x.dtype().is_float() {
            return x.lt(0i64).named("signbit");
        }
        x.eq(0i64)?.select(&x.reciprocal()?, x)?.lt(0i64)
    };
    /// Tells where the elements are infinite and positive.
    isposinf() = |x| x.eq(f64::INFINITY);
    /// Tells where the elements are infinite and negative.
    isneginf() = |x| x.eq(f64::NEG_INFINITY);
}

/// A tensor of an object, as an object.
fn as_object<'py>(name: &str, input: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTensor>> {
    match input.cast::<PyTensor>() {
        Ok(t) => Ok(t.clone()),
        Err(_) => Bound::new(input.py(), PyTensor::from(operand(name, input)?)),
    }
}

/// Returns the real part; of a real tensor the tensor itself.
#[pyfunction]
fn real<'py>(input: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTensor>> {
    PyTensor::real(&as_object("real", input)?)
}

/// Returns the imaginary part of a complex tensor. Real ones raise TypeError.
#[pyfunction]
fn imag(input: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    PyTensor::imag(&as_object("imag", input)?)
}

/// Returns the derivative of order `n` of the digamma function, `n` from 0 to 20.
///
/// NaN or infinite at integers that are not positive.
#[pyfunction]
fn polygamma(py: Python<'_>, n: Whole, input: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    let x = &operand("polygamma", input)?;
    let order = u32::try_from(n.0);
    let order = order.map_err(|_| value_error(format!("polygamma: n must lie in [0, 2^32), got {}", n.0)))?;
    composed(py, "polygamma", x, || x.polygamma(order))
}

exports! { functions: real, imag, polygamma }
