//! Arguments whose memory a program takes (`donate_argnums` of `wengert.jit`). Their objects are left without
//! a value, and every use of one raises.

use crate::py::prelude::*;
use crate::py::tensor::same;
use crate::py::tensor::view::{ERA, View};
use crate::watch::program::{Donation, Outcome};
use smallvec::SmallVec;
use std::cell::Cell;

thread_local! {
    /// How many calls this thread is in whose functions may run again with the same arguments.
    static NESTING: Cell<usize> = const { Cell::new(0) };
}

/// A call whose function may run again with the same arguments (a jitted call, a checkpoint), until this is
/// dropped: calls inside of it take nothing.
pub struct NestedCall;

impl NestedCall {
    /// Begins the call.
    pub fn enter() -> NestedCall {
        NESTING.set(NESTING.get() + 1);
        NestedCall
    }
}

impl Drop for NestedCall {
    fn drop(&mut self) {
        NESTING.set(NESTING.get() - 1);
    }
}

/// How many such calls this thread is in.
pub fn nesting() -> usize {
    NESTING.get()
}

/// Whether this thread is in such a call.
#[pyfunction]
fn _is_nested() -> bool {
    nesting() > 0
}

/// Calls a function that may run again with the same arguments; calls inside of it take nothing.
#[pyfunction]
fn _nested<'py>(py: Python<'py>, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let _nested = NestedCall::enter();
    function.run(PyTuple::empty(py), None)
}

/// What an object was that has been donated.
struct Taken {
    argument: usize,
    /// What is left in its place.
    shell: Tensor,
    view: Option<View>,
}

/// Takes the memory from the objects of these arguments and runs `f` on `arrays`, which are theirs. If it is
/// not done, they have again what it has not given up.
pub fn donating(
    objects: &[Bound<'_, PyTensor>], donated: &[Donation], arrays: &mut [Array],
    f: impl FnOnce(&mut [Array]) -> PyResult<Outcome>,
) -> PyResult<Outcome> {
    let (mut taken, mut outcome) = (SmallVec::<[Taken; 4]>::new(), Ok(()));
    for Donation { argument, .. } in donated {
        match take(&objects[*argument]) {
            Ok(found) => taken.extend(found.map(|(shell, view)| Taken { argument: *argument, shell, view })),
            Err(error) => outcome = Err(error),
        }
    }
    let outcome = outcome.and_then(|()| f(arrays));
    if !matches!(outcome, Ok(Outcome::Done(_))) {
        for taken in taken.into_iter().filter(|taken| arrays[taken.argument].numel() > 0) {
            give_back(&objects[taken.argument], taken, arrays);
        }
    }
    outcome
}

/// Takes the memory of an object that holds an array without history: what is left in its place, and its link
/// to the tensor that it is a view of; `None` for all others.
fn take(object: &Bound<'_, PyTensor>) -> PyResult<Option<(Tensor, Option<View>)>> {
    let donated = match &*object.get().value()? {
        t @ Tensor::Array(x) if x.numel() > 0 => t.to_donated()?,
        _ => return Ok(None),
    };
    let exchanged = object.get().change(|state| {
        // Views of it go on without it.
        state.epoch = state.epoch.wrapping_add(ERA);
        (std::mem::replace(&mut state.t, donated.clone()), state.view.take())
    });
    // A tensor that only this view knew has gone with it.
    // SAFETY: the object exists, and this thread is attached.
    let is_known = |view: &View| unsafe { pyo3::ffi::Py_REFCNT(view.root.as_ptr()) } > 1;
    Ok(exchanged.map(|(_, view)| (donated, view.filter(is_known))))
}

/// Gives an object what it held, unless it was given something else meanwhile.
fn give_back(object: &Bound<'_, PyTensor>, taken: Taken, arrays: &[Array]) {
    let Taken { argument, shell, mut view } = taken;
    loop {
        let done = object.get().change(|state| {
            same(&state.t, &shell).then(|| {
                (state.view, state.epoch) = (view.take(), state.epoch.wrapping_sub(ERA));
                std::mem::replace(&mut state.t, arrays[argument].clone().into())
            })
        });
        if done.is_some() {
            return;
        }
        // Another thread reads it.
        object.py().detached(std::thread::yield_now);
    }
}

/// Takes the memory of these tensors, which a call was given that ran as Python.
#[pyfunction]
fn _donate(tensors: Vec<Bound<'_, PyTensor>>) -> PyResult<()> {
    tensors.iter().try_for_each(|object| take(object).map(drop))
}

exports! { functions: _donate, _is_nested, _nested }
