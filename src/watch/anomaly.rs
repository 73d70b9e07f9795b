//! Anomaly detection: finds the first value that is not finite. Gradients and tangents raise; forward values
//! are noted, and raise too on request.
//!
//! An operation *makes* a value not finite if its output is worse than its inputs, where finite < infinite <
//! NaN. So an infinity that is passed on (a mask of `-inf` under softmax) is no anomaly.

mod values;

use crate::array::Array;
use crate::error::{Error, Result};
use crate::op::Op;
use crate::tape::location::{self, Location};
use crate::tape::node::{Edge, Node, Slot, Vjp};
use crate::tensor::Tensor;
use crate::watch::debug::{Modes, modes};
use rustc_hash::FxHashSet;
use std::cell::RefCell;
use std::sync::Arc;
use values::*;

/// The most forward anomalies that are kept; the first ones matter.
const REMEMBERED: usize = 256;

/// An element that is not finite, and the operation that made it.
#[derive(Clone)]
pub struct NonFinite {
    /// The sequence number of the operation's node, if it was recorded.
    pub seq: Option<u64>,
    /// The name of the operation.
    pub op: String,
    /// The location of the operation.
    pub location: Option<Location>,
    /// The index of the first such element, batch axes included.
    pub index: Vec<usize>,
    /// The element.
    pub value: f64,
    /// The operands at that index, worded for a message.
    pub operands: String,
}

thread_local! {
    static MADE: RefCell<Vec<NonFinite>> = const { RefCell::new(Vec::new()) };
}

/// The forward anomalies since `clear`.
pub fn made() -> Vec<NonFinite> {
    MADE.with_borrow(Vec::clone)
}

/// Discards the forward anomalies.
pub fn clear() {
    MADE.with_borrow_mut(Vec::clear);
}

/// The number of forward anomalies so far; 0 unless anomaly detection is on.
#[inline]
pub fn mark() -> usize {
    if modes().has(Modes::ANOMALY) { MADE.with_borrow(Vec::len) } else { 0 }
}

/// Assigns the forward anomalies since `mark` to the node with sequence number `seq`.
pub fn attach(seq: u64, mark: usize) {
    MADE.with_borrow_mut(|made| {
        for m in made.iter_mut().skip(mark) {
            m.seq.get_or_insert(seq);
        }
    });
}

/// Checks the outputs of a kernel. Called after every kernel while forward values are checked.
#[cold]
pub fn ran(op: &Op, inputs: &[&Array], outputs: &[Array]) -> Result<()> {
    if inputs.is_empty() {
        // The program asked for these numbers.
        return Ok(());
    }
    for y in outputs {
        let out = level(y)?;
        if out == 0 {
            continue;
        }
        for x in inputs {
            if level(x)? >= out {
                return Ok(());
            }
        }
        let Some((index, value)) = Host::of(y)?.worst() else { continue };
        let mut operands = Vec::new();
        for (i, x) in inputs.iter().enumerate() {
            operands.push(said(op, &format!("input {i}"), &Tensor::Array((*x).clone()), &index)?);
        }
        let operands = list(operands);
        let made = NonFinite {
            seq: None,
            op: op.name().to_string(),
            location: location::now(),
            index,
            value,
            operands,
        };
        if modes().has(Modes::FORWARD) {
            return Err(forward(&made));
        }
        MADE.with_borrow_mut(|all| {
            if all.len() < REMEMBERED {
                all.push(made);
            }
        });
    }
    Ok(())
}

fn forward(made: &NonFinite) -> Error {
    Error::anomaly(format!(
        "anomaly in the forward: {}{} made {}{}, where {}; keep its operands inside its domain (clamp them, \
         or apply where() to them as well as to the result), or leave out forward=True if the value is \
         masked later",
        made.op,
        location::at(made.location),
        number(made.value),
        spot(&made.index),
        made.operands
    ))
}

/// Checks the tangents `moved` that a forward rule made of finite `tangents`.
#[cold]
pub fn pushed(
    op: &Op, primals: &[&Tensor], tangents: &[Option<Tensor>], moved: &[Option<Tensor>],
) -> Result<()> {
    for t in tangents.iter().flatten() {
        if !is_finite(t)? {
            return Ok(());
        }
    }
    for t in moved.iter().flatten() {
        let Some((index, value)) = worst(t)? else { continue };
        let mut there = Vec::new();
        for (i, (x, t)) in primals.iter().zip(tangents).enumerate() {
            there.push(said(op, &format!("input {i}"), x, &index)?);
            if let Some(t) = t {
                there.push(said(op, &format!("its tangent {i}"), t, &index)?);
            }
        }
        return Err(Error::anomaly(format!(
            "anomaly in the jvp of {}{}: the tangent is {}{}, where {}; keep its operands away from where \
             its derivative is not finite (clamp them, or add a small number)",
            op.name(),
            location::at(location::now()),
            number(value),
            spot(&index),
            list(there)
        )));
    }
    Ok(())
}

/// Checks the tangents that a step of a linear map made of finite tangent inputs, those marked in `moves`.
#[cold]
pub fn stepped(op: &Op, inputs: &[&Tensor], moves: &[bool], outputs: &[Tensor]) -> Result<()> {
    for (x, _) in inputs.iter().zip(moves).filter(|(_, moves)| **moves) {
        if !is_finite(x)? {
            return Ok(());
        }
    }
    for t in outputs {
        let Some((index, value)) = worst(t)? else { continue };
        let mut there = Vec::new();
        for (i, (x, moves)) in inputs.iter().zip(moves).enumerate() {
            let name = if *moves { format!("the tangent in input {i}") } else { format!("input {i}") };
            there.push(said(op, &name, x, &index)?);
        }
        return Err(Error::anomaly(format!(
            "anomaly in the linear map of linearize: {} made the tangent {}{}, where {}; keep the operands \
             of the linearized function away from where its derivative is not finite (clamp them, or add a \
             small number)",
            op.name(),
            number(value),
            spot(&index),
            list(there)
        )));
    }
    Ok(())
}

/// Anomaly detection during one backward walk, with the nodes visited so far.
#[derive(Default)]
pub struct Search {
    visited: Vec<Arc<Node>>,
}

impl Search {
    /// Checks the gradients that one reverse rule made of the cotangents `g`.
    pub fn check(&mut self, c: &Vjp, g: &[Option<Tensor>], grads: &[Option<Tensor>]) -> Result<()> {
        for (i, grad) in grads.iter().enumerate() {
            // A gradient without an edge has no consequence.
            if let (Some(grad), Some(Some(_))) = (grad, c.node.edges.get(i))
                && let Some((index, value)) = worst(grad)?
            {
                return Err(self.report(c, g, i, &index, value)?);
            }
        }
        self.visited.push(c.node.clone());
        Ok(())
    }

    fn report(
        &self, c: &Vjp, g: &[Option<Tensor>], input: usize, index: &[usize], value: f64,
    ) -> Result<Error> {
        let node = c.node;
        let Some(op) = node.op() else { return Ok(Error::anomaly("anomaly in the gradient of a leaf")) };
        let mut there = Vec::new();
        let (mut finite, mut finite_operands) = (true, true);
        for g in g.iter().flatten() {
            there.push(said(op, "the cotangent", g, index)?);
            finite &= is_finite(g)?;
        }
        let mut culprits: Vec<Edge> = Vec::new();
        for (slot, t) in c.saved.iter().filter_map(|kept| Some((kept.slot, kept.tensor()?))) {
            let name = match slot {
                Slot::Input(i) => format!("the saved input {i}"),
                Slot::Output(i) => format!("the saved output {i}"),
            };
            there.push(said(op, &name, t, index)?);
            let finite = is_finite(t)?;
            finite_operands &= finite;
            if let Slot::Input(i) = slot
                && let Some(Some(edge)) = node.edges.get(i as usize)
                && !finite
            {
                culprits.push(edge.clone());
            }
        }
        let made = source(node, &culprits);
        let advice = if !finite {
            "; the cotangent was not finite already: it came in by gradient= or was returned by a hook"
                .to_string()
        } else if let Some(made) = made {
            self.history(node, &made)
        } else if !finite_operands {
            "; that operand was not finite when it came in: look at where its values come from".to_string()
        } else {
            format!(
                "; the derivative of {} is not finite there: keep its operand away from that point (clamp \
                 it, or add a small number)",
                node.name()
            )
        };
        Ok(Error::anomaly(format!(
            "anomaly in the backward of {}{}: the gradient of input {input} is {}{}, where {}{advice}",
            node.name(),
            location::at(node.location),
            number(value),
            spot(index),
            list(there)
        )))
    }

    /// Words where a forward value became not finite, and whether a later `where` masked it.
    fn history(&self, node: &Arc<Node>, made: &NonFinite) -> String {
        let masked = self.visited.iter().rev().find(|v| v.name() == "where" && reaches(v, node));
        let masked = masked.map_or_else(String::new, |v| {
            format!(", and where{} masked it later, so its cotangent is zero", location::at(v.location))
        });
        format!(
            "; {}{} made {}{} in the forward, where {}{masked}; keep the operands of {} inside its domain \
             (clamp them, or apply where() to them as well as to the result)",
            made.op,
            location::at(made.location),
            number(made.value),
            spot(&made.index),
            made.operands,
            made.op
        )
    }
}

/// The latest forward anomaly at or above `node`, or `culprits` if there are any.
fn source(node: &Arc<Node>, culprits: &[Edge]) -> Option<NonFinite> {
    let made = made();
    let mut stack: Vec<Arc<Node>> = match culprits {
        [] => vec![node.clone()],
        edges => edges.iter().map(|e| e.node.clone()).collect(),
    };
    let mut seen = FxHashSet::default();
    let mut best: Option<&NonFinite> = None;
    while let Some(node) = stack.pop() {
        if !seen.insert(node.seq) {
            continue;
        }
        if let Some(m) = made.iter().find(|m| m.seq == Some(node.seq))
            && best.is_none_or(|b| b.seq < m.seq)
        {
            best = Some(m);
        }
        stack.extend(node.edges.iter().flatten().map(|e| e.node.clone()));
    }
    best.cloned()
}

/// Whether `to` is an ancestor of `from`.
fn reaches(from: &Arc<Node>, to: &Arc<Node>) -> bool {
    let mut stack = vec![from.clone()];
    let mut seen = FxHashSet::default();
    while let Some(node) = stack.pop() {
        if Arc::ptr_eq(&node, to) {
            return true;
        }
        if node.seq > to.seq && seen.insert(node.seq) {
            stack.extend(node.edges.iter().flatten().map(|e| e.node.clone()));
        }
    }
    false
}
