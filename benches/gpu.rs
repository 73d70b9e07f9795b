//! What the host pays per GPU operation: recording a dispatch, and the round trip of a read-back; and
//! attention.
//!
//! The speed of attention is in floating point operations as `FlopCounter` counts them, of which a causal
//! mask skips about half. A software adapter gets one short length. Prints a notice and measures nothing
//! where there is no adapter.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use wengert::DType;
use wengert::Device;
use wengert::Result;
use wengert::Shape;
use wengert::Tensor;
use wengert::internals::ops::AttentionOptions;
use wengert::vjp;

/// Operations per measured batch.
const BATCH: usize = 1000;

fn chain(x: &Tensor) -> Result<()> {
    let mut y = x.clone();
    for _ in 0..BATCH {
        y = y.add(x)?;
    }
    wengert::internals::gpu::flush(0)?;
    black_box(y);
    Ok(())
}

fn host_cost(c: &mut Criterion) -> Result<()> {
    let x = Tensor::full(Shape::new(&[4])?, 1.0, DType::F32, Device::Gpu(0))?;
    chain(&x)?;
    wengert::internals::gpu::synchronize(0)?;
    let mut group = c.benchmark_group("gpu, f32[4]");
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("record and submit 1000 additions", |b| b.iter(|| chain(&x).is_ok()));
    wengert::internals::gpu::synchronize(0)?;
    group.throughput(Throughput::Elements(1));
    group.bench_function("one addition and its read-back", |b| {
        b.iter(|| x.add(&x).and_then(|y| y.to_vec()).is_ok())
    });
    group.finish();
    Ok(())
}

/// Operations of attention over `shape` (heads, length, features), forward alone or with its three gradients.
fn attention_flops([heads, length, features]: [usize; 3], backward: bool) -> u64 {
    let scores = (heads * length * length) as u64;
    let forward = scores * (4 * features as u64 + 5);
    if backward { forward + scores * (10 * features as u64 + 6) } else { forward }
}

/// Attention of `q` with itself; with its gradients if `backward`.
fn attend(q: &Tensor, causal: bool, backward: bool) -> Result<()> {
    let options = AttentionOptions { causal, ..Default::default() };
    if backward {
        let f = |x: &[Tensor]| Ok(vec![x[0].attention(&x[1], &x[2], options)?]);
        let (y, pullback) = vjp(f, &[q.clone(), q.clone(), q.clone()])?;
        black_box(pullback.call(&[y.first().cloned()], false)?);
    } else {
        black_box(q.attention(q, q, options)?);
    }
    wengert::internals::gpu::synchronize(0)
}

fn attention(c: &mut Criterion) -> Result<()> {
    let software = wengert::internals::gpu::info(0)?.device_type == "software";
    let lengths: &[usize] = if software { &[256] } else { &[512, 2048, 8192] };
    for dtype in [DType::F32, DType::F16] {
        let mut group = c.benchmark_group(format!("gpu, attention of 8 heads of 64, {dtype}"));
        group.sample_size(10);
        for &length in lengths {
            let shape = [8, length, 64];
            let q = Tensor::full(Shape::new(&shape)?, 0.1, dtype, Device::Gpu(0))?;
            for (causal, backward) in [(false, false), (true, false), (false, true), (true, true)] {
                let mask = if causal { "causal" } else { "full" };
                let what = if backward { "forward and backward" } else { "forward" };
                group.throughput(Throughput::Elements(attention_flops(shape, backward)));
                group.bench_function(format!("{length}, {mask}, {what}"), |b| {
                    b.iter(|| attend(&q, causal, backward).is_ok());
                });
            }
        }
        group.finish();
    }
    Ok(())
}

fn all(c: &mut Criterion) {
    if !wengert::internals::gpu::is_available() {
        eprintln!("no GPU adapter: nothing to measure (WENGERT_GPU=software uses a software one)");
        return;
    }
    if let Err(error) = host_cost(c).and_then(|()| attention(c)) {
        panic!("{error}");
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
