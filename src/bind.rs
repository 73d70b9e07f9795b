//! `bind`: the one entry point. Every operation runs by `bind(op, inputs)`, whatever it turns out to mean.
//!
//! The meaning comes from context: a thread-local chain of interpreters. The innermost one looks whether any
//! input belongs to it; if so it gives the operation its meaning (records it, pushes a tangent, batches it)
//! with the help of the rest of the chain, otherwise it steps aside. The last interpreter of every chain runs
//! kernels. Read next: `src/interp/mod.rs`.

use crate::array::Array;
use crate::array::writers;
use crate::error::{Error, Result};
use crate::interp::eval::{self, New};
use crate::interp::{self, Interp, Kind, ROOT_TAG, autocast, batch, branch, dual, linearized, tape};
use crate::op::{Needs, Op, Operation, Outputs};
use crate::ops::custom;
use crate::ops::writes::writable;
use crate::tape::saving;
use crate::tensor::{Payload, Tensor, Tensors, donated};
use crate::watch::debug::{self, Modes};
use smallvec::SmallVec;
use std::sync::Arc;

/// Arrays below the inputs of an operation.
pub type Below<'a> = SmallVec<[&'a Array; 4]>;

/// The one walk over the inputs of an operation: puts the arrays below them in `arrays`, and returns which
/// are on the outermost tape. `None` if a transform or an autocast region is active, an input belongs to
/// another interpreter or is complex, or a mode of `watched` is on.
#[inline(always)]
fn look<'a>(inputs: &[&'a Tensor], arrays: &mut Below<'a>, watched: Modes) -> Option<Needs> {
    if !interp::is_plain() || debug::modes().touches(watched) {
        return None;
    }
    let mut needs = Needs::default();
    for (i, x) in inputs.iter().enumerate() {
        let array = match x {
            Tensor::Array(array) => array,
            _ => {
                needs.add(i);
                let Some((Tensor::Array(array), ..)) = tape::taped(ROOT_TAG, x) else { return None };
                array
            }
        };
        if array.dtype().is_complex() {
            return None;
        }
        arrays.push(array);
    }
    Some(needs)
}

/// The inputs as arrays where only kernels can be meant, without a tape, and only a script looks at values.
#[inline(always)]
pub fn plain<'a>(inputs: &[&'a Tensor]) -> Option<Below<'a>> {
    let mut arrays = Below::new();
    look(inputs, &mut arrays, Modes::WATCHED.without(Modes::SCRIPT))?.is_empty().then_some(arrays)
}

/// Runs `op` on `inputs` under the current chain of interpreters. On plain real arrays its kernel runs right
/// here: the operation becomes an [`Op`], and the output a list, only where an interpreter wants to see them.
#[inline]
pub fn bind<O: Operation>(op: O, inputs: &[&Tensor]) -> Result<O::Out> {
    let mut arrays = Below::new();
    match look(inputs, &mut arrays, Modes::WATCHED) {
        Some(needs) if needs.is_empty() => eval::run(&op, &arrays, New::OUTPUTS, Modes::NONE),
        found => bind_traced(op.into(), inputs, &arrays, found),
    }
}

/// Runs `op` on arrays and writes its outputs into `out`, memory that exists: the way of every write in
/// place. `writer` names the write in later errors about this memory.
pub fn bind_into<O: Operation>(op: &O, inputs: &[&Array], out: &[&Array], writer: &str) -> Result<()> {
    out.iter().try_for_each(|memory| writable::check_age(writer, memory))?;
    out.iter().copied().try_for_each(saving::before_write)?;
    branch::forget();
    eval::run(op, inputs, out, debug::modes())?;
    let number = writers::number(writer);
    out.iter().for_each(|memory| memory.buffer().written_as(number));
    Ok(())
}

/// Runs `op` where [`look`] `found` that it may mean more than its kernel: on the outermost tape alone, or as
/// the innermost interpreter of this thread understands it.
fn bind_traced<Y: Outputs>(op: Op, inputs: &[&Tensor], arrays: &[&Array], found: Option<Needs>) -> Result<Y> {
    if let Some(needs) = found
        && branch::id() == 0
        && let Some(at) = interp::outermost()
        && tape::records(at, &op)
    {
        return tape::record(at, op, inputs, arrays, needs);
    }
    bind_current(op, inputs)
}

/// Runs `op` as the innermost interpreter of this thread understands it. On complex inputs it is that of
/// their parts.
fn bind_current<Y: Outputs>(op: Op, inputs: &[&Tensor]) -> Result<Y> {
    if inputs.iter().any(|x| x.dtype().is_complex())
        && let Some(out) = op.lower(inputs)?
    {
        return Y::from_list(out);
    }
    Y::from_list(interp::with_current(|at| bind_at(at, &op, inputs))?)
}

/// Runs `op` as the interpreter `at` understands it; in a branch, on masked inputs.
pub fn bind_at(at: &Arc<Interp>, op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    match branch::masked(at, op, inputs)? {
        Some(masked) => {
            let inputs: SmallVec<[&Tensor; 4]> = masked.inputs.iter().collect();
            masked.results(process(at, op, &inputs)?)
        }
        None => process(at, op, inputs),
    }
}

/// Runs `op` at the innermost interpreter from `at` on that any input belongs to.
fn process(at: &Arc<Interp>, op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    let mut at = at;
    loop {
        let concerned = match at.kind {
            Kind::Eval | Kind::Autocast(_) => true,
            _ => inputs.iter().any(|x| x.belongs_to(at.tag)),
        };
        if concerned {
            break;
        }
        at = at.below();
    }
    if let Op::Custom(custom) = op {
        return custom::process(at, custom, inputs);
    }
    match at.kind {
        Kind::Tape { .. } => tape::process(at, op, inputs),
        Kind::Dual => dual::process(at, op, inputs),
        Kind::Linearized => linearized::process(at, op, inputs),
        Kind::Batch { size, .. } => batch::process(at, size, op, inputs),
        Kind::Autocast(dtype) => autocast::process(at, dtype, op, inputs),
        Kind::Eval => eval::run(op, &concrete(op, inputs)?, New::OUTPUTS, debug::modes()),
    }
}

/// The inputs as arrays, which they all must be at the end of the chain.
fn concrete<'a>(op: &Op, inputs: &[&'a Tensor]) -> Result<Below<'a>> {
    let array = |x: &&'a Tensor| match x {
        Tensor::Array(array) => Ok(array),
        Tensor::Traced(t) => Err(custom::calls::closure(t.tag).unwrap_or_else(|| {
            let transform = match t.payload {
                Payload::Taped { .. } => "grad or vjp",
                Payload::Dual { .. } => "jvp",
                Payload::Batched { .. } => "vmap",
                Payload::Linearized { .. } => "linearize",
                Payload::Donated { .. } => return donated(op.name(), &t.aval.shape),
            };
            Error::autodiff(format!(
                "{}: an operand of shape {} was made inside a {transform} that has ended or runs on another \
                 thread; return it from the transformed function instead of keeping it elsewhere",
                op.name(),
                t.aval.shape
            ))
        })),
    };
    inputs.iter().map(array).collect()
}
