//! Chains of elementwise operations as one kernel.
//!
//! The operations are read one after another with expressions that write WGSL: the result is the body of
//! `shaders/fused.wgsl`. Between two of them a value is rounded to its dtype, as memory would do.

use crate::arguments::chain::{Chain, ChainLimits, ElementRule, Feed, Folding, How, Link, Part};
use crate::arguments::logic::Logic;
use crate::gpu::kernels::logic::of_floats;
use crate::gpu::kernels::prelude::*;
use crate::gpu::kernels::reduce::{Fold, reduce_chain};
use crate::gpu::max_buffers;
use crate::gpu::runtime::device::gpu;
use crate::gpu::runtime::pool::bindable;
use crate::gpu::runtime::recorder::UNIFORM_WINDOW;
use crate::gpu::shader::template::LISTS;
use crate::gpu::shader::wgsl::{self, Expr};
use crate::math::real::Real;
use crate::process::sync::lock;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};

/// The limits of kernels on GPU `index`.
pub fn limits(index: u8) -> Result<ChainLimits> {
    // Those of a reduction stand before those of a chain.
    let (words, bytes) = (UNIFORM_WINDOW / 4 - 40, bindable(&gpu(index)?.limits) as usize);
    Ok(ChainLimits { arrays: max_buffers(index)?, lists: LISTS[0].len(), words, bytes })
}

/// How an input lies, as `shaders/lib/chain.wgsl` says.
#[derive(Clone, Copy, PartialEq)]
enum Lies {
    InOrder,
    Adjacent,
    Apart,
    Part,
}

/// Says how input `name` lies by this nest, and adds its axes, if it has any. Fours are adjacent elements if
/// they are taken `in_fours`. The second result says whether they are vectors.
fn strided(
    run: &mut Dispatch, (name, x, dtype): (&'static str, &Array, DType), nest: &Nest, in_fours: bool,
    axes: &mut Vec<usize>,
) -> (Lies, bool) {
    let (last, strides) = (nest.rank - 1, &nest.strides[0]);
    let is_whole = nest.inner().is_multiple_of(4);
    let in_fours = in_fours && (is_whole || last == 0);
    let is_one = in_fours && strides[last] == 0;
    let is_vector = in_fours
        && strides[last] == 1
        && x.offset().is_multiple_of(4)
        && strides[..last].iter().all(|stride| stride % 4 == 0);
    match (is_one, is_vector) {
        (true, _) => run.text.load_ones(name, dtype),
        (_, true) => run.text.load_fours(name, dtype),
        _ => run.text.load(name, dtype),
    };
    if last == 0 && strides[0] == 1 {
        return (Lies::InOrder, is_vector);
    }
    for (&length, &stride) in nest.dims[..nest.rank].iter().zip(strides) {
        axes.extend([length, stride as usize, 0, 0]);
    }
    let is_near = is_one || is_vector || (in_fours && is_whole && strides[last] == 1);
    (if is_near { Lies::Adjacent } else { Lies::Apart }, is_vector)
}

/// What writes a text.
type Text = dyn Fn() -> Result<String> + Send + Sync;

/// A kernel of a chain.
#[derive(Clone)]
pub struct Fused {
    chain: Arc<Chain>,
    /// Its name in profiles.
    pub name: Arc<str>,
    /// The body of the chain, and what tells it from others.
    body: Arc<Text>,
    serial: u64,
    attributes: Arc<[f64]>,
}

/// The serial number of a body.
fn serial(body: &str) -> u64 {
    static KNOWN: Mutex<Option<FxHashMap<String, u64>>> = Mutex::new(None);
    let mut known = lock(&KNOWN);
    let known = known.get_or_insert_default();
    let next = known.len() as u64;
    *known.entry(body.to_string()).or_insert(next)
}

/// The value of an operation.
fn value(link: &Link, x: &[Expr]) -> Expr {
    let holds = |k: usize| x[k].relation("!=", Expr::lit(0.0));
    let of_truth = |mask| Expr::select(mask, Expr::lit(1.0), Expr::lit(0.0));
    let value = match link.rule {
        ElementRule::Terms(ref terms) => terms.read(x),
        ElementRule::Compare(relation) => of_floats(relation, x[0], x[1]),
        ElementRule::Select => Expr::select(holds(0), x[1], x[2]),
        ElementRule::Same => x[0],
        ElementRule::Logical(Logic::And) => of_truth(holds(0) & holds(1)),
        ElementRule::Logical(Logic::Or) => of_truth(holds(0) | holds(1)),
        ElementRule::Logical(Logic::Xor) => of_truth(x[0].relation("!=", x[1])),
        ElementRule::Logical(Logic::Not) => of_truth(!holds(0)),
    };
    value.stored(link.out)
}

impl Fused {
    /// The kernel of a chain of operations with these names.
    pub fn new(chain: Chain, names: &[&str]) -> Option<Fused> {
        let Chain { operands, outputs, links, .. } = &chain;
        let (body, attributes) = wgsl::chain(operands.len(), &|x| {
            let slots = links.iter().map(|link| link.to as usize + 1).max().unwrap_or(0);
            let mut values = x.to_vec();
            values.resize(slots.max(x.len() + outputs.len()), Expr::lit(0.0));
            for link in links {
                let x: Vec<Expr> = link.from.iter().map(|&slot| values[slot as usize]).collect();
                values[link.to as usize] = value(link, &x);
            }
            values[x.len()..x.len() + outputs.len()].to_vec()
        });
        let (serial, name) = (serial(&body), names.join("+").into());
        let body: Arc<Text> = Arc::new(move || Ok(body.clone()));
        Some(Fused { chain: Arc::new(chain), name, body, serial, attributes: attributes.into() })
    }

    /// Binds the inputs `x`, of which fours are adjacent elements if they are taken `in_fours`. Returns the
    /// parameters.
    pub fn bind<'a>(&'a self, run: &mut Dispatch<'a>, x: &[&'a Array], in_fours: bool) -> Vec<usize> {
        let Chain { n, operands, nests, parts, outputs, .. } = &*self.chain;
        run.text.lists(x.len(), outputs.len());
        run.op(&*self.body, [self.serial, 0]);
        let (mut words, mut axes) = (Vec::new(), Vec::new());
        for ((&x, &(feed, dtype)), name) in x.iter().zip(operands).zip(LISTS[0]) {
            let (first, mut outside) = (axes.len() / 4, 0.0_f32);
            let (lies, is_vector) = match feed {
                Feed::Part(k) => {
                    let Part { axes: spans, adds } = &parts[k as usize];
                    for span in spans {
                        axes.extend([span.length, span.stride as usize, span.start, span.count]);
                    }
                    outside = if *adds { -0.0 } else { 0.0 };
                    run.text.load(name, dtype);
                    (Lies::Part, false)
                }
                Feed::Nest(k) => strided(run, (name, x, dtype), &nests[k as usize], in_fours, &mut axes),
                Feed::Dense | Feed::Single => {
                    let mut nest = Nest::empty();
                    nest.push(*n, &[isize::from(feed == Feed::Dense)]);
                    strided(run, (name, x, dtype), &nest, in_fours || feed == Feed::Single, &mut axes)
                }
            };
            run.number(name, lies as usize);
            words.extend([x.offset(), first, axes.len() / 4 - first, outside.to_bits() as usize]);
            run.reads(x);
            if x.numel() == *n && (*n == 1 || (lies == Lies::InOrder && is_vector)) {
                run.flows();
            }
        }
        axes.resize(axes.len().max(4), 0);
        let rows = self.attributes.len().div_ceil(4).max(1);
        run.number("AXES", axes.len() / 4).number("ATTRIBUTES", rows);
        words.extend(axes);
        words.extend(self.attributes.iter().map(|&value| (value as f32).to_bits() as usize));
        words.resize(words.len().next_multiple_of(4).max(4), 0);
        if self.attributes.is_empty() {
            words.extend([0; 4]);
        }
        words
    }

    /// Runs it into new arrays.
    pub fn run(&self, x: &[&Array], out: &[&Array]) -> Result<()> {
        let mut run = Dispatch::new(&self.name, shader!("lib/chain", "fused"), DType::F32);
        let words = self.bind(&mut run, x, true);
        for ((&out, &dtype), name) in out.iter().zip(&self.chain.outputs).zip(LISTS[1]) {
            run.text.store_fours(name, dtype);
            run.writes(out).flows();
        }
        run.words(words).words([self.chain.n, 0, 0, 0]);
        run.launch(self.chain.n.div_ceil(1024))
    }

    /// Reduces its only output, of this shape, as it is computed.
    pub fn fold(&self, x: &[&Array], folding: &Folding, shape: &Shape) -> Result<Array> {
        let fold = match folding.how {
            How::Sum => Fold::Sum,
            How::Max => Fold::Max,
            How::Min => Fold::Min,
        };
        reduce_chain(self, x, fold, shape, folding.axes, folding.keepdim)
    }
}
