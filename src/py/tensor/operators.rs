//! Operators, and the methods generated from the tables of unary and binary functions and of comparisons.
//!
//! Operators are the hot path: two tensors go to the core without conversion, a number becomes a scalar
//! operand that adapts its dtype, and all other types are checked last.

use crate::ops::pointwise::binary::{Binary, binary_table};
use crate::ops::pointwise::bitwise::{Bits, bitwise};
use crate::ops::pointwise::compare::{Logic, Relation};
use crate::ops::pointwise::elementwise::{Operand, binary};
use crate::ops::pointwise::unary::{Unary, unary_table};
use crate::py::args::{Arg, LARGE, run, whole};
use crate::py::detach::Detach;
use crate::py::error::{type_error, value_error};
use crate::py::relative::Compared;
use crate::py::tensor::view::value;
use crate::py::tensor::{PyTensor, ReadState};
use crate::py::writes::inplace;
use crate::tensor::Tensor;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// `fun(x, y)`, or `fun(y, x)` if reflected; `NotImplemented` for an object that is no operand.
#[inline]
fn operator(
    x: &Bound<'_, PyTensor>,
    y: &Bound<'_, PyAny>,
    fun: Binary,
    reflected: bool,
) -> PyResult<Py<PyAny>> {
    let py = x.py();
    if let Ok(y) = y.cast::<PyTensor>() {
        let (a, b) = (x.get().value()?, y.get().value()?);
        let elements = a.numel().max(b.numel());
        let out = if elements <= LARGE {
            if reflected {
                binary(fun, (&*b).into(), (&*a).into())
            } else {
                binary(fun, (&*a).into(), (&*b).into())
            }?
        } else {
            let (a, b) = (a.into_owned(), b.into_owned());
            py.detached(|| {
                if reflected {
                    binary(fun, (&b).into(), (&a).into())
                } else {
                    binary(fun, (&a).into(), (&b).into())
                }
            })?
        };
        return Ok(Py::new(py, PyTensor::from(out))?.into_any());
    }
    let Some(operand) = Arg::from_any(y)? else {
        return if fun == Binary::Mul { repeated(x, y) } else { Ok(py.NotImplemented()) };
    };
    let x = value(x)?;
    let out = binary_of(py, &x, &operand, fun, reflected)?;
    Ok(Py::new(py, PyTensor::from(out))?.into_any())
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
    let elements = x.numel().max(y.numel());
    run(py, elements, || {
        let (x, y) = (Operand::Tensor(x), y.operand());
        if reflected { binary(fun, y, x) } else { binary(fun, x, y) }
    })
}

/// A comparison; `NotImplemented` for an object that is no operand.
fn comparison(x: &Bound<'_, PyTensor>, y: &Bound<'_, PyAny>, relation: Relation) -> PyResult<Py<PyAny>> {
    let py = x.py();
    let Some(y) = Arg::compared(y)? else {
        return Ok(py.NotImplemented());
    };
    let x = value(x)?;
    let out = run(py, x.numel().max(y.numel()), || x.compare(y.operand(), relation))?;
    Ok(Py::new(py, PyTensor::from(out))?.into_any())
}

/// Returns `x <fun> y`, or `y <fun> x` if reflected; `NotImplemented` for an object that is no operand.
fn bits(x: &Bound<'_, PyTensor>, y: &Bound<'_, PyAny>, fun: Bits, reflected: bool) -> PyResult<Py<PyAny>> {
    let py = x.py();
    let Some(y) = Arg::from_any(y)? else {
        return Ok(py.NotImplemented());
    };
    let x = value(x)?;
    Ok(Py::new(py, PyTensor::from(bits_of(py, &x, &y, fun, reflected)?))?.into_any())
}

/// Returns `x <fun> y`, or `y <fun> x` if reflected.
fn bits_of(py: Python<'_>, x: &Tensor, y: &Arg, fun: Bits, reflected: bool) -> PyResult<Tensor> {
    run(py, x.numel(), || {
        let (x, y) = (Operand::Tensor(x), y.operand());
        if reflected { bitwise(fun, y, x) } else { bitwise(fun, x, y) }
    })
}

/// `x <logic> y` on truth values.
pub fn logical(py: Python<'_>, x: &Tensor, y: &Arg, logic: Logic) -> PyResult<Tensor> {
    run(py, x.numel().max(y.numel()), || {
        let y = y.operand();
        let dtype = y.result_type(x);
        x.logical(&y.to_tensor(dtype, x)?, logic)
    })
}

/// `x @ y` or `y @ x`; `NotImplemented` for an object that is no operand.
fn product(x: &Bound<'_, PyTensor>, y: &Bound<'_, PyAny>, reflected: bool) -> PyResult<Py<PyAny>> {
    let py = x.py();
    let Some(Arg::Tensor(y)) = Arg::from_any(y)? else {
        return Ok(py.NotImplemented());
    };
    let x = value(x)?;
    let out = run(py, x.numel().max(y.numel()), || if reflected { y.matmul(&x) } else { x.matmul(&y) })?;
    Ok(Py::new(py, PyTensor::from(out))?.into_any())
}

macro_rules! arithmetic {
    ($($fun:ident $op:ident $reflected:ident $in_place:ident;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                fn $op(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                    operator(slf, other, Binary::$fun, false)
                }
                fn $reflected(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                    operator(slf, other, Binary::$fun, true)
                }
                fn $in_place(slf: &Bound<'_, Self>, other: Arg) -> PyResult<()> {
                    inplace::binary(slf, Binary::$fun, &other)
                }
            )*
        }
    };
}

arithmetic! {
    Add __add__ __radd__ __iadd__;
    Sub __sub__ __rsub__ __isub__;
    Mul __mul__ __rmul__ __imul__;
    Div __truediv__ __rtruediv__ __itruediv__;
    FloorDivide __floordiv__ __rfloordiv__ __ifloordiv__;
    Remainder __mod__ __rmod__ __imod__;
}

#[pymethods]
impl PyTensor {
    fn __pow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        _modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        operator(slf, other, Binary::Pow, false)
    }
    fn __rpow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        _modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
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
    fn __neg__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.apply(py, |x| x.neg())
    }
    fn __pos__(slf: Py<Self>) -> Py<Self> {
        slf
    }
    fn __abs__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.apply(py, |x| x.abs())
    }
    fn __invert__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.apply(py, Tensor::bitwise_not)
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
        comparison(slf, other, relation)
    }
}

macro_rules! bit_operators {
    ($($fun:ident $op:ident $reflected:ident $in_place:ident $method:ident $doc:literal;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                fn $op(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                    bits(slf, other, Bits::$fun, false)
                }
                fn $reflected(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                    bits(slf, other, Bits::$fun, true)
                }
                fn $in_place(slf: &Bound<'_, Self>, other: Arg) -> PyResult<()> {
                    inplace::update(slf, stringify!($method), |py, x| {
                        bits_of(py, x, &other, Bits::$fun, false)
                    })
                }
                #[doc = $doc]
                fn $method(&self, py: Python<'_>, other: Arg) -> PyResult<PyTensor> {
                    bits_of(py, &*self.value()?, &other, Bits::$fun, false).map(PyTensor::from)
                }
            )*
        }
    };
}

bit_operators! {
    And __and__ __rand__ __iand__ bitwise_and "The bits that both integers have; on bools, both.";
    Or __or__ __ror__ __ior__ bitwise_or "The bits that at least one integer has; on bools, at least one.";
    Xor __xor__ __rxor__ __ixor__ bitwise_xor "The bits that exactly one integer has; on bools, exactly one.";
    LeftShift __lshift__ __rlshift__ __ilshift__ bitwise_left_shift
        "The bits of integers moved up by `other` places; 0 where that is negative or not below the number \
         of bits.";
    RightShift __rshift__ __rrshift__ __irshift__ bitwise_right_shift
        "The bits of integers moved down by `other` places, the sign staying: division by `2 ** other`, \
         rounded down. Where `other` is negative or not below the number of bits, 0 or -1 is left.";
}

#[pymethods]
impl PyTensor {
    /// Every bit of integers the opposite, `-1 - x`; on bools, the opposite.
    fn bitwise_not(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.apply(py, Tensor::bitwise_not)
    }

    /// Greatest common divisor of integers, not negative; that of 0 and 0 is 0.
    fn gcd(&self, py: Python<'_>, other: Arg) -> PyResult<PyTensor> {
        bits_of(py, &*self.value()?, &other, Bits::Gcd, false).map(PyTensor::from)
    }

    /// The next number of the dtype in the direction of `other`; NaN where either is. No gradient.
    fn nextafter(&self, py: Python<'_>, other: Arg) -> PyResult<PyTensor> {
        self.apply(py, |x| x.nextafter(&other.tensor_with(x)?))
    }

    /// Derivative of order `n` of the digamma function, `n` from 0 to 20; infinite or NaN at integers that
    /// are not positive.
    fn polygamma(&self, py: Python<'_>, #[pyo3(from_py_with = whole)] n: i64) -> PyResult<PyTensor> {
        let n = u32::try_from(n)
            .map_err(|_| value_error(format!("polygamma: n must lie in [0, 2^32), got {n}")))?;
        self.apply(py, |x| x.polygamma(n))
    }
}

impl PyTensor {
    /// Applies `f` to this tensor, without the interpreter lock if it is large.
    #[inline]
    pub fn apply(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&Tensor) -> crate::error::Result<Tensor> + Send,
    ) -> PyResult<PyTensor> {
        let t = self.value()?;
        run(py, t.numel(), || f(&t)).map(PyTensor::from)
    }
}

macro_rules! unary_methods {
    ($kind:ident, $n:literal, $p:ident; $(
        $(#[doc = $doc:literal])* $name:ident $method:ident($($x:ident),+) = $value:expr,
        [$($partial:tt)*], $precision:ident, $slope:ident, $integer:tt, $complex:expr;
    )*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[doc = $doc])*
                fn $method(&self, py: Python<'_>) -> PyResult<PyTensor> {
                    self.apply(py, |x| x.unary(Unary::$name))
                }
            )*
        }
    };
}

macro_rules! binary_methods {
    ($kind:ident, $n:literal, $p:ident; $(
        $(#[doc = $doc:literal])* $name:ident $method:ident($($x:ident),+) = $value:expr,
        [$($partial:tt)*], $precision:ident, $slope:ident, $integer:tt, $complex:expr;
    )*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[doc = $doc])*
                fn $method(&self, py: Python<'_>, other: Arg) -> PyResult<PyTensor> {
                    binary_of(py, &*self.value()?, &other, Binary::$name, false).map(PyTensor::from)
                }
            )*
        }
    };
}

unary_table!(unary_methods);
binary_table!(binary_methods);

macro_rules! comparison_methods {
    ($($(#[$doc:meta])* $method:ident $relation:ident;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[$doc])*
                fn $method(&self, py: Python<'_>, other: Compared) -> PyResult<PyTensor> {
                    self.apply(py, |x| x.compare(other.0.operand(), Relation::$relation))
                }
            )*
        }
    };
}

comparison_methods! {
    /// `self < other`, elementwise, as bools.
    lt Lt;
    /// `self <= other`, elementwise, as bools.
    le Le;
    /// `self == other`, elementwise, as bools.
    eq Eq;
    /// `self != other`, elementwise, as bools.
    ne Ne;
    /// `self > other`, elementwise, as bools.
    gt Gt;
    /// `self >= other`, elementwise, as bools.
    ge Ge;
}
