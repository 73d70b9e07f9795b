//! First-order recurrences along one axis, and the places of running extremes.

use super::parts::parts;
use super::prelude::*;
use super::sort::kind_of;

/// `s[i] = decay[i] * s[i-1] + x[i]` along `axis`, computed in float32. Both operands have one shape.
pub fn recurrence(decay: &Array, x: &Array, axis: usize) -> Result<Array> {
    let out = like(x, DType::F32)?;
    let operands = [decay, x, &out];
    let kept = Nest::over(&x.shape(), &operands, (0..x.rank()).filter(|&i| i != axis));
    let lines = kept.numel();
    for (start, length) in parts(x.dim(axis)) {
        let mut run = Dispatch::new("recurrence", shader!("lib/products", "recurrence"), DType::F32);
        run.input("decay", decay).input("x", x).output("out", &out);
        run.nest(&kept, 3).words([kept.rank, lines, length]);
        for array in operands {
            let step = array.stride(axis);
            run.words([array.offset().wrapping_add_signed(step * start as isize), step as usize]);
        }
        run.words([usize::from(start > 0)]);
        run.launch(lines.div_ceil(256))?;
    }
    cast(&out, x.dtype())
}

/// The fewest elements of a block of a line, and the workgroups that a cut aims at.
const LEAST: usize = 4096;
const ENOUGH: usize = 512;

/// Returns the position of the largest or smallest element so far along `axis`, as int32: the last of equal
/// ones. NaN counts as the extreme, and its last occurrence wins.
pub fn running_extreme(x: &Array, axis: usize, largest: bool) -> Result<Array> {
    let out = like(x, DType::I32)?;
    let kept = Nest::over(&x.shape(), &[x, &out], (0..x.rank()).filter(|&i| i != axis));
    let (lines, length) = (kept.numel(), x.dim(axis));
    if x.numel() == 0 {
        return Ok(out);
    }
    let tree = length >= 64 && lines < 16 << 10;
    // Long lines are cut where there are few.
    let count = if tree { (length / LEAST).min(ENOUGH / lines).max(1) } else { 1 };
    let each = length.div_ceil(count);
    let count = length.div_ceil(each);
    let blocks = match count {
        1 => out.clone(),
        _ => Array::empty(Shape::new(&[lines, count, 2])?, DType::I32, x.device())?,
    };
    let entries: &[&str] = if !tree {
        &["serial"]
    } else if count > 1 {
        &["best", "tree"]
    } else {
        &["tree"]
    };
    for &entry in entries {
        let mut run = Dispatch::new("argscan", shader!("lib/order", "lib/lines", "argscan"), DType::I32);
        run.entry(entry).reads(x).writes(&out).writes(&blocks);
        run.number("KIND", kind_of(x.dtype()).0).flag("SMALLEST", !largest).nest(&kept, 2);
        run.words([kept.rank, lines, length, x.offset(), x.stride(axis) as usize]);
        run.words([out.offset(), out.stride(axis) as usize, count, each]);
        run.launch(if tree { lines * count } else { lines.div_ceil(256) })?;
    }
    Ok(out)
}
