//! Attention, `softmax(scale Q K' + mask) V`, with first and second derivatives; never holds more than a tile
//! of the matrix of scores.
//!
//! A tile has `KEYS` keys in its rows and up to `QUERIES` queries in its columns (lanes). The softmax runs
//! down the columns. All products have the form that `src/cpu/attention/product.rs` computes without packing:
//! queries are transposed once per block, keys and values are read in place. The forward pass is the online
//! softmax; the others recompute the weights from the saved logarithm of the sum of exponentials (Dao et al.
//! 2022). Work is cut by shapes alone, so the bits do not depend on the number of threads.
//!
//! Read next, in `src/cpu/attention/`: product, operand, tile (the formulas), mask, forward, backward,
//! mask_gradient.

mod backward;
mod forward;
mod mask;
mod mask_gradient;
mod operand;
mod product;
mod tile;

pub use crate::arguments::attention::{Dropout, Inputs, Known, OutputTangents, Settings, Tangents, Wanted};
use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::shape::{MAX_RANK, Shape};
use crate::cpu::rows::norm::with_float;
use crate::error::Result;
use mask::Mask;
use operand::{Operand, View, converted};
use product::{Number, Product};

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
    let wide = Wide::new(x)?;
    let (y, log_sum) = with_float!(wide.q.dtype(), T => forward::forward(&wide.problem::<T>())?);
    Ok((converted(&y, x.q.dtype())?, log_sum))
}

/// Returns the tangent of the result and the mean of the tangents of the scores.
pub fn jvp(x: &Inputs, known: &Known, t: &Tangents) -> Result<(Array, Array)> {
    let wide = Wide::new(x)?;
    let dtype = wide.q.dtype();
    let (out, log_sum) = (converted(known.out, dtype)?, converted(known.log_sum, dtype)?);
    let t = WideTangents::new(t, dtype)?;
    let (y, mean) = with_float!(dtype, T => {
        forward::tangent(&wide.problem::<T>(), &Operand::new(&out), &Operand::new(&log_sum), &t.operands())?
    });
    Ok((converted(&y, x.q.dtype())?, mean))
}

/// Returns the wanted gradients of queries, keys, values and mask, for the cotangent `g` of the result. With
/// `moved` it returns those of `<g, tangent of the result>` instead: the second derivative.
pub fn vjp(
    x: &Inputs,
    known: &Known,
    g: &Array,
    moved: Option<&OutputTangents>,
    wanted: Wanted,
) -> Result<[Option<Array>; 4]> {
    let wide = Wide::new(x)?;
    let dtype = wide.q.dtype();
    let (out, log_sum, g) =
        (converted(known.out, dtype)?, converted(known.log_sum, dtype)?, converted(g, dtype)?);
    let moved = moved
        .map(|m| {
            Ok((WideTangents::new(&m.tangents, dtype)?, converted(m.out, dtype)?, converted(m.mean, dtype)?))
        })
        .transpose()?;
    let grads = with_float!(dtype, T => {
        let problem = wide.problem::<T>();
        let pass = backward::Pass {
            p: &problem,
            out: Operand::<T>::new(&out),
            log_sum: Operand::new(&log_sum),
            g: Operand::new(&g),
            second: moved.as_ref().map(|(t, out, mean)| backward::SecondOrder {
                t: t.operands(),
                out: Operand::new(out),
                mean: Operand::new(mean),
            }),
        };
        let [dq, dk, dv] = backward::gradients(&pass, [&wide.q, &wide.k, &wide.v], wanted)?;
        let dmask = match (&wide.mask, wanted.mask) {
            (Some(mask), true) => Some(mask_gradient::gradient(&pass, mask)?),
            _ => None,
        };
        [dq, dk, dv, dmask]
    });
    let mut rounded = [None, None, None, None];
    let dtypes = [x.q.dtype(), x.k.dtype(), x.v.dtype(), x.mask.map_or(dtype, Array::dtype)];
    for ((to, from), dtype) in rounded.iter_mut().zip(grads).zip(dtypes) {
        *to = from.map(|from| converted(&from, dtype)).transpose()?;
    }
    Ok(rounded)
}

/// The operands in the compute dtype.
struct Wide<'a> {
    q: Array,
    k: Array,
    v: Array,
    mask: Option<Array>,
    settings: &'a Settings,
}

impl<'a> Wide<'a> {
    fn new(x: &Inputs<'a>) -> Result<Wide<'a>> {
        let dtype = x.q.dtype().compute();
        let mask = x
            .mask
            .map(|mask| if mask.dtype() == DType::Bool { Ok(mask.clone()) } else { converted(mask, dtype) });
        Ok(Wide {
            q: converted(x.q, dtype)?,
            k: converted(x.k, dtype)?,
            v: converted(x.v, dtype)?,
            mask: mask.transpose()?,
            settings: x.settings,
        })
    }

    fn problem<T: Number>(&self) -> Problem<'_, T> {
        let (q, k, v) = (&self.q, &self.k, &self.v);
        let rank = q.rank();
        let batch = q.shape().part(0, rank - 2);
        Problem {
            like: q,
            batch,
            items: batch.numel(),
            queries: q.dim(rank - 2),
            keys: k.dim(rank - 2),
            depth: q.dim(rank - 1),
            width: v.dim(rank - 1),
            q: Operand::new(q),
            k: Operand::new(k),
            v: Operand::new(v),
            mask: match &self.mask {
                None => Mask::None,
                Some(mask) if mask.dtype() == DType::Bool => Mask::Bool(Operand::new(mask)),
                Some(mask) => Mask::Add(Operand::new(mask)),
            },
            settings: self.settings,
        }
    }
}

/// Tangents in the compute dtype.
struct WideTangents([Option<Array>; 4]);

impl WideTangents {
    fn new(t: &Tangents, dtype: DType) -> Result<WideTangents> {
        let wide = |t: Option<&Array>| t.map(|t| converted(t, dtype)).transpose();
        Ok(WideTangents([wide(t.q)?, wide(t.k)?, wide(t.v)?, wide(t.mask)?]))
    }

    fn operands<T: Number>(&self) -> TangentOperands<T> {
        let [q, k, v, mask] = self.0.each_ref().map(|t| t.as_ref().map(Operand::new));
        TangentOperands { q, k, v, mask }
    }
}

/// Tangents as strided operands, each if its operand has one.
struct TangentOperands<T> {
    q: Option<Operand<T>>,
    k: Option<Operand<T>>,
    v: Option<Operand<T>>,
    mask: Option<Operand<T>>,
}

/// Sizes and operands of one attention.
struct Problem<'a, T> {
    /// The queries, whose layout the results follow.
    like: &'a Array,
    /// The batch axes.
    batch: Shape,
    /// Number of batch elements.
    items: usize,
    /// `L`, the number of queries.
    queries: usize,
    /// `S`, the number of keys.
    keys: usize,
    /// `E`, the length of a query or key.
    depth: usize,
    /// `V`, the length of a value.
    width: usize,
    q: Operand<T>,
    k: Operand<T>,
    v: Operand<T>,
    mask: Mask<T>,
    settings: &'a Settings,
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
    query: usize,
    queries: usize,
    width: usize,
    key: usize,
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

impl<T: Number> Problem<'_, T> {
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
        let Block { query, queries, width, .. } = *block;
        let seen = if self.settings.causal { self.keys.min(query + queries) } else { self.keys };
        (0..seen).step_by(KEYS).map(move |key| Tile {
            query,
            queries,
            width,
            key,
            keys: KEYS.min(seen - key),
        })
    }

    /// Multiplications of one block in the forward pass: for the scores and for the sums of values.
    fn work(&self) -> usize {
        self.step().min(self.queries) * self.keys * (self.depth + self.width).max(1)
    }

    /// Computes the masked scores of a tile from the transposed and scaled queries of its block.
    ///
    /// # Safety
    /// `transposed` has the tile's width and `depth` rows; `scores` has capacity for the tile.
    unsafe fn scores(&self, block: &Block, tile: &Tile, transposed: *const T, scores: *mut T) {
        // SAFETY: the caller guarantees both pointers (`# Safety`), and the operands cover the problem.
        unsafe {
            self.against(tile, self.k.at(&block.at), self.depth, transposed, scores, false);
            match &self.mask {
                Mask::None => {}
                Mask::Bool(take) => mask::bool_tile(tile, take.at(&block.at), scores),
                Mask::Add(add) => mask::add_tile(tile, add.at(&block.at), scores),
            }
            if self.settings.causal && tile.key + tile.keys > tile.query {
                mask::causal_tile(tile, scores);
            }
        }
    }

    /// `to (+)= X transposed`: `X` has rows of keys or values, `transposed` queries or cotangents.
    ///
    /// # Safety
    /// As for [`Problem::scores`].
    unsafe fn against(
        &self,
        tile: &Tile,
        x: View<T>,
        depth: usize,
        transposed: *const T,
        to: *mut T,
        add: bool,
    ) {
        let x = x.skipping(tile.key);
        let (a, a_strides) = (x.data.get().cast_const(), x.strides());
        let (m, n, w) = (tile.keys, tile.width, tile.width);
        let p = Product { m, n, k: depth, a, a_strides, b: transposed, b_stride: w, c: to, c_stride: w, add };
        // SAFETY: the caller guarantees the pointers (`# Safety`); `x` covers the keys of the tile.
        unsafe { T::product(&p) }
    }

    /// `to += X' tile`: `X` are rows of keys or values; `to` holds transposed sums with `rows` rows.
    ///
    /// # Safety
    /// `from` is a tile; `to` has the tile's width and `rows` rows.
    unsafe fn gather(&self, tile: &Tile, x: View<T>, rows: usize, from: *const T, to: *mut T) {
        let x = x.skipping(tile.key);
        let (a, a_strides) = (x.data.get().cast_const(), x.transposed());
        let (n, k, w) = (tile.width, tile.keys, tile.width);
        let p = Product { m: rows, n, k, a, a_strides, b: from, b_stride: w, c: to, c_stride: w, add: true };
        // SAFETY: the caller guarantees both pointers (`# Safety`); `x` covers the keys of the tile.
        unsafe { T::product(&p) }
    }

    /// Writes the dropout factors of a tile to `to`; returns `None` without dropout.
    ///
    /// # Safety
    /// `to` has capacity for the tile if there is dropout.
    unsafe fn kept(
        &self,
        block: &Block,
        tile: &Tile,
        to: *mut T,
    ) -> Option<crate::cpu::run::threads::Shared<T>> {
        let dropout = self.settings.dropout.as_ref()?;
        // SAFETY: there is dropout, so the caller guarantees that `to` has capacity for the tile.
        unsafe { mask::dropout_tile(dropout, (self.queries, self.keys), (&self.batch, &block.at), tile, to) };
        Some(crate::cpu::run::threads::Shared::new(to))
    }
}
