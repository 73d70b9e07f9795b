//! Lanes of several numbers, as whole registers are.

use super::Lane;

/// A lane that reads and writes memory, several numbers at a time.
pub trait Wide: Lane {
    /// The stored number.
    type Number: Copy;
    /// How many of them.
    const WIDTH: usize;
    /// The `WIDTH` numbers at `from`.
    ///
    /// # Safety
    /// They can be read.
    unsafe fn load(from: *const Self::Number) -> Self;
    /// Writes `WIDTH` numbers.
    ///
    /// # Safety
    /// They can be written.
    unsafe fn store(self, to: *mut Self::Number);
    /// The `count < WIDTH` numbers at `from`, then zeros.
    ///
    /// # Safety
    /// They can be read.
    unsafe fn load_part(from: *const Self::Number, count: usize) -> Self;
    /// Writes the first `count < WIDTH` numbers.
    ///
    /// # Safety
    /// They can be written.
    unsafe fn store_part(self, to: *mut Self::Number, count: usize);
    /// `f` of the numbers of `x` where the mask holds, `self` elsewhere: for arguments so rare that they need
    /// not be fast.
    fn replace<const N: usize>(
        self,
        mask: Self::Mask,
        x: [Self; N],
        f: fn([Self::Number; N]) -> Self::Number,
    ) -> Self;
    /// The entries of a table at the last four bits of `index`.
    fn lookup(index: Self::Int, table: &[Self::Number; 16]) -> Self;
}
