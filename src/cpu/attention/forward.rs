//! The passes that own blocks of queries: the result and its tangent.

use super::buffers::Buffers;
use super::operand::{MatrixBatch, View};
use super::product::TileFloat;
use super::tile::{self, Finish, Forward, Known, Online, Scale};
use super::{Block, Problem, TangentOperands, Tile, WORK, coordinates, mask};
use crate::arguments::attention::laid_out_as;
use crate::cpu::prelude::*;

/// Loads the saved logarithms of sums of a block, whose first is the first of `from`. Queries that see no
/// key, and those beyond the last, get infinity, so that `exp(score - infinity)` gives weights of 0.
///
/// # Safety
/// `to` has capacity for the block's width; `from` covers the block.
pub unsafe fn load_log_sum<T: TileFloat>(block: &Block, from: View<T>, to: *mut T) {
    let infinity = T::from_f64(f64::INFINITY);
    for i in 0..block.width {
        // SAFETY: the caller guarantees the capacity, and `from` covers every query below `block.queries`.
        unsafe {
            let value = if i < block.queries { from.get(i, 0) } else { infinity };
            *to.add(i) = if value == T::from_f64(f64::NEG_INFINITY) { infinity } else { value };
        }
    }
}

/// Returns a result and a number per query, both computed block by block: `body` gets the transposed queries,
/// and adds the transposed result to `sums` and writes the numbers to the first of `columns`.
fn by_blocks<T: TileFloat>(
    p: &Problem<T>, tangents: bool, work: usize, body: impl Fn(&Block, &Buffers<T>) + Sync,
) -> Result<(Array, Array)> {
    let like = &p.q.array;
    let last = like.rank() - 1;
    let y = laid_out_as(like.shape().with(last, p.width), like, T::DTYPE)?;
    let column = Array::empty(like.shape().with(last, 1), T::DTYPE, Device::Cpu)?;
    let (to, column_to) = (MatrixBatch::<T>::new(&y), MatrixBatch::<T>::new(&column));
    let blocks = p.blocks();
    try_parallel_for(p.batch.numel() * blocks, WORK.div_ceil(work.max(1)), |range| {
        let buffers = Buffers::new(p, false, tangents)?;
        for task in range {
            let block = &p.block(coordinates(&p.batch, task / blocks), task % blocks);
            // SAFETY: operands and buffers cover the problem, and blocks write disjoint rows.
            unsafe {
                p.q.queries(block).transpose_into(buffers.q[0], block, p.depth, p.settings.scale);
                Shared::new(buffers.sums).part(0, p.width * block.width).fill(T::default());
                body(block, &buffers);
                to.queries(block).transpose_from(buffers.sums, block, p.width);
                column_to.queries(block).transpose_from(buffers.columns[0], block, 1);
            }
        }
        Ok(())
    })?;
    Ok((y, column))
}

/// Returns the result and the logarithm of the sum of exponentials.
pub fn forward<T: TileFloat>(p: &Problem<T>) -> Result<(Array, Array)> {
    by_blocks(p, false, p.work(), |block, buffers| {
        let (width, scores, out) = (block.width, buffers.scores, buffers.sums);
        let [top, sum, factor, _] = buffers.columns;
        // SAFETY: operands and buffers cover the block.
        unsafe {
            Shared::new(top).part(0, width).fill(T::from_f64(f64::NEG_INFINITY));
            Shared::new(sum).part(0, width).fill(T::default());
            for tile in p.tiles(block) {
                p.scores(&tile, buffers.q[0], scores);
                tile::run(&Online { tile: scores, top, sum, factor }, tile.keys, width);
                if tile.key > 0 {
                    tile::run(&Scale { tile: out, factor }, p.width, width);
                }
                if let Some(keep) = p.kept(&tile, buffers.keep) {
                    for i in 0..tile.keys * width {
                        *scores.add(i) = (*scores.add(i)).multiply_add::<false>(*keep.add(i), T::default());
                    }
                }
                p.gather(&tile, &p.v, p.width, scores, out);
            }
            tile::run(&Finish { top, sum }, 0, width);
            tile::run(&Scale { tile: out, factor: sum }, p.width, width);
        }
    })
}

/// Returns the tangent of the result and the mean of the tangents of the scores.
pub fn tangent<T: TileFloat>(
    p: &Problem<T>, y: &MatrixBatch<T>, log_sum: &MatrixBatch<T>, t: &TangentOperands<T>,
) -> Result<(Array, Array)> {
    by_blocks(p, true, 2 * p.work(), |block, buffers| {
        let (width, scores, tangent, out) = (block.width, buffers.scores, buffers.moved, buffers.sums);
        let [mean, log_sums, ..] = buffers.columns;
        // SAFETY: operands and buffers cover the block.
        unsafe {
            if let Some(tq) = &t.q {
                tq.queries(block).transpose_into(buffers.tq[0], block, p.depth, p.settings.scale);
            }
            load_log_sum(block, log_sum.queries(block), log_sums);
            Shared::new(mean).part(0, width).fill(T::default());
            for tile in p.tiles(block) {
                p.scores(&tile, buffers.q[0], scores);
                score_tangents(p, &tile, t, buffers);
                let known = Known { scores, log_sum: log_sums, keep: p.kept(&tile, buffers.keep) };
                tile::run(&Forward { known, tangent, mean }, tile.keys, width);
                p.gather(&tile, &p.v, p.width, tangent, out);
                if let Some(tv) = &t.v {
                    p.gather(&tile, tv, p.width, scores, out);
                }
            }
            // The normaliser has a tangent too: subtract the mean tangent of the scores times the result.
            let y = y.queries(block);
            for j in 0..p.width {
                for i in 0..block.queries {
                    let minus = T::from_f64(0.0 - (*mean.add(i)).to_f64());
                    let place = out.add(j * width + i);
                    *place = minus.multiply_add::<false>(y.get(i, j), *place);
                }
            }
        }
    })
}

/// The tangents of the scores of a tile, `scale (TQ K' + Q TK') + tmask`, from what `buffers` hold.
///
/// # Safety
/// The tangents cover the problem, for which `buffers` was made, and which hold the block.
pub unsafe fn score_tangents<T: TileFloat>(
    p: &Problem<T>, tile: &Tile, t: &TangentOperands<T>, buffers: &Buffers<T>,
) {
    let to = buffers.moved;
    // SAFETY: the caller guarantees operands and buffers (`# Safety`).
    unsafe {
        match &t.k {
            Some(tk) => p.against(tile, tk, p.depth, buffers.q[0], to, false),
            None => Shared::new(to).part(0, tile.keys * tile.block.width).fill(T::default()),
        }
        if t.q.is_some() {
            p.against(tile, &p.k, p.depth, buffers.tq[0], to, true);
        }
        if let Some(tmask) = &t.mask {
            mask::add_tile(tile, tmask.queries(&tile.block), to);
        }
    }
}
