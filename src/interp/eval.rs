//! The last interpreter of every chain: runs the kernel.

use crate::array::Array;
use crate::autodiff::anomaly;
use crate::autodiff::debug::{self, Modes};
use crate::buffer::Device;
use crate::error::{Error, Result};
use crate::op::Op;
use crate::tensor::{Payload, Tensor, Tensors};
use smallvec::SmallVec;

/// Runs `op` on concrete arrays.
#[inline]
pub fn run(op: &Op, x: &[&Array]) -> Result<Tensors> {
    if let [first, rest @ ..] = x
        && let Some(other) = rest.iter().find(|a| a.device() != first.device())
    {
        return Err(devices(op, first.device(), other.device()));
    }
    let outputs = op.eval(x)?;
    if debug::modes().has(Modes::ANOMALY) {
        anomaly::ran(op, x, &outputs)?;
    }
    Ok(outputs.into_iter().map(Tensor::Array).collect())
}

/// Runs `op` on tensors that must all be concrete by now.
pub fn process(op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    let mut arrays: SmallVec<[&Array; 4]> = SmallVec::new();
    for x in inputs {
        match x {
            Tensor::Array(a) => arrays.push(a),
            Tensor::Traced(t) => {
                let transform = match t.payload {
                    Payload::Taped { .. } => "grad or vjp",
                    Payload::Dual { .. } => "jvp",
                    Payload::Batched { .. } => "vmap",
                };
                return Err(Error::autodiff(format!(
                    "{}: an operand of shape {} was made inside a {transform} that has ended or \
                     runs on another thread; return it from the transformed function instead of keeping it elsewhere",
                    op.name(),
                    t.aval.shape
                )));
            }
        }
    }
    run(op, &arrays)
}

#[cold]
fn devices(op: &Op, a: Device, b: Device) -> Error {
    Error::value(format!(
        "{}: operands are on different devices, {a} and {b}; move one with .to('{a}')",
        op.name()
    ))
}
