//! The passes that own blocks of queries: the result and its tangent.

use super::operand::{Operand, View};
use super::product::Number;
use super::tile::{self, Finish, Forward, Online, Scale};
use super::{Block, KEYS, Problem, QUERIES, TangentOperands, WORK, coordinates, mask};
use crate::arguments::attention::laid_out_as;
use crate::array::Array;
use crate::array::buffer::Device;
use crate::cpu::run::scratch::Scratch;
use crate::cpu::run::threads::{Shared, try_parallel_for};
use crate::error::Result;

/// Loads the saved logarithms of sums of a block. Queries that see no key, and those beyond the last, get
/// infinity, so that `exp(score - infinity)` gives weights of 0.
///
/// # Safety
/// `to` has capacity for the block's width; `from` covers the block.
pub unsafe fn load_log_sum<T: Number>(block: &Block, from: View<T>, to: *mut T) {
    for i in 0..block.width {
        // SAFETY: the caller guarantees the capacity, and `from` covers every query below `block.queries`.
        unsafe {
            let value =
                if i < block.queries { from.get(block.query + i, 0) } else { T::from_f64(f64::INFINITY) };
            *to.add(i) =
                if value == T::from_f64(f64::NEG_INFINITY) { T::from_f64(f64::INFINITY) } else { value };
        }
    }
}

/// Scratch buffers for one block of queries.
struct Buffers<T> {
    /// Queries, transposed.
    q: Scratch<T>,
    /// Their tangents, transposed.
    tq: Scratch<T>,
    /// The scores of a tile.
    scores: Scratch<T>,
    /// Tangents of the scores.
    moved: Scratch<T>,
    /// Factors of dropout.
    keep: Scratch<T>,
    /// The result, transposed.
    out: Scratch<T>,
    /// Three numbers per query.
    columns: Scratch<T>,
}

impl<T: Number> Buffers<T> {
    fn new(p: &Problem<T>, tangents: bool) -> Result<Buffers<T>> {
        let tile = QUERIES * KEYS.min(p.keys);
        let if_moved = |n| if tangents { n } else { 0 };
        Ok(Buffers {
            q: Scratch::zeroed(QUERIES * p.depth)?,
            tq: Scratch::zeroed(if_moved(QUERIES * p.depth))?,
            scores: Scratch::zeroed(tile)?,
            moved: Scratch::zeroed(if_moved(tile))?,
            keep: Scratch::zeroed(if p.settings.dropout.is_some() { tile } else { 0 })?,
            out: Scratch::zeroed(QUERIES * p.width)?,
            columns: Scratch::zeroed(3 * QUERIES)?,
        })
    }

    fn columns(&mut self) -> [Shared<T>; 3] {
        let start = self.columns.ptr();
        [0, 1, 2].map(|i| Shared::new(start.wrapping_add(i * QUERIES)))
    }

    /// Zeroes the transposed result of a block.
    fn clear(&mut self, rows: usize, width: usize) {
        let out = self.out.ptr();
        // SAFETY: `out` has capacity for `QUERIES` columns of `p.width` rows, and a block has no more.
        (0..rows * width).for_each(|i| unsafe { *out.add(i) = T::default() });
    }
}

/// Returns the result and the logarithm of the sum of exponentials.
pub fn forward<T: Number>(p: &Problem<T>) -> Result<(Array, Array)> {
    let rank = p.like.rank();
    let y = laid_out_as(p.like.shape().with(rank - 1, p.width), p.like, T::DTYPE)?;
    let log_sum = Array::empty(p.like.shape().with(rank - 1, 1), T::DTYPE, Device::Cpu)?;
    let (to, log_to) = (Operand::<T>::new(&y), Operand::<T>::new(&log_sum));
    let blocks = p.blocks();
    try_parallel_for(p.items * blocks, WORK.div_ceil(p.work().max(1)), |range| {
        let mut buffers = Buffers::new(p, false)?;
        for task in range {
            let block = p.block(coordinates(&p.batch, task / blocks), task % blocks);
            // SAFETY: the operands cover the problem, and blocks write disjoint rows.
            unsafe { forward_block(p, &block, &mut buffers, to.at(&block.at), log_to.at(&block.at)) };
        }
        Ok(())
    })?;
    Ok((y, log_sum))
}

/// Computes one block of [`forward`].
///
/// # Safety
/// The results cover the block, and only the caller writes them there.
unsafe fn forward_block<T: Number>(
    p: &Problem<T>,
    block: &Block,
    buffers: &mut Buffers<T>,
    to: View<T>,
    log_to: View<T>,
) {
    let (width, scale) = (block.width, p.settings.scale);
    let [top, sum, factor] = buffers.columns();
    buffers.clear(p.width, width);
    let (transposed, scores, out) = (buffers.q.ptr(), buffers.scores.ptr(), buffers.out.ptr());
    // SAFETY: `buffers` was made for this problem; the caller guarantees the results (`# Safety`).
    unsafe {
        p.q.at(&block.at)
            .skipping(block.query)
            .transpose_into(transposed, block.queries, width, p.depth, scale);
        top.part(0, width).fill(T::from_f64(f64::NEG_INFINITY));
        sum.part(0, width).fill(T::default());
        for tile in p.tiles(block) {
            p.scores(block, &tile, transposed, scores);
            let online = Online { tile: Shared::new(scores), keys: tile.keys, width, top, sum, factor };
            tile::run(&online, width);
            if tile.key > 0 {
                tile::run(&Scale { tile: Shared::new(out), rows: p.width, width, factor }, width);
            }
            if let Some(keep) = p.kept(block, &tile, buffers.keep.ptr()) {
                for i in 0..tile.keys * width {
                    *scores.add(i) = (*scores.add(i)).multiply_add::<false>(*keep.get().add(i), T::default());
                }
            }
            p.gather(&tile, p.v.at(&block.at), p.width, scores, out);
        }
        tile::run(&Finish { top, sum }, width);
        tile::run(&Scale { tile: Shared::new(out), rows: p.width, width, factor: sum }, width);
        to.skipping(block.query).transpose_from(out, block.queries, width, p.width);
        log_to.skipping(block.query).transpose_from(top.get(), block.queries, width, 1);
    }
}

/// Returns the tangent of the result and the mean of the tangents of the scores.
pub fn tangent<T: Number>(
    p: &Problem<T>,
    y: &Operand<T>,
    log_sum: &Operand<T>,
    t: &TangentOperands<T>,
) -> Result<(Array, Array)> {
    let rank = p.like.rank();
    let moved = laid_out_as(p.like.shape().with(rank - 1, p.width), p.like, T::DTYPE)?;
    let mean = Array::empty(p.like.shape().with(rank - 1, 1), T::DTYPE, Device::Cpu)?;
    let (to, mean_to) = (Operand::<T>::new(&moved), Operand::<T>::new(&mean));
    let blocks = p.blocks();
    try_parallel_for(p.items * blocks, WORK.div_ceil(2 * p.work().max(1)), |range| {
        let mut buffers = Buffers::new(p, true)?;
        for task in range {
            let block = p.block(coordinates(&p.batch, task / blocks), task % blocks);
            let known = (y.at(&block.at), log_sum.at(&block.at));
            // SAFETY: the operands cover the problem, and blocks write disjoint rows.
            unsafe {
                tangent_block(p, &block, &mut buffers, known, t, (to.at(&block.at), mean_to.at(&block.at)))
            };
        }
        Ok(())
    })?;
    Ok((moved, mean))
}

/// Computes the tangents of the scores of a tile, `scale (TQ K' + Q TK') + tmask`, from the queries and their
/// tangents, both transposed and scaled.
///
/// # Safety
/// The transposed operands belong to the block; `to` has capacity for the tile.
pub unsafe fn score_tangents<T: Number>(
    p: &Problem<T>,
    block: &Block,
    tile: &super::Tile,
    t: &TangentOperands<T>,
    (transposed, transposed_tangent): (*const T, *const T),
    to: *mut T,
) {
    // SAFETY: the caller guarantees the pointers (`# Safety`); the tangents cover the problem.
    unsafe {
        match &t.k {
            Some(tk) => p.against(tile, tk.at(&block.at), p.depth, transposed, to, false),
            None => (0..tile.keys * tile.width).for_each(|i| *to.add(i) = T::default()),
        }
        if t.q.is_some() {
            p.against(tile, p.k.at(&block.at), p.depth, transposed_tangent, to, true);
        }
        if let Some(tmask) = &t.mask {
            mask::add_tile(tile, tmask.at(&block.at), to);
        }
    }
}

/// Computes one block of [`tangent`].
///
/// # Safety
/// The results cover the block, and only the caller writes them there.
unsafe fn tangent_block<T: Number>(
    p: &Problem<T>,
    block: &Block,
    buffers: &mut Buffers<T>,
    (y, log_sum): (View<T>, View<T>),
    t: &TangentOperands<T>,
    (to, mean_to): (View<T>, View<T>),
) {
    let (width, scale) = (block.width, p.settings.scale);
    let [log_sums, mean, _] = buffers.columns();
    buffers.clear(p.width, width);
    let (transposed, transposed_tangent) = (buffers.q.ptr(), buffers.tq.ptr());
    let (scores, moved, out) = (buffers.scores.ptr(), buffers.moved.ptr(), buffers.out.ptr());
    // SAFETY: `buffers` was made for this problem; the caller guarantees the results (`# Safety`).
    unsafe {
        p.q.at(&block.at)
            .skipping(block.query)
            .transpose_into(transposed, block.queries, width, p.depth, scale);
        if let Some(tq) = &t.q {
            let tq = tq.at(&block.at).skipping(block.query);
            tq.transpose_into(transposed_tangent, block.queries, width, p.depth, scale);
        }
        load_log_sum(block, log_sum, log_sums.get());
        mean.part(0, width).fill(T::default());
        for tile in p.tiles(block) {
            p.scores(block, &tile, transposed, scores);
            score_tangents(p, block, &tile, t, (transposed, transposed_tangent), moved);
            let keep = p.kept(block, &tile, buffers.keep.ptr());
            let known =
                tile::Known { scores: Shared::new(scores), keys: tile.keys, width, log_sum: log_sums, keep };
            tile::run(&Forward { known, tangent: Shared::new(moved), mean }, width);
            p.gather(&tile, p.v.at(&block.at), p.width, moved, out);
            if let Some(tv) = &t.v {
                p.gather(&tile, tv.at(&block.at), p.width, scores, out);
            }
        }
        // The normaliser has a tangent too: subtract the mean tangent of the scores times the result.
        let y = y.skipping(block.query);
        for j in 0..p.width {
            for i in 0..block.queries {
                let minus = T::from_f64(0.0 - mean.get().add(i).read().to_f64());
                let place = out.add(j * width + i);
                *place = minus.multiply_add::<false>(y.get(i, j), *place);
            }
        }
        to.skipping(block.query).transpose_from(out, block.queries, width, p.width);
        mean_to.skipping(block.query).transpose_from(mean.get(), block.queries, width, 1);
    }
}
