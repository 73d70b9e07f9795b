//! Compares every instruction set of this processor with the definition, over shapes and layouts.

use super::*;
use crate::cpu::run::threads::set_num_threads;
use std::sync::{LazyLock, Mutex};

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

/// A matrix of small integers in one of the five layouts: its memory, start and two strides, and its rows.
struct Stored {
    memory: Vec<i64>,
    start: usize,
    strides: (isize, isize),
    rows: Vec<i64>,
}

impl Stored {
    fn new(rows: usize, columns: usize, kind: usize, seed: usize) -> Stored {
        let (size, start, r, c) = layout(rows, columns, kind);
        let memory: Vec<i64> = (0..size + 2).map(|i| number(i + seed)).collect();
        let at = |i: usize| start as isize + (i / columns) as isize * r + (i % columns) as isize * c;
        let rows = (0..rows * columns).map(|i| memory[at(i) as usize]).collect();
        Stored { memory, start, strides: (r, c), rows }
    }
}

/// Two matrices, their layouts, and their product by its definition, every sum of which is exact.
struct Case {
    size: [usize; 3],
    kinds: (usize, usize),
    left: Stored,
    right: Stored,
    wanted: Vec<i64>,
}

impl Case {
    fn new(size: [usize; 3], kinds: (usize, usize)) -> Case {
        let [m, k, n] = size;
        let (left, right) = (Stored::new(m, k, kinds.0, 0), Stored::new(k, n, kinds.1, 7));
        let mut wanted = vec![0; m * n];
        for i in 0..m {
            for l in 0..k {
                let (x, y) = (left.rows[i * k + l], &right.rows[l * n..]);
                for j in 0..n {
                    wanted[i * n + j] += x * y[j];
                }
            }
        }
        Case { size, kinds, left, right, wanted }
    }

    /// Checks the product in memory and through a sink; `stored` makes an operand of an integer.
    fn check<M: Kernels<Out: Element>>(&self, stored: impl Fn(i64) -> M::Stored) {
        let Case { size: [m, k, n], kinds, left, right, wanted } = self;
        let (&m, &k, &n) = (m, k, n);
        let elements = |x: &Stored| -> Vec<M::Stored> { x.memory.iter().map(|&v| stored(v)).collect() };
        let (a, b) = (elements(left), elements(right));
        let stride = n + 1;
        let mut out: Vec<M::Out> = vec![M::Out::from_i64(5); m * stride];
        let p = Product::<M::Stored, M::Out> {
            m,
            n,
            k,
            left: MatrixRef { data: a[left.start..].as_ptr(), free: left.strides.0, depth: left.strides.1 },
            right: MatrixRef {
                data: b[right.start..].as_ptr(),
                free: right.strides.1,
                depth: right.strides.0,
            },
            target: Target::Memory(out.as_mut_ptr(), stride as isize, None),
        };
        // SAFETY: the vectors have these sizes.
        assert!(unsafe { run::<M>(&p) }.is_ok());
        for (at, got) in out.iter().enumerate() {
            let (i, j) = (at / stride, at % stride);
            let want = if j == n { 5 } else { wanted[i * n + j] };
            assert_eq!(got.to_f64(), want as f64, "{m} {k} {n}, layouts {kinds:?}, at {i}, {j}");
        }
        let sink = Collect(Mutex::new(vec![None; m * n]), n);
        // SAFETY: the vectors have these sizes.
        assert!(unsafe { run::<M>(&Product { target: Target::Sink(&sink), ..p }) }.is_ok());
        let got = sink.0.into_inner().unwrap_or_default();
        let got: Vec<_> = got.iter().flatten().map(|x| x.to_f64()).collect();
        let want: Vec<_> = wanted.iter().map(|&v| v as f64).collect();
        assert!(got == want, "{m} {k} {n}, layouts {kinds:?}, through a sink");
    }
}

/// Shapes around the borders of vectors, tiles, strips and blocks, with all pairs of layouts.
static SMALL: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let sizes = [
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
    ];
    (0..25).flat_map(|i| sizes.map(|size| Case::new(size, (i / 5, i % 5)))).collect()
});

/// Shapes of several blocks, with a few pairs of layouts.
static LARGE: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let kinds = [(0, 0), (0, 1), (1, 0), (1, 1), (3, 4)];
    let sizes = [[100, 1100, 130], [2, 700, 600], [16, 600, 200], [150, 65, 40], [30, 4100, 70]];
    kinds.into_iter().flat_map(|kinds| sizes.map(|size| Case::new(size, kinds))).collect()
});

fn check_all<M: Kernels<Out: Element>>(stored: impl Fn(i64) -> M::Stored) {
    SMALL.iter().for_each(|case| case.check::<M>(&stored));
    for threads in [1, 3] {
        set_num_threads(threads);
        LARGE.iter().for_each(|case| case.check::<M>(&stored));
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
