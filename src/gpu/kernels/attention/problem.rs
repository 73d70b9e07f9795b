//! One attention as its passes see it: operands with tangents, the kernel of a pass, and its parameters.

use crate::arguments::attention::{Inputs, Settings, Tangents};
use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::error::Result;
use crate::gpu::kernels::copy::{cast, copy_into, index_of};
use crate::gpu::kernels::params::Params;
use crate::gpu::kernels::parts::check_rounds;
use crate::gpu::shader::template::{Template, per_word};
use crate::gpu::{kernel, launch, variant};

/// Rows and columns of a tile.
pub const SIDE: usize = 64;

/// An operand; its tangent, if any, follows it in the same buffer.
struct Operand {
    x: Array,
    /// The distance from the operand to its tangent in elements; 0 without one.
    tangent: usize,
}

impl Operand {
    fn new(x: &Array, t: Option<&Array>) -> Result<Operand> {
        let Some(t) = t else { return Ok(Operand { x: x.clone(), tangent: 0 }) };
        // Axes along which both are broadcast are stored once.
        let rank = x.rank();
        let stretched = |i: usize| x.stride(i) == 0 && t.stride(i) == 0;
        let core = (0..rank).fold(x.shape(), |s, i| if stretched(i) { s.with(i, s.at(i).min(1)) } else { s });
        let tangent = core.numel();
        let both = Array::empty(Shape::new(&[2 * tangent])?, x.dtype(), x.device())?;
        let half = |start: usize| both.with_layout(core, &core.strides()[..rank], start);
        for (from, start) in [(x, 0), (t, tangent)] {
            let first = from.slice_view(&vec![0; rank], &vec![1; rank], &core)?;
            let first = if first.dtype() == x.dtype() { first } else { cast(&first, x.dtype())? };
            copy_into(&half(start)?, &first)?;
        }
        Ok(Operand { x: half(0)?.expand(&x.shape())?, tangent })
    }

    /// Adds the offset, the strides of rows and columns, and the distance to the tangent.
    fn write(&self, params: &mut Params) {
        let rank = self.x.rank();
        params.word(self.x.offset()).word(stride(&self.x, rank - 2) as usize);
        params.word(stride(&self.x, rank - 1) as usize).word(self.tangent);
    }
}

/// The stride of an axis; 0 for an axis of length 1, which broadcasts.
fn stride(x: &Array, axis: usize) -> i64 {
    if x.dim(axis) == 1 { 0 } else { x.stride(axis) as i64 }
}

/// The strides of the batch axes.
fn batch_strides(x: &Array) -> impl Iterator<Item = i64> + '_ {
    (0..x.rank() - 2).map(|i| stride(x, i))
}

/// Whether rows of all these lengths start on whole words.
pub fn words_start_rows(dtype: DType, columns: &[usize]) -> bool {
    columns.iter().all(|n| n.is_multiple_of(per_word(dtype) as usize))
}

/// The number of blocks of columns per workgroup, and the number of workgroups for all `columns`. Two blocks
/// if there is more than one, since every workgroup recomputes the scores.
pub fn shared_out(columns: usize) -> (usize, usize) {
    let blocks = if columns > SIDE { 2 } else { 1 };
    (blocks, columns.div_ceil(SIDE * blocks))
}

/// The arrays of one launch besides the operands, and the distribution of its work.
pub struct Pass<'a> {
    /// The cotangent of the result, or the result.
    pub g: &'a Array,
    /// Numbers per query.
    pub stats: &'a Array,
    pub out: &'a Array,
    pub out2: &'a Array,
    /// The batch axes distributed over workgroups: length 1 where each workgroup loops over the whole axis.
    pub own: Shape,
    /// The number of tiles of queries, or of keys.
    pub tiles: usize,
    /// The number of tiles that a workgroup loops over in each element of the batch.
    pub walked: usize,
    /// The number of groups of result columns; for the gradient of a mask, of tiles of keys.
    pub chunks: usize,
    /// The number of blocks of [`SIDE`] result columns per workgroup.
    pub blocks: usize,
    /// Rows and columns of the gradient of a mask.
    pub mask: Option<(usize, usize)>,
}

/// Sizes and operands of one attention.
pub struct Problem<'a> {
    q: Operand,
    k: Operand,
    v: Operand,
    mask: Option<Operand>,
    /// The operands that have tangents: bit `i` for operand `i`.
    has_tangent: u64,
    settings: &'a Settings,
    /// The batch axes.
    pub batch: Shape,
    /// `L`.
    pub queries: usize,
    /// `S`.
    pub keys: usize,
    /// `E`.
    pub depth: usize,
    /// `V`.
    pub width: usize,
}

impl<'a> Problem<'a> {
    pub fn new(x: &Inputs<'a>, t: &Tangents) -> Result<Problem<'a>> {
        let rank = x.q.rank();
        let there = [t.q, t.k, t.v, t.mask].map(|t| t.is_some());
        Ok(Problem {
            q: Operand::new(x.q, t.q)?,
            k: Operand::new(x.k, t.k)?,
            v: Operand::new(x.v, t.v)?,
            mask: x.mask.map(|mask| Operand::new(mask, t.mask)).transpose()?,
            has_tangent: there.iter().enumerate().fold(0, |bits, (i, &there)| bits | u64::from(there) << i),
            settings: x.settings,
            batch: x.q.shape().part(0, rank - 2),
            queries: x.q.dim(rank - 2),
            keys: x.k.dim(rank - 2),
            depth: x.q.dim(rank - 1),
            width: x.v.dim(rank - 1),
        })
    }

    /// Runs a pass: entry point `entry` of `source`. `more` replaces further lines, which `key` identifies.
    pub fn run(
        &self,
        pass: &Pass,
        entry: &'static str,
        source: &'static str,
        key: &[u64],
        more: impl FnOnce(&mut Template),
    ) -> Result<()> {
        let index = index_of(pass.out)?;
        check_rounds(index, "attention", self.rounds(pass))?;
        let mask = self.mask.as_ref().map_or(&self.q.x, |mask| &mask.x);
        let kind = self.mask.as_ref().map_or(0, |mask| if mask.x.dtype() == DType::Bool { 1 } else { 2 });
        let (causal, dropout) = (self.settings.causal, self.settings.dropout.is_some());
        let loads = [("q", &self.q.x), ("k", &self.k.x), ("v", &self.v.x), ("mask", mask), ("g", pass.g)];
        let mut parts = vec![kind, u64::from(causal), u64::from(dropout), self.has_tangent];
        parts.extend(loads.iter().map(|(_, x)| x.dtype() as u64));
        parts.extend([pass.out.dtype() as u64, pass.out2.dtype() as u64, pass.blocks as u64]);
        parts.extend(key);
        let kernel = kernel(index, entry, variant(&parts), entry, || {
            let mut text = Template::new(source, DType::F32);
            loads.iter().for_each(|(name, x)| {
                text.load(name, x.dtype());
            });
            text.store("out", pass.out.dtype()).elements_per_word(pass.out.dtype()).math(&["exp"]);
            text.flag("CAUSAL", causal).flag("DROPOUT", dropout);
            text.set("const MASK", format!("const MASK: u32 = {kind}u;"));
            text.set("const BLOCKS", format!("const BLOCKS: u32 = {}u;", pass.blocks));
            text.set("const MOVES", format!("const MOVES: u32 = {}u;", self.has_tangent));
            more(&mut text);
            text.build()
        })?;
        let [q, k, v] = [&self.q, &self.k, &self.v].map(|operand| operand.x.buffer());
        let buffers = [
            q,
            k,
            v,
            mask.buffer(),
            pass.g.buffer(),
            pass.stats.buffer(),
            pass.out.buffer(),
            pass.out2.buffer(),
        ];
        let groups = pass.own.numel() as u64 * pass.tiles as u64 * pass.chunks as u64;
        launch(index, &kernel, &buffers, self.params(pass).words(), groups)
    }

    /// The rounds of an invocation's loops, or slightly more: products of two tiles take 17 for 16 of their
    /// columns, and those with a tile of scores 68 for each block.
    fn rounds(&self, pass: &Pass) -> usize {
        let (products, collected) = if self.has_tangent == 0 { (2, 2) } else { (5, 3) };
        let depth = self.depth.max(self.width).div_ceil(16);
        let tile = 16 + 17 * (products * depth + 4 * collected * pass.blocks);
        let sharing = self.batch.numel() / pass.own.numel().max(1);
        tile.saturating_mul(pass.walked * sharing)
    }

    /// The words of `Params` in `shaders/lib/attention_tiles.wgsl`.
    fn params(&self, pass: &Pass) -> Params {
        let mut params = Params::default();
        params.eight(self.batch.iter().map(|d| d as i64));
        for x in [&self.q.x, &self.k.x, &self.v.x] {
            params.eight(batch_strides(x));
        }
        params.eight(self.mask.iter().flat_map(|mask| batch_strides(&mask.x)));
        for x in [pass.g, pass.out, pass.out2] {
            params.eight(batch_strides(x));
        }
        params.eight(self.draws());
        let walked = (0..self.batch.rank()).filter(|&i| pass.own.at(i) != self.batch.at(i));
        let (bits, sharing) = walked.fold((0, 1), |(bits, n), i| (bits | 1 << i, n * self.batch.at(i)));
        params.word(self.batch.rank()).word(bits).word(pass.own.numel()).word(sharing);
        params.word(pass.tiles).word(pass.chunks);
        params.word(self.queries).word(self.keys).word(self.depth).word(self.width);
        [&self.q, &self.k, &self.v].into_iter().for_each(|operand| operand.write(&mut params));
        match &self.mask {
            Some(mask) => mask.write(&mut params),
            None => (0..4).for_each(|_| {
                params.word(0);
            }),
        }
        let (rows, cols) = pass.mask.unwrap_or_default();
        params.word(rows).word(cols);
        let rank = pass.g.rank();
        params
            .word(pass.g.offset())
            .word(pass.g.stride(rank - 2) as usize)
            .word(pass.g.stride(rank - 1) as usize);
        params.word(pass.out.stride(rank - 2) as usize).word(pass.out2.stride(rank - 2) as usize);
        params.float(self.settings.scale);
        let (p, state) = self.settings.dropout.map_or((0.0, None), |d| (d.p, Some(d.state)));
        params.float(p).float(if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 });
        let (seed, offset) = state.map_or((0, 0), |state| (state.seed, state.offset));
        for word in [seed, seed >> 32, offset, offset >> 32] {
            params.word(word as u32 as usize);
        }
        params
    }

    /// The strides by which dropout numbers the queries of the batch; 0 along axes that share numbers.
    fn draws(&self) -> Vec<i64> {
        let shared = self.settings.dropout.map_or(0, |d| d.shared);
        let mut step = self.queries as i64;
        let mut strides = vec![0; self.batch.rank()];
        for i in (0..strides.len()).rev().filter(|&i| shared >> i & 1 == 0) {
            strides[i] = step;
            step *= self.batch.at(i) as i64;
        }
        strides
    }
}
