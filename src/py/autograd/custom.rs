//! Custom operations whose rules are Python functions: the core of `autograd.Function`, `custom_vjp` and
//! `custom_jvp`. The Python side is in `python/wengert/autograd/function.py` and `python/wengert/custom.py`.

use crate::array::random;
use crate::autodiff::transform;
use crate::interp::{Interp, batch};
use crate::op::{Batched, BatchedOutputs, Grads};
use crate::ops::custom::{self, CustomRule, ForwardFacts, RuleInput};
use crate::process::names::interned;
use crate::py::args::{collected, extracted};
use crate::py::prelude::*;
use crate::py::writes::aliasing;
use crate::tape::host_ref::{HeldPart, Holder, HostRef};
use crate::tensor::{Aval, Payload, Tensors};
use pyo3::exceptions::{PyException, PyNotImplementedError, PyRuntimeError};
use std::sync::OnceLock;

/// Where a derivative rule comes from.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// The user's own rule.
    Own,
    /// The transpose of the rule for the other direction.
    Transpose,
    /// The forward, traced.
    Trace,
}

extracted!(Form, |obj| match obj.extract::<&str>()? {
    "own" => Ok(Form::Own),
    "transpose" => Ok(Form::Transpose),
    "trace" => Ok(Form::Trace),
    name => Err(PyRuntimeError::new_err(format!("internal: no form of rule is named {name}"))),
});

/// One call of a custom function. `rule` is the Python object with the functions to run: `Rule` of
/// `python/wengert/autograd/_rules.py`.
struct PyRule {
    name: &'static str,
    rule: Arc<Py<PyAny>>,
    /// `rule` again, as the garbage collector sees it.
    held: HostRef,
    reverse: Form,
    forward: Form,
    /// Whether a captured tensor (by closure) that is differentiated is an error rather than a constant.
    strict: bool,
    /// Whether there is a batching rule.
    batches: bool,
    /// Whether the call is inside an autocast region.
    casts: bool,
    first_run: OnceLock<FirstRun>,
}

/// Facts known once the forward has run.
struct FirstRun {
    plan: Arc<ForwardFacts>,
    inputs: Vec<Aval>,
    outputs: Vec<Aval>,
    /// The random state at the start of the forward, so that tracing draws the same numbers.
    random: random::State,
}

/// Converts `(visible, [(kind, index)], [constant], traceable, [dirty])` of the Python side into a plan and
/// the list of dirty inputs among the outputs.
fn plan_of(found: &Bound<'_, PyAny>) -> PyResult<(ForwardFacts, Vec<usize>)> {
    type Found = (usize, Vec<(u8, usize)>, Vec<bool>, bool, Vec<usize>);
    let (visible, saved, constant, traceable, dirty): Found = found.extract()?;
    let source = |(kind, i)| match kind {
        0 => RuleInput::Input(i),
        1 => RuleInput::Output(i),
        _ => RuleInput::Hidden(i),
    };
    let saved = saved.into_iter().map(source).collect();
    Ok((ForwardFacts { visible, saved, constant, traceable, shared: Vec::new() }, dirty))
}

/// Whether a tape or forward mode, at any level, differentiates the value.
fn differentiated(t: &Tensor) -> bool {
    let mut at = t;
    while let Some(traced) = at.traced() {
        match &traced.payload {
            Payload::Batched { value, .. } => at = value,
            _ => return true,
        }
    }
    false
}

impl PyRule {
    fn note_first_run(
        &self, found: (ForwardFacts, Vec<usize>), x: &[Tensor], y: &[Tensor], random: random::State,
    ) {
        let (mut plan, dirty) = found;
        let avals = |x: &[Tensor]| x.iter().map(Tensor::aval).collect();
        let outputs = &y[..plan.visible.min(y.len())];
        plan.shared = aliasing::shared(x, outputs, &dirty);
        let (inputs, outputs) = (avals(x), avals(outputs));
        let _ = self.first_run.set(FirstRun { plan: Arc::new(plan), inputs, outputs, random });
    }

    fn first_run(&self) -> Result<&FirstRun> {
        self.first_run.get().ok_or_else(|| {
            Error::autodiff(format!("internal: {} was asked for its plan before it ran", self.name))
        })
    }

    /// Detaches the outputs: captured tensors are constants.
    fn constants(&self, outputs: Tensors) -> Result<Tensors> {
        if self.strict && outputs.iter().any(differentiated) {
            return Err(Error::autodiff(format!(
                "{}: the function closes over a tensor that is being differentiated, and the custom rules \
                 would miss its gradient; make it an argument, or detach() it",
                self.name
            )));
        }
        Ok(outputs.iter().map(Tensor::detach).collect())
    }

    fn own_vjp(&self, saved: &[Tensor], g: &[Option<Tensor>], needs: &[bool]) -> Result<Grads> {
        let _depth = aliasing::deeper(self.name)?;
        let watch = aliasing::Watch::begin(g);
        let found: Grads = attached(|py| {
            let arguments = (saved, g, PyTuple::new(py, needs)?);
            collected(&self.rule.bind(py).getattr("vjp")?.run(arguments, None)?)
        })?;
        watch.end(self.name)?;
        found.into_iter().map(|g| g.map(|g| aliasing::apart(g, saved)).transpose()).collect()
    }

    /// Returns the tangents of the outputs, and the outputs themselves if the rule computes them.
    fn own_jvp(
        &self, x: &[Tensor], saved: &[Tensor], t: &[Option<Tensor>],
    ) -> Result<(Option<Tensors>, Grads)> {
        let _depth = aliasing::deeper(self.name)?;
        let (values, mut moved): (Option<Tensors>, Grads) = attached(|py| {
            let found = self.rule.bind(py).getattr("jvp")?.run((x, saved, t), None)?;
            let (values, moved): (Option<Bound<'_, PyAny>>, Bound<'_, PyAny>) = found.extract()?;
            Ok((values.map(|values| collected(&values)).transpose()?, collected(&moved)?))
        })?;
        let outputs = &self.first_run()?.outputs;
        let values = values.map(|values| {
            let each = values.into_iter().zip(outputs).enumerate();
            each.map(|(i, (y, like))| self.like(y, like, "output", i)).collect::<Result<Tensors>>()
        });
        for (i, (t, like)) in moved.iter_mut().zip(outputs).enumerate() {
            if like.dtype.is_differentiable() {
                *t = t.take().map(|t| self.like(t, like, "tangent of output", i)).transpose()?;
            }
        }
        Ok((values.transpose()?, moved))
    }

    /// Checks that a result of the forward rule has the shape and dtype `like`. Inside an autocast region,
    /// which does not extend into rules, the dtype is converted.
    fn like(&self, t: Tensor, like: &Aval, what: &str, i: usize) -> Result<Tensor> {
        if t.dtype() == like.dtype && t.has_shape(&like.shape) {
            return Ok(t);
        }
        if self.casts && t.has_shape(&like.shape) {
            return t.cast(like.dtype);
        }
        Err(Error::autodiff(format!(
            "{}: the forward rule returned {}{} as {what} {i}, expected {}{} as the function returns",
            self.name,
            t.dtype(),
            t.shape(),
            like.dtype,
            like.shape
        )))
    }

    /// Computes the JVP as the transpose of the VJP.
    fn transposed_vjp(&self, saved: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let FirstRun { plan, outputs, .. } = self.first_run()?;
        let needs: Vec<bool> = t.iter().map(Option::is_some).collect();
        let moves = |(i, y): (usize, &Aval)| {
            (y.dtype.is_differentiable() && plan.constant.get(i) != Some(&true)).then_some(*y)
        };
        let domain: Vec<Option<Aval>> = outputs.iter().enumerate().map(moves).collect();
        custom::transpose(|g| self.own_vjp(saved, g, &needs), &domain, t)
    }

    /// Computes the VJP as the transpose of the JVP.
    fn transposed_jvp(&self, saved: &[Tensor], g: &[Option<Tensor>], needs: &[bool]) -> Result<Grads> {
        let inputs = &self.first_run()?.inputs;
        let domain: Vec<Option<Aval>> = inputs.iter().zip(needs).map(|(x, &n)| n.then_some(*x)).collect();
        custom::transpose(|t| Ok(self.own_jvp(saved, saved, t)?.1), &domain, g)
    }

    /// Computes the JVP by pushing the tangents through the forward.
    fn traced_jvp(&self, x: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let visible = self.first_run()?.plan.visible;
        let forward = |x: &[Tensor]| Ok(self.retrace(x)?.into_iter().take(visible).collect());
        Ok(transform::jvp(forward, x, t)?.1.into_iter().map(Some).collect())
    }

    /// Converts a failure to derive a rule into an error naming the missing rule; interrupts pass through.
    fn missing(&self, failure: Error, attribute: &str) -> Error {
        let raised: PyErr = failure.clone().into();
        Python::attach(|py| {
            if !raised.is_instance_of::<PyException>(py) {
                return failure;
            }
            let advice = self.rule.bind(py).call_method1("advice", (attribute, raised.value(py)));
            let explained = advice.and_then(|text| text.extract::<String>()).map(|text| {
                let error = PyNotImplementedError::new_err(text);
                error.set_cause(py, Some(raised));
                error
            });
            foreign(explained.unwrap_or_else(|error| error))
        })
    }

    /// Computes the outputs and their batch axes by the user's batching rule.
    fn batched(&self, at: &Arc<Interp>, x: &[Batched], hidden: bool) -> PyResult<BatchedOutputs> {
        Python::attach(|py| {
            let (size, randomness) = match at.kind {
                interp::Kind::Batch { size, randomness } => (size, randomness.name()),
                _ => (0, ""),
            };
            let values: Vec<Tensor> = x.iter().map(|operand| operand.value.clone()).collect();
            let axes: Vec<Option<usize>> = x.iter().map(|operand| operand.axis).collect();
            let rule = self.rule.bind(py);
            let random = random::state();
            let found = {
                let region = interp::autocast_of(&interp::current());
                let _guard = interp::enter(at.below().clone());
                let _region = region.map(interp::enter_autocast);
                rule.getattr("batch")?.run((values, axes, size, randomness), None)?
            };
            let (outputs, axes): (Bound<'_, PyAny>, Vec<Option<usize>>) = found.extract()?;
            let mut out: BatchedOutputs = collected::<_, Tensors>(&outputs)?.into_iter().zip(axes).collect();
            if !hidden {
                return Ok(out);
            }
            // An outer level needs what the rules save: `describe` computes it for one example.
            let operands: Vec<Tensor> =
                x.iter().map(|operand| batch::wrap(at, operand.value.clone(), operand.axis)).collect();
            let ys: Vec<Tensor> = out.iter().map(|(y, axis)| batch::wrap(at, y.clone(), *axis)).collect();
            let found = rule.getattr("describe")?.run((&operands, &ys), None)?;
            let (extra, plan): (Bound<'_, PyAny>, Bound<'_, PyAny>) = found.extract()?;
            self.note_first_run(plan_of(&plan)?, &operands, &ys, random);
            for y in collected::<Tensor, Tensors>(&extra)? {
                out.push(batch::unwrap(at, &transform::unwrap_to_level(&y, at))?);
            }
            Ok(out)
        })
    }
}

impl Holder for PyRule {
    fn parts(&self, see: &mut dyn FnMut(HeldPart<'_>)) {
        see(HeldPart::Host(&self.held));
    }
}

impl CustomRule for PyRule {
    fn name(&self) -> &'static str {
        self.name
    }

    fn plan(&self) -> Result<Arc<ForwardFacts>> {
        Ok(self.first_run()?.plan.clone())
    }

    fn runs_user_code(&self) -> bool {
        true
    }

    fn forward(&self, x: &[Tensor], hidden: bool) -> Result<Tensors> {
        let random = random::state();
        let run = || {
            attached(|py| {
                let found = self.rule.bind(py).getattr("run")?.run((x, hidden), None)?;
                let (outputs, plan): (Bound<'_, PyAny>, Bound<'_, PyAny>) = found.extract()?;
                Ok((collected(&outputs)?, plan_of(&plan)?))
            })
        };
        let (outputs, plan) = if self.strict { run() } else { interp::no_grad(run) }?;
        let outputs = self.constants(outputs)?;
        self.note_first_run(plan, x, &outputs, random);
        Ok(outputs)
    }

    fn retrace(&self, x: &[Tensor]) -> Result<Tensors> {
        let _depth = aliasing::deeper(self.name)?;
        let _random = random::replay(self.first_run()?.random);
        attached(|py| collected(&self.rule.bind(py).getattr("retrace")?.run((x,), None)?))
    }

    fn vjp(&self, saved: &[Tensor], g: &[Option<Tensor>], needs: &[bool]) -> Result<Grads> {
        match self.reverse {
            Form::Transpose => self.transposed_jvp(saved, g, needs).map_err(|e| self.missing(e, "backward")),
            _ => self.own_vjp(saved, g, needs),
        }
    }

    fn jvp(&self, x: &[Tensor], saved: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        Ok(self.push(x, saved, t)?.1)
    }

    fn push(&self, x: &[Tensor], saved: &[Tensor], t: &[Option<Tensor>]) -> Result<(Option<Tensors>, Grads)> {
        let derived = match self.forward {
            Form::Own => return self.own_jvp(x, saved, t),
            Form::Transpose => self.transposed_vjp(saved, t),
            Form::Trace => self.traced_jvp(x, t),
        };
        Ok((None, derived.map_err(|e| self.missing(e, "jvp"))?))
    }

    fn is_inlined(&self) -> bool {
        self.reverse == Form::Transpose
    }

    fn batch(&self, at: &Arc<Interp>, x: &[Batched], hidden: bool) -> Option<Result<BatchedOutputs>> {
        self.batches.then(|| self.batched(at, x, hidden).map_err(foreign))
    }
}

/// Calls a function with custom rules: `rule` holds them, `forms` says where both modes' come from.
#[pyfunction]
fn _custom(
    rule: Bound<'_, PyAny>, name: &str, inputs: Vec<Tensor>, forms: (Form, Form), strict: bool, batches: bool,
) -> Result<Vec<PyTensor>> {
    let rule = Arc::new(rule.unbind());
    let rule: Arc<dyn CustomRule> = Arc::new(PyRule {
        name: interned(name),
        held: HostRef::new(rule.clone()),
        rule,
        reverse: forms.0,
        forward: forms.1,
        strict,
        batches,
        casts: interp::autocasting(),
        first_run: OnceLock::new(),
    });
    let outputs = custom::call(rule.clone(), &inputs)?;
    // Outputs that are memory need no mark, as the tape knows what must not be written; other levels do not.
    let is_shared = |i: usize| rule.plan().is_ok_and(|plan| plan.shared.get(i) == Some(&true));
    let object = |(i, t): (usize, Tensor)| match t.concrete() {
        None if is_shared(i) => PyTensor::returned(t, rule.name()),
        _ => t.into(),
    };
    Ok(outputs.into_iter().enumerate().map(object).collect())
}

exports! { functions: _custom }
