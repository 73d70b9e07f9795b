//! `Sym`: the reading of a rule as tensor operations, for derivatives of derivatives.
//!
//! A rule wants numbers it can copy, and operators that cannot fail; tensors are neither. So a `Sym` is a
//! handle into a thread-local arena that lives for one reading and keeps its first error.
//!
//! Every rule is compiled for it, so what an operation does is never inlined.

use crate::math::lane::F64Fma;
use crate::math::real::{Pointwise, Real};
use crate::math::terms::Terms;
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::compare::{Logic, Relation};
use crate::ops::pointwise::operand::{self, Operand};
use crate::ops::pointwise::reading::reading;
use crate::ops::pointwise::unary::{Parametric, Unary};
use crate::ops::prelude::*;
use crate::watch::debug::{self, Modes};
use std::cell::RefCell;

#[derive(Clone)]
enum Value {
    Tensor(Tensor),
    Literal(f64),
    /// The result of a failed operation; the error itself is kept aside.
    Failed,
}

impl Value {
    /// This value as a tensor; a literal by `constant`.
    fn tensor(self, constant: impl FnOnce(f64) -> Result<Tensor>) -> Result<Tensor> {
        match self {
            Value::Tensor(t) => Ok(t),
            Value::Literal(v) => constant(v),
            Value::Failed => Err(Error::value("internal: a failed rule went on")),
        }
    }
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
    ARENA.with_borrow(|a| a.values[i as usize].clone())
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

/// Reads `rule` on tensors: the operations it performs run through `bind` one by one. Tensors whose bit is
/// set in `zeros` are known to be 0 everywhere.
pub fn read<const N: usize, P: Pointwise<N>>(x: &[&Tensor], zeros: u32, rule: P) -> Result<Tensor> {
    read_one(x, zeros, N, rule.terms(Sym::short_circuits()))
}

#[inline(never)]
fn read_one(x: &[&Tensor], zeros: u32, operands: usize, rule: Terms) -> Result<Tensor> {
    if x.len() != operands {
        return Err(Error::value(format!("internal: a rule takes {operands} operands, got {}", x.len())));
    }
    let known = |(i, x): (usize, &Sym)| (zeros >> i & 1 == 0).then_some(*x);
    let all = |x: &[Sym]| rule.read_known(&x.iter().enumerate().map(known).collect::<Vec<_>>());
    run(x.iter().copied(), |x| get(all(x).0))?.tensor(|v| x[0].constant_like(v))
}

/// Reads a formula with several values.
pub fn record<const K: usize>(x: &[Tensor], formula: impl FnOnce(&[Sym]) -> [Sym; K]) -> Result<[Tensor; K]> {
    let out = run(x.iter(), |x| formula(x).map(|value| get(value.0)))?;
    let tensor = |value: Value| value.tensor(|v| x[0].constant_like(v));
    let all = out.into_iter().map(tensor).collect::<Result<Vec<Tensor>>>()?;
    all.try_into().map_err(|_| Error::value("internal: a formula lost a value"))
}

/// What `f` makes of tensors as numbers of a rule, or the first error on the way.
fn run<'a, T>(x: impl Iterator<Item = &'a Tensor>, f: impl FnOnce(&[Sym]) -> T) -> Result<T> {
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

impl Sym {
    /// Length of the vector of both, by the row of that name, whose gradient at 0 is 0.
    pub fn hypot(self, other: Sym) -> Sym {
        self.binary(other, Binary::Hypot, f64::hypot)
    }

    /// Angle of the point `(x, self)`, by the row of that name.
    pub fn atan2(self, x: Sym) -> Sym {
        self.binary(x, Binary::Atan2, f64::atan2)
    }

    /// `self` with the sign of `other`.
    pub fn copysign(self, other: Sym) -> Sym {
        self.binary(other, Binary::Copysign, f64::copysign)
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

    /// A function of a tensor, or of a literal.
    fn map(self, tensor: impl FnOnce(Tensor) -> Result<Tensor>, literal: impl FnOnce(f64) -> f64) -> Sym {
        Sym(match get(self.0) {
            Value::Tensor(t) => put_result(tensor(t)),
            Value::Literal(v) => put(Value::Literal(literal(v))),
            Value::Failed => put(Value::Failed),
        })
    }

    #[inline(never)]
    fn unary(self, row: Unary, literal: fn(f64) -> f64) -> Sym {
        self.map(|t| t.unary(row), literal)
    }

    #[inline(never)]
    fn binary(self, other: Sym, row: Binary, literal: fn(f64, f64) -> f64) -> Sym {
        let apply = |a: Operand, b: Operand| put_result(operand::binary(row, a, b));
        Sym(match (get(self.0), get(other.0)) {
            (Value::Tensor(a), Value::Tensor(b)) => apply((&a).into(), (&b).into()),
            (Value::Tensor(a), Value::Literal(b)) => apply((&a).into(), b.into()),
            (Value::Literal(a), Value::Tensor(b)) => apply(a.into(), (&b).into()),
            (Value::Literal(a), Value::Literal(b)) => put(Value::Literal(literal(a, b))),
            _ => put(Value::Failed),
        })
    }

    #[inline(never)]
    fn compare(self, other: Sym, relation: Relation) -> SymMask {
        let (a, b) = (get(self.0), get(other.0));
        let like = match (&a, &b) {
            (Value::Tensor(t), _) | (_, Value::Tensor(t)) => t.clone(),
            (Value::Literal(a), Value::Literal(b)) => return SymMask::known(relation.holds(*a, *b)),
            _ => return SymMask(put(Value::Failed)),
        };
        let tensor = |v: Value| v.tensor(|v| like.scalar_like(v));
        SymMask(put_result(tensor(a).and_then(|a| a.compare(&tensor(b)?, relation))))
    }
}

impl SymMask {
    /// A truth value that is the same for all elements.
    fn known(holds: bool) -> SymMask {
        SymMask(put(Value::Literal(holds as u8 as f64)))
    }

    #[inline(never)]
    fn logic(self, other: SymMask, logic: Logic) -> SymMask {
        if logic == Logic::Not {
            return SymMask(Sym(self.0).map(|t| t.logical_not(), |known| f64::from(known == 0.0)).0);
        }
        match (get(self.0), get(other.0)) {
            (Value::Tensor(a), Value::Tensor(b)) => SymMask(put_result(a.logical(&b, logic))),
            // What is known decides, or leaves it to the other.
            (Value::Literal(known), _) if (known != 0.0) == (logic == Logic::Or) => self,
            (Value::Literal(_), _) => other,
            (_, Value::Literal(known)) if (known != 0.0) == (logic == Logic::Or) => other,
            (_, Value::Literal(_)) => self,
            _ => SymMask(put(Value::Failed)),
        }
    }
}

reading! { Sym, SymMask;
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
        let tensor = |v: Value| v.tensor(|v| Tensor::scalar(v, dtype, mask.device()));
        Sym(put_result(tensor(yes).and_then(|yes| mask.select(&yes, &tensor(no)?))))
    }
    fn polygamma(self, order: usize) -> Sym {
        let p = [order as f64, 0.0];
        self.map(|t| t.parametric(Parametric::Polygamma, p), |v| F64Fma(v).polygamma(order).0)
    }
}
