//! A region whose results have a history, as several programs: one that computes the results and what their
//! backward reads, and one for each choice of results that have cotangents.

use super::needs::is_inner;
use super::{Program, Refusal};
use crate::array::Array;
use crate::op::Kernel;
use crate::watch::script::{Along, Origin, Part, Pulled, Rows, Script, Step, View};

/// The backward of such a region.
pub struct Recorded {
    /// One for each choice of results that have cotangents.
    pub pulls: Vec<Pull>,
    /// How much the forward computes for the backward.
    pub kept: usize,
    /// Which arguments the backward reads.
    pub arguments: Vec<usize>,
    /// The memory of outside that it reads.
    pub outside: Vec<Array>,
    /// The tensor to which each edge leads.
    pub targets: Vec<usize>,
    /// What is selected of tensors of outside; the forward returns the indices last.
    pub rows: Vec<Rows>,
}

/// The backward of the results that are given cotangents.
pub struct Pull {
    /// Which of all results.
    pub given: Vec<bool>,
    /// Of what the backward reads, of these arguments and of cotangents; returns the gradients.
    pub program: Program,
    /// What goes along each edge.
    pub along: Vec<Along<()>>,
}

/// What the steps of the backward read of what was there before.
#[derive(Default)]
struct Reads {
    /// Memory that the region made, as its operations made it.
    made: Vec<View>,
    arguments: Vec<usize>,
    outside: Vec<(usize, Array)>,
}

fn refused<T>(what: &str) -> Result<T, Refusal> {
    Err((what.into(), None))
}

/// Plans the programs of a region with these arguments and outputs: that which returns the results, and
/// behind them what the backward reads, and those of the backward.
pub fn recorded(
    mut script: Script, arguments: &[Array], outputs: &[Array], catches: bool,
) -> Result<(Program, Recorded), Refusal> {
    let mut outputs: Vec<View> = outputs.iter().map(|y| script.view(y)).collect();
    let arguments: Vec<View> = arguments.iter().map(|x| script.view(x)).collect();
    let pulled = script.pulled.take().unwrap_or_default();
    let Some(first) = pulled.parts.first() else { return refused("no backward") };
    if let Some(refusal) = script.refusal.take() {
        return Err(refusal);
    }
    if !script.calls.is_empty() || !script.leaves.is_empty() {
        return refused(
            "a result with a history, of a function with a backward or a step inside; detach the result",
        );
    }
    for (i, y) in outputs.iter().enumerate() {
        let is_alone = outputs[..i].iter().all(|other| other.memory != y.memory);
        if !matches!(script.memory[y.memory], Origin::Made(_)) || !is_alone {
            return refused("a result with a history that shares memory with an argument or another result");
        }
    }
    for step in &script.steps[..first.step] {
        if let Step::Ran { outputs, into: true, .. } = step
            && outputs.iter().any(|view| !is_inner(&script.memory[view.memory]))
        {
            return refused("a result with a history of a function that writes to tensors of outside");
        }
    }
    let ends = pulled.parts.iter().skip(1).map(|part| part.step).chain([script.steps.len()]);
    let ranges: Vec<_> = pulled.parts.iter().zip(ends).map(|(part, end)| part.step..end).collect();
    let mut reads = Reads::default();
    for (part, range) in pulled.parts.iter().zip(&ranges) {
        for step in &script.steps[range.clone()] {
            reads.add(&script, step, first, part)?;
        }
        for view in part.gradients.iter().filter_map(Along::gradient) {
            let is_given = part.cotangents.iter().any(|g| g.memory == view.memory);
            if view.memory < part.memory
                || !is_given && !matches!(script.memory[view.memory], Origin::Made(_))
            {
                return refused("a gradient that lies in the memory of a tensor that exists");
            }
        }
    }
    let Reads { made, arguments: read, outside } = reads;
    let mut pulls = Vec::new();
    for (part, range) in pulled.parts.iter().zip(ranges) {
        let given: Vec<View> = made.iter().chain(read.iter().map(|&k| &arguments[k])).cloned().collect();
        let given: Vec<View> = given.into_iter().chain(part.cotangents.iter().cloned()).collect();
        let origin = |memory: usize, known: &Origin| match (
            given.iter().position(|view| view.memory == memory),
            known,
        ) {
            (Some(i), _) => Origin::Argument(i),
            (None, Origin::Made(alive)) => Origin::Made(*alive && memory >= part.memory),
            (None, known) => known.clone(),
        };
        let mut section = script.section(range, origin);
        section.forget_later(part, &pulled.parts);
        section.random = crate::array::random::state();
        let gradients = part.gradients.iter().filter_map(Along::gradient).cloned().collect();
        let program = Program::planned(section, given, gradients, catches, Vec::new())?;
        let along = part.gradients.iter().map(|g| g.map(|_| ())).collect();
        pulls.push(Pull { given: part.given.clone(), program, along });
    }
    let kept = made.len();
    outputs.extend(made);
    outputs.extend(pulled.rows.iter().map(|rows| rows.index.clone()));
    // What is still there belongs to the tape.
    let origin = |_: usize, known: &Origin| match known {
        Origin::Made(_) => Origin::Made(false),
        known => known.clone(),
    };
    let section = script.section(0..first.step, origin);
    let forward = Program::planned(section, arguments, outputs, catches, Vec::new())?;
    let outside = outside.into_iter().map(|(_, array)| array).collect();
    let Pulled { targets, rows, .. } = pulled;
    Ok((forward, Recorded { pulls, kept, arguments: read, outside, targets, rows }))
}

impl Reads {
    /// Takes note of what a step of a part reads; `first` is the first part.
    fn add(&mut self, script: &Script, step: &Step, first: &Part, part: &Part) -> Result<(), Refusal> {
        let Step::Ran { op, inputs, outputs, into } = step else {
            return refused("a backward that looks at values");
        };
        if op.clone().random_state().is_some() {
            return refused("a backward that draws random numbers");
        }
        if *into && outputs.iter().any(|view| !matches!(script.memory[view.memory], Origin::Made(_))) {
            return refused("a backward that writes to tensors that exist");
        }
        for view in inputs.iter().chain(outputs) {
            let memory = view.memory;
            match &script.memory[memory] {
                Origin::Made(_) if memory >= first.memory && memory < part.memory => {
                    return refused("a backward that keeps what it computes");
                }
                Origin::Made(_) if memory < first.memory => {
                    if *into && outputs.contains(view) {
                        return refused("a backward that writes to what the forward made");
                    }
                    if self.made.iter().all(|made| made.memory != memory) {
                        self.made
                            .push(script.whole_of(memory).ok_or(("memory of unknown origin".into(), None))?);
                    }
                }
                Origin::Argument(k) if *k != usize::MAX && !self.arguments.contains(k) => {
                    self.arguments.push(*k);
                }
                Origin::Outside(buffer) if self.outside.iter().all(|(known, _)| *known != memory) => {
                    let View { shape, strides, offset, dtype, .. } = view;
                    let array = Array::strided(buffer.clone(), *shape, strides, *offset, *dtype);
                    self.outside.push((memory, array.map_err(|error| (error.to_string(), None))?));
                }
                Origin::Constant(_, Some(_)) | Origin::Gradient(_) => {
                    return refused("a backward that reads a tensor of Python's numbers that is written");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Script {
    /// The first value in this memory, which is the whole of it.
    fn whole_of(&self, memory: usize) -> Option<View> {
        let makes = |step: &Step| match step {
            Step::Ran { outputs, into: false, .. } => {
                outputs.iter().find(|view| view.memory == memory).cloned()
            }
            _ => None,
        };
        self.steps.iter().find_map(makes)
    }

    /// Forgets that memory is alive which parts behind this one made.
    fn forget_later(&mut self, part: &Part, parts: &[Part]) {
        let next = parts.iter().map(|other| other.memory).filter(|&memory| memory > part.memory).min();
        for origin in self.memory.iter_mut().skip(next.unwrap_or(usize::MAX)) {
            if let Origin::Made(alive) = origin {
                *alive = false;
            }
        }
    }
}
