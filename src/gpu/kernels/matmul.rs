//! Matrix products on the GPU; the counterpart of `src/cpu/product/matmul.rs`.
//!
//! A workgroup makes a tile of the result, or some columns of one with few rows. A long axis of summation is
//! cut into parts where there are few tiles; a second dispatch adds them in order. All choices depend on the
//! shapes and the layouts alone.

mod halves;

pub use halves::{buffers, described, ways};

use super::complex::long;
use super::parts::{ROUNDS, part_of};
use super::pieces::{cut_product, halves, joined};
use super::prelude::*;
use crate::array::shape::Axes;
use crate::gpu::shader::halves::Halves;
use crate::gpu::shader::wgsl;
use crate::math::terms::Terms;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// Workgroups that keep a large GPU busy: two per multiprocessor.
const GROUPS: usize = 256;
/// The most rows (or columns) of a result whose operand is not shared through workgroup memory.
const THIN: usize = 16;

/// A function of one number: its name and its rule.
pub type ActivationRule<'a> = (&'a str, &'a dyn Fn() -> Terms);

/// What follows a product of floats: the bias is added, then the function applied.
#[derive(Default)]
pub struct Epilogue<'a> {
    /// One number per column, or per row if it `is_by_rows`.
    bias: Option<&'a Array>,
    is_by_rows: bool,
    act: Option<ActivationRule<'a>>,
    /// Whether the sum to which the function is applied is wanted too.
    keeps_sum: bool,
    /// Whether the sums of the rows of the left operand are wanted instead.
    sums_rows: bool,
}

impl<'a> Epilogue<'a> {
    /// What a layer does with a product.
    pub fn layer(bias: Option<&'a Array>, act: Option<ActivationRule<'a>>, keeps_sum: bool) -> Epilogue<'a> {
        Epilogue { bias, act, keeps_sum, ..Epilogue::default() }
    }

    /// A bias of one number per row.
    pub fn rows(bias: &'a Array) -> Epilogue<'a> {
        Epilogue { bias: Some(bias), is_by_rows: true, ..Epilogue::default() }
    }

    fn is_none(&self) -> bool {
        self.bias.is_none() && self.act.is_none() && !self.sums_rows
    }
}

/// An operand: a batch of matrices.
struct Operand {
    array: Array,
    /// Strides of the outer and the inner batch level.
    levels: [usize; 2],
    /// Strides across the axis that is summed over, and along it.
    across: usize,
    along: usize,
}

impl Operand {
    /// Whether four neighbours are a vector of the buffer, and all rows of them start on one.
    fn is_vector(&self) -> bool {
        let other = match (self.along, self.across) {
            (1, other) | (other, 1) => other,
            _ => return false,
        };
        [self.array.offset(), self.levels[0], self.levels[1], other].iter().all(|s| s.is_multiple_of(4))
    }

    /// Binds it.
    fn bind<'a>(&'a self, run: &mut Dispatch<'a>, name: &'static str) {
        match self.is_vector() {
            true => run.text.load_fours(name, self.array.dtype()),
            false => run.text.load(name, self.array.dtype()),
        };
        run.reads(&self.array);
    }
}

/// A product `m x k` by `k x n`, and how it is cut.
struct Plan {
    entry: &'static str,
    m: usize,
    k: usize,
    n: usize,
    batch: usize,
    /// How halves are multiplied.
    way: Halves,
    /// Rows and columns that a workgroup makes, and the steps that it has in workgroup memory.
    tile: [usize; 2],
    depth: usize,
    /// Threads among which the thin kernel shares out a part of the axis summed over.
    slices: usize,
    parts: usize,
    part_k: usize,
}

impl Plan {
    fn new([m, k, n]: [usize; 3], batch: usize, right_along: bool, way: Halves) -> Plan {
        let thin = m <= THIN;
        let slices = if !right_along { 8 } else { [32, 256][usize::from(n <= 4)] };
        let mut tile = match (m, n) {
            _ if thin => [m, 1024 / slices],
            (..=32, _) => [32, 128],
            (_, ..=32) => [128, 32],
            _ => [side(m), side(n)],
        };
        // The fewest steps of a part; a second dispatch pays for sums of several.
        let least = if thin { 16 * slices } else { 256 };
        let most = if k < 4 * least { 1 } else { k / least };
        let groups = |tile: [usize; 2]| m.div_ceil(tile[0]) * n.div_ceil(tile[1]) * batch;
        let parts = |tile| (GROUPS / groups(tile)).clamp(1, most).max(k.div_ceil(ROUNDS));
        if !thin && tile[0].min(tile[1]) > 32 && 2 * groups(tile) * parts(tile) < GROUPS {
            tile = [64, 64];
        }
        let (way, tile) = if thin { (way.without_matrices(), tile) } else { way.of_tile(tile) };
        let part_k = k.div_ceil(parts(tile)).next_multiple_of(16).max(16);
        let (entry, parts) = (if thin { "thin" } else { "main" }, k.div_ceil(part_k).max(1));
        Plan { entry, m, k, n, batch, way, tile, depth: 16, slices, parts, part_k }
    }

    fn tiles(&self) -> [usize; 2] {
        [self.m.div_ceil(self.tile[0]), self.n.div_ceil(self.tile[1])]
    }

    /// Sets the constants of the algorithm.
    fn constants(&self, run: &mut Dispatch, [a, b]: [&Operand; 2]) {
        run.text.halves(self.way);
        run.entry(self.entry).flag("A_ALONG_K", a.along == 1).flag("B_ALONG_K", b.along == 1);
        if self.entry == "thin" {
            run.number("ROW_QUADS", self.m.div_ceil(4)).number("SLICES", self.slices);
            run.flag("SINGLE", self.m == 1);
            return;
        }
        let [rows, columns] = self.tile;
        let is_whole = self.m.is_multiple_of(rows) && self.n.is_multiple_of(columns);
        run.flag("WHOLE", is_whole && self.k.is_multiple_of(self.depth));
        run.number("TILE_M", rows).number("TILE_N", columns).number("DEPTH", self.depth);
        run.number("BUFFERS", buffers(self.way, self.tile));
    }
}

/// The side of a tile along an axis of a result: 128, unless a sixth more would be computed than with 64.
fn side(length: usize) -> usize {
    if 5 * length.next_multiple_of(128) <= 6 * length.next_multiple_of(64) { 128 } else { 64 }
}

/// `[..., m, k] x [..., k, n]`: batch axes broadcast, strides are arbitrary, sums are in float32 (or int32).
pub fn matmul(a: &Array, b: &Array) -> Result<Array> {
    Ok(matmul_with(a, b, &Epilogue::default())?.0)
}

/// A product of matrices, and the sums of the rows of the left one.
pub fn with_row_sums(a: &Array, b: &Array) -> Result<(Array, Array)> {
    if a.dim(0).min(b.dim(1)) > THIN
        && let (out, Some(sums)) = matmul_with(a, b, &Epilogue { sums_rows: true, ..Epilogue::default() })?
    {
        return Ok((out, sums));
    }
    Ok((matmul(a, b)?, super::reduce::sum(a, Axes::one(1), false)?))
}

/// A product and what follows it; also the second result, if there is one.
pub fn matmul_with(a: &Array, b: &Array, epilogue: &Epilogue) -> Result<(Array, Option<Array>)> {
    let r = a.rank();
    let batch =
        a.shape().part(0, r.saturating_sub(2)).broadcast(&b.shape().part(0, b.rank().saturating_sub(2)));
    let fits = r >= 2 && b.rank() == r && a.dtype() == b.dtype() && a.dim(r - 1) == b.dim(r - 2);
    let (Some(batch), true) = (batch, fits) else {
        return Err(Error::shape(format!("internal: matmul of {a:?} and {b:?}")));
    };
    let (m, k, n) = (a.dim(r - 2), a.dim(r - 1), b.dim(r - 1));
    let shape = batch.inserted(r - 2, m)?.inserted(r - 1, n)?;
    let [a, b] = &match cut_product(a, b, &shape)? {
        Ok(operands) => operands,
        Err(axis) => return by_halves([a, b], epilogue, axis, shape.at(axis)),
    };
    // A result of few columns is computed as its transpose, of few rows.
    let turned = n < m && (n == 1 || n <= THIN && m > THIN);
    // Halves are written in pairs of neighbours.
    let dtype = match turned {
        true if n > 1 => DType::F32,
        true => dtype_of_rows(a.dtype(), &[m]),
        false => dtype_of_rows(a.dtype(), &[n]),
    };
    let dtype = if arithmetic(a.dtype()) == DType::F32 { dtype } else { a.dtype() };
    let out = Array::empty(shape, dtype, a.device())?;
    let sum = match (epilogue.keeps_sum, epilogue.sums_rows) {
        (true, _) => Some(Array::empty(shape, dtype, a.device())?),
        (_, true) => Some(Array::empty(Shape::new(&[m])?, a.dtype(), a.device())?),
        _ => None,
    };
    let done = |x: &Array| cast(x, a.dtype());
    if out.numel() > 0 {
        let x = a.expand(&batch.inserted(r - 2, m)?.inserted(r - 1, k)?)?;
        let y = b.expand(&batch.inserted(r - 2, k)?.inserted(r - 1, n)?)?;
        if is_long(out.dtype()) {
            long::product(&x, &y, &out)?;
        } else {
            multiply([x, y], turned, epilogue, &out, sum.as_ref(), ways(a)?)?;
        }
    }
    Ok((done(&out)?, sum.as_ref().map(done).transpose()?))
}

/// [`matmul_with`] for the two halves of an axis of the result, of this length, that is larger than a
/// binding.
fn by_halves(
    [a, b]: [&Array; 2], epilogue: &Epilogue, axis: usize, length: usize,
) -> Result<(Array, Option<Array>)> {
    let r = a.rank();
    // Axes that an operand has not, or only once, are not cut.
    let of = |x: &Array, lacks: usize, part| match axis {
        axis if axis == lacks || x.dim(axis) == 1 => Ok(x.clone()),
        axis => part_of(x, axis, part),
    };
    let [first, second] = halves(length, 1).map(|part| {
        let bias = match epilogue.bias {
            Some(bias) if axis == r - 1 - usize::from(epilogue.is_by_rows) => Some(part_of(bias, 0, part)?),
            bias => bias.cloned(),
        };
        let epilogue = Epilogue { bias: bias.as_ref(), ..*epilogue };
        matmul_with(&of(a, r - 1, part)?, &of(b, r - 2, part)?, &epilogue)
    });
    let ((first, sum), (second, other)) = (first?, second?);
    let sum = match (sum, other) {
        (Some(x), Some(y)) if epilogue.keeps_sum => Some(joined(&x, &y, axis)?),
        (Some(x), Some(y)) if axis == r - 2 => Some(joined(&x, &y, 0)?),
        (sum, _) => sum,
    };
    Ok((joined(&first, &second, axis)?, sum))
}

/// Computes `out` and `sum`, which are not empty; halves in this way.
fn multiply(
    [mut x, mut y]: [Array; 2], turned: bool, epilogue: &Epilogue, out: &Array, sum: Option<&Array>,
    way: Halves,
) -> Result<()> {
    let (rows, columns) = (x.rank() - 2, x.rank() - 1);
    let batches = |x: &Array, y: &Array| Nest::over(&x.shape(), &[x, y], 0..rows);
    let mut nest = batches(&x, &y);
    if nest.rank > 2 {
        (x, y) = (contiguous(&x)?, contiguous(&y)?);
        nest = batches(&x, &y);
    }
    let operand = |which: usize, x: &Array, [across, along]: [usize; 2]| {
        let strides = &nest.strides[which][..nest.rank];
        let outer = if strides.len() == 2 { strides[0] } else { 0 };
        // The stride of an axis of length 1 is any number.
        let stride = |axis| if x.dim(axis) == 1 { 0 } else { x.stride(axis) as usize };
        let levels = [outer as usize, strides[strides.len() - 1] as usize];
        Operand { array: x.clone(), levels, across: stride(across), along: stride(along) }
    };
    let (left, right) = (operand(0, &x, [rows, columns]), operand(1, &y, [columns, rows]));
    let (m, k, n) = (x.dim(rows), x.dim(columns), y.dim(columns));
    let (operands, sizes, [row, column]) = match turned {
        true => ([&right, &left], [n, k, m], [1, n]),
        false => ([&left, &right], [m, k, n], [n, 1]),
    };
    let plan = Plan::new(sizes, nest.numel(), operands[1].along == 1, way);
    // The second output of what follows, if it is not wanted.
    let unused = match epilogue.is_none() || sum.is_some() {
        true => out.clone(),
        false => Array::empty(Shape::new(&[4])?, out.dtype(), x.device())?,
    };
    let strides = [m * n, row, column];
    Job { plan, operands, inner: nest.inner(), epilogue, out, sum: sum.unwrap_or(&unused), strides }.run()
}

/// A product with the arrays for its result; `strides` of these: between batches, rows and columns.
struct Job<'a> {
    plan: Plan,
    operands: [&'a Operand; 2],
    inner: usize,
    epilogue: &'a Epilogue<'a>,
    out: &'a Array,
    sum: &'a Array,
    strides: [usize; 3],
}

impl Job<'_> {
    /// A dispatch of the file for a product and what follows.
    fn dispatch<'a>(&self, epilogue: &Epilogue) -> Dispatch<'a> {
        let (name, source) = match epilogue.is_none() {
            true => ("matmul", shader!("lib/tile", "lib/tile_threads", "lib/matmul", "matmul")),
            false => ("linear", shader!("lib/tile", "lib/tile_threads", "lib/matmul", "linear")),
        };
        Dispatch::new(name, source, self.out.dtype())
    }

    fn run(&self) -> Result<()> {
        let Plan { m, k, n, batch, parts, .. } = self.plan;
        let [a, b] = self.operands;
        let [tiles_m, tiles_n] = self.plan.tiles();
        let groups = tiles_m * tiles_n * batch * parts;
        let op = || {
            let rule = self.epilogue.act.map(|(_, rule)| rule());
            Ok(rule.map_or(String::new(), |rule| wgsl::with_library("op", &["x"], &|x| rule.read(x))))
        };
        let product = |epilogue: &Epilogue| {
            let mut run = self.dispatch(epilogue);
            a.bind(&mut run, "x");
            b.bind(&mut run, "y");
            self.plan.constants(&mut run, self.operands);
            run.flag("SUMS_A", self.epilogue.sums_rows);
            run.flops(2 * m * n * k * batch);
            run
        };
        if parts == 1 {
            return self.end(product(self.epilogue), &op, 0, groups);
        }
        let (wide, sums) = (n.next_multiple_of(4), arithmetic(self.out.dtype()));
        let sums_of_rows = if self.epilogue.sums_rows { m.next_multiple_of(4) } else { 0 };
        let apart = batch * m * wide + sums_of_rows;
        let partial = Array::empty(Shape::new(&[parts * apart])?, sums, self.out.device())?;
        let mut run = product(&Epilogue::default());
        run.text.store_fours("out", sums);
        run.writes(&partial).flag("FOURS", true);
        self.words(&mut run, [apart, m * wide, wide, 1], [0; 3]);
        run.launch(groups)?;
        let mut run = self.dispatch(self.epilogue);
        run.entry("parts").text.load_fours("x", sums).load("y", sums);
        run.reads(&partial).fills(&partial).flag("SUMS_A", self.epilogue.sums_rows);
        self.end(run, &op, apart, apart.div_ceil(1024))
    }

    /// Launches the dispatch that writes the result; it reads parts of sums that lie `apart`.
    fn end<'a>(
        &'a self, mut run: Dispatch<'a>, op: &'a dyn Fn() -> Result<String>, apart: usize, groups: usize,
    ) -> Result<()> {
        let [batches, rows, columns] = self.strides;
        let in_fours = columns == 1 && self.plan.n.is_multiple_of(4);
        let mut more = [0; 3];
        if !self.epilogue.is_none() {
            match self.epilogue.bias {
                Some(bias) => {
                    let step = bias.stride(0) as usize;
                    // Where rows are adjacent, the kernel's rows are the columns of the result.
                    let is_by_rows = (rows == 1) != self.epilogue.is_by_rows;
                    more = if is_by_rows { [bias.offset(), step, 0] } else { [bias.offset(), 0, step] };
                    match more[2] == 1 && more[0].is_multiple_of(4) {
                        true => run.text.load_fours("more", bias.dtype()),
                        false => run.text.load("more", bias.dtype()),
                    };
                    run.reads(bias)
                }
                None => run.fills(&self.operands[0].array),
            };
            run.flag("MORE", self.epilogue.bias.is_some()).flag("SUM", self.epilogue.keeps_sum);
        }
        let mut writes = |name, x: &'a Array, in_fours| {
            match in_fours {
                true => run.text.store_fours(name, x.dtype()),
                false => run.text.store(name, x.dtype()),
            };
            run.writes(x);
            if in_fours {
                run.flows();
            }
        };
        writes("out", self.out, in_fours);
        if !self.epilogue.is_none() {
            writes("sum", self.sum, in_fours || self.epilogue.sums_rows);
        }
        run.flag("FOURS", in_fours);
        if let Some((name, _)) = self.epilogue.act {
            run.op(op, [FxBuildHasher.hash_one(name), 0]);
        }
        self.words(&mut run, [apart, batches, rows, columns], more);
        run.launch(groups)
    }

    /// Adds the parameters; `strides` of the result: between parts, batches, rows and columns.
    fn words(&self, run: &mut Dispatch, strides: [usize; 4], more: [usize; 3]) {
        let Plan { m, k, n, batch, parts, part_k, .. } = self.plan;
        run.words([m, n, k, batch, self.inner]).words(self.plan.tiles()).words([parts, part_k]);
        for (i, x) in self.operands.into_iter().enumerate() {
            run.words([x.array.offset()]).words(x.levels);
            run.words(if i == 0 { [x.across, x.along] } else { [x.along, x.across] });
        }
        run.words(strides).words(more);
    }
}
