//! Matrix products on the GPU; the counterpart of `src/cpu/product/matmul.rs`.
//!
//! Results large enough to fill a device are computed in tiles of 128 x 128, others in tiles of 64 x 64, and
//! products with a vector in one pass over the matrix. The choice depends only on the shapes.

use super::copy::{contiguous, convert, index_of};
use super::params::Params;
use super::parts::{ROUNDS, part_of, sum_of_parts};
use crate::array::Array;
use crate::array::dtype::DType;
use crate::array::nest::Nest;
use crate::array::shape::Shape;
use crate::error::{Error, Result};
use crate::gpu::shader::template::{Template, arithmetic, per_word};
use crate::gpu::{kernel, launch, variant};

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
    let sums = arithmetic(a.dtype());
    // In products with a vector at least eight invocations share an element.
    let longest = if m == 1 || n == 1 { 8 * ROUNDS } else { ROUNDS };
    if k > longest {
        let parts_of = |part| product(&part_of(a, r - 1, part)?, &part_of(b, r - 2, part)?, batch, sums);
        return sum_of_parts(k, a.dtype(), parts_of);
    }
    // Rows of packed outputs must start on whole words; a single column is written as a row.
    let columns = if n == 1 { m } else { n };
    let whole = columns.is_multiple_of(per_word(a.dtype()) as usize);
    let out = product(a, b, batch, if whole { a.dtype() } else { sums })?;
    if out.dtype() == a.dtype() { Ok(out) } else { convert(&out, a.dtype()) }
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
    let mut batches = Batches::new(&x, &y);
    if batches.0.rank > 2 {
        (x, y) = (contiguous(&x)?, contiguous(&y)?);
        batches = Batches::new(&x, &y);
    }
    if m == 1 || n == 1 {
        multiply_vector(&x, &y, &out, &batches)?
    } else {
        multiply(&x, &y, &out, &batches)?
    }
    Ok(out)
}

/// The batch axes of two operands.
struct Batches(Nest);

impl Batches {
    fn new(x: &Array, y: &Array) -> Batches {
        Batches(Nest::over(&x.shape(), &[x, y], 0..x.rank() - 2))
    }

    fn count(&self) -> usize {
        self.0.numel()
    }

    /// The length of the inner of two batch levels.
    fn inner(&self) -> usize {
        self.0.inner()
    }

    /// Adds the offset of operand `which` and its strides along the outer and inner level.
    fn write(&self, params: &mut Params, which: usize, x: &Array) {
        let strides = &self.0.strides[which][..self.0.rank];
        let outer = if strides.len() == 2 { strides[0] } else { 0 };
        params.word(x.offset()).word(outer as usize).word(strides[strides.len() - 1] as usize);
    }
}

fn template(source: &'static str, x: &Array, out: &Array) -> Template {
    let mut text = Template::new(source, x.dtype());
    text.load("x", x.dtype()).load("y", x.dtype()).store("out", out.dtype()).elements_per_word(out.dtype());
    text
}

fn multiply(x: &Array, y: &Array, out: &Array, batches: &Batches) -> Result<()> {
    let (index, r) = (index_of(x)?, x.rank());
    let (m, k, n) = (x.dim(r - 2), x.dim(r - 1), y.dim(r - 1));
    let large = m >= 128 && n >= 128 && m.div_ceil(128) * n.div_ceil(128) * batches.count() >= LARGE_TILES;
    let (name, source, tile) = if large {
        ("matmul_large", include_str!("../../../shaders/matmul_large.wgsl"), 128)
    } else {
        ("matmul", include_str!("../../../shaders/matmul.wgsl"), 64)
    };
    let key = variant(&[x.dtype() as u64, out.dtype() as u64]);
    let kernel = kernel(index, name, key, "main", || template(source, x, out).build())?;
    let (tiles_m, tiles_n) = (m.div_ceil(tile), n.div_ceil(tile));
    let mut params = Params::default();
    params.word(m).word(n).word(k).word(batches.count()).word(batches.inner()).word(tiles_m).word(tiles_n);
    for (which, a) in [x, y].into_iter().enumerate() {
        batches.write(&mut params, which, a);
        params.word(a.stride(r - 2) as usize).word(a.stride(r - 1) as usize);
    }
    params.word(m * n).word(n);
    let groups = (tiles_m * tiles_n) as u64 * batches.count() as u64;
    launch(index, &kernel, &[x.buffer(), y.buffer(), out.buffer()], params.words(), groups)
}

/// A product with a vector: one row, or one column (then the operands are swapped).
fn multiply_vector(x: &Array, y: &Array, out: &Array, batches: &Batches) -> Result<()> {
    let (index, r) = (index_of(x)?, x.rank());
    let (rows, columns) = (r - 2, r - 1);
    // The vector, its axis of summation, the matrix, its axes of summation and of results.
    let (vector, along, matrix, sum, free) =
        if x.dim(rows) == 1 { (x, columns, y, rows, columns) } else { (y, rows, x, columns, rows) };
    let n = matrix.dim(free);
    let by_rows = matrix.stride(sum) == 1 && matrix.stride(free) != 1;
    let (entry, width) = if by_rows { ("rows", 8) } else { ("columns", 32) };
    let key = variant(&[x.dtype() as u64, out.dtype() as u64, u64::from(by_rows)]);
    let source = include_str!("../../../shaders/vecmat.wgsl");
    let kernel = kernel(index, "vecmat", key, entry, || template(source, x, out).build())?;
    let mut params = Params::default();
    params.word(n).word(matrix.dim(sum)).word(batches.count()).word(batches.inner());
    let swapped = usize::from(x.dim(rows) != 1);
    batches.write(&mut params, swapped, vector);
    params.word(vector.stride(along) as usize);
    batches.write(&mut params, 1 - swapped, matrix);
    params.word(matrix.stride(sum) as usize).word(matrix.stride(free) as usize).word(n);
    let groups = n.div_ceil(width * per_word(out.dtype()) as usize) as u64 * batches.count() as u64;
    launch(index, &kernel, &[vector.buffer(), matrix.buffer(), out.buffer()], params.words(), groups)
}
