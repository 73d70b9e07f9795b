//! Vectors of numbers: the operations of an instruction set that products and convolutions are written in.
//!
//! Read next: `src/cpu/product/x86.rs`, the vectors of x86-64.

use std::marker::PhantomData;

/// The operations on the numbers of a register.
///
/// Its functions are `#[inline(always)]`, so that they become part of a loop compiled for their instructions.
///
/// # Safety
/// The processor has the instructions, and pointers are valid for what is read or written: `LANES` numbers,
/// or the first `n` of them (1 to `LANES`). Pointers need not be aligned.
pub trait Vector: Copy + 'static {
    /// The element type.
    type Number: Copy + Default;
    /// The register type.
    type Register: Copy;
    /// Numbers per register.
    const LANES: usize;
    /// Whether loading part of a vector costs no more than loading all of it.
    const MASKS: bool;

    /// Returns zeros.
    unsafe fn zero() -> Self::Register;
    /// Returns `x` in every lane.
    unsafe fn splat(x: Self::Number) -> Self::Register;
    /// Loads a vector.
    unsafe fn load(from: *const Self::Number) -> Self::Register;
    /// Loads the first `n` lanes of a vector; the others are zero.
    unsafe fn load_first(from: *const Self::Number, n: usize) -> Self::Register;
    /// Stores a vector.
    unsafe fn store(to: *mut Self::Number, x: Self::Register);
    /// Stores the first `n` lanes of a vector.
    unsafe fn store_first(to: *mut Self::Number, x: Self::Register, n: usize);
    /// Returns `x + y`; integers wrap.
    unsafe fn plus(x: Self::Register, y: Self::Register) -> Self::Register;
    /// Returns `x y + sum`; integers wrap.
    unsafe fn add_product(x: Self::Register, y: Self::Register, sum: Self::Register) -> Self::Register;
    /// Transposes a square: `to[l * width + i] = from[i * stride + l]`. Zeros fill the vectors.
    unsafe fn transpose(square: Square, to: *mut Self::Number, width: usize);
}

/// Up to `LANES x LANES` elements.
pub struct Square {
    /// The first element.
    pub from: *const u8,
    /// Bytes from one lane to the next.
    pub stride: isize,
    /// Number of lanes.
    pub lanes: usize,
    /// Adjacent elements of a lane.
    pub steps: usize,
}

/// Functions that become part of a loop compiled for their instructions.
macro_rules! inlined {
    ($($name:ident($($argument:ident: $t:ty),*) $(-> $out:ty)? = $body:expr;)*) => {
        $(#[inline(always)]
        #[allow(unused_unsafe, reason = "plain Rust needs it for pointers alone")]
        unsafe fn $name($($argument: $t),*) $(-> $out)? {
            // SAFETY: the caller guarantees the conditions of the trait.
            unsafe { $body }
        })*
    };
}
pub(super) use inlined;

/// Numbers that are multiplied and added; integers wrap.
pub trait Arithmetic: Copy + Default + 'static {
    /// Returns `x + y`.
    fn plus(x: Self, y: Self) -> Self;
    /// Returns `x y + sum`, for floats rounded once if `FUSED`.
    fn add_product<const FUSED: bool>(x: Self, y: Self, sum: Self) -> Self;
}

macro_rules! arithmetic {
    ($($t:ty)*: |$x:ident, $y:ident, $sum:ident| $plus:expr, $fused:expr, $apart:expr) => {
        $(impl Arithmetic for $t {
            #[inline(always)]
            fn plus($x: $t, $y: $t) -> $t {
                $plus
            }
            #[inline(always)]
            fn add_product<const FUSED: bool>($x: $t, $y: $t, $sum: $t) -> $t {
                if FUSED { $fused } else { $apart }
            }
        })*
    };
    ($($t:ty)*: |$x:ident, $y:ident, $sum:ident| $plus:expr, $product:expr) => {
        arithmetic!($($t)*: |$x, $y, $sum| $plus, $product, $product);
    };
}

arithmetic!(f32 f64: |x, y, sum| x + y, x.mul_add(y, sum), sum + x * y);
arithmetic!(i32 i64: |x, y, sum| x.wrapping_add(y), sum.wrapping_add(x.wrapping_mul(y)));

/// `N` numbers, which the compiler maps to registers; products and sums are rounded together if `FUSED`.
#[derive(Clone, Copy)]
pub struct Plain<T, const N: usize, const FUSED: bool>(PhantomData<T>);

impl<T: Arithmetic, const N: usize, const FUSED: bool> Vector for Plain<T, N, FUSED> {
    type Number = T;
    type Register = [T; N];
    const LANES: usize = N;
    const MASKS: bool = false;

    inlined! {
        zero() -> [T; N] = [T::default(); N];
        splat(x: T) -> [T; N] = [x; N];
        load(from: *const T) -> [T; N] = from.cast::<[T; N]>().read_unaligned();
        load_first(from: *const T, n: usize) -> [T; N] =
            std::array::from_fn(|i| if i < n { *from.add(i) } else { T::default() });
        store(to: *mut T, x: [T; N]) = to.cast::<[T; N]>().write_unaligned(x);
        store_first(to: *mut T, x: [T; N], n: usize) =
            x[..n].iter().enumerate().for_each(|(i, &x)| *to.add(i) = x);
        plus(x: [T; N], y: [T; N]) -> [T; N] = std::array::from_fn(|i| T::plus(x[i], y[i]));
        add_product(x: [T; N], y: [T; N], sum: [T; N]) -> [T; N] =
            std::array::from_fn(|i| T::add_product::<FUSED>(x[i], y[i], sum[i]));
        transpose(square: Square, to: *mut T, width: usize) = for l in 0..square.steps {
            for i in 0..N {
                let lane = square.from.wrapping_offset(i as isize * square.stride).cast::<T>();
                *to.add(l * width + i) = if i < square.lanes { *lane.add(l) } else { T::default() };
            }
        };
    }
}
