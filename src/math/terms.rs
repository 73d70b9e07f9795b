//! `Terms`: what a rule does, written down once and repeated with any number type.
//!
//! A loop needs a rule compiled for its lanes. Whoever prints a rule, records it as tensor operations, or
//! makes a shader or machine code of it needs each of its operations once, and there are hundreds of rules.
//! So these share one compilation of each, for [`Term`], which lists the operations; [`Terms::read`] repeats
//! them with the number type of the reader.

use super::functions::primitives;
use super::real::Real;
use std::cell::RefCell;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// A number of a rule that is written down, by its place among the numbers.
#[derive(Clone, Copy)]
pub struct Term(u32);

/// A truth value, by its place among these.
#[derive(Clone, Copy)]
pub struct TermTruth(u32);

macro_rules! declare {
    ($($(#[doc = $doc:literal])? $name:ident $row:ident,)*) => {
        /// A function of one number.
        #[derive(Clone, Copy)]
        enum Function {
            Neg,
            Abs,
            Floor,
            Round,
            Sqrt,
            $($row,)*
        }

        impl Function {
            fn of<R: Real>(self, x: R) -> R {
                match self {
                    Function::Neg => -x,
                    Function::Abs => x.abs(),
                    Function::Floor => x.floor(),
                    Function::Round => x.round(),
                    Function::Sqrt => x.sqrt(),
                    $(Function::$row => x.$name(),)*
                }
            }
        }
    };
}
primitives!(declare);

/// A function of two numbers.
#[derive(Clone, Copy)]
enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Fmod,
}

/// A comparison of two numbers.
#[derive(Clone, Copy)]
enum Comparison {
    Lt,
    Le,
    Eq,
    Ne,
    Gt,
    Ge,
}

/// The most arguments of a rule whose name is kept.
const ARGUMENTS: usize = 4;

/// An operation on the numbers and truth values at these places.
#[derive(Clone, Copy)]
enum Row {
    Literal(f64),
    Attribute(usize, f64),
    One(Function, u32),
    Two(Operator, u32, u32),
    Polygamma(usize, u32),
    Select(u32, u32, u32),
    /// Which rule, its arguments and how many there are, its value.
    Named(&'static str, [u32; ARGUMENTS], usize, u32),
    Compare(Comparison, u32, u32),
    Both(u32, u32),
    Either(u32, u32),
    Opposite(u32),
}

/// A rule as its operations, in order.
pub struct Terms {
    inputs: usize,
    rows: Vec<Row>,
    out: u32,
}

/// The rule that is being written down.
pub struct Writer {
    rows: Vec<Row>,
    numbers: u32,
    truths: u32,
    short_circuits: bool,
}

thread_local! {
    static WRITER: RefCell<Writer> =
        const { RefCell::new(Writer { rows: Vec::new(), numbers: 0, truths: 0, short_circuits: true }) };
}

// Rules consist of these calls: what they do is never inlined.

#[inline(never)]
fn number(row: Row) -> Term {
    WRITER.with_borrow_mut(|writer| {
        writer.rows.push(row);
        writer.numbers += 1;
        Term(writer.numbers - 1)
    })
}

#[inline(never)]
fn truth(row: Row) -> TermTruth {
    WRITER.with_borrow_mut(|writer| {
        writer.rows.push(row);
        writer.truths += 1;
        TermTruth(writer.truths - 1)
    })
}

#[inline(never)]
fn one(function: Function, x: Term) -> Term {
    number(Row::One(function, x.0))
}

#[inline(never)]
fn two(operator: Operator, x: Term, y: Term) -> Term {
    number(Row::Two(operator, x.0, y.0))
}

#[inline(never)]
fn with_literal(operator: Operator, x: Term, y: f64) -> Term {
    two(operator, x, Term::lit(y))
}

#[inline(never)]
fn after_literal(operator: Operator, x: f64, y: Term) -> Term {
    two(operator, Term::lit(x), y)
}

#[inline(never)]
fn compared(comparison: Comparison, x: Term, y: Term) -> TermTruth {
    truth(Row::Compare(comparison, x.0, y.0))
}

macro_rules! operators {
    ($($trait:ident $method:ident)*) => {$(
        impl $trait for Term {
            type Output = Term;
            #[inline]
            fn $method(self, other: Term) -> Term {
                two(Operator::$trait, self, other)
            }
        }
        impl $trait<f64> for Term {
            type Output = Term;
            #[inline]
            fn $method(self, other: f64) -> Term {
                with_literal(Operator::$trait, self, other)
            }
        }
        impl $trait<Term> for f64 {
            type Output = Term;
            #[inline]
            fn $method(self, other: Term) -> Term {
                after_literal(Operator::$trait, self, other)
            }
        }
    )*};
}
operators! { Add add Sub sub Mul mul Div div }

impl Neg for Term {
    type Output = Term;
    #[inline]
    fn neg(self) -> Term {
        one(Function::Neg, self)
    }
}

impl BitAnd for TermTruth {
    type Output = TermTruth;
    #[inline(never)]
    fn bitand(self, other: TermTruth) -> TermTruth {
        truth(Row::Both(self.0, other.0))
    }
}

impl BitOr for TermTruth {
    type Output = TermTruth;
    #[inline(never)]
    fn bitor(self, other: TermTruth) -> TermTruth {
        truth(Row::Either(self.0, other.0))
    }
}

impl Not for TermTruth {
    type Output = TermTruth;
    #[inline(never)]
    fn not(self) -> TermTruth {
        truth(Row::Opposite(self.0))
    }
}

macro_rules! functions {
    ($($(#[doc = $doc:literal])? $name:ident $row:ident,)*) => {$(
        #[inline]
        fn $name(self) -> Term {
            one(Function::$row, self)
        }
    )*};
}

macro_rules! comparisons {
    ($($name:ident $row:ident),*) => {$(
        #[inline]
        fn $name(self, other: Term) -> TermTruth {
            compared(Comparison::$row, self, other)
        }
    )*};
}

impl Real for Term {
    type Mask = TermTruth;
    #[inline(never)]
    fn lit(value: f64) -> Term {
        number(Row::Literal(value))
    }
    #[inline(never)]
    fn attribute(index: usize, value: f64) -> Term {
        number(Row::Attribute(index, value))
    }
    #[inline(never)]
    fn select(mask: TermTruth, yes: Term, no: Term) -> Term {
        number(Row::Select(mask.0, yes.0, no.0))
    }
    comparisons! { lt Lt, le Le, eq Eq, ne Ne, gt Gt, ge Ge }
    functions! { abs Abs, floor Floor, round Round, sqrt Sqrt, }
    primitives!(functions);
    #[inline]
    fn pow(self, exponent: Term) -> Term {
        two(Operator::Pow, self, exponent)
    }
    #[inline]
    fn fmod(self, divisor: Term) -> Term {
        two(Operator::Fmod, self, divisor)
    }
    #[inline(never)]
    fn polygamma(self, order: usize) -> Term {
        number(Row::Polygamma(order, self.0))
    }
    /// As the number type that the rule is written down for.
    #[inline(never)]
    fn short_circuits() -> bool {
        WRITER.with_borrow(|writer| writer.short_circuits)
    }
    #[inline]
    fn named<const N: usize>(name: &'static str, arguments: [Term; N], value: Term) -> Term {
        named(name, &arguments, value)
    }
}

#[inline(never)]
fn named(name: &'static str, arguments: &[Term], value: Term) -> Term {
    if arguments.len() > ARGUMENTS {
        return value;
    }
    let mut places = [0; ARGUMENTS];
    places.iter_mut().zip(arguments).for_each(|(place, argument)| *place = argument.0);
    number(Row::Named(name, places, arguments.len(), value.0))
}

/// Input `i` of the rule.
pub fn input(i: usize) -> Term {
    Term(i as u32)
}

/// Begins a rule of so many inputs for numbers that short-circuit, or do not. Returns what was being written.
pub fn begin(inputs: usize, short_circuits: bool) -> Writer {
    WRITER.replace(Writer { rows: Vec::new(), numbers: inputs as u32, truths: 0, short_circuits })
}

/// Ends it with its value.
pub fn end(outer: Writer, inputs: usize, out: Term) -> Terms {
    let Writer { rows, .. } = WRITER.replace(outer);
    Terms { inputs, rows, out: out.0 }
}

impl Terms {
    /// The same where the first input is not 0, and the input itself where it is.
    pub fn zero_guarded(mut self) -> Terms {
        let made = |row: &&Row| {
            !matches!(row, Row::Compare(..) | Row::Both(..) | Row::Either(..) | Row::Opposite(_))
        };
        let numbers = self.inputs + self.rows.iter().filter(made).count();
        let truths = self.inputs + self.rows.len() - numbers;
        self.rows.push(Row::Literal(0.0));
        self.rows.push(Row::Compare(Comparison::Eq, 0, numbers as u32));
        self.rows.push(Row::Select(truths as u32, 0, self.out));
        self.out = numbers as u32 + 1;
        self
    }

    /// What the rule makes of these numbers, as many as it has inputs.
    #[inline(never)]
    pub fn read<R: Real>(&self, x: &[R]) -> R {
        let x: Vec<Option<R>> = x.iter().copied().map(Some).collect();
        self.read_known(&x)
    }

    /// The same where some numbers, `None`, are known to be 0: what they are multiplied by is 0 and costs
    /// nothing, even where it is not finite.
    #[inline(never)]
    pub fn read_known<R: Real>(&self, x: &[Option<R>]) -> R {
        debug_assert_eq!(x.len(), self.inputs, "as many numbers as the rule has inputs");
        let mut numbers = x.to_vec();
        let mut truths: Vec<R::Mask> = Vec::new();
        for row in &self.rows {
            let x = |place: u32| numbers[place as usize];
            let full = |place: u32| match numbers[place as usize] {
                Some(x) => x,
                None => R::lit(0.0),
            };
            let holds = |place: u32| truths[place as usize];
            let value = match *row {
                Row::Literal(value) => Some(R::lit(value)),
                Row::Attribute(index, value) => Some(R::attribute(index, value)),
                Row::One(Function::Neg, a) => x(a).map(|a| -a),
                Row::One(function, a) => Some(function.of(full(a))),
                Row::Two(operator, a, b) => match (operator, x(a), x(b)) {
                    (Operator::Add, Some(a), Some(b)) => Some(a + b),
                    (Operator::Add, a, b) => a.or(b),
                    (Operator::Sub, Some(a), Some(b)) => Some(a - b),
                    (Operator::Sub, a, b) => a.or(b.map(|b| -b)),
                    (Operator::Mul, Some(a), Some(b)) => Some(a * b),
                    (Operator::Div, Some(a), _) => Some(a / full(b)),
                    (Operator::Mul | Operator::Div, ..) => None,
                    (Operator::Pow, ..) => Some(full(a).pow(full(b))),
                    (Operator::Fmod, ..) => Some(full(a).fmod(full(b))),
                },
                Row::Polygamma(order, a) => Some(full(a).polygamma(order)),
                Row::Select(_, yes, no) if x(yes).is_none() && x(no).is_none() => None,
                Row::Select(mask, yes, no) => Some(R::select(holds(mask), full(yes), full(no))),
                Row::Named(name, [a, b, c, d], count, value) => x(value).map(|value| match count {
                    1 => R::named(name, [a].map(full), value),
                    2 => R::named(name, [a, b].map(full), value),
                    3 => R::named(name, [a, b, c].map(full), value),
                    _ => R::named(name, [a, b, c, d].map(full), value),
                }),
                Row::Compare(comparison, a, b) => {
                    let (a, b) = (full(a), full(b));
                    truths.push(match comparison {
                        Comparison::Lt => a.lt(b),
                        Comparison::Le => a.le(b),
                        Comparison::Eq => a.eq(b),
                        Comparison::Ne => a.ne(b),
                        Comparison::Gt => a.gt(b),
                        Comparison::Ge => a.ge(b),
                    });
                    continue;
                }
                Row::Both(a, b) => {
                    truths.push(holds(a) & holds(b));
                    continue;
                }
                Row::Either(a, b) => {
                    truths.push(holds(a) | holds(b));
                    continue;
                }
                Row::Opposite(a) => {
                    truths.push(!holds(a));
                    continue;
                }
            };
            numbers.push(value);
        }
        match numbers[self.out as usize] {
            Some(value) => value,
            None => R::lit(0.0),
        }
    }
}
