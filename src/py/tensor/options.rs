//! Arguments with other names, and the methods of the tables that take more than their operands.

use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::operand::Operand;
use crate::ops::pointwise::unary::Unary;
use crate::py::prelude::*;
use crate::py::tensor::operators::binary_of;

/// Returns the argument that has two names.
pub fn renamed<T>(name: &str, [own, other]: [&str; 2], given: Option<T>, named: Option<T>) -> PyResult<T> {
    match (given, named) {
        (Some(value), None) | (None, Some(value)) => Ok(value),
        (None, None) => Err(type_error(format!("{name}() missing 1 required positional argument: '{own}'"))),
        (Some(_), Some(_)) => {
            Err(type_error(format!("{name}: {other} and {own} are names of one argument; give one of them")))
        }
    }
}

/// Returns the arguments of `f(2, 3)`, or the one given under a name instead.
pub fn starred<'py, const N: usize>(
    name: &str, args: &Bound<'py, PyTuple>, named: [(&str, Option<&Bound<'py, PyAny>>); N],
) -> PyResult<Bound<'py, PyTuple>> {
    match named.iter().find_map(|(key, value)| value.map(|value| (key, value))) {
        None => Ok(args.clone()),
        Some((_, value)) if args.is_empty() => PyTuple::new(args.py(), [value]),
        Some((key, _)) => {
            Err(type_error(format!("{name}: {key} is given by position and by name; give it once")))
        }
    }
}

/// `x + alpha * y` or `x - alpha * y`, of halves rounded once.
fn scaled(py: Python<'_>, x: &Tensor, y: &Arg, fun: Binary, alpha: &Arg) -> PyResult<Tensor> {
    if matches!(alpha, Arg::Int(1) | Arg::Float(1.0)) {
        return binary_of(py, x, y, fun, false);
    }
    let wide = |x: &Tensor| x.cast(x.dtype().accumulator());
    let y = y.tensor_with(x)?;
    let dtype = Operand::from(x).result_type(&y);
    let product = binary_of(py, &wide(&y)?, alpha, Binary::Mul, false)?;
    let out = binary_of(py, &wide(x)?, &Arg::Tensor(product), fun, false)?;
    Ok(if dtype.accumulator() == dtype { out } else { out.cast(dtype)? })
}

/// The integer nearest to 0 in the direction of the quotient `x / y`.
fn towards_zero(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    if Operand::from(x).result_type(y).is_float() {
        return x.div(y)?.trunc();
    }
    x.sub(&x.fmod(y)?)?.floor_divide(y)
}

/// `x` rounded to a number of decimal places; negative ones round to tens, hundreds and so on.
fn rounded(x: &Tensor, decimals: i32) -> Result<Tensor> {
    let dtype = x.dtype();
    if decimals == 0 || (decimals > 0 && dtype.is_integer()) || dtype == DType::Bool {
        return x.unary(Unary::Round);
    }
    if !dtype.is_float() {
        let instead =
            if dtype.is_complex() { "round .real and .imag" } else { "convert with .float() first" };
        return Err(Error::dtype(format!("round: decimals = {decimals} of {dtype}; {instead}")));
    }
    let power = 10f64.powi(decimals.abs());
    if decimals < 0 {
        let small = x.div(power)?.unary(Unary::Round)?;
        // No multiple of a power beyond the dtype's range is left but 0.
        let is_beyond = dtype != DType::F64 && power > f64::from(f32::MAX);
        return if is_beyond { Ok(small) } else { small.mul(power) };
    }
    let large = x.mul(power)?;
    // What is as large as that has no such decimal places.
    large.is_finite()?.select(&large.unary(Unary::Round)?.div(power)?, &x.detach())
}

#[pymethods]
impl PyTensor {
    /// Adds: `x + y`. With `alpha`, `x + alpha * y`.
    #[pyo3(signature = (other, *, alpha=Arg::Int(1)), text_signature = "($self, other, *, alpha=1)")]
    fn add(&self, py: Python<'_>, other: Arg, alpha: Arg) -> PyResult<PyTensor> {
        scaled(py, &*self.value()?, &other, Binary::Add, &alpha).map(PyTensor::from)
    }

    /// Subtracts: `x - y`. With `alpha`, `x - alpha * y`.
    #[pyo3(signature = (other, *, alpha=Arg::Int(1)), text_signature = "($self, other, *, alpha=1)")]
    fn sub(&self, py: Python<'_>, other: Arg, alpha: Arg) -> PyResult<PyTensor> {
        scaled(py, &*self.value()?, &other, Binary::Sub, &alpha).map(PyTensor::from)
    }

    /// Divides: `x / y`; integers give a float. `rounding_mode="trunc"` rounds towards zero and `"floor"`
    /// down: quotients of integers are integers then, and the gradient is zero.
    #[pyo3(signature = (other, *, rounding_mode=None))]
    fn div(&self, py: Python<'_>, other: Arg, rounding_mode: Option<&str>) -> PyResult<PyTensor> {
        let x = &*self.value()?;
        let out = match rounding_mode {
            None => binary_of(py, x, &other, Binary::Div, false)?,
            Some("floor" | "trunc") if other.operand().result_type(x).is_complex() => {
                return Err(type_error(
                    "div: complex quotients have no order and cannot be rounded; leave out rounding_mode",
                ));
            }
            Some("floor") => binary_of(py, x, &other, Binary::FloorDivide, false)?,
            Some("trunc") => {
                let y = other.tensor_with(x)?;
                run(py, x.numel().max(y.numel()), || towards_zero(x, &y))?
            }
            Some(mode) => {
                return Err(value_error(format!(
                    "div: rounding_mode must be None, 'trunc' or 'floor', got '{mode}'"
                )));
            }
        };
        Ok(out.into())
    }

    /// Returns the power `x ** y`. At `x = 0` the partial in `y` is 0 for `y >= 0`, as in PyTorch.
    #[pyo3(signature = (other=None, *, exponent=None), text_signature = "($self, other)")]
    fn pow(&self, py: Python<'_>, other: Option<Arg>, exponent: Option<Arg>) -> PyResult<PyTensor> {
        let other = renamed("pow", ["other", "exponent"], other, exponent)?;
        binary_of(py, &*self.value()?, &other, Binary::Pow, false).map(PyTensor::from)
    }

    /// Returns the step at zero: 0 below, `y` at zero, 1 above.
    #[pyo3(signature = (other=None, *, values=None), text_signature = "($self, other)")]
    fn heaviside(&self, py: Python<'_>, other: Option<Arg>, values: Option<Arg>) -> PyResult<PyTensor> {
        let other = renamed("heaviside", ["other", "values"], other, values)?;
        let x = &*self.value()?;
        let out = binary_of(py, x, &other, Binary::Heaviside, false)?;
        // Of bools the step is one too.
        let is_bool = other.operand().result_type(x) == DType::Bool;
        Ok(if is_bool { out.cast(DType::Bool)? } else { out }.into())
    }

    /// Rounds to the nearest integer, ties to even. With `decimals`, to so many decimal places.
    #[pyo3(signature = (*, decimals=0))]
    fn round(&self, py: Python<'_>, decimals: i64) -> PyResult<PyTensor> {
        // Beyond that no float has digits.
        self.apply(py, |x| rounded(x, decimals.clamp(-300, 300) as i32))
    }

    /// `round(x, ndigits)`, a tensor.
    #[pyo3(signature = (ndigits=None))]
    fn __round__(&self, py: Python<'_>, ndigits: Option<i64>) -> PyResult<PyTensor> {
        self.round(py, ndigits.unwrap_or(0))
    }
}
