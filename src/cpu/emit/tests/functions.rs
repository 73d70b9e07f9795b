//! The functions of one number, emitted and compiled.

use super::{Tabled, emitted, same, triples};
use crate::cpu::emit::Target;
use crate::cpu::emit::lane::Value;
use crate::cpu::emit::ssa::{Code, NONE, list, push};
use crate::cpu::pointwise::vector::Loop;
use crate::cpu::run::isa::Isa;
use crate::math::real::Real;
use crate::math::wide::Wide;

/// A function of two numbers, most of them of the first alone.
macro_rules! functions {
    ($($(#[doc = $doc:literal])? $name:ident $row:ident,)*) => {
        /// The functions by name.
        const FUNCTIONS: &[&str] = &[$(stringify!($name),)* "pow", "fmod"];

        #[inline(never)]
        fn call<R: Real>(name: &str, x: R, y: R) -> R {
            match name {
                $(stringify!($name) => x.$name(),)*
                "pow" => x.pow(y),
                _ => x.fmod(y),
            }
        }
    };
}
crate::math::functions::primitives!(functions);

struct CompiledFunction<'a, T> {
    name: &'a str,
    x: &'a [Vec<T>; 2],
    out: &'a mut [T],
}

impl<T: Tabled> Loop<T> for CompiledFunction<'_, T> {
    #[inline(always)]
    unsafe fn run<L: Wide<Number = T>>(self) {
        for at in (0..self.out.len()).step_by(L::WIDTH) {
            // SAFETY: the numbers are so many that registers are full.
            unsafe {
                let [x, y] = [0, 1].map(|k| L::load(self.x[k].as_ptr().add(at)));
                call(self.name, x, y).store(self.out.as_mut_ptr().add(at));
            }
        }
    }
}

fn functions<T: Tabled>((target, isa): (Target, Isa), of: impl Fn(f64) -> T) -> Vec<&'static str> {
    let [x, y, _] = triples(|x| x);
    let mut refused = Vec::new();
    for &name in FUNCTIONS {
        for (scale, n) in [(1.0, 4336), (0.01, 512), (30.0, 512)] {
            let numbers = |of_two: &[f64]| of_two[..n].iter().map(|&x| of(x * scale)).collect::<Vec<T>>();
            let x = [numbers(&x), numbers(&y)];
            let is_there = list(target, size_of::<T>() == 8, || {
                let y = call(
                    name,
                    Value(push(Code::Dense, [NONE; 3], 0)),
                    Value(push(Code::Dense, [NONE; 3], 1)),
                );
                push(Code::Store, [y.0, NONE, NONE], 2);
                Some(())
            });
            if is_there.is_none() {
                refused.push(name);
                break;
            }
            let mut expected = vec![T::TABLE[0]; n];
            // SAFETY: the processor has the target.
            unsafe { T::run(isa, CompiledFunction { name, x: &x, out: &mut expected }) };
            let mut at = 0;
            while at < n {
                let rest = [0, 1].map(|k| x[k][at..].to_vec());
                let (got, done) = emitted(target, &rest, |x| call(name, x[0], x[1]));
                for (i, &got) in got[..done].iter().enumerate() {
                    let (expected, x) = (expected[at + i], [rest[0][i], rest[1][i]]);
                    assert!(same(got, expected), "{name} of {x:?}: {got:?}, not {expected:?}");
                }
                at += done + 16;
            }
        }
    }
    refused
}

#[test]
fn functions_have_the_bits_of_compiled_ones() {
    for target in Target::all() {
        let refused = functions::<f32>(target, |x| x as f32);
        assert_eq!(functions::<f64>(target, |x| x), refused);
        assert_eq!(refused.len(), 20, "{refused:?}");
    }
}
