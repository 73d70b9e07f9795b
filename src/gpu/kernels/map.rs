//! Elementwise kernels on the GPU; the counterpart of `src/cpu/pointwise/map.rs`.
//!
//! A rule is read with expressions that write WGSL; the result becomes the body of a template file.

pub mod fused;

use super::pieces::by_pieces;
use super::prelude::*;
use crate::gpu::shader::int_expr;
use crate::gpu::shader::wgsl;
use crate::math::real::{Pointwise, PointwiseInt};
use crate::math::terms::Terms;
use smallvec::SmallVec;

/// The names of the inputs in the templates.
const NAMES: [&str; 4] = ["x", "y", "z", "w"];
const SKELETONS: [&str; 4] = [shader!("map1"), shader!("map2"), shader!("map3"), shader!("map4")];

/// The parameters of an elementwise kernel, apart from the rule's text.
pub(super) struct MapKernel<'a> {
    /// The name of the kernel.
    pub name: &'a str,
    /// Distinguishes kernels of one name.
    pub key: [u64; 2],
    /// The attributes of the rule.
    pub attributes: [f64; 2],
    /// The dtype of the result.
    pub dtype: DType,
    /// The dtype whose arithmetic the rule uses.
    pub compute: DType,
}

/// The shape to which the inputs broadcast.
fn broadcast(x: &[&Array]) -> Result<Shape> {
    x.iter().try_fold(Shape::SCALAR, |shape, a| {
        shape.broadcast(&a.shape()).ok_or_else(|| {
            Error::shape(format!("internal: shapes {shape} and {} do not broadcast together", a.shape()))
        })
    })
}

fn names<const N: usize>() -> Result<[&'static str; N]> {
    let names = NAMES.get(..N).and_then(|n| <[&str; N]>::try_from(n).ok());
    names.ok_or_else(|| too_many(N))
}

#[cold]
fn too_many(inputs: usize) -> Error {
    Error::unsupported(format!("internal: an elementwise gpu kernel of {inputs} inputs"))
}

/// Runs a job into a new array.
pub(super) fn run(job: &MapKernel, x: &[&Array], body: &dyn Fn() -> Result<String>) -> Result<Array> {
    let first =
        x.first().ok_or_else(|| Error::unsupported("internal: an elementwise kernel without inputs"))?;
    let out = Array::empty(broadcast(x)?, job.dtype, first.device())?;
    by_pieces(&out, x, &|out, x| run_into(job, out, x, body))?;
    Ok(out)
}

/// Runs a job into `out`, of the shape of the result.
fn run_into(job: &MapKernel, out: &Array, x: &[&Array], body: &dyn Fn() -> Result<String>) -> Result<()> {
    let mut run = Dispatch::new(job.name, SKELETONS[x.len() - 1], job.compute);
    let nest = lay_out(&mut run, &out.shape(), x, &x.iter().map(|a| a.dtype()).collect::<SmallVec<[_; 4]>>());
    run.text.store_fours("out", job.dtype);
    run.writes(out).flows().op(body, job.key);
    run.nest(&nest, x.len()).words([nest.rank, out.numel()]).words(x.iter().map(|a| a.offset()));
    run.floats(job.attributes);
    run.launch(out.numel().div_ceil(1024))
}

/// Binds the inputs of a skeleton as these dtypes, in the cheapest way that their layout allows: a thread
/// makes four adjacent elements of the output. Returns the nest.
pub(super) fn lay_out<'a>(run: &mut Dispatch<'a>, shape: &Shape, x: &[&'a Array], dtypes: &[DType]) -> Nest {
    let nest = Nest::new(shape, x);
    let (last, inner) = (nest.rank - 1, nest.inner());
    let is_whole = inner.is_multiple_of(4);
    let step = |k: usize| nest.strides[k][last];
    // Whether four adjacent elements are a vector of the buffer. Past the end of a row is the padding.
    let is_vector = |k: usize| {
        let outer = &nest.strides[k][..last];
        step(k) == 1 && x[k].offset().is_multiple_of(4) && outer.iter().all(|s| s % 4 == 0)
    };
    let in_fours = (is_whole || last == 0)
        && (0..x.len()).all(|k| step(k) == 0 || is_vector(k) || (step(k) == 1 && is_whole));
    for (k, (&a, &dtype)) in x.iter().zip(dtypes).enumerate() {
        match in_fours {
            true if step(k) == 0 => run.text.load_ones(NAMES[k], dtype),
            true if is_vector(k) => run.text.load_fours(NAMES[k], dtype),
            _ => run.text.load(NAMES[k], dtype),
        };
        run.reads(a);
        let is_same = a.numel() == shape.numel();
        if in_fours && is_same && (a.numel() == 1 || (step(k) == 1 && nest.is_flat(k))) {
            run.flows();
        }
    }
    run.flag("CONTIGUOUS", nest.are_flat(x.len())).flag("SPREAD", !in_fours);
    nest
}

/// The dtype of a rule's result: that of the operands, or of the halves if some operands are float32.
fn rule_dtype(name: &str, x: &[&Array]) -> Result<DType> {
    if let Some(a) = x.iter().find(|a| !a.dtype().is_float()) {
        return Err(Error::dtype(format!("internal: {name} is for floats, got {a:?}")));
    }
    DType::of_rule(x.iter().map(|a| a.dtype())).ok_or_else(|| {
        let dtypes: Vec<&str> = x.iter().map(|a| a.dtype().name()).collect();
        Error::dtype(format!("internal: {name}: one dtype expected, got {}", dtypes.join(" and ")))
    })
}

/// The text of a rule.
fn text(names: &[&str], rule: &Terms) -> Result<String> {
    Ok(wgsl::with_library("op", names, &|x| rule.read(x)))
}

/// [`run`] for a rule, which becomes WGSL where its kernel is new. Not generic, so that a rule adds only one
/// small closure to the code.
#[inline(never)]
fn run_rule(job: &MapKernel, x: &[&Array], rule: &dyn Fn() -> Terms) -> Result<Array> {
    let names = NAMES.get(..x.len()).ok_or_else(|| too_many(x.len()))?;
    run(job, x, &|| text(names, &rule()))
}

/// Applies `rule` elementwise to floats of one dtype, or halves and float32; operands broadcast.
///
/// `name` and `key` identify the rule: equal pairs must mean the same function of inputs and attributes.
pub fn pointwise<const N: usize, P: Pointwise<N>>(
    name: &str, key: [u64; 2], x: [&Array; N], rule: P,
) -> Result<Array> {
    let (dtype, attributes) = (rule_dtype(name, &x)?, rule.attributes());
    let job = MapKernel { name, key, attributes, dtype, compute: DType::F32 };
    run_rule(&job, &x, &|| rule.terms(true))
}

/// [`pointwise`] into `out`, the whole of its buffer and perhaps one of the operands.
pub(super) fn pointwise_into<const N: usize, P: Pointwise<N>>(
    name: &str, key: [u64; 2], out: &Array, x: [&Array; N], rule: P,
) -> Result<()> {
    let job = MapKernel { name, key, attributes: rule.attributes(), dtype: out.dtype(), compute: DType::F32 };
    run_into(&job, out, &x, &|| text(&names::<N>()?, &rule.terms(true)))
}

/// Applies `rule` elementwise to arrays of integers, which broadcast; `name` and `key` identify it.
pub fn pointwise_int<const N: usize, P: PointwiseInt<N>>(
    name: &str, key: u64, x: [&Array; N], rule: P,
) -> Result<Array> {
    pointwise_int_to(x[0].dtype(), name, key, x, rule)
}

/// [`pointwise_int`] whose results are stored as `dtype`.
pub(super) fn pointwise_int_to<const N: usize, P: PointwiseInt<N>>(
    dtype: DType, name: &str, key: u64, x: [&Array; N], rule: P,
) -> Result<Array> {
    let compute = arithmetic(x[0].dtype());
    let job = MapKernel { name, key: [key, 0], attributes: [0.0; 2], dtype, compute };
    run(&job, &x, &|| int_expr::function(compute, &names::<N>()?, rule))
}
