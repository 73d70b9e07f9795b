//! Programs whose results have a history: one node of the tape, whose reverse rule is a program, too.
//!
//! The first call writes down the function and then the backward of its results, from all that have a history
//! and from each alone. A gradient is kept apart for every edge to a tensor of outside, so that sums which
//! other uses of that tensor join have their order. Where a backward is recorded itself, or has other
//! cotangents than these, the function runs again as Python.

use crate::array::random;
use crate::autodiff::backward::{self, Contribution};
use crate::op::{Grads, Op};
use crate::ops::custom::{self, CustomRule, ForwardFacts, RuleInput};
use crate::process::names::interned;
use crate::process::sync::lock;
use crate::py::prelude::*;
use crate::tape::host_ref::{HeldPart, Holder, HostRef};
use crate::tape::node::{Edge, Node};
use crate::tape::saving;
use crate::tensor::Tensors;
use crate::watch::debug::{Modes, modes, suspend};
use crate::watch::program::{Outcome, Recorded};
use crate::watch::script::{self, Along};
use pyo3::exceptions::PyRuntimeError;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Mutex;

/// An edge: the number of the node that it comes from, and its number there.
type From = (u64, usize);

/// So many results with a history may each have a cotangent alone.
const ALONE: usize = 4;

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
        let outputs = outputs.into_iter().map(Tensor::Array).collect();
        let call = Call {
            history: self.clone(),
            outputs: Mutex::new(Some(outputs)),
            random,
            held: HostRef::new(again.clone()),
            again,
            inside: !interp::is_plain(),
        };
        let mut inputs = Vec::with_capacity(self.found.targets.len() + self.found.arguments.len());
        for &target in &self.found.targets {
            inputs.push(match arguments.get(target) {
                Some(argument) => argument.clone(),
                None => self.state[target - self.arguments].clone(),
            });
        }
        inputs.extend(self.found.arguments.iter().map(|&k| arguments[k].detach()));
        inputs.extend(self.found.outside.iter().cloned().map(Tensor::Array));
        custom::call(Arc::new(call), &inputs)
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
        let Outcome::Done(outputs) = pull.program.run(&x, &mut |_| Ok(()))? else { return Ok(None) };
        let mut outputs = outputs.into_iter().map(Tensor::Array);
        let gradient = |along: &Along<()>| along.gradient().and_then(|()| outputs.next());
        Ok(Some(pull.along.iter().map(gradient).collect()))
    }

    /// The gradients by the function, run again as Python: all of a tensor along its first edge.
    fn pull_again(&self, g: &[Option<Tensor>], recorded: bool) -> Result<Grads> {
        let targets = &self.history.found.targets;
        let _random = random::replay(self.random);
        let found: Vec<Option<Tensor>> = attached(|py| {
            let g = g.to_vec();
            self.again.bind(py).run((targets.clone(), g, recorded), None)?.extract()
        })?;
        let mut seen = FxHashSet::default();
        Ok(targets.iter().zip(found).map(|(target, g)| g.filter(|_| seen.insert(*target))).collect())
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
        && let Err(error) = pull(&arguments, &state, &outputs)
    {
        script::refuse(|| format!("a result with a history: {error}"));
    }
}

fn refused<T>(what: &str) -> Result<T> {
    Err(Error::value(what.to_string()))
}

fn pull(arguments: &[Tensor], state: &[Tensor], outputs: &[Tensor]) -> Result<()> {
    if saving::is_packing() {
        return refused("hooks see what is saved");
    }
    let is_live = live(outputs);
    let all: Vec<&Tensor> = arguments.iter().chain(state).collect();
    let (numbers, edges): (Vec<usize>, Vec<Edge>) =
        all.iter().enumerate().filter_map(|(i, x)| Some((i, x.edge()?))).unzip();
    let live: Vec<&Tensor> =
        outputs.iter().zip(&is_live).filter(|(_, live)| **live).map(|(y, _)| y).collect();
    let all_edges = check(outputs, &live, &edges)?;
    let count = live.len();
    let mut choices = vec![vec![true; count]];
    if (2..=ALONE).contains(&count) {
        choices.extend((0..count).map(|i| (0..count).map(|k| k == i).collect()));
    }
    let mut known: Vec<(From, usize)> = Vec::new();
    for choice in choices {
        let chosen: Vec<Tensor> =
            live.iter().zip(&choice).filter(|(_, chosen)| **chosen).map(|(y, _)| (*y).clone()).collect();
        let cotangents = {
            let _quiet = suspend(Modes::SCRIPT);
            chosen.iter().map(ones).collect::<Result<Vec<Tensor>>>()?
        };
        let arrays = cotangents.iter().map(|g| g.array("jit")).collect::<Result<Vec<&Array>>>()?;
        let mut chosen_of_live = choice.iter();
        let given = is_live.iter().map(|live| *live && chosen_of_live.next() == Some(&true)).collect();
        script::begin_part(given, &arrays);
        let cotangents: Vec<Option<Tensor>> = cotangents.iter().cloned().map(Some).collect();
        let found = backward::apart(&chosen, &cotangents, &edges)?;
        if known.is_empty() {
            // In the order in which a walk adds what they bring; behind them those that bring nothing.
            known = found.iter().map(|g| (g.from, numbers[g.target])).collect();
            let others = all_edges.iter().map(|&(from, target)| (from, numbers[target]));
            known.extend(others.filter(|(from, _)| found.iter().all(|g| g.from != *from)));
        }
        let targets: Vec<usize> = known.iter().map(|(_, target)| *target).collect();
        script::end_part(&gradients(&known, found)?, &targets);
    }
    Ok(())
}

/// What goes along each known edge.
fn gradients(known: &[(From, usize)], found: Vec<Contribution>) -> Result<Vec<Along<Array>>> {
    let mut along: FxHashMap<From, Option<Tensor>> =
        found.into_iter().map(|g| (g.from, g.gradient)).collect();
    let gradient = |(from, _): &(From, usize)| match along.remove(from) {
        Some(Some(g)) => Ok(Along::Gradient(g.array("jit")?.clone())),
        Some(None) => Ok(Along::Zero),
        None => Ok(Along::Nothing),
    };
    known.iter().map(gradient).collect()
}

/// A cotangent such as a program is made for.
fn ones(y: &Tensor) -> Result<Tensor> {
    let ones = Tensor::scalar(1.0, y.dtype(), y.device())?.expand(&y.shape())?;
    // Axes of length 1 have the strides of a new array, too.
    ones.contiguous()?.array("jit")?.viewed(y.shape()).map(Tensor::Array)
}

/// Raises unless all that the results were computed from is the function's or one of the tensors at `edges`,
/// the walks back show nothing to hooks, and nobody but the tape keeps what the function made. Returns all
/// edges that lead to these tensors, each with the number of its tensor, youngest first.
fn check(outputs: &[Tensor], live: &[&Tensor], edges: &[Edge]) -> Result<Vec<(From, usize)>> {
    let place = |(i, edge): (usize, &Edge)| ((Arc::as_ptr(&edge.node), edge.index), i);
    // Of several tensors at one edge, that which a walk names.
    let targets: FxHashMap<(*const Node, u32), usize> = edges.iter().enumerate().rev().map(place).collect();
    let mut found = Vec::new();
    let (first, tape) = (script::first_node(), interp::program_tape());
    let mut held: FxHashMap<usize, (usize, usize)> = FxHashMap::default();
    let mut seen = FxHashSet::default();
    let mut waiting: Vec<Edge> = live.iter().filter_map(|y| y.edge()).collect();
    // How many edges lead to each, and whether one is of rows by index: their gradients are added to a sum
    // that is there one by one.
    let mut uses: FxHashMap<(*const Node, u32), (usize, bool)> = FxHashMap::default();
    while let Some(Edge { node, index }) = waiting.pop() {
        if targets.contains_key(&(Arc::as_ptr(&node), index)) {
            continue;
        }
        if !seen.insert(node.seq) {
            continue;
        }
        if node.seq < first || node.is_leaf() || Some(node.tag) != tape {
            return refused("it was computed from a tensor with a history that is no argument");
        }
        if node.hooks().is_some() {
            return refused("hooks in the function see its gradients");
        }
        let picks = matches!(node.op(), Some(Op::Take(_)));
        for (i, edge) in node.edges.iter().enumerate() {
            let Some(edge) = edge else { continue };
            let place = (Arc::as_ptr(&edge.node), edge.index);
            let Some(&target) = targets.get(&place) else { continue };
            found.push(((node.seq, i), target));
            let (count, picked) = uses.entry(place).or_default();
            *count += 1;
            *picked |= picks;
            if *picked && *count > 1 {
                return refused("rows of a tensor are taken by index, which is used in other ways too");
            }
        }
        node.each_saved(|x| {
            if let Some(x) = x.concrete() {
                held.entry(x.buffer().id()).or_insert((0, x.buffer().handles())).0 += 1;
            }
        });
        waiting.extend(node.edges.iter().flatten().cloned());
    }
    let outputs: Vec<Array> = outputs.iter().filter_map(|y| y.detach().concrete().cloned()).collect();
    match script::is_kept_elsewhere(&held, &outputs) {
        true => refused("a tensor is kept elsewhere than in the result"),
        false => {
            found.sort_unstable_by(|a, b| b.cmp(a));
            Ok(found)
        }
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
