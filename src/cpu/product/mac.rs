//! Multiply-accumulate: what the tiles of a product are made of, one implementation per element type and
//! instruction set.

use super::inner::InnerFn;
use super::pack::PackFn;
use super::tile::TileFn;

/// One way to multiply vectors and add the products up.
///
/// Its functions are `#[inline(always)]`, so that they become part of a loop compiled for their instructions.
///
/// # Safety
/// Whoever calls one vouches that the processor has its instructions and that pointers are good for what is
/// read or written: `LANES` elements, or the first `n` of them (1 to `LANES`). Pointers need not be aligned.
pub trait Mac: Copy + 'static {
    /// An element of an operand in memory.
    type Stored: Copy;
    /// An element of an operand as tiles read it: [`Mac::STEP`] steps of the depth.
    type In: Copy;
    /// An element of the result.
    type Out: Copy;
    /// A vector of operand elements.
    type X: Copy;
    /// A vector of sums.
    type Y: Copy;
    /// Elements of a vector.
    const LANES: usize;
    /// Rows of the largest tile: as many as there are registers for, with two vectors each.
    const ROWS: usize;
    /// Steps of the depth in one [`Mac::In`]: 1, or 2 where an instruction adds two products.
    const STEP: usize;
    /// Whether a load of part of a vector costs no more than a load of all of it.
    const MASKS: bool;
    /// Functions for tiles of 1, 2, ... [`Mac::ROWS`] rows, by vectors per row: 1 to 4, for many rows 1 and
    /// 2.
    const TILES: &'static [[Option<TileFn<Self>>; 4]];
    /// Functions for 1 to 4 rows of inner products with 1 and with 4 columns.
    const INNER: [[InnerFn<Self>; 2]; 4];
    /// Packs a strip.
    const PACK: PackFn<Self>;

    /// Sums of nothing.
    unsafe fn zero() -> Self::Y;
    /// One element in all lanes.
    unsafe fn splat(from: *const Self::In) -> Self::X;
    /// A vector.
    unsafe fn load(from: *const Self::In) -> Self::X;
    /// The first `n` lanes of a vector; the others are zero.
    unsafe fn load_first(from: *const Self::In, n: usize) -> Self::X;
    /// Writes a vector of operand elements.
    unsafe fn store(to: *mut Self::In, x: Self::X);
    /// `sum + x y`.
    unsafe fn mac(sum: Self::Y, x: Self::X, y: Self::X) -> Self::Y;
    /// The sum of two vectors of sums.
    unsafe fn plus(x: Self::Y, y: Self::Y) -> Self::Y;
    /// Writes a vector of results.
    unsafe fn put(to: *mut Self::Out, sum: Self::Y);
    /// Writes the first `n` lanes of one.
    unsafe fn put_first(to: *mut Self::Out, sum: Self::Y, n: usize);
    /// Reads a vector of results.
    unsafe fn get(from: *const Self::Out) -> Self::Y;
    /// Reads the first `n` lanes of one.
    unsafe fn get_first(from: *const Self::Out, n: usize) -> Self::Y;
    /// The packed element of `STEP` steps, which are `step` elements apart; only the first of them if
    /// `single`.
    unsafe fn one(from: *const Self::Stored, step: isize, single: bool) -> Self::In;
    /// [`Mac::one`] for `n` lanes that lie side by side in memory.
    unsafe fn beside(from: *const Self::Stored, step: isize, n: usize) -> Self::X;
    /// Transposes up to `LANES x LANES` elements: `to[l * width + i] = from[i * stride + l]`, `stride` in
    /// bytes, for `lanes` and `steps` of them. Writes whole vectors: zeros behind the lanes.
    unsafe fn transpose(
        from: *const u8,
        stride: isize,
        lanes: usize,
        steps: usize,
        to: *mut Self::In,
        width: usize,
    );
}
