//! Reverse mode: runs the operation one level down and writes a tape entry.

use crate::autodiff::node::{Edges, Handle, Node, Saved, Slot, Vjp};
use crate::autodiff::saving;
use crate::autodiff::{anomaly, debug, place};
use crate::bind::bind_at;
use crate::error::Result;
use crate::interp::{self, Interp};
use crate::op::{Class, Needs, Op};
use crate::tensor::{Payload, Tensor, Tensors, Traced};
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
    for (i, x) in inputs.iter().enumerate() {
        match x.owned_by(at.tag).map(|t| &t.payload) {
            Some(Payload::Taped { primal, node, index }) => {
                primals.push(primal);
                edges.push(Some(crate::autodiff::node::Edge { node: node.entry().clone(), index: *index }));
                needs.add(i);
            }
            _ => {
                primals.push(x);
                edges.push(None);
            }
        }
    }
    let mark = anomaly::mark();
    let outputs = bind_at(at.below(), op, &primals)?;
    if !recording || op.class() == Class::Discrete || !outputs.iter().any(|y| y.dtype().is_float()) {
        debug::not_recorded(op, recording, inputs);
        return Ok(outputs);
    }
    let saves = op.saves(needs, inputs.len());
    let mut saved = Saved::new();
    for (i, x) in primals.iter().enumerate() {
        if saves.has_input(i) {
            saving::save(at.tag, op, Slot::Input(i as u16), x, &mut saved)?;
        }
    }
    for (i, y) in outputs.iter().enumerate() {
        if saves.has_output(i) {
            saving::save(at.tag, op, Slot::Output(i as u16), y, &mut saved)?;
        }
    }
    let avals = outputs.iter().map(Tensor::aval).collect();
    let node = Arc::new(Node::recorded(at.tag, op.clone(), edges, saved, avals));
    debug::recorded(&node, mark);
    Ok(attach(at, outputs, &node))
}

/// Makes `outputs` the outputs of `node`; those without derivatives stay as they are.
pub fn attach(at: &Interp, outputs: Tensors, node: &Arc<Node>) -> Tensors {
    let wrap = |(i, primal): (usize, Tensor)| {
        if !primal.dtype().is_float() {
            return primal;
        }
        let aval = primal.aval();
        let payload = Payload::Taped { primal, node: Handle::new(node.clone()), index: i as u32 };
        Tensor::Traced(Arc::new(Traced { tag: at.tag, aval, payload }))
    };
    outputs.into_iter().enumerate().map(wrap).collect()
}

/// Runs the reverse rule of a recorded operation.
pub fn pull_back(op: &Op, context: &Vjp, g: &[Option<Tensor>]) -> Result<crate::op::Grads> {
    op.vjp(context, g)
        .map_err(|e| place::within(e, &format!("backward of {}", op.name()), context.node.place))
}
