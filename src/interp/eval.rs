//! The last interpreter of every chain: runs the kernel.

use crate::array::Array;
use crate::array::buffer::Device;
use crate::error::{Error, Result};
use crate::interp;
use crate::op::{Arrays, Kernel, Op, no_output};
use crate::ops::custom;
use crate::ops::pointwise::elementwise::by_parts;
use crate::ops::views::cast::Contiguous;
use crate::tensor::{Payload, Tensor, Tensors};
use crate::watch::anomaly;
use crate::watch::cost;
use crate::watch::debug::{self, Modes};
use crate::watch::script;
use smallvec::SmallVec;

/// Runs `op` on concrete arrays.
#[inline]
pub fn run(op: &Op, x: &[&Array]) -> Result<Tensors> {
    check_devices(op, x)?;
    let modes = debug::modes();
    let mut outputs = if modes.touches(Modes::WATCHED) { watched(op, x, modes)? } else { op.eval(x)? };
    let mut tensors = Tensors::new();
    if outputs.len() == 1 {
        // Nearly always; moving one value needs no iterator.
        if let Some(only) = outputs.pop() {
            tensors.push(Tensor::Array(only));
        }
    } else {
        tensors.extend(outputs.into_iter().map(Tensor::Array));
    }
    Ok(tensors)
}

/// Runs `op` with anomaly detection, cost counting, IEEE gradients or a script on.
#[cold]
fn watched(op: &Op, x: &[&Array], modes: Modes) -> Result<Arrays> {
    let outputs = {
        // Operations that a kernel is made of are its own affair.
        let _quiet = debug::suspend(Modes::VALUES.and(Modes::COUNT).and(Modes::SCRIPT));
        if modes.has(Modes::STRICT) { strictly(op, x)? } else { op.eval(x)? }
    };
    if modes.has(Modes::COUNT) {
        cost::ran(op.name(), op.flops(x, &outputs));
    }
    if modes.has(Modes::SCRIPT) {
        script::ran(op, x, &outputs);
    }
    if modes.has(Modes::ANOMALY) {
        anomaly::ran(op, x, &outputs)?;
    }
    Ok(outputs)
}

/// A fused partial derivative as the operations of its formula, which then follow IEEE arithmetic.
fn strictly(op: &Op, x: &[&Array]) -> Result<Arrays> {
    let _guard = interp::evaluating();
    match op {
        Op::MapVjp(partial) => by_parts(partial, x),
        Op::MapVjpJvp(partial) => by_parts(partial, x),
        _ => op.eval(x),
    }
}

/// [`run`] for an operation with one output, while nobody looks at values.
#[inline(always)]
pub fn run_one(op: &impl Kernel, x: &[&Array]) -> Result<Tensor> {
    check_devices(op, x)?;
    op.eval_one(x).map(Tensor::Array)
}

/// Runs `op` and writes its outputs into `out`, memory that exists; see [`Kernel::eval_into`].
#[inline]
pub fn run_into<O: Kernel + Clone + Into<Op>>(op: &O, x: &[&Array], out: &[&Array]) -> Result<()> {
    let modes = debug::modes();
    if modes.touches(Modes::WATCHED) {
        watched_into(&op.clone().into(), x, out, modes)
    } else {
        op.eval_into(x, out)
    }
}

/// A copy of an array as an operation, for what has no tensor at hand.
pub fn copied(x: &Array) -> Result<Array> {
    let modes = debug::modes();
    if modes.touches(Modes::WATCHED) {
        return watched(&Contiguous.into(), &[x], modes)?.pop().ok_or_else(no_output);
    }
    x.copied()
}

/// [`watched`] for [`run_into`].
#[cold]
fn watched_into(op: &Op, x: &[&Array], out: &[&Array], modes: Modes) -> Result<()> {
    let quiet = debug::suspend(Modes::VALUES.and(Modes::COUNT).and(Modes::SCRIPT));
    op.eval_into(x, out)?;
    drop(quiet);
    if modes.has(Modes::COUNT) {
        let y: Arrays = out.iter().map(|&y| y.clone()).collect();
        cost::ran(op.name(), op.flops(x, &y));
    }
    if modes.has(Modes::SCRIPT) {
        script::wrote(op, x, out);
    }
    Ok(())
}

/// Raises unless all operands are on one device.
#[inline(always)]
fn check_devices(op: &impl Kernel, x: &[&Array]) -> Result<()> {
    if let [first, rest @ ..] = x {
        for a in rest {
            if a.device() != first.device() {
                return Err(devices(op.name(), first.device(), a.device()));
            }
        }
    }
    Ok(())
}

/// Runs `op` on tensors that must all be concrete by now.
pub fn process(op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    let mut arrays: SmallVec<[&Array; 4]> = SmallVec::new();
    for x in inputs {
        match x {
            Tensor::Array(a) => arrays.push(a),
            Tensor::Traced(t) => {
                if let Some(error) = custom::calls::closure(t.tag) {
                    return Err(error);
                }
                let transform = match t.payload {
                    Payload::Taped { .. } => "grad or vjp",
                    Payload::Dual { .. } => "jvp",
                    Payload::Batched { .. } => "vmap",
                    Payload::Staged { .. } => "linearize",
                };
                return Err(Error::autodiff(format!(
                    "{}: an operand of shape {} was made inside a {transform} that has ended or \
                     runs on another thread; return it from the transformed function instead of keeping it \
                     elsewhere",
                    op.name(),
                    t.aval.shape
                )));
            }
        }
    }
    if let Op::Map(map) = op
        && !debug::modes().touches(Modes::WATCHED)
    {
        // Most of what is recorded has one output, which need not go through a list of arrays.
        let mut outputs = Tensors::new();
        outputs.push(run_one(map, &arrays)?);
        return Ok(outputs);
    }
    run(op, &arrays)
}

/// Raises where operands lie on different devices; numbers without axes on the CPU lie everywhere.
pub fn check_tensors(name: &str, operands: &[&Tensor]) -> Result<()> {
    let mut fixed = operands.iter().filter(|x| x.rank() > 0 || x.device() != Device::Cpu).map(|x| x.device());
    let Some(first) = fixed.next() else { return Ok(()) };
    fixed.find(|&device| device != first).map_or(Ok(()), |other| Err(devices(name, first, other)))
}

#[cold]
fn devices(name: &str, a: Device, b: Device) -> Error {
    // What is on the CPU is likelier to be what was forgotten.
    let to = if a == Device::Cpu { b } else { a };
    Error::value(format!("{name}: operands are on different devices, {a} and {b}; move one with .to('{to}')"))
}
