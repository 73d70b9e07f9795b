//! `Text`: the number type that prints a rule as people write it.

use super::reading;
use crate::arguments::logic::{Logic, Relation};
use crate::math::real::{Pointwise, Real};
use crate::math::terms::Terms;
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::table::{Arg, Fun, Visit};
use crate::ops::pointwise::unary::Unary;
use std::cell::RefCell;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2, LN_10, PI};

/// How tightly the outermost operator of a formula binds.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binds {
    Sign,
    Sum,
    Product,
    Power,
    Name,
}

/// A formula: an index into the ones that this thread has read.
#[derive(Clone, Copy)]
pub struct Text(usize);

/// A truth value of a formula.
#[derive(Clone, Copy)]
pub struct TextMask(usize);

thread_local! {
    static FORMULAS: RefCell<Vec<(String, Binds)>> = const { RefCell::new(Vec::new()) };
}

#[inline(never)]
fn put(text: String, binds: Binds) -> usize {
    FORMULAS.with_borrow_mut(|all| {
        all.push((text, binds));
        all.len() - 1
    })
}

#[inline(never)]
fn get(i: usize) -> (String, Binds) {
    FORMULAS.with_borrow(|all| all[i].clone())
}

/// A formula, in brackets where its outermost operator binds less than `least`.
#[inline(never)]
fn bound(i: usize, least: Binds) -> String {
    let (text, binds) = get(i);
    if binds < least { format!("({text})") } else { text }
}

#[inline(never)]
fn joined(a: usize, sign: &str, b: usize, left: Binds, right: Binds, binds: Binds) -> usize {
    put(format!("{} {sign} {}", bound(a, left), bound(b, right)), binds)
}

/// A function of formulas.
#[inline(never)]
fn call(name: &str, arguments: &[usize]) -> usize {
    let arguments: Vec<String> = arguments.iter().map(|&i| get(i).0).collect();
    put(format!("{name}({})", arguments.join(", ")), Binds::Name)
}

/// A number as people write it.
#[inline(never)]
fn number(value: f64) -> (String, Binds) {
    let names = [
        (FRAC_1_SQRT_2, "sqrt(1/2)", Binds::Name),
        (FRAC_2_SQRT_PI, "2/sqrt(pi)", Binds::Product),
        (0.7978845608028654, "sqrt(2/pi)", Binds::Name),
        (1.5957691216057308, "sqrt(8/pi)", Binds::Name),
        (0.3989422804014327, "1/sqrt(2 pi)", Binds::Product),
        (LN_2, "ln(2)", Binds::Name),
        (1.0 / LN_2, "1/ln(2)", Binds::Product),
        (LN_10, "ln(10)", Binds::Name),
        (1.0 / LN_10, "1/ln(10)", Binds::Product),
        (PI, "pi", Binds::Name),
    ];
    if let Some((_, name, binds)) = names.iter().find(|(v, _, _)| *v == value) {
        return ((*name).into(), *binds);
    }
    let text = if value == 0.0 || (1e-4..1e6).contains(&value.abs()) {
        format!("{value}")
    } else {
        format!("{value:e}")
    };
    let binds = if value < 0.0 { Binds::Sign } else { Binds::Name };
    (text, binds)
}

/// A product; of equal factors, a power.
fn product(a: usize, b: usize) -> usize {
    if get(a).0 == get(b).0 {
        put(format!("{}^2", bound(a, Binds::Name)), Binds::Power)
    } else if get(a).0 == format!("{}^2", get(b).0) {
        put(format!("{}^3", bound(b, Binds::Name)), Binds::Power)
    } else {
        joined(a, "*", b, Binds::Product, Binds::Product, Binds::Product)
    }
}

impl Text {
    /// A function as a call of its name; one that is a product of `x` and another, as that.
    #[inline(never)]
    fn unary(self, row: Unary, _of: fn(f64) -> f64) -> Text {
        match row {
            Unary::Neg => Text(put(format!("-{}", bound(self.0, Binds::Product)), Binds::Sign)),
            Unary::Silu => self * self.sigmoid(),
            Unary::Gelu => self * self.ndtr(),
            _ => Text(call(row.name(), &[self.0])),
        }
    }
    #[inline(never)]
    fn binary(self, other: Text, row: Binary, _of: fn(f64, f64) -> f64) -> Text {
        let (a, b) = (self.0, other.0);
        Text(match row {
            Binary::Add => joined(a, "+", b, Binds::Sign, Binds::Sum, Binds::Sum),
            Binary::Sub => joined(a, "-", b, Binds::Sign, Binds::Product, Binds::Sum),
            Binary::Mul => product(a, b),
            Binary::Div => joined(a, "/", b, Binds::Product, Binds::Power, Binds::Product),
            Binary::Pow => put(format!("{}^{}", bound(a, Binds::Name), bound(b, Binds::Name)), Binds::Power),
            _ => call(row.name(), &[a, b]),
        })
    }
    #[inline(never)]
    fn compare(self, other: Text, relation: Relation) -> TextMask {
        let (a, b) = (self.0, other.0);
        let is_same = get(a).0 == get(b).0;
        let sign = match relation {
            Relation::Eq if is_same => return !self.ne(other),
            Relation::Ne if is_same => return TextMask(call("isnan", &[a])),
            Relation::Lt => "<",
            Relation::Le => "<=",
            Relation::Eq => "=",
            Relation::Ne => "!=",
            Relation::Gt => ">",
            Relation::Ge => ">=",
        };
        TextMask(joined(a, sign, b, Binds::Sign, Binds::Sign, Binds::Power))
    }
}

impl TextMask {
    #[inline(never)]
    fn logic(self, other: TextMask, logic: Logic) -> TextMask {
        let sign = match logic {
            Logic::Not => {
                return TextMask(put(format!("not {}", bound(self.0, Binds::Name)), Binds::Power));
            }
            Logic::And => "and",
            Logic::Or => "or",
            Logic::Xor => "xor",
        };
        TextMask(joined(self.0, sign, other.0, Binds::Power, Binds::Power, Binds::Sum))
    }
}

reading! { Text, TextMask;
    /// The page says once what becomes of a zero cotangent; the formulas do not repeat it.
    fn short_circuits() -> bool {
        false
    }
    fn named<const N: usize>(name: &'static str, arguments: [Text; N], value: Text) -> Text {
        if matches!(name, "zero_guard" | "divisor") {
            return value;
        }
        Text(call(name, &arguments.map(|a| a.0)))
    }
    #[inline(never)]
    fn lit(value: f64) -> Text {
        let (text, binds) = number(value);
        Text(put(text, binds))
    }
    fn attribute(index: usize, _value: f64) -> Text {
        Text(put(["a", "b"][index].into(), Binds::Name))
    }
    fn select(mask: TextMask, yes: Text, no: Text) -> Text {
        Text(call("where", &[mask.0, yes.0, no.0]))
    }
    fn gt(self, other: Text) -> TextMask {
        self.compare(other, Relation::Gt)
    }
    fn ge(self, other: Text) -> TextMask {
        self.compare(other, Relation::Ge)
    }
    #[inline(never)]
    fn polygamma(self, order: usize) -> Text {
        // The row of that name is read with an attribute that is no whole number.
        let order = put(if order == 0 { "a".into() } else { order.to_string() }, Binds::Name);
        Text(call("polygamma", &[order, self.0]))
    }
}

/// Reads a rule whose operands have these names.
struct Print<'a>(&'a [&'static str]);

impl Visit for Print<'_> {
    type Out = String;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> String {
        print(self.0, N, rule.terms(Text::short_circuits()))
    }
}

#[inline(never)]
fn print(names: &[&str], operands: usize, rule: Terms) -> String {
    let start = FORMULAS.with_borrow(Vec::len);
    let name = |i: usize| names.get(i).copied().unwrap_or("?");
    let operands: Vec<Text> = (0..operands).map(|i| Text(put(name(i).into(), Binds::Name))).collect();
    let out = get(rule.read(&operands).0).0;
    FORMULAS.with_borrow_mut(|all| all.truncate(start));
    out
}

impl Fun {
    /// The value as a formula of `x` and `y`, with attributes `a` and `b`.
    pub fn formula(self) -> String {
        self.value([0.0; 2], Print(&["x", "y", "z"]))
    }
    /// The partial for input `wrt` as a formula of `g` (cotangent), `x`, `y`, `o` (output); `None`: zero.
    pub fn partial_formula(self, wrt: usize) -> Option<String> {
        let mut names = vec!["g"];
        names.extend(self.reads(wrt)?.iter().map(|arg| arg.name()));
        self.partial(wrt, [0.0; 2], Print(&names))
    }
}

impl Arg {
    /// Its name in formulas.
    pub const fn name(self) -> &'static str {
        match self {
            Arg::X => "x",
            Arg::Y => "y",
            Arg::Out => "o",
        }
    }
}
