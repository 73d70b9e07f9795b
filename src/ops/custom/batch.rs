//! Batched custom operations: each rule runs the rule of one example under the batching interpreter.

use super::differentiable;
use super::rule::{CustomRule, ForwardFacts, RuleInput};
use crate::autodiff::accumulate::fitted;
use crate::autodiff::transform::unwrap_to_level;
use crate::error::{Error, Result};
use crate::interp::{self, Interp, Kind, batch};
use crate::op::Grads;
use crate::tape::host_ref::{HeldPart, Holder};
use crate::tensor::{Aval, Tensor, Tensors};
use std::sync::{Arc, OnceLock};

/// The rule of a whole batch.
pub struct Batched {
    one: Arc<dyn CustomRule>,
    level: Arc<Interp>,
    in_axes: Vec<Option<usize>>,
    first_run: OnceLock<FirstRun>,
}

/// What the first run of the forward determines.
struct FirstRun {
    /// The inputs' abstract values, for one example.
    inputs: Vec<Aval>,
    /// The batch axis of each output, hidden ones included.
    out_axes: Vec<Option<usize>>,
}

impl Batched {
    /// Batches the rule `one` at the interpreter `level`; `in_axes` are the batch axes of its inputs.
    pub fn new(one: Arc<dyn CustomRule>, level: Arc<Interp>, in_axes: Vec<Option<usize>>) -> Batched {
        Batched { one, level, in_axes, first_run: OnceLock::new() }
    }

    fn first_run(&self) -> Result<&FirstRun> {
        self.first_run.get().ok_or_else(|| {
            Error::autodiff(format!("internal: the batched {} was asked before it ran", self.name()))
        })
    }

    /// The batch axis of each output, hidden ones included; an error before the forward ran.
    pub fn out_axes(&self) -> Result<&[Option<usize>]> {
        Ok(&self.first_run()?.out_axes)
    }

    fn size(&self) -> usize {
        if let Kind::Batch { size, .. } = self.level.kind { size } else { 0 }
    }

    fn within<T>(&self, f: impl FnOnce(&Arc<Interp>) -> Result<T>) -> Result<T> {
        let (level, _guard) = interp::reenter(&self.level);
        f(&level)
    }

    /// Returns a result's value below the batching interpreter, batch axis in front, and whether it has one.
    fn unwrap(&self, level: &Arc<Interp>, y: &Tensor) -> Result<(Tensor, bool)> {
        let (value, axis) = batch::unwrap(level, &unwrap_to_level(y, level))?;
        Ok(match axis {
            Some(axis) if axis > 0 => (value.move_axis(axis, 0)?, true),
            axis => (value, axis.is_some()),
        })
    }

    fn repeated(&self, value: &Tensor) -> Result<Tensor> {
        value.expand(&value.shape().inserted(0, self.size())?)
    }

    /// [`Batched::unwrap`] with the batch axis moved to a known position.
    fn with_batch_axis(&self, level: &Arc<Interp>, y: &Tensor, axis: Option<usize>) -> Result<Tensor> {
        match (self.unwrap(level, y)?, axis) {
            ((value, true), Some(axis)) => value.move_axis(0, axis),
            ((value, false), Some(axis)) => self.repeated(&value)?.move_axis(0, axis),
            ((value, false), None) => Ok(value),
            ((_, true), None) => Err(Error::autodiff(format!(
                "{}: a value that was the same for the whole batch now differs between its elements; the \
                 function must do the same each time it runs",
                self.name()
            ))),
        }
    }

    fn placed_outputs(&self, level: &Arc<Interp>, outputs: &[Tensor]) -> Result<Tensors> {
        outputs.iter().zip(self.out_axes()?).map(|(y, &axis)| self.with_batch_axis(level, y, axis)).collect()
    }

    fn operands(level: &Interp, values: &[Tensor], axes: &[Option<usize>]) -> Vec<Tensor> {
        values.iter().zip(axes).map(|(x, &axis)| batch::wrap(level, x.clone(), axis)).collect()
    }

    fn options(level: &Interp, values: &[Option<Tensor>], axes: &[Option<usize>]) -> Vec<Option<Tensor>> {
        let operand =
            |(x, &axis): (&Option<Tensor>, &Option<usize>)| Some(batch::wrap(level, x.clone()?, axis));
        values.iter().zip(axes).map(operand).collect()
    }

    /// The batch axes of the values that the rules need.
    fn saved_axes(&self, plan: &ForwardFacts) -> Result<Vec<Option<usize>>> {
        let outputs = self.out_axes()?;
        let axis = |source: &RuleInput| match *source {
            RuleInput::Input(i) => self.in_axes.get(i).copied().flatten(),
            RuleInput::Output(i) => outputs.get(i).copied().flatten(),
            RuleInput::Hidden(i) => outputs.get(plan.visible + i).copied().flatten(),
        };
        Ok(plan.saved.iter().map(axis).collect())
    }

    /// The cotangent of an input; for one that all examples share, the sum over the batch. Sums over
    /// broadcast axes that a rule leaves undone are done per example, whose shape determines the axes.
    fn cotangent(&self, level: &Arc<Interp>, g: Tensor, aval: &Aval, axis: Option<usize>) -> Result<Tensor> {
        let g = fitted(g, aval)?;
        if axis.is_some() {
            return self.with_batch_axis(level, &g, axis);
        }
        match self.unwrap(level, &g)? {
            (g, true) => g.sum(Some(&[0]), false),
            // It is the same for each example.
            (g, false) => g.mul(self.size() as f64),
        }
    }
}

impl Holder for Batched {
    fn parts(&self, see: &mut dyn FnMut(HeldPart<'_>)) {
        see(HeldPart::Shared(self.one.clone()));
    }
}

impl CustomRule for Batched {
    fn name(&self) -> &'static str {
        self.one.name()
    }

    fn plan(&self) -> Result<Arc<ForwardFacts>> {
        self.one.plan()
    }

    fn runs_user_code(&self) -> bool {
        self.one.runs_user_code()
    }

    fn forward(&self, x: &[Tensor], hidden: bool) -> Result<Tensors> {
        self.within(|level| {
            let operands = Self::operands(level, x, &self.in_axes);
            let outputs = self.one.forward(&operands, hidden)?;
            let plan = self.plan()?;
            let mut values = Tensors::new();
            let mut out_axes = Vec::new();
            for (i, y) in outputs.iter().enumerate() {
                let (mut value, mut batched) = self.unwrap(level, y)?;
                // The rules' results for an output may differ between examples even if its value does not.
                if !batched && i < plan.visible && differentiable(&plan, i, y) {
                    (value, batched) = (self.repeated(&value)?, true);
                }
                values.push(value);
                out_axes.push(batched.then_some(0));
            }
            let inputs = operands.iter().map(Tensor::aval).collect();
            self.first_run.get_or_init(|| FirstRun { inputs, out_axes });
            Ok(values)
        })
    }

    fn retrace(&self, x: &[Tensor]) -> Result<Tensors> {
        self.within(|level| {
            let outputs = self.one.retrace(&Self::operands(level, x, &self.in_axes))?;
            self.placed_outputs(level, &outputs)
        })
    }

    fn vjp(&self, saved: &[Tensor], g: &[Option<Tensor>], needs: &[bool]) -> Result<Grads> {
        let plan = self.plan()?;
        let axes = self.saved_axes(&plan)?;
        let FirstRun { inputs, out_axes } = self.first_run()?;
        self.within(|level| {
            let saved = Self::operands(level, saved, &axes);
            let grads = self.one.vjp(&saved, &Self::options(level, g, out_axes), needs)?;
            let fit = |((g, aval), &axis): ((Option<Tensor>, &Aval), &Option<usize>)| {
                g.map(|g| self.cotangent(level, g, aval, axis)).transpose()
            };
            grads.into_iter().zip(inputs).zip(&self.in_axes).map(fit).collect()
        })
    }

    fn jvp(&self, x: &[Tensor], saved: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        Ok(self.push(x, saved, t)?.1)
    }

    fn push(&self, x: &[Tensor], saved: &[Tensor], t: &[Option<Tensor>]) -> Result<(Option<Tensors>, Grads)> {
        let axes = self.saved_axes(&*self.plan()?)?;
        let outputs = self.out_axes()?;
        self.within(|level| {
            let (x, saved) = (Self::operands(level, x, &self.in_axes), Self::operands(level, saved, &axes));
            let (values, moved) = self.one.push(&x, &saved, &Self::options(level, t, &self.in_axes))?;
            let values = values.map(|values| self.placed_outputs(level, &values)).transpose()?;
            let fit = |(t, &axis): (Option<Tensor>, &Option<usize>)| {
                t.map(|t| self.with_batch_axis(level, &t, axis)).transpose()
            };
            Ok((values, moved.into_iter().zip(outputs).map(fit).collect::<Result<_>>()?))
        })
    }

    fn is_inlined(&self) -> bool {
        self.one.is_inlined()
    }
}
