//! Anomaly detection: finds the first value that is not finite. Gradients and tangents raise; forward values
//! are noted, and raise too on request.
//!
//! An operation *makes* a value not finite if its output is worse than its inputs, where finite < infinite <
//! NaN. So an infinity that is passed on (a mask of `-inf` under softmax) is no anomaly.

mod values;

use crate::array::Array;
use crate::error::{Error, Result};
use crate::op::Op;
use crate::tape::ancestors::ancestors;
use crate::tape::location::{self, Location};
use crate::tape::node::{Node, Slot, Vjp};
use crate::tensor::Tensor;
use crate::watch::debug::{Modes, modes};
use rustc_hash::FxHashSet;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::iter;
use std::sync::Arc;
pub use values::Element;
use values::*;

/// The most forward anomalies that are kept; the first ones matter.
const REMEMBERED: usize = 256;

/// A forward value that is not finite, and the operation that made it.
#[derive(Clone)]
pub struct NonFinite {
    /// The sequence number of the operation's node, if it was recorded.
    pub seq: Option<u64>,
    /// The name of the operation.
    pub op: String,
    /// The location of the operation.
    pub location: Option<Location>,
    /// The first such element.
    pub element: Element,
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
        let Some(worst) = Host::of(y)?.worst() else { continue };
        let operands: Vec<Tensor> = inputs.iter().map(|&x| x.clone().into()).collect();
        let operands = operands.iter().enumerate().map(|(i, x)| (format!("input {i}"), x));
        let element = Element::of(op, worst, operands)?;
        let made = NonFinite { seq: None, op: op.name().to_string(), location: location::now(), element };
        if modes().has(Modes::FORWARD) {
            return Err(Error::anomaly(format!(
                "anomaly in the forward: {}{} made {}, where {}; keep its operands inside its domain (clamp \
                 them, or apply where() to them as well as to the result), or leave out forward=True if the \
                 value is masked later",
                made.op,
                location::at(made.location),
                made.element,
                made.element.operands
            )));
        }
        MADE.with_borrow_mut(|all| {
            if all.len() < REMEMBERED {
                all.push(made);
            }
        });
    }
    Ok(())
}

/// The first element of `outputs` that is not finite, if all `tangents` that they were made of are.
fn first<'t>(
    op: &Op, tangents: impl IntoIterator<Item = &'t Tensor>, outputs: impl IntoIterator<Item = &'t Tensor>,
    operands: impl IntoIterator<Item = (String, &'t Tensor)>,
) -> Result<Option<Element>> {
    for t in tangents {
        if !is_finite(t)? {
            return Ok(None);
        }
    }
    for t in outputs {
        if let Some(worst) = worst(t)? {
            return Element::of(op, worst, operands).map(Some);
        }
    }
    Ok(None)
}

/// Checks the tangents `moved` that a forward rule made of finite `tangents`.
#[cold]
pub fn pushed(
    op: &Op, primals: &[&Tensor], tangents: &[Option<Tensor>], moved: &[Option<Tensor>],
) -> Result<()> {
    let operands = primals.iter().zip(tangents).enumerate().flat_map(|(i, (&x, t))| {
        let tangent = t.as_ref().map(|t| (format!("its tangent {i}"), t));
        iter::once((format!("input {i}"), x)).chain(tangent)
    });
    let element = first(op, tangents.iter().flatten(), moved.iter().flatten(), operands)?;
    element.map_or(Ok(()), |element| {
        Err(Error::anomaly(format!(
            "anomaly in the jvp of {}{}: the tangent is {element}, where {}; keep its operands away from \
             where its derivative is not finite (clamp them, or add a small number)",
            op.name(),
            location::at(location::now()),
            element.operands
        )))
    })
}

/// Checks the tangents that a step of a linear map made of finite tangent inputs, those marked in `moves`.
#[cold]
pub fn stepped(op: &Op, inputs: &[&Tensor], moves: &[bool], outputs: &[Tensor]) -> Result<()> {
    let tangents = inputs.iter().zip(moves).filter(|(_, moves)| **moves).map(|(&x, _)| x);
    let operands = inputs.iter().zip(moves).enumerate().map(|(i, (&x, moves))| {
        (if *moves { format!("the tangent in input {i}") } else { format!("input {i}") }, x)
    });
    first(op, tangents, outputs, operands)?.map_or(Ok(()), |element| {
        Err(Error::anomaly(format!(
            "anomaly in the linear map of linearize: {} made the tangent {element}, where {}; keep the \
             operands of the linearized function away from where its derivative is not finite (clamp them, \
             or add a small number)",
            op.name(),
            element.operands
        )))
    })
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
                && let Some(worst) = worst(grad)?
            {
                return Err(self.report(c, g, i, worst)?);
            }
        }
        self.visited.push(c.node.clone());
        Ok(())
    }

    fn report(&self, c: &Vjp, g: &[Option<Tensor>], input: usize, worst: Worst) -> Result<Error> {
        let node = c.node;
        let Some(op) = node.op() else { return Ok(Error::anomaly("anomaly in the gradient of a leaf")) };
        let saved: Vec<_> = c.saved.iter().filter_map(|kept| Some((kept.slot, kept.tensor()?))).collect();
        let cotangents = g.iter().flatten().map(|g| ("the cotangent".to_string(), g));
        let operands = cotangents.chain(saved.iter().map(|(slot, t)| (format!("the saved {slot}"), *t)));
        let element = Element::of(op, worst, operands)?;
        let (mut finite, mut finite_operands) = (true, true);
        for g in g.iter().flatten() {
            finite &= is_finite(g)?;
        }
        let mut culprits = Vec::new();
        for (slot, t) in saved {
            if is_finite(t)? {
                continue;
            }
            finite_operands = false;
            if let Slot::Input(i) = slot
                && let Some(Some(edge)) = node.edges.get(i as usize)
            {
                culprits.push(&edge.node);
            }
        }
        let made = source(if culprits.is_empty() { vec![node] } else { culprits });
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
            "anomaly in the backward of {}{}: the gradient of input {input} is {element}, where {}{advice}",
            node.name(),
            location::at(node.location),
            element.operands
        )))
    }

    /// Words where a forward value became not finite, and whether a later `where` masked it.
    fn history(&self, node: &Arc<Node>, made: &NonFinite) -> String {
        let masked = self.visited.iter().rev().find(|v| {
            v.name() == "where" && ancestors([*v], node.seq).iter().any(|above| Arc::ptr_eq(above, node))
        });
        let masked = masked.map_or_else(String::new, |v| {
            format!(", and where{} masked it later, so its cotangent is zero", location::at(v.location))
        });
        format!(
            "; {}{} made {} in the forward, where {}{masked}; keep the operands of {} inside its domain \
             (clamp them, or apply where() to them as well as to the result)",
            made.op,
            location::at(made.location),
            made.element,
            made.element.operands,
            made.op
        )
    }
}

/// The latest forward anomaly at or above `nodes`.
fn source(nodes: Vec<&Arc<Node>>) -> Option<NonFinite> {
    let above: FxHashSet<u64> = ancestors(nodes, 0).iter().map(|node| node.seq).collect();
    let made = made().into_iter().filter(|m| m.seq.is_some_and(|seq| above.contains(&seq)));
    made.min_by_key(|m| Reverse(m.seq))
}
