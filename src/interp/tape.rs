//! Reverse mode: runs the operation one level down and writes a tape entry.

use crate::array::Array;
use crate::bind::bind_at;
use crate::error::Result;
use crate::interp::{self, Interp, eval};
use crate::op::{Class, Needs, Op, Saves};
use crate::tape::location;
use crate::tape::node::{Edge, Edges, Handle, Node, Saved, Slot, Vjp};
use crate::tape::saving;
use crate::tensor::{Payload, Tensor, Tensors};
use crate::watch::debug::Modes;
use crate::watch::{anomaly, debug};
use smallvec::SmallVec;
use std::sync::Arc;

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
    let mut edges = Edges::new();
    let mut needs = Needs::default();
    for (i, &x) in inputs.iter().enumerate() {
        match x {
            Tensor::Traced(t) if t.tag == at.tag => match &t.payload {
                Payload::Taped { primal, node, index } => {
                    primals.push(primal);
                    edges.push(recording.then(|| Edge { node: node.node().clone(), index: *index }));
                    needs.add(i);
                    continue;
                }
                Payload::Dual { .. } | Payload::Batched { .. } | Payload::Staged { .. } => {}
            },
            _ => {}
        }
        primals.push(x);
        edges.push(None);
    }
    let mark = anomaly::mark();
    let outputs = bind_at(at.below(), op, &primals)?;
    // Floating point results stay on the tape also where their derivative is zero everywhere.
    if !recording || !outputs.iter().any(|y| y.dtype().is_differentiable()) {
        debug::not_recorded(op, recording, inputs);
        return Ok(outputs);
    }
    let node = Node::recorded(at.tag, op.clone(), |op, kept_edges, saved, avals| {
        *kept_edges = edges;
        avals.extend(outputs.iter().map(Tensor::aval));
        save(at, op, needs, &primals, &outputs, saved)
    })?;
    debug::recorded(&node, mark);
    Ok(attach(at, outputs, node))
}

/// The arrays below `inputs`, and which of them are on the tape `at`, for most of what is recorded: an
/// operation with one output on real arrays that at most this tape knows, while nobody looks at values.
/// `None` for everything else.
#[inline]
pub fn recordable<'a>(
    at: &Interp,
    op: &Op,
    inputs: &[&'a Tensor],
) -> Option<(SmallVec<[&'a Array; 4]>, Needs)> {
    if !at.records() || debug::modes() != Modes(0) {
        return None;
    }
    let mut primals = SmallVec::new();
    let mut needs = Needs::default();
    for (i, x) in inputs.iter().enumerate() {
        let (primal, entry) = taped(at, x)?;
        if primal.dtype().is_complex() {
            return None;
        }
        primals.push(primal);
        if entry.is_some() {
            needs.add(i);
        }
    }
    let by_other_rules = match op.class() {
        Class::Discrete => true,
        Class::Composite => !op.own().vjp,
        _ => matches!(op, Op::Custom(_)),
    };
    (!by_other_rules).then_some((primals, needs))
}

/// The array below a tensor that is an array or an array on this tape, and the entry that made it.
#[inline(always)]
fn taped<'a>(at: &Interp, x: &'a Tensor) -> Option<(&'a Array, Option<(&'a Handle, u32)>)> {
    match x {
        Tensor::Array(a) => Some((a, None)),
        Tensor::Traced(t) => match &t.payload {
            Payload::Taped { primal: Tensor::Array(a), node, index } if t.tag == at.tag => {
                Some((a, Some((node, *index))))
            }
            _ => None,
        },
    }
}

/// [`process`] for what is [`recordable`], given what was found there.
#[inline]
pub fn record(at: &Interp, op: Op, inputs: &[&Tensor], primals: &[&Array], needs: Needs) -> Result<Tensor> {
    let out = eval::run_one(&op, primals)?;
    let aval = out.aval();
    if !aval.dtype.is_differentiable() {
        return Ok(out);
    }
    let node = Node::recorded(at.tag, op, |op, edges, saved, avals| {
        for x in inputs {
            let entry = taped(at, x).and_then(|(_, entry)| entry);
            edges.push(entry.map(|(node, index)| Edge { node: node.node().clone(), index }));
        }
        avals.push(aval);
        let saves = op.saves(needs, inputs.len());
        if saves == Saves::NONE {
            return Ok(());
        }
        for (i, &x) in primals.iter().enumerate() {
            if saves.has_input(i) {
                saving::save(at.tag, op, Slot::Input(i as u16), x.clone().into(), saved)?;
            }
        }
        if saves.has_output(0) {
            saving::save(at.tag, op, Slot::Output(0), out.clone(), saved)?;
        }
        Ok(())
    })?;
    Ok(out.on_tape(at.tag, Handle::new(node), 0))
}

/// Keeps what the reverse rule of `op` will read, in `saved`, which is too large to be returned.
#[inline]
fn save(
    at: &Interp,
    op: &Op,
    needs: Needs,
    inputs: &[&Tensor],
    outputs: &Tensors,
    saved: &mut Saved,
) -> Result<()> {
    let saves = op.saves(needs, inputs.len());
    if saves == Saves::NONE {
        return Ok(());
    }
    for (i, x) in inputs.iter().enumerate() {
        if saves.has_input(i) {
            saving::save(at.tag, op, Slot::Input(i as u16), (*x).clone(), saved)?;
        }
    }
    for (i, y) in outputs.iter().enumerate() {
        if saves.has_output(i) {
            saving::save(at.tag, op, Slot::Output(i as u16), y.clone(), saved)?;
        }
    }
    Ok(())
}

/// Makes `outputs` the outputs of `node`; those without derivatives stay as they are.
pub fn attach(at: &Interp, mut outputs: Tensors, node: Arc<Node>) -> Tensors {
    if outputs.len() == 1
        && let Some(only) = outputs.pop()
    {
        outputs.push(output(at, only, node, 0));
        return outputs;
    }
    outputs.into_iter().enumerate().map(|(i, y)| output(at, y, node.clone(), i as u32)).collect()
}

/// Makes `primal` output `index` of `node`, if it can have derivatives.
#[inline]
fn output(at: &Interp, primal: Tensor, node: Arc<Node>, index: u32) -> Tensor {
    if !primal.dtype().is_differentiable() {
        return primal;
    }
    primal.on_tape(at.tag, Handle::new(node), index)
}

/// Runs the reverse rule of a recorded operation.
pub fn pull_back(op: &Op, context: &Vjp, g: &[Option<Tensor>]) -> Result<crate::op::Grads> {
    let grads = op.vjp(context, g);
    if grads.is_ok() {
        return grads;
    }
    grads.map_err(|e| location::within(e, &format!("backward of {}", op.name()), context.node.location))
}
