//! What the host pays per GPU operation: recording a dispatch, and the round trip of a read-back.
//!
//! Kernel speed is not measured here: it needs real hardware, large tensors and device timestamps. Prints a
//! notice and measures nothing where there is no adapter.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use wengert::buffer::Device;
use wengert::dtype::DType;
use wengert::error::Result;
use wengert::shape::Shape;
use wengert::tensor::Tensor;

/// Operations per measured batch.
const BATCH: usize = 1000;

fn chain(x: &Tensor) -> Result<()> {
    let mut y = x.clone();
    for _ in 0..BATCH {
        y = y.add(x)?;
    }
    wengert::gpu::flush(0)?;
    black_box(y);
    Ok(())
}

fn host_cost(c: &mut Criterion) -> Result<()> {
    let x = Tensor::full(Shape::new(&[4])?, 1.0, DType::F32, Device::Gpu(0))?;
    chain(&x)?;
    wengert::gpu::synchronize(0)?;
    let mut group = c.benchmark_group("gpu, f32[4]");
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("record and submit 1000 additions", |b| b.iter(|| chain(&x).is_ok()));
    wengert::gpu::synchronize(0)?;
    group.throughput(Throughput::Elements(1));
    group.bench_function("one addition and its read-back", |b| {
        b.iter(|| x.add(&x).and_then(|y| y.to_vec()).is_ok())
    });
    group.finish();
    Ok(())
}

fn all(c: &mut Criterion) {
    if !wengert::gpu::is_available() {
        eprintln!("no GPU adapter: nothing to measure (WENGERT_GPU=software uses a software one)");
        return;
    }
    if let Err(error) = host_cost(c) {
        panic!("{error}");
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
