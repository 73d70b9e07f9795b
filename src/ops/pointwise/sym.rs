//! `Sym`: the reading of a rule as tensor operations, for derivatives of derivatives.
//!
//! A rule wants numbers it can copy, and operators that cannot fail; tensors are neither. So a `Sym` is a
//! handle into a thread-local arena that lives for one reading, and the first error is kept there until the
//! reading ends.
//!
//! Every rule is compiled for it, so what an operation does is never inlined.

use crate::array::dtype::DType;
use crate::error::{Error, Result};
use crate::math::lane::F64Fma;
use crate::math::real::{Pointwise, Real};
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::compare::{Logic, Relation};
use crate::ops::pointwise::operand::{self, Operand};
use crate::ops::pointwise::unary::{Parametric, Unary};
use crate::tensor::Tensor;
use crate::watch::debug::{self, Modes};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

enum Value {
    Tensor(Tensor),
    Literal(f64),
    /// The result of a failed operation; the error itself is kept aside.
    Failed,
}

#[derive(Default)]
struct Arena {
    values: Vec<Value>,
    error: Option<Error>,
    /// The dtype of the first tensor of the reading, for tensors of literals.
    dtype: Option<DType>,
}

thread_local! {
    static ARENA: RefCell<Arena> = RefCell::default();
}

/// A number of a rule that is being recorded.
#[derive(Clone, Copy)]
pub struct Sym(u32);

/// A truth value of a rule that is being recorded.
#[derive(Clone, Copy)]
pub struct SymMask(u32);

#[inline(never)]
fn put(value: Value) -> u32 {
    ARENA.with_borrow_mut(|a| {
        a.values.push(value);
        a.values.len() as u32 - 1
    })
}

#[inline(never)]
fn get(i: u32) -> Value {
    ARENA.with_borrow(|a| match &a.values[i as usize] {
        Value::Tensor(t) => Value::Tensor(t.clone()),
        Value::Literal(v) => Value::Literal(*v),
        Value::Failed => Value::Failed,
    })
}

#[inline(never)]
fn put_result(result: Result<Tensor>) -> u32 {
    match result {
        Ok(t) => put(Value::Tensor(t)),
        Err(e) => {
            ARENA.with_borrow_mut(|a| a.error.get_or_insert(e).kind());
            put(Value::Failed)
        }
    }
}

/// Reads `rule` on tensors: the operations it performs run through `bind` one by one.
pub fn read<const N: usize, P: Pointwise<N>>(x: &[&Tensor], rule: P) -> Result<Tensor> {
    read_one(x, N, &|x| rule.apply(std::array::from_fn(|i| x[i])))
}

fn read_one(x: &[&Tensor], operands: usize, rule: &dyn Fn(&[Sym]) -> Sym) -> Result<Tensor> {
    if x.len() != operands {
        return Err(Error::value(format!("internal: a rule takes {operands} operands, got {}", x.len())));
    }
    let out = reading(x.iter().copied(), |x| get(rule(x).0))?;
    tensor_of(out, x[0])
}

/// Reads a formula with several values.
pub fn record<const K: usize>(x: &[Tensor], formula: impl FnOnce(&[Sym]) -> [Sym; K]) -> Result<[Tensor; K]> {
    let out = reading(x.iter(), |x| formula(x).map(|value| get(value.0)))?;
    let all = out.into_iter().map(|value| tensor_of(value, &x[0])).collect::<Result<Vec<Tensor>>>()?;
    all.try_into().map_err(|_| Error::value("internal: a formula lost a value"))
}

/// What `f` makes of tensors as numbers of a rule, or the first error on the way.
fn reading<'a, T>(x: impl Iterator<Item = &'a Tensor>, f: impl FnOnce(&[Sym]) -> T) -> Result<T> {
    let mut x = x.peekable();
    let dtype = x.peek().map(|x| x.dtype());
    let (start, outer, before) =
        ARENA.with_borrow_mut(|a| (a.values.len(), a.error.take(), std::mem::replace(&mut a.dtype, dtype)));
    let inputs: SmallVec<[Sym; 4]> = x.map(|x| Sym(put(Value::Tensor(x.clone())))).collect();
    let out = f(&inputs);
    let error = ARENA.with_borrow_mut(|a| {
        a.values.truncate(start);
        a.dtype = before;
        std::mem::replace(&mut a.error, outer)
    });
    error.map_or(Ok(out), Err)
}

/// A value as a tensor; a constant gets the shape of `like`.
#[inline(never)]
fn tensor_of(value: Value, like: &Tensor) -> Result<Tensor> {
    match value {
        Value::Tensor(t) => Ok(t),
        Value::Literal(v) => like.scalar_like(v)?.expand(&like.shape()),
        Value::Failed => Err(Error::value("internal: a failed rule lost its error")),
    }
}

impl Sym {
    /// Length of the vector of both, by the row of that name, whose gradient at 0 is 0.
    pub fn hypot(self, other: Sym) -> Sym {
        binary(self, other, Binary::Hypot, f64::hypot)
    }

    /// Angle of the point `(x, self)`, by the row of that name.
    pub fn atan2(self, x: Sym) -> Sym {
        binary(self, x, Binary::Atan2, f64::atan2)
    }

    /// `self` with the sign of `other`.
    pub fn copysign(self, other: Sym) -> Sym {
        binary(self, other, Binary::Copysign, f64::copysign)
    }

    /// `self * other`, and 0 where `self` is, even beside an infinity or NaN.
    pub fn times(self, other: Sym) -> Sym {
        self.unless_zero(self * other)
    }

    /// `self / other`, and 0 where `self` is, whatever `other` is.
    pub fn over(self, other: Sym) -> Sym {
        self.unless_zero(self / other)
    }

    #[inline(never)]
    fn unless_zero(self, value: Sym) -> Sym {
        Sym::select(value.ne(value) & self.eq(Sym::lit(0.0)), self, value)
    }
}

#[inline(never)]
fn unary(x: Sym, fun: Unary, literal: fn(f64) -> f64) -> Sym {
    Sym(match get(x.0) {
        Value::Tensor(t) => put_result(t.unary(fun)),
        Value::Literal(v) => put(Value::Literal(literal(v))),
        Value::Failed => put(Value::Failed),
    })
}

#[inline(never)]
fn binary(x: Sym, y: Sym, fun: Binary, literal: fn(f64, f64) -> f64) -> Sym {
    let apply = |a: Operand, b: Operand| put_result(operand::binary(fun, a, b));
    Sym(match (get(x.0), get(y.0)) {
        (Value::Tensor(a), Value::Tensor(b)) => apply((&a).into(), (&b).into()),
        (Value::Tensor(a), Value::Literal(b)) => apply((&a).into(), b.into()),
        (Value::Literal(a), Value::Tensor(b)) => apply(a.into(), (&b).into()),
        (Value::Literal(a), Value::Literal(b)) => put(Value::Literal(literal(a, b))),
        _ => put(Value::Failed),
    })
}

#[inline(never)]
fn compare(x: Sym, y: Sym, relation: Relation) -> SymMask {
    let tensor = |v: &Value, like: &Tensor| match v {
        Value::Tensor(t) => Ok(t.clone()),
        Value::Literal(v) => like.scalar_like(*v),
        Value::Failed => Err(Error::value("internal: a failed rule went on")),
    };
    let (a, b) = (get(x.0), get(y.0));
    let like = match (&a, &b) {
        (Value::Tensor(t), _) | (_, Value::Tensor(t)) => t.clone(),
        (Value::Literal(a), Value::Literal(b)) => return SymMask::known(relation.holds(*a, *b)),
        _ => return SymMask(put(Value::Failed)),
    };
    let result = tensor(&a, &like).and_then(|a| a.compare(&tensor(&b, &like)?, relation));
    SymMask(put_result(result))
}

#[inline(never)]
fn logic(x: SymMask, y: SymMask, logic: Logic) -> SymMask {
    match (get(x.0), get(y.0)) {
        (Value::Tensor(a), Value::Tensor(b)) => SymMask(put_result(a.logical(&b, logic))),
        // What is known decides, or leaves it to the other.
        (Value::Literal(known), _) if (known != 0.0) == (logic == Logic::Or) => x,
        (Value::Literal(_), _) => y,
        (_, Value::Literal(known)) if (known != 0.0) == (logic == Logic::Or) => y,
        (_, Value::Literal(_)) => x,
        _ => SymMask(put(Value::Failed)),
    }
}

macro_rules! arithmetic {
    ($($trait:ident $method:ident $row:ident |$a:ident, $b:ident| $literal:expr;)*) => {$(
        impl $trait for Sym {
            type Output = Sym;
            fn $method(self, other: Sym) -> Sym { binary(self, other, Binary::$row, |$a, $b| $literal) }
        }
        impl $trait<f64> for Sym {
            type Output = Sym;
            fn $method(self, other: f64) -> Sym { $trait::$method(self, Sym::lit(other)) }
        }
        impl $trait<Sym> for f64 {
            type Output = Sym;
            fn $method(self, other: Sym) -> Sym { $trait::$method(Sym::lit(self), other) }
        }
    )*};
}

arithmetic! {
    Add add Add |a, b| a + b;
    Sub sub Sub |a, b| a - b;
    Mul mul Mul |a, b| a * b;
    Div div Div |a, b| a / b;
}

impl Neg for Sym {
    type Output = Sym;
    fn neg(self) -> Sym {
        unary(self, Unary::Neg, |v| -v)
    }
}

impl SymMask {
    /// A truth value that is the same for all elements.
    fn known(holds: bool) -> SymMask {
        SymMask(put(Value::Literal(holds as u8 as f64)))
    }
}

impl BitAnd for SymMask {
    type Output = SymMask;
    fn bitand(self, other: SymMask) -> SymMask {
        logic(self, other, Logic::And)
    }
}
impl BitOr for SymMask {
    type Output = SymMask;
    fn bitor(self, other: SymMask) -> SymMask {
        logic(self, other, Logic::Or)
    }
}
impl Not for SymMask {
    type Output = SymMask;
    fn not(self) -> SymMask {
        SymMask(match get(self.0) {
            Value::Tensor(t) => put_result(t.logical_not()),
            Value::Literal(known) => return SymMask::known(known == 0.0),
            Value::Failed => put(Value::Failed),
        })
    }
}

/// The primitive functions, as operations of the rows of their names.
macro_rules! rows {
    ($(#[doc = $doc:literal] $name:ident $row:ident,)*) => {$(
        fn $name(self) -> Sym {
            unary(self, Unary::$row, |v| F64Fma(v).$name().0)
        }
    )*};
}

impl Real for Sym {
    type Mask = SymMask;
    fn short_circuits() -> bool {
        !debug::modes().has(Modes::STRICT)
    }
    #[inline(never)]
    fn lit(value: f64) -> Sym {
        Sym(put(Value::Literal(value)))
    }
    #[inline(never)]
    fn select(mask: SymMask, yes: Sym, no: Sym) -> Sym {
        let mask = match get(mask.0) {
            Value::Tensor(mask) => mask,
            Value::Literal(known) => return if known != 0.0 { yes } else { no },
            Value::Failed => return Sym(put(Value::Failed)),
        };
        let (yes, no) = (get(yes.0), get(no.0));
        let dtype = match (&yes, &no) {
            (Value::Tensor(t), _) | (_, Value::Tensor(t)) => t.dtype(),
            _ => ARENA.with_borrow(|a| a.dtype).unwrap_or(DType::F32),
        };
        let tensor = |v: Value| match v {
            Value::Tensor(t) => Ok(t),
            Value::Literal(v) => Tensor::scalar(v, dtype, mask.device()),
            Value::Failed => Err(Error::value("internal: a failed rule went on")),
        };
        Sym(put_result(tensor(yes).and_then(|yes| mask.select(&yes, &tensor(no)?))))
    }
    fn lt(self, other: Sym) -> SymMask {
        compare(self, other, Relation::Lt)
    }
    fn le(self, other: Sym) -> SymMask {
        compare(self, other, Relation::Le)
    }
    fn eq(self, other: Sym) -> SymMask {
        compare(self, other, Relation::Eq)
    }
    fn ne(self, other: Sym) -> SymMask {
        compare(self, other, Relation::Ne)
    }
    fn abs(self) -> Sym {
        unary(self, Unary::Abs, f64::abs)
    }
    fn floor(self) -> Sym {
        unary(self, Unary::Floor, f64::floor)
    }
    fn round(self) -> Sym {
        unary(self, Unary::Round, f64::round_ties_even)
    }
    fn sqrt(self) -> Sym {
        unary(self, Unary::Sqrt, f64::sqrt)
    }
    crate::math::functions::primitives!(rows);
    fn pow(self, exponent: Sym) -> Sym {
        binary(self, exponent, Binary::Pow, f64::powf)
    }
    fn fmod(self, divisor: Sym) -> Sym {
        binary(self, divisor, Binary::Fmod, |x, y| x % y)
    }
    fn polygamma(self, order: usize) -> Sym {
        Sym(match get(self.0) {
            Value::Tensor(t) => put_result(t.parametric(Parametric::Polygamma, [order as f64, 0.0])),
            Value::Literal(v) => put(Value::Literal(F64Fma(v).polygamma(order).0)),
            Value::Failed => put(Value::Failed),
        })
    }
}
