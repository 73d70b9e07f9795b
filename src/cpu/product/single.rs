//! Products that are one tile.

use super::mac::Kernels;
use super::tile::Tile;
use super::{Product, Target};

/// Computes a product that is a single tile directly on its operands and result, since planning would take
/// longer than the arithmetic. Returns whether it was a single tile.
///
/// # Safety
/// As for [`super::Number::multiply`], and the processor has the instructions of `M`.
pub unsafe fn single<M: Kernels>(p: &Product<M::Stored, M::Out>) -> bool {
    let fits = p.m <= M::ROWS && p.n <= 2 * M::LANES && p.k <= 4 * M::LANES;
    let Target::Memory(out, out_row, None) = p.target else { return false };
    if !fits || p.right.free != 1 || M::STEP > 1 {
        return false;
    }
    let Some(compute) = M::TILES[p.m - 1][p.n.div_ceil(M::LANES) - 1] else { return false };
    let tile = Tile {
        k: p.k,
        a: p.left.data.cast(),
        a_row: p.left.free,
        a_step: p.left.depth,
        b: p.right.data.cast(),
        b_step: p.right.depth,
        out,
        out_row,
        columns: p.n,
        add: false,
    };
    // SAFETY: the caller guarantees operands, result and instructions; the product fits the tile.
    unsafe { compute(&tile) };
    true
}
