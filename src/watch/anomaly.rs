//! The search for the first value that is not finite: gradients and tangents raise, forward values are noted,
//! and raise too where that was asked for.
//!
//! A value is *made* not finite by an operation if it is worse than what went in, where finite < infinite <
//! NaN. So an infinity that is handed on (a mask of `-inf` under softmax) is no anomaly.

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

/// Forward values that are remembered; the first ones matter.
const REMEMBERED: usize = 256;

/// An element that is not finite, and which operation made it so.
#[derive(Clone)]
pub struct Made {
    /// The entry of the tape, if the operation was recorded.
    pub seq: Option<u64>,
    /// The operation.
    pub op: String,
    /// The line of the program.
    pub location: Option<Location>,
    /// Where the first such element stands, batch axes included.
    pub index: Vec<usize>,
    /// The element.
    pub value: f64,
    /// The operands there, in words.
    pub operands: String,
}

thread_local! {
    static MADE: RefCell<Vec<Made>> = const { RefCell::new(Vec::new()) };
}

/// What was made not finite in the forward since `clear`.
pub fn made() -> Vec<Made> {
    MADE.with_borrow(Vec::clone)
}

/// Forgets what was made.
pub fn clear() {
    MADE.with_borrow_mut(Vec::clear);
}

/// How many were made so far.
#[inline]
pub fn mark() -> usize {
    if modes().has(Modes::ANOMALY) { MADE.with_borrow(Vec::len) } else { 0 }
}

/// What was made since `mark` belongs to the entry `seq`.
pub fn attach(seq: u64, mark: usize) {
    MADE.with_borrow_mut(|made| {
        for m in made.iter_mut().skip(mark) {
            m.seq.get_or_insert(seq);
        }
    });
}

/// Called after every kernel while values are looked at.
#[cold]
pub fn ran(op: &Op, inputs: &[&Array], outputs: &[Array]) -> Result<()> {
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
        let made =
            Made { seq: None, op: op.name().to_string(), location: location::now(), index, value, operands };
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

fn forward(made: &Made) -> Error {
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

/// Looks at the tangents that a forward rule made.
#[cold]
pub fn pushed(
    op: &Op,
    primals: &[&Tensor],
    tangents: &[Option<Tensor>],
    moved: &[Option<Tensor>],
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

/// Looks at what a step of a linear map made of its tangents, the inputs that move.
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

/// The search during one backward walk.
#[derive(Default)]
pub struct Search {
    visited: Vec<Arc<Node>>,
}

impl Search {
    /// Looks at what one reverse rule made of the cotangents `g`.
    pub fn check(&mut self, c: &Vjp, g: &[Option<Tensor>], grads: &[Option<Tensor>]) -> Result<()> {
        for (i, grad) in grads.iter().enumerate() {
            // What no edge takes is of no consequence.
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
        &self,
        c: &Vjp,
        g: &[Option<Tensor>],
        input: usize,
        index: &[usize],
        value: f64,
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

    /// What happened to a forward value that was made not finite.
    fn history(&self, node: &Arc<Node>, made: &Made) -> String {
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

/// The forward value not finite that is nearest above `node`: above `culprits`, if there are any.
fn source(node: &Arc<Node>, culprits: &[Edge]) -> Option<Made> {
    let made = made();
    let mut stack: Vec<Arc<Node>> = match culprits {
        [] => vec![node.clone()],
        edges => edges.iter().map(|e| e.node.clone()).collect(),
    };
    let mut seen = FxHashSet::default();
    let mut best: Option<&Made> = None;
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
