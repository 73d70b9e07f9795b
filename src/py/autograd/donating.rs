//! Arguments whose memory a program takes (`donate_argnums` of `wengert.jit`). Their objects are left without
//! a value, and every use of one raises.

use crate::py::prelude::*;
use crate::py::tensor::view::{ERA, View};
use crate::watch::program::Outcome;
use smallvec::SmallVec;

/// Takes the memory from the objects with these numbers and runs `f` on `arrays`, which are theirs. If it is
/// not done, they have again what it has not given up.
pub fn donating(
    objects: &[Bound<'_, PyTensor>], numbers: &[usize], arrays: &mut [Array],
    f: impl FnOnce(&mut [Array]) -> PyResult<Outcome>,
) -> PyResult<Outcome> {
    let mut taken = SmallVec::<[(usize, Option<View>); 4]>::new();
    for &k in numbers {
        taken.extend(take(&objects[k])?.map(|view| (k, view)));
    }
    let outcome = f(arrays);
    if !matches!(outcome, Ok(Outcome::Done(_))) {
        for (k, view) in taken.into_iter().filter(|(k, _)| arrays[*k].numel() > 0) {
            objects[k].get().change(|state| {
                (state.view, state.epoch) = (view, state.epoch.wrapping_sub(ERA));
                std::mem::replace(&mut state.t, arrays[k].clone().into())
            });
        }
    }
    outcome
}

/// Takes the memory of an object that holds an array without history, and its link to the tensor that it is a
/// view of; `None` for all others.
fn take(object: &Bound<'_, PyTensor>) -> PyResult<Option<Option<View>>> {
    let donated = match &object.read().t {
        t @ Tensor::Array(x) if x.numel() > 0 => t.to_donated()?,
        _ => return Ok(None),
    };
    let exchanged = object.get().change(|state| {
        // Views of it go on without it.
        state.epoch = state.epoch.wrapping_add(ERA);
        (std::mem::replace(&mut state.t, donated), state.view.take())
    });
    Ok(exchanged.map(|(_, view)| view))
}

/// Takes the memory of these tensors, which a call was given that ran as Python.
#[pyfunction]
fn _donate(tensors: Vec<Bound<'_, PyTensor>>) -> PyResult<()> {
    tensors.iter().try_for_each(|object| take(object).map(drop))
}

exports! { functions: _donate }
