//! Emitted code against the compiled loops of the same functions.

mod encodings;
mod few;
mod functions;
mod vex;

use super::lane::{Number, Typed, Value};
use super::ssa::{self, Code, NONE, list, push};
use super::{Emitted, Target};
use crate::cpu::pointwise::vector::{Loop, Number as Lanes};
use crate::cpu::run::isa::Isa;
use crate::math::real::Real;
use crate::math::wide::Wide;
use std::fmt::Debug;

/// One primitive of the table, of three numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Primitive {
    Add,
    Sub,
    Mul,
    Div,
    Clamp,
    Fma,
    MinusProduct,
    Sqrt,
    Floor,
    Round,
    Neg,
    Abs,
    Lt,
    Le,
    Eq,
    Ne,
    Both,
    Either,
    Not,
    IntAdd,
    IntSub,
    IntOr,
    IntXor,
    IntEq,
    Shl,
    Shr,
    FromInt,
    Scale,
    Lookup,
    ConstantFirst,
    ConstantLast,
    ConstantCompared,
    ConstantFused,
}

use Primitive::*;
const ALL: [Primitive; 33] = [
    Add, Sub, Mul, Div, Clamp, Fma, MinusProduct, Sqrt, Floor, Round, Neg, Abs, Lt, Le, Eq, Ne, Both, Either,
    Not, IntAdd, IntSub, IntOr, IntXor, IntEq, Shl, Shr, FromInt, Scale, Lookup, ConstantFirst, ConstantLast,
    ConstantCompared, ConstantFused,
];

/// A number that tables are made of.
trait Tabled: Lanes + Number + PartialEq + Debug {
    const TABLE: &'static [Self; 16];
    /// Whether it is NaN.
    fn is_nan(self) -> bool;
}

impl Tabled for f32 {
    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }
    const TABLE: &'static [f32; 16] =
        &[0.5, -1.0, 2.0, 3.0, 4.5, 5.0, 6.0, 7.0, 8.0, -9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.5];
}

impl Tabled for f64 {
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
    const TABLE: &'static [f64; 16] =
        &[0.5, -1.0, 2.0, 3.0, 4.5, 5.0, 6.0, 7.0, 8.0, -9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.5];
}

/// The primitive, of any lanes.
#[inline(always)]
fn apply<L: Wide>(what: Primitive, [x, y, z]: [L; 3], table: &[L::Number; 16]) -> L {
    match what {
        Add => x + y,
        Sub => x - y,
        Mul => x * y,
        Div => x / y,
        Clamp => x.clamp(-2.0, 7.0),
        Fma => x.mul_add(y, z),
        MinusProduct => z.minus_product(x, y),
        Sqrt => x.sqrt(),
        Floor => x.floor(),
        Round => x.round(),
        Neg => -x,
        Abs => x.abs(),
        Lt => L::select(x.lt(y), x, z),
        Le => L::select(x.le(y), x, z),
        Eq => L::select(x.eq(y), x, z),
        Ne => L::select(x.ne(y), x, z),
        Both => L::select(x.lt(y) & y.lt(z), x, z),
        Either => L::select(x.lt(y) | y.lt(z), x, z),
        Not => L::select(!x.lt(y), x, z),
        IntAdd => L::from_bits(x.bits() + y.bits()),
        IntSub => L::from_bits(x.bits() - y.bits()),
        IntOr => L::from_bits((x.bits() & L::int(0x0f0f_0f0f)) | y.bits()),
        IntXor => L::from_bits(x.bits() ^ y.bits()),
        IntEq => L::select(L::int_eq(x.bits(), y.bits()), x, z),
        Shl => L::from_bits(x.bits() << 5),
        Shr => L::from_bits(x.bits() >> 9),
        FromInt => L::from_int(x.bits() >> (L::MANTISSA - 1)),
        Scale => {
            let (turns, n) = y.clamp(-40.0, 40.0).nearest_int();
            x.scale(turns, n)
        }
        Lookup => L::lookup(x.bits() >> (L::MANTISSA - 3), table),
        ConstantFirst => 3.5 - x,
        ConstantLast => x / 3.0 * 2.5 + 1.5,
        ConstantCompared => L::select(L::lit(1.0).lt(x) & L::lit(3.0).le(y), L::lit(0.25), z),
        ConstantFused => x.mul_add(L::lit(1.5), L::lit(0.75)).mul_add(y, L::lit(-3.0)),
    }
}

struct Compiled<'a, T> {
    what: Primitive,
    x: &'a [Vec<T>; 3],
    out: &'a mut [T],
}

impl<T: Tabled> Loop<T> for Compiled<'_, T> {
    #[inline(always)]
    unsafe fn run<L: Wide<Number = T>>(self) {
        for at in (0..self.out.len()).step_by(L::WIDTH) {
            let count = L::WIDTH.min(self.out.len() - at);
            // SAFETY: operands and results have as many numbers.
            unsafe {
                let mut x = [L::lit(0.0); 3];
                for (x, from) in x.iter_mut().zip(self.x) {
                    let from = from.as_ptr().add(at);
                    *x = if count == L::WIDTH { L::load(from) } else { L::load_part(from, count) };
                }
                let (y, to) = (apply(self.what, x, T::TABLE), self.out.as_mut_ptr().add(at));
                if count == L::WIDTH { y.store(to) } else { y.store_part(to, count) }
            }
        }
    }
}

/// Numbers at which functions are hard, and ordinary ones.
fn hard() -> Vec<f64> {
    let mut all = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.5,
        -2.5,
        3.5,
        7.0,
        1e-40,
        -1e-40,
        1e-45,
        1e30,
        -1e30,
        3.3e38,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
        5e-324,
        1e308,
        -1e308,
        8388609.0,
        1e15,
        0.7,
        -0.3,
    ];
    all.extend((0..40).map(|i| (f64::from(i) * 0.37 - 7.0) * 1.1));
    all
}

/// All triples of some hard numbers.
fn triples<T>(of: impl Fn(f64) -> T) -> [Vec<T>; 3] {
    let all = hard();
    let mut x = [Vec::new(), Vec::new(), Vec::new()];
    for (i, &a) in all.iter().enumerate() {
        for (j, &b) in all.iter().enumerate() {
            for (k, n) in [a, b, all[(7 * i + 3 * j) % all.len()]].into_iter().enumerate() {
                x[k].push(of(n));
            }
        }
    }
    x.map(|mut x| {
        x.truncate(x.len() - x.len() % 16 - 3);
        x
    })
}

/// The bits of what `read` makes of the operands, by emitted code.
fn emitted<T: Tabled>(target: Target, x: &[Vec<T>], read: impl FnOnce(&[Value]) -> Value) -> (Vec<T>, usize) {
    let list = list(target, size_of::<T>() == 8, || {
        let operands: Vec<Value> =
            (0..x.len()).map(|k| Value(push(Code::Dense, [NONE; 3], k as u64))).collect();
        let y = read(&operands);
        push(Code::Store, [y.0, NONE, NONE], x.len() as u64);
        Some(())
    });
    let Some(code) = list.and_then(|list| Emitted::new(&list, x.len() + 1)) else {
        panic!("refused");
    };
    let mut out = vec![T::TABLE[0]; x[0].len()];
    let mut frame = vec![0_u64; code.frame / 8];
    let mut pointers: Vec<*mut u8> = x.iter().map(|x| x.as_ptr().cast_mut().cast()).collect();
    pointers.push(out.as_mut_ptr().cast());
    // SAFETY: all have so many elements, and the processor has the target.
    let done = unsafe { code.run(&pointers, &[], x[0].len(), frame.as_mut_ptr().cast()) };
    (out, done)
}

fn primitives<T: Tabled>((target, isa): (Target, Isa), of: impl Fn(f64) -> T) {
    let x = triples(of);
    for what in ALL {
        let mut expected = vec![T::TABLE[0]; x[0].len()];
        // SAFETY: the processor has the target.
        unsafe { T::run(isa, Compiled { what, x: &x, out: &mut expected }) };
        let (got, done) = emitted(target, &x, |x| {
            apply::<Typed<T>>(what, [0, 1, 2].map(|k| Typed::new(x[k])), T::TABLE).value()
        });
        assert_eq!(done, got.len());
        for (i, (&got, &expected)) in got.iter().zip(&expected).enumerate() {
            let x = [x[0][i], x[1][i], x[2][i]];
            assert!(same(got, expected), "{what:?} of {x:?}: {got:?}, not {expected:?}");
        }
    }
}

/// Whether two numbers have the same bits or are both NaN.
fn same<T: Tabled>(a: T, b: T) -> bool {
    Number::to_bits(a) == Number::to_bits(b) || (Tabled::is_nan(a) && Tabled::is_nan(b))
}

#[test]
fn primitives_have_the_bits_of_compiled_ones() {
    for target in Target::all() {
        primitives::<f32>(target, |x| x as f32);
        primitives::<f64>(target, |x| x);
    }
}

/// More values than registers, all needed at the end; and more masks than mask registers.
#[test]
fn values_without_a_register_lie_in_the_frame() {
    let n = 37;
    let x = [0, 1].map(|k| (0..n).map(|i| (i * (k + 2) % 11) as f32 - 3.5).collect::<Vec<f32>>());
    let all = [3, 10, 15, 16, 17, 31, 32, 33, 50, 90];
    for (target, many) in Target::all().flat_map(|(target, _)| all.map(|many| (target, many))) {
        let (got, _) = emitted(target, &x, |x| {
            let terms: Vec<Value> = (0..many).map(|k| x[0] * (k as f64 + 0.5) + x[1]).collect();
            let masks: Vec<_> = terms.iter().map(|t| t.lt(x[1])).collect();
            let mut sum = x[0] * x[1];
            for (&term, &mask) in terms.iter().rev().zip(&masks) {
                sum = Value::select(mask, sum * term, sum - term) + term.sqrt() * 0.0;
            }
            Value::select(sum.ne(sum), x[0], sum)
        });
        for i in 0..n {
            let (a, b) = (x[0][i], x[1][i]);
            let terms: Vec<f32> = (0..many).map(|k| a * (k as f32 + 0.5) + b).collect();
            let mut sum = a * b;
            for (k, &term) in terms.iter().rev().enumerate() {
                sum = if terms[k] < b { sum * term } else { sum - term };
                sum += term.sqrt() * 0.0;
            }
            let expected = if sum.is_nan() { a } else { sum };
            assert_eq!(
                got[i].to_bits(),
                expected.to_bits(),
                "{many} terms, element {i}: {} {expected}",
                got[i]
            );
        }
    }
}

/// The loop is left before the elements of a register of which one is rare.
#[test]
fn rare_arguments_leave_the_loop() {
    for (target, _) in Target::all() {
        let width = target.bytes() / 4;
        for rare in [0, 3, 16, 40, 99] {
            let mut x = [vec![0.5_f32; 100]];
            x[0][rare] = 1e9;
            let (got, done) = emitted(target, &x, |x| x[0].sin() * 2.0);
            // AVX2: the last register overlaps the one before.
            let last = if target == Target::Avx2 { 100 - width } else { 100 };
            assert_eq!(done, (rare / width * width).min(last));
            assert!(got[..done].iter().all(|&y| y == got[0]));
        }
        let (_, done) = emitted(target, &[vec![0.5_f32; 100]], |x| x[0].sin());
        assert_eq!(done, 100);
        // What lies beyond the last element is not looked at.
        let (_, done) = emitted(target, &[vec![0.5_f64; 3]], |x| x[0].log());
        assert_eq!(done, 3);
        let (_, done) = emitted(target, &[vec![0.5_f32, 1e9, 0.5]], |x| x[0].sin());
        assert_eq!(done, 0);
    }
}

#[test]
fn equal_rows_are_one_and_useless_ones_none() {
    let list = list(Target::Avx512, false, || {
        let x = Value(push(Code::Dense, [NONE; 3], 0));
        let _unused = x * 3.0;
        let y = (x + 1.0) * (x + 1.0);
        push(Code::Store, [y.0, NONE, NONE], 1);
        Some(())
    });
    let codes: Vec<Code> = list.iter().flat_map(|list| &list.rows).map(|row| row.code).collect();
    assert_eq!(codes, [Code::Dense, Code::Constant, Code::Add, Code::Mul, Code::Store]);
}

#[test]
fn long_functions_are_refused() {
    let read = |f: fn(Value) -> Value| {
        ssa::list(Target::Avx2, true, || {
            let y = f(Value(push(Code::Dense, [NONE; 3], 0)));
            push(Code::Store, [y.0, NONE, NONE], 1);
            Some(())
        })
    };
    assert!(read(Value::lgamma).is_none());
    assert!(read(Value::exp).is_some());
    assert!(read(Value::log).is_some(), "a list is not refused for what an earlier one refused");
}
