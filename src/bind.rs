//! `bind`: the one door. Every operation runs by `bind(op, inputs)`, whatever it turns out to mean.
//!
//! The meaning comes from context: a thread-local chain of interpreters. The innermost one looks whether any
//! input belongs to it; if so it gives the operation its meaning (records it, pushes a tangent, batches it)
//! with the help of the rest of the chain, otherwise it steps aside. The last interpreter of every chain runs
//! kernels. Read next: `src/interp/mod.rs`.

use crate::array::Array;
use crate::array::writers;
use crate::error::Result;
use crate::interp::{self, Interp, Kind, ROOT_TAG, autocast, batch, dual, eval, staged, tape};
use crate::op::{Kernel, Needs, Op, no_output};
use crate::ops::custom;
use crate::tape::saving;
use crate::tensor::{Tensor, Tensors};
use crate::watch::debug::{self, Modes};
use smallvec::SmallVec;
use std::sync::Arc;

/// Arrays below the inputs of an operation.
pub type Below<'a> = SmallVec<[&'a Array; 4]>;

/// The one walk over the inputs of an operation: puts the arrays below them in `arrays`, and returns which
/// are on the outermost tape. `None` if the fast path does not apply: a transform is active, an input belongs
/// to another interpreter or is complex, or a mode of `watched` is on.
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

/// The inputs as arrays where only kernels can be meant, and nothing is on a tape.
#[inline(always)]
pub fn plain<'a>(inputs: &[&'a Tensor]) -> Option<Below<'a>> {
    let mut arrays = Below::new();
    // A script sees what is written into memory.
    look(inputs, &mut arrays, Modes::WATCHED.without(Modes::SCRIPT))?.is_empty().then_some(arrays)
}

/// Runs `op` on `inputs` under the current chain of interpreters.
#[inline]
pub fn bind(op: impl Into<Op>, inputs: &[&Tensor]) -> Result<Tensors> {
    let op = op.into();
    let mut arrays = Below::new();
    match look(inputs, &mut arrays, Modes::WATCHED) {
        Some(needs) if needs.is_empty() => eval::run(&op, &arrays),
        _ => bind_current(&op, inputs),
    }
}

/// [`bind`] for an operation with one output. On plain arrays its kernel runs right here: the operation
/// becomes an [`Op`], and the output a list, only where an interpreter wants to see them.
#[inline]
pub fn bind1<O: Kernel + Into<Op>>(op: O, inputs: &[&Tensor]) -> Result<Tensor> {
    let mut arrays = Below::new();
    match look(inputs, &mut arrays, Modes::WATCHED) {
        Some(needs) if needs.is_empty() => eval::run_one(&op, &arrays),
        found => bind_one(op.into(), inputs, &arrays, found),
    }
}

/// Runs `op` on arrays and writes its outputs into `out`, memory that exists: the way of every write in
/// place. `writer` names the write in later errors about this memory.
pub fn bind_into<O>(op: &O, inputs: &[&Array], out: &[&Array], writer: &str) -> Result<()>
where
    O: Kernel + Clone + Into<Op>,
{
    out.iter().copied().try_for_each(saving::before_write)?;
    eval::run_into(op, inputs, out)?;
    let number = writers::number(writer);
    out.iter().for_each(|memory| memory.buffer().written_as(number));
    Ok(())
}

/// [`bind_current`] for an operation with one output.
fn bind_one(op: Op, inputs: &[&Tensor], arrays: &[&Array], found: Option<Needs>) -> Result<Tensor> {
    if let Some(needs) = found
        && let Some(at) = interp::outermost()
        && tape::records(at, &op)
    {
        return tape::record(at, op, inputs, arrays, needs);
    }
    bind_current(&op, inputs)?.pop().ok_or_else(no_output)
}

/// Runs `op` as the innermost interpreter of this thread understands it; on complex inputs, what it means for
/// their parts.
fn bind_current(op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    if inputs.iter().any(|x| x.dtype().is_complex())
        && let Some(out) = op.lower(inputs)?
    {
        return Ok(out);
    }
    interp::with_current(|at| bind_at(at, op, inputs))
}

/// Runs `op` as the interpreter `at` understands it.
pub fn bind_at(at: &Arc<Interp>, op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
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
        Kind::Staged => staged::process(at, op, inputs),
        Kind::Batch { size, .. } => batch::process(at, size, op, inputs),
        Kind::Autocast(dtype) => autocast::process(at, dtype, op, inputs),
        Kind::Eval => eval::process(op, inputs),
    }
}
