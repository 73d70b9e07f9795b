//! Multiply-accumulate: the operations of the tiles of a product, per element type and instruction set.

use super::inner::InnerFn;
use super::pack::PackFn;
use super::tile::TileFn;

/// Operations that multiply vectors and accumulate the products.
///
/// Its functions are `#[inline(always)]`, so that they become part of a loop compiled for their instructions.
///
/// # Safety
/// The processor has the instructions, and pointers are valid for what is read or written: `LANES` elements,
/// or the first `n` of them (1 to `LANES`). Pointers need not be aligned.
pub trait Mac: Copy + 'static {
    /// Element type of an operand in memory.
    type Stored: Copy;
    /// Element type of an operand as tiles read it: [`Mac::STEP`] steps of the depth.
    type In: Copy;
    /// Element type of the result.
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
    /// Whether loading part of a vector costs no more than loading all of it.
    const MASKS: bool;
    /// Functions for tiles of 1, 2, ... [`Mac::ROWS`] rows, by vectors per row: 1 to 4, or 1 and 2 for many
    /// rows.
    const TILES: &'static [[Option<TileFn<Self>>; 4]];
    /// Functions for 1 to 4 rows of inner products, with 1 and with 4 columns.
    const INNER: [[InnerFn<Self>; 2]; 4];
    /// Packs a strip.
    const PACK: PackFn<Self>;

    /// Returns sums of 0.
    unsafe fn zero() -> Self::Y;
    /// Returns one element in all lanes.
    unsafe fn splat(from: *const Self::In) -> Self::X;
    /// Loads a vector.
    unsafe fn load(from: *const Self::In) -> Self::X;
    /// Loads the first `n` lanes of a vector; the others are zero.
    unsafe fn load_first(from: *const Self::In, n: usize) -> Self::X;
    /// Stores a vector of operand elements.
    unsafe fn store(to: *mut Self::In, x: Self::X);
    /// Returns `sum + x y`.
    unsafe fn mac(sum: Self::Y, x: Self::X, y: Self::X) -> Self::Y;
    /// Returns the sum of two vectors of sums.
    unsafe fn plus(x: Self::Y, y: Self::Y) -> Self::Y;
    /// Stores a vector of results.
    unsafe fn put(to: *mut Self::Out, sum: Self::Y);
    /// Stores the first `n` lanes of a vector of results.
    unsafe fn put_first(to: *mut Self::Out, sum: Self::Y, n: usize);
    /// Loads a vector of results.
    unsafe fn get(from: *const Self::Out) -> Self::Y;
    /// Loads the first `n` lanes of a vector of results.
    unsafe fn get_first(from: *const Self::Out, n: usize) -> Self::Y;
    /// Returns the packed element of `STEP` steps, which are `step` elements apart; of the first alone if
    /// `single`.
    unsafe fn one(from: *const Self::Stored, step: isize, single: bool) -> Self::In;
    /// [`Mac::one`] for `n` lanes that are adjacent in memory.
    unsafe fn beside(from: *const Self::Stored, step: isize, n: usize) -> Self::X;
    /// Transposes up to `LANES x LANES` elements: `to[l * width + i] = from[i * stride + l]`, `stride` in
    /// bytes, for `lanes` lanes and `steps` steps. Writes whole vectors, with zeros behind the lanes.
    unsafe fn transpose(
        from: *const u8,
        stride: isize,
        lanes: usize,
        steps: usize,
        to: *mut Self::In,
        width: usize,
    );
}
