//! First-order recurrences along one axis, and the places of running extremes.

use super::parts::{ROUNDS, part_of, parts};
use super::pieces::{along_line, bound_or_copied, by_lines, fit_wide, is_small};
use super::prelude::*;
use super::scan::{blocks, blocks_of_pieces, line};
use super::sort::kind_of;

/// `s[i] = decay[i] * s[i-1] + x[i]` along `axis`, computed in float32. Both operands have one shape.
pub fn recurrence(decay: &Array, x: &Array, axis: usize) -> Result<Array> {
    if x.numel() > x.dim(axis) && !fit_wide(&[decay, x])? {
        return by_lines("recurrence", &[decay, x], axis..axis + 1, &|x| recurrence(x[0], x[1], axis));
    }
    let out = like(x, DType::F32)?;
    for (start, length) in parts(x.dim(axis), ROUNDS) {
        // With the last result of the part before.
        let first = start.saturating_sub(1);
        let own = |x: &Array| bound_or_copied(&part_of(x, axis, (first, start + length - first))?);
        let operands = [&own(decay)?, &own(x)?, &own(&out)?];
        let kept = Nest::over(&x.shape(), &operands, (0..x.rank()).filter(|&i| i != axis));
        let lines = kept.numel();
        let mut run = Dispatch::new("recurrence", shader!("lib/products", "recurrence"), DType::F32);
        run.input("decay", operands[0]).input("x", operands[1]).output("out", operands[2]);
        run.nest(&kept, 3).words([kept.rank, lines, length]);
        for array in operands {
            let step = array.stride(axis);
            let begin = array.offset().wrapping_add_signed(step * (start - first) as isize);
            run.words([begin, step as usize]);
        }
        run.words([usize::from(start > 0)]);
        run.launch(lines.div_ceil(256))?;
    }
    cast(&out, x.dtype())
}

/// Returns the position of the largest or smallest element so far along `axis`, as int32: the last of equal
/// ones. NaN counts as the extreme, and its last occurrence wins.
pub fn running_extreme(x: &Array, axis: usize, largest: bool) -> Result<Array> {
    if !fit_wide(&[x])? && (x.numel() > x.dim(axis) || is_small(x)?) {
        return by_lines("argscan", &[x], axis..axis + 1, &|x| running_extreme(x[0], axis, largest));
    }
    let out = like(x, DType::I32)?;
    let launch =
        |entry: &'static str, x: &Array, axis: usize, out: &Array, blocks: &Array, cut: [usize; 3]| {
            let kept = Nest::over(&x.shape(), &[x, out], (0..x.rank()).filter(|&i| i != axis));
            let (lines, length, [count, each, first]) = (kept.numel(), x.dim(axis), cut);
            let own = length.div_ceil(each);
            let mut run = Dispatch::new("argscan", shader!("lib/order", "lib/lines", "argscan"), DType::I32);
            run.entry(entry).reads(x);
            if entry == "best" {
                run.fills(out)
            } else {
                run.writes(out)
            };
            run.writes(blocks);
            run.number("KIND", kind_of(x.dtype()).0).flag("SMALLEST", !largest).nest(&kept, 2);
            run.words([kept.rank, lines, length, x.offset(), x.stride(axis) as usize]);
            run.words([out.offset(), out.stride(axis) as usize, count, each, first, own]);
            run.launch(if entry == "serial" { lines.div_ceil(256) } else { lines * own })
        };
    let of_blocks = |lines, count| Array::empty(Shape::new(&[lines, count, 2])?, DType::I32, x.device());
    let length = x.dim(axis);
    if !fit_wide(&[x])? {
        let ([count, each, most], own) = (blocks_of_pieces(&out)?, line(x, axis)?);
        let blocks = of_blocks(1, count)?;
        for entry in ["best", "tree"] {
            along_line(&own, &out, most, &|start, x, out| {
                launch(entry, x, 0, out, &blocks, [count, each, start / each])
            })?;
        }
    } else if let Some(lines) = x.numel().checked_div(length).filter(|n| *n > 0) {
        match blocks(lines, length) {
            None => launch("serial", x, axis, &out, &out, [1, length, 0])?,
            Some((1, each)) => launch("tree", x, axis, &out, &out, [1, each, 0])?,
            Some((count, each)) => {
                let blocks = of_blocks(lines, count)?;
                launch("best", x, axis, &out, &blocks, [count, each, 0])?;
                launch("tree", x, axis, &out, &blocks, [count, each, 0])?;
            }
        }
    }
    Ok(out)
}
