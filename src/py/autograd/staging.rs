//! Programs for `wengert.jit`: what a region of Python code ran, run again without Python.

use crate::array::random;
use crate::interp::ROOT_TAG;
use crate::py::autograd::donating::{NestedCall, donating, nesting};
use crate::py::autograd::marks::{arrays_of, is_independent, is_of};
use crate::py::autograd::recorded::{self, History};
use crate::py::autograd::watched::PyWatched;
use crate::py::data::dtype::dtype_of;
use crate::py::prelude::*;
use crate::tape::location::{self, Location};
use crate::tape::saving;
use crate::tensor::Aval;
use crate::watch::debug::{Modes, modes};
use crate::watch::program::{Donation, Outcome, Program, recorded as with_backward};
use crate::watch::script;
use crate::watch::{absent, cost};
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use rustc_hash::FxHashSet;

/// Where a region did what another run would not repeat: what, file, line.
type Refused = (String, Option<(String, u32, String)>);

/// A region that can be run again.
#[pyclass(name = "_Program", module = "wengert._core", frozen)]
pub struct PyProgram {
    pub(super) program: Program,
    /// The backward, if results have a history.
    history: Option<Arc<History>>,
    arguments: Vec<Aval>,
    /// Whether it differentiates by what was there before the call, as arguments.
    derives: bool,
    /// The memory that the function finds without its arguments.
    places: FxHashSet<usize>,
    /// Functions of the host, in the order of their calls.
    calls: Vec<Py<PyAny>>,
    /// What the function reads beside its arguments.
    watched: Py<PyWatched>,
}

/// The array of a tensor without history.
pub fn plain(t: &Tensor) -> Option<&Array> {
    t.concrete().filter(|_| t.edge().is_none())
}

/// A value leaves the core for the program, by the function `name`.
#[inline]
pub fn left(name: &str, t: &Tensor) -> Result<()> {
    if modes().touches(Modes::SCRIPT.and(Modes::SHAPES)) { note_left(name, t) } else { Ok(()) }
}

#[cold]
fn note_left(name: &str, t: &Tensor) -> Result<()> {
    match plain(&t.detach()) {
        Some(x) => absent::check(name, x).and_then(|()| script::left(name, x)),
        None => {
            script::refuse(|| format!("{name}, which takes values out of the program; {}", script::INSTEAD));
            Ok(())
        }
    }
}

/// The number of writes to a tensor, which says something else in each run.
pub fn version(t: &Tensor) -> u32 {
    script::refuse(|| "the number of writes to a tensor; ask for it after the call".into());
    saving::version(t)
}

/// Says that a tensor holds again what it held when it had been written to `version` times.
#[pyfunction]
fn _stage_unwritten(t: Tensor, version: u32) {
    t.concrete().into_iter().for_each(|x| x.buffer().restore_version(version));
}

/// Writes down what this thread runs on these tensors, and finds the memory of `state` again at each run.
/// False if one of them is a value of a transform, but for arguments that its tape alone records; if another
/// transform is around that; or if the function also finds the memory of an argument elsewhere.
#[pyfunction]
fn _stage_begin(arguments: Vec<Tensor>, state: Vec<Tensor>) -> PyResult<bool> {
    let values: Vec<Tensor> = arguments.iter().map(Tensor::detach).collect();
    let Some(given) = values.iter().map(plain).collect::<Option<Vec<&Array>>>() else { return Ok(false) };
    let mut places = places_of(&state);
    places.extend(state.iter().filter_map(gradient_place));
    let Some(tape) = interp::program_tape() else { return Ok(false) };
    // Inside of a transform, tensors of outside have another history than its own, or one that ends with it.
    let is_strange = tape != ROOT_TAG
        && (!arguments.iter().all(|x| is_of(x, tape)) || state.iter().any(|x| x.traced().is_some()));
    if is_strange || given.iter().any(|x| places.contains(&x.buffer().id())) {
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
/// it reads beside its arguments; `name` is its name, `donated` are the numbers of the arguments whose memory
/// a run may take. Returns the program, or why there is none.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "these are what a program is made of")]
fn _stage_end<'py>(
    py: Python<'py>, arguments: Vec<Tensor>, state: Vec<Tensor>, outputs: Vec<Tensor>, calls: Vec<Py<PyAny>>,
    catches: bool, watched: Py<PyWatched>, name: &str, donated: Vec<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let pulled = script::pulled();
    let Some(script) = script::end() else { return Err(value_error("internal: no region was begun")) };
    let refused = |(what, at): (String, Option<Location>)| -> PyResult<Bound<'py, PyAny>> {
        let refused: Refused = (what, at.map(Location::parts));
        Ok(refused.into_pyobject(py)?.into_any())
    };
    // The gradient of an argument would be given to that of this call.
    let own = |leaf: &script::Touched| {
        let mut edges = arguments.iter().filter_map(Tensor::edge);
        edges.any(|edge| leaf.node.as_ptr() == Arc::as_ptr(&edge.node))
    };
    if script.leaves.iter().any(own) {
        return refused((
            "a backward to an argument, inside of the function; take its gradient by grad(), or detach it"
                .into(),
            None,
        ));
    }
    let derives = script.derives;
    if derives && script.refusal.is_none() && !arguments.iter().all(is_independent) {
        return refused((
            "derivatives beside an argument that has hooks or was computed before; take them by grad(), or \
             detach it"
                .into(),
            None,
        ));
    }
    let mut arrays = Vec::with_capacity(outputs.len());
    for y in &outputs {
        match y.detach().concrete() {
            Some(array) if pulled || recorded::is_without_history(&outputs) => arrays.push(array.clone()),
            _ if script.refusal.is_some() => break,
            _ => return refused(("a result with a history".into(), None)),
        }
    }
    let avals = arguments.iter().map(Tensor::aval).collect();
    let given = arguments.iter().map(|x| x.detach().array("jit").cloned()).collect::<Result<Vec<Array>>>()?;
    let places = places_of(&state);
    let made = match pulled {
        true => with_backward(script, &given, &arrays, catches).map(|(forward, found)| {
            let history = recorded::history(name, found, &outputs, state, arguments.len());
            (forward, Some(history))
        }),
        false => {
            let donated = Donation::of(&given, &donated);
            Program::new(script, &given, &arrays, catches, donated).map(|program| (program, None))
        }
    };
    match made {
        Ok((program, history)) => {
            let program = PyProgram { program, history, arguments: avals, derives, places, calls, watched };
            Ok(program.into_pyobject(py)?.into_any())
        }
        Err(refusal) => refused(refusal),
    }
}

/// Calls a function while operations make shapes without values.
#[pyfunction]
fn _without_values<'py>(py: Python<'py>, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    absent::without_values(|| function.run(PyTuple::empty(py), None))
}

/// A tensor without values.
#[pyfunction]
fn _absent(shape: Vec<usize>, dtype: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    Ok(object(absent::absent(crate::array::shape::Shape::new(&shape)?, dtype_of(dtype)?)?))
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

/// Whether a call is inside of a transform.
#[pyfunction]
fn _in_transform() -> bool {
    interp::in_transform()
}

/// Whether calls of programs are recorded here: with no transform or autocast around, or with one tape alone.
#[pyfunction]
fn _records_programs() -> bool {
    interp::program_tape().is_some()
}

/// Says that the region cannot be run again, and why: by the line that runs, or by this function.
#[pyfunction]
#[pyo3(signature = (what, function=None))]
fn _stage_refuse(what: String, function: Option<(String, u32, String)>) {
    let place = function.map(|(file, line, name)| Location::new(location::site(&file, &name), line));
    script::refuse_at(|| what, || place.or_else(location::now));
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
        match arrays_of(arguments)? {
            Some((mut arrays, _)) if arrays.iter().zip(&self.arguments).all(|(x, aval)| is_such(x, aval)) => {
                self.outcome_of(py, &mut arrays, arguments, 1)
            }
            _ => Ok(Outcome::Changed),
        }
    }

    /// Runs it on these arrays, of these objects, which are such as the first ones. If this call is inside of
    /// no other, there are `nested` calls (its own, if Python began it), and it takes the memory of donated
    /// arguments.
    pub fn outcome_of(
        &self, py: Python<'_>, arguments: &mut [Array], objects: &[Bound<'_, PyTensor>], nested: usize,
    ) -> PyResult<Outcome> {
        let is_found = |x: &Array| self.places.contains(&x.buffer().id());
        let Some(tape) = interp::program_tape() else { return Ok(Outcome::Changed) };
        if arguments.len() != self.arguments.len() || arguments.iter().any(is_found) {
            return Ok(Outcome::Changed);
        }
        for x in objects.iter().filter(|_| self.derives) {
            if !is_independent(&*x.get().value()?) {
                return Ok(Outcome::Changed);
            }
        }
        let mut call = |number: usize| attached(|py| self.call(py, number));
        let elements = arguments.iter().map(Array::numel).sum();
        let mut run = |arguments: &mut [Array]| run(py, elements, || self.program.run(arguments, &mut call));
        match tape == ROOT_TAG && !self.program.donated.is_empty() && nesting() == nested {
            true => donating(objects, &self.program.donated, arguments, run),
            false => run(arguments),
        }
    }

    /// The results of a run on these tensors, which began at this state of the random numbers.
    pub fn results(
        &self, outputs: Vec<Array>, arguments: &[Bound<'_, PyTensor>], random: random::State,
        again: Option<Py<PyAny>>,
    ) -> PyResult<Vec<PyTensor>> {
        let Some(history) = &self.history else { return Ok(outputs.into_iter().map(object).collect()) };
        let mut given = Vec::with_capacity(arguments.len());
        for x in arguments {
            given.push(x.get().value()?.into_owned());
        }
        let again = again.ok_or_else(recorded::without_function)?;
        let outputs = history.record(outputs, &given, random, again)?;
        Ok(outputs.into_iter().map(PyTensor::from).collect())
    }

    /// Calls a function of the host, which must leave alone what the rest of the program reads.
    fn call(&self, py: Python<'_>, number: usize) -> PyResult<()> {
        let Some(function) = self.calls.get(number) else { return Ok(()) };
        let _nested = NestedCall::enter();
        // Nothing is compared where nothing follows that could read it.
        let before = self.program.reads_after(number).then(|| self.program.gradients());
        let result = function.bind(py).run(PyTuple::empty(py), None)?;
        let changed = if !result.is_none() {
            "returns something, which it did not"
        } else if before.is_none() {
            return Ok(());
        } else if before.is_some_and(|before| !self.program.keeps_gradients(number, &before)) {
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

/// Whether an array is what is known of it.
#[inline]
fn is_such(x: &Array, aval: &Aval) -> bool {
    x.dtype() == aval.dtype && x.device() == aval.device && x.shape() == aval.shape
}

/// A result of a program.
fn object(y: Array) -> PyTensor {
    PyTensor::from(Tensor::Array(y))
}

#[pymethods]
impl PyProgram {
    /// Runs it on these tensors, which must have the shapes, dtypes and devices of the first ones. Returns
    /// the results; None, and nothing changed, if what the region looked at is not what it was, or, as the
    /// second value says, if an operation failed. `again` computes gradients of results with a history by the
    /// function itself.
    #[pyo3(signature = (arguments, again=None))]
    fn run(
        &self, py: Python<'_>, arguments: Vec<Bound<'_, PyTensor>>, again: Option<Py<PyAny>>,
    ) -> PyResult<(Option<Vec<PyTensor>>, bool)> {
        let random = random::state();
        match self.outcome(py, &arguments)? {
            Outcome::Changed => Ok((None, false)),
            Outcome::Failed => Ok((None, true)),
            Outcome::Done(outputs) => Ok((Some(self.results(outputs, &arguments, random, again)?), false)),
        }
    }

    /// Whether results have a history.
    #[getter]
    pub fn has_history(&self) -> bool {
        self.history.is_some()
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
    functions: _stage_begin, _stage_end, _stage_hooks, _stage_undo, _is_staging, _in_transform,
        _records_programs, _absent, _without_values, _stage_refuse, _stage_call, _stage_idle, _stage_unwritten
}
