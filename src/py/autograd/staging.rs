//! Programs for `wengert.jit`: what a region of Python code ran, run again without Python.

use crate::py::autograd::watched::PyWatched;
use crate::py::prelude::*;
use crate::tape::location::Location;
use crate::tape::saving;
use crate::tensor::Aval;
use crate::watch::cost;
use crate::watch::debug::Modes;
use crate::watch::program::{Outcome, Program};
use crate::watch::script;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// Where a region did what another run would not repeat: what, file, line.
type Refused = (String, Option<(String, u32, String)>);

/// A region that can be run again.
#[pyclass(name = "_Program", module = "wengert._core", frozen)]
pub struct PyProgram {
    pub(super) program: Program,
    arguments: Vec<Aval>,
    /// The memory that the function finds without its arguments.
    places: FxHashSet<usize>,
    /// Functions of the host, in the order of their calls.
    calls: Vec<Py<PyAny>>,
    /// What the function reads beside its arguments.
    watched: Py<PyWatched>,
}

/// The array of a tensor without history.
fn plain(t: &Tensor) -> Option<&Array> {
    t.concrete().filter(|_| t.edge().is_none())
}

/// A value leaves the core for the program, by the function `name`.
#[inline]
pub fn left(name: &str, t: &Tensor) -> Result<()> {
    if script::is_on() { note_left(name, t) } else { Ok(()) }
}

#[cold]
fn note_left(name: &str, t: &Tensor) -> Result<()> {
    match plain(&t.detach()) {
        Some(x) => script::left(name, x),
        None => {
            script::refuse(|| format!("{name}, which takes a value out of the program"));
            Ok(())
        }
    }
}

/// The number of writes to a tensor, which says something else in each run.
pub fn version(t: &Tensor) -> u32 {
    script::refuse(|| "the number of writes to a tensor".into());
    saving::version(t)
}

/// Says that a tensor holds again what it held when it had been written to `version` times.
#[pyfunction]
fn _stage_unwritten(t: Tensor, version: u32) {
    t.concrete().into_iter().for_each(|x| x.buffer().restore_version(version));
}

/// Writes down what this thread runs on these tensors, and finds the memory of `state` again at each run.
/// False if one of them has a history or a tangent, if a transform is active, or if the function also finds
/// the memory of an argument elsewhere.
#[pyfunction]
fn _stage_begin(arguments: Vec<Tensor>, state: Vec<Tensor>) -> PyResult<bool> {
    let Some(given) = arguments.iter().map(plain).collect::<Option<Vec<&Array>>>() else { return Ok(false) };
    let mut places = places_of(&state);
    places.extend(state.iter().filter_map(gradient_place));
    if !interp::is_plain() || given.iter().any(|x| places.contains(&x.buffer().id())) {
        return Ok(false);
    }
    script::begin(&given, &state.iter().filter_map(Tensor::concrete).collect::<Vec<_>>());
    Ok(true)
}

/// The memory of tensors.
fn places_of(state: &[Tensor]) -> FxHashSet<usize> {
    state.iter().filter_map(|t| Some(t.concrete()?.buffer().id())).collect()
}

/// The memory of a leaf's gradient.
fn gradient_place(t: &Tensor) -> Option<usize> {
    Some(t.edge()?.node.grad()?.as_ref()?.concrete()?.buffer().id())
}

/// Ends it. `arguments` and `state` are those of the beginning, `outputs` the results of the region, `calls`
/// the functions of the host that it called, `catches` whether it handles errors itself, and `watched` what
/// it reads beside its arguments. Returns the program, or why there is none.
#[pyfunction]
fn _stage_end<'py>(
    py: Python<'py>, arguments: Vec<Tensor>, state: Vec<Tensor>, outputs: Vec<Tensor>, calls: Vec<Py<PyAny>>,
    catches: bool, watched: Py<PyWatched>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(script) = script::end() else { return Err(value_error("internal: no region was begun")) };
    let refused = |(what, at): (String, Option<Location>)| -> PyResult<Bound<'py, PyAny>> {
        let refused: Refused = (what, at.map(Location::parts));
        Ok(refused.into_pyobject(py)?.into_any())
    };
    let mut arrays = Vec::with_capacity(outputs.len());
    for y in &outputs {
        let freed = y.edge().is_none_or(|edge| edge.node.is_freed());
        match y.detach().concrete() {
            Some(array) if freed => arrays.push(array.clone()),
            _ => {
                return refused((
                    "a result with a history, which a backward outside could follow".into(),
                    None,
                ));
            }
        }
    }
    let avals = arguments.iter().map(Tensor::aval).collect();
    let given = arguments.iter().map(|x| x.array("jit").cloned()).collect::<Result<Vec<Array>>>()?;
    match Program::new(script, &given, &arrays, catches) {
        Ok(program) => {
            let program = PyProgram { program, arguments: avals, places: places_of(&state), calls, watched };
            Ok(program.into_pyobject(py)?.into_any())
        }
        Err(refusal) => refused(refusal),
    }
}

/// The Python objects that the hooks of tensors hold.
#[pyfunction]
fn _stage_hooks(tensors: Vec<Tensor>, py: Python<'_>) -> Vec<Py<PyAny>> {
    let mut found = Vec::new();
    for edge in tensors.iter().filter_map(Tensor::edge) {
        if let Some(hooks) = edge.node.hooks() {
            hooks.held(&mut |held| {
                found.extend(held.object::<Py<PyAny>>().map(|object| object.clone_ref(py)));
            });
        }
    }
    found
}

/// Ends it without a result, and takes back what was done before a function of the host was called.
#[pyfunction]
fn _stage_undo() -> Result<()> {
    script::undo()
}

/// Whether this thread writes down what it runs.
#[pyfunction]
fn _is_staging() -> bool {
    script::is_on()
}

/// Whether a transform is around the call.
#[pyfunction]
fn _in_transform() -> bool {
    interp::in_transform()
}

/// Says that the region cannot be run again, and why.
#[pyfunction]
fn _stage_refuse(what: String) {
    script::refuse(|| what);
}

/// Calls a function of the host, which every run calls: nothing that it does is written down.
#[pyfunction]
fn _stage_call<'py>(py: Python<'py>, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    script::called();
    let _quiet = crate::watch::debug::suspend(Modes::SCRIPT);
    let measured = script::Measure::begin();
    cost::begin();
    let result = function.run(PyTuple::empty(py), None);
    let flops = cost::read().iter().map(|row| row.4).sum();
    cost::end();
    measured.end().of_call(flops);
    script::returned();
    result
}

/// Says that the last call changed nothing, as it does in other runs.
#[pyfunction]
fn _stage_idle() {
    script::idled();
}

impl PyProgram {
    /// Runs it on these tensors; nothing has changed if they are not such as the first ones.
    fn outcome(&self, py: Python<'_>, arguments: &[Bound<'_, PyTensor>]) -> PyResult<Outcome> {
        match plain_arrays(arguments)? {
            Some(arrays) if arrays.iter().zip(&self.arguments).all(|(x, aval)| is_such(x, aval)) => {
                self.outcome_of(py, &arrays)
            }
            _ => Ok(Outcome::Changed),
        }
    }

    /// Runs it on these arrays, which are such as the first ones.
    pub fn outcome_of(&self, py: Python<'_>, arguments: &[Array]) -> PyResult<Outcome> {
        let is_found = |x: &Array| self.places.contains(&x.buffer().id());
        if arguments.len() != self.arguments.len() || arguments.iter().any(is_found) || !interp::is_plain() {
            return Ok(Outcome::Changed);
        }
        let mut call = |number: usize| attached(|py| self.call(py, number));
        let elements = arguments.iter().map(Array::numel).sum();
        run(py, elements, || self.program.run(arguments, &mut call))
    }

    /// Calls a function of the host, which must leave alone what the rest of the program reads.
    fn call(&self, py: Python<'_>, number: usize) -> PyResult<()> {
        let Some(function) = self.calls.get(number) else { return Ok(()) };
        let before = self.program.gradients();
        let result = function.bind(py).run(PyTuple::empty(py), None)?;
        let changed = if !result.is_none() {
            "returns something, which it did not"
        } else if !self.program.reads_after(number) {
            return Ok(());
        } else if !self.program.keeps_gradients(number, &before) {
            "gives parameters other gradients, which it did not"
        } else if !self.watched.bind(py).try_borrow()?.is_as_it_was(py)? {
            "changes what the function reads, which it did not"
        } else {
            return Ok(());
        };
        let what = function.bind(py).repr()?;
        Err(PyRuntimeError::new_err(format!(
            "jit: a call {changed} when the program was made, and the rest of the program does not know of \
             it: {what}; what was done so far stays. Do the same at each call, or leave out jit"
        )))
    }
}

/// The arrays of tensors; `None` if one of them has a history, or is a value of a transform.
pub fn plain_arrays(tensors: &[Bound<'_, PyTensor>]) -> PyResult<Option<SmallVec<[Array; 8]>>> {
    let mut arrays = SmallVec::new();
    for object in tensors {
        let t = object.get().value()?;
        match plain(&t) {
            Some(array) => arrays.push(array.clone()),
            None => return Ok(None),
        }
    }
    Ok(Some(arrays))
}

/// Whether an array is what is known of it.
#[inline]
fn is_such(x: &Array, aval: &Aval) -> bool {
    x.dtype() == aval.dtype && x.device() == aval.device && x.shape() == aval.shape
}

/// A result of a program.
pub fn object(y: Array) -> PyTensor {
    PyTensor::from(Tensor::Array(y))
}

#[pymethods]
impl PyProgram {
    /// Runs it on these tensors, which must have the shapes, dtypes and devices of the first ones. Returns
    /// the results; None, and nothing changed, if what the region looked at is not what it was, or, as the
    /// second value says, if an operation failed.
    fn run(
        &self, py: Python<'_>, arguments: Vec<Bound<'_, PyTensor>>,
    ) -> PyResult<(Option<Vec<PyTensor>>, bool)> {
        match self.outcome(py, &arguments)? {
            Outcome::Changed => Ok((None, false)),
            Outcome::Failed => Ok((None, true)),
            Outcome::Done(outputs) => Ok((Some(outputs.into_iter().map(object).collect()), false)),
        }
    }

    /// The names of the operations of each group that runs as one, in order.
    fn groups(&self) -> Vec<Vec<&'static str>> {
        self.program.groups()
    }

    /// The names of the operations, in order.
    fn names(&self) -> Vec<&'static str> {
        self.program.names()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.watched)?;
        self.calls.iter().try_for_each(|function| visit.call(function))
    }
}

exports! {
    classes: PyProgram;
    functions: _stage_begin, _stage_end, _stage_hooks, _stage_undo, _is_staging, _in_transform, _stage_refuse,
        _stage_call, _stage_idle, _stage_unwritten
}
