//! `bind`: the one door. Every operation runs by `bind(op, inputs)`, whatever it turns out to mean.
//!
//! The meaning comes from context: a thread-local chain of interpreters. The innermost one looks whether any
//! input belongs to it; if so it gives the operation its meaning (records it, pushes a tangent, batches it)
//! with the help of the rest of the chain, otherwise it steps aside. The last interpreter of every chain runs
//! kernels. Read next: `src/interp/mod.rs`.

use crate::array::Array;
use crate::error::Result;
use crate::interp::{self, Interp, Kind, autocast, batch, dual, eval, staged, tape};
use crate::op::{Kernel, Op, no_output};
use crate::ops::{complex, custom};
use crate::tensor::{Tensor, Tensors};
use crate::watch::debug::{self, Modes};
use smallvec::SmallVec;
use std::sync::Arc;

/// The inputs as arrays where only kernels can be meant: nothing but ambient tapes is in force, no
/// interpreter owns any input, none is complex, and nobody looks at values.
#[inline(always)]
pub fn plain<'a>(inputs: &[&'a Tensor]) -> Option<SmallVec<[&'a Array; 4]>> {
    if !interp::is_plain() || debug::modes().touches(Modes::WATCHED) {
        return None;
    }
    let mut arrays = SmallVec::new();
    for x in inputs {
        match x {
            Tensor::Array(a) if !a.dtype().is_complex() => arrays.push(a),
            _ => return None,
        }
    }
    Some(arrays)
}

/// Runs `op` on `inputs` under the current chain of interpreters.
#[inline]
pub fn bind(op: impl Into<Op>, inputs: &[&Tensor]) -> Result<Tensors> {
    let op = op.into();
    match plain(inputs) {
        Some(arrays) => eval::run(&op, &arrays),
        None => bind_current(&op, inputs),
    }
}

/// [`bind`] for an operation with one output. On plain arrays its kernel runs right here: the operation
/// becomes an [`Op`], and the output a list, only where an interpreter wants to see them.
#[inline]
pub fn bind1<O: Kernel + Into<Op>>(op: O, inputs: &[&Tensor]) -> Result<Tensor> {
    match plain(inputs) {
        Some(arrays) => eval::run_one(&op, &arrays),
        None => bind_one(op.into(), inputs),
    }
}

/// [`bind_current`] for an operation with one output.
fn bind_one(op: Op, inputs: &[&Tensor]) -> Result<Tensor> {
    if let Some(at) = interp::outermost()
        && let Some((primals, needs)) = tape::recordable(at, &op, inputs)
    {
        return tape::record(at, op, inputs, &primals, needs);
    }
    bind_current(&op, inputs)?.pop().ok_or_else(no_output)
}

/// Runs `op` as the innermost interpreter of this thread understands it; on complex inputs, what it means for
/// their parts.
fn bind_current(op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    if inputs.iter().any(|x| x.dtype().is_complex())
        && let Some(out) = complex::lower(op, inputs)?
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
