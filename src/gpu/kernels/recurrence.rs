//! First-order recurrences along one axis.

use super::parts::parts;
use super::prelude::*;

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
