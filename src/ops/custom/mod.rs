//! Custom operations: functions whose derivatives are given by the user instead of derived.
//!
//! A [`CustomRule`] (`src/ops/custom/rule.rs`) is a forward and its rules. It goes through `bind` like every
//! operation. Each interpreter passes it as a whole to the next, so that every level applies the custom
//! rules: a tape records it, forward mode pushes tangents by its JVP, `vmap` makes it a custom operation of
//! the whole batch (`src/ops/custom/batch.rs`). The forward itself runs at the bottom, on plain values.
//!
//! A value that the forward saves for the rules and that is neither input nor output is a *hidden output*. It
//! gets batch axes, tangents and tape nodes like the others, so higher derivatives are right. The custom
//! rules do not cover hidden outputs; their derivatives come from tracing the forward again.

mod batch;
pub mod calls;
mod push;
mod rule;
mod transpose;

pub use rule::{CustomRule, ForwardFacts, RuleInput};
pub use transpose::transpose;

use crate::autodiff::{accumulate, transform};
use crate::bind::bind_at;
use crate::interp::{self, Interp, Kind, linearized};
use crate::op::Op;
use crate::ops::prelude::*;
use crate::tape::host_ref::Holder;
use crate::tape::node::{Edge, Edges, Handle, NewNode, Slot};
use crate::tape::saving;
use crate::tensor::Payload;
use crate::watch::anomaly;
use crate::watch::debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// One call of a custom function.
#[derive(Clone)]
pub struct Custom {
    rule: Arc<dyn CustomRule>,
    /// Whether the hidden outputs are wanted.
    hidden: bool,
    /// The precision of the autocast region around the call.
    autocast: Option<Option<DType>>,
}

impl Custom {
    /// Whether its reverse rule runs Python code of the user's.
    pub fn runs_user_code(&self) -> bool {
        self.rule.runs_user_code()
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Custom) -> bool {
        Arc::ptr_eq(&self.rule, &other.rule) && self.hidden == other.hidden
    }
}
impl Eq for Custom {}
impl Hash for Custom {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.rule).cast::<()>().hash(state);
    }
}
impl std::fmt::Debug for Custom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Custom({})", self.rule.name())
    }
}

/// Calls a custom function under the current chain of interpreters; returns its outputs.
pub fn call(rule: Arc<dyn CustomRule>, inputs: &[Tensor]) -> Result<Tensors> {
    if inputs.len() > u16::MAX as usize {
        return Err(Error::value(format!(
            "{}: a custom function of {} tensors called, at most {} are possible; stack some of them",
            rule.name(),
            inputs.len(),
            u16::MAX
        )));
    }
    let current = interp::current();
    let custom = Custom { rule, hidden: false, autocast: interp::autocast_of(&current) };
    let refs: SmallVec<[&Tensor; 4]> = inputs.iter().collect();
    let _calling = calls::begin(custom.rule.name(), current.clone());
    bind_at(&current, &custom.into(), &refs)
}

/// Processes the operation at the interpreter `at`, to which some input belongs.
pub fn process(at: &Arc<Interp>, custom: &Custom, inputs: &[&Tensor]) -> Result<Tensors> {
    match at.kind {
        Kind::Eval => custom.run(inputs),
        Kind::Autocast(_) => bind_at(at.below(), &custom.clone().into(), inputs),
        Kind::Tape { .. } => custom.record(at, inputs),
        Kind::Dual => custom.push(at, inputs),
        Kind::Linearized => linearized::process(at, &custom.clone().into(), inputs),
        Kind::Batch { .. } => custom.batch_at(at, inputs),
    }
}

impl Custom {
    /// The rules, for Python's garbage collector.
    pub fn rules(&self) -> Arc<dyn Holder> {
        self.rule.clone()
    }

    /// The same call with another rule, or with other outputs wanted.
    fn with(&self, rule: Arc<dyn CustomRule>, hidden: bool) -> Op {
        Custom { rule, hidden, autocast: self.autocast }.into()
    }

    /// Reenters the autocast region of the call if the current chain lacks it.
    fn region(&self) -> Option<interp::InterpGuard> {
        let low = self.autocast?;
        let current = interp::current();
        (interp::autocast_of(&current) != Some(low)).then(|| interp::enter_autocast(low))
    }

    fn run(&self, inputs: &[&Tensor]) -> Result<Tensors> {
        let _region = self.region();
        let x: SmallVec<[Tensor; 4]> = inputs.iter().map(|&x| x.clone()).collect();
        self.rule.forward(&x, self.hidden)
    }

    fn retrace(&self, x: &[Tensor]) -> Result<Tensors> {
        let _region = self.region();
        self.rule.retrace(x)
    }

    /// Runs the operation one level down; raises if the function closes over a value of this level or above.
    fn below(&self, at: &Arc<Interp>, op: &Op, primals: &[&Tensor]) -> Result<Tensors> {
        let outputs = bind_at(at.below(), op, primals)?;
        match outputs.iter().any(|y| y.traced().is_some_and(|t| t.tag >= at.tag)) {
            true => Err(self.closure()),
            false => Ok(outputs),
        }
    }

    #[cold]
    fn closure(&self) -> Error {
        Error::autodiff(format!(
            "{}: the function uses a tensor of an enclosing transform that is none of its arguments; pass \
             it as an argument",
            self.rule.name()
        ))
    }

    /// Drops the hidden outputs unless they are wanted.
    fn shown(&self, plan: &ForwardFacts, mut outputs: Tensors) -> Tensors {
        if !self.hidden {
            outputs.truncate(plan.visible);
        }
        outputs
    }

    /// Reverse mode: runs the operation one level down and records a node.
    fn record(&self, at: &Arc<Interp>, inputs: &[&Tensor]) -> Result<Tensors> {
        let mut primals: SmallVec<[&Tensor; 4]> = SmallVec::new();
        let mut edges = Edges::new();
        for x in inputs {
            let (primal, edge) = match x.owned_by(at.tag).map(|t| &t.payload) {
                Some(Payload::Taped { primal, node, index }) => {
                    (primal, Some(Edge { node: node.node().clone(), index: *index }))
                }
                _ => (*x, None),
            };
            primals.push(primal);
            edges.push(edge);
        }
        let recording = at.records();
        let op: Op = self.with(self.rule.clone(), self.hidden || recording);
        let mark = anomaly::mark();
        let outputs = self.below(at, &op, &primals)?;
        if recording && self.rule.is_inlined() && transpose::is_running(at.tag) {
            return self.inlined(at, inputs);
        }
        if !recording {
            debug::not_recorded(&op, recording, inputs);
            return Ok(outputs);
        }
        let plan = self.rule.plan()?;
        if !outputs.iter().enumerate().any(|(i, y)| i < plan.visible && differentiable(&plan, i, y)) {
            debug::not_recorded(&op, recording, inputs);
            return Ok(self.shown(&plan, outputs));
        }
        let mut node = NewNode::new(at.tag, op);
        if let Some((op, kept_edges, saved, avals)) = node.parts() {
            *kept_edges = edges;
            avals.extend(outputs.iter().map(Tensor::aval));
            for &source in &plan.saved {
                let (slot, value) =
                    located(&plan, source, &primals, &outputs).ok_or_else(|| self.absent())?;
                saving::save(at.tag, op, slot, value.clone(), saved)?;
            }
            let unsaved = (0..primals.len()).filter(|&i| !plan.saved.contains(&RuleInput::Input(i)));
            let unsaved = unsaved.filter(|_| plan.traceable && outputs.len() != plan.visible);
            for i in unsaved {
                saving::save(at.tag, op, Slot::Input(i as u16), primals[i].clone(), saved)?;
                if let Some(kept) = saved.last_mut() {
                    kept.in_reserve = true;
                }
            }
        }
        let node = node.finished();
        debug::recorded(&node, mark);
        let wrap = |(i, primal): (usize, Tensor)| {
            if !differentiable(&plan, i, &primal) {
                return primal;
            }
            primal.on_tape(at.tag, Handle::new(node.clone()), i as u32)
        };
        Ok(self.shown(&plan, outputs).into_iter().enumerate().map(wrap).collect())
    }

    /// Records the operations of the function one by one instead of the function. While a forward rule is
    /// being transposed, a function whose reverse rule is the transpose of its forward rule is part of a
    /// linear map, which is transposed operation by operation. Transposing the rule there would not terminate
    /// if a rule applies its function to the tangent.
    #[cold]
    fn inlined(&self, at: &Arc<Interp>, inputs: &[&Tensor]) -> Result<Tensors> {
        let plan = self.rule.plan()?;
        let x: Vec<Tensor> = inputs.iter().map(|&x| x.clone()).collect();
        let _guard = interp::enter(at.clone());
        let outputs = self.retrace(&x)?.into_iter().enumerate();
        let outputs = outputs.map(|(i, y)| {
            if differentiable(&plan, i, &y) { y } else { transform::unwrap_to_level(&y, at.below()) }
        });
        Ok(self.shown(&plan, outputs.collect()))
    }

    #[cold]
    fn absent(&self) -> Error {
        Error::autodiff(format!(
            "internal: {} asks for a value that its forward did not give",
            self.rule.name()
        ))
    }

    /// Batching: by the user's rule, or as a custom operation of the whole batch one level down.
    fn batch_at(&self, at: &Arc<Interp>, inputs: &[&Tensor]) -> Result<Tensors> {
        let operands: SmallVec<[Batched; 4]> = inputs.iter().map(|x| interp::batch::batched(at, x)).collect();
        let region = self.region();
        if let Some(outputs) = self.rule.batch(at, &operands, self.hidden) {
            return Ok(outputs?.into_iter().map(|(y, axis)| interp::batch::wrap(at, y, axis)).collect());
        }
        drop(region);
        let rule = Arc::new(batch::Batched::new(
            self.rule.clone(),
            at.clone(),
            operands.iter().map(|x| x.axis).collect(),
        ));
        let values: SmallVec<[&Tensor; 4]> = operands.iter().map(|x| &x.value).collect();
        let _guard = interp::enter(at.below().clone());
        let outputs = bind_at(at.below(), &self.with(rule.clone(), self.hidden), &values)?;
        let axes = rule.out_axes()?;
        Ok(outputs.into_iter().zip(axes).map(|(y, axis)| interp::batch::wrap(at, y, *axis)).collect())
    }

    /// The number of outputs, hidden ones not counted; known after the forward.
    pub fn visible(&self) -> Option<usize> {
        self.rule.plan().ok().map(|plan| plan.visible)
    }

    /// Whether output `i` shares memory with an argument or another output and so must not be written.
    pub fn shares(&self, i: u32) -> bool {
        self.rule.plan().is_ok_and(|plan| plan.shared.get(i as usize) == Some(&true))
    }

    /// Whether there are cotangents for hidden outputs, whose derivative needs all inputs.
    pub fn wants_reserve(&self, g: &[Option<Tensor>]) -> bool {
        g.iter().skip(self.visible().unwrap_or(0)).any(Option::is_some)
    }

    /// Whether the node keeps what it saved, for other cotangents than these.
    pub fn keeps_saved(&self, g: &[Option<Tensor>]) -> bool {
        self.rule.keeps_saved(g)
    }

    /// Whether the gradient of input `i`, which the rule left out, is zero everywhere.
    pub fn is_zero(&self, i: usize, given: &[bool]) -> bool {
        self.rule.is_zero(i, given)
    }

    /// Computes the inputs' cotangents from those of the hidden outputs by tracing the forward again.
    fn traced_vjp(&self, plan: &ForwardFacts, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let x = (0..c.inputs()).map(|i| c.input(i).cloned()).collect::<Result<Vec<Tensor>>>()?;
        let wanted: Vec<usize> = (0..x.len()).filter(|&i| needed(c, i)).collect();
        let leaves: Vec<Tensor> = wanted.iter().map(|&i| x[i].clone()).collect();
        let again = |leaves: &[Tensor]| {
            let mut x = x.clone();
            for (&i, leaf) in wanted.iter().zip(leaves) {
                x[i] = leaf.clone();
            }
            Ok(self.retrace(&x)?.into_iter().skip(plan.visible).collect())
        };
        let (_, pullback) = transform::vjp(again, &leaves)?;
        let mut out: Grads = (0..x.len()).map(|_| None).collect();
        for (i, g) in wanted.into_iter().zip(pullback.call(g, false)?) {
            out[i] = Some(g);
        }
        Ok(out)
    }

    /// The values that the rules need.
    fn kept(&self, plan: &ForwardFacts, x: &[&Tensor], y: &[Tensor]) -> Result<Vec<Tensor>> {
        let value = |&source| located(plan, source, x, y).map(|(_, value)| value.clone());
        plan.saved.iter().map(|source| value(source).ok_or_else(|| self.absent())).collect()
    }

    /// Computes the inputs' cotangents from those of all outputs.
    fn pull(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let plan = self.rule.plan()?;
        let (seen, hidden) = g.split_at(plan.visible.min(g.len()));
        let mut out: Grads = (0..c.inputs()).map(|_| None).collect();
        if seen.iter().any(Option::is_some) {
            let mut saved = Vec::new();
            for &source in &plan.saved {
                saved.push(match source {
                    RuleInput::Input(i) => c.input(i)?.clone(),
                    RuleInput::Output(i) => c.output(i)?.clone(),
                    RuleInput::Hidden(i) => c.output(plan.visible + i)?.clone(),
                });
            }
            let needs: Vec<bool> = (0..c.inputs()).map(|i| needed(c, i)).collect();
            out = self.rule.vjp(&saved, seen, &needs)?;
        }
        if hidden.iter().any(Option::is_some) {
            let parts = self.traced_vjp(&plan, c, hidden)?.into_iter().zip(&c.node.edges);
            for (total, (part, edge)) in out.iter_mut().zip(parts) {
                *total = match (total.take(), part) {
                    // A rule may leave sums over broadcast axes undone: do them before adding.
                    (Some(a), Some(b)) => Some(match edge {
                        Some(edge) => accumulate::fitted(a, edge.aval())?.add(&b)?,
                        None => a.add(&b)?,
                    }),
                    (a, b) => a.or(b),
                };
            }
        }
        Ok(out)
    }
}

/// Whether output `i` carries derivatives.
fn differentiable(plan: &ForwardFacts, i: usize, y: &Tensor) -> bool {
    let constant = if i < plan.visible { plan.constant.get(i) == Some(&true) } else { !plan.traceable };
    y.dtype().is_differentiable() && !constant
}

fn needed(c: &Vjp, i: usize) -> bool {
    c.needs(i) && matches!(c.node.edges.get(i), Some(Some(_)))
}

/// The value that `source` names, and its slot in a node.
fn located<'a>(
    plan: &ForwardFacts, source: RuleInput, primals: &[&'a Tensor], outputs: &'a [Tensor],
) -> Option<(Slot, &'a Tensor)> {
    let output = |i: usize| Some((Slot::Output(i as u16), outputs.get(i)?));
    match source {
        RuleInput::Input(i) => Some((Slot::Input(i as u16), *primals.get(i)?)),
        RuleInput::Output(i) => output(i),
        RuleInput::Hidden(i) => output(plan.visible + i),
    }
}

kernel! {
    Custom, self.rule.name(), |self, x| -> Arrays {
        let x: Vec<Tensor> = x.iter().map(|&a| Tensor::Array(a.clone())).collect();
        let outputs = self.run(&x.iter().collect::<Vec<_>>())?;
        outputs.iter().map(|y| y.array(self.rule.name()).cloned()).collect()
    },
    /// None: the operations that its rules run are counted.
    flops |_x, _y| 0
}

impl General for Custom {
    const VJP: &'static str = "as the user says; else the transpose of the forward rule";
    const JVP: &'static str = "as the user says; else the transpose of the reverse rule";

    /// `record` does the saving.
    fn saves(&self, _needs: Needs, _inputs: usize) -> Saves {
        Saves::NONE
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        if c.recorded {
            return self.pull(c, g);
        }
        // A value that the rule closes over could be recorded on the tape being walked. If there is no other
        // tape, recording is off; otherwise the walk strips the node from the result.
        let alone = interp::is_plain() && interp::current().tag == c.node.tag;
        if alone { interp::no_grad(|| self.pull(c, g)) } else { self.pull(c, g) }
    }
    fn jvp(&self, x: &[&Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let plan = self.rule.plan()?;
        let saved = self.kept(&plan, x, y)?;
        let x: Vec<Tensor> = x.iter().map(|&x| x.clone()).collect();
        self.rule.jvp(&x, &saved, t)
    }
    /// `batch_at` does the batching.
    fn batch(&self, _x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
        Err(Error::unsupported(format!("internal: {} is batched where its call is", self.rule.name())))
    }
}
