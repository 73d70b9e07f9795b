//! What the factorisations are made of: operations on rows, and products of blocks.
//!
//! Matrices are slices in row-major order, so a row is contiguous and every loop here runs along rows.

use crate::cpu::isa::{PlainBody, run_widest};
use crate::cpu::product::{Number, Operand, Product, Target};

/// Rows and columns that are worked on at once; what lies beyond is updated by one product per block.
pub const BLOCK: usize = 48;

/// Partial sums of an inner product: their number, not the processor, decides the order of addition.
const SUMS: usize = 16;

struct Dot<'a>(&'a [f64], &'a [f64]);

impl PlainBody for Dot<'_> {
    type Output = f64;
    #[inline(always)]
    fn run(self) -> f64 {
        let (x, y) = (self.0.chunks_exact(SUMS), self.1.chunks_exact(SUMS));
        let tail: f64 = x.remainder().iter().zip(y.remainder()).map(|(a, b)| a * b).sum();
        let mut sums = [0.0; SUMS];
        for (x, y) in x.zip(y) {
            for i in 0..SUMS {
                sums[i] += x[i] * y[i];
            }
        }
        sums.iter().sum::<f64>() + tail
    }
}

/// The inner product of two rows of one length.
pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    run_widest(Dot(x, y))
}

struct Axpy<'a>(&'a mut [f64], f64, &'a [f64]);

impl PlainBody for Axpy<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (y, x) in self.0.iter_mut().zip(self.2) {
            *y += self.1 * x;
        }
    }
}

/// `y += a x`.
pub fn axpy(y: &mut [f64], a: f64, x: &[f64]) {
    run_widest(Axpy(y, a, x));
}

struct Rotate<'a>(&'a mut [f64], &'a mut [f64], f64, f64);

impl PlainBody for Rotate<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (c, s) = (self.2, self.3);
        for (x, y) in self.0.iter_mut().zip(self.1) {
            (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
        }
    }
}

/// The plane rotation `(x, y) = (c x - s y, s x + c y)`.
pub fn rotate(x: &mut [f64], y: &mut [f64], c: f64, s: f64) {
    run_widest(Rotate(x, y, c, s));
}

/// Rows `i < j` of a matrix with `n` columns, both to be changed.
pub fn two_rows(a: &mut [f64], n: usize, i: usize, j: usize) -> (&mut [f64], &mut [f64]) {
    let (front, back) = a.split_at_mut(j * n);
    (&mut front[i * n..(i + 1) * n], &mut back[..n])
}

/// The Euclidean length of a row, without overflow; NaN if an element is not finite.
pub fn length(x: &[f64]) -> f64 {
    let size = x.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    if size == 0.0 {
        return x.iter().sum();
    }
    size * x.iter().map(|v| (v / size) * (v / size)).sum::<f64>().sqrt()
}

/// Element `[i, j]` is `data[i * row + j * column]`.
#[derive(Clone, Copy)]
pub struct Block<'a> {
    /// The elements.
    pub data: &'a [f64],
    /// From one row to the next.
    pub row: usize,
    /// From one column to the next.
    pub column: usize,
}

impl<'a> Block<'a> {
    /// A block whose rows are `row` elements apart.
    pub fn rows(data: &'a [f64], row: usize) -> Block<'a> {
        Block { data, row, column: 1 }
    }

    /// The transpose of a block whose rows are `row` elements apart.
    pub fn transposed(data: &'a [f64], row: usize) -> Block<'a> {
        Block { data, row: 1, column: row }
    }

    fn reaches(&self, rows: usize, columns: usize) -> bool {
        (rows - 1) * self.row + (columns - 1) * self.column < self.data.len()
    }
}

/// `c += a b` for blocks of `m` x `k` and `k` x `n`; the rows of `c` are `stride` elements apart.
pub fn add_product(c: &mut [f64], stride: usize, (m, k, n): (usize, usize, usize), a: Block, b: Block) {
    if m == 0 || k == 0 || n == 0 {
        return;
    }
    assert!((m - 1) * stride + n <= c.len() && a.reaches(m, k) && b.reaches(k, n));
    let left = Operand { data: a.data.as_ptr(), free: a.row as isize, depth: a.column as isize };
    let right = Operand { data: b.data.as_ptr(), free: b.column as isize, depth: b.row as isize };
    let target = Target::Memory(c.as_mut_ptr(), stride as isize, None);
    // SAFETY: all blocks lie inside their slices, as asserted, and `c` is borrowed exclusively.
    unsafe { f64::multiply(&Product { m, n, k, left, right, target, add: true }) };
}

/// The product of a matrix of `m` x `k` and one of `k` x `n`.
pub fn product(a: &[f64], b: &[f64], (m, k, n): (usize, usize, usize)) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    add_product(&mut c, n, (m, k, n), Block::rows(a, k), Block::rows(b, n));
    c
}

/// The negative of columns `columns` of `rows` rows that are `stride` elements apart, side by side.
pub fn negated(a: &[f64], stride: usize, rows: usize, columns: std::ops::Range<usize>) -> Vec<f64> {
    (0..rows).flat_map(|i| a[i * stride..][columns.clone()].iter().map(|v| -v)).collect()
}

/// The transpose of a matrix with `m` rows and `n` columns.
pub fn transposed(a: &[f64], m: usize, n: usize) -> Vec<f64> {
    let mut t = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            t[j * m + i] = a[i * n + j];
        }
    }
    t
}

/// The identity as `m` rows of `n` columns.
pub fn identity(m: usize, n: usize) -> Vec<f64> {
    let mut a = vec![0.0; m * n];
    (0..m.min(n)).for_each(|i| a[i * n + i] = 1.0);
    a
}
