//! What one operation costs before its kernel does any work, layer by layer: allocation, kernel, `bind`,
//! recording.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use wengert::DType;
use wengert::Result;
use wengert::Shape;
use wengert::Tensor;
use wengert::internals::array::Array;
use wengert::internals::array::Buffer;
use wengert::internals::interp;
use wengert::internals::op::{Kernel, Op};
use wengert::internals::ops::Binary;
use wengert::internals::ops::Map;
use wengert::internals::ops::{Fun, Params};
use wengert::internals::tape::{NewNode, Node};

/// An entry of the tape that keeps nothing and leads nowhere.
fn entry(x: &Tensor, op: &Op) -> Arc<Node> {
    let mut node = NewNode::new(1, op.clone());
    if let Some((_, _, _, outputs)) = node.parts() {
        outputs.push(x.aval());
    }
    node.finished()
}

fn layers(c: &mut Criterion) -> Result<()> {
    let shape = Shape::new(&[4])?;
    let array = Array::full(shape, 1.0, DType::F32)?;
    let x = Tensor::Array(array.clone());
    let leaf = Node::leaf_tensor(interp::ambient().tag, x.clone());
    let op = Op::from(Map { fun: Fun::Binary(Binary::Add), p: Params::default() });
    let mut group = c.benchmark_group("f32[4]");
    group.bench_function("allocate and free", |b| b.iter(|| black_box(Buffer::alloc(16))));
    group.bench_function("clone a tensor", |b| b.iter(|| black_box(x.clone())));
    group.bench_function("kernel of add", |b| b.iter(|| black_box(op.eval(&[&array, &array]))));
    group.bench_function("mul by a number", |b| b.iter(|| black_box(x.mul(2.0))));
    group.bench_function("make an entry of the tape", |b| b.iter(|| black_box(entry(&x, &op))));
    group.bench_function("add", |b| b.iter(|| black_box(x.add(&x))));
    group.bench_function("add, recorded", |b| b.iter(|| black_box(leaf.add(&x))));
    group.bench_function("mul, recorded, both saved", |b| b.iter(|| black_box(leaf.mul(&leaf))));
    group.bench_function("tanh, recorded", |b| b.iter(|| black_box(leaf.tanh())));
    group.bench_function("reshape", |b| b.iter(|| black_box(x.unsqueeze(0))));
    group.bench_function("sum", |b| b.iter(|| black_box(x.sum(None, false))));
    group.finish();
    Ok(())
}

fn all(c: &mut Criterion) {
    if let Err(error) = layers(c) {
        panic!("{error}");
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
