//! Loops over few elements, numbers and truth values together, and what lies around the results.

use super::{Tabled, same};
use crate::cpu::emit::lane::{Truth, Value};
use crate::cpu::emit::ssa::{Code, NONE, list, push};
use crate::cpu::emit::{Emitted, Target};
use crate::math::real::Real;

/// What lies where nothing is written.
const UNTOUCHED: u8 = 0xa5;

/// `where(b and not c or d, x + y s, x - s)` and that condition with an exclusive or, of the dense `x`, `y`
/// and `b`, the single `s` and `c`, and `d = x < y`.
fn emit(target: Target, is_wide: bool) -> Option<Emitted> {
    let list = list(target, is_wide, || {
        let [x, y] = [0, 1].map(|k| Value(push(Code::Dense, [NONE; 3], k)));
        let b = Truth(push(Code::DenseTruth, [NONE; 3], 2));
        let s = Value(push(Code::Single, [NONE; 3], 0));
        let c = Truth(push(Code::SingleTruth, [NONE; 3], 1));
        let d = x.lt(y);
        let mask = (b & !c) | d;
        let number = Value::select(mask, x + y * s, x - s);
        push(Code::Store, [number.0, NONE, NONE], 3);
        let differ = push(Code::Differ, [mask.0, b.0, NONE], 0);
        push(Code::StoreTruth, [differ, NONE, NONE], 4);
        Some(())
    });
    Emitted::new(&list?, 5)
}

fn check<T: Tabled>(target: Target, of: impl Fn(f64) -> T) {
    let Some(code) = emit(target, size_of::<T>() == 8) else {
        panic!("refused");
    };
    let size = size_of::<T>();
    for n in 0..=37 {
        for c in [false, true] {
            let x: Vec<f64> = (0..n).map(|i| f64::from(i * 7 % 5) - 2.0).collect();
            let y: Vec<f64> = (0..n).map(|i| f64::from(i * 3 % 7) - 3.0).collect();
            // Every byte but 0 is true.
            let b: Vec<u8> = (0..n).map(|i| [0, 1, 0, 0x80, 0xff, 2][i as usize % 6]).collect();
            let [x_of, y_of] = [&x, &y].map(|x| x.iter().map(|&x| of(x)).collect::<Vec<T>>());
            let n = n as usize;
            let mut numbers = vec![UNTOUCHED; n * size + 128];
            let mut truths = vec![UNTOUCHED; n + 128];
            let mut frame = vec![0_u64; code.frame / 8];
            let from =
                [x_of.as_ptr().cast::<u8>(), y_of.as_ptr().cast(), b.as_ptr()].map(<*const u8>::cast_mut);
            let to = [&mut numbers, &mut truths].map(|to| to.as_mut_ptr().wrapping_add(64));
            let pointers = [from[0], from[1], from[2], to[0], to[1]];
            let singles = [of(1.5).to_bits(), if c { u64::MAX } else { 0 }];
            // SAFETY: all have so many elements, and the processor has the target.
            let done = unsafe { code.run(&pointers, &singles, n, frame.as_mut_ptr().cast()) };
            assert_eq!(done, n);
            for i in 0..n {
                let mask = (b[i] != 0 && !c) || x[i] < y[i];
                let expected = of(if mask { x[i] + y[i] * 1.5 } else { x[i] - 1.5 });
                // SAFETY: the number lies in the vector.
                let got = unsafe { to[0].cast::<T>().add(i).read_unaligned() };
                assert!(same(got, expected), "{target:?}, {i} of {n}: {got:?}, not {expected:?}");
                let differ = u8::from(mask != (b[i] != 0));
                assert_eq!(truths[64 + i], differ, "{target:?}, {i} of {n}");
            }
            let around = numbers[..64].iter().chain(&numbers[64 + n * size..]);
            let around = around.chain(&truths[..64]).chain(&truths[64 + n..]);
            assert!(around.copied().all(|byte| byte == UNTOUCHED), "{target:?}, {n} elements");
        }
    }
}

#[test]
fn few_elements_are_computed_and_no_more() {
    for (target, _) in Target::all() {
        check::<f32>(target, |x| x as f32);
        check::<f64>(target, |x| x);
    }
}
