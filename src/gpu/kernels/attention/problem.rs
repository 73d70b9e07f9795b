//! One attention as its passes see it: operands with tangents, the kernel of a pass, and its parameters.

use crate::arguments::attention::{Inputs, Settings, Tangents};
use crate::gpu::kernels::copy::copy_into;
use crate::gpu::kernels::matmul::ways;
use crate::gpu::kernels::parts::check_rounds;
use crate::gpu::kernels::prelude::*;

/// Rows and columns of a tile.
pub const SIDE: usize = 64;

/// An operand; its tangent, if any, follows it in the same buffer.
struct DualOperand {
    x: Array,
    /// The distance from the operand to its tangent in elements; 0 without one.
    tangent: usize,
}

impl DualOperand {
    fn new(x: &Array, t: Option<&Array>) -> Result<DualOperand> {
        let Some(t) = t else { return Ok(DualOperand { x: x.clone(), tangent: 0 }) };
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
        Ok(DualOperand { x: half(0)?.expand(&x.shape())?, tangent })
    }

    /// The offset, the strides of rows and columns, and the distance to the tangent.
    fn words(&self) -> [usize; 4] {
        let steps = [2, 1].map(|from_end| stride(&self.x, self.x.rank() - from_end) as usize);
        [self.x.offset(), steps[0], steps[1], self.tangent]
    }
}

/// The stride of an axis; 0 for an axis of length 1, which broadcasts.
fn stride(x: &Array, axis: usize) -> isize {
    if x.dim(axis) == 1 { 0 } else { x.stride(axis) }
}

/// The strides of the batch axes.
fn batch_strides(x: &Array) -> impl Iterator<Item = isize> + '_ {
    (0..x.rank() - 2).map(|i| stride(x, i))
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
    q: DualOperand,
    k: DualOperand,
    v: DualOperand,
    mask: Option<DualOperand>,
    /// The operands that have tangents: bit `i` for operand `i`.
    has_tangent: usize,
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
            q: DualOperand::new(x.q, t.q)?,
            k: DualOperand::new(x.k, t.k)?,
            v: DualOperand::new(x.v, t.v)?,
            mask: x.mask.map(|mask| DualOperand::new(mask, t.mask)).transpose()?,
            has_tangent: there.iter().enumerate().fold(0, |bits, (i, &there)| bits | usize::from(there) << i),
            settings: x.settings,
            batch: x.q.shape().part(0, rank - 2),
            queries: x.q.dim(rank - 2),
            keys: x.k.dim(rank - 2),
            depth: x.q.dim(rank - 1),
            width: x.v.dim(rank - 1),
        })
    }

    /// A pass along the queries that writes `out` and `out2` of so many columns.
    pub fn pass<'b>(
        &self, g: &'b Array, stats: &'b Array, [out, out2]: [&'b Array; 2], columns: usize,
    ) -> Pass<'b> {
        // Two blocks if there is more than one, since every workgroup recomputes the scores.
        let blocks = if columns > SIDE { 2 } else { 1 };
        let (tiles, walked) = (self.queries.div_ceil(SIDE), self.keys.div_ceil(SIDE));
        let chunks = columns.div_ceil(SIDE * blocks);
        Pass { g, stats, out, out2, own: self.batch, tiles, walked, chunks, blocks, mask: None }
    }

    /// Runs a pass: entry point `entry` of `source`. `more` makes further choices. `flops` are its floating
    /// point operations for each score, if they are known.
    pub fn run(
        &self, pass: &Pass, entry: &'static str, source: &'static str, flops: Option<usize>,
        more: impl FnOnce(&mut Dispatch),
    ) -> Result<()> {
        check_rounds(index_of(pass.out)?, "attention", self.rounds(pass))?;
        let mask = self.mask.as_ref().map_or(&self.q.x, |mask| &mask.x);
        let kind = self.mask.as_ref().map_or(0, |mask| if mask.x.dtype() == DType::Bool { 1 } else { 2 });
        let mut run = Dispatch::new(entry, source, DType::F32);
        let operands = [&self.q.x, &self.k.x, &self.v.x, pass.g];
        if operands.iter().all(|x| x.dtype() == DType::F16) {
            run.text.halves(ways(&self.q.x)?.without_matrices());
        }
        run.entry(entry)
            .input("q", &self.q.x)
            .input("k", &self.k.x)
            .input("v", &self.v.x)
            .input("mask", mask);
        run.input("g", pass.g).reads(pass.stats).output("out", pass.out).writes(pass.out2);
        run.flag("CAUSAL", self.settings.causal).flag("DROPOUT", self.settings.dropout.is_some());
        run.number("MASK", kind).number("BLOCKS", pass.blocks).number("MOVES", self.has_tangent);
        more(&mut run);
        self.write(pass, &mut run);
        if let Some(each) = flops {
            run.flops(each * self.batch.numel() * self.queries * self.keys);
        }
        run.launch(pass.own.numel() * pass.tiles * pass.chunks)
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

    /// Adds the words of `Params` in `shaders/lib/attention_tiles.wgsl`.
    fn write(&self, pass: &Pass, run: &mut Dispatch) {
        run.lengths(&self.batch);
        for x in [&self.q.x, &self.k.x, &self.v.x] {
            run.eight(batch_strides(x));
        }
        run.eight(self.mask.iter().flat_map(|mask| batch_strides(&mask.x)));
        for x in [pass.g, pass.out, pass.out2] {
            run.eight(batch_strides(x));
        }
        run.eight(self.draws());
        let walked = (0..self.batch.rank()).filter(|&i| pass.own.at(i) != self.batch.at(i));
        let (bits, sharing) = walked.fold((0, 1), |(bits, n), i| (bits | 1 << i, n * self.batch.at(i)));
        run.words([self.batch.rank(), bits, pass.own.numel(), sharing, pass.tiles, pass.chunks]);
        run.words([self.queries, self.keys, self.depth, self.width]);
        run.words([&self.q, &self.k, &self.v].map(DualOperand::words).concat());
        run.words(self.mask.as_ref().map_or([0; 4], DualOperand::words));
        let ((rows, cols), rank) = (pass.mask.unwrap_or_default(), pass.g.rank());
        run.words([rows, cols, pass.g.offset()]);
        run.words([pass.g.stride(rank - 2), pass.g.stride(rank - 1)].map(|s| s as usize));
        run.words([pass.out, pass.out2].map(|x| x.stride(rank - 2) as usize));
        let (p, state) = self.settings.dropout.map_or((0.0, None), |d| (d.p, Some(d.state)));
        run.floats([self.settings.scale, p, if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 }]);
        let (seed, offset) = state.map_or((0, 0), |state| (state.seed, state.offset));
        run.words([seed, seed >> 32, offset, offset >> 32].map(|n| n as usize));
    }

    /// The strides by which dropout numbers the queries of the batch; 0 along axes that share numbers.
    fn draws(&self) -> Vec<isize> {
        let shared = self.settings.dropout.map_or(0, |d| d.shared);
        let mut step = self.queries as isize;
        let mut strides = vec![0; self.batch.rank()];
        for i in (0..strides.len()).rev().filter(|&i| shared >> i & 1 == 0) {
            strides[i] = step;
            step *= self.batch.at(i) as isize;
        }
        strides
    }
}
