//! Operands as users give them, their promotion, and the methods of the tables.

use crate::array::dtype::Category;
use crate::error::Named;
use crate::interp::eval;
use crate::op::align;
use crate::ops::pointwise::binary::{Binary, binary_table};
use crate::ops::pointwise::compare::{Logic, Logical};
use crate::ops::pointwise::elementwise::Map;
use crate::ops::pointwise::table::{Fun, Params};
use crate::ops::pointwise::unary::{Parametric, Unary, unary_table};
use crate::ops::prelude::*;
use crate::ops::reduce::index_type;
use std::borrow::Cow;

/// An operand as users give it: a tensor, or a Python scalar, which takes the dtype of the tensor beside it
/// within its category ([`Operand::result_type`]).
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A truth value.
    Bool(bool),
    /// An integer, perhaps beyond the range of every dtype.
    Int(i128),
    /// A float.
    Float(f64),
    /// A complex number: real and imaginary part.
    Complex(f64, f64),
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(x: &'a Tensor) -> Operand<'a> {
        Operand::Tensor(x)
    }
}
impl From<f64> for Operand<'_> {
    fn from(x: f64) -> Self {
        Operand::Float(x)
    }
}
impl From<i64> for Operand<'_> {
    fn from(x: i64) -> Self {
        Operand::Int(x.into())
    }
}

impl<'a> Operand<'a> {
    /// The dtype of a result with a tensor of `dtype`: a scalar only wins by category.
    pub fn result_type(&self, other: &Tensor) -> DType {
        let dtype = other.dtype();
        match self {
            Operand::Tensor(x) => promote(x, other),
            Operand::Bool(_) => dtype,
            Operand::Int(_) if dtype == DType::Bool => index_type(other.device()),
            Operand::Float(_) => dtype.to_float(),
            Operand::Complex(..) => dtype.to_float().complex(),
            _ => dtype,
        }
    }

    /// What floats are compared with: the ends of the integers stand for all that are beyond them.
    pub(crate) fn among_floats(self) -> Self {
        match self {
            Operand::Int(i128::MAX) => Operand::Float(f64::INFINITY),
            Operand::Int(i128::MIN) => Operand::Float(f64::NEG_INFINITY),
            other => other,
        }
    }

    /// This operand as a tensor, to be an operand together with `x`: a number in the dtype that the result
    /// has, so that it loses no digits.
    pub fn tensor_with(&self, x: &Tensor) -> Result<Tensor> {
        match *self {
            Operand::Tensor(t) => Ok(t.clone()),
            number => number.to_tensor(number.result_type(x), x),
        }
    }

    /// This operand as a tensor of `dtype` on the device of `like`. A tensor stays where it is, unless it is
    /// a number in disguise: [`join`].
    pub fn to_tensor(self, dtype: DType, like: &Tensor) -> Result<Tensor> {
        let complex = match self {
            Operand::Tensor(x) => x.dtype().is_complex(),
            other => matches!(other, Operand::Complex(..)),
        };
        if complex && !dtype.is_complex() {
            return Err(Error::dtype(format!(
                "complex numbers do not fit into a {dtype} tensor; give their .real or .abs(), or convert \
                 it first"
            )));
        }
        match self {
            Operand::Tensor(x) => join(x, dtype, like.device()),
            Operand::Bool(v) => Tensor::operand(v as u8 as f64, dtype, like.device()),
            Operand::Int(v) => {
                dtype.check_fits(v)?;
                if dtype.is_integer() {
                    return integer(v, dtype, like.device());
                }
                Tensor::operand(v as f64, dtype, like.device())
            }
            Operand::Float(v) => {
                dtype.check_fits_float(v)?;
                Tensor::operand(v, dtype, like.device())
            }
            Operand::Complex(re, im) => {
                let part = |v| Tensor::operand(v, dtype.real(), like.device());
                crate::ops::complex::join(&part(re)?, &part(im)?)
            }
        }
    }

    /// [`Operand::to_tensor`] for a row of the table whose result has this dtype. Beside halves, numbers and
    /// 0-d tensors keep the range and digits of float32, in which the row computes: one rounding.
    pub fn to_rule_input(self, dtype: DType, like: &Tensor) -> Result<Cow<'a, Tensor>> {
        if let Operand::Tensor(x) = self
            && x.dtype() == dtype
            && x.device() == like.device()
        {
            return Ok(Cow::Borrowed(x));
        }
        let wide = dtype.is_half()
            && match self {
                Operand::Tensor(x) => x.rank() == 0 && x.dtype() != dtype,
                _ => true,
            };
        self.to_tensor(if wide { DType::F32 } else { dtype }, like).map(Cow::Owned)
    }
}

/// An integer that `dtype` holds, as an operand.
fn integer(value: i128, dtype: DType, device: Device) -> Result<Tensor> {
    match device {
        // Unsigned numbers above those of int64 keep their bits.
        Device::Cpu => Tensor::integer(value as i64, dtype),
        device if value.unsigned_abs() > 1 << 53 => Tensor::integer(value as i64, dtype)?.to_device(device),
        device => Tensor::operand(value as f64, dtype, device),
    }
}

/// `x` as `dtype`, beside operands on `device`: a 0-d tensor on the CPU goes there, as a number would.
pub fn join(x: &Tensor, dtype: DType, device: Device) -> Result<Tensor> {
    if dtype == DType::F64 && x.dtype().is_integer() && x.device() != Device::Cpu {
        return Err(Error::dtype(format!(
            "{} and the other operand meet in float64, which a GPU has not; convert one of them first, as in \
             x.to(wengert.int64)",
            x.dtype()
        )));
    }
    let x = x.cast(dtype)?;
    if x.rank() == 0 && x.device() == Device::Cpu { x.to_device(device) } else { Ok(x) }
}

/// Where these operands meet: on the device of the first that does not follow the others.
pub fn meeting<'a>(operands: &[&'a Tensor]) -> &'a Tensor {
    let stays = |x: &&&Tensor| x.rank() > 0 || x.device() != Device::Cpu;
    operands.iter().find(stays).unwrap_or(&operands[0])
}

/// The common dtype of two tensors, as in PyTorch: a 0-d one does not widen one with axes in its category.
pub fn promote(x: &Tensor, y: &Tensor) -> DType {
    let (a, b) = (x.dtype(), y.dtype());
    if a == b {
        return a;
    }
    match (x.rank() == 0, y.rank() == 0) {
        (true, false) if a.category() <= b.category() => b,
        (false, true) if b.category() <= a.category() => a,
        _ => a.promote(b),
    }
}

/// Applies a row of the binary table to two operands, at least one of them a tensor.
pub fn binary(fun: Binary, x: Operand, y: Operand) -> Result<Tensor> {
    if let (Binary::Pow, Operand::Tensor(t), Operand::Int(2) | Operand::Float(2.0)) = (fun, &x, &y)
        && t.dtype().is_differentiable()
    {
        // A region runs powers in float32, and squares as they are.
        let wide = t.dtype().is_half() && crate::interp::autocasting();
        return if wide { t.cast(DType::F32)?.square() } else { t.square() };
    }
    if let (Binary::Pow, Operand::Tensor(t), Operand::Int(n @ -64..=64)) = (fun, x, y)
        && t.dtype().is_complex()
    {
        return crate::ops::complex::power(t, n as i64);
    }
    if let (Operand::Tensor(a), Operand::Tensor(b)) = (&x, &y)
        && a.dtype() == b.dtype()
        && a.dtype().is_float()
        && a.device() == b.device()
    {
        // Fast path: nothing to convert.
        if !a.same_shape(b) {
            check_different(fun.name(), a, b)?;
        }
        return bind(Map::binary(fun), &[a, b]);
    }
    let (like, mut dtype) = met(|| fun.name(), &x, &y)?;
    if dtype == DType::Bool {
        let logic = match fun {
            Binary::Add | Binary::Maximum => Some(Logic::Or),
            Binary::Mul | Binary::Minimum => Some(Logic::And),
            Binary::Sub => {
                return Err(Error::dtype(
                    "sub: not defined for bool tensors; use logical_xor, or ~ to negate a mask",
                ));
            }
            _ => None,
        };
        if let Some(logic) = logic {
            let (x, y) = (x.to_tensor(dtype, like)?, y.to_tensor(dtype, like)?);
            return bind(Logical { logic }, &[&x, &y]).named(fun.name());
        }
        if let (Operand::Tensor(a), Operand::Tensor(b)) = (&x, &y) {
            // Before they become integers, of which each device has its own.
            eval::check_tensors(fun.name(), &[a, b])?;
        }
        dtype = index_type(like.device());
    }
    if let (Binary::Pow, Operand::Int(exponent @ ..0), false) = (fun, &y, dtype.is_differentiable()) {
        return Err(Error::value(format!(
            "pow: integers have no negative powers, got the exponent {exponent}; convert the base with \
             .float() first"
        )));
    }
    if !fun.columns().has_integers {
        dtype = dtype.to_float();
    }
    let (x, y) = (x.to_rule_input(dtype, like)?, y.to_rule_input(dtype, like)?);
    bind(Map::binary(fun), &[&x, &y])
}

/// Where two operands meet, of which at least one must be a tensor, and the dtype of their result.
#[inline]
pub fn met<'a>(
    op: impl Fn() -> &'static str, x: &Operand<'a>, y: &Operand<'a>,
) -> Result<(&'a Tensor, DType)> {
    match (x, y) {
        (Operand::Tensor(a), Operand::Tensor(b)) => {
            check_broadcast(op(), a, b)?;
            Ok((meeting(&[a, b]), promote(a, b)))
        }
        (Operand::Tensor(t), other) | (other, Operand::Tensor(t)) => Ok((t, other.result_type(t))),
        _ => Err(Error::dtype(format!("{}: a tensor expected among the operands", op()))),
    }
}

/// Runs `op` on two tensors that broadcast, as `dtype` where they meet.
pub fn bind_met(op: impl Operation<Out = Tensor>, x: &Tensor, y: &Tensor, dtype: DType) -> Result<Tensor> {
    check_broadcast(op.name(), x, y)?;
    let device = meeting(&[x, y]).device();
    bind(op, &[&join(x, dtype, device)?, &join(y, dtype, device)?])
}

/// Runs `op` on two tensors whose shapes broadcast, expanded to one shape.
pub fn bind_expanded(op: impl Operation<Out = Tensor>, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let shape = x.shape().broadcast(&y.shape());
    let shape = shape.ok_or_else(|| Error::shape("internal: operands that do not broadcast"))?;
    bind(op, &[&x.expand(&shape)?, &y.expand(&shape)?])
}

/// Batching rule of an operation of two operands of one shape.
pub fn expanded(op: impl Operation<Out = Tensor>, x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
    let x = align(x)?;
    Ok(smallvec![(bind_expanded(op, &x[0], &x[1])?, Some(0))])
}

/// Raises unless the shapes broadcast.
#[inline]
pub fn check_broadcast(op: &str, x: &Tensor, y: &Tensor) -> Result<()> {
    if x.same_shape(y) { Ok(()) } else { check_different(op, x, y) }
}

/// [`check_broadcast`] where the shapes differ.
fn check_different(op: &str, x: &Tensor, y: &Tensor) -> Result<()> {
    let (a, b) = (x.shape(), y.shape());
    if a.broadcast(&b).is_some() {
        return Ok(());
    }
    Err(Error::shape(format!(
        "{op}: shapes {a} and {b} do not broadcast: aligned from the last axis, each pair of lengths must \
         be equal or 1"
    )))
}

impl Tensor {
    /// Applies a row of the unary table. Integers are converted to float32 where the function needs it.
    pub fn unary(&self, fun: Unary) -> Result<Tensor> {
        self.map(Map { fun: Fun::Unary(fun), p: Params::ZERO })
    }

    /// Applies a row of the table of functions with attributes.
    pub fn parametric(&self, fun: Parametric, p: [f64; 2]) -> Result<Tensor> {
        self.map(Map { fun: Fun::Parametric(fun), p: p.into() })
    }

    /// [`Tensor::parametric`] where the attributes are bounds: halves meet those that they can be.
    pub fn bounded(&self, fun: Parametric, bounds: [f64; 2]) -> Result<Tensor> {
        self.parametric(fun, bounds.map(|bound| self.dtype().nearest_half(bound)))
    }

    fn map(&self, op: Map) -> Result<Tensor> {
        let keeps_integers = || op.fun.columns().has_integers;
        match self.dtype().category() {
            Category::Float | Category::Complex => bind(op, &[self]),
            Category::Int if keeps_integers() => bind(op, &[self]),
            Category::Bool if op.fun == Fun::Unary(Unary::Neg) => {
                Err(Error::dtype("neg: not defined for bool tensors; use ~ or logical_not"))
            }
            // The sign of a truth value is that value; a copy.
            Category::Bool if op.fun == Fun::Unary(Unary::Sign) => self.copied(),
            Category::Bool if keeps_integers() => bind(op, &[&self.cast(index_type(self.device()))?]),
            _ => bind(op, &[&self.cast(self.dtype().to_float())?]),
        }
    }

    /// An integer that this tensor's dtype holds, as an operand beside it.
    pub fn integer_like(&self, value: i128) -> Result<Tensor> {
        integer(value, self.dtype(), self.device())
    }

    /// Derivative of order `n` of the digamma function.
    pub fn polygamma(&self, n: u32) -> Result<Tensor> {
        const MOST: u32 = 20;
        if n > MOST {
            return Err(Error::value(format!("polygamma: an order from 0 to {MOST} expected, got {n}")));
        }
        self.parametric(Parametric::Polygamma, [f64::from(n), 0.0])
    }

    /// `log(1 + exp(beta x)) / beta`, linear where `beta x > threshold`.
    pub fn softplus(&self, beta: f64, threshold: f64) -> Result<Tensor> {
        self.parametric(Parametric::Softplus, [beta, threshold])
    }

    /// Gaussian error linear unit; `approximate` uses tanh.
    pub fn gelu(&self, approximate: bool) -> Result<Tensor> {
        self.unary(if approximate { Unary::GeluTanh } else { Unary::Gelu })
    }
}

/// The methods of a table, one for each row.
macro_rules! methods {
    ($kind:ident, $n:literal, $p:ident; $(
        $(#[doc = $doc:literal])* $name:ident $method:ident($($x:ident),+) = $value:expr,
        [$($partial:tt)*], $precision:ident, $slope:ident, $integer:tt, $complex:expr;
    )*) => {
        impl Tensor { $(method! { $kind::$name $(#[doc = $doc])* $method })* }
    };
}

macro_rules! method {
    (Unary::$name:ident $(#[$doc:meta])* $method:ident) => {
        $(#[$doc])* pub fn $method(&self) -> Result<Tensor> { self.unary(Unary::$name) }
    };
    (Binary::$name:ident $(#[$doc:meta])* $method:ident) => {
        $(#[$doc])* pub fn $method<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
            binary(Binary::$name, self.into(), other.into())
        }
    };
}

unary_table!(methods);
binary_table!(methods);
