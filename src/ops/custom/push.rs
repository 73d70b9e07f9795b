//! Custom functions in forward mode.

use super::{Custom, differentiable};
use crate::autodiff::transform;
use crate::interp::{self, Interp, dual};
use crate::op::Op;
use crate::ops::prelude::*;
use crate::watch::anomaly;
use crate::watch::debug::{self, Modes};
use std::sync::Arc;

impl Custom {
    /// Forward mode: runs the operation on the primals and its JVP on the tangents.
    pub(super) fn push(&self, at: &Arc<Interp>, inputs: &[&Tensor]) -> Result<Tensors> {
        let mut primals: SmallVec<[&Tensor; 4]> = SmallVec::new();
        let mut tangents: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
        for x in inputs {
            let (primal, tangent) = dual::split(at, x);
            primals.push(primal);
            tangents.push(tangent.cloned());
        }
        let call = interp::current();
        let _guard = interp::enter(at.below().clone());
        let op: Op = self.with(self.rule.clone(), true);
        let mut outputs = self.below(at, &op, &primals)?;
        let plan = self.rule.plan()?;
        let x: Vec<Tensor> = primals.iter().map(|&x| x.clone()).collect();
        let saved = self.kept(&plan, &primals, &outputs)?;
        let quiet = debug::suspend(Modes::VALUES);
        let (values, mut moved) = self.own_push(&call, at, &x, &saved, &tangents)?;
        for (y, value) in outputs.iter_mut().zip(values.into_iter().flatten()) {
            *y = value;
        }
        moved.resize(plan.visible, None);
        let hidden = outputs.len() - plan.visible;
        if self.hidden && plan.traceable && hidden > 0 {
            let traced = |x: &[Tensor]| Ok(self.retrace(x)?.into_iter().skip(plan.visible).collect());
            moved.extend(transform::jvp(traced, &x, &tangents)?.1.into_iter().map(Some));
        } else {
            moved.resize(outputs.len(), None);
        }
        drop(quiet);
        if debug::modes().has(Modes::ANOMALY) {
            anomaly::pushed(&op, &primals, &tangents, &moved)?;
        }
        let wrap = |((i, y), t): ((usize, Tensor), Option<Tensor>)| {
            let t = if differentiable(&plan, i, &y) { t } else { None };
            interp::dual::wrap(at, y, t)
        };
        Ok(self.shown(&plan, outputs).into_iter().enumerate().zip(moved).map(wrap).collect())
    }

    /// Runs the user's forward rule. This level and those above it are in force, so the rule may use tensors
    /// of the function being differentiated; they are constants to it.
    fn own_push(
        &self, call: &Arc<Interp>, at: &Arc<Interp>, x: &[Tensor], saved: &[Tensor], t: &[Option<Tensor>],
    ) -> Result<(Option<Tensors>, Grads)> {
        let (values, moved) = {
            let chain = if call.contains(at.tag) { call } else { at };
            let _guard = interp::enter(chain.clone());
            // The rule runs in the autocast region of the call, as the forward did.
            let _region = self.region();
            let context = |e: Error| e.context(&format!("jvp of {}", self.rule.name()));
            self.rule.push(x, saved, t).map_err(context)?
        };
        let below = |t: Tensor| transform::unwrap_to_level(&t, at.below());
        let values = values.map(|values| values.into_iter().map(below).collect());
        Ok((values, moved.into_iter().map(|t| t.map(below)).collect()))
    }
}
