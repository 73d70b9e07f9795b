//! How the backward of results with a history is written down: walks back to the tensors of outside.

use crate::autodiff::backward::{self, Contribution, ROOTS, adds_rows};
use crate::op::Op;
use crate::py::prelude::*;
use crate::tape::node::{Edge, Node, Saved, Slot};
use crate::tape::saving;
use crate::watch::debug::{Modes, suspend};
use crate::watch::script::{self, Along};
use rustc_hash::{FxHashMap, FxHashSet};

/// Why such a function runs as Python.
const OF_RESULTS: &str = "rows by index of what is a result, or has the gradient of one";

/// So many results with a history may each have a cotangent alone.
const ALONE: usize = 4;

/// An edge: the number of the node that it comes from, and its number there; or [`ROOTS`], and which result.
type From = (u64, usize);

/// An output of a node.
type Place = (*const Node, u32);

fn refused<T>(what: &str) -> Result<T> {
    Err(Error::value(what.to_string()))
}

fn place(edge: &Edge) -> Place {
    (Arc::as_ptr(&edge.node), edge.index)
}

/// The tensors to which walks go.
struct Targets {
    edges: Vec<Edge>,
    /// The number of each tensor.
    numbers: Vec<usize>,
    /// Which of them is at a place; of several, that which a walk names.
    at: FxHashMap<Place, usize>,
    /// Those of which rows are taken by index.
    selected: FxHashSet<Place>,
}

/// Writes down the walks from the `outputs` that are `live`; see `_stage_pull`.
pub fn pull(arguments: &[Tensor], state: &[Tensor], outputs: &[Tensor], is_live: &[bool]) -> Result<()> {
    if saving::is_packing() {
        return refused("hooks see what is saved");
    }
    let all: Vec<&Tensor> = arguments.iter().chain(state).collect();
    let (numbers, edges): (Vec<usize>, Vec<Edge>) =
        all.iter().enumerate().filter_map(|(i, x)| Some((i, x.edge()?))).unzip();
    let at = edges.iter().enumerate().rev().map(|(i, edge)| (place(edge), i)).collect();
    let mut targets = Targets { edges, numbers, at, selected: FxHashSet::default() };
    let live: Vec<&Tensor> = outputs.iter().zip(is_live).filter(|(_, live)| **live).map(|(y, _)| y).collect();
    let nodes = check(outputs, &live, &targets)?;
    select(&nodes, &mut targets, all.len())?;
    let edges = edges_to(&nodes, &live, &targets);
    let count = live.len();
    let mut choices: Vec<Vec<usize>> = vec![(0..count).collect()];
    if (2..=ALONE).contains(&count) {
        choices.extend((0..count).map(|i| vec![i]));
    }
    let mut known: Vec<(From, usize)> = Vec::new();
    for choice in choices {
        let chosen: Vec<Tensor> = choice.iter().map(|&i| live[i].clone()).collect();
        let cotangents = {
            let _quiet = suspend(Modes::SCRIPT);
            chosen.iter().map(ones).collect::<Result<Vec<Tensor>>>()?
        };
        let arrays = cotangents.iter().map(|g| g.array("jit")).collect::<Result<Vec<&Array>>>()?;
        let mut numbers = 0..;
        let given = is_live.iter().map(|live| *live && numbers.next().is_some_and(|i| choice.contains(&i)));
        script::begin_part(given.collect(), &arrays);
        let cotangents: Vec<Option<Tensor>> = cotangents.iter().cloned().map(Some).collect();
        let mut found = backward::apart(&chosen, &cotangents, &targets.edges)?;
        for g in &mut found {
            if g.from.0 == ROOTS {
                g.from.1 = choice[g.from.1];
            }
            // Whether such a sum can be written in place would depend on who else has the cotangent.
            let is_one = |g: &Tensor| g.concrete().is_some_and(script::is_cotangent);
            if targets.selected.contains(&place(&targets.edges[g.target]))
                && g.gradient.as_ref().is_some_and(is_one)
            {
                return refused(OF_RESULTS);
            }
        }
        if known.is_empty() {
            // In the order in which a walk adds what they bring; behind them those that bring nothing.
            known = found.iter().map(|g| (g.from, g.target)).collect();
            known.extend(edges.iter().filter(|(from, _)| found.iter().all(|g| g.from != *from)));
        }
        let numbers: Vec<usize> = known.iter().map(|(_, target)| targets.numbers[*target]).collect();
        script::end_part(&gradients(&known, found)?, &numbers);
    }
    Ok(())
}

/// Makes targets of the rows by index of targets, whose gradients the tape itself adds up. A walk finds them
/// older than the call, so they must be older than all that the function does with such a tensor beside.
fn select(nodes: &[Arc<Node>], targets: &mut Targets, mut number: usize) -> Result<()> {
    let mut others: FxHashSet<Place> = FxHashSet::default();
    for node in nodes {
        let of = node.edges.first().and_then(Option::as_ref).map(place);
        let (Some(op), Some(&of)) =
            (node.op().filter(|op| adds_rows(op)), of.and_then(|of| targets.at.get(&of)))
        else {
            others.extend(node.edges.iter().flatten().map(place).filter(|at| targets.at.contains_key(at)));
            continue;
        };
        let at = place(&targets.edges[of]);
        if others.contains(&at) {
            return refused("rows of a tensor are taken by index, which was used in other ways before");
        }
        let mut saved = Saved::new();
        node.unpack(true, false, &[None], &mut saved)?;
        let index = saved.iter().find(|x| x.slot == Slot::Input(1)).and_then(|x| x.tensor()?.concrete());
        let Some(index) = index else { return refused("rows by an index that is not known") };
        let aval = &node.outputs[0];
        let value = {
            let _quiet = suspend(Modes::SCRIPT);
            Tensor::scalar(0.0, aval.dtype, aval.device)?.expand(&aval.shape)?
        };
        script::selected(op, targets.numbers[of], index, value.array("jit")?.clone());
        targets.selected.insert(at);
        targets.at.insert((Arc::as_ptr(node), 0), targets.edges.len());
        targets.edges.push(Edge { node: node.clone(), index: 0 });
        targets.numbers.push(number);
        number += 1;
    }
    Ok(())
}

/// All edges that lead to targets, each with its target, youngest first.
fn edges_to(nodes: &[Arc<Node>], live: &[&Tensor], targets: &Targets) -> Vec<(From, usize)> {
    let target = |edge: &Edge| targets.at.get(&place(edge)).copied();
    let roots = live.iter().enumerate().filter_map(|(i, y)| Some(((ROOTS, i), target(&y.edge()?)?)));
    let mut found: Vec<(From, usize)> = roots.collect();
    for node in nodes.iter().rev().filter(|node| !targets.at.contains_key(&(Arc::as_ptr(node), 0))) {
        let edges = node.edges.iter().enumerate().filter_map(|(i, edge)| Some((i, target(edge.as_ref()?)?)));
        found.extend(edges.map(|(i, target)| ((node.seq, i), target)));
    }
    // Along these goes what the function itself computes, run again.
    let outside = |of: &usize| targets.edges[*of].node.seq < script::first_node();
    let selected = targets.selected.iter().map(|at| targets.at[at]).filter(outside);
    let mut alone: Vec<usize> = selected.filter(|of| found.iter().all(|(_, target)| target != of)).collect();
    alone.sort_unstable();
    found.extend(alone.into_iter().map(|of| ((0, usize::MAX - of), of)));
    found
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

/// The nodes between the results and the targets, oldest first. Raises unless all that the results were
/// computed from is the function's or a target, the walks back show nothing to hooks, and nobody but the tape
/// keeps what the function made.
fn check(outputs: &[Tensor], live: &[&Tensor], targets: &Targets) -> Result<Vec<Arc<Node>>> {
    let (first, tape) = (script::first_node(), interp::program_tape());
    let mut held: FxHashMap<usize, (usize, usize)> = FxHashMap::default();
    let mut seen = FxHashSet::default();
    let mut nodes = Vec::new();
    let mut waiting: Vec<Edge> = live.iter().filter_map(|y| y.edge()).collect();
    while let Some(edge) = waiting.pop() {
        let node = &edge.node;
        if targets.at.contains_key(&place(&edge)) || !seen.insert(node.seq) {
            continue;
        }
        if node.seq < first || node.is_leaf() || Some(node.tag) != tape {
            return refused("it was computed from a tensor with a history that is no argument");
        }
        if node.hooks().is_some() {
            return refused("hooks in the function see its gradients");
        }
        if matches!(node.op(), Some(Op::Custom(op)) if op.runs_user_code()) {
            return refused("a reverse rule of your own, which may read what changes after the call");
        }
        node.each_saved(|x| {
            if let Some(x) = x.concrete() {
                held.entry(x.buffer().id()).or_insert((0, x.buffer().handles())).0 += 1;
            }
        });
        waiting.extend(node.edges.iter().flatten().cloned());
        nodes.push(edge.node);
    }
    let outputs: Vec<Array> = outputs.iter().filter_map(|y| y.detach().concrete().cloned()).collect();
    if script::is_kept_elsewhere(&held, &outputs) {
        return refused("a tensor is kept elsewhere than in the result; return it");
    }
    nodes.sort_unstable_by_key(|node| node.seq);
    Ok(nodes)
}
