//! From the rows of the tables to Rust types: `define_table!` makes an enum of the rows, their names and
//! documentation, and the way from a row to a type that implements [`Pointwise`], for value and derivatives.
//!
//! Whoever wants to do something with any row (run it, record it, print it as WGSL) implements [`Visit`].

mod macros;

use crate::math::real::{Pointwise, PointwiseInt};
use crate::op::{Precision, Saves};
use crate::ops::complex::number::ComplexSym;
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::sym::Sym;
use crate::ops::pointwise::unary::{Parametric, Unary};

pub(crate) use crate::math::real::{Attributes, Real};
pub(crate) use crate::ops::pointwise::jet::Jet;
pub(crate) use macros::*;

/// A value that a derivative reads besides the cotangent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// The first input.
    X,
    /// The second input.
    Y,
    /// The output.
    Out,
}

impl Arg {
    /// The value of this name in a row: `o` is the output.
    pub const fn of(name: &str) -> Arg {
        match name.as_bytes() {
            b"x" => Arg::X,
            b"y" => Arg::Y,
            _ => Arg::Out,
        }
    }
    /// What the tape keeps for it.
    pub const fn saves(self) -> Saves {
        match self {
            Arg::X => Saves::input(0),
            Arg::Y => Saves::input(1),
            Arg::Out => Saves::OUTPUTS,
        }
    }
}

/// Something that can be done with any row of any table.
pub trait Visit {
    /// The result.
    type Out;
    /// Called with the rule.
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Self::Out;
}

/// What the derivative of a row costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slope {
    /// Some arithmetic.
    Cheap,
    /// An exponential or the like: for many cotangents at one point it is worth finding once.
    Costly,
}

/// What a row does with complex numbers.
#[derive(Clone, Copy, Debug)]
pub enum ComplexRule {
    /// Raises.
    Undefined,
    /// The same with the real and with the imaginary parts.
    Parts,
    /// The product of its operands; that of one operand with itself.
    Product,
    /// A function of one number with a real value.
    Real(fn(ComplexSym) -> Sym),
    /// A function of one number.
    One(fn(ComplexSym) -> ComplexSym),
    /// As `One`, but a recorded operand is copied first: the derivative of the row reads the output, so the
    /// operand may be written later, while that of the composition reads the operand's parts.
    Fresh(fn(ComplexSym) -> ComplexSym),
    /// A function of two numbers.
    Two(fn(ComplexSym, ComplexSym) -> ComplexSym),
}

/// What a row says besides its formulas; the head of `unary.rs` explains the columns.
pub struct Columns {
    /// The precision under autocast.
    pub precision: Precision,
    /// What the derivative costs.
    pub slope: Slope,
    /// Whether it has a formula for integers, which are converted to floats otherwise.
    pub has_integers: bool,
    /// What it does with complex numbers.
    pub complex: ComplexRule,
}

/// Something that can be done with the formula of a row for integers.
pub trait VisitInt {
    /// The result.
    type Out;
    /// Called with the rule.
    fn visit<const N: usize, P: PointwiseInt<N>>(self, rule: P) -> Self::Out;
}

/// The partials of a table's rows by name.
pub struct Partial<Table>(std::marker::PhantomData<Table>);

/// A row of one of the tables.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fun {
    /// One input.
    Unary(Unary),
    /// One input and attributes.
    Parametric(Parametric),
    /// Two inputs.
    Binary(Binary),
}

/// An expression of the row of any table.
macro_rules! of_row {
    ($fun:expr, $row:ident => $value:expr) => {
        match $fun {
            Fun::Unary($row) => $value,
            Fun::Parametric($row) => $value,
            Fun::Binary($row) => $value,
        }
    };
}

impl Fun {
    /// The public name of the row.
    pub fn name(self) -> &'static str {
        of_row!(self, row => row.name())
    }
    /// Whether its first attribute counts something: functions of different counts are different ones.
    pub fn counts(self) -> bool {
        self == Fun::Parametric(Parametric::Polygamma)
    }
    /// What the row says besides its formulas.
    pub fn columns(self) -> &'static Columns {
        of_row!(self, row => row.columns())
    }
    /// Does `v` with the row's formula for integers; `None` for a row without one.
    pub fn integer<V: VisitInt>(self, v: V) -> Option<V::Out> {
        of_row!(self, row => row.integer(v))
    }
    /// What the derivative for input `wrt` reads; `None` where it is zero.
    pub fn reads(self, wrt: usize) -> Option<&'static [Arg]> {
        of_row!(self, row => row.reads().get(wrt).copied())
    }
    /// What the derivative for input `wrt` reads, as the tape counts it.
    #[inline]
    pub fn saves(self, wrt: usize) -> Saves {
        of_row!(self, row => row.saves(wrt))
    }
    /// Does `v` with the row's value.
    #[inline(always)]
    pub fn value<V: Visit>(self, p: [f64; 2], v: V) -> V::Out {
        of_row!(self, row => row.value(p, v))
    }
    /// Does `v` with the row's derivative for input `wrt`; `None` where it is zero.
    #[inline(always)]
    pub fn partial<V: Visit>(self, wrt: usize, p: [f64; 2], v: V) -> Option<V::Out> {
        of_row!(self, row => row.partial(wrt, p, v))
    }
    /// Does `v` with that derivative's derivative along the values it reads; `None` where it reads nothing.
    pub fn jet<V: Visit>(self, wrt: usize, p: [f64; 2], v: V) -> Option<V::Out> {
        of_row!(self, row => row.jet(wrt, p, v))
    }
}

/// A pair of `f64` attributes that can be compared and hashed: equal when their bits are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Params([u64; 2]);

impl From<[f64; 2]> for Params {
    fn from(p: [f64; 2]) -> Params {
        Params(p.map(f64::to_bits))
    }
}
impl Params {
    /// Two zeros.
    pub const ZERO: Params = Params([0; 2]);

    /// The attributes.
    pub fn get(self) -> [f64; 2] {
        self.0.map(f64::from_bits)
    }
}

/// Every row of every table.
pub fn all() -> impl Iterator<Item = Fun> {
    let unary = Unary::ALL.iter().map(|&f| Fun::Unary(f));
    let parametric = Parametric::ALL.iter().map(|&f| Fun::Parametric(f));
    unary.chain(parametric).chain(Binary::ALL.iter().map(|&f| Fun::Binary(f)))
}
