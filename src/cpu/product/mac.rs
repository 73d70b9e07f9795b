//! Multiply-accumulate: what the tiles of a product do, per element type and instruction set; and the loops
//! compiled for each instruction set.

use super::inner::{Inner, InnerFn, inner};
use super::pack::{PackFn, Strip, pack};
use super::tile::{Tile, TileFn, tile};
use super::vector::{Plain, Vector, inlined};
#[cfg(target_arch = "x86_64")]
use super::x86::*;

/// Operations that multiply vectors of operands and accumulate the products in vectors of sums.
///
/// # Safety
/// As for [`Vector`].
pub trait Mac: Copy + 'static {
    /// Element type of an operand in memory.
    type Stored: Copy;
    /// Element type of an operand as tiles read it: [`Mac::STEP`] steps of the depth.
    type In: Copy;
    /// Element type of the result.
    type Out: Copy;
    /// Vectors of operand elements.
    type Operands: Vector<Number = Self::In>;
    /// Vectors of sums, as many to a register.
    type Sums: Vector<Number = Self::Out>;
    /// Steps of the depth in one [`Mac::In`]: 1, or 2 where an instruction adds two products.
    const STEP: usize;
    /// Elements of a vector.
    const LANES: usize = <Self::Sums as Vector>::LANES;

    /// Returns `sum + x y`.
    unsafe fn mac(sum: Sum<Self>, x: Factor<Self>, y: Factor<Self>) -> Sum<Self>;
    /// The packed element of `STEP` steps, which are `step` elements apart; of the first alone if `single`.
    unsafe fn one(from: *const Self::Stored, step: isize, single: bool) -> Self::In;
    /// [`Mac::one`] for `n` lanes that are adjacent in memory.
    unsafe fn beside(from: *const Self::Stored, step: isize, n: usize) -> Factor<Self>;
}

/// A register of operand elements.
pub type Factor<M> = <<M as Mac>::Operands as Vector>::Register;
/// A register of sums.
pub type Sum<M> = <<M as Mac>::Sums as Vector>::Register;

impl<V: Vector> Mac for V {
    type Stored = V::Number;
    type In = V::Number;
    type Out = V::Number;
    type Operands = V;
    type Sums = V;
    const STEP: usize = 1;

    inlined! {
        mac(sum: V::Register, x: V::Register, y: V::Register) -> V::Register = V::add_product(x, y, sum);
        one(from: *const V::Number, _step: isize, _single: bool) -> V::Number = *from;
        beside(from: *const V::Number, _step: isize, n: usize) -> V::Register = V::load_first(from, n);
    }
}

/// The compiled loops of a product.
pub trait Kernels: Mac {
    /// Functions for tiles of 1, 2, ... rows, by vectors per row: 1 to 4, or 1 and 2 for many rows.
    const TILES: &'static [[Option<TileFn<Self>>; 4]];
    /// Functions for 1 to 4 rows of inner products, with 1 and with 4 columns.
    const INNER: [[InnerFn<Self>; 2]; 4];
    /// Packs a strip.
    const PACK: PackFn<Self>;
    /// Rows of the largest tile: as many as there are registers for, with two vectors each.
    const ROWS: usize = Self::TILES.len();
}

/// Compiles the loops for a set of features, in their own module.
macro_rules! compiled {
    ($set:ident $(, $features:literal)?) => {
        mod $set {
            use super::*;
            /// [`tile`] with these instructions.
            $(#[target_feature(enable = $features)])?
            pub unsafe fn tiles<M: Kernels, const R: usize, const V: usize>(t: &Tile<M>) {
                // SAFETY: the caller guarantees the conditions of `tile` and the features.
                unsafe { tile::<M, R, V>(t) }
            }
            /// [`inner`] with these instructions.
            $(#[target_feature(enable = $features)])?
            pub unsafe fn inners<M: Mac, const R: usize, const C: usize, const U: usize>(t: &Inner<M>) {
                // SAFETY: the caller guarantees the conditions of `inner` and the features.
                unsafe { inner::<M, R, C, U>(t) }
            }
            /// [`pack`] with these instructions.
            $(#[target_feature(enable = $features)])?
            pub unsafe fn packs<M: Mac>(s: &Strip<M>) {
                // SAFETY: the caller guarantees the conditions of `pack` and the features.
                unsafe { pack::<M>(s) }
            }
        }
    };
}

compiled!(plain);
#[cfg(target_arch = "x86_64")]
compiled!(avx2, "avx2,fma");
#[cfg(target_arch = "x86_64")]
compiled!(avx512, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma");
#[cfg(target_arch = "x86_64")]
compiled!(bf16, "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma");

/// The tables of functions: tiles up to four vectors wide for `$low` rows, up to two for `$high` rows.
macro_rules! tables {
    ($set:ident [$($low:literal)*; $($high:literal)*]) => {
        const TILES: &'static [[Option<TileFn<Self>>; 4]] = &[
            $([
                Some($set::tiles::<Self, $low, 1>),
                Some($set::tiles::<Self, $low, 2>),
                Some($set::tiles::<Self, $low, 3>),
                Some($set::tiles::<Self, $low, 4>),
            ],)*
            $([Some($set::tiles::<Self, $high, 1>), Some($set::tiles::<Self, $high, 2>), None, None],)*
        ];
        const INNER: [[InnerFn<Self>; 2]; 4] = [
            [$set::inners::<Self, 1, 1, 8>, $set::inners::<Self, 1, 4, 2>],
            [$set::inners::<Self, 2, 1, 4>, $set::inners::<Self, 2, 4, 1>],
            [$set::inners::<Self, 3, 1, 2>, $set::inners::<Self, 3, 4, 1>],
            [$set::inners::<Self, 4, 1, 2>, $set::inners::<Self, 4, 4, 1>],
        ];
        const PACK: PackFn<Self> = $set::packs::<Self>;
    };
}

macro_rules! kernels {
    ($set:ident $rows:tt: $($vectors:ty),*) => {
        $(impl Kernels for $vectors {
            tables!($set $rows);
        })*
    };
}

/// Vectors in plain Rust, for every processor; AArch64 has an instruction for a product and a sum.
pub type Baseline<T, const N: usize> = Plain<T, N, { cfg!(target_arch = "aarch64") }>;

// AArch64 has 32 registers, x86-64's baseline 16.
#[cfg(target_arch = "aarch64")]
kernels!(plain [1 2; 3 4 5 6 7 8]: Baseline<f32, 4>, Baseline<f64, 2>, Baseline<i32, 4>, Baseline<i64, 2>);
#[cfg(not(target_arch = "aarch64"))]
kernels!(plain [1 2; 3 4]: Baseline<f32, 4>, Baseline<f64, 2>, Baseline<i32, 4>, Baseline<i64, 2>);
#[cfg(target_arch = "x86_64")]
kernels!(avx2 [1 2 3; 4 5 6]: F32x8, F64x4, I32x8);
#[cfg(target_arch = "x86_64")]
kernels!(avx512 [1 2 3 4 5 6; 7 8 9 10 11 12]: F32x16, F64x8, I32x16, I64x8);
#[cfg(target_arch = "x86_64")]
kernels!(bf16 [1 2 3 4 5 6; 7 8 9 10 11 12]: Bf16x32);
