//! Compares every instruction set of this processor with the definition, over shapes and layouts.

use super::*;
use crate::cpu::run::threads::set_num_threads;
use std::sync::Mutex;

/// A sink that collects pieces, each of which must come once.
struct Collect<O>(Mutex<Vec<Option<O>>>, usize);

impl<O: Copy + Send> Sink<O> for Collect<O> {
    unsafe fn take(&self, piece: Piece<O>) {
        let mut out = self.0.lock().unwrap_or_else(|e| e.into_inner());
        for i in 0..piece.rows {
            for j in 0..piece.columns {
                // SAFETY: `run` passes a piece that is valid and that no other thread accesses.
                let x = unsafe { *piece.at.offset(i as isize * piece.stride + j as isize) };
                assert!(out[(piece.i + i) * self.1 + piece.j + j].replace(x).is_none(), "a piece came twice");
            }
        }
    }
}

fn number(i: usize) -> i64 {
    ((i * 2_654_435_761 + 12_345) >> 7) as i64 % 9 - 4
}

/// Returns one of five layouts of a matrix: its memory size, start and two strides.
fn layout(rows: usize, columns: usize, kind: usize) -> (usize, usize, isize, isize) {
    let (r, c) = (rows as isize, columns as isize);
    match kind {
        0 => (rows * columns, 0, c, 1),
        1 => (rows * columns, 0, 1, r),
        2 => (rows * (columns + 3), 2, c + 3, 1),
        3 => (3 * rows * columns, 0, 3 * c, 3),
        _ => (rows * columns, rows * columns - 1, -c, -1),
    }
}

/// Checks a product of small integers, every sum of which is exact, in memory and through a sink; `stored`
/// makes an operand of an integer.
fn check<M: Kernels<Out: Element>>(
    stored: impl Fn(i64) -> M::Stored, [m, k, n]: [usize; 3], (x, y): (usize, usize),
) {
    let ((size_a, a0, ar, ac), (size_b, b0, br, bc)) = (layout(m, k, x), layout(k, n, y));
    let memory = |size: usize, seed: usize| (0..size + 2).map(move |i| number(i + seed));
    let (a, b): (Vec<i64>, Vec<i64>) = (memory(size_a, 0).collect(), memory(size_b, 7).collect());
    let want = |i: usize, j: usize| -> i64 {
        let a = |l: usize| a[(a0 as isize + i as isize * ar + l as isize * ac) as usize];
        let b = |l: usize| b[(b0 as isize + l as isize * br + j as isize * bc) as usize];
        (0..k).map(|l| a(l) * b(l)).sum()
    };
    let wanted: Vec<i64> = (0..m * n).map(|at| want(at / n, at % n)).collect();
    let elements = |v: &[i64]| -> Vec<M::Stored> { v.iter().map(|&v| stored(v)).collect() };
    let (sa, sb) = (elements(&a), elements(&b));
    let stride = n + 1;
    let mut out: Vec<M::Out> = vec![M::Out::from_i64(5); m * stride];
    let p = Product::<M::Stored, M::Out> {
        m,
        n,
        k,
        left: MatrixRef { data: sa[a0..].as_ptr(), free: ar, depth: ac },
        right: MatrixRef { data: sb[b0..].as_ptr(), free: bc, depth: br },
        target: Target::Memory(out.as_mut_ptr(), stride as isize, None),
    };
    // SAFETY: the vectors have these sizes.
    assert!(unsafe { run::<M>(&p) }.is_ok());
    for (at, got) in out.iter().enumerate() {
        let (i, j) = (at / stride, at % stride);
        let want = if j == n { 5 } else { wanted[i * n + j] };
        assert_eq!(got.to_f64(), want as f64, "{m} {k} {n}, layouts {x} {y}, at {i}, {j}");
    }
    let sink = Collect(Mutex::new(vec![None; m * n]), n);
    // SAFETY: the vectors have these sizes.
    assert!(unsafe { run::<M>(&Product { target: Target::Sink(&sink), ..p }) }.is_ok());
    let got = sink.0.into_inner().unwrap_or_default();
    let got: Vec<_> = got.iter().flatten().map(|x| x.to_f64()).collect();
    let want: Vec<_> = wanted.iter().map(|&v| v as f64).collect();
    assert!(got == want, "{m} {k} {n}, layouts {x} {y}, through a sink");
}

/// Checks shapes around the borders of vectors, tiles, strips and blocks, and layouts for each.
fn check_all<M: Kernels<Out: Element>>(stored: impl Fn(i64) -> M::Stored) {
    for (x, y) in (0..25).map(|i| (i / 5, i % 5)) {
        for size in [
            [1, 1, 1],
            [2, 3, 4],
            [7, 5, 16],
            [13, 17, 33],
            [1, 70, 50],
            [50, 70, 1],
            [3, 66, 21],
            [21, 67, 4],
            [8, 64, 9],
            [1, 300, 1],
            [30, 19, 2],
            [14, 40, 70],
            [5, 33, 63],
            [6, 8, 47],
            [13, 2, 300],
        ] {
            check::<M>(&stored, size, (x, y));
        }
    }
    for threads in [1, 3] {
        set_num_threads(threads);
        for (x, y) in [(0, 0), (0, 1), (1, 0), (1, 1), (3, 4)] {
            for size in [[100, 1100, 130], [2, 700, 600], [16, 600, 200], [150, 65, 40], [30, 4100, 70]] {
                check::<M>(&stored, size, (x, y));
            }
        }
    }
}

#[test]
fn plain_rust_multiplies() {
    check_all::<Baseline<f32, 4>>(|x| x as f32);
    check_all::<Baseline<f64, 2>>(|x| x as f64);
    check_all::<Baseline<i32, 4>>(|x| x as i32);
    check_all::<Baseline<i64, 2>>(|x| x);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn avx2_multiplies() {
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        check_all::<x86::F32x8>(|x| x as f32);
        check_all::<x86::F64x4>(|x| x as f64);
        check_all::<x86::I32x8>(|x| x as i32);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn avx512_multiplies() {
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
        check_all::<x86::F32x16>(|x| x as f32);
        check_all::<x86::F64x8>(|x| x as f64);
        check_all::<x86::I32x16>(|x| x as i32);
        check_all::<x86::I64x8>(|x| x);
    }
    if is_x86_feature_detected!("avx512bf16") {
        check_all::<x86::Bf16x32>(|x| half::bf16::from_f32(x as f32).to_bits());
    }
}
