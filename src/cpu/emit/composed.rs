//! Operations that AVX2 has no instruction for, as rows of what it has: those of the compiled loops.
//!
//! Only tables of `f64` are read in another way: compiled loops gather from memory, which is slow on many
//! processors.

use super::lane::{Typed, Value, Whole, one, shifted, three, two};
use super::ssa::{self, Code, NONE, push};
use crate::math::{self, Lane};

/// Not the mask.
#[inline(never)]
pub fn not(mask: u32) -> u32 {
    if ssa::is_avx2() { two(Code::Differ, mask, ssa::int(-1)) } else { one(Code::Not, mask) }
}

/// `x >> n` with the sign. For 64 bits: a shift without it, then a subtraction extends the sign.
#[inline(never)]
pub fn shr(x: u32, n: usize) -> u32 {
    if !(ssa::is_avx2() && ssa::is_wide()) {
        return shifted(Code::Shr, x, n);
    }
    let sign = ssa::int((1_u64 << 63 >> n) as i64);
    let moved = two(Code::IntXor, shifted(Code::ShrZeros, x, n), sign);
    two(Code::IntSub, moved, sign)
}

/// A small integer as a number.
#[inline(never)]
pub fn from_int(n: u32) -> u32 {
    if ssa::is_avx2() && ssa::is_wide() {
        math::from_small_int::<Typed<f64>>(Whole(n)).bits().0
    } else {
        one(Code::FromInt, n)
    }
}

/// `x * 2^n`, for `n = turns`.
#[inline(never)]
pub fn scale(x: u32, turns: u32, n: u32) -> u32 {
    if !ssa::is_avx2() {
        two(Code::Scale, x, turns)
    } else if ssa::is_wide() {
        math::scaled(Typed::<f64>::new(Value(x)), Whole(n)).bits().0
    } else {
        math::scaled(Typed::<f32>::new(Value(x)), Whole(n)).bits().0
    }
}

/// The elements of a table at the last four bits of `index`. AVX2 looks up 4 bytes at a time in 32: so this
/// looks into each part of the table, and the higher of the four bits select one of the results.
#[inline(never)]
pub fn lookup(index: u32, table: [u64; 16]) -> u32 {
    let table = ssa::table(table);
    let part = |index: u32, n: u64| push(Code::Lookup, [index, NONE, NONE], n);
    if !ssa::is_avx2() {
        return part(index, table);
    }
    // A selection looks at the highest bit of its mask alone.
    if !ssa::is_wide() {
        return three(
            Code::Select,
            shifted(Code::Shl, index, 28),
            part(index, 2 * table + 1),
            part(index, 2 * table),
        );
    }
    // The halves of a number lie at the indices `2 * index` and `2 * index + 1`.
    let twice = shifted(Code::Shl, two(Code::IntAnd, index, ssa::int(15)), 1);
    let both = two(Code::IntOr, twice, shifted(Code::Shl, twice, 32));
    let both = two(Code::IntOr, both, ssa::int(1 << 32));
    let (third, fourth) = (shifted(Code::Shl, index, 61), shifted(Code::Shl, index, 60));
    let [low, high] =
        [0, 2].map(|k| three(Code::Select, third, part(both, 4 * table + k + 1), part(both, 4 * table + k)));
    three(Code::Select, fourth, high, low)
}
