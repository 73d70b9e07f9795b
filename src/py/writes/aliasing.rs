//! Memory shared between a custom function, its rules and their callers; the limit to nested calls of rules.

use crate::interp::eval;
use crate::ops::views::strided::Part;
use crate::ops::writes::inplace::{is_recorded, recorded_part};
use crate::ops::writes::writable::check_leaf;
use crate::process::on_drop::OnDrop;
use crate::py::prelude::*;
use crate::py::tensor::{real_complex::in_kind, view::link, view::written};
use crate::py::writes::inplace::overwrite;
use crate::tape::saving;
use crate::tensor::{Payload, over_memory};
use pyo3::exceptions::PyRecursionError;
use smallvec::SmallVec;
use std::cell::Cell;

/// How many rules may run nested in each other on one thread. Each takes some kilobytes of stack, and Python
/// limits only its own calls.
const DEEPEST: usize = 100;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Counts a running rule of `name` until the guard is dropped; an error beyond the limit.
pub fn deeper(name: &str) -> Result<OnDrop<impl FnMut() + use<>>> {
    let depth = DEPTH.get();
    if depth >= DEEPEST {
        return Err(foreign(PyRecursionError::new_err(format!(
            "{name}: rules of custom functions are running inside each other, {DEEPEST} deep; a rule asks \
             for a derivative that needs the rule itself"
        ))));
    }
    DEPTH.set(depth + 1);
    Ok(OnDrop(|| DEPTH.set(DEPTH.get().saturating_sub(1))))
}

/// Whether two tensors have the same buffer.
#[inline]
fn same_memory(a: &Tensor, b: &Tensor) -> bool {
    matches!((saving::bottom(a), saving::bottom(b)), (Some(a), Some(b)) if a.buffer().same(b.buffer()))
}

/// Returns the result `out`, or a copy of it if it shares memory with the operand `x`.
#[inline]
pub fn unaliased(out: Tensor, x: &Tensor) -> Result<Tensor> {
    if same_memory(&out, x) { out.copied() } else { Ok(out) }
}

/// Whether each output of a forward shares its memory with an input or another output. Outputs that are
/// inputs marked as dirty own their memory.
pub fn shared(x: &[Tensor], y: &[Tensor], dirty: &[usize]) -> Vec<bool> {
    let other = |i: usize| y.iter().enumerate().filter(move |(j, _)| *j != i).map(|(_, t)| t);
    let is =
        |(i, t): (usize, &Tensor)| !dirty.contains(&i) && x.iter().chain(other(i)).any(|o| same_memory(o, t));
    y.iter().enumerate().map(is).collect()
}

/// Copies the memory of a gradient if it is shared with a tensor that the rule read.
pub fn apart(g: Tensor, saved: &[Tensor]) -> Result<Tensor> {
    match saving::bottom(&g) {
        Some(memory) if saved.iter().any(|s| same_memory(s, &g)) => {
            Ok(over_memory(&g, &eval::copied(memory)?))
        }
        _ => Ok(g),
    }
}

/// Detects writes of a rule to cotangents that may have other owners.
pub struct Watch(SmallVec<[(Tensor, u32); 1]>);

impl Watch {
    /// Begins to watch the cotangents whose memory has other owners.
    pub fn begin(g: &[Option<Tensor>]) -> Watch {
        let held = |g: &&Tensor| saving::bottom(g).is_some_and(|memory| !memory.is_alone());
        Watch(g.iter().flatten().filter(held).map(|g| (g.clone(), saving::version(g))).collect())
    }

    /// Raises if the rule wrote to a watched cotangent.
    pub fn end(self, name: &str) -> Result<()> {
        let changed = self.0.iter().find(|(g, version)| saving::version(g) != *version);
        changed.map_or(Ok(()), |(g, _)| {
            Err(Error::autodiff(format!(
                "{name}: the reverse rule wrote in place to a cotangent of shape {} that other parts of the \
                 graph use as well; write to a clone() of it",
                g.shape()
            )))
        })
    }
}

/// Whether something differentiates this tensor, at any level.
#[pyfunction]
fn _is_differentiated(tensor: Tensor) -> bool {
    tensor.is_differentiated()
}

/// Makes `tensor` stand for `result`, which a custom function wrote into its memory.
#[pyfunction]
fn _take_over(tensor: &Bound<'_, PyTensor>, result: Tensor, name: &str) -> PyResult<()> {
    let new = recorded_part(result);
    let whole = link(tensor);
    let root = whole.as_ref().map_or(tensor, |(root, _)| root);
    let old = root.read().t.clone();
    if interp::is_grad_enabled() && check_leaf(name, &old).is_err() {
        return Err(Error::autodiff(format!(
            "{name}: a leaf of shape {} that requires a gradient (or a view of one) cannot be marked as \
             dirty while recording; call the function under no_grad(), or of a clone()",
            old.shape()
        ))
        .into());
    }
    let memory = old.concrete().filter(|_| new.concrete().is_some());
    let Some(memory) = memory else { return overwrite(tensor, name, new) };
    if !is_recorded(&old, &new) {
        // The elements were written already, and the history stays.
        return Ok(());
    }
    let Some((_, part)) = &whole else { return written(root, new) };
    // The root becomes a function of the written part; its memory and version stay.
    let put = |old: &Tensor| Ok(Some(old.put(part, &new)?));
    let next = in_kind(&old, new.dtype().is_complex(), put)?;
    next.map_or(Ok(()), |next| written(root, over_memory(&next, memory)))
}

/// Whether two values are equal at every level: the same part of the same memory, with the same history.
fn alike(a: &Tensor, b: &Tensor) -> bool {
    let both = match (a, b) {
        (Tensor::Array(a), Tensor::Array(b)) => {
            return a.buffer().same(b.buffer()) && a.dtype() == b.dtype() && Part::of(a, 0) == Part::of(b, 0);
        }
        (Tensor::Traced(a), Tensor::Traced(b)) if Arc::ptr_eq(a, b) => return true,
        (Tensor::Traced(a), Tensor::Traced(b)) if a.tag == b.tag => (a, b),
        _ => return false,
    };
    let same = match (&both.0.payload, &both.1.payload) {
        (Payload::Taped { node, index, .. }, Payload::Taped { node: other, index: at, .. }) => {
            Arc::ptr_eq(node.node(), other.node()) && index == at
        }
        (Payload::Dual { tangent: a, .. }, Payload::Dual { tangent: b, .. }) => match (a, b) {
            (Some(a), Some(b)) => alike(a, b),
            (a, b) => a.is_none() && b.is_none(),
        },
        (Payload::Batched { axis, .. }, Payload::Batched { axis: other, .. }) => axis == other,
        _ => false,
    };
    same && alike(both.0.inner(), both.1.inner())
}

/// [`alike`] of two tensors.
#[pyfunction]
fn _is_same(a: Tensor, b: Tensor) -> bool {
    alike(&a, &b)
}

/// Whether `copy`, a copy that had the value `made`, was written since.
#[pyfunction]
fn _is_written(copy: Tensor, made: Tensor) -> bool {
    saving::version(&copy) != 0 || !alike(&copy, &made)
}

exports! { functions: _is_differentiated, _is_same, _is_written, _take_over }
