//! The innermost loops of a correlation.

use super::vector::{Float, Sums};

/// A tile of sums: some output channels at some vectors of positions, kept in registers.
pub(super) struct Tile<T> {
    pub(super) terms: usize,
    /// The weights, all rows of a term adjacent.
    pub(super) weights: *const T,
    /// Offset in `x` at which each term reads.
    pub(super) offsets: *const u32,
    /// The grid at the first position.
    pub(super) x: *const T,
    /// The sums of the first row.
    pub(super) sums: *mut T,
    /// Row stride of `sums`.
    pub(super) pitch: usize,
    /// The number that the sums of each row start with.
    pub(super) bias: *const T,
    /// Whether to add to `sums` instead of starting from `bias`.
    pub(super) add: bool,
}

impl<T: Float> Tile<T> {
    /// Computes `rows` rows of `VECTORS` vectors: of three, or of six up to half as many rows, since few rows
    /// need more vectors to keep all arithmetic units busy.
    ///
    /// # Safety
    /// All pointers of the tile are valid for this many rows, and `V` is available.
    #[inline(always)]
    pub(super) unsafe fn rows<V: Sums<Number = T>, const VECTORS: usize>(&self, rows: usize) {
        let most = 3 * V::ROWS / VECTORS;
        // SAFETY: the caller guarantees the pointers and `V`.
        unsafe {
            match rows {
                1 => self.sum::<V, 1, VECTORS>(),
                _ if most == 2 => self.sum::<V, 2, VECTORS>(),
                2 => self.sum::<V, 2, VECTORS>(),
                3 => self.sum::<V, 3, VECTORS>(),
                _ if most == 4 => self.sum::<V, 4, VECTORS>(),
                4 => self.sum::<V, 4, VECTORS>(),
                5 => self.sum::<V, 5, VECTORS>(),
                6 => self.sum::<V, 6, VECTORS>(),
                7 => self.sum::<V, 7, VECTORS>(),
                _ => self.sum::<V, 8, VECTORS>(),
            }
        }
    }

    /// Computes a tile. Loops over indices: the arrays stay in registers only if every loop around them is
    /// unrolled, and compilers unroll these in every build.
    ///
    /// # Safety
    /// As for [`Tile::rows`].
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "see above")]
    unsafe fn sum<V: Sums<Number = T>, const ROWS: usize, const VECTORS: usize>(&self) {
        // SAFETY: the caller guarantees the pointers and `V`.
        unsafe {
            let mut sums = [[V::zero(); VECTORS]; ROWS];
            for r in 0..ROWS {
                for j in 0..VECTORS {
                    sums[r][j] = if self.add {
                        V::load(self.sums.add(r * self.pitch + j * V::LANES))
                    } else {
                        V::splat(*self.bias.add(r))
                    };
                }
            }
            for term in 0..self.terms {
                let from = self.x.add(*self.offsets.add(term) as usize);
                let mut x = [V::zero(); VECTORS];
                for j in 0..VECTORS {
                    x[j] = V::load(from.add(j * V::LANES));
                }
                for r in 0..ROWS {
                    let weight = V::splat(*self.weights.add(term * ROWS + r));
                    for j in 0..VECTORS {
                        sums[r][j] = V::add_product(weight, x[j], sums[r][j]);
                    }
                }
            }
            for r in 0..ROWS {
                for j in 0..VECTORS {
                    V::store(self.sums.add(r * self.pitch + j * V::LANES), sums[r][j]);
                }
            }
        }
    }
}
