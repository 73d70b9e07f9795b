//! `bind`: the one door. Every operation runs by `bind(op, inputs)`, whatever it turns out to mean.
//!
//! The meaning comes from context: a thread-local chain of interpreters. The innermost one looks whether any
//! input belongs to it; if so it gives the operation its meaning (records it, pushes a tangent, batches it)
//! with the help of the rest of the chain, otherwise it steps aside. The last interpreter of every chain runs
//! kernels. Read next: `src/interp/mod.rs`.

use crate::array::Array;
use crate::error::Result;
use crate::interp::{self, Interp, Kind, autocast, batch, dual, eval, tape};
use crate::op::Op;
use crate::ops::custom;
use crate::tensor::{Tensor, Tensors};
use smallvec::SmallVec;
use std::sync::Arc;

/// Runs `op` on `inputs` under the current chain of interpreters.
#[inline]
pub fn bind(op: impl Into<Op>, inputs: &[&Tensor]) -> Result<Tensors> {
    let op = op.into();
    if interp::is_plain() {
        // Nothing but ambient tapes: plain arrays go straight to their kernel.
        let mut arrays: SmallVec<[&Array; 4]> = SmallVec::new();
        for x in inputs {
            match x {
                Tensor::Array(a) => arrays.push(a),
                Tensor::Traced(_) => return bind_at(&interp::current(), &op, inputs),
            }
        }
        return eval::run(&op, &arrays);
    }
    bind_at(&interp::current(), &op, inputs)
}

/// [`bind`] for an operation with one output.
#[inline]
pub fn bind1(op: impl Into<Op>, inputs: &[&Tensor]) -> Result<Tensor> {
    let mut out = bind(op, inputs)?;
    out.pop().ok_or_else(|| crate::error::Error::value("internal: an operation returned no output"))
}

/// Runs `op` as the interpreter `at` understands it.
pub fn bind_at(at: &Arc<Interp>, op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    let mut at = at;
    loop {
        let concerned = match at.kind {
            Kind::Eval | Kind::Autocast(_) => true,
            _ => inputs.iter().any(|x| x.owned_by(at.tag).is_some()),
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
        Kind::Batch { size, .. } => batch::process(at, size, op, inputs),
        Kind::Autocast(dtype) => autocast::process(at, dtype, op, inputs),
        Kind::Eval => eval::process(op, inputs),
    }
}
