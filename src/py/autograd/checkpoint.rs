//! `utils.checkpoint`: a function of Python objects that backward runs a second time, on the same arguments:
//! one that was written since the first run is an error, as it is for saved tensors.

use crate::autodiff::checkpoint;
use crate::py::autograd::donating::NestedCall;
use crate::py::prelude::*;
use crate::tape::host_ref::HostRef;
use crate::tape::saving;

/// How deep lists, tuples and dictionaries are searched for tensors; one may contain itself.
const DEPTH: usize = 8;

/// A tensor among the arguments, and the memory it had before the first run.
struct Argument {
    /// The address of the object, which the arguments keep alive.
    object: usize,
    /// The id of its buffer.
    buffer: usize,
    version: u32,
}

/// A tensor and the expression that leads to it, such as `args[0]['x']`.
type Placed<'py> = (String, Bound<'py, PyTensor>);

/// Adds the tensors in `object`, which stands at `place`, to `found`.
fn search<'py>(object: &Bound<'py, PyAny>, place: String, depth: usize, found: &mut Vec<Placed<'py>>) {
    if let Ok(tensor) = object.cast::<PyTensor>() {
        return found.push((place, tensor.clone()));
    }
    let mut inside = |key: String, item: Bound<'py, PyAny>| {
        if depth > 0 {
            search(&item, format!("{place}[{key}]"), depth - 1, found);
        }
    };
    if let Ok(list) = object.cast::<PyList>() {
        list.iter().enumerate().for_each(|(i, item)| inside(i.to_string(), item));
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        tuple.iter().enumerate().for_each(|(i, item)| inside(i.to_string(), item));
    } else if let Ok(dict) = object.cast::<PyDict>() {
        for (key, item) in dict.iter() {
            inside(key.repr().map_or_else(|_| "?".into(), |name| name.to_string()), item);
        }
    }
}

/// Returns the tensors among the arguments of a call.
fn arguments<'py>(args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> Vec<Placed<'py>> {
    let mut found = Vec::new();
    search(args, "args".into(), DEPTH, &mut found);
    if let Some(kwargs) = kwargs {
        search(kwargs, "kwargs".into(), DEPTH, &mut found);
    }
    found
}

/// Records buffer and version of the arguments before the first run.
fn noted(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<Argument>> {
    let mut noted = Vec::new();
    for (_, tensor) in arguments(args, kwargs) {
        if let Some(memory) = saving::bottom(&value(&tensor)?) {
            let (buffer, version) = (memory.buffer().id(), memory.buffer().version());
            noted.push(Argument { object: tensor.as_ptr() as usize, buffer, version });
        }
    }
    Ok(noted)
}

/// Raises if an argument was written or exchanged since the first run.
fn check(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>, before: &[Argument]) -> PyResult<()> {
    if before.is_empty() {
        return Ok(());
    }
    for (place, tensor) in arguments(args, kwargs) {
        let (t, object) = (value(&tensor)?, tensor.as_ptr() as usize);
        let (Some(memory), Some(then)) = (saving::bottom(&t), before.iter().find(|a| a.object == object))
        else {
            continue;
        };
        let buffer = memory.buffer();
        let how = if buffer.id() != then.buffer {
            "was given other data".into()
        } else if buffer.version() != then.version {
            format!(
                "was modified in place{} (version {}, expected {})",
                saving::by(buffer.writer()),
                buffer.version(),
                then.version
            )
        } else {
            continue;
        };
        return Err(Error::checkpoint(format!(
            "checkpoint: the argument {place} of shape {} {how} after the function began, so running it \
             again would give another gradient; write x = x + ... instead of an in-place operation, or pass \
             a clone()",
            t.shape()
        ))
        .into());
    }
    Ok(())
}

/// Calls `function(*args, **kwargs)` without keeping what its operations save; backward runs it again.
#[pyfunction]
#[pyo3(signature = (function, args, kwargs=None))]
fn _checkpoint<'py>(
    function: &Bound<'py, PyAny>, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    type Call<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>);
    let before = noted(args, kwargs)?;
    let call = Arc::new((function, args, kwargs).into_pyobject(function.py())?.into_any().unbind());
    let held = HostRef::new(call.clone());
    let rerun = move || {
        attached(|py| {
            let (function, args, kwargs): Call<'_> = call.bind(py).extract()?;
            check(&args, kwargs.as_ref(), &before)?;
            let _nested = NestedCall::enter();
            function.run(args, kwargs.as_ref()).map(|_| ())
        })
    };
    let forward = || {
        let _nested = NestedCall::enter();
        function.run(args.clone(), kwargs).map_err(foreign)
    };
    Ok(checkpoint::checkpoint(forward, Box::new(rerun), Some(held))?)
}

exports! { functions: _checkpoint }
