//! Matrix products on the GPU; the counterpart of `src/cpu/product/matmul.rs`.
//!
//! Results large enough to fill a device are computed in tiles of 128 x 128, others in tiles of 64 x 64, and
//! products with a vector in one pass over the matrix. The choice depends only on the shapes.

use super::parts::{ROUNDS, part_of, sum_of_parts};
use super::pieces::{cut_product, halves, joined};
use super::prelude::*;

/// From this many large tiles on they pay off: about one per multiprocessor of a large GPU.
const LARGE_TILES: usize = 96;

/// `[..., m, k] x [..., k, n]`: batch axes broadcast, strides are arbitrary, sums are in float32 (or int32).
pub fn matmul(a: &Array, b: &Array) -> Result<Array> {
    let r = a.rank();
    let batch =
        a.shape().part(0, r.saturating_sub(2)).broadcast(&b.shape().part(0, b.rank().saturating_sub(2)));
    let fits = r >= 2 && b.rank() == r && a.dtype() == b.dtype() && a.dim(r - 1) == b.dim(r - 2);
    let (Some(batch), true) = (batch, fits) else {
        return Err(Error::shape(format!("internal: matmul of {a:?} and {b:?}")));
    };
    let (m, k, n) = (a.dim(r - 2), a.dim(r - 1), b.dim(r - 1));
    let shape = batch.inserted(r - 2, m)?.inserted(r - 1, n)?;
    let [a, b] = match cut_product(a, b, &shape)? {
        Ok(operands) => operands,
        Err(axis) => {
            // Axes that an operand has not, or only once, are not cut.
            let of = |x: &Array, lacks: usize, part| match axis {
                axis if axis == lacks || x.dim(axis) == 1 => Ok(x.clone()),
                axis => part_of(x, axis, part),
            };
            let [first, second] =
                halves(shape.at(axis), 1).map(|part| matmul(&of(a, r - 1, part)?, &of(b, r - 2, part)?));
            return joined(&first?, &second?, axis);
        }
    };
    let (a, b) = (&a, &b);
    let sums = arithmetic(a.dtype());
    // In products with a vector at least eight invocations share an element.
    let longest = if m == 1 || n == 1 { 8 * ROUNDS } else { ROUNDS };
    if k > longest {
        let parts_of = |part| product(&part_of(a, r - 1, part)?, &part_of(b, r - 2, part)?, batch, sums);
        return sum_of_parts(k, a.dtype(), parts_of);
    }
    // A single column is written as a row.
    let columns = if n == 1 { m } else { n };
    cast(&product(a, b, batch, dtype_of_rows(a.dtype(), &[columns]))?, a.dtype())
}

/// The product, in the operands' dtype or that of the sums.
fn product(a: &Array, b: &Array, batch: Shape, dtype: DType) -> Result<Array> {
    let r = a.rank();
    let (m, k, n) = (a.dim(r - 2), a.dim(r - 1), b.dim(r - 1));
    let out = Array::empty(batch.inserted(r - 2, m)?.inserted(r - 1, n)?, dtype, a.device())?;
    if out.numel() == 0 {
        return Ok(out);
    }
    let mut x = a.expand(&batch.inserted(r - 2, m)?.inserted(r - 1, k)?)?;
    let mut y = b.expand(&batch.inserted(r - 2, k)?.inserted(r - 1, n)?)?;
    let batches = |x: &Array, y: &Array| Nest::over(&x.shape(), &[x, y], 0..r - 2);
    let mut levels = batches(&x, &y);
    if levels.rank > 2 {
        (x, y) = (contiguous(&x)?, contiguous(&y)?);
        levels = batches(&x, &y);
    }
    if m == 1 || n == 1 {
        multiply_vector(&x, &y, &out, &levels)?
    } else {
        multiply(&x, &y, &out, &levels)?
    }
    Ok(out)
}

/// Adds the offset of operand `which` and its strides along the outer and inner of two batch levels.
fn write(run: &mut Dispatch, batches: &Nest, which: usize, x: &Array) {
    let strides = &batches.strides[which][..batches.rank];
    let outer = if strides.len() == 2 { strides[0] } else { 0 };
    run.words([x.offset(), outer as usize, strides[strides.len() - 1] as usize]);
}

/// A product of matrices, in tiles.
fn multiply(x: &Array, y: &Array, out: &Array, batches: &Nest) -> Result<()> {
    let r = x.rank();
    let (m, k, n, count) = (x.dim(r - 2), x.dim(r - 1), y.dim(r - 1), batches.numel());
    let large = m >= 128 && n >= 128 && m.div_ceil(128) * n.div_ceil(128) * count >= LARGE_TILES;
    let (name, source, tile) = if large {
        ("matmul_large", shader!("matmul_large"), 128)
    } else {
        ("matmul", shader!("matmul"), 64)
    };
    let (tiles_m, tiles_n) = (m.div_ceil(tile), n.div_ceil(tile));
    let mut run = Dispatch::new(name, source, x.dtype());
    run.input("x", x).input("y", y).output("out", out);
    run.words([m, n, k, count, batches.inner(), tiles_m, tiles_n]);
    for (which, a) in [x, y].into_iter().enumerate() {
        write(&mut run, batches, which, a);
        run.words([a.stride(r - 2) as usize, a.stride(r - 1) as usize]);
    }
    run.words([m * n, n]).flops(2 * m * n * k * count);
    run.launch(tiles_m * tiles_n * count)
}

/// A product with a vector: one row, or one column (then the operands are swapped).
fn multiply_vector(x: &Array, y: &Array, out: &Array, batches: &Nest) -> Result<()> {
    let (rows, columns) = (x.rank() - 2, x.rank() - 1);
    // The vector, its axis of summation, the matrix, its axes of summation and of results.
    let (vector, along, matrix, sum, free) =
        if x.dim(rows) == 1 { (x, columns, y, rows, columns) } else { (y, rows, x, columns, rows) };
    let (n, count) = (matrix.dim(free), batches.numel());
    let by_rows = matrix.stride(sum) == 1 && matrix.stride(free) != 1;
    let (entry, width) = if by_rows { ("rows", 8) } else { ("columns", 32) };
    let mut run = Dispatch::new("vecmat", shader!("vecmat"), x.dtype());
    run.entry(entry).input("x", vector).input("y", matrix).output("out", out);
    run.words([n, matrix.dim(sum), count, batches.inner()]);
    let swapped = usize::from(x.dim(rows) != 1);
    write(&mut run, batches, swapped, vector);
    run.words([vector.stride(along) as usize]);
    write(&mut run, batches, 1 - swapped, matrix);
    run.words([matrix.stride(sum) as usize, matrix.stride(free) as usize, n]);
    run.flops(2 * n * matrix.dim(sum) * count);
    run.launch(n.div_ceil(width * per_word(out.dtype())) * count)
}
