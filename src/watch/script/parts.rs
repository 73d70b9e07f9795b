//! The backward of results with a history: parts of a script behind the steps of the region, one for each
//! choice of results that have cotangents.

use super::notes::with;
use super::{Origin, Script, View};
use crate::array::Array;
use crate::op::Op;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The steps of one walk.
#[derive(Clone)]
pub struct Part {
    /// The results that have cotangents.
    pub given: Vec<bool>,
    /// The number of its first step.
    pub step: usize,
    /// The number of the first memory that it made.
    pub memory: usize,
    /// The cotangents.
    pub cotangents: Vec<View>,
    /// What goes along each edge to a tensor of outside.
    pub gradients: Vec<Along<View>>,
}

/// What a walk sends along an edge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Along<T> {
    /// Nothing: the edge leads from what it does not reach.
    Nothing,
    /// A gradient that is zero everywhere, which nobody computes.
    Zero,
    /// This gradient.
    Gradient(T),
}

impl<T> Along<T> {
    /// The gradient, if there is one.
    pub fn gradient(&self) -> Option<&T> {
        if let Along::Gradient(g) = self { Some(g) } else { None }
    }

    /// The same with another gradient.
    pub fn map<U>(&self, f: impl FnOnce(&T) -> U) -> Along<U> {
        match self {
            Along::Nothing => Along::Nothing,
            Along::Zero => Along::Zero,
            Along::Gradient(g) => Along::Gradient(f(g)),
        }
    }
}

/// The backward of the results of a region.
#[derive(Clone, Default)]
pub struct Pulled {
    /// Its walks; the first one from all results with a history.
    pub parts: Vec<Part>,
    /// The tensor to which each edge leads, by its number.
    pub targets: Vec<usize>,
    /// What is selected of tensors of outside.
    pub rows: Vec<Rows>,
}

/// Rows of a tensor of outside, by index. Their gradient is added row by row to a sum that is there already,
/// of other uses outside: the tape itself does that, so that for a walk they are a tensor of outside, too.
#[derive(Clone)]
pub struct Rows {
    /// The operation.
    pub op: Op,
    /// The number of the tensor. Rows have numbers behind those of tensors.
    pub of: usize,
    /// The indices, as the operation saved them.
    pub index: View,
    /// In the place of what is selected.
    pub value: Array,
}

/// Begins the part of a walk from the results that are `given` these cotangents.
pub fn begin_part(given: Vec<bool>, cotangents: &[&Array]) {
    with(|script| {
        let (step, memory) = (script.steps.len(), script.memory.len());
        let mut views = Vec::new();
        for x in cotangents {
            script.add(x, Origin::Argument(usize::MAX));
            script.held.push(x.buffer().clone());
            views.push(script.view(x));
        }
        let part = Part { given, step, memory, cotangents: views, gradients: Vec::new() };
        script.pulled.get_or_insert_default().parts.push(part);
    });
}

/// Takes note of rows by index of the tensor `of`; see [`Rows`].
pub fn selected(op: &Op, of: usize, index: &Array, value: Array) {
    with(|script| {
        let rows = Rows { op: op.clone(), of, index: script.view(index), value };
        script.pulled.get_or_insert_default().rows.push(rows);
    });
}

/// Whether an array lies in the memory of a cotangent.
pub fn is_cotangent(x: &Array) -> bool {
    let mut is_one = false;
    with(|script| {
        let memory = script.view(x).memory;
        is_one = matches!(script.memory[memory], Origin::Argument(usize::MAX));
    });
    is_one
}

/// Ends it, with what goes along the edges to the tensors `targets`.
pub fn end_part(gradients: &[Along<Array>], targets: &[usize]) {
    with(|script| {
        let views = gradients.iter().map(|g| g.map(|g| script.view(g))).collect();
        if let Some(pulled) = &mut script.pulled {
            pulled.targets = targets.to_vec();
            if let Some(part) = pulled.parts.last_mut() {
                part.gradients = views;
            }
        }
    });
}

/// Whether the script has the backward of its results.
pub fn pulled() -> bool {
    let mut is_pulled = false;
    with(|script| is_pulled = script.pulled.is_some());
    is_pulled
}

/// The number of the first node of the region.
pub fn first_node() -> u64 {
    let mut first = 0;
    with(|script| first = script.first);
    first
}

/// Whether memory that the region made is held by others than its results and the tape: `held` says of
/// memory how many saved tensors hold it, and how many handles there are.
pub fn is_kept_elsewhere(held: &FxHashMap<usize, (usize, usize)>, outputs: &[Array]) -> bool {
    let mut is_kept = false;
    with(|script| {
        is_kept = script.known.iter().any(|(id, (memory, _))| {
            matches!(script.memory[*memory], Origin::Made(true))
                && outputs.iter().all(|y| y.buffer().id() != *id)
                && held.get(id).is_none_or(|(saved, handles)| saved != handles)
        });
    });
    is_kept
}

impl Script {
    /// Some of its steps as a script, in which memory is from where `origin` says.
    pub fn section(&mut self, steps: Range<usize>, origin: impl Fn(usize, &Origin) -> Origin) -> Script {
        let mut facts = FxHashMap::default();
        for i in steps.clone() {
            if let Some(fact) = self.facts.remove(&i) {
                facts.insert(i - steps.start, fact);
            }
        }
        let memory = self.memory.iter().enumerate().map(|(i, known)| origin(i, known)).collect();
        let (steps, random, devices) = (self.steps[steps].to_vec(), self.random, self.devices.clone());
        Script { steps, facts, memory, random, devices, ..Script::default() }
    }
}
