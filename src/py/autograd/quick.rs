//! Calls whose arguments are all tensors, given by position: their program is found and run without Python.

use crate::array::defaults;
use crate::cpu::run::threads::num_threads;
use crate::py::autograd::marks::{Marks, marks_of};
use crate::py::autograd::staging::{PyProgram, object};
use crate::py::autograd::watched::PyWatched;
use crate::py::prelude::*;
use crate::tape::saving::is_packing;
use crate::watch::debug::{Modes, modes};
use crate::watch::program::Outcome;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::types::PyNotImplemented;
use smallvec::SmallVec;

/// The settings that decide what operations mean, and at which a program was made.
#[derive(Clone, Copy, PartialEq)]
struct Settings {
    records: bool,
    inference: bool,
    float: DType,
    device: Device,
    threads: usize,
    packing: bool,
}

impl Settings {
    /// Those of this thread; `None` under autocast and modes of debugging.
    fn now() -> Option<Settings> {
        (modes() == Modes::NONE && !interp::autocasting()).then(|| Settings {
            records: interp::is_grad_enabled(),
            inference: crate::array::buffer::inference(),
            float: defaults::float(),
            device: defaults::device(),
            threads: num_threads(),
            packing: is_packing(),
        })
    }
}

/// A program for calls with such tensors.
struct Known {
    marks: Marks,
    settings: Settings,
    /// Other settings, and what the function finds without its arguments.
    watched: [Py<PyWatched>; 2],
    program: Py<PyProgram>,
    /// Which of the program's results the function returns; otherwise how it puts its results together.
    one: Option<usize>,
    result: Py<PyAny>,
}

impl Known {
    fn clone_ref(&self, py: Python<'_>) -> Known {
        Known {
            marks: self.marks.clone(),
            settings: self.settings,
            watched: self.watched.each_ref().map(|watched| watched.clone_ref(py)),
            program: self.program.clone_ref(py),
            one: self.one,
            result: self.result.clone_ref(py),
        }
    }
}

/// The programs for such calls, newest first.
#[pyclass(name = "_Quick", module = "wengert._core", frozen)]
#[derive(Default)]
pub struct PyQuick {
    known: Vec<Known>,
}

/// The arguments of a call, if all are tensors of no other class.
fn tensors<'py>(args: &Bound<'py, PyTuple>) -> Option<SmallVec<[Bound<'py, PyTensor>; 8]>> {
    args.iter().map(|x| x.cast_into_exact::<PyTensor>().ok()).collect()
}

#[pymethods]
impl PyQuick {
    #[new]
    fn new() -> PyQuick {
        PyQuick::default()
    }

    /// These programs and one more for calls such as `args`, with the settings that are now.
    #[pyo3(signature = (args, watched, program, one, result))]
    fn with_one(
        &self, py: Python<'_>, args: &Bound<'_, PyTuple>, watched: [Py<PyWatched>; 2],
        program: Py<PyProgram>, one: Option<usize>, result: Py<PyAny>,
    ) -> PyResult<PyQuick> {
        let mut known = Vec::with_capacity(self.known.len() + 1);
        if let (Some(tensors), Some(settings)) = (tensors(args), Settings::now()) {
            let marks = marks_of(&tensors)?;
            known.push(Known { marks, settings, watched, program, one, result });
        }
        known.extend(self.known.iter().map(|known| known.clone_ref(py)));
        Ok(PyQuick { known })
    }

    /// Runs the program for such arguments; NotImplemented, and nothing changed, if there is none.
    fn run<'py>(&self, py: Python<'py>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let none = || Ok(PyNotImplemented::get(py).to_owned().into_any());
        let Some(tensors) = tensors(args) else { return none() };
        let Some(settings) = Settings::now() else { return none() };
        let marks = marks_of(&tensors)?;
        for known in self.known.iter().filter(|known| known.marks == marks && known.settings == settings) {
            let mut fits = true;
            for watched in &known.watched {
                fits = fits && watched.bind(py).try_borrow()?.is_as_it_was(py)?;
            }
            if !fits {
                continue;
            }
            let Outcome::Done(outputs) = known.program.get().outcome(py, &tensors)? else { continue };
            let mut outputs = outputs.into_iter().map(object);
            if let Some(one) = known.one {
                return match outputs.nth(one) {
                    Some(output) => output.into_pyobject(py).map(Bound::into_any),
                    None => none(),
                };
            }
            let outputs: Vec<PyTensor> = outputs.collect();
            return known.result.bind(py).call1((PyList::new(py, &tensors)?, outputs));
        }
        none()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        self.known.iter().try_for_each(|known| {
            known.watched.iter().try_for_each(|watched| visit.call(watched))?;
            visit.call(&known.program)?;
            visit.call(&known.result)
        })
    }
}

exports! { classes: PyQuick; }
