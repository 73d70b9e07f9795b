//! Lanes that hold several numbers, such as whole registers.

use super::Lane;

/// A lane that reads and writes memory, several numbers at a time.
pub trait Wide: Lane {
    /// The stored number.
    type Number: Copy;
    /// How many numbers a lane holds.
    const WIDTH: usize;
    /// Loads the `WIDTH` numbers at `from`.
    ///
    /// # Safety
    /// `from` is readable for them.
    unsafe fn load(from: *const Self::Number) -> Self;
    /// Writes `WIDTH` numbers.
    ///
    /// # Safety
    /// `to` is writable for them.
    unsafe fn store(self, to: *mut Self::Number);
    /// Loads the `count < WIDTH` numbers at `from`, then zeros.
    ///
    /// # Safety
    /// `from` is readable for them.
    unsafe fn load_part(from: *const Self::Number, count: usize) -> Self;
    /// Writes the first `count < WIDTH` numbers.
    ///
    /// # Safety
    /// `to` is writable for them.
    unsafe fn store_part(self, to: *mut Self::Number, count: usize);
    /// Returns `f` of the numbers of `x` where `mask` is true, `self` elsewhere: for arguments so rare that
    /// speed does not matter.
    fn replace<const N: usize>(
        self, mask: Self::Mask, x: [Self; N], f: fn([Self::Number; N]) -> Self::Number,
    ) -> Self;
    /// Returns the elements of a table at the last four bits of `index`.
    fn lookup(index: Self::Int, table: &[Self::Number; 16]) -> Self;
}
