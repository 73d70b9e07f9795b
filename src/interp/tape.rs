//! Reverse mode: runs the operation one level down and writes a node.

use super::prelude::*;
use crate::interp::eval::{self, New};
use crate::op::{Needs, Saves};
use crate::tape::location;
use crate::tape::node::{Edge, Handle, NewNode, Node, Slot, Vjp};
use crate::tape::saving;
use crate::watch::debug::Modes;
use crate::watch::{anomaly, debug};

/// Records `op`, at least one input of which belongs to the tape `at`.
pub fn process(at: &Arc<Interp>, op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    let recording = at.records();
    if recording && op.class() == Class::Composite && !op.own().vjp {
        let _guard = interp::enter(at.clone());
        if let Some(out) = op.decompose(inputs) {
            return out;
        }
    }
    let mut primals: SmallVec<[&Tensor; 4]> = SmallVec::new();
    let mut needs = Needs::default();
    for (i, &x) in inputs.iter().enumerate() {
        match taped(at.tag, x) {
            Some((primal, ..)) => {
                primals.push(primal);
                needs.add(i);
            }
            None => primals.push(x),
        }
    }
    let mark = anomaly::mark();
    let outputs = bind_at(at.below(), op, &primals)?;
    // Floating point results stay on the tape also where their derivative is zero everywhere.
    if !recording || !outputs.iter().any(|y| y.dtype().is_differentiable()) {
        debug::not_recorded(op, recording, inputs);
        return Ok(outputs);
    }
    let primal = |i: usize| primals[i].clone();
    let node = node_of(at, op.clone(), inputs, needs, primal, &outputs)?;
    debug::recorded(&node, mark);
    Ok(outputs.on_tape(at, node))
}

/// Whether the fast path applies: the tape records, `op` has its own reverse rule, no debugging mode is on.
#[inline]
pub fn records(at: &Interp, op: &Op) -> bool {
    if !at.records() || debug::modes() != Modes::NONE {
        return false;
    }
    match op.class() {
        Class::Discrete => false,
        Class::Composite => op.own().vjp,
        _ => !matches!(op, Op::Custom(_)),
    }
}

/// The value below a tensor on this tape, with the node and the output of it that it is.
#[inline(always)]
pub fn taped(tag: Tag, x: &Tensor) -> Option<(&Tensor, &Handle, u32)> {
    match x {
        Tensor::Traced(t) if t.tag == tag => match &t.payload {
            Payload::Taped { primal, node, index } => Some((primal, node, *index)),
            _ => None,
        },
        _ => None,
    }
}

/// [`process`] for an operation that the tape [`records`], on the arrays `primals` below `inputs`.
#[inline]
pub fn record<Y: Outputs>(
    at: &Interp, op: Op, inputs: &[&Tensor], primals: &[&Array], needs: Needs,
) -> Result<Y> {
    let out: Y = eval::run(&op, primals, New::OUTPUTS, Modes::NONE)?;
    if !out.list().iter().any(|y| y.dtype().is_differentiable()) {
        return Ok(out);
    }
    let primal = |i: usize| primals[i].clone().into();
    let node = node_of(at, op, inputs, needs, primal, out.list())?;
    Ok(out.on_tape(at, node))
}

/// Records `op` without running it: `value` is one in the place of its output, which nobody reads. The
/// first of `inputs`, and no other, is on a tape; arrays are those below it.
pub fn unrun(op: Op, inputs: &[&Tensor], value: Tensor) -> Result<Tensor> {
    let mut at = interp::current();
    while inputs.iter().all(|x| taped(at.tag, x).is_none()) {
        at = at.below().clone();
    }
    let mark = anomaly::mark();
    let mut needs = Needs::default();
    needs.add(0);
    let primal = |i: usize| taped(at.tag, inputs[i]).map_or(inputs[i], |(primal, ..)| primal).clone();
    let node = node_of(&at, op, inputs, needs, primal, std::slice::from_ref(&value))?;
    debug::recorded(&node, mark);
    Ok(output(&at, value, node, 0))
}

/// The node of `op`, with what its reverse rule will read: inputs, as `primal` gives them, and outputs.
#[inline(always)]
fn node_of(
    at: &Interp, op: Op, inputs: &[&Tensor], needs: Needs, primal: impl Fn(usize) -> Tensor,
    outputs: &[Tensor],
) -> Result<Arc<Node>> {
    let mut node = NewNode::new(at.tag, op);
    if let Some((op, edges, saved, avals)) = node.parts() {
        for x in inputs {
            edges.push(taped(at.tag, x).map(|(_, node, index)| Edge { node: node.node().clone(), index }));
        }
        for y in outputs {
            avals.push(y.aval());
        }
        let saves = op.saves(needs, inputs.len());
        if saves != Saves::NONE {
            for i in 0..inputs.len() {
                if saves.has_input(i) {
                    saving::save(at.tag, op, Slot::Input(i as u16), primal(i), saved)?;
                }
            }
            for (i, y) in outputs.iter().enumerate() {
                if saves.has_output(i) {
                    saving::save(at.tag, op, Slot::Output(i as u16), y.clone(), saved)?;
                }
            }
        }
    }
    Ok(node.finished())
}

/// Makes `primal` output `index` of `node`, if it can have derivatives.
#[inline(always)]
pub fn output(at: &Interp, primal: Tensor, node: Arc<Node>, index: u32) -> Tensor {
    if !primal.dtype().is_differentiable() {
        return primal;
    }
    primal.on_tape(at.tag, Handle::new(node), index)
}

/// Runs the reverse rule of a recorded operation.
#[inline(always)]
pub fn pull_back(op: &Op, context: &Vjp, g: &[Option<Tensor>]) -> Result<crate::op::Grads> {
    let grads = op.vjp(context, g);
    if grads.is_ok() {
        return grads;
    }
    grads.map_err(|e| location::within(e, &format!("backward of {}", op.name()), context.node.location))
}
