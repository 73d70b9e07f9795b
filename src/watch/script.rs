//! Writes down every operation that runs on arrays, and runs the list again.
//!
//! A script holds what passed `bind` during a region and nothing else, so running it again does what the
//! region did if, and only if, all that made or changed a value was an operation. What is no part of an
//! operation ([`crate::op::AtCall`]) may be given anew.
//!
//! Writing is a mode of a thread (`Modes::SCRIPT`); without it, nothing of this file runs.

use crate::array::Array;
use crate::array::buffer::Buffer;
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::error::{Error, Result};
use crate::op::{Kernel, Op};
use crate::watch::debug::{Modes, modes, set_modes};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// Memory made during a script begins with a version of its own, a multiple of this: it tells the memory from
/// other memory at the same address, before or after it.
const VERSIONS: u32 = 1 << 12;

/// So much memory has versions of its own.
const MOST: usize = u32::MAX as usize / VERSIONS as usize;

/// How an array lies in the memory with this number.
struct View {
    memory: usize,
    shape: Shape,
    strides: Vec<isize>,
    offset: usize,
    dtype: DType,
}

/// An operation that ran.
struct Step {
    op: Op,
    inputs: Vec<View>,
    outputs: Vec<View>,
    /// Whether the outputs were written into memory that existed.
    into: bool,
}

/// The operations of a region, in the order in which they ran.
#[derive(Default)]
pub struct Script {
    steps: Vec<Step>,
    /// Memory that existed before, or was made by no operation: a number, data from outside; it lives as long
    /// as the script. `None` is memory that a step makes.
    memory: Vec<Option<Buffer>>,
    /// The number of the memory at an address, and the version in which it was last seen.
    known: FxHashMap<usize, (usize, u32)>,
}

thread_local! {
    static SCRIPT: RefCell<Option<Script>> = const { RefCell::new(None) };
}

/// Begins a script; one that this thread was writing is dropped.
pub fn begin() {
    SCRIPT.set(Some(Script::default()));
    set_modes(modes().and(Modes::SCRIPT));
}

/// Ends the script of this thread.
pub fn end() -> Option<Script> {
    set_modes(modes().without(Modes::SCRIPT));
    SCRIPT.take()
}

/// Writes down that `op` made `outputs` of the arrays `x`.
pub fn ran(op: &Op, x: &[&Array], outputs: &[Array]) {
    let shares = |y: &Array| x.iter().any(|x| x.buffer().same(y.buffer()));
    let written = matches!(op, Op::Put(_) | Op::PutRows(_)) && outputs.iter().any(shares);
    if written {
        return wrote(op, x, outputs);
    }
    if outputs.iter().all(shares) && !outputs.is_empty() {
        // A view: where its elements lie says it all.
        return;
    }
    with(|script| {
        let inputs = script.views(x.iter().copied());
        outputs.iter().filter(|y| !shares(y)).for_each(|y| script.made(y));
        let outputs = script.views(outputs);
        script.steps.push(Step { op: op.clone(), inputs, outputs, into: false });
    });
}

/// Writes down that `op` of the arrays `x` was written into `out`.
pub fn wrote(op: &Op, x: &[&Array], out: &[Array]) {
    with(|script| {
        let (inputs, outputs) = (script.views(x.iter().copied()), script.views(out));
        script.steps.push(Step { op: op.clone(), inputs, outputs, into: true });
    });
}

fn with(f: impl FnOnce(&mut Script)) {
    SCRIPT.with_borrow_mut(|script| {
        if let Some(script) = script {
            f(script);
        }
    });
}

impl Script {
    /// Numbers memory that an operation made.
    fn made(&mut self, y: &Array) {
        let first = (self.memory.len() as u32 + 1).wrapping_mul(VERSIONS);
        y.buffer().set_version(first);
        self.known.insert(y.buffer().id(), (self.memory.len(), first));
        self.memory.push(None);
    }

    fn views<'a>(&mut self, arrays: impl IntoIterator<Item = &'a Array>) -> Vec<View> {
        arrays.into_iter().map(|x| self.view(x)).collect()
    }

    fn view(&mut self, x: &Array) -> View {
        let (id, version) = (x.buffer().id(), x.buffer().root_version());
        let seen = self.known.get_mut(&id).filter(|(memory, last)| {
            self.memory[*memory].is_some() || version.wrapping_sub(*last) < VERSIONS
        });
        let memory = match seen {
            Some((memory, last)) => {
                *last = version;
                *memory
            }
            None => {
                self.known.insert(id, (self.memory.len(), version));
                self.memory.push(Some(x.buffer().clone()));
                self.memory.len() - 1
            }
        };
        View { memory, shape: x.shape(), strides: x.strides(), offset: x.offset(), dtype: x.dtype() }
    }

    /// The names of the operations, in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.steps.iter().map(|step| step.op.name()).collect()
    }

    /// Runs all operations again on the memory that they read and wrote, each after `change` edited a copy.
    pub fn run(&self, change: impl Fn(&mut Op)) -> Result<()> {
        if self.memory.len() > MOST {
            return Err(Error::value(format!("internal: a script of more than {MOST} pieces of memory")));
        }
        let mut memory = self.memory.clone();
        let arrays = |memory: &[Option<Buffer>], views: &[View]| -> Result<Vec<Array>> {
            views.iter().map(|view| view.of(memory)).collect()
        };
        for Step { op, inputs, outputs, into } in &self.steps {
            let (mut op, x) = (op.clone(), arrays(&memory, inputs)?);
            change(&mut op);
            let x: Vec<&Array> = x.iter().collect();
            if *into {
                let out = arrays(&memory, outputs)?;
                op.eval_into(&x, &out.iter().collect::<Vec<_>>())?;
                out.iter().for_each(|out| out.buffer().written_by(op.name()));
                continue;
            }
            for (view, y) in outputs.iter().zip(op.eval(&x)?) {
                if self.memory[view.memory].is_none() {
                    memory[view.memory] = Some(y.buffer().clone());
                }
            }
        }
        Ok(())
    }
}

impl View {
    fn of(&self, memory: &[Option<Buffer>]) -> Result<Array> {
        let buffer = memory[self.memory].clone().ok_or_else(|| {
            Error::value(format!("internal: memory {} of a script is read before it is made", self.memory))
        })?;
        Array::strided(buffer, self.shape, &self.strides, self.offset, self.dtype)
    }
}
