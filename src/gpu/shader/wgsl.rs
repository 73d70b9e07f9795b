//! `Expr`: the number type whose operations write WGSL.
//!
//! Every operation on an [`Expr`] appends one line `let v7 = v3 * v2;` to the function being written and
//! returns a handle to it. So calling a rule that is generic over `Real` produces a shader function. The
//! functions of `src/math/mod.rs` become WGSL library functions (`w_exp`, `w_tanh`, ...) in the same way, so
//! that CPU and GPU use one formula; the `exp`, `tanh`, ... of GPUs are less accurate and differ.
//!
//! WGSL compilers may assume that no NaN or infinity exists. So tests for NaN read bits, and such constants
//! are hidden behind a variable. The hardware may flush subnormal numbers to 0.
//!
//! Read next: `src/gpu/shader/wgsl/library.rs`.

mod library;

pub use library::{function, library, library_file};

use crate::array::dtype::DType;
use crate::math::real::Real;
use crate::math::{self, Lane};
use std::cell::RefCell;
use std::fmt::{Display, Write};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Shl, Shr, Sub};

/// A line of the function being written: an `f32` value.
#[derive(Copy, Clone, Debug)]
pub struct Expr(u32);

impl Expr {
    /// Whether the values are in the relation that WGSL spells `sign`.
    pub fn relation(self, sign: &str, other: Expr) -> Mask {
        Mask(infix(self.0, sign, other.0))
    }

    /// Whether neither value is NaN.
    pub fn ordered(self, other: Expr) -> Mask {
        Mask(call("ordered", &[self, other]))
    }

    /// As if it was stored in this dtype and loaded again: a half rounds, and a truth value is 0 or 1.
    pub fn stored(self, dtype: DType) -> Expr {
        let Expr(v) = self;
        match dtype {
            DType::F16 => Expr(push(&format_args!("unpack2x16float(to_f16(v{v})).x"))),
            DType::BF16 => Expr(push(&format_args!("bitcast<f32>(to_bf16(v{v}) << 16u)"))),
            // By its bits: comparisons may assume that there is no NaN.
            DType::Bool => Expr(push(&format_args!("f32((bitcast<u32>(v{v}) & 0x7fffffffu) != 0u)"))),
            _ => self,
        }
    }

    /// Returns `(r, n)` with `self = r + n * pi/2` and `|r| <= pi/4`.
    fn quarters(self) -> (Expr, Int) {
        let pair = call("turns", &[self]);
        let rest = Expr(push(&format_args!("v{pair}.x")));
        (rest, Int(push(&format_args!("i32(v{pair}.y)"))))
    }
}

/// A line of the function being written: a `bool` value.
#[derive(Copy, Clone, Debug)]
pub struct Mask(u32);

/// A line of the function being written: an `i32` value.
#[derive(Copy, Clone, Debug)]
pub struct Int(u32);

/// The function being written.
#[derive(Default)]
struct Writer {
    /// The lines so far.
    text: String,
    /// The number of named values.
    values: u32,
    /// Constants that are named already: text and value number.
    constants: Vec<(String, u32)>,
    /// Names of the library functions called so far.
    needs: Vec<&'static str>,
    /// The attributes of the rules of a chain; a rule alone has its own as `p.s0` and `p.s1`.
    attributes: Option<Vec<f64>>,
}

impl Writer {
    /// Appends `let vN = value;` and returns N.
    fn push(&mut self, value: &dyn Display) -> u32 {
        let id = self.values;
        self.values += 1;
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "    let v{id} = {value};");
        id
    }

    /// Returns the value number of a constant; appends its line on first use.
    fn constant(&mut self, value: String) -> u32 {
        if let Some((_, id)) = self.constants.iter().find(|(text, _)| *text == value) {
            return *id;
        }
        let id = self.push(&value);
        self.constants.push((value, id));
        id
    }
}

thread_local! {
    /// The function this thread is writing; operations outside of [`write`] go to a discarded one.
    static WRITER: RefCell<Writer> = RefCell::default();
}

// Hundreds of rules are compiled for `Expr`, and each runs once per kernel. The functions below are not
// inlined into them, so that an operation costs one call.

/// Appends one line to the function being written.
#[inline(never)]
pub(super) fn push(value: &dyn Display) -> u32 {
    WRITER.with_borrow_mut(|writer| writer.push(value))
}

/// [`Writer::constant`] of the function being written.
#[inline(never)]
fn constant(value: String) -> u32 {
    WRITER.with_borrow_mut(|writer| writer.constant(value))
}

/// Appends a binary operator.
#[inline(never)]
pub(super) fn infix(left: u32, sign: &str, right: u32) -> u32 {
    push(&format_args!("v{left} {sign} v{right}"))
}

/// Appends a unary operator or a built-in function of one value.
#[inline(never)]
pub(super) fn prefix(sign: &str, value: u32) -> u32 {
    push(&format_args!("{sign}(v{value})"))
}

/// Appends a call of the library function `w_{name}`.
#[inline(never)]
fn call(name: &'static str, arguments: &[Expr]) -> u32 {
    WRITER.with_borrow_mut(|writer| {
        if !writer.needs.contains(&name) {
            writer.needs.push(name);
        }
        let arguments: Vec<String> = arguments.iter().map(|a| format!("v{}", a.0)).collect();
        writer.push(&format_args!("w_{name}({})", arguments.join(", ")))
    })
}

/// Returns the text of a function of values of one WGSL type, and the names of the library functions that it
/// calls directly. `body` maps the numbers of the values.
pub(super) fn write(
    name: &str, kind: &str, args: &[&str], body: &dyn Fn(&[u32]) -> u32,
) -> (String, Vec<&'static str>) {
    let (result, Writer { text, needs, .. }) = written(Writer::default(), args, body);
    let parameters: Vec<String> = args.iter().map(|name| format!("{name}: {kind}")).collect();
    let parameters = parameters.join(", ");
    (framed(name, &parameters, kind, &text, &format!("v{result}")), needs)
}

/// A function of these lines.
fn framed(name: &str, parameters: &str, kind: &str, text: &str, result: &str) -> String {
    let opaque = if text.contains("opaque_zero") { "    var opaque_zero = 0u;\n" } else { "" };
    format!("fn {name}({parameters}) -> {kind} {{\n{opaque}{text}    return {result};\n}}\n")
}

/// The lines of a function of these numbers, and what `body` returns.
fn written<R>(writer: Writer, args: &[&str], body: &dyn Fn(&[u32]) -> R) -> (R, Writer) {
    let outer = WRITER.replace(writer);
    let inputs: Vec<u32> = args.iter().map(|name| push(name)).collect();
    let result = body(&inputs);
    (result, WRITER.replace(outer))
}

/// The body of `op` of a chain behind the library functions that it needs, and the attributes of its rules.
/// `body` maps the numbers of its inputs to those of its outputs.
pub fn chain(inputs: usize, body: &dyn Fn(&[Expr]) -> Vec<Expr>) -> (String, Vec<f64>) {
    let names: Vec<String> = (0..inputs).map(|k| format!("x.x{k}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let writer = Writer { attributes: Some(Vec::new()), ..Writer::default() };
    let (outputs, writer) =
        written(writer, &names, &|x| body(&x.iter().map(|&v| Expr(v)).collect::<Vec<_>>()));
    let Writer { text, needs, attributes, .. } = writer;
    let outputs: Vec<String> = outputs.iter().map(|v| format!("v{}", v.0)).collect();
    let result = format!("Out({})", outputs.join(", "));
    let text = library(&needs) + &framed("op", "x: In", "Out", &text, &result);
    (text, attributes.unwrap_or_default())
}

/// [`write`] for a function of floats.
fn write_float(name: &str, args: &[&str], body: &dyn Fn(&[Expr]) -> Expr) -> (String, Vec<&'static str>) {
    write(name, "f32", args, &|x| body(&x.iter().map(|&v| Expr(v)).collect::<Vec<_>>()).0)
}

/// The text of one WGSL function after the library functions that it needs.
pub fn with_library(name: &str, args: &[&str], body: &dyn Fn(&[Expr]) -> Expr) -> String {
    let (text, needs) = write_float(name, args, body);
    library(&needs) + &text
}

/// [`with_library`] for a function of this head, whose values are four; `parts` are those of its arguments.
pub fn of_four(head: &str, parts: &[&str], body: &dyn Fn(&[Expr]) -> [Expr; 4]) -> String {
    let (text, needs) = write("", "f32", parts, &|x| {
        let [a, b, c, d] = body(&x.iter().map(|&v| Expr(v)).collect::<Vec<_>>()).map(|v| v.0);
        push(&format!("vec4<f32>(v{a}, v{b}, v{c}, v{d})"))
    });
    let lines = text.split_once('\n').map_or("", |(_, lines)| lines);
    library(&needs) + head + " -> vec4<f32> {\n" + lines
}

/// The WGSL spelling of an `f32`; what WGSL has no literal for is made from bits.
fn literal(value: f32) -> String {
    if value.is_finite() { format!("{value:?}f") } else { special(value.to_bits()) }
}

/// The WGSL spelling of an infinity or NaN.
fn special(bits: u32) -> String {
    format!("bitcast<f32>(opaque_zero | {bits:#010x}u)")
}

/// Implements methods with results of one type: of one value as operators or built-in functions of WGSL
/// (`prefix`), of two as operators (`infix`), as functions (`function`) or as functions of the library.
macro_rules! methods {
    (prefix -> $out:ident: $($method:ident $sign:literal),*) => {
        $(fn $method(self) -> $out {
            $out(prefix($sign, self.0))
        })*
    };
    (infix -> $out:ident: $($method:ident $sign:literal),*) => {
        $(fn $method(self, other: Self) -> $out {
            $out(infix(self.0, $sign, other.0))
        })*
    };
    (function -> $out:ident: $($method:ident $name:literal),*) => {
        $(fn $method(self, other: Self) -> $out {
            $out(push(&format_args!(concat!($name, "(v{}, v{})"), self.0, other.0)))
        })*
    };
    (library -> $out:ident: $($method:ident),*) => {
        $(fn $method(self, other: Self) -> $out {
            $out(call(stringify!($method), &[self, other]))
        })*
    };
}
pub(super) use methods;

/// Implements an operator for values of one type; `literal`: for `f32` values with literals on either side.
macro_rules! operator {
    ($type:ident, $trait:ident, $method:ident, $sign:literal) => {
        impl $trait for $type {
            type Output = $type;
            methods!(infix -> $type: $method $sign);
        }
    };
    (literal $trait:ident, $method:ident, $sign:literal) => {
        operator!(Expr, $trait, $method, $sign);
        impl $trait<f64> for Expr {
            type Output = Expr;
            fn $method(self, other: f64) -> Expr {
                $trait::$method(self, Expr::lit(other))
            }
        }
        impl $trait<Expr> for f64 {
            type Output = Expr;
            fn $method(self, other: Expr) -> Expr {
                $trait::$method(Expr::lit(self), other)
            }
        }
    };
    (shift $trait:ident, $method:ident, $sign:literal) => {
        impl $trait<usize> for Int {
            type Output = Int;
            fn $method(self, bits: usize) -> Int {
                Int(push(&format_args!(concat!("v{} ", $sign, " {}u"), self.0, bits)))
            }
        }
    };
}

operator!(literal Add, add, "+");
operator!(literal Sub, sub, "-");
operator!(literal Mul, mul, "*");
operator!(literal Div, div, "/");
operator!(Mask, BitAnd, bitand, "&");
operator!(Mask, BitOr, bitor, "|");
operator!(Int, BitAnd, bitand, "&");
operator!(Int, BitOr, bitor, "|");
operator!(Int, BitXor, bitxor, "^");
operator!(Int, Add, add, "+");
operator!(Int, Sub, sub, "-");
operator!(shift Shl, shl, "<<");
operator!(shift Shr, shr, ">>");

impl Neg for Expr {
    type Output = Expr;
    methods!(prefix -> Expr: neg "-");
}

impl Not for Mask {
    type Output = Mask;
    methods!(prefix -> Mask: not "!");
}

/// Implements the primitive functions as calls of the library.
macro_rules! library_calls {
    ($(#[doc = $doc:literal] $name:ident $row:ident,)*) => {
        $(fn $name(self) -> Expr {
            Expr(call(stringify!($name), &[self]))
        })*
    };
}

impl Real for Expr {
    type Mask = Mask;
    #[inline(never)]
    fn lit(value: f64) -> Expr {
        Expr(constant(literal(value as f32)))
    }
    fn attribute(index: usize, value: f64) -> Expr {
        let place = WRITER.with_borrow_mut(|writer| {
            let all = writer.attributes.as_mut()?;
            let known = all.iter().position(|known| known.to_bits() == value.to_bits());
            all.extend(known.is_none().then_some(value));
            Some(known.unwrap_or(all.len() - 1))
        });
        Expr(match place {
            Some(k) => push(&format_args!("p.chain.attributes[{}][{}]", k / 4, k % 4)),
            None => push(&format_args!("p.s{index}")),
        })
    }
    #[inline(never)]
    fn select(mask: Mask, yes: Expr, no: Expr) -> Expr {
        Expr(push(&format_args!("select(v{}, v{}, v{})", no.0, yes.0, mask.0)))
    }
    methods!(library -> Mask: ne);
    methods!(infix -> Mask: lt "<", le "<=", eq "==", gt ">", ge ">=");
    methods!(prefix -> Expr: abs "abs", floor "floor", round "round", sqrt "sqrt");
    methods!(library -> Expr: pow, fmod);
    crate::math::functions::primitives!(library_calls);
    fn polygamma(self, order: usize) -> Expr {
        math::special::polygamma::<f32, Expr>(self, order)
    }
}

impl Lane for Expr {
    type Int = Int;
    const MANTISSA: usize = 23;
    const BIAS: i64 = 127;
    const SIGN: i64 = i32::MIN as i64;
    #[inline(never)]
    fn int(value: i64) -> Int {
        // The smallest i32 has no literal.
        Int(constant(format!("bitcast<i32>({:#010x}u)", value as u32)))
    }
    fn int_eq(a: Int, b: Int) -> Mask {
        Mask(infix(a.0, "==", b.0))
    }
    methods!(prefix -> Int: bits "bitcast<i32>");
    fn from_bits(bits: Int) -> Expr {
        Expr(prefix("bitcast<f32>", bits.0))
    }
    fn from_int(value: Int) -> Expr {
        Expr(prefix("f32", value.0))
    }
    fn nearest_int(self) -> (Expr, Int) {
        let whole = self.round();
        (whole, Int(prefix("i32", whole.0)))
    }
    fn special(self, bits: u32) -> Expr {
        Expr(constant(special(bits)))
    }
    #[inline(never)]
    fn mul_add(self, factor: Expr, term: Expr) -> Expr {
        Expr(push(&format_args!("fma(v{}, v{}, v{})", self.0, factor.0, term.0)))
    }
    fn minus_product(self, a: Expr, b: Expr) -> Expr {
        // Mesa rewrites `x - n*a - n*b` to `x - n*(a + b)`; clearing a bit that is 0 anyway prevents that.
        let product = (a * b).bits() & Expr::int(-2);
        self - Expr::from_bits(product)
    }
}
