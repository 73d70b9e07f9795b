//! Matrix products: `[..., m, k] x [..., k, n] -> [..., m, n]`, batch axes broadcast, any strides.
//!
//! Floats go to the `gemm` crate, which reads strides and picks its instructions itself. It is always
//! called serially: the product is cut here, into blocks whose borders come from the shape alone, so that
//! the bits do not depend on the number of threads. Halves are widened to `f32` and their result is rounded
//! once.

use super::block::{Block, Gemm};
use super::copy::{cast, contiguous};
pub use super::epilogue::{Activation, Epilogue};
use super::layout::{Nest, common_dtype, wrong_dtype};
use super::threads::{Shared, parallel_for};
use crate::array::Array;
use crate::buffer::Device;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::real::Integer;
use crate::shape::Shape;

/// Multiplications that are worth a piece of a parallel loop.
const WORK: usize = 1 << 21;
/// Rows and columns of a block, where a product is cut into blocks.
const BLOCK: usize = 192;
/// Products whose depth exceeds their sides by far are cut along the depth, into this many steps at a time.
const DEPTH: usize = 4096;

/// The matrix product over the last two axes. Both operands have one dtype and the same rank, at least 2.
pub fn matmul(a: &Array, b: &Array) -> Result<Array> {
    matmul_with(a, b, &Epilogue::default())
}

/// `act(alpha A B + bias)`: the product with what follows it, see [`Epilogue`], which is for floats.
pub fn matmul_with(a: &Array, b: &Array, epilogue: &Epilogue) -> Result<Array> {
    let dtype = common_dtype(&[a, b])?;
    if dtype.compute() == dtype {
        let mut out = product(a, b)?;
        epilogue.apply(&mut out)?;
        return Ok(out);
    }
    let mut out = product(&widened(a)?, &widened(b)?)?;
    epilogue.apply(&mut out)?;
    cast(&out, dtype)
}

/// The matrix product of two operands whose dtype is computed in as it is.
fn product(a: &Array, b: &Array) -> Result<Array> {
    let dtype = common_dtype(&[a, b])?;
    let rank = a.rank();
    if rank < 2 || b.rank() != rank || a.dim(rank - 1) != b.dim(rank - 2) {
        return Err(Error::shape(format!("internal: matmul got shapes {} and {}", a.shape(), b.shape())));
    }
    let batch = a.shape().part(0, rank - 2).broadcast(&b.shape().part(0, rank - 2)).ok_or_else(|| {
        Error::shape(format!("internal: matmul cannot broadcast batches of {} and {}", a.shape(), b.shape()))
    })?;
    let (m, k, n) = (a.dim(rank - 2), a.dim(rank - 1), b.dim(rank - 1));
    let shape = batch.inserted(rank - 2, m)?.inserted(rank - 1, n)?;
    if m * n * k * batch.numel() == 0 {
        return Array::full(shape, 0.0, dtype);
    }
    let out = Array::empty(shape, dtype, Device::Cpu)?;
    let mut a = merged(a, b, &batch)?;
    let mut b = b.clone();
    if !dtype.is_float() {
        (a, b) = (contiguous(&a)?, contiguous(&b)?);
    }
    let p = Product::new(&a, &b, &out)?;
    match dtype {
        DType::F32 => float_product::<f32>(&p),
        DType::F64 => float_product::<f64>(&p),
        DType::U8 => int_product::<u8>(&p),
        DType::I32 => int_product::<i32>(&p),
        DType::I64 => int_product::<i64>(&p),
        other => return Err(wrong_dtype("matmul", other)),
    }
    Ok(out)
}

/// `a` in `f32`; a transposed matrix stays transposed, since its copy is then a straight one.
fn widened(a: &Array) -> Result<Array> {
    let rank = a.rank();
    let mut swap: Vec<u8> = (0..rank as u8).collect();
    swap.swap(rank - 2, rank - 1);
    if !a.is_contiguous() && a.stride(rank - 2) == 1 {
        return cast(&a.permute(&swap)?, DType::F32)?.permute(&swap);
    }
    cast(a, DType::F32)
}

/// `[..., m, k]` as one matrix `[1, ..., batch * m, k]` where `b` is the same matrix for the whole batch:
/// one large product is faster than many small ones. Otherwise `a` itself.
fn merged(a: &Array, b: &Array, batch: &Shape) -> Result<Array> {
    let rank = a.rank();
    let single = (0..rank - 2).all(|i| b.dim(i) == 1) && a.shape().part(0, rank - 2) == *batch;
    if rank == 2 || !single {
        return Ok(a.clone());
    }
    let mut dims = vec![1; rank];
    dims[rank - 2] = batch.numel() * a.dim(rank - 2);
    dims[rank - 1] = a.dim(rank - 1);
    Ok(a.reshape_view(&Shape::new(&dims)?).unwrap_or_else(|| a.clone()))
}

/// Sizes and strides of a batch of products; the output is contiguous.
struct Product {
    m: usize,
    k: usize,
    n: usize,
    /// Row and column strides of both operands.
    a: (isize, isize),
    b: (isize, isize),
    /// The batch: positions of `a` and `b`.
    batch: Nest,
    count: usize,
    data: (Shared<u8>, Shared<u8>, Shared<u8>),
}

impl Product {
    fn new(a: &Array, b: &Array, out: &Array) -> Result<Product> {
        let rank = a.rank();
        let strides = |x: &Array| (x.stride(rank - 2), x.stride(rank - 1));
        let front =
            |x: &Array| x.with_layout(x.shape().part(0, rank - 2), &x.strides()[..rank - 2], x.offset());
        let (fa, fb) = (front(a)?, front(b)?);
        let batch = fa.shape().broadcast(&fb.shape()).unwrap_or_default();
        let start = |x: &Array| Shared::new(x.buffer().ptr().wrapping_add(x.offset() * x.dtype().size()));
        Ok(Product {
            m: a.dim(rank - 2),
            k: a.dim(rank - 1),
            n: b.dim(rank - 1),
            a: strides(a),
            b: strides(b),
            batch: Nest::new(&batch, &[&fa, &fb]),
            count: batch.numel(),
            data: (start(a), start(b), start(out)),
        })
    }

    /// The first elements of both operands and of the output.
    fn pointers<T>(&self) -> (Shared<T>, Shared<T>, Shared<T>) {
        let typed = |p: Shared<u8>| Shared::new(p.get().cast::<T>());
        (typed(self.data.0), typed(self.data.1), typed(self.data.2))
    }

    /// Positions of both operands for one element of the batch.
    fn position(&self, item: usize) -> (isize, isize) {
        let at = self.batch.coordinates(item);
        (self.batch.position(0, &at), self.batch.position(1, &at))
    }
}

/// Sides of the blocks that an `m x n` product of depth `k` is cut into.
fn cut(m: usize, n: usize, k: usize) -> (usize, usize) {
    if m * n * k < 4 * WORK {
        return (m, n);
    }
    // About sixteen blocks, none thinner than BLOCK unless the product itself is.
    let rows = m.div_ceil(if n >= 2 * BLOCK { 4 } else { 16 }).max(BLOCK).min(m);
    let columns = n.div_ceil(if m >= 2 * BLOCK { 4 } else { 16 }).max(BLOCK).min(n);
    (rows, columns)
}

fn float_product<T: Gemm>(p: &Product) {
    let (m, n, k) = (p.m, p.n, p.k);
    if k >= 2 * DEPTH && m * n <= BLOCK * BLOCK {
        return deep_product::<T>(p);
    }
    let (rows, columns) = cut(m, n, k);
    let (down, across) = (m.div_ceil(rows), n.div_ceil(columns));
    let (a, b, out) = p.pointers::<T>();
    let tasks = p.count * down * across;
    parallel_for(tasks, WORK.div_ceil(rows * columns * k), |range| {
        for task in range {
            let (item, block) = (task / (down * across), task % (down * across));
            let (i, j) = (block / across * rows, block % across * columns);
            let (pa, pb) = p.position(item);
            // SAFETY: the block lies inside its operands, and blocks of the output are disjoint.
            unsafe {
                Block {
                    m: rows.min(m - i),
                    n: columns.min(n - j),
                    k,
                    out: out.get().add((item * m + i) * n + j),
                    out_stride: n as isize,
                    a: a.get().offset(pa + i as isize * p.a.0),
                    a_strides: p.a,
                    b: b.get().offset(pb + j as isize * p.b.1),
                    b_strides: p.b,
                }
                .multiply();
            }
        }
    });
}

/// Products of a long depth and a small result: pieces of the depth are multiplied apart and added in order.
fn deep_product<T: Gemm>(p: &Product) {
    let (m, n, k) = (p.m, p.n, p.k);
    let depth = k.div_ceil(k.div_ceil(DEPTH).min(64));
    let pieces = k.div_ceil(depth);
    let (a, b, out) = p.pointers::<T>();
    let mut partial = vec![T::from_f64(0.0); m * n * pieces];
    for item in 0..p.count {
        let (pa, pb) = p.position(item);
        let to = Shared::new(partial.as_mut_ptr());
        parallel_for(pieces, (WORK / 8).div_ceil(m * n * depth), |range| {
            for piece in range {
                let from = piece * depth;
                // SAFETY: the piece lies inside its operands and has its own part of the table.
                unsafe {
                    Block {
                        m,
                        n,
                        k: depth.min(k - from),
                        out: to.get().add(piece * m * n),
                        out_stride: n as isize,
                        a: a.get().offset(pa + from as isize * p.a.1),
                        a_strides: p.a,
                        b: b.get().offset(pb + from as isize * p.b.0),
                        b_strides: p.b,
                    }
                    .multiply();
                }
            }
        });
        // SAFETY: every item of the batch has its own part of the output.
        let out = unsafe { out.part(item * m * n, m * n) };
        let (first, rest) = partial.split_at(m * n);
        out.copy_from_slice(first);
        for part in rest.chunks_exact(m * n) {
            out.iter_mut().zip(part).for_each(|(y, &x)| *y += x);
        }
    }
}

/// Integer products, wrapping: rows of `b` are added to rows of the output.
fn int_product<I: Integer + Element>(p: &Product) {
    let (m, n, k) = (p.m, p.n, p.k);
    let (a, b, out) = p.pointers::<I>();
    parallel_for(p.count * m, WORK.div_ceil(n * k), |range| {
        for line in range {
            let (pa, pb) = p.position(line / m);
            // SAFETY: both operands are contiguous matrices at these positions; lines of the output are
            // disjoint.
            unsafe {
                let row = a.get().offset(pa).add(line % m * k);
                let matrix = b.get().offset(pb);
                let to = out.part(line * n, n);
                to.fill(Integer::lit(0));
                for l in 0..k {
                    let factor = *row.add(l);
                    let from = std::slice::from_raw_parts(matrix.add(l * n), n);
                    to.iter_mut()
                        .zip(from)
                        .for_each(|(t, &f)| *t = Integer::add(*t, Integer::mul(factor, f)));
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::{layouts, same_for_any_threads, sample, values};
    use super::*;
    use crate::real::{Left, Pointwise, Real};

    #[derive(Clone, Copy)]
    struct Relu;

    impl Pointwise<1> for Relu {
        fn apply<R: Real>(&self, [x]: [R; 1]) -> R
        where
            f64: Left<R>,
        {
            R::select(x.le(R::lit(0.0)), R::lit(0.0), x)
        }
    }

    fn check(a: &Array, b: &Array, tolerance: f64) -> Result<()> {
        let got = same_for_any_threads(|| matmul(a, b))?;
        let rank = a.rank();
        let (m, k, n) = (a.dim(rank - 2), a.dim(rank - 1), b.dim(rank - 1));
        let batch = got.shape().part(0, rank - 2).to_vec();
        let stretch = |x: &Array, rows, columns| {
            x.expand(&Shape::new(&[&batch[..], &[rows, columns]].concat())?).map(|x| values(&x))
        };
        let (x, y) = (stretch(a, m, k)?, stretch(b, k, n)?);
        for (i, got) in values(&got).iter().enumerate() {
            let (item, row, column) = (i / (m * n), i / n % m, i % n);
            let want: f64 =
                (0..k).map(|l| x[(item * m + row) * k + l] * y[(item * k + l) * n + column]).sum();
            assert!((got - want).abs() <= tolerance * (k as f64).sqrt(), "{a:?} {b:?}: {got} {want}");
        }
        Ok(())
    }

    #[test]
    fn every_dtype_layout_and_size() -> Result<()> {
        for (dtype, tolerance) in [
            (DType::F32, 4e-6),
            (DType::F64, 1e-14),
            (DType::I32, 0.0),
            (DType::I64, 0.0),
            (DType::F16, 0.02),
            (DType::BF16, 0.1),
        ] {
            for (m, k, n) in [(1, 1, 1), (3, 5, 2), (1, 40, 30), (30, 40, 1), (17, 9, 33)] {
                for a in layouts(&[m, k], dtype)?.into_iter().take(4) {
                    for b in layouts(&[k, n], dtype)?.into_iter().take(4) {
                        check(&a, &b, tolerance)?;
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn an_epilogue_is_what_follows_the_product() -> Result<()> {
        for dtype in [DType::F32, DType::F64, DType::BF16] {
            let (a, b) = (sample(&[2, 3, 5], dtype)?, sample(&[1, 5, 4], dtype)?);
            let plain = values(&matmul(&a, &b)?);
            for (bias, row) in [(sample(&[4], dtype)?, false), (sample(&[3, 1], dtype)?, true)] {
                let epilogue = Epilogue { alpha: 0.5, bias: Some(&bias), act: Some(&Relu) };
                let got = same_for_any_threads(|| matmul_with(&a, &b, &epilogue))?;
                let bias = values(&bias);
                for (i, (got, plain)) in values(&got).iter().zip(&plain).enumerate() {
                    let want = (0.5 * plain + bias[if row { i / 4 % 3 } else { i % 4 }]).max(0.0);
                    assert!(
                        (got - want).abs() <= if dtype == DType::BF16 { 0.05 } else { 1e-6 },
                        "{got} {want}"
                    );
                }
            }
        }
        Ok(())
    }

    #[test]
    fn batches_broadcast() -> Result<()> {
        for dtype in [DType::F32, DType::I32] {
            for (a, b) in [
                (&[4, 3, 5][..], &[1, 5, 2][..]),
                (&[1, 3, 5], &[4, 5, 2]),
                (&[2, 1, 3, 5], &[1, 6, 5, 2]),
                (&[2, 6, 3, 5], &[1, 1, 5, 20]),
                (&[0, 3, 5], &[1, 5, 2]),
                (&[2, 3, 0], &[1, 0, 2]),
            ] {
                for a in layouts(a, dtype)?.into_iter().take(3) {
                    for b in layouts(b, dtype)?.into_iter().take(3) {
                        check(&a, &b, 4e-6)?;
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn large_and_deep_products() -> Result<()> {
        for (m, k, n) in [(500, 40, 430), (1000, 100, 90), (30, 20_000, 8), (1, 9000, 1), (1, 700, 13_000)] {
            check(&sample(&[m, k], DType::F32)?, &sample(&[k, n], DType::F32)?, 1e-5)?;
        }
        check(&sample(&[3, 4, 9000], DType::F64)?, &sample(&[1, 9000, 5], DType::F64)?, 1e-13)
    }
}
