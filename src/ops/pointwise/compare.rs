//! Comparisons, logic, and `where`.

use crate::array::defaults;
use crate::array::dtype::Category;
use crate::cpu::indexing::put;
use crate::cpu::pointwise::logic as cpu_logic;
use crate::ops::pointwise::operand::{Operand, bind_met, check_broadcast, join, meeting, promote};
use crate::ops::prelude::*;
use crate::ops::reduce::index_type;

pub use crate::arguments::logic::{Logic, Relation};

/// `x < y` and its kin, to bool. Comparisons with NaN are false, `!=` is true.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Compare {
    /// Which comparison.
    pub relation: Relation,
}

kernel! {
    Compare,
    match self.relation {
        Relation::Lt => "lt",
        Relation::Le => "le",
        Relation::Eq => "eq",
        Relation::Ne => "ne",
        Relation::Gt => "gt",
        Relation::Ge => "ge",
    },
    |self, x| on_device!(x[0], logic::compare(x[0], x[1], self.relation)),
    element_fn |dtypes| {
        let [x, y] = dtypes else { return None };
        (x == y).then(|| cpu_logic::compare_fn(*x, self.relation)).flatten()
    }
}

impl Discrete for Compare {
    batch!(aligned: |self| *self);
}

/// Logic on bool tensors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Logical {
    /// Which function.
    pub logic: Logic,
}

kernel! {
    Logical,
    match self.logic {
        Logic::And => "logical_and",
        Logic::Or => "logical_or",
        Logic::Xor => "logical_xor",
        Logic::Not => "logical_not",
    },
    |self, x| on_device!(x[0], logic::logical(self.logic, x)),
    element_fn |dtypes| {
        (*dtypes == [DType::Bool; 2]).then(|| cpu_logic::logical_fn(self.logic))
    }
}

impl Discrete for Logical {
    batch!(aligned: |self| *self);
}

/// `where(mask, x, y)`: linear in `x` and `y`. Inputs: mask (bool), x, y.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Select;

kernel! {
    Select, "where", |self, x| on_device!(x[0], logic::select(x[0], x[1], x[2])),
    into |out| {
        let (mask, value, to) = (x[0], x[1], out[0]);
        if x[2].is(to) && value.numel() == 1 && to.device() == Device::Cpu {
            // One number over some elements, at the cost of reading the mask.
            return put::fill_where(to, &mask.expand(&to.shape())?, value);
        }
        to.assign(&self.eval_one(x)?)
    },
    element_fn |dtypes| {
        let [DType::Bool, x, y] = dtypes else { return None };
        (x == y).then(|| cpu_logic::select_fn(*x)).flatten()
    }
}

impl Linear for Select {
    const TRANSPOSE: &'static str = "where(mask, g, 0) for x, where(mask, 0, g) for y";
    const READS: Saves = Saves::input(0);

    fn transpose(&self, wrt: usize, g: &Tensor, c: &Vjp) -> Result<Tensor> {
        let (mask, zero) = (c.input(0)?, g.scalar_like(0.0)?);
        if wrt == 1 { mask.select(g, &zero) } else { mask.select(&zero, g) }
    }
    batch!(aligned: |self| *self);
}

/// The integer with which integers compare as with this number: the next one below or above a fraction, and
/// one that is beyond them all for what equals none. `None` for NaN and for what is no real number.
fn nearest(number: Operand, relation: Relation) -> Option<i128> {
    match number {
        Operand::Bool(v) => Some(v.into()),
        Operand::Int(v) => Some(v),
        Operand::Float(v) if !v.is_nan() => Some(match relation {
            Relation::Lt | Relation::Ge => v.ceil() as i128,
            Relation::Le | Relation::Gt => v.floor() as i128,
            Relation::Eq | Relation::Ne if v.fract() == 0.0 => v as i128,
            Relation::Eq | Relation::Ne => i128::MAX,
        }),
        _ => None,
    }
}

/// How far apart integers of one dtype are, as floats of the dtype `wide`, rounded once.
fn difference(x: &Tensor, y: &Tensor, wide: DType) -> Result<Tensor> {
    let apart = x.maximum(y)?.sub(&x.minimum(y)?)?;
    // A difference beyond the largest signed number has wrapped around.
    let turns = 2f64.powi(8 * x.dtype().size() as i32);
    let size = apart.cast(wide)?;
    apart.compare_integer(0, Relation::Lt)?.select(&size.add(turns)?, &size)
}

macro_rules! comparisons {
    ($($(#[$meta:meta])* $method:ident $relation:ident;)*) => {
        impl Tensor {
            $($(#[$meta])* pub fn $method<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                self.compare(other, Relation::$relation)
            })*
        }
    };
}

comparisons! {
    /// `self < other`, elementwise, to bool.
    lt Lt;
    /// `self <= other`, elementwise, to bool.
    le Le;
    /// `self == other`, elementwise, to bool.
    eq Eq;
    /// `self != other`, elementwise, to bool.
    ne Ne;
    /// `self > other`, elementwise, to bool.
    gt Gt;
    /// `self >= other`, elementwise, to bool.
    ge Ge;
}

impl Tensor {
    /// A comparison, elementwise with broadcasting, to bool.
    pub fn compare<'a>(&self, other: impl Into<Operand<'a>>, relation: Relation) -> Result<Tensor> {
        let other = other.into();
        let op = Compare { relation };
        if let Operand::Tensor(other) = other {
            return bind_met(op, self, other, promote(self, other));
        }
        let dtype = other.result_type(self);
        let whole = if self.dtype().is_integer() { self.dtype() } else { dtype };
        if whole.is_integer()
            && let Some(other) = nearest(other, relation)
        {
            return self.cast(whole)?.compare_integer(other, relation);
        }
        let other = other.among_floats();
        bind(op, &[&self.cast(dtype)?, &other.to_tensor(dtype, self)?])
    }

    /// A comparison of integers with one of any size, which their dtype need not hold.
    pub fn compare_integer(&self, other: i128, relation: Relation) -> Result<Tensor> {
        let (least, most) = self.dtype().range();
        if (least..=most).contains(&other) {
            return bind(Compare { relation }, &[self, &self.integer_like(other)?]);
        }
        let holds = match relation {
            Relation::Lt | Relation::Le => other > most,
            Relation::Gt | Relation::Ge => other < least,
            Relation::Eq => false,
            Relation::Ne => true,
        };
        self.compare(self, if holds { Relation::Eq } else { Relation::Ne })
    }

    /// And, or, xor of truth values; other dtypes are true where they are not 0.
    pub fn logical(&self, other: &Tensor, logic: Logic) -> Result<Tensor> {
        bind_met(Logical { logic }, self, other, DType::Bool)
    }

    /// Negation of truth values.
    pub fn logical_not(&self) -> Result<Tensor> {
        bind(Logical { logic: Logic::Not }, &[&self.cast(DType::Bool)?])
    }

    /// `x` where this mask holds, `y` elsewhere; all three broadcast. No gradient flows through what is not
    /// picked.
    pub fn select<'a>(&self, x: impl Into<Operand<'a>>, y: impl Into<Operand<'a>>) -> Result<Tensor> {
        let (x, y) = (x.into(), y.into());
        let like = match (&x, &y) {
            (Operand::Tensor(a), Operand::Tensor(b)) => meeting(&[self, *a, *b]),
            (Operand::Tensor(t), _) | (_, Operand::Tensor(t)) => meeting(&[self, *t]),
            _ => self,
        };
        let dtype = match (&x, &y) {
            (Operand::Tensor(t), other) | (other, Operand::Tensor(t)) => other.result_type(t),
            (Operand::Complex(..), _) | (_, Operand::Complex(..)) => defaults::float().complex(),
            (Operand::Float(_), _) | (_, Operand::Float(_)) => defaults::float(),
            (Operand::Bool(_), Operand::Bool(_)) => DType::Bool,
            _ => index_type(like.device()),
        };
        let (x, y) = (x.to_tensor(dtype, like)?, y.to_tensor(dtype, like)?);
        let mask = join(self, DType::Bool, like.device())?;
        for (a, b) in [(&mask, &x), (&mask, &y), (&x, &y)] {
            check_broadcast("where", a, b)?;
        }
        bind(Select, &[&mask, &x, &y])
    }

    /// Where `|x - y| <= atol + rtol * |y|`. Differences of integers are exact.
    pub fn close<'a>(
        &self, other: impl Into<Operand<'a>>, rtol: f64, atol: f64, equal_nan: bool,
    ) -> Result<Tensor> {
        if rtol < 0.0 || atol < 0.0 {
            return Err(Error::value(format!(
                "isclose: tolerances cannot be negative, got rtol={rtol} and atol={atol}"
            )));
        }
        let wide = if self.device() == Device::Cpu { DType::F64 } else { DType::F32 };
        let (x, y) = match other.into() {
            Operand::Tensor(y) => (self.detach(), y.detach()),
            Operand::Float(y) => (self.detach(), Tensor::operand(y, wide, self.device())?),
            number @ Operand::Int(y) if number.result_type(self).is_integer() => {
                let x = self.detach().cast(number.result_type(self))?;
                return x.close_to_integer(y, wide, rtol * (y as f64).abs() + atol);
            }
            number => (self.detach(), number.among_floats().tensor_with(self)?),
        };
        let whole = promote(&x, &y);
        if x.dtype().is_integer() && y.dtype().is_integer() && whole.is_integer() {
            let far = difference(&x.cast(whole)?, &y.cast(whole)?, wide)?;
            return far.le(&y.cast(wide)?.abs()?.mul(rtol)?.add(atol)?);
        }
        let wide = if whole.is_complex() { wide.complex() } else { wide };
        let (x, y) = (x.cast(wide)?, y.cast(wide)?);
        // Equal infinities are close, though their difference is not a number.
        let near = x.sub(&y)?.abs()?.le(&y.abs()?.mul(rtol)?.add(atol)?)?;
        let finite = y.abs()?.lt(f64::INFINITY)?;
        let mut out = near.logical(&finite, Logic::And)?.logical(&x.eq(&y)?, Logic::Or)?;
        if equal_nan {
            out = out.logical(&x.ne(&x)?.logical(&y.ne(&y)?, Logic::And)?, Logic::Or)?;
        }
        Ok(out)
    }

    /// Where integers differ by at most `limit` from one of any size, which their dtype need not hold.
    fn close_to_integer(&self, other: i128, wide: DType, limit: f64) -> Result<Tensor> {
        let (least, most) = self.dtype().range();
        let end = other.clamp(least, most);
        let beyond = other.saturating_sub(end).unsigned_abs();
        difference(self, &self.integer_like(end)?, wide)?.add(beyond as f64)?.le(limit)
    }

    /// Where the numbers are infinite: complex ones if either part is.
    pub fn is_infinite(&self) -> Result<Tensor> {
        match self.dtype().category() {
            Category::Float => self.abs()?.eq(f64::INFINITY),
            Category::Complex => self.view_as_real()?.is_infinite()?.any(Some(&[-1]), false),
            _ => self.ne(self),
        }
    }

    /// Where the numbers are neither infinite nor NaN: complex ones if neither part is.
    pub fn is_finite(&self) -> Result<Tensor> {
        match self.dtype().category() {
            Category::Float => self.abs()?.lt(f64::INFINITY),
            Category::Complex => self.view_as_real()?.is_finite()?.all(Some(&[-1]), false),
            _ => self.eq(self),
        }
    }

    /// This tensor with `value` where `mask` holds.
    pub fn masked_fill<'a>(&'a self, mask: &Tensor, value: impl Into<Operand<'a>>) -> Result<Tensor> {
        mask.select(value, self)
    }
}
