//! Cumulative sums and products.

use super::pieces::{along_line, by_lines, fit_wide, in_a_piece, is_small};
use super::prelude::*;
use super::reduce::Fold;

/// The cumulative sum along `axis`.
pub fn cumsum(x: &Array, axis: usize) -> Result<Array> {
    Scan { name: "scan_sum", fold: Fold::Sum, axis }.run(x)
}

/// The cumulative product along `axis`.
pub fn cumprod(x: &Array, axis: usize) -> Result<Array> {
    Scan { name: "scan_prod", fold: Fold::Prod, axis }.run(x)
}

/// Lines of at least as many elements are shared by a workgroup, or by several, if there are fewer of them.
const SHARED: usize = 64;
const MANY: usize = 16 << 10;
/// The fewest elements of a block of a line, and the workgroups at which a cut into blocks aims.
const LEAST: usize = 2048;
const ENOUGH: usize = 1024;

/// The number of blocks into which lines are cut, and the elements of each; none where lines are not shared.
pub(super) fn blocks(lines: usize, length: usize) -> Option<(usize, usize)> {
    (length >= SHARED && lines < MANY).then(|| {
        let count = (length / LEAST).min(ENOUGH / lines.max(1)).max(1);
        let each = length.div_ceil(count).next_multiple_of(SHARED);
        (length.div_ceil(each), each)
    })
}

/// Of a line of which a result is made that kernels cannot bind: the number of blocks, the elements of each
/// and of a piece, which has whole blocks.
pub(super) fn blocks_of_pieces(out: &Array) -> Result<[usize; 3]> {
    let (length, most) = (out.numel(), in_a_piece(out)?);
    let each = blocks(1, length).map_or(length, |(_, each)| each).min(most);
    Ok([length.div_ceil(each), each, most / each * each])
}

/// The elements of the one line of `x`, along `axis`.
pub(super) fn line(x: &Array, axis: usize) -> Result<Array> {
    x.with_layout(Shape::new(&[x.numel()])?, &[x.stride(axis)], x.offset())
}

/// A scan along an axis.
#[derive(Clone, Copy)]
struct Scan {
    name: &'static str,
    fold: Fold,
    axis: usize,
}

impl Scan {
    fn run(self, x: &Array) -> Result<Array> {
        let (length, compute) = (x.dim(self.axis), arithmetic(x.dtype()));
        if !fit_wide(&[x])? {
            if x.numel() > length || is_small(x)? {
                return by_lines(self.name, &[x], self.axis..self.axis + 1, &|x| self.run(x[0]));
            }
            return cast(&self.one_line(x)?, x.dtype());
        }
        let out = like(x, compute)?;
        let Some(lines) = x.numel().checked_div(length).filter(|n| *n > 0) else {
            return cast(&out, x.dtype());
        };
        let Some((count, each)) = blocks(lines, length) else {
            self.launch("serial", x, &out, &out, [1, length, 0])?;
            return cast(&out, x.dtype());
        };
        let blocks = self.blocks(x, lines, count)?;
        if count > 1 {
            self.launch("ends", x, &out, &blocks, [count, each, 0])?;
        }
        self.launch("tree", x, &out, &blocks, [count, each, 0])?;
        cast(&out, x.dtype())
    }

    /// The scan of a line that kernels cannot bind.
    fn one_line(self, x: &Array) -> Result<Array> {
        let (x, out) = (line(x, self.axis)?, like(x, arithmetic(x.dtype()))?);
        let [count, each, most] = blocks_of_pieces(&out)?;
        let (blocks, own) = (self.blocks(&x, 1, count)?, Scan { axis: 0, ..self });
        for entry in ["ends", "tree"] {
            along_line(&x, &out, most, &|start, x, out| {
                own.launch(entry, x, out, &blocks, [count, each, start / each])
            })?;
        }
        Ok(out)
    }

    /// An array for what `count` blocks of each line come to.
    fn blocks(self, x: &Array, lines: usize, count: usize) -> Result<Array> {
        let words = if count > 1 { 4 } else { 1 };
        Array::empty(Shape::new(&[lines, count, words])?, DType::I32, x.device())
    }

    /// Launches a kernel for lines of `count` blocks, of which `x` has those from `first` on.
    fn launch(
        self, entry: &'static str, x: &Array, out: &Array, blocks: &Array, [count, each, first]: [usize; 3],
    ) -> Result<()> {
        let kept = Nest::over(&x.shape(), &[x, out], (0..x.rank()).filter(|&i| i != self.axis));
        let (lines, length) = (kept.numel(), x.dim(self.axis));
        let (compute, own) = (out.dtype(), length.div_ceil(each));
        let mut run = Dispatch::new(self.name, shader!("lib/products", "lib/lines", "scan"), compute);
        run.text.store("out", compute);
        run.entry(entry).input("x", x);
        if entry == "ends" {
            run.fills(out)
        } else {
            run.writes(out)
        };
        run.writes(blocks)
            .number("FOLD", self.fold as usize)
            // Errors of a chain of rounded products accumulate, so it is compensated; those of sums in a tree
            // stay small.
            .flag("PAIRED", self.fold == Fold::Prod && compute == DType::F32)
            .nest(&kept, 2)
            .words([kept.rank, lines, length, x.offset(), x.stride(self.axis) as usize])
            .words([out.offset(), out.stride(self.axis) as usize, count, each, first, own]);
        run.launch(if entry == "serial" { lines.div_ceil(256) } else { lines * own })
    }
}
