//! The tape: a chain of operations forward and backward, per operation, and a wide sum.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use wengert::Result;
use wengert::Tensor;
use wengert::internals::autodiff::Options;
use wengert::internals::interp;
use wengert::internals::tape::Node;

fn leaf(values: &[f32]) -> Result<Tensor> {
    Ok(Node::leaf_tensor(interp::ambient().tag, Tensor::from_slice(values, &[values.len()])?))
}

/// `n` operations in a row, then backward.
fn chain(x: &Tensor, n: usize) -> Result<()> {
    let mut y = x.clone();
    for _ in 0..n / 2 {
        y = y.mul(x)?.tanh()?;
    }
    y.sum(None, false)?.backward(None, Options::default(), None)
}

/// `n` operations on three numbers, as in a recurrence.
fn numbers(start: &Tensor, n: usize) -> Result<()> {
    let (w, b) = (leaf(&[0.9])?, leaf(&[0.1])?);
    let mut y = start.sum(None, false)?;
    for _ in 0..n / 2 {
        y = y.mul(&w)?.add(&b)?;
    }
    y.backward(None, Options::default(), None)
}

/// A tensor used `n` times.
fn fan(x: &Tensor, n: usize) -> Result<()> {
    let mut y = x.clone();
    for _ in 0..n {
        y = y.add(x)?;
    }
    y.sum(None, false)?.backward(None, Options::default(), None)
}

fn all(c: &mut Criterion) {
    let x = match leaf(&[0.1, 0.2, 0.3, 0.4]) {
        Ok(x) => x,
        Err(error) => panic!("{error}"),
    };
    let mut group = c.benchmark_group("forward and backward, f32[4]");
    group.throughput(Throughput::Elements(1000));
    group.bench_function("chain of 1000 operations", |b| b.iter(|| black_box(chain(&x, 1000))));
    group.bench_function("recurrence of 1000 operations", |b| b.iter(|| black_box(numbers(&x, 1000))));
    group.bench_function("1000 uses of one tensor", |b| b.iter(|| black_box(fan(&x, 1000))));
    group.finish();
}

criterion_group!(benches, all);
criterion_main!(benches);
