//! Attention, `softmax(scale Q K' + mask) V`, with first and second derivatives; never holds more than a tile
//! of the matrix of scores.
//!
//! A tile has `KEYS` keys in its rows and up to `QUERIES` queries in its columns (lanes). The softmax runs
//! down the columns. All products have the form that `src/cpu/attention/product.rs` computes without packing:
//! queries are transposed once per block, keys and values are read in place. The forward pass is the online
//! softmax; the others recompute the weights from the saved logarithm of the sum of exponentials (Dao et al.
//! 2022). Work is cut by shapes alone, so the bits do not depend on the number of threads.
//!
//! Read next, in `src/cpu/attention/`: product, operand, tile (the formulas), mask, forward, backward.

mod backward;
mod buffers;
mod forward;
mod mask;
mod operand;
mod product;
mod tile;

pub use crate::arguments::attention::{Dropout, Inputs, Known, OutputTangents, Settings, Tangents, Wanted};
use crate::cpu::prelude::*;
use crate::cpu::rows::norm::with_float;
use backward::{Pass, SecondOrder};
use mask::Mask;
use operand::{MatrixBatch, converted};
use product::{Product, TileFloat};

/// Lanes that are handled together; the width of a tile is a multiple of it.
const LANE: usize = 16;
/// Maximal number of queries of a tile: its columns.
const QUERIES: usize = 64;
/// The same for a short causal attention: narrower tiles hold fewer masked scores.
const FEW_QUERIES: usize = 32;
/// Maximal number of queries of a causal attention that counts as short.
const SHORT: usize = 512;
/// Maximal number of keys of a tile: its rows.
const KEYS: usize = 128;
/// Multiplications that are worth one chunk of a parallel loop.
const WORK: usize = 1 << 20;

/// Returns the result `[..., L, V]` and the logarithm of the sum of exponentials `[..., L, 1]`, which has the
/// compute dtype. A query that sees no key gets 0 and minus infinity.
pub fn forward(x: &Inputs) -> Result<(Array, Array)> {
    let (y, log_sum) = with_float!(x.q.dtype().compute(), T => forward::forward(&Problem::<T>::new(x)?)?);
    Ok((converted(&y, x.q.dtype())?, log_sum))
}

/// Returns the tangent of the result and the mean of the tangents of the scores.
pub fn jvp(x: &Inputs, known: &Known, t: &Tangents) -> Result<(Array, Array)> {
    let (y, mean) = with_float!(x.q.dtype().compute(), T => {
        let (out, log_sum) = (MatrixBatch::read(known.out)?, MatrixBatch::read(known.log_sum)?);
        forward::tangent(&Problem::<T>::new(x)?, &out, &log_sum, &TangentOperands::new(t)?)?
    });
    Ok((converted(&y, x.q.dtype())?, mean))
}

/// Returns the wanted gradients of queries, keys, values and mask, for the cotangent `g` of the result. With
/// `moved` it returns those of `<g, tangent of the result>` instead: the second derivative.
pub fn vjp(
    x: &Inputs, known: &Known, g: &Array, moved: Option<&OutputTangents>, wanted: Wanted,
) -> Result<[Option<Array>; 4]> {
    let dtype = x.q.dtype().compute();
    let grads = with_float!(dtype, T => {
        let pass = Pass::<T> {
            p: Problem::new(x)?,
            out: MatrixBatch::read(known.out)?,
            log_sum: MatrixBatch::read(known.log_sum)?,
            g: MatrixBatch::read(g)?,
            second: moved.map(SecondOrder::new).transpose()?,
        };
        let [dq, dk, dv] = backward::gradients(&pass, wanted)?;
        let mask = x.mask.filter(|_| wanted.mask);
        [dq, dk, dv, mask.map(|mask| backward::mask_gradient(&pass, mask)).transpose()?]
    });
    let mut rounded = [None, None, None, None];
    let dtypes = [x.q.dtype(), x.k.dtype(), x.v.dtype(), x.mask.map_or(dtype, Array::dtype)];
    for ((to, from), dtype) in rounded.iter_mut().zip(grads).zip(dtypes) {
        *to = from.map(|from| converted(&from, dtype)).transpose()?;
    }
    Ok(rounded)
}

/// Tangents in the compute dtype, each if its operand has one.
struct TangentOperands<T> {
    q: Option<MatrixBatch<T>>,
    k: Option<MatrixBatch<T>>,
    v: Option<MatrixBatch<T>>,
    mask: Option<MatrixBatch<T>>,
}

impl<T: TileFloat> TangentOperands<T> {
    fn new(t: &Tangents) -> Result<TangentOperands<T>> {
        let read = |t: Option<&Array>| t.map(MatrixBatch::read).transpose();
        Ok(TangentOperands { q: read(t.q)?, k: read(t.k)?, v: read(t.v)?, mask: read(t.mask)? })
    }
}

/// Sizes and operands of one attention, in the compute dtype.
struct Problem<T> {
    /// The batch axes.
    batch: Shape,
    /// `L`, the number of queries.
    queries: usize,
    /// `S`, the number of keys.
    keys: usize,
    /// `E`, the length of a query or key.
    depth: usize,
    /// `V`, the length of a value.
    width: usize,
    /// The queries, whose layout the results follow.
    q: MatrixBatch<T>,
    k: MatrixBatch<T>,
    v: MatrixBatch<T>,
    mask: Mask<T>,
    settings: Settings,
}

/// A block of the queries of one batch element.
#[derive(Clone, Copy)]
struct Block {
    /// Coordinates in the batch.
    at: [usize; MAX_RANK],
    /// Index of the first query.
    query: usize,
    /// Number of queries.
    queries: usize,
    /// `queries` rounded up to a multiple of [`LANE`].
    width: usize,
}

/// A block of queries, its columns, against some keys, its rows.
#[derive(Clone, Copy)]
struct Tile {
    block: Block,
    /// Index of the first key.
    key: usize,
    /// Number of keys.
    keys: usize,
}

/// Returns the coordinates of batch element `item`.
fn coordinates(batch: &Shape, mut item: usize) -> [usize; MAX_RANK] {
    let mut at = [0; MAX_RANK];
    for i in (0..batch.rank()).rev() {
        at[i] = item % batch.at(i);
        item /= batch.at(i);
    }
    at
}

/// Elements of the batch that share an operand whose batch axes may have length 1.
struct Owners {
    /// The batch axes of the operand.
    own: Shape,
    /// The axes along which elements share it.
    sharing: Shape,
}

impl Owners {
    /// Returns the coordinates of element `number` of those that share the operand's element at `owner`.
    fn at(&self, owner: &[usize; MAX_RANK], number: usize) -> [usize; MAX_RANK] {
        let mut at = coordinates(&self.sharing, number);
        at.iter_mut().zip(owner).for_each(|(at, &own)| *at += own);
        at
    }
}

impl<T: TileFloat> Problem<T> {
    fn new(x: &Inputs) -> Result<Problem<T>> {
        let rank = x.q.rank();
        Ok(Problem {
            batch: x.q.shape().part(0, rank - 2),
            queries: x.q.dim(rank - 2),
            keys: x.k.dim(rank - 2),
            depth: x.q.dim(rank - 1),
            width: x.v.dim(rank - 1),
            q: MatrixBatch::read(x.q)?,
            k: MatrixBatch::read(x.k)?,
            v: MatrixBatch::read(x.v)?,
            mask: match x.mask {
                None => Mask::None,
                Some(mask) if mask.dtype() == DType::Bool => Mask::Bool(MatrixBatch::new(mask)),
                Some(mask) => Mask::Add(MatrixBatch::read(mask)?),
            },
            settings: *x.settings,
        })
    }

    /// Returns who owns the elements of `like`, an operand.
    fn owners(&self, like: &Array) -> Owners {
        let own = like.shape().part(0, like.rank() - 2);
        let mut sharing = self.batch;
        for i in (0..own.rank()).filter(|&i| own.at(i) != 1) {
            sharing = sharing.with(i, 1);
        }
        Owners { own, sharing }
    }

    /// Queries per block.
    fn step(&self) -> usize {
        if self.settings.causal && self.queries <= SHORT { FEW_QUERIES } else { QUERIES }
    }

    /// Number of blocks of queries.
    fn blocks(&self) -> usize {
        self.queries.div_ceil(self.step())
    }

    fn block(&self, at: [usize; MAX_RANK], block: usize) -> Block {
        let query = block * self.step();
        let queries = self.step().min(self.queries - query);
        Block { at, query, queries, width: queries.next_multiple_of(LANE) }
    }

    /// Returns the tiles of a block; with causality, only those with a key that some query of the block sees.
    fn tiles(&self, block: &Block) -> impl Iterator<Item = Tile> + use<T> {
        let block = *block;
        let seen = block.query + block.queries;
        let seen = if self.settings.causal { self.keys.min(seen) } else { self.keys };
        (0..seen).step_by(KEYS).map(move |key| Tile { block, key, keys: KEYS.min(seen - key) })
    }

    /// Multiplications of one block in the forward pass: for the scores and for the sums of values.
    fn work(&self) -> usize {
        self.step().min(self.queries) * self.keys * (self.depth + self.width).max(1)
    }

    /// Computes the masked scores of a tile from the transposed and scaled queries of its block.
    ///
    /// # Safety
    /// `transposed` has the tile's width and `depth` rows; `scores` has capacity for the tile.
    unsafe fn scores(&self, tile: &Tile, transposed: *const T, scores: *mut T) {
        let block = &tile.block;
        // SAFETY: the caller guarantees both pointers (`# Safety`), and the operands cover the problem.
        unsafe {
            self.against(tile, &self.k, self.depth, transposed, scores, false);
            match &self.mask {
                Mask::None => {}
                Mask::Bool(take) => mask::bool_tile(tile, take.queries(block), scores),
                Mask::Add(add) => mask::add_tile(tile, add.queries(block), scores),
            }
            if self.settings.causal && tile.key + tile.keys > block.query {
                mask::causal_tile(tile, scores);
            }
        }
    }

    /// `to (+)= X b`: `X` has rows of keys or values, `b` transposed queries or cotangents.
    ///
    /// # Safety
    /// `b` has the tile's width and `depth` rows; `to` has capacity for the tile.
    unsafe fn against(
        &self, tile: &Tile, x: &MatrixBatch<T>, depth: usize, b: *const T, to: *mut T, add: bool,
    ) {
        let n = tile.block.width;
        let p = Product { m: tile.keys, n, k: depth, a: x.keys(tile), b, c: to, c_stride: n, add };
        // SAFETY: the caller guarantees the pointers (`# Safety`); `x` covers the keys of the tile.
        unsafe { T::product(&p) }
    }

    /// `to += X' tile`: `X` are rows of keys or values; `to` holds transposed sums with `rows` rows.
    ///
    /// # Safety
    /// `from` is a tile; `to` has the tile's width and `rows` rows.
    unsafe fn gather(&self, tile: &Tile, x: &MatrixBatch<T>, rows: usize, from: *const T, to: *mut T) {
        let (n, a) = (tile.block.width, x.keys(tile).transposed());
        let p = Product { m: rows, n, k: tile.keys, a, b: from, c: to, c_stride: n, add: true };
        // SAFETY: the caller guarantees both pointers (`# Safety`); `x` covers the keys of the tile.
        unsafe { T::product(&p) }
    }

    /// Writes the dropout factors of a tile to `to` and returns it; returns `None` without dropout.
    ///
    /// # Safety
    /// `to` has capacity for the tile if there is dropout.
    unsafe fn kept(&self, tile: &Tile, to: *mut T) -> Option<*mut T> {
        let dropout = self.settings.dropout.as_ref()?;
        // SAFETY: there is dropout, so the caller guarantees that `to` has capacity for the tile.
        unsafe { mask::dropout_tile(self, dropout, tile, to) };
        Some(to)
    }
}
