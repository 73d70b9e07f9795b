//! The reverse passes: gradients of queries, keys, values and an added mask, of first and second order.
//!
//! A task owns the gradients of the keys and values of one element of their batch and walks all blocks of
//! queries that see them, so no two threads add to the same gradient. Where there are too few such elements
//! for the threads, the blocks are split and the partial sums are added in order.

use super::buffers::Buffers;
use super::forward::{load_log_sum, score_tangents};
use super::operand::{MatrixBatch, View};
use super::product::{Product, TileFloat};
use super::tile::{self, Backward, Known, Second};
use super::{Block, LANE, OutputTangents, Problem, TangentOperands, Tile, WORK, Wanted, coordinates};
use crate::arguments::attention::laid_out_as;
use crate::cpu::prelude::*;
use crate::cpu::run::scratch::Scratch;

/// Number of tasks to reach by splitting the blocks of queries, where keys and values have a smaller batch.
const TASKS: usize = 8;

/// The inputs of a reverse pass.
pub struct Pass<T> {
    /// Sizes and operands.
    pub p: Problem<T>,
    /// The result of the forward pass.
    pub out: MatrixBatch<T>,
    /// The logarithms of sums of exponentials.
    pub log_sum: MatrixBatch<T>,
    /// The cotangent of the result.
    pub g: MatrixBatch<T>,
    /// The further inputs of the second derivative.
    pub second: Option<SecondOrder<T>>,
}

/// The further inputs of the second derivative.
pub struct SecondOrder<T> {
    /// The tangents.
    t: TangentOperands<T>,
    /// The tangent of the result.
    out: MatrixBatch<T>,
    /// The mean of the tangents of the scores.
    mean: MatrixBatch<T>,
}

impl<T: TileFloat> SecondOrder<T> {
    /// Returns the inputs in the compute dtype.
    pub fn new(x: &OutputTangents) -> Result<SecondOrder<T>> {
        let t = TangentOperands::new(&x.tangents)?;
        Ok(SecondOrder { t, out: MatrixBatch::read(x.out)?, mean: MatrixBatch::read(x.mean)? })
    }
}

/// The accumulator of the gradient of keys or values: the gradient itself, or separate rows where its rows
/// are not whole vectors or several tasks add to it.
struct Sink<T> {
    out: MatrixBatch<T>,
    apart: Option<Scratch<T>>,
    start: Shared<T>,
    splits: usize,
    keys: usize,
    columns: usize,
    pitch: usize,
    row: isize,
}

impl<T: TileFloat> Sink<T> {
    fn new(out: &Array, items: usize, splits: usize) -> Result<Sink<T>> {
        let rank = out.rank();
        let (keys, columns) = (out.dim(rank - 2), out.dim(rank - 1));
        let pitch = columns.next_multiple_of(LANE);
        let direct = splits == 1 && columns == pitch && out.stride(rank - 1) == 1;
        let mut apart = (!direct).then(|| Scratch::zeroed(items * splits * keys * pitch)).transpose()?;
        let start = apart.as_mut().map_or(Shared::new(out.ptr::<T>()), Scratch::shared);
        let row = if direct { out.stride(rank - 2) } else { pitch as isize };
        Ok(Sink { out: MatrixBatch::new(out), apart, start, splits, keys, columns, pitch, row })
    }

    /// Returns the first row of one task.
    fn rows(&self, item: usize, split: usize, at: &[usize; MAX_RANK]) -> *mut T {
        match &self.apart {
            None => self.out.at(at).data,
            Some(_) => self.start.get().wrapping_add((item * self.splits + split) * self.keys * self.pitch),
        }
    }

    /// Zeroes the rows of a task; separate rows are zero from the start.
    ///
    /// # Safety
    /// Only the caller accesses these rows.
    unsafe fn clear(&self, to: *mut T) {
        if self.apart.is_none() {
            for j in 0..self.keys {
                let row = Shared::new(to.wrapping_offset(j as isize * self.row));
                // SAFETY: the row has `columns` elements, and the caller guarantees sole access.
                unsafe { row.part(0, self.columns) }.fill(T::default());
            }
        }
    }

    /// Sums the separate rows of all tasks in order, into the gradient.
    fn finish(&self, batch: &Shape) {
        if self.apart.is_none() {
            return;
        }
        let size = self.keys * self.pitch;
        parallel_for(batch.numel(), GRAIN.div_ceil((size * self.splits).max(1)), |range| {
            for item in range {
                let at = coordinates(batch, item);
                let (to, total) = (self.out.at(&at), self.rows(item, 0, &at));
                // SAFETY: all parts of this element exist, and no other thread reads or writes them.
                unsafe {
                    for split in 1..self.splits {
                        let part = total.add(split * size);
                        for i in 0..size {
                            *total.add(i) =
                                T::from_f64(1.0).multiply_add::<false>(*part.add(i), *total.add(i));
                        }
                    }
                    for j in 0..self.keys {
                        (0..self.columns).for_each(|c| *to.place(j, c) = *total.add(j * self.pitch + c));
                    }
                }
            }
        });
    }

    /// Adds `weights rows` to a tile's keys: `weights` is keys by queries, `rows` queries by [`Sink::pitch`].
    ///
    /// # Safety
    /// `to`, `weights` and `rows` have these sizes, and no other thread writes the rows of the sink.
    unsafe fn add(&self, tile: &Tile, to: *mut T, weights: *mut T, rows: *const T) {
        let p = Product {
            m: tile.keys,
            n: self.pitch,
            k: tile.block.queries,
            a: View { data: weights, row: tile.block.width as isize, column: 1 },
            b: rows,
            c: to.wrapping_offset(tile.key as isize * self.row),
            c_stride: self.row as usize,
            add: true,
        };
        // SAFETY: the caller guarantees the three matrices (`# Safety`).
        unsafe { T::product(&p) }
    }
}

impl<T: TileFloat> Pass<T> {
    /// Returns buffers for any block.
    fn buffers(&self) -> Result<Buffers<T>> {
        Buffers::new(&self.p, true, self.second.is_some())
    }

    /// Loads a block of queries, their cotangents, tangents and numbers per query into `buffers`. The numbers
    /// are: logarithm of sum, mean of cotangents, mean of tangents, mean of second derivatives.
    ///
    /// # Safety
    /// The operands cover the problem of the pass, for which `buffers` was made.
    unsafe fn enter(&self, block: &Block, buffers: &Buffers<T>) {
        let (p, scale) = (&self.p, self.p.settings.scale);
        let [log_sum, delta, mean, middle] = buffers.columns;
        // SAFETY: the caller guarantees that the operands cover the block and that the buffers fit it.
        unsafe {
            let load = |x: &MatrixBatch<T>, to: [*mut T; 2], columns: usize, scale: f64| {
                x.queries(block).transpose_into(to[0], block, columns, scale);
                x.queries(block).copy_into(to[1], block, columns, columns.next_multiple_of(LANE), scale);
            };
            load(&p.q, buffers.q, p.depth, scale);
            load(&self.g, buffers.g, p.width, 1.0);
            load_log_sum(block, self.log_sum.queries(block), log_sum);
            self.dot(block, &self.out, buffers.g[0], delta);
            if let Some(second) = &self.second {
                self.dot(block, &second.out, buffers.g[0], middle);
                let from = second.mean.queries(block);
                for i in 0..block.width {
                    let r = if i < block.queries { from.get(i, 0) } else { T::default() };
                    *mean.add(i) = r;
                    let less = T::from_f64(-r.to_f64());
                    *middle.add(i) = less.multiply_add::<false>(*delta.add(i), *middle.add(i));
                }
                if let Some(tq) = &second.t.q {
                    load(tq, buffers.tq, p.depth, scale);
                }
            }
        }
    }

    /// Sets `to[i] = y[i] . g[i]` for the queries of a block, from transposed cotangents, and 0 beyond them.
    ///
    /// # Safety
    /// As for [`Pass::enter`].
    unsafe fn dot(&self, block: &Block, y: &MatrixBatch<T>, transposed: *const T, to: *mut T) {
        let y = y.queries(block);
        // SAFETY: the caller guarantees that `y` and `transposed` cover the block; `to` has its width.
        unsafe {
            let to = Shared::new(to).part(0, block.width);
            to.fill(T::default());
            for (i, sum) in to.iter_mut().enumerate().take(block.queries) {
                for c in 0..self.p.width {
                    *sum = y.get(i, c).multiply_add::<false>(*transposed.add(c * block.width + i), *sum);
                }
            }
        }
    }

    /// Computes the tiles of derivatives, for one tile of the block in `buffers`.
    ///
    /// # Safety
    /// As for [`Pass::enter`], which has loaded this block.
    unsafe fn derive(&self, tile: &Tile, buffers: &Buffers<T>) {
        let (p, width, g) = (&self.p, tile.block.width, buffers.g[0]);
        let [log_sum, delta, mean, middle] = buffers.columns;
        let Buffers { scores, adjoint, moved: tangent, .. } = *buffers;
        // SAFETY: the caller guarantees that the operands cover the block and that `buffers` holds it.
        unsafe {
            p.scores(tile, buffers.q[0], scores);
            p.against(tile, &p.v, p.width, g, adjoint, false);
            let known = Known { scores, log_sum, keep: p.kept(tile, buffers.keep) };
            let Some(SecondOrder { t, .. }) = &self.second else {
                return tile::run(&Backward { known, adjoint, delta }, tile.keys, width);
            };
            score_tangents(p, tile, t, buffers);
            let cross = t.v.as_ref().map(|tv| {
                p.against(tile, tv, p.width, g, buffers.cross, false);
                buffers.cross
            });
            let second = Second { known, adjoint, tangent, cross, delta, mean, middle };
            tile::run(&second, tile.keys, width);
        }
    }

    /// Adds one block of queries to the gradients of keys and values; writes the gradient of its queries.
    ///
    /// # Safety
    /// As for [`Pass::enter`], and no other thread writes the rows of the results.
    unsafe fn block(
        &self, block: &Block, buffers: &Buffers<T>, dq: Option<&MatrixBatch<T>>,
        dk: Option<(&Sink<T>, *mut T)>, dv: Option<(&Sink<T>, *mut T)>,
    ) {
        let (p, t) = (&self.p, self.second.as_ref().map(|second| &second.t));
        let Buffers { q: [_, q], tq: [_, tq], g: [_, g], scores, adjoint, moved, sums, .. } = *buffers;
        let (direct, values) = if t.is_some() { (scores, moved) } else { (adjoint, scores) };
        // SAFETY: the caller guarantees the operands, the buffers and sole access to the rows (`# Safety`).
        unsafe {
            self.enter(block, buffers);
            let size = p.depth * block.width;
            Shared::new(sums).part(0, size).fill(T::default());
            for tile in p.tiles(block) {
                self.derive(&tile, buffers);
                if let Some((sink, to)) = dv {
                    sink.add(&tile, to, values, g);
                }
                if let Some((sink, to)) = dk {
                    sink.add(&tile, to, direct, q);
                    if t.is_some_and(|t| t.q.is_some()) {
                        sink.add(&tile, to, adjoint, tq);
                    }
                }
                if dq.is_some() {
                    p.gather(&tile, &p.k, p.depth, direct, sums);
                    if let Some(tk) = t.and_then(|t| t.k.as_ref()) {
                        p.gather(&tile, tk, p.depth, adjoint, sums);
                    }
                }
            }
            if let Some(dq) = dq {
                let scale = T::from_f64(p.settings.scale);
                for x in Shared::new(sums).part(0, size) {
                    *x = scale.multiply_add::<false>(*x, T::default());
                }
                dq.queries(block).transpose_from(sums, block, p.depth);
            }
        }
    }
}

/// Returns the wanted gradients of queries, keys and values, in the layouts of these.
pub fn gradients<T: TileFloat>(pass: &Pass<T>, wanted: Wanted) -> Result<[Option<Array>; 3]> {
    if !(wanted.q || wanted.k || wanted.v) {
        return Ok([None, None, None]);
    }
    let p = &pass.p;
    let made = |wanted: bool, like: &MatrixBatch<T>| {
        wanted.then(|| laid_out_as(like.array.shape(), &like.array, T::DTYPE)).transpose()
    };
    let (dq, dk, dv) = (made(wanted.q, &p.q)?, made(wanted.k, &p.k)?, made(wanted.v, &p.v)?);
    let owners = p.owners(&p.k.array);
    let items = owners.own.numel();
    let blocks = owners.sharing.numel() * p.blocks();
    let splits = TASKS.div_ceil(items.max(1)).min(blocks).max(1);
    let sink = |out: &Option<Array>| out.as_ref().map(|out| Sink::<T>::new(out, items, splits)).transpose();
    let (to_q, to_k, to_v) = (dq.as_ref().map(MatrixBatch::new), sink(&dk)?, sink(&dv)?);
    let work = 3 * p.work() * blocks.div_ceil(splits);
    try_parallel_for(items * splits, WORK.div_ceil(work.max(1)), |range| {
        let buffers = pass.buffers()?;
        for task in range {
            let (item, split) = (task / splits, task % splits);
            let owner = coordinates(&owners.own, item);
            let [k_sink, v_sink] =
                [&to_k, &to_v].map(|sink| sink.as_ref().map(|sink| (sink, sink.rows(item, split, &owner))));
            for (sink, rows) in [k_sink, v_sink].into_iter().flatten() {
                // SAFETY: the rows belong to this task.
                unsafe { sink.clear(rows) };
            }
            for number in split * blocks / splits..(split + 1) * blocks / splits {
                let block = p.block(owners.at(&owner, number / p.blocks()), number % p.blocks());
                // SAFETY: every block belongs to one task, and so do the rows of keys and values.
                unsafe { pass.block(&block, &buffers, to_q.as_ref(), k_sink, v_sink) };
            }
        }
        Ok(())
    })?;
    [&to_k, &to_v].into_iter().flatten().for_each(|sink| sink.finish(&owners.own));
    Ok([dq, dk, dv])
}

/// Returns the gradient of an added mask in the shape of `like`, the mask: the cotangents of the scores,
/// summed over everything that shares it. A task owns rows of the mask and walks the batch elements that
/// share them, in order; so this is a pass of its own.
pub fn mask_gradient<T: TileFloat>(pass: &Pass<T>, like: &Array) -> Result<Array> {
    let p = &pass.p;
    let out = Array::full(like.shape(), 0.0, T::DTYPE)?;
    let owners = p.owners(like);
    // A mask with one row for all queries is one task; otherwise each block of queries owns its rows.
    let one_row = like.dim(like.rank() - 2) == 1;
    let (tasks, walked) = if one_row { (1, p.blocks()) } else { (p.blocks(), 1) };
    let to = MatrixBatch::<T>::new(&out);
    let numbers = owners.sharing.numel() * walked;
    try_parallel_for(owners.own.numel() * tasks, WORK.div_ceil((p.work() * numbers).max(1)), |range| {
        let buffers = pass.buffers()?;
        let from = if pass.second.is_some() { buffers.scores } else { buffers.adjoint };
        for task in range {
            let owner = coordinates(&owners.own, task / tasks);
            for number in 0..numbers {
                let block = p.block(owners.at(&owner, number / walked), task % tasks + number % walked);
                // SAFETY: the operands cover the problem; the rows of the mask belong to this task.
                unsafe {
                    pass.enter(&block, &buffers);
                    for tile in p.tiles(&block) {
                        pass.derive(&tile, &buffers);
                        add_transposed(&tile, from, to.queries(&block));
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(out)
}

/// Adds a transposed tile to the rows of a matrix of gradients: `to[query, key] += tile[key, query]`. Where
/// `to` has stride 0 this sums over the axis.
///
/// # Safety
/// `from` has the size of the tile; the matrix covers it, and only the caller accesses it.
unsafe fn add_transposed<T: TileFloat>(tile: &Tile, from: *const T, to: View<T>) {
    for i in 0..tile.block.queries {
        for j in 0..tile.keys {
            // SAFETY: the caller guarantees the tile and sole access to the matrix (`# Safety`).
            unsafe {
                let sum = to.place(i, tile.key + j);
                *sum = T::from_f64(1.0).multiply_add::<false>(*from.add(j * tile.block.width + i), *sum);
            }
        }
    }
}
