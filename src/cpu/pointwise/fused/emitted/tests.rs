//! Emitted chains against the same chains by tiles, bit for bit.

use super::super::{Chain, ElementFn, Feed};
use crate::arguments::logic::{Logic, Relation};
use crate::array::Array;
use crate::array::dtype::{DType, Element, Truth};
use crate::cpu::emit::Target;
use crate::cpu::pointwise::drive::start;
use crate::cpu::pointwise::logic::{compare_fn, logical_fn, select_fn};
use crate::cpu::run::testing::{same_for_any_threads, sample, shape, values};
use crate::cpu::run::threads::{GRAIN, Shared};
use crate::error::Result;
use crate::op::Kernel;
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::elementwise::{Map, MapVjp};
use crate::ops::pointwise::table::{Fun, Params, all};
use crate::ops::pointwise::unary::Unary;
use smallvec::{SmallVec, smallvec};

/// Numbers at which functions are hard.
const HARD: [f64; 24] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    1e-40,
    -1e-310,
    3e38,
    -1e308,
    1e-3,
    0.62,
    -0.95,
    2.3,
    -3.93,
    19.5,
    -88.5,
    89.5,
    -104.0,
    745.5,
    1e6,
    -2e9,
    12345.678,
];

/// Numbers of which every tenth is hard, or all if `only_hard`.
fn numbers<T: Element>(n: usize, seed: usize, only_hard: bool) -> Vec<T> {
    let number = |i: usize| {
        let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ seed.wrapping_mul(0xff51_afd7_ed55_8ccd));
        let mixed = mixed ^ (mixed >> 29);
        let is_hard = only_hard || mixed.is_multiple_of(10);
        let number =
            if is_hard { HARD[mixed / 16 % HARD.len()] } else { (mixed % 65521) as f64 / 8190.0 - 4.0 };
        T::from_f64(number)
    };
    (0..n).map(number).collect()
}

fn array<T: Element>(data: &[T]) -> Result<Array> {
    Array::from_slice(data, shape(&[data.len()]))
}

/// The bytes of the outputs by tiles, by the emitted loop if there can be one, and by that past the cache.
fn each_way(target: Target, chain: &Chain, operands: &[Array]) -> Result<Option<[Vec<Vec<u8>>; 3]>> {
    let Some(code) = chain.emit(target) else { return Ok(None) };
    let at = |a: &Array| Shared::new(start(a));
    let from: Vec<_> = operands.iter().map(at).collect();
    let run = |is_emitted: bool, streamed: bool| -> Result<Vec<Vec<u8>>> {
        let mut out: Vec<Vec<u8>> = chain.outputs.iter().map(|d| vec![7; chain.n * d.size()]).collect();
        let to: Vec<_> = out.iter_mut().map(|out| Shared::new(out.as_mut_ptr())).collect();
        // SAFETY: operands and outputs have the dtypes and lengths of the chain.
        unsafe {
            if is_emitted {
                chain.looped(&code, &from, &to, 0, chain.n, streamed)?;
            } else {
                chain.tiled(&from, &to, 0, chain.n, streamed)?;
            }
        }
        Ok(out)
    };
    Ok(Some([run(false, false)?, run(true, false)?, run(true, true)?]))
}

/// Where two results differ, NaN being NaN.
fn difference<T: Element>(a: &[u8], b: &[u8]) -> Option<(usize, f64, f64)> {
    let at = |x: &[u8], i: usize| {
        // SAFETY: the bytes are those of numbers of this type.
        unsafe { x.as_ptr().cast::<T>().add(i).read_unaligned() }.to_f64()
    };
    (0..a.len() / size_of::<T>()).find_map(|i| {
        let (x, y) = (at(a, i), at(b, i));
        (x.to_bits() != y.to_bits() && !(x.is_nan() && y.is_nan())).then_some((i, x, y))
    })
}

/// Every rule of the tables.
fn rules(dtype: DType) -> Vec<(String, ElementFn, usize)> {
    let mut found = Vec::new();
    let mut add = |name: String, op: &dyn Fn(&[DType]) -> Option<ElementFn>| {
        let some = (1..8).find_map(|n| op(&vec![dtype; n]).map(|run| (n, run)));
        found.extend(some.map(|(n, run)| (name, run, n)));
    };
    for fun in all() {
        let p = Params::from(if fun.counts() { [1.0, 0.0] } else { [0.7, 1.3] });
        add(fun.name().to_string(), &|dtypes| Map { fun, p }.element_fn(dtypes));
        for wrt in 0..2 {
            let of = MapVjp { fun, wrt, p };
            add(format!("{} vjp {wrt}", fun.name()), &|dtypes| of.element_fn(dtypes));
        }
    }
    found
}

fn map(fun: Fun, dtypes: &[DType]) -> Option<ElementFn> {
    Map { fun, p: Params::ZERO }.element_fn(dtypes)
}

fn every_rule<T: Element>(target: Target, dtype: DType, refused: &mut Vec<String>) -> Result<usize> {
    let (mut count, mut wrong) = (0, Vec::new());
    for (name, run, operands) in rules(dtype) {
        for (n, only_hard) in [(1, false), (67, false), (3333, false), (777, true)] {
            let mut chain =
                Chain::new(n, vec![(Feed::Dense, dtype); operands], vec![], vec![dtype; 2], false);
            let (first, second) = (chain.output(0), chain.output(1));
            let Some(negative) = map(Fun::Unary(Unary::Neg), &[dtype]) else { continue };
            // SAFETY: the loops are for these dtypes, and what they read was made before.
            unsafe {
                chain.push(run, (0..operands as u32).collect(), first);
                chain.push(negative, smallvec![first], second);
            }
            let x: Vec<Array> = (0..operands)
                .map(|k| array(&numbers::<T>(n, 3 * k + n, only_hard)))
                .collect::<Result<_>>()?;
            let Some([tiled, emitted, streamed]) = each_way(target, &chain, &x)? else {
                refused.push(format!("{name} {dtype}"));
                break;
            };
            count += 1;
            for (a, b) in tiled.iter().zip(&emitted).chain(tiled.iter().zip(&streamed)) {
                if let Some((i, a, b)) = difference::<T>(a, b) {
                    let x: Vec<f64> = x.iter().map(|x| values(x)[i]).collect();
                    wrong.push(format!("{name} {dtype} of {x:?}: by tiles {a:e}, emitted {b:e}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(count)
}

#[test]
fn every_rule_has_the_bits_of_its_loop() -> Result<()> {
    for (target, _) in Target::all() {
        let mut refused = Vec::new();
        let count = every_rule::<f32>(target, DType::F32, &mut refused)?
            + every_rule::<f64>(target, DType::F64, &mut refused)?;
        assert!(count > 600 && refused.len() < count / 8, "{count} chains, refused: {refused:?}");
    }
    Ok(())
}

/// A random chain: loops over what was made before, into tiles and outputs.
fn random_chain(dtype: DType, n: usize, seed: usize, links: usize) -> Option<(Chain, usize)> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let floats = 4;
    let mut operands: Vec<(Feed, DType)> = (0..floats)
        .map(|_| (if random(3) == 0 && n > 1 { Feed::Single } else { Feed::Dense }, dtype))
        .collect();
    operands.push((if random(2) == 0 && n > 1 { Feed::Single } else { Feed::Dense }, DType::Bool));
    let outputs: Vec<DType> = (0..3).map(|i| if i == 2 { DType::Bool } else { dtype }).collect();
    let mut chain = Chain::new(n, operands, vec![], outputs, false);
    let (mut numbers, mut masks): (Vec<u32>, Vec<u32>) = ((0..floats as u32).collect(), vec![floats as u32]);
    let unary =
        [Unary::Exp, Unary::Tanh, Unary::Neg, Unary::Abs, Unary::Sqrt, Unary::Log1p, Unary::Sin, Unary::Erf];
    let binary = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Maximum, Binary::Minimum];
    for i in 0..links {
        let (is_number, to) = match links - i {
            1 => (false, chain.output(2)),
            2 => (true, chain.output(1)),
            3 => (true, chain.output(0)),
            _ => (random(4) != 0, chain.tile(i)),
        };
        // Often the newest value, so that chains are deep.
        let mut some = |of: &[u32]| if random(2) == 0 { of[of.len() - 1] } else { of[random(of.len())] };
        let (x, y, mask, other) = (some(&numbers), some(&numbers), some(&masks), some(&masks));
        let (run, from): (_, SmallVec<[u32; 4]>) = match (is_number, random(3)) {
            (true, 0) => (map(Fun::Unary(unary[random(unary.len())]), &[dtype])?, smallvec![x]),
            (true, 1) => (map(Fun::Binary(binary[random(binary.len())]), &[dtype; 2])?, smallvec![x, y]),
            (true, _) => (select_fn(dtype)?, smallvec![mask, x, y]),
            (false, 0) => {
                (logical_fn([Logic::And, Logic::Or, Logic::Xor][random(3)]), smallvec![mask, other])
            }
            (false, 1) => (select_fn(DType::Bool)?, smallvec![mask, other, masks[0]]),
            (false, _) => {
                let relations =
                    [Relation::Lt, Relation::Le, Relation::Eq, Relation::Ne, Relation::Gt, Relation::Ge];
                (compare_fn(dtype, relations[random(6)])?, smallvec![x, y])
            }
        };
        // SAFETY: the loop is for these dtypes, and what it reads was made before.
        unsafe { chain.push(run, from, to) };
        if is_number { numbers.push(to) } else { masks.push(to) }
    }
    Some((chain, floats))
}

fn random_chains<T: Element>(target: Target, dtype: DType) -> Result<usize> {
    let mut count = 0;
    let lengths = (1..67).chain([1023, 1024, 1025, 3001]);
    for (seed, n) in lengths.chain(std::iter::repeat_n(131, 60)).enumerate() {
        for links in [3, 8, 30, 120] {
            let Some((chain, floats)) = random_chain(dtype, n, seed + 1000 * links, links) else { continue };
            let mut x: Vec<Array> = Vec::new();
            for k in 0..floats {
                let single = chain.operands[k].0 == Feed::Single;
                x.push(array(&numbers::<T>(if single { 1 } else { n }, seed + 17 * k, false))?);
            }
            let single = chain.operands[floats].0 == Feed::Single;
            let truths: Vec<Truth> =
                (0..if single { 1 } else { n }).map(|i| ((i * 7 + seed) % 3 == 0).into()).collect();
            x.push(array(&truths)?);
            let Some([tiled, emitted, streamed]) = each_way(target, &chain, &x)? else {
                panic!("a chain of {links} loops was refused");
            };
            for (i, (a, b)) in tiled.iter().zip(&emitted).chain(tiled.iter().zip(&streamed)).enumerate() {
                let wrong = if i % 3 == 2 { difference::<Truth>(a, b) } else { difference::<T>(a, b) };
                assert_eq!(
                    wrong, None,
                    "{target:?}, {dtype}, seed {seed}, {links} loops over {n}, output {i}"
                );
            }
            count += 1;
        }
    }
    Ok(count)
}

#[test]
fn random_chains_have_the_bits_of_their_tiles() -> Result<()> {
    for (target, _) in Target::all() {
        let count = random_chains::<f32>(target, DType::F32)? + random_chains::<f64>(target, DType::F64)?;
        assert_eq!(count, 2 * 4 * 130);
    }
    Ok(())
}

/// Through the driver, in pieces and past the cache, with rare arguments here and there.
#[test]
fn threads_and_pieces_do_not_matter() -> Result<()> {
    for (n, rare) in [(3 * GRAIN + 5, 1000), (5_000_003, 100_000)] {
        let x = sample(&[n], DType::F32)?;
        let mut x = Array::from_slice(x.slice::<f32>()?, shape(&[n]))?;
        x.slice_mut::<f32>()?.iter_mut().step_by(rare).for_each(|x| *x = 1e8);
        let sin = map(Fun::Unary(Unary::Sin), &[DType::F32]);
        let mul = map(Fun::Binary(Binary::Mul), &[DType::F32; 2]);
        let (Some(sin), Some(mul)) = (sin, mul) else { continue };
        let mut chain = Chain::new(n, vec![(Feed::Dense, DType::F32)], vec![], vec![DType::F32], false);
        let (tile, out) = (chain.tile(0), chain.output(0));
        // SAFETY: the loops are for these dtypes, and what they read was made before.
        unsafe {
            chain.push(sin, smallvec![0], tile);
            chain.push(mul, smallvec![tile, 0], out);
        }
        let run = || -> Result<Array> {
            let made = Array::empty(shape(&[n]), DType::F32, Default::default())?;
            // SAFETY: the operand and the output are as the chain says, and apart.
            unsafe { chain.run(&[&x], &[&made])? };
            Ok(made)
        };
        let got = values(&same_for_any_threads(run)?);
        for (i, x) in values(&x).iter().enumerate().step_by(97) {
            assert!((got[i] - x.sin() * x).abs() <= 1e-6 * x.abs().max(1.0), "{i}: {x}");
        }
    }
    Ok(())
}

/// Functions that follow one another wait for each other, of many elements; cheap loops do not.
#[test]
fn tiles_run_where_functions_follow_one_another() {
    let repeated = |target: Target, run: ElementFn, operands: usize| {
        let mut chain = Chain::new(1, vec![(Feed::Dense, DType::F32)], vec![], vec![DType::F32], false);
        let (tile, out) = (chain.tile(0), chain.output(0));
        for i in 0..12 {
            let (from, to) = (if i == 0 { 0 } else { tile }, if i == 11 { out } else { tile });
            // SAFETY: the loop is for this dtype, and what it reads was made before.
            unsafe { chain.push(run, SmallVec::from_elem(from, operands), to) };
        }
        chain.emit(target)
    };
    let sin = map(Fun::Unary(Unary::Sin), &[DType::F32]);
    let add = map(Fun::Binary(Binary::Add), &[DType::F32; 2]);
    let (Some(sin), Some(add)) = (sin, add) else { panic!("rules without loops") };
    for (target, _) in Target::all() {
        let (Some(sin), Some(add)) = (repeated(target, sin, 1), repeated(target, add, 2)) else { continue };
        assert_eq!([1, 100_000].map(|n| sin.is_slower_than_tiles(n, 12)), [false, true], "{target:?}");
        assert_eq!([1, 100_000].map(|n| add.is_slower_than_tiles(n, 12)), [false, false], "{target:?}");
    }
}
