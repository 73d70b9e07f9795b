//! The speed of the CPU kernels over sizes, with one thread: elements or floating point operations per
//! second.
//!
//! `WENGERT_NUM_THREADS` and `WENGERT_ISA` choose threads and instructions; `cargo bench --bench kernels --
//! softmax` runs one family.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;
use wengert::DType;
use wengert::Result;
use wengert::internals::array::Array;
use wengert::internals::cpu::Relation;
use wengert::internals::cpu::gather;
use wengert::internals::cpu::matmul;
use wengert::internals::cpu::norm;
use wengert::internals::cpu::{copy, logic, map};
use wengert::internals::cpu::{random, reduce};
use wengert::internals::math::{Pointwise, Real};
use wengert::{Axes, Shape};

#[derive(Clone, Copy)]
struct Add;

impl Pointwise<2> for Add {
    #[inline(always)]
    fn apply<R: Real>(&self, [x, y]: [R; 2]) -> R {
        x + y
    }
}

#[derive(Clone, Copy)]
struct Tanh;

impl Pointwise<1> for Tanh {
    #[inline(always)]
    fn apply<R: Real>(&self, [x]: [R; 1]) -> R {
        x.tanh()
    }
}

/// Normal numbers.
fn sample(dims: &[usize], dtype: DType) -> Result<Array> {
    random::normal(Shape::new(dims)?, dtype, 1, 0)
}

fn time<T>(c: &mut Criterion, group: &str, name: String, work: usize, mut f: impl FnMut() -> Result<T>) {
    let mut group = c.benchmark_group(group);
    group.throughput(Throughput::Elements(work as u64));
    group.bench_function(name, |b| {
        b.iter(|| {
            if let Err(error) = black_box(f()) {
                panic!("{error}");
            }
        })
    });
    group.finish();
}

fn elementwise(c: &mut Criterion) -> Result<()> {
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for n in [16, 1024, 65_536, 4_194_304] {
            let (x, y) = (sample(&[n], dtype)?, sample(&[n], dtype)?);
            time(c, "add", format!("{dtype}[{n}]"), n, || map::pointwise([&x, &y], Add));
            time(c, "tanh", format!("{dtype}[{n}]"), n, || map::pointwise([&x], Tanh));
        }
    }
    let x = sample(&[1024, 1024], DType::F32)?;
    let n = x.numel();
    for (name, y) in [
        ("a scalar", sample(&[], DType::F32)?),
        ("a row", sample(&[1024], DType::F32)?),
        ("a column", sample(&[1024, 1], DType::F32)?),
        ("a transpose", x.permute(&[1, 0])?),
    ] {
        time(c, "add", format!("float32[1024, 1024] and {name}"), n, || map::pointwise([&x, &y], Add));
    }
    let (narrow, row) = (sample(&[100_000, 10], DType::F32)?, sample(&[10], DType::F32)?);
    time(c, "add", "float32[100000, 10] and a row".into(), 1_000_000, || {
        map::pointwise([&narrow, &row], Add)
    });
    time(c, "add", "in place, float32[1024, 1024]".into(), n, || {
        // SAFETY: one thread, and no slice is held.
        unsafe { map::pointwise_into(&x, [&x, &x], Add) }
    });
    let mask = logic::compare(&x, &x.permute(&[1, 0])?, Relation::Lt)?;
    time(c, "select", "float32[1024, 1024]".into(), n, || logic::select(&mask, &x, &x));
    Ok(())
}

fn copies(c: &mut Criterion) -> Result<()> {
    let x = sample(&[1024, 1024], DType::F32)?;
    let n = x.numel();
    time(c, "copy", "float32[1024, 1024]".into(), n, || copy::duplicate(&x));
    let turned = x.permute(&[1, 0])?;
    time(c, "copy", "float32[1024, 1024] transposed".into(), n, || copy::contiguous(&turned));
    let heads = sample(&[16, 128, 16, 64], DType::F32)?.permute(&[0, 2, 1, 3])?;
    time(c, "copy", "attention heads".into(), heads.numel(), || copy::contiguous(&heads));
    time(c, "cast", "float32[1024, 1024] to bfloat16".into(), n, || copy::cast(&x, DType::BF16));
    time(c, "cast", "float32[1024, 1024] to int64".into(), n, || copy::cast(&x, DType::I64));
    let rows = random::randint(Shape::new(&[4096])?, DType::I64, 0, 1024, 1, 0)?;
    time(c, "take", "4096 rows of 1024".into(), 4096 * 1024, || gather::take(&x, &rows, 0));
    Ok(())
}

fn reductions(c: &mut Criterion) -> Result<()> {
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for n in [1024, 1_048_576] {
            let x = sample(&[n], dtype)?;
            time(c, "sum", format!("{dtype}[{n}]"), n, || reduce::sum(&x, Axes::one(0), false));
        }
    }
    for dims in [[1024, 1024], [100_000, 10], [10, 100_000]] {
        let x = sample(&dims, DType::F32)?;
        for axis in [0, 1] {
            let name = format!("float32{dims:?} over axis {axis}");
            time(c, "sum", name.clone(), x.numel(), || reduce::sum(&x, Axes::one(axis), false));
            time(c, "max", name.clone(), x.numel(), || reduce::max(&x, Axes::one(axis), false));
            time(c, "argmax", name, x.numel(), || reduce::argmax(&x, axis, false));
        }
    }
    Ok(())
}

fn rows(c: &mut Criterion) -> Result<()> {
    for dims in [[4096, 10], [1024, 128], [512, 1024], [64, 32_768]] {
        let (x, n) = (sample(&dims, DType::F32)?, dims[0] * dims[1]);
        let weight = sample(&[dims[1]], DType::F32)?;
        let name = |what: &str| format!("{what}float32{dims:?}");
        time(c, "softmax", name(""), n, || norm::softmax(&x, false));
        time(c, "softmax", name("vjp "), n, || norm::softmax_vjp(&x, &x, false));
        let (w, eps) = (Some(&weight), 1e-5);
        for (what, bias) in [("layer_norm", w), ("rms_norm", None)] {
            let centered = bias.is_some();
            let all = norm::layer_norm(&x, w, bias, 1, centered, eps)?;
            let (mean, rstd) = (centered.then_some(&all[1]), &all[all.len() - 1]);
            time(c, what, name(""), n, || norm::layer_norm(&x, w, bias, 1, centered, eps));
            time(c, what, name("vjp "), n, || norm::layer_norm_vjp(&x, &x, w, mean, rstd, 1));
        }
        let target = random::randint(Shape::new(&[dims[0]])?, DType::I64, 0, dims[1] as i64, 1, 0)?;
        time(c, "cross_entropy", name(""), n, || norm::cross_entropy(&x, &target, -100));
    }
    Ok(())
}

fn products(c: &mut Criterion) -> Result<()> {
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for n in [4, 16, 32, 64, 128, 256, 512, 1024] {
            let (a, b) = (sample(&[n, n], dtype)?, sample(&[n, n], dtype)?);
            time(c, "matmul", format!("{dtype}[{n}]"), 2 * n * n * n, || matmul::matmul(&a, &b));
        }
    }
    for [batch, m, k, n] in [[1, 1, 1024, 1024], [1, 1024, 1024, 1], [1, 64, 100_000, 64], [96, 128, 64, 128]]
    {
        let (a, b) = (sample(&[batch, m, k], DType::F32)?, sample(&[batch, k, n], DType::F32)?);
        let name = format!("float32 {batch} x [{m}, {k}] [{k}, {n}]");
        time(c, "matmul", name, 2 * batch * m * k * n, || matmul::matmul(&a, &b));
    }
    let (a, b) = (sample(&[512, 512], DType::F32)?, sample(&[512, 512], DType::F32)?.permute(&[1, 0])?);
    time(c, "matmul", "float32[512], right side transposed".into(), 2 * 512 * 512 * 512, || {
        matmul::matmul(&a, &b)
    });
    Ok(())
}

fn all(c: &mut Criterion) {
    let families = [elementwise, copies, reductions, rows, products];
    if std::env::var_os("WENGERT_NUM_THREADS").is_none() {
        wengert::internals::cpu::set_num_threads(1);
    }
    if let Err(error) = families.iter().try_for_each(|family| family(c)) {
        panic!("{error}");
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400));
    targets = all
}
criterion_main!(benches);
