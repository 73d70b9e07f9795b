//! Operators, and the methods generated from the tables of unary and binary functions and of comparisons.
//!
//! Operators are the hot path: two tensors go to the core without conversion, a number becomes a scalar
//! operand that adapts its dtype, and all other types are checked last.

use crate::ops::pointwise::binary::{Binary, binary_table};
use crate::ops::pointwise::bitwise::{Bits, bitwise};
use crate::ops::pointwise::compare::{Logic, Relation};
use crate::ops::pointwise::operand::{Operand, binary};
use crate::ops::pointwise::unary::{Unary, unary_table};
use crate::py::args::LARGE;
use crate::py::prelude::*;
use crate::py::relative::Compared;
use crate::py::tensor::{object::Value, wrap};
use crate::py::writes::{aliasing::unaliased, inplace};
use pyo3::basic::CompareOp;

/// Returns the operands in the order in which they were written.
#[inline(always)]
fn ordered<T>(x: T, y: T, reflected: bool) -> (T, T) {
    if reflected { (y, x) } else { (x, y) }
}

fn ordered_binary(fun: Binary, x: &Tensor, y: Operand, reflected: bool) -> Result<Tensor> {
    let (x, y) = ordered(x.into(), y, reflected);
    binary(fun, x, y)
}

/// `fun(x, y)`, or `fun(y, x)` if reflected; `NotImplemented` for an object that is no operand.
#[inline]
fn operator(
    x: &Bound<'_, PyTensor>, y: &Bound<'_, PyAny>, fun: Binary, reflected: bool,
) -> PyResult<Py<PyAny>> {
    let py = x.py();
    if let Ok(y) = y.cast::<PyTensor>() {
        let (a, b) = (x.get().value()?, y.get().value()?);
        let out = if a.numel().max(b.numel()) <= LARGE {
            let (a, b) = ordered(&*a, &*b, reflected);
            binary(fun, a.into(), b.into())?
        } else {
            let (a, b) = ordered(a.into_owned(), b.into_owned(), reflected);
            py.detached(|| binary(fun, (&a).into(), (&b).into()))?
        };
        return Ok(Py::new(py, PyTensor::from(out))?.into_any());
    }
    match Arg::from_any(y)? {
        None if fun == Binary::Mul => repeated(x, y),
        operand => with_operand(x, operand, |x, y| ordered_binary(fun, x, y, reflected)),
    }
}

/// The product with an object that is no operand. Python multiplies lists by integers (repetition), which
/// must not happen to a list meant as a tensor.
#[cold]
fn repeated(x: &Bound<'_, PyTensor>, y: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let (dtype, numel) = (x.read().t.dtype(), x.read().t.numel());
    let is_list = y.is_instance_of::<PyList>() || y.is_instance_of::<PyTuple>();
    if !is_list || (!dtype.is_differentiable() && numel == 1) {
        return Ok(y.py().NotImplemented());
    }
    let (kind, shape) = (y.get_type().name()?, x.read().t.shape());
    Err(type_error(format!(
        "a {dtype} tensor of shape {shape} cannot be multiplied by a {kind}; make a tensor of it with \
         wengert.tensor()"
    )))
}

/// `fun(x, y)`, or `fun(y, x)` if reflected.
pub fn binary_of(py: Python<'_>, x: &Tensor, y: &Arg, fun: Binary, reflected: bool) -> PyResult<Tensor> {
    run(py, x.numel().max(y.numel()), || ordered_binary(fun, x, y.operand(), reflected))
}

/// `f(x, y)` as an object; `NotImplemented` without an operand.
#[inline(always)]
fn with_operand(
    x: &Bound<'_, PyTensor>, y: Option<Arg>, f: impl FnOnce(&Tensor, Operand) -> Result<Tensor> + Send,
) -> PyResult<Py<PyAny>> {
    let Some(y) = y else { return Ok(x.py().NotImplemented()) };
    let (py, x) = (x.py(), x.get().value()?);
    let numel = x.numel().max(y.numel());
    // Another thread may write the object while the interpreter lock is released.
    let x = if numel > LARGE { Value::Renewed(x.into_owned()) } else { x };
    let out = run(py, numel, || f(&x, y.operand()))?;
    Ok(wrap(py, out)?.into_any())
}

/// `x <fun> y`, or `y <fun> x` if reflected; `NotImplemented` for an object that is no operand.
fn bits(x: &Bound<'_, PyTensor>, y: &Bound<'_, PyAny>, fun: Bits, reflected: bool) -> PyResult<Py<PyAny>> {
    with_operand(x, Arg::from_any(y)?, |x, y| {
        let (x, y) = ordered(x.into(), y, reflected);
        bitwise(fun, x, y)
    })
}

/// Replaces the value of `x` by `x <fun> y`.
fn bits_in_place(x: &Bound<'_, PyTensor>, fun: Bits, y: &Arg) -> PyResult<()> {
    inplace::update(x, fun.name(), |py, x| run(py, x.numel(), || bitwise(fun, x.into(), y.operand())))
}

/// `x @ y` or `y @ x`; `NotImplemented` for an object that is no operand.
fn product(x: &Bound<'_, PyTensor>, y: &Bound<'_, PyAny>, reflected: bool) -> PyResult<Py<PyAny>> {
    let operand = Arg::from_any(y)?.filter(|y| matches!(y, Arg::Tensor(_)));
    with_operand(x, operand, |x, y| {
        let y = y.tensor_with(x)?;
        if reflected { y.matmul(x) } else { x.matmul(&y) }
    })
}

/// Raises for a third argument of `pow`.
fn check_modulo(modulo: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match modulo.filter(|modulo| !modulo.is_none()) {
        None => Ok(()),
        Some(_) => Err(type_error("pow: tensors have no power modulo a number; write pow(x, y) % z")),
    }
}

/// The operators of functions of two operands: as written, reflected, and in place.
macro_rules! operators {
    ($operator:path, $in_place:path: $($fun:path = $op:ident $reflected:ident $assigned:ident;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                fn $op(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                    $operator(slf, other, $fun, false)
                }
                fn $reflected(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                    $operator(slf, other, $fun, true)
                }
                fn $assigned(slf: &Bound<'_, Self>, other: Arg) -> PyResult<()> {
                    $in_place(slf, $fun, &other)
                }
            )*
        }
    };
}

operators! { operator, inplace::binary:
    Binary::Add = __add__ __radd__ __iadd__;
    Binary::Sub = __sub__ __rsub__ __isub__;
    Binary::Mul = __mul__ __rmul__ __imul__;
    Binary::Div = __truediv__ __rtruediv__ __itruediv__;
    Binary::FloorDivide = __floordiv__ __rfloordiv__ __ifloordiv__;
    Binary::Remainder = __mod__ __rmod__ __imod__;
}

operators! { bits, bits_in_place:
    Bits::And = __and__ __rand__ __iand__;
    Bits::Or = __or__ __ror__ __ior__;
    Bits::Xor = __xor__ __rxor__ __ixor__;
    Bits::LeftShift = __lshift__ __rlshift__ __ilshift__;
    Bits::RightShift = __rshift__ __rrshift__ __irshift__;
}

#[pymethods]
impl PyTensor {
    fn __pow__(
        slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        check_modulo(modulo)?;
        operator(slf, other, Binary::Pow, false)
    }
    fn __rpow__(
        slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        check_modulo(modulo)?;
        operator(slf, other, Binary::Pow, true)
    }
    fn __ipow__(slf: &Bound<'_, Self>, other: Arg, _modulo: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        inplace::update(slf, "pow", |py, x| binary_of(py, x, &other, Binary::Pow, false))
    }
    fn __matmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        product(slf, other, false)
    }
    fn __rmatmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        product(slf, other, true)
    }
    fn __imatmul__(slf: &Bound<'_, Self>, other: Arg) -> PyResult<()> {
        inplace::update(slf, "matmul", |py, x| {
            let other = other.tensor_with(x)?;
            run(py, x.numel().max(other.numel()), || x.matmul(&other))
        })
    }
    fn __pos__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __richcmp__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let relation = match op {
            CompareOp::Lt => Relation::Lt,
            CompareOp::Le => Relation::Le,
            CompareOp::Eq => Relation::Eq,
            CompareOp::Ne => Relation::Ne,
            CompareOp::Gt => Relation::Gt,
            CompareOp::Ge => Relation::Ge,
        };
        with_operand(slf, Arg::compared(other)?, |x, y| x.compare(y, relation))
    }
}

methods! {
    __neg__() = |x| x.neg();
    __abs__() = |x| x.abs();
    __invert__() = Tensor::bitwise_not;

    /// Returns the bits that both integers have; of bools, whether both are true.
    bitwise_and(other: Arg) = |x| bitwise(Bits::And, x.into(), other.operand());
    /// Returns the bits that at least one integer has; of bools, whether at least one is true.
    bitwise_or(other: Arg) = |x| bitwise(Bits::Or, x.into(), other.operand());
    /// Returns the bits that exactly one integer has; of bools, whether exactly one is true.
    bitwise_xor(other: Arg) = |x| bitwise(Bits::Xor, x.into(), other.operand());
    /// Shifts the bits of integers up by `other`; 0 where that is negative or not below the number of bits.
    bitwise_left_shift(other: Arg) = |x| bitwise(Bits::LeftShift, x.into(), other.operand());
    /// Shifts the bits of integers down by `other` and keeps the sign: division by `2 ** other`, rounded
    /// down. Where `other` is negative or not below the number of bits, 0 or -1 is left.
    bitwise_right_shift(other: Arg) = |x| bitwise(Bits::RightShift, x.into(), other.operand());
    /// Inverts every bit of integers, `-1 - x`; of bools, returns the opposite.
    bitwise_not() = Tensor::bitwise_not;
    /// Returns the greatest common divisor of integers, not negative; that of 0 and 0 is 0.
    gcd(other: Arg) = |x| bitwise(Bits::Gcd, x.into(), other.operand());

    /// Tells where both are true (not zero).
    logical_and(other: Arg) = |x| x.logical(&other.tensor_with(x)?, Logic::And);
    /// Tells where at least one is true (not zero).
    logical_or(other: Arg) = |x| x.logical(&other.tensor_with(x)?, Logic::Or);
    /// Tells where exactly one is true (not zero).
    logical_xor(other: Arg) = |x| x.logical(&other.tensor_with(x)?, Logic::Xor);
    /// Tells where the elements are false (zero).
    logical_not() = Tensor::logical_not;

    /// Tells where `self < other`, elementwise, as bools.
    lt(other: Compared) = |x| x.compare(other.0.operand(), Relation::Lt);
    /// Tells where `self <= other`, elementwise, as bools.
    le(other: Compared) = |x| x.compare(other.0.operand(), Relation::Le);
    /// Tells where `self == other`, elementwise, as bools.
    eq(other: Compared) = |x| x.compare(other.0.operand(), Relation::Eq);
    /// Tells where `self != other`, elementwise, as bools.
    ne(other: Compared) = |x| x.compare(other.0.operand(), Relation::Ne);
    /// Tells where `self > other`, elementwise, as bools.
    gt(other: Compared) = |x| x.compare(other.0.operand(), Relation::Gt);
    /// Tells where `self >= other`, elementwise, as bools.
    ge(other: Compared) = |x| x.compare(other.0.operand(), Relation::Ge);

    /// Returns the next number of the dtype in the direction of `other`; NaN where either is. No gradient.
    nextafter(other: Arg) = |x| x.nextafter(&other.tensor_with(x)?);
    /// Returns the derivative of order `n`, 0 to 20, of the digamma function; infinite or NaN at integers up
    /// to 0.
    polygamma(n: Whole) = |x| {
        let outside = |_| Error::value(format!("polygamma: n must lie in [0, 2^32), got {}", n.0));
        x.polygamma(u32::try_from(n.0).map_err(outside)?)
    };
}

impl PyTensor {
    /// Applies `f`, without the interpreter lock if the tensor is large; the result has memory of its own.
    #[inline]
    pub fn apply(
        &self, py: Python<'_>, f: impl FnOnce(&Tensor) -> Result<Tensor> + Send,
    ) -> PyResult<PyTensor> {
        let t = self.value()?;
        run(py, t.numel(), || unaliased(f(&t)?, &t)).map(PyTensor::from)
    }

    /// Applies a function of the table; only of integers can its result be the operand.
    fn unary(&self, py: Python<'_>, function: Unary) -> PyResult<PyTensor> {
        let t = self.value()?;
        if !t.dtype().is_differentiable() {
            return self.apply(py, |x| x.unary(function));
        }
        run(py, t.numel(), || t.unary(function)).map(PyTensor::from)
    }
}

/// The methods of the tables, one row each. Those with more arguments than the operands are in `options.rs`.
macro_rules! row_method {
    ($(#[$doc:meta])* Add $($rest:tt)*) => {};
    ($(#[$doc:meta])* Sub $($rest:tt)*) => {};
    ($(#[$doc:meta])* Div $($rest:tt)*) => {};
    ($(#[$doc:meta])* Pow $($rest:tt)*) => {};
    ($(#[$doc:meta])* Heaviside $($rest:tt)*) => {};
    ($(#[$doc:meta])* Round $($rest:tt)*) => {};
    ($(#[$doc:meta])* $name:ident $method:ident($x:ident)) => {
        #[pymethods]
        impl PyTensor {
            $(#[$doc])*
            fn $method(&self, py: Python<'_>) -> PyResult<PyTensor> {
                self.unary(py, Unary::$name)
            }
        }
    };
    ($(#[$doc:meta])* $name:ident $method:ident($x:ident, $y:ident)) => {
        #[pymethods]
        impl PyTensor {
            $(#[$doc])*
            fn $method(&self, py: Python<'_>, other: Arg) -> PyResult<PyTensor> {
                binary_of(py, &*self.value()?, &other, Binary::$name, false).map(PyTensor::from)
            }
        }
    };
}

macro_rules! row_methods {
    ($kind:ident, $n:literal, $p:ident; $(
        $(#[doc = $doc:literal])* $name:ident $method:ident($($x:ident),+) = $value:expr,
        [$($partial:tt)*], $precision:ident, $slope:ident, $integer:tt, $complex:expr;
    )*) => { $(row_method! { $(#[doc = $doc])* $name $method($($x),+) })* };
}

unary_table!(row_methods);
binary_table!(row_methods);
