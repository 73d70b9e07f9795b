//! The reverse passes: gradients of queries, keys and values, of first and second order.
//!
//! A task owns the gradients of the keys and values of one element of their batch and walks all blocks of
//! queries that see them, so no two threads add to the same gradient. Where there are too few such elements
//! for the threads, the blocks are split and the partial sums are added in order.

use super::forward::{load_log_sum, score_tangents};
use super::operand::Operand;
use super::product::{Number, Product};
use super::tile::{self, Backward, Known, Second};
use super::{Block, KEYS, LANE, Problem, QUERIES, TangentOperands, Tile, WORK, Wanted, coordinates};
use crate::arguments::attention::laid_out_as;
use crate::array::Array;
use crate::array::shape::{MAX_RANK, Shape};
use crate::cpu::run::scratch::Scratch;
use crate::cpu::run::threads::{Shared, parallel_for, try_parallel_for};
use crate::error::Result;

/// Number of tasks to reach by splitting the blocks of queries, where keys and values have a smaller batch.
const TASKS: usize = 8;

/// The inputs of a reverse pass.
pub struct Pass<'a, T> {
    /// Sizes and operands.
    pub p: &'a Problem<'a, T>,
    /// The result of the forward pass.
    pub out: Operand<T>,
    /// The logarithms of sums of exponentials.
    pub log_sum: Operand<T>,
    /// The cotangent of the result.
    pub g: Operand<T>,
    /// The further inputs of the second derivative.
    pub second: Option<SecondOrder<T>>,
}

/// The further inputs of the second derivative.
pub struct SecondOrder<T> {
    /// The tangents.
    pub t: TangentOperands<T>,
    /// The tangent of the result.
    pub out: Operand<T>,
    /// The mean of the tangents of the scores.
    pub mean: Operand<T>,
}

/// The accumulator of the gradient of keys or values: the gradient itself, or separate rows where its rows
/// are not whole vectors or several tasks add to it.
struct Sink<T> {
    out: Operand<T>,
    apart: Option<Scratch<T>>,
    start: Shared<T>,
    splits: usize,
    keys: usize,
    columns: usize,
    pitch: usize,
    row: isize,
}

impl<T: Number> Sink<T> {
    fn new(out: &Array, items: usize, splits: usize) -> Result<Sink<T>> {
        let rank = out.rank();
        let (keys, columns) = (out.dim(rank - 2), out.dim(rank - 1));
        let pitch = columns.next_multiple_of(LANE);
        let direct = splits == 1 && columns == pitch && out.stride(rank - 1) == 1;
        let mut apart = (!direct).then(|| Scratch::zeroed(items * splits * keys * pitch)).transpose()?;
        let start = apart.as_mut().map_or(Shared::new(out.ptr::<T>()), Scratch::shared);
        let row = if direct { out.stride(rank - 2) } else { pitch as isize };
        Ok(Sink { out: Operand::new(out), apart, start, splits, keys, columns, pitch, row })
    }

    /// Returns the first row of one task.
    fn rows(&self, item: usize, split: usize, at: &[usize; MAX_RANK]) -> *mut T {
        match &self.apart {
            None => self.out.at(at).data.get(),
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
                for c in 0..self.columns {
                    // SAFETY: the row has `columns` elements, and the caller guarantees sole access.
                    unsafe { *to.offset(j as isize * self.row).add(c) = T::default() };
                }
            }
        }
    }

    /// Sums the separate rows of all tasks in order, into the gradient.
    fn finish(&self, batch: &Shape) {
        if self.apart.is_none() {
            return;
        }
        let work = self.keys * self.pitch * self.splits;
        parallel_for(batch.numel(), crate::cpu::run::threads::GRAIN.div_ceil(work.max(1)), |range| {
            for item in range {
                let at = coordinates(batch, item);
                let to = self.out.at(&at);
                let total = self.rows(item, 0, &at);
                // SAFETY: all parts of this element exist, and no other thread reads or writes them.
                unsafe {
                    for split in 1..self.splits {
                        let part = self.rows(item, split, &at);
                        for i in 0..self.keys * self.pitch {
                            *total.add(i) =
                                T::from_f64(1.0).multiply_add::<false>(*part.add(i), *total.add(i));
                        }
                    }
                    for j in 0..self.keys {
                        for c in 0..self.columns {
                            let place = j as isize * to.row + c as isize * to.column;
                            *to.data.get().offset(place) = *total.add(j * self.pitch + c);
                        }
                    }
                }
            }
        });
    }

    /// Adds `weights rows` to a tile's keys: `weights` is keys by queries, `rows` queries by [`Sink::pitch`].
    ///
    /// # Safety
    /// `to`, `weights` and `rows` have these sizes, and no other thread writes the rows of the sink.
    unsafe fn add(&self, tile: &Tile, to: *mut T, weights: *const T, rows: *const T) {
        let p = Product {
            m: tile.keys,
            n: self.pitch,
            k: tile.queries,
            a: weights,
            a_strides: (tile.width as isize, 1),
            b: rows,
            b_stride: self.pitch,
            c: to.wrapping_offset(tile.key as isize * self.row),
            c_stride: self.row as usize,
            add: true,
        };
        // SAFETY: the caller guarantees the three matrices (`# Safety`).
        unsafe { T::product(&p) }
    }
}

/// Scratch buffers for one block of queries: queries and cotangents (transposed and not), tiles, sums and
/// numbers per query.
pub struct Buffers<T> {
    q: [Scratch<T>; 2],
    g: [Scratch<T>; 2],
    tq: [Scratch<T>; 2],
    /// The scores; then the factor of cotangents in `dv` (first order) or of queries in `dk` (second).
    pub scores: Scratch<T>,
    /// The cotangents of the scores (first order) or of their tangents (second order).
    pub adjoint: Scratch<T>,
    moved: Scratch<T>,
    cross: Scratch<T>,
    keep: Scratch<T>,
    dq: Scratch<T>,
    columns: Scratch<T>,
}

impl<T: Number> Buffers<T> {
    /// Returns buffers for any block of the problem of `pass`.
    pub fn new(pass: &Pass<T>) -> Result<Buffers<T>> {
        let p = pass.p;
        let tile = QUERIES * KEYS.min(p.keys);
        let second = |n| if pass.second.is_some() { n } else { 0 };
        let (depth, width) = (p.depth.next_multiple_of(LANE), p.width.next_multiple_of(LANE));
        let block = |n: usize| Scratch::zeroed(QUERIES * n);
        Ok(Buffers {
            q: [block(depth)?, block(depth)?],
            g: [block(width)?, block(width)?],
            tq: [block(second(depth))?, block(second(depth))?],
            scores: Scratch::zeroed(tile)?,
            adjoint: Scratch::zeroed(tile)?,
            moved: Scratch::zeroed(second(tile))?,
            cross: Scratch::zeroed(second(tile))?,
            keep: Scratch::zeroed(if p.settings.dropout.is_some() { tile } else { 0 })?,
            dq: block(depth)?,
            columns: block(4)?,
        })
    }

    /// Returns per query: logarithm of sum, mean of cotangents, mean of tangents, mean of second derivatives.
    fn columns(&mut self) -> [Shared<T>; 4] {
        let start = self.columns.ptr();
        [0, 1, 2, 3].map(|i| Shared::new(start.wrapping_add(i * QUERIES)))
    }
}

impl<T: Number> Pass<'_, T> {
    /// Loads a block of queries, their cotangents, tangents and numbers per query into `buffers`.
    ///
    /// # Safety
    /// The operands cover the problem of `pass`, for which `buffers` was made.
    pub unsafe fn enter(&self, block: &Block, buffers: &mut Buffers<T>) {
        let (p, Block { at, query, queries, width }) = (self.p, *block);
        let (depth, values) = (p.depth.next_multiple_of(LANE), p.width.next_multiple_of(LANE));
        let [log_sum, delta, mean, middle] = buffers.columns();
        let (q, g) = (p.q.at(&at).skipping(query), self.g.at(&at).skipping(query));
        let scale = p.settings.scale;
        // SAFETY: the caller guarantees that the operands cover the block and that the buffers fit it.
        unsafe {
            q.transpose_into(buffers.q[0].ptr(), queries, width, p.depth, scale);
            q.copy_into(buffers.q[1].ptr(), queries, width, p.depth, depth, scale);
            g.transpose_into(buffers.g[0].ptr(), queries, width, p.width, 1.0);
            g.copy_into(buffers.g[1].ptr(), queries, width, p.width, values, 1.0);
            load_log_sum(block, self.log_sum.at(&at), log_sum.get());
            let transposed = buffers.g[0].ptr();
            self.dot(block, &self.out, transposed, delta);
            if let Some(second) = &self.second {
                self.dot(block, &second.out, transposed, middle);
                let from = second.mean.at(&at).skipping(query);
                for i in 0..width {
                    let r = if i < queries { from.get(i, 0) } else { T::default() };
                    *mean.get().add(i) = r;
                    let less = T::from_f64(-r.to_f64());
                    let m = middle.get().add(i);
                    *m = less.multiply_add::<false>(*delta.get().add(i), *m);
                }
                if let Some(tq) = &second.t.q {
                    let tq = tq.at(&at).skipping(query);
                    tq.transpose_into(buffers.tq[0].ptr(), queries, width, p.depth, scale);
                    tq.copy_into(buffers.tq[1].ptr(), queries, width, p.depth, depth, scale);
                }
            }
        }
    }

    /// Sets `to[i] = y[i] . g[i]` for the queries of a block, from transposed cotangents, and 0 beyond them.
    ///
    /// # Safety
    /// As for [`Pass::enter`].
    unsafe fn dot(&self, block: &Block, y: &Operand<T>, transposed: *const T, to: Shared<T>) {
        let y = y.at(&block.at).skipping(block.query);
        // SAFETY: the caller guarantees that `y` and `transposed` cover the block; `to` has its width.
        unsafe {
            let to = to.part(0, block.width);
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
    pub unsafe fn derive(&self, block: &Block, tile: &Tile, buffers: &mut Buffers<T>) {
        let (p, width) = (self.p, tile.width);
        let [log_sum, delta, mean, middle] = buffers.columns();
        let (q, g) = (buffers.q[0].ptr(), buffers.g[0].ptr());
        let (scores, adjoint, moved) = (buffers.scores.ptr(), buffers.adjoint.ptr(), buffers.moved.ptr());
        // SAFETY: the caller guarantees that the operands cover the block and that `buffers` holds it.
        unsafe {
            p.scores(block, tile, q, scores);
            p.against(tile, p.v.at(&block.at), p.width, g, adjoint, false);
            let keep = p.kept(block, tile, buffers.keep.ptr());
            let known = Known { scores: Shared::new(scores), keys: tile.keys, width, log_sum, keep };
            let adjoint = Shared::new(adjoint);
            let Some(SecondOrder { t, .. }) = &self.second else {
                return tile::run(&Backward { known, adjoint, delta }, width);
            };
            score_tangents(p, block, tile, t, (q, buffers.tq[0].ptr()), moved);
            let cross = t.v.as_ref().map(|tv| {
                let cross = buffers.cross.ptr();
                p.against(tile, tv.at(&block.at), p.width, g, cross, false);
                Shared::new(cross)
            });
            let tangent = Shared::new(moved);
            tile::run(&Second { known, adjoint, tangent, cross, delta, mean, middle }, width);
        }
    }

    /// Adds one block of queries to the gradients of keys and values; writes the gradient of its queries.
    ///
    /// # Safety
    /// As for [`Pass::enter`], and no other thread writes the rows of the results.
    unsafe fn block(
        &self,
        block: &Block,
        buffers: &mut Buffers<T>,
        dq: Option<&Operand<T>>,
        dk: Option<(&Sink<T>, *mut T)>,
        dv: Option<(&Sink<T>, *mut T)>,
    ) {
        let p = self.p;
        // SAFETY: the caller guarantees the operands, the buffers and sole access to the rows (`# Safety`).
        unsafe {
            self.enter(block, buffers);
            let sums = buffers.dq.ptr();
            (0..p.depth * block.width).for_each(|i| *sums.add(i) = T::default());
            for tile in p.tiles(block) {
                self.derive(block, &tile, buffers);
                let (scores, adjoint) = (buffers.scores.ptr(), buffers.adjoint.ptr());
                let (q, tq, g) = (buffers.q[1].ptr(), buffers.tq[1].ptr(), buffers.g[1].ptr());
                let moved = self.second.as_ref().map(|second| (&second.t, buffers.moved.ptr()));
                if let Some((sink, to)) = &dv {
                    sink.add(&tile, *to, moved.map_or(scores, |(_, moved)| moved), g);
                }
                let direct = if moved.is_some() { scores } else { adjoint };
                if let Some((sink, to)) = &dk {
                    sink.add(&tile, *to, direct, q);
                    if moved.is_some_and(|(t, _)| t.q.is_some()) {
                        sink.add(&tile, *to, adjoint, tq);
                    }
                }
                if dq.is_some() {
                    p.gather(&tile, p.k.at(&block.at), p.depth, direct, sums);
                    if let Some(tk) = moved.and_then(|(t, _)| t.k.as_ref()) {
                        p.gather(&tile, tk.at(&block.at), p.depth, adjoint, sums);
                    }
                }
            }
            if let Some(dq) = dq {
                for i in 0..p.depth * block.width {
                    let scale = T::from_f64(p.settings.scale);
                    *sums.add(i) = scale.multiply_add::<false>(*sums.add(i), T::default());
                }
                let to = dq.at(&block.at).skipping(block.query);
                to.transpose_from(sums, block.queries, block.width, p.depth);
            }
        }
    }
}

/// Returns the wanted gradients of queries, keys and values, in the layouts of `like`.
pub fn gradients<T: Number>(pass: &Pass<T>, like: [&Array; 3], wanted: Wanted) -> Result<[Option<Array>; 3]> {
    if !(wanted.q || wanted.k || wanted.v) {
        return Ok([None, None, None]);
    }
    let p = pass.p;
    let made =
        |wanted: bool, like: &Array| wanted.then(|| laid_out_as(like.shape(), like, T::DTYPE)).transpose();
    let (dq, dk, dv) = (made(wanted.q, like[0])?, made(wanted.k, like[1])?, made(wanted.v, like[2])?);
    let owners = like[1].shape().part(0, like[1].rank() - 2);
    // The axes along which batch elements share keys and values.
    let mut sharing = p.batch;
    for i in 0..owners.rank() {
        if owners.at(i) != 1 {
            sharing = sharing.with(i, 1);
        }
    }
    let blocks = sharing.numel() * p.blocks();
    let splits = TASKS.div_ceil(owners.numel().max(1)).min(blocks).max(1);
    let sink =
        |out: &Option<Array>| out.as_ref().map(|out| Sink::<T>::new(out, owners.numel(), splits)).transpose();
    let (to_q, to_k, to_v) = (dq.as_ref().map(Operand::new), sink(&dk)?, sink(&dv)?);
    let work = 3 * p.work() * blocks.div_ceil(splits);
    try_parallel_for(owners.numel() * splits, WORK.div_ceil(work.max(1)), |range| {
        let mut buffers = Buffers::new(pass)?;
        for task in range {
            let (item, split) = (task / splits, task % splits);
            let owner = coordinates(&owners, item);
            let rows = |sink: &Option<Sink<T>>| sink.as_ref().map(|s| s.rows(item, split, &owner));
            let (k_rows, v_rows) = (rows(&to_k), rows(&to_v));
            let (k_sink, v_sink) = (to_k.as_ref().zip(k_rows), to_v.as_ref().zip(v_rows));
            for (sink, rows) in [k_sink, v_sink].into_iter().flatten() {
                // SAFETY: the rows belong to this task.
                unsafe { sink.clear(rows) };
            }
            for number in split * blocks / splits..(split + 1) * blocks / splits {
                let mut at = coordinates(&sharing, number / p.blocks());
                at.iter_mut().zip(&owner).for_each(|(at, &own)| *at += own);
                let block = p.block(at, number % p.blocks());
                // SAFETY: every block belongs to one task, and so do the rows of keys and values.
                unsafe { pass.block(&block, &mut buffers, to_q.as_ref(), k_sink, v_sink) };
            }
        }
        Ok(())
    })?;
    [&to_k, &to_v].into_iter().flatten().for_each(|sink| sink.finish(&owners));
    Ok([dq, dk, dv])
}
