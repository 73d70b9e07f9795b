//! `linearize`: runs a function once and keeps its derivative at that point as a linear map.
//!
//! The function runs in forward mode over a staging interpreter (`src/interp/linearized.rs`) that owns the
//! tangents. What does not depend on them, the value and the coefficients of every rule, is computed at once.
//! Operations that do depend on them are the linear map, and are recorded into a list. A call runs that list
//! with other tangents: no operation of the function and no rule runs again. The list consists of ordinary
//! operations, so a call can be differentiated, batched and linearized itself.

use super::prelude::*;
use crate::autodiff::owned::HolderWalk;
use crate::autodiff::transform::{check_tangent, jvp, unwrap_to_level};
use crate::bind::bind;
use crate::interp::Kind;
use crate::interp::linearized::{Atom, Constant, Equation, LinearMap, List};
use crate::process::interrupt::InterruptBudget;
use crate::tape::saving;
use crate::tensor::Tensors;
use crate::watch::anomaly;
use crate::watch::debug::{self, Modes};

/// A linear map: the derivative of a function at a point.
#[derive(Default)]
pub struct Linear {
    steps: Arc<Steps>,
    constants: Vec<Constant>,
}

/// What is done with the constants of a linear map.
#[derive(Default)]
struct Steps {
    inputs: Vec<Aval>,
    outputs: Vec<Atom>,
    equations: Vec<Equation>,
    /// The variables that can be dropped after each equation.
    done: Vec<SmallVec<[usize; 2]>>,
    vars: usize,
}

/// Runs `f` once at `primals`. Returns its outputs, and the linear map from tangents of the primals to those
/// of the outputs.
pub fn linearize<F>(f: F, primals: &[Tensor]) -> Result<(Vec<Tensor>, Linear)>
where
    F: FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
{
    let (level, guard) = interp::push(Kind::Linearized);
    let map = Arc::new(LinearMap::default());
    let mut tangents = Vec::new();
    for x in primals {
        tangents.push(Some(map.input(&level, x.zeros_like()?)));
    }
    let observer = saving::with_write_observer(map.clone());
    let (values, moved) = jvp(f, primals, &tangents)?;
    drop((observer, guard));
    let values = values.iter().map(|y| unwrap_to_level(y, &level)).collect();
    let mut list = map.take();
    let mut outputs = Vec::new();
    for t in &moved {
        let t = unwrap_to_level(t, &level);
        outputs.push(match t.owned_by(level.tag).map(|t| &t.payload) {
            Some(Payload::Linearized { var, .. }) => Atom::Var(*var),
            _ => list.constant(&t),
        });
    }
    let inputs = primals.iter().map(Tensor::aval).collect();
    let List { equations, constants, vars, .. } = list;
    let mut steps = Steps { inputs, outputs, equations, vars, done: Vec::new() };
    let constants = steps.keep(steps.outputs.len(), constants);
    Ok((values, Linear { steps: Arc::new(steps), constants }))
}

impl Steps {
    /// Drops the outputs from `count` on, and all equations and constants that the others do not need.
    fn keep(&mut self, count: usize, constants: Vec<Constant>) -> Vec<Constant> {
        self.outputs.truncate(count);
        let mut needed = vec![false; self.vars];
        vars(&self.outputs).for_each(|var| needed[var] = true);
        let mut kept = Vec::new();
        for equation in std::mem::take(&mut self.equations).into_iter().rev() {
            if (equation.first..equation.first + equation.outputs).any(|var| needed[var]) {
                vars(&equation.inputs).for_each(|var| needed[var] = true);
                kept.push(equation);
            }
        }
        kept.reverse();
        self.equations = kept;
        self.schedule();
        self.forget_constants(constants)
    }

    /// Renumbers the constants that an equation or output reads, and returns them.
    fn forget_constants(&mut self, constants: Vec<Constant>) -> Vec<Constant> {
        let mut moved = vec![None; constants.len()];
        let mut given: Vec<Option<Constant>> = constants.into_iter().map(Some).collect();
        let mut kept = Vec::new();
        let all = self
            .equations
            .iter_mut()
            .flat_map(|equation| equation.inputs.iter_mut())
            .chain(&mut self.outputs);
        for atom in all {
            let Atom::Constant(at) = atom else { continue };
            if let Some(constant) = given[*at].take() {
                moved[*at] = Some(kept.len());
                kept.push(constant);
            }
            *at = moved[*at].unwrap_or(*at);
        }
        kept
    }

    /// Computes `done`: the variables that each equation is the last to read or make, outputs excepted.
    fn schedule(&mut self) {
        let mut last = vec![None; self.vars];
        for (i, equation) in self.equations.iter().enumerate() {
            let made = equation.first..equation.first + equation.outputs;
            made.chain(vars(&equation.inputs)).for_each(|var| last[var] = Some(i));
        }
        vars(&self.outputs).for_each(|var| last[var] = None);
        self.done = vec![SmallVec::new(); self.equations.len()];
        for (var, equation) in last.iter().enumerate() {
            if let Some(equation) = *equation {
                self.done[equation].push(var);
            }
        }
    }
}

impl Linear {
    /// Forgets the outputs from `count` on.
    pub fn keep(&mut self, count: usize) {
        // Nobody else has the steps of a map that was just made.
        if let Some(steps) = Arc::get_mut(&mut self.steps).filter(|steps| count < steps.outputs.len()) {
            self.constants = steps.keep(count, std::mem::take(&mut self.constants));
        }
    }

    /// The map of the same steps with other constants, such as [`Linear::constants`] returns.
    pub fn at(&self, constants: Vec<Tensor>) -> Linear {
        Linear { steps: self.steps.clone(), constants: constants.into_iter().map(Constant::new).collect() }
    }

    /// The values that it keeps; an error if one of them was written to since.
    pub fn constants(&self) -> Result<Vec<Tensor>> {
        self.constants.iter().map(|constant| constant.get("the function").cloned()).collect()
    }

    /// Maps tangents of the inputs to tangents of the outputs, in one pass over the list. Runs under the
    /// interpreters current at the call, so it can be batched or differentiated itself.
    pub fn call(&self, tangents: &[Tensor]) -> Result<Vec<Tensor>> {
        self.check(tangents)?;
        // Autocast is left because the recorded dtypes are final: casts are equations of the list.
        let _region = interp::leave_autocast();
        let mut values: Vec<Option<Tensor>> = vec![None; self.steps.vars];
        for (value, t) in values.iter_mut().zip(tangents) {
            *value = Some(t.clone());
        }
        let mut interrupts = InterruptBudget::default();
        for (equation, done) in self.steps.equations.iter().zip(&self.steps.done) {
            let outputs = self.run(equation, &values)?;
            for (i, y) in outputs.into_iter().enumerate() {
                interrupts.spend(y.numel())?;
                values[equation.first + i] = Some(y);
            }
            done.iter().for_each(|&var| values[var] = None);
        }
        self.steps.outputs.iter().map(|&atom| self.find(atom, &values, "the function").cloned()).collect()
    }

    /// Runs an equation and returns its outputs.
    fn run(&self, equation: &Equation, values: &[Option<Tensor>]) -> Result<Tensors> {
        let name = equation.op.as_ref().map_or("detach", |op| op.name());
        let inputs: SmallVec<[&Tensor; 4]> =
            equation.inputs.iter().map(|&atom| self.find(atom, values, name)).collect::<Result<_>>()?;
        let Some(op) = &equation.op else { return Ok(inputs.iter().map(|x| x.detach()).collect()) };
        let outputs = bind(op.clone(), &inputs)?;
        if debug::modes().has(Modes::ANOMALY) {
            let moves: SmallVec<[bool; 4]> =
                equation.inputs.iter().map(|atom| atom.var().is_some()).collect();
            anomaly::stepped(op, &inputs, &moves, &outputs)?;
        }
        Ok(outputs)
    }

    /// Raises unless the tangents match the primals in number, shape and dtype.
    fn check(&self, tangents: &[Tensor]) -> Result<()> {
        let inputs = &self.steps.inputs;
        if tangents.len() != inputs.len() {
            return Err(Error::value(format!(
                "linearize: {} tangents given for {} primals",
                tangents.len(),
                inputs.len()
            )));
        }
        tangents.iter().zip(inputs).try_for_each(|(t, x)| check_tangent("linearize", t, x))
    }

    /// Returns an operand of the equation `name`.
    fn find<'a>(&'a self, atom: Atom, values: &'a [Option<Tensor>], name: &str) -> Result<&'a Tensor> {
        match atom {
            Atom::Constant(at) => self.constants[at].get(name),
            Atom::Var(var) => values[var].as_ref().ok_or_else(|| {
                Error::autodiff(format!("internal: linearize: {name} reads a value that is gone"))
            }),
        }
    }

    /// Bytes of the constants; memory that several share counts once for each.
    pub fn bytes(&self) -> usize {
        self.constants.iter().map(|constant| saving::bytes(constant.tensor())).sum()
    }

    /// The number of operations that a call runs.
    pub fn operations(&self) -> usize {
        self.steps.equations.len()
    }

    /// Shows what it holds to Python's garbage collector.
    pub fn parts(&self, walk: &mut HolderWalk) {
        self.constants.iter().for_each(|constant| walk.tensor(constant.tensor()));
        // What several maps share belongs to none of them.
        if Arc::strong_count(&self.steps) > 1 {
            return;
        }
        self.steps.equations.iter().filter_map(|equation| equation.op.as_ref()).for_each(|op| walk.rules(op));
    }
}

/// The variables among `atoms`.
fn vars(atoms: &[Atom]) -> impl Iterator<Item = usize> {
    atoms.iter().filter_map(|atom| atom.var())
}
