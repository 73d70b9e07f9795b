//! Matrix products: `[..., m, k] x [..., k, n] -> [..., m, n]`, batch axes broadcast, any strides.
//!
//! Maps arrays to products of matrices in memory (`src/cpu/product/mod.rs`): a batch of them or pieces of
//! one. Transposes and broadcast batches are strides; nothing is copied for them. Epilogues, and rounding to
//! halves, are applied piece by piece (`src/cpu/product/epilogue.rs`).

pub use super::epilogue::Epilogue;
use super::epilogue::{Finish, Finishing};
use crate::array::shape::Axes;
use crate::cpu::prelude::*;
use crate::cpu::product::{self, MatrixRef, Multiply, Piece, Product, Sink, Target};

/// Multiplications that are worth one chunk of a parallel loop over a batch.
const WORK: usize = 1 << 20;
/// Multiplications from which on each matrix of a batch is split among threads itself.
const LARGE: usize = 1 << 24;
/// Results up to this size are cut along a long depth, into pieces of [`DEPTH`] steps.
const SMALL: usize = 192 * 192;
const DEPTH: usize = 4096;

/// Returns the matrix product over the last two axes. Both operands have one dtype and one rank, at least 2.
pub fn matmul(a: &Array, b: &Array) -> Result<Array> {
    matmul_with(a, b, &Epilogue::default())
}

/// Returns the product of two matrices, and the sums of the rows of the left one.
pub fn with_row_sums(a: &Array, b: &Array) -> Result<(Array, Array)> {
    Ok((matmul(a, b)?, crate::cpu::reduce::sum(&a.transposed(0, 1)?, Axes::one(0), false)?))
}

/// Returns `act(alpha A B + bias)`, see [`Epilogue`]; an epilogue is for floats only.
pub fn matmul_with(a: &Array, b: &Array, epilogue: &Epilogue) -> Result<Array> {
    let dtype = common_dtype(&[a, b])?;
    let rank = a.rank();
    if rank < 2 || b.rank() != rank || a.dim(rank - 1) != b.dim(rank - 2) {
        return Err(Error::shape(format!("internal: matmul got shapes {} and {}", a.shape(), b.shape())));
    }
    let batch = match rank {
        2 => Shape::default(),
        _ => a.shape().part(0, rank - 2).broadcast(&b.shape().part(0, rank - 2)).ok_or_else(|| {
            Error::shape(format!(
                "internal: matmul cannot broadcast batches of {} and {}",
                a.shape(),
                b.shape()
            ))
        })?,
    };
    let shape = batch.inserted(rank - 2, a.dim(rank - 2))?.inserted(rank - 1, b.dim(rank - 1))?;
    let wide = dtype.modular();
    if dtype != wide {
        // The low bits of a sum of products depend on the low bits of the factors alone.
        return cast(&matmul_with(&cast(a, wide)?, &cast(b, wide)?, epilogue)?, dtype);
    }
    let out = Array::empty(shape, dtype, Device::Cpu)?;
    if out.numel() == 0 {
        return Ok(out);
    }
    if !dtype.is_float() && !epilogue.is_none() {
        return Err(wrong_dtype("the epilogue of matmul", dtype));
    }
    let a = &merged(a, b, &batch, epilogue)?;
    match dtype {
        DType::F32 => floats::<f32>(&out, a, b, epilogue),
        DType::F64 => floats::<f64>(&out, a, b, epilogue),
        DType::I32 => products::<i32>(&out, a, b, None),
        DType::I64 => products::<i64>(&out, a, b, None),
        DType::F16 | DType::BF16 => halves(&out, a, b, epilogue),
        other => Err(wrong_dtype("matmul", other)),
    }?;
    Ok(out)
}

/// Returns `[..., m, k]` as one matrix `[1, ..., batch * m, k]` where `b` is the same matrix for the whole
/// batch: one large product is faster than many small ones. Otherwise returns `a` itself.
fn merged(a: &Array, b: &Array, batch: &Shape, epilogue: &Epilogue) -> Result<Array> {
    let rank = a.rank();
    let single = (0..rank - 2).all(|i| b.dim(i) == 1) && a.shape().part(0, rank - 2) == *batch;
    if rank == 2 || !single || epilogue.bias.is_some_and(|bias| bias.rank() > 1) {
        return Ok(a.clone());
    }
    let mut dims = vec![1; rank];
    dims[rank - 2] = batch.numel() * a.dim(rank - 2);
    dims[rank - 1] = a.dim(rank - 1);
    Ok(a.reshape_view(&Shape::new(&dims)?).unwrap_or_else(|| a.clone()))
}

/// Sizes and strides of a batch of products.
struct Batch {
    m: usize,
    k: usize,
    n: usize,
    /// Row and column strides of both operands.
    a: (isize, isize),
    b: (isize, isize),
    /// The first elements of both operands.
    start: (*const u8, *const u8),
    /// The batch axes, with strides of `a` and `b`.
    nest: Nest,
    count: usize,
}

// SAFETY: the operands are only read.
unsafe impl Sync for Batch {}

impl Batch {
    fn new(a: &Array, b: &Array) -> Batch {
        let rank = a.rank();
        let strides = |x: &Array| (x.stride(rank - 2), x.stride(rank - 1));
        let start = |x: &Array| x.buffer().ptr().wrapping_add(x.offset() * x.dtype().size()).cast_const();
        let mut nest = Nest::empty();
        let mut count = 1;
        for axis in 0..rank - 2 {
            let length = a.dim(axis).max(b.dim(axis));
            let step = |x: &Array| if x.dim(axis) == 1 { 0 } else { x.stride(axis) };
            nest.push(length, &[step(a), step(b)]);
            count *= length;
        }
        nest.rank = nest.rank.max(1);
        let (m, k, n) = (a.dim(rank - 2), a.dim(rank - 1), b.dim(rank - 1));
        Batch { m, k, n, a: strides(a), b: strides(b), start: (start(a), start(b)), nest, count }
    }

    /// Returns one batch element as a product.
    fn product<'a, S, O>(&self, item: usize, target: Target<'a, O>) -> Product<'a, S, O> {
        let (mut pa, mut pb) = (0, 0);
        if self.count > 1 {
            let at = self.nest.coordinates(item);
            (pa, pb) = (self.nest.position(0, &at), self.nest.position(1, &at));
        }
        let (a, b) = (self.start.0.cast::<S>(), self.start.1.cast::<S>());
        let left = MatrixRef { data: a.wrapping_offset(pa), free: self.a.0, depth: self.a.1 };
        let right = MatrixRef { data: b.wrapping_offset(pb), free: self.b.1, depth: self.b.0 };
        Product { m: self.m, n: self.n, k: self.k, left, right, target }
    }

    /// Whether the depth is long for a small result.
    fn is_deep(&self) -> bool {
        self.k >= 2 * DEPTH && self.m * self.n <= SMALL
    }

    /// Returns a whole product as one piece.
    fn whole<O>(&self, at: *mut O) -> Piece<O> {
        Piece { at, stride: self.n as isize, i: 0, j: 0, rows: self.m, columns: self.n }
    }

    /// Calls `f` for every batch element. Threads share small elements; `f` splits large ones.
    fn for_each(&self, f: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
        let work = self.m * self.n * self.k;
        if self.count == 1 || work >= LARGE {
            return (0..self.count).try_for_each(f);
        }
        try_parallel_for(self.count, WORK.div_ceil(work.max(1)), |mut range| range.try_for_each(&f))
    }
}

/// Computes products of `f32` or `f64`.
fn floats<T: Finishing>(out: &Array, a: &Array, b: &Array, epilogue: &Epilogue) -> Result<()> {
    if epilogue.is_none() {
        return products::<T>(out, a, b, None);
    }
    let rank = out.rank();
    let finish = Finish::<T>::new(epilogue, out.dim(rank - 2), out.dim(rank - 1))?;
    products::<T>(out, a, b, Some(&finish))
}

/// Computes products in the dtype of the result, and passes them to the sink.
fn products<T: Multiply>(out: &Array, a: &Array, b: &Array, sink: Option<&dyn Sink<T>>) -> Result<()> {
    let p = Batch::new(a, b);
    let to = Shared::new(out.ptr::<T>());
    if p.k == 0 {
        // SAFETY: this call alone writes the output.
        unsafe { to.part(0, out.numel()) }.fill(T::default());
    }
    p.for_each(|item| {
        let at = to.get().wrapping_add(item * p.m * p.n);
        // SAFETY: operands and output exist in these sizes; every item has its own part of the output.
        unsafe {
            if p.k == 0 {
                if let Some(sink) = sink {
                    sink.take(p.whole(at));
                }
                Ok(())
            } else if p.is_deep() {
                deep::<T>(&p, item, at, sink)
            } else {
                T::multiply(&p.product(item, Target::Memory(at, p.n as isize, sink)))
            }
        }
    })
}

/// Products of halves, summed in `f32` and rounded once; widened where no instruction multiplies them.
fn halves(out: &Array, a: &Array, b: &Array, epilogue: &Epilogue) -> Result<()> {
    let p = Batch::new(a, b);
    let to = Shared::new(out.buffer().ptr().wrapping_add(out.offset() * 2).cast::<u16>());
    let finish = Finish::<f32>::new(epilogue, p.m, p.n)?.rounding(out.dtype(), to);
    if out.dtype() == DType::BF16 && product::has_bf16() && p.k > 0 && !p.is_deep() {
        return p.for_each(|item| {
            let finish = finish.item(item, p.m);
            // SAFETY: operands and output exist in these sizes; every item has its own part of the output.
            unsafe { product::multiply_bf16(&p.product(item, Target::Sink(&finish))) }
        });
    }
    let (a, b) = (widened(a)?, widened(b)?);
    if p.k == 0 || p.is_deep() {
        let sums = Array::empty(out.shape(), DType::F32, Device::Cpu)?;
        products::<f32>(&sums, &a, &b, None)?;
        let whole = |item: usize| p.whole(sums.ptr::<f32>().wrapping_add(item * p.m * p.n));
        // SAFETY: this call alone writes the sums, and every item has its own part of the output.
        (0..p.count).for_each(|item| unsafe { finish.item(item, p.m).take(whole(item)) });
        return Ok(());
    }
    let p = Batch::new(&a, &b);
    p.for_each(|item| {
        let finish = finish.item(item, p.m);
        // SAFETY: operands and output exist in these sizes; every item has its own part of the output.
        unsafe { f32::multiply(&p.product(item, Target::Sink(&finish))) }
    })
}

/// Returns `a` in `f32`. A transposed matrix stays transposed, so that its copy is a contiguous one.
fn widened(a: &Array) -> Result<Array> {
    let rank = a.rank();
    let mut swap: Vec<u8> = (0..rank as u8).collect();
    swap.swap(rank - 2, rank - 1);
    if !a.is_contiguous() && a.stride(rank - 2) == 1 {
        return cast(&a.permute(&swap)?, DType::F32)?.permute(&swap);
    }
    cast(a, DType::F32)
}

/// Computes a small product of long depth: pieces of the depth are multiplied separately and added in order.
///
/// # Safety
/// `out` has the result of this item, and no other thread writes it.
unsafe fn deep<T: Multiply>(p: &Batch, item: usize, out: *mut T, sink: Option<&dyn Sink<T>>) -> Result<()> {
    let (m, n, k) = (p.m, p.n, p.k);
    let depth = k.div_ceil(k.div_ceil(DEPTH).min(64));
    let pieces = k.div_ceil(depth);
    let given = p.product::<T, T>(item, Target::Memory(out, n as isize, None));
    let mut partial = filled(T::default(), m * n * pieces)?;
    let to = Shared::new(partial.as_mut_ptr());
    try_parallel_for(pieces, (WORK / 8).div_ceil(m * n * depth), |range| {
        for piece in range {
            let from = piece * depth;
            let (left, right) = (given.left.from(from), given.right.from(from));
            let at = Target::Memory(to.get().wrapping_add(piece * m * n), n as isize, None);
            let part = Product { k: depth.min(k - from), left, right, target: at, ..given };
            // SAFETY: the piece lies inside its operands and has its own part of `partial`.
            unsafe { T::multiply(&part)? };
        }
        Ok(())
    })?;
    // SAFETY: the caller guarantees `m * n` elements at `out` and sole access to them.
    unsafe {
        let out = Shared::new(out).part(0, m * n);
        out.fill(T::default());
        for part in partial.chunks_exact(m * n) {
            out.iter_mut().zip(part).for_each(|(y, &x)| *y = T::plus(*y, x));
        }
        if let Some(sink) = sink {
            sink.take(p.whole(out.as_mut_ptr()));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "../../../tests/kernels/matmul.rs"]
mod tests;
