//! Programs whose results have a history: one node of the tape, whose reverse rule is a program, too.
//!
//! The first call writes down the function and then the backward of its results, from all that have a history
//! and from each alone. A gradient is kept apart for every edge to a tensor of outside, so that sums which
//! other uses of that tensor join have their order. Where a backward is recorded itself, or has other
//! cotangents than these, the function runs again as Python.
//! Read next: `src/py/autograd/recorded/walks.rs`, how the backward is written down.

mod walks;

use crate::array::random;
use crate::interp::tape;
use crate::op::Grads;
use crate::ops::custom::{self, CustomRule, ForwardFacts, RuleInput};
use crate::process::names::interned;
use crate::process::sync::lock;
use crate::py::prelude::*;
use crate::tape::host_ref::{HeldPart, Holder, HostRef};
use crate::tensor::Tensors;
use crate::watch::debug::{Modes, modes};
use crate::watch::program::{Outcome, Recorded};
use crate::watch::script::{self, Along};
use pyo3::exceptions::PyRuntimeError;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Mutex;

/// What a node of such a program needs.
pub struct History {
    name: &'static str,
    facts: Arc<ForwardFacts>,
    found: Recorded,
    /// The tensors of outside that require gradients.
    state: Vec<Tensor>,
    /// How many arguments there are.
    arguments: usize,
}

/// One call of such a program.
struct Call {
    history: Arc<History>,
    outputs: Mutex<Option<Tensors>>,
    random: random::State,
    /// Computes gradients by the function itself.
    again: Arc<Py<PyAny>>,
    /// Whether the tape of a transform records it.
    inside: bool,
    held: HostRef,
}

impl History {
    /// Of the programs of the function `name`, whose outputs have these dtypes, of which some are `live`.
    pub fn new(name: &str, found: Recorded, live: &[bool], state: Vec<Tensor>, arguments: usize) -> History {
        let edges = found.targets.len();
        let extra = found.arguments.len() + found.outside.len();
        let kept = (0..found.kept).map(RuleInput::Hidden);
        let saved = kept.chain((edges..edges + extra).map(RuleInput::Input)).collect();
        let constant = live.iter().map(|live| !live).collect();
        let facts =
            ForwardFacts { visible: live.len(), saved, constant, traceable: false, shared: Vec::new() };
        History { name: interned(name), facts: Arc::new(facts), found, state, arguments }
    }

    /// Makes a node of what the forward made.
    pub fn record(
        self: &Arc<History>, outputs: Vec<Array>, arguments: &[Tensor], random: random::State,
        again: Py<PyAny>,
    ) -> Result<Tensors> {
        let again = Arc::new(again);
        let mut outputs: Tensors = outputs.into_iter().map(Tensor::Array).collect();
        let indices = outputs.drain(self.facts.visible + self.found.kept..);
        let selected = self.selected(arguments, indices)?;
        let call = Call {
            history: self.clone(),
            outputs: Mutex::new(Some(outputs)),
            random,
            held: HostRef::new(again.clone()),
            again,
            inside: !interp::is_plain(),
        };
        let mut inputs = Vec::with_capacity(self.found.targets.len() + self.found.arguments.len());
        inputs.extend(
            self.found.targets.iter().map(|&target| self.tensor(target, arguments, &selected).clone()),
        );
        inputs.extend(self.found.arguments.iter().map(|&k| arguments[k].detach()));
        inputs.extend(self.found.outside.iter().cloned().map(Tensor::Array));
        // Also where recording is off around the call: the function turned it on for these.
        let _recording = interp::recording(true);
        custom::call(Arc::new(call), &inputs)
    }

    /// The tensor with this number: an argument, one of outside, or what is `selected` of such.
    fn tensor<'a>(&'a self, number: usize, arguments: &'a [Tensor], selected: &'a [Tensor]) -> &'a Tensor {
        let state = self.arguments + self.state.len();
        match number {
            _ if number < self.arguments => &arguments[number],
            _ if number < state => &self.state[number - self.arguments],
            _ => &selected[number - state],
        }
    }

    /// Records what is selected of tensors of outside by these indices.
    fn selected(
        &self, arguments: &[Tensor], indices: impl Iterator<Item = Tensor>,
    ) -> Result<SmallVec<[Tensor; 1]>> {
        let mut selected = SmallVec::new();
        for (rows, index) in self.found.rows.iter().zip(indices) {
            let inputs = [self.tensor(rows.of, arguments, &selected), &index];
            let value = tape::unrun(rows.op.clone(), &inputs, rows.value.clone().into())?;
            selected.push(value);
        }
        Ok(selected)
    }
}

/// Whether a gradient has the bits of one whose elements lie one behind the other: views that repeat elements
/// are read in the same order.
fn lies_in_order(x: &Array) -> bool {
    let lengths: SmallVec<[usize; 8]> = x.shape().iter().collect();
    let mut expected = 1;
    lengths.iter().enumerate().rev().all(|(i, &length)| {
        let stride = x.stride(i);
        let fits = length <= 1 || stride == 0 || stride == expected;
        expected *= length as isize;
        fits || x.numel() == 0
    })
}

impl Call {
    /// The gradients by a program; `None` if there is none for such cotangents.
    fn pull(&self, saved: &[Tensor], g: &[Option<Tensor>]) -> Result<Option<Grads>> {
        let found = &self.history.found;
        let given: Vec<bool> = g.iter().map(Option::is_some).collect();
        let Some(pull) = found.pulls.iter().find(|pull| pull.given == given) else { return Ok(None) };
        // A transform that is around the call, or was, follows it.
        let is_followed = |t: &Tensor| self.inside && t.traced().is_some();
        let mut x = Vec::new();
        for t in &saved[..found.kept + found.arguments.len()] {
            match t.detach().concrete().filter(|_| !is_followed(t)) {
                Some(array) => x.push(array.clone()),
                None => return Ok(None),
            }
        }
        for g in g.iter().flatten() {
            match g.concrete().filter(|array| !is_followed(g) && lies_in_order(array)) {
                Some(_) => x.push(g.contiguous()?.array("backward")?.viewed(g.shape())?),
                None => return Ok(None),
            }
        }
        let Outcome::Done(outputs) = pull.program.run(&mut x, &mut |_| Ok(()))? else { return Ok(None) };
        let mut outputs = outputs.into_iter().map(Tensor::Array);
        let gradient = |along: &Along<()>| along.gradient().and_then(|()| outputs.next());
        Ok(Some(pull.along.iter().map(gradient).collect()))
    }

    /// The gradients by the function, run again as Python: all of a tensor along its first edge, and none by
    /// way of what is selected.
    fn pull_again(&self, g: &[Option<Tensor>], recorded: bool) -> Result<Grads> {
        let History { found: Recorded { targets, .. }, state, arguments, .. } = &*self.history;
        let mut numbers: Vec<usize> =
            targets.iter().copied().filter(|&i| i < arguments + state.len()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let _random = random::replay(self.random);
        let found: Vec<Option<Tensor>> = attached(|py| {
            let g = g.to_vec();
            self.again.bind(py).run((numbers.clone(), g, recorded), None)?.extract()
        })?;
        let mut gradients: FxHashMap<usize, Option<Tensor>> = numbers.into_iter().zip(found).collect();
        Ok(targets.iter().map(|target| gradients.remove(target).flatten()).collect())
    }
}

impl Holder for Call {
    fn parts(&self, see: &mut dyn FnMut(HeldPart<'_>)) {
        see(HeldPart::Host(&self.held));
    }
}

impl CustomRule for Call {
    fn name(&self) -> &'static str {
        self.history.name
    }
    fn plan(&self) -> Result<Arc<ForwardFacts>> {
        Ok(self.history.facts.clone())
    }
    fn forward(&self, _x: &[Tensor], _hidden: bool) -> Result<Tensors> {
        lock(&self.outputs).take().ok_or_else(|| self.internal())
    }
    fn retrace(&self, _x: &[Tensor]) -> Result<Tensors> {
        Err(self.internal())
    }
    fn vjp(&self, saved: &[Tensor], g: &[Option<Tensor>], _needs: &[bool]) -> Result<Grads> {
        let recorded = interp::is_grad_enabled();
        if (self.inside || !recorded && interp::is_plain())
            && modes() == Modes::NONE
            && let Some(found) = self.pull(saved, g)?
        {
            return Ok(found);
        }
        self.pull_again(g, recorded)
    }
    /// In eager mode each result has a history of its own: one without a cotangent may get one later.
    fn keeps_saved(&self, g: &[Option<Tensor>]) -> bool {
        g.iter().zip(&self.history.facts.constant).any(|(g, constant)| !constant && g.is_none())
    }
    fn is_zero(&self, i: usize, given: &[bool]) -> bool {
        let visible = given.get(..self.history.facts.visible);
        let pull = self.history.found.pulls.iter().find(|pull| Some(&pull.given[..]) == visible);
        pull.is_some_and(|pull| pull.along.get(i) == Some(&Along::Zero))
    }
    fn jvp(&self, _x: &[Tensor], _saved: &[Tensor], _t: &[Option<Tensor>]) -> Result<Grads> {
        Err(self.internal())
    }
}

impl Call {
    #[cold]
    fn internal(&self) -> Error {
        Error::value(format!("internal: {} is a program, whose forward has run", self.history.name))
    }
}

/// What of these tensors has a history that a backward could follow.
fn live(outputs: &[Tensor]) -> Vec<bool> {
    let is_live = |y: &Tensor| y.edge().is_some_and(|edge| !edge.node.is_freed());
    outputs.iter().map(is_live).collect()
}

/// Whether no result has a history, so that a program without a node will do.
pub fn is_without_history(outputs: &[Tensor]) -> bool {
    !live(outputs).contains(&true)
}

/// Writes down the backward of results that have a history, behind the function; see `_stage_begin`.
#[pyfunction]
fn _stage_pull(arguments: Vec<Tensor>, state: Vec<Tensor>, outputs: Vec<Tensor>) {
    if script::is_on()
        && !is_without_history(&outputs)
        && let Err(error) = walks::pull(&arguments, &state, &outputs, &live(&outputs))
    {
        script::refuse(|| format!("a result with a history: {error}"));
    }
}

/// The programs of a function with a history; see `_stage_end`.
pub fn history(
    name: &str, found: Recorded, outputs: &[Tensor], state: Vec<Tensor>, arguments: usize,
) -> Arc<History> {
    Arc::new(History::new(name, found, &live(outputs), state, arguments))
}

/// The error for a call of such a program without the function.
pub fn without_function() -> PyErr {
    PyRuntimeError::new_err("internal: a program whose results have a history is run with its function")
}

exports! { functions: _stage_pull }
