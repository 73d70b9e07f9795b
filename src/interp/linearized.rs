//! Linearization: runs the operation one level down and writes it down, to be run again with other inputs.
//!
//! What is written is a straight list of operations on variables. Only what depends on the inputs comes here;
//! all other operands are constants, computed once. Under a forward mode, whose tangents are the inputs, this
//! leaves the linear part of a function: see `src/autodiff/linearize.rs`, where the list is run.

use super::prelude::*;
use crate::process::sync::lock;
use crate::tape::saving::{self, WriteObserver};
use rustc_hash::FxHashMap;
use smallvec::smallvec;
use std::sync::Mutex;

/// Where an operand comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Atom {
    /// An input, or the output of a step before.
    Var(usize),
    /// A constant.
    Constant(usize),
}

impl Atom {
    /// The variable, if it is one.
    pub fn var(self) -> Option<usize> {
        if let Atom::Var(var) = self { Some(var) } else { None }
    }
}

/// One operation of the list.
pub struct Equation {
    /// The operation; `None` is the same value without its history.
    pub op: Option<Op>,
    /// Its operands.
    pub inputs: SmallVec<[Atom; 4]>,
    /// The variable of its first output; the others follow.
    pub first: usize,
    /// The number of its outputs.
    pub outputs: usize,
}

/// An operand that depends on no input, with the version of its memory that is meant.
pub struct Constant {
    value: Tensor,
    version: u32,
}

impl Constant {
    /// The value as it is now.
    pub fn new(value: Tensor) -> Constant {
        Constant { version: saving::version(&value), value }
    }

    /// The value; an error if it was written to since `op` was written down.
    pub fn get(&self, op: &str) -> Result<&Tensor> {
        match saving::version(&self.value) {
            now if now == self.version => Ok(&self.value),
            now => Err(self.modified(op, now)),
        }
    }

    /// The value, whatever happened to it.
    pub fn tensor(&self) -> &Tensor {
        &self.value
    }

    #[cold]
    fn modified(&self, op: &str, now: u32) -> Error {
        Error::autodiff(format!(
            "linearize: a tensor of shape {} that {op} keeps for the linear map was modified in place after \
             the function had run (version {now}, expected {}); write x = x + ... instead of an in-place \
             operation, or modify a clone()",
            self.value.shape(),
            self.version
        ))
    }
}

/// The list, and what it works on.
#[derive(Default)]
pub struct List {
    /// The operations, in the order in which they ran.
    pub equations: Vec<Equation>,
    /// The constants.
    pub constants: Vec<Constant>,
    /// The number of variables.
    pub vars: usize,
    /// The constants in each buffer.
    buffers: FxHashMap<usize, SmallVec<[u32; 2]>>,
}

impl List {
    /// A constant of the list.
    pub fn constant(&mut self, value: &Tensor) -> Atom {
        let at = self.constants.len();
        if let Some(memory) = saving::bottom(value) {
            self.buffers.entry(memory.buffer().id()).or_default().push(at as u32);
        }
        self.constants.push(Constant::new(value.clone()));
        Atom::Constant(at)
    }

    /// So many new variables; the first of them.
    pub fn vars(&mut self, count: usize) -> usize {
        self.vars += count;
        self.vars - count
    }
}

/// A list that is being written, shared by the values on it.
#[derive(Default)]
pub struct LinearMap(Mutex<List>);

impl LinearMap {
    /// Makes `value` an input of the list.
    pub fn input(self: &Arc<Self>, at: &Interp, value: Tensor) -> Tensor {
        let var = lock(&self.0).vars(1);
        self.value(at.tag, value, var)
    }

    /// The same value without history at any level.
    pub fn detach(self: &Arc<Self>, traced: &Traced, var: usize) -> Tensor {
        let value = traced.inner().detach();
        let mut list = lock(&self.0);
        let first = list.vars(1);
        list.equations.push(Equation { op: None, inputs: smallvec![Atom::Var(var)], first, outputs: 1 });
        drop(list);
        self.value(traced.tag, value, first)
    }

    /// The list as it is; it begins anew.
    pub fn take(&self) -> List {
        std::mem::take(&mut lock(&self.0))
    }

    /// The value at a variable.
    fn value(self: &Arc<Self>, tag: Tag, value: Tensor, var: usize) -> Tensor {
        let aval = value.aval();
        let payload = Payload::Linearized { value, var, map: self.clone() };
        Tensor::Traced(Arc::new(Traced { tag, aval, payload }))
    }
}

impl WriteObserver for LinearMap {
    fn before_write(&self, memory: &Array) -> Result<()> {
        let mut list = lock(&self.0);
        let List { constants, buffers, .. } = &mut *list;
        for at in buffers.remove(&memory.buffer().id()).unwrap_or_default() {
            let constant = &mut constants[at as usize];
            if let Some(copy) = saving::copied_from(&constant.value, constant.version, memory)? {
                *constant = Constant::new(copy);
            }
        }
        Ok(())
    }
}

/// Runs `op`, at least one input of which belongs to `at`, and writes it down.
pub fn process(at: &Arc<Interp>, op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    let mut values: SmallVec<[&Tensor; 4]> = SmallVec::new();
    let mut vars: SmallVec<[Option<usize>; 4]> = SmallVec::new();
    let mut map = None;
    for &x in inputs {
        match x.owned_by(at.tag).map(|t| &t.payload) {
            Some(Payload::Linearized { value, var, map: of }) => {
                values.push(value);
                vars.push(Some(*var));
                map = Some(of);
            }
            _ => {
                values.push(x);
                vars.push(None);
            }
        }
    }
    let outputs = bind_at(at.below(), op, &values)?;
    let Some(map) = map else { return Ok(outputs) };
    let mut list = lock(&map.0);
    let mut atoms = SmallVec::new();
    for (var, value) in vars.iter().zip(&values) {
        atoms.push(var.map_or_else(|| list.constant(value), Atom::Var));
    }
    let first = list.vars(outputs.len());
    list.equations.push(Equation { op: Some(op.clone()), inputs: atoms, first, outputs: outputs.len() });
    drop(list);
    Ok(outputs.into_iter().enumerate().map(|(i, y)| map.value(at.tag, y, first + i)).collect())
}
