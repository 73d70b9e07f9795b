//! Products computed in tiles: what is packed, the order of tiles, and their split among threads.
//!
//! The loops are those of Goto and van de Geijn (Anatomy of high-performance matrix multiplication, 2008): a
//! block of the left operand stays in the second-level cache, while all its rows are multiplied by a strip of
//! the right operand in the first-level cache.

use super::mac::Kernels;
use super::pack::Strip;
use super::tile::Tile;
use super::{MatrixRef, Piece, Product, Target};
use crate::cpu::prelude::*;
use crate::cpu::run::scratch::Scratch;
use std::ops::Range;

/// Multiplications that are worth one chunk of a parallel loop.
pub(super) const WORK: usize = 1 << 20;
/// Elements that are worth one chunk of a parallel loop that packs.
pub(super) const COPY: usize = 1 << 15;
/// Bytes of the right operand packed at a time: they stay in even a shared third-level cache.
const RIGHT: usize = 2 << 20;
/// Bytes of a right operand from which on packing pays even if its columns are adjacent.
const SCATTERED: usize = 1 << 19;
/// Bytes of a row of the left operand from which packing pays: tiles load single elements at any stride.
const DEEP: usize = 16 << 10;
/// Bytes from one column of the left operand to the next from which packing pays: such lines share few sets.
const APART: usize = 1 << 10;
/// Columns from which on packing the left operand costs little beside what tiles of fixed strides gain.
const REUSED: usize = 384;
/// Steps packed at a time where rows are adjacent, so that all strips read a page before the next.
const NEAR: usize = 16;
/// Rows of a block: those of the left operand take a fifth of the second-level cache.
const ROWS: usize = 96;
/// Strips of rows up to which reading a right operand directly is cheaper than packing it.
const DIRECT: usize = 4;
/// Steps of a depth so short that writing the result takes longest; the result is then written row by row.
const SHALLOW: usize = 32;
/// Bytes of one row or column within the depth of a block.
pub(super) const DEPTH: usize = 2048;
/// Minimal number of pieces that a large enough product is cut into.
const PIECES: usize = 8;

/// A product that is computed in tiles.
pub struct Blocks<'a, M: Kernels> {
    p: Product<'a, M::Stored, M::Out>,
    /// Whether left and right were exchanged, so that the result comes out transposed.
    swapped: bool,
    pack_left: bool,
    pack_right: bool,
    /// Columns of a strip.
    width: usize,
    /// Packed steps of the whole depth, and of a block.
    steps: usize,
    depth: usize,
    /// Rows of a block.
    rows: usize,
}

// SAFETY: as for `Product`, whose maker guarantees that no other thread writes its memory.
unsafe impl<M: Kernels> Sync for Blocks<'_, M> {}

struct Block {
    rows: Range<usize>,
    columns: Range<usize>,
}

impl<'a, M: Kernels> Blocks<'a, M> {
    /// Plans how to compute a product, from its shape and strides alone.
    pub fn new(given: Product<'a, M::Stored, M::Out>) -> Self {
        let swapped = exchanging_pays::<M>(&given);
        let mut p = given;
        if swapped {
            (p.m, p.n, p.left, p.right) = (given.n, given.m, given.right, given.left);
        }
        let bytes = size_of::<M::In>();
        let steps = p.k.div_ceil(M::STEP);
        let large = steps * p.n * bytes >= SCATTERED;
        let beside = p.right.free == 1 || p.n == 1;
        let pack_right = M::STEP > 1 || !beside || (large && p.m > DIRECT * M::ROWS);
        let far = p.k * bytes >= DEEP || p.left.depth.unsigned_abs() * bytes >= APART;
        let reused = p.n >= REUSED && p.k * bytes >= DEPTH / 4;
        let pack_left = M::STEP > 1 || ((far && p.n > 4 * M::LANES || reused) && p.m > M::ROWS);
        let shallow = steps <= SHALLOW && p.n > 16 * M::LANES && !pack_left;
        let few = M::TILES.iter().take_while(|tiles| tiles[3].is_some()).count();
        let wide = !pack_right && p.m <= few;
        // A few rows against a large matrix: short blocks of the depth read its rows nearly in memory order.
        let depth = match p.m {
            1 if large && !pack_right => 16,
            m if m <= few && large && !pack_right => 64,
            _ => DEPTH / bytes,
        };
        Blocks {
            p,
            swapped,
            pack_left,
            pack_right,
            width: if wide { 4 } else { 2 } * M::LANES,
            steps,
            depth,
            rows: if shallow { M::ROWS } else { ROWS / M::ROWS * M::ROWS },
        }
    }

    /// Computes the product.
    ///
    /// # Safety
    /// As for [`super::Number::multiply`], and the processor has the instructions of `M`.
    pub unsafe fn run(&self) -> Result<()> {
        let fits = RIGHT / (self.steps * size_of::<M::In>()) / self.width * self.width;
        let limit = if self.unfinished() { 1024 } else { usize::MAX };
        let columns = if self.pack_right { fits.max(8 * self.width).min(limit) } else { limit };
        // About equally many columns at a time: each time, the left operand is packed again.
        let columns = self.p.n.div_ceil(self.p.n.div_ceil(columns)).next_multiple_of(self.width);
        for j in (0..self.p.n).step_by(columns) {
            let columns = j..self.p.n.min(j.saturating_add(columns));
            let strips = if self.pack_right { columns.len().div_ceil(self.width) } else { 0 };
            let mut right = Scratch::new(strips * self.width * self.steps)?;
            let to = right.shared();
            parallel_for(strips, COPY.div_ceil(self.width * self.steps), |range| {
                // SAFETY: the scratch memory has capacity for all strips, and every strip has its own part.
                range.for_each(|strip| unsafe { self.pack_strip(&columns, strip, to.get()) });
            });
            self.compute(&columns, self.pack_right.then_some(to))?;
        }
        Ok(())
    }

    /// Whether partial sums need a scratch buffer: the depth is split, and the target cannot hold them.
    fn unfinished(&self) -> bool {
        self.depth < self.steps && (self.swapped || matches!(self.p.target, Target::Sink(_)))
    }

    /// Packs one strip of the right operand over the whole depth.
    ///
    /// # Safety
    /// `to` has capacity for all strips of `columns`.
    unsafe fn pack_strip(&self, columns: &Range<usize>, strip: usize, to: *mut M::In) {
        let j = columns.start + strip * self.width;
        // SAFETY: the columns exist, and the caller guarantees the capacity of `to`.
        unsafe {
            let (from, lane, step) = (self.p.right.at(j, 0), self.p.right.free, self.p.right.depth);
            let (lanes, to) = (self.width.min(columns.end - j), to.add(strip * self.width * self.steps));
            M::PACK(&Strip { from, lane, step, lanes, k: self.p.k, to, width: self.width });
        }
    }

    /// Computes some columns, given their packed copy if they are packed.
    fn compute(&self, columns: &Range<usize>, right: Option<Shared<M::In>>) -> Result<()> {
        let p = &self.p;
        // Blocks of rows: of about equal height and even in number, so that two threads get equal work.
        let (strips, height) = (p.m.div_ceil(M::ROWS), self.rows / M::ROWS);
        let down = strips.div_ceil(height);
        let down = if down > 1 && height > 1 { down.next_multiple_of(2) } else { down };
        let top = |block: usize| p.m.min(block * strips / down * M::ROWS);
        let strips = columns.len().div_ceil(self.width);
        // With few rows, the columns are cut too.
        let small = WORK.div_ceil(self.rows.min(p.m) * self.width * p.k);
        let across = PIECES.div_ceil(down).min(strips / small).max(1);
        let part = strips.div_ceil(across);
        let across = strips.div_ceil(part);
        let work = self.rows.min(p.m) * (part * self.width).min(columns.len()) * p.k;
        try_parallel_for(down * across, WORK.div_ceil(work), |range| {
            for piece in range {
                let (i, j) = (piece / across, columns.start + piece % across * part * self.width);
                let block =
                    Block { rows: top(i)..top(i + 1), columns: j..columns.end.min(j + part * self.width) };
                let right = right.map(|r| r.get().wrapping_add((j - columns.start) * self.steps));
                // SAFETY: the caller of `run` guarantees operands and result; blocks are disjoint.
                unsafe { self.block(&block, right)? };
            }
            Ok(())
        })
    }

    /// Computes one block of the result.
    ///
    /// # Safety
    /// As for [`Blocks::run`]; `right` is the packed copy of the block's columns, if they are packed.
    unsafe fn block(&self, block: &Block, right: Option<*mut M::In>) -> Result<()> {
        let strips = block.rows.len().div_ceil(M::ROWS);
        let packed = strips * Self::packed_strip(self.depth.min(self.steps));
        let mut left = Scratch::new(if self.pack_left { packed } else { 0 })?;
        let size = block.rows.len() * block.columns.len();
        // Partial sums.
        let mut sums = Scratch::new(if self.unfinished() { size } else { 0 })?;
        let (left, wait) = (left.ptr(), self.unfinished().then(|| sums.ptr()));
        for from in (0..self.steps).step_by(self.depth) {
            let steps = from..self.steps.min(from + self.depth);
            if self.pack_left {
                // SAFETY: the caller guarantees the operands; `left` has capacity for the packed block.
                unsafe { self.pack_block(block, &steps, left) };
            }
            for strip in 0..block.columns.len().div_ceil(self.width) {
                let right = match right {
                    Some(right) => {
                        let at = right.wrapping_add((strip * self.steps + from) * self.width);
                        (at.cast_const(), self.width as isize)
                    }
                    None => {
                        let at = self.p.right.at(block.columns.start + strip * self.width, from);
                        (at.cast(), self.p.right.depth)
                    }
                };
                // SAFETY: the caller guarantees operands and result; `right` points to this strip.
                unsafe { self.strip(block, &steps, strip, left, right, wait)? };
            }
        }
        Ok(())
    }

    /// Returns the rows of strip `s` of a block; strips have about equal heights, since low ones are slow.
    fn rows_of(&self, block: &Block, s: usize) -> Range<usize> {
        let (rows, strips) = (block.rows.len(), block.rows.len().div_ceil(M::ROWS));
        block.rows.start + s * rows / strips..block.rows.start + (s + 1) * rows / strips
    }

    /// Elements of a packed strip of the left operand: packing overwrites a vector behind the last step.
    fn packed_strip(steps: usize) -> usize {
        M::ROWS * steps + M::LANES
    }

    /// Packs the left operand of a block.
    ///
    /// # Safety
    /// `to` has capacity for the block's rows, over `steps`.
    unsafe fn pack_block(&self, block: &Block, steps: &Range<usize>, to: *mut M::In) {
        let at_a_time = if self.p.left.free == 1 { NEAR } else { steps.len() };
        for step in steps.clone().step_by(at_a_time) {
            let first = step * M::STEP;
            for s in 0..block.rows.len().div_ceil(M::ROWS) {
                let rows = self.rows_of(block, s);
                // SAFETY: the rows exist, and the caller guarantees the capacity of `to`.
                unsafe {
                    let (from, lane) = (self.p.left.at(rows.start, first), self.p.left.free);
                    let k = (at_a_time.min(steps.end - step) * M::STEP).min(self.p.k - first);
                    let to = to.add(s * Self::packed_strip(steps.len()) + (step - steps.start) * M::ROWS);
                    let (step, lanes) = (self.p.left.depth, rows.len());
                    M::PACK(&Strip { from, lane, step, lanes, k, to, width: M::ROWS });
                }
            }
        }
    }

    /// Computes one strip of columns of a block: all its rows, over a part of the depth.
    ///
    /// # Safety
    /// As for [`Blocks::block`]; `left` has the packed left operand, `wait` capacity for the block's partial
    /// sums; `right` is the strip's right operand and its stride from step to step.
    unsafe fn strip(
        &self, block: &Block, steps: &Range<usize>, strip: usize, left: *mut M::In,
        right: (*const M::In, isize), wait: Option<*mut M::Out>,
    ) -> Result<()> {
        let j = block.columns.start + strip * self.width;
        let columns = self.width.min(block.columns.end - j);
        let done = steps.end == self.steps;
        let piece =
            |at, stride| Piece { at, stride, i: block.rows.start, j, rows: block.rows.len(), columns };
        // SAFETY: the caller guarantees operands and buffers, and the piece is this block's alone.
        unsafe {
            match (self.p.target, wait) {
                (_, Some(wait)) => {
                    let piece = piece(wait.add(strip * self.width), block.columns.len() as isize);
                    self.tiles(block, steps, left, right, &piece, steps.start > 0);
                    if done { self.deliver(piece) } else { Ok(()) }
                }
                (Target::Memory(out, stride, sink), None) if !self.swapped => {
                    let at = out.offset(block.rows.start as isize * stride + j as isize);
                    let piece = piece(at, stride);
                    self.tiles(block, steps, left, right, &piece, steps.start > 0);
                    if let (true, Some(sink)) = (done, sink) {
                        sink.take(piece);
                    }
                    Ok(())
                }
                _ => {
                    let mut result = Scratch::new(block.rows.len() * self.width)?;
                    let piece = piece(result.ptr(), self.width as isize);
                    self.tiles(block, steps, left, right, &piece, false);
                    self.deliver(piece)
                }
            }
        }
    }

    /// Computes the tiles of a strip.
    ///
    /// # Safety
    /// As for [`Blocks::strip`]; the piece has capacity for the results.
    unsafe fn tiles(
        &self, block: &Block, steps: &Range<usize>, left: *mut M::In, (b, b_step): (*const M::In, isize),
        piece: &Piece<M::Out>, add: bool,
    ) {
        let vectors = piece.columns.div_ceil(M::LANES);
        for s in 0..block.rows.len().div_ceil(M::ROWS) {
            let rows = self.rows_of(block, s);
            let (a, a_row, a_step) = if self.pack_left {
                (left.wrapping_add(s * Self::packed_strip(steps.len())).cast_const(), 1, M::ROWS as isize)
            } else {
                (self.p.left.at(rows.start, steps.start).cast(), self.p.left.free, self.p.left.depth)
            };
            let (columns, out_row) = (piece.columns, piece.stride);
            let out = piece.at.wrapping_offset((rows.start - piece.i) as isize * out_row);
            let tile = Tile { k: steps.len(), a, a_row, a_step, b, b_step, out, out_row, columns, add };
            if let Some(compute) = M::TILES[rows.len() - 1][vectors - 1] {
                // SAFETY: the caller guarantees the operands and the piece, and the tile lies inside it.
                unsafe { compute(&tile) };
            }
        }
    }

    /// Moves a finished piece from scratch to the target, transposed where the operands were exchanged.
    ///
    /// # Safety
    /// No other thread computes this piece.
    unsafe fn deliver(&self, from: Piece<M::Out>) -> Result<()> {
        // SAFETY: the caller guarantees that this part of the target is written here alone.
        unsafe {
            if let (Target::Sink(sink), false) = (self.p.target, self.swapped) {
                sink.take(from);
                return Ok(());
            }
            let (to, sink, _memory) = self.p.target.piece((from.j, from.i), (from.columns, from.rows))?;
            for i in 0..to.rows {
                for j in 0..to.columns {
                    let at = to.at.offset(i as isize * to.stride + j as isize);
                    *at = *from.at.offset(j as isize * from.stride + i as isize);
                }
            }
            if let Some(sink) = sink {
                sink.take(to);
            }
        }
        Ok(())
    }
}

/// Whether to compute the transposed product of the transposed operands, and transpose its result back.
fn exchanging_pays<M: Kernels>(p: &Product<M::Stored, M::Out>) -> bool {
    let MatrixRef { free, depth, .. } = p.right;
    if free == 1 || p.n == 1 {
        // A narrow result with a left operand whose rows are adjacent: vectors along the rows are full.
        return p.n <= M::LANES / 4 && p.left.free == 1 && p.m > 4 * p.n;
    }
    // The right operand would have to be packed; packing the smaller left one serves as well.
    depth == 1 && 4 * p.m <= p.n && p.m >= M::LANES / 2 + 4
}
