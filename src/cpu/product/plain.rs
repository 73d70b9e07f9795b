//! Multiply-accumulate in plain Rust, vectorised by the compiler, for every other processor and element type.

use super::inner::{Inner, InnerFn, inner};
use super::mac::Mac;
use super::pack::{PackFn, Strip, pack};
use super::tile::{Tile, TileFn, tile};
use std::marker::PhantomData;

/// Numbers that are multiplied and added; integers wrap.
pub trait Number: Copy + Default + 'static {
    /// Returns `sum + x y`, rounded once where the target has an instruction for it.
    fn mac(sum: Self, x: Self, y: Self) -> Self;
    /// Returns `x + y`.
    fn plus(x: Self, y: Self) -> Self;
}

macro_rules! float {
    ($($t:ty)*) => {
        $(impl Number for $t {
            #[inline(always)]
            fn mac(sum: $t, x: $t, y: $t) -> $t {
                if cfg!(target_arch = "aarch64") { x.mul_add(y, sum) } else { sum + x * y }
            }
            #[inline(always)]
            fn plus(x: $t, y: $t) -> $t {
                x + y
            }
        })*
    };
}
float!(f32 f64);

macro_rules! integer {
    ($($t:ty)*) => {
        $(impl Number for $t {
            #[inline(always)]
            fn mac(sum: $t, x: $t, y: $t) -> $t {
                sum.wrapping_add(x.wrapping_mul(y))
            }
            #[inline(always)]
            fn plus(x: $t, y: $t) -> $t {
                x.wrapping_add(y)
            }
        })*
    };
}
integer!(i32 i64);

/// `N` numbers; a power of two of them fills one register of 16 bytes.
#[derive(Clone, Copy)]
pub struct Plain<T, const N: usize>(PhantomData<T>);

unsafe fn tiles<M: Mac, const R: usize, const V: usize>(t: &Tile<M>) {
    // SAFETY: the caller guarantees the conditions of `tile`.
    unsafe { tile::<M, R, V>(t) }
}
unsafe fn inners<M: Mac, const R: usize, const C: usize, const U: usize>(t: &Inner<M>) {
    // SAFETY: the caller guarantees the conditions of `inner`.
    unsafe { inner::<M, R, C, U>(t) }
}
unsafe fn packs<M: Mac>(s: &Strip<M>) {
    // SAFETY: the caller guarantees the conditions of `pack`.
    unsafe { pack::<M>(s) }
}

macro_rules! rows {
    ($($low:literal)*; $($high:literal)*) => {
        &[
            $([
                Some(tiles::<Self, $low, 1>),
                Some(tiles::<Self, $low, 2>),
                Some(tiles::<Self, $low, 3>),
                Some(tiles::<Self, $low, 4>),
            ],)*
            $([Some(tiles::<Self, $high, 1>), Some(tiles::<Self, $high, 2>), None, None],)*
        ]
    };
}

impl<T: Number, const N: usize> Mac for Plain<T, N> {
    type Stored = T;
    type In = T;
    type Out = T;
    type X = [T; N];
    type Y = [T; N];
    const LANES: usize = N;
    // AArch64 has 32 registers, x86-64's baseline 16.
    const ROWS: usize = if cfg!(target_arch = "aarch64") { 8 } else { 4 };
    const STEP: usize = 1;
    const MASKS: bool = false;
    const TILES: &'static [[Option<TileFn<Self>>; 4]] = rows!(1 2; 3 4 5 6 7 8);
    const INNER: [[InnerFn<Self>; 2]; 4] = [
        [inners::<Self, 1, 1, 8>, inners::<Self, 1, 4, 2>],
        [inners::<Self, 2, 1, 4>, inners::<Self, 2, 4, 1>],
        [inners::<Self, 3, 1, 2>, inners::<Self, 3, 4, 1>],
        [inners::<Self, 4, 1, 2>, inners::<Self, 4, 4, 1>],
    ];
    const PACK: PackFn<Self> = packs::<Self>;

    #[inline(always)]
    unsafe fn zero() -> [T; N] {
        [T::default(); N]
    }
    #[inline(always)]
    unsafe fn splat(from: *const T) -> [T; N] {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        [unsafe { *from }; N]
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> [T; N] {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        unsafe { from.cast::<[T; N]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn load_first(from: *const T, n: usize) -> [T; N] {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        std::array::from_fn(|i| if i < n { unsafe { *from.add(i) } } else { T::default() })
    }
    #[inline(always)]
    unsafe fn store(to: *mut T, x: [T; N]) {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        unsafe { to.cast::<[T; N]>().write_unaligned(x) }
    }
    #[inline(always)]
    unsafe fn mac(sum: [T; N], x: [T; N], y: [T; N]) -> [T; N] {
        std::array::from_fn(|i| T::mac(sum[i], x[i], y[i]))
    }
    #[inline(always)]
    unsafe fn plus(x: [T; N], y: [T; N]) -> [T; N] {
        std::array::from_fn(|i| T::plus(x[i], y[i]))
    }
    #[inline(always)]
    unsafe fn put(to: *mut T, sum: [T; N]) {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        unsafe { Self::store(to, sum) }
    }
    #[inline(always)]
    unsafe fn put_first(to: *mut T, sum: [T; N], n: usize) {
        for (i, &x) in sum[..n].iter().enumerate() {
            // SAFETY: the caller guarantees the conditions of `Mac`.
            unsafe { *to.add(i) = x }
        }
    }
    #[inline(always)]
    unsafe fn get(from: *const T) -> [T; N] {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        unsafe { Self::load(from) }
    }
    #[inline(always)]
    unsafe fn get_first(from: *const T, n: usize) -> [T; N] {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        unsafe { Self::load_first(from, n) }
    }
    #[inline(always)]
    unsafe fn one(from: *const T, _step: isize, _single: bool) -> T {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        unsafe { *from }
    }
    #[inline(always)]
    unsafe fn beside(from: *const T, _step: isize, n: usize) -> [T; N] {
        // SAFETY: the caller guarantees the conditions of `Mac`.
        unsafe { Self::load_first(from, n) }
    }
    #[inline(always)]
    unsafe fn transpose(
        from: *const u8,
        stride: isize,
        lanes: usize,
        steps: usize,
        to: *mut T,
        width: usize,
    ) {
        for l in 0..steps {
            for i in 0..N {
                let x = if i < lanes {
                    // SAFETY: the caller guarantees the conditions of `Mac`.
                    unsafe { *from.offset(i as isize * stride).cast::<T>().add(l) }
                } else {
                    T::default()
                };
                // SAFETY: the caller guarantees the conditions of `Mac`.
                unsafe { *to.add(l * width + i) = x }
            }
        }
    }
}
