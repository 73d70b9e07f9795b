//! The callable of `wengert.jit`: for arguments that are all tensors, given by position, the program is found
//! and run here, without Python; its class in Python sees to all other calls.

use crate::array::{defaults, random};
use crate::cpu::run::threads::num_threads;
use crate::py::autograd::marks::{Marks, are_such, arrays_of, marks_of};
use crate::py::autograd::staging::PyProgram;
use crate::py::autograd::watched::PyWatched;
use crate::py::prelude::*;
use crate::tape::saving::is_packing;
use crate::watch::debug::{Modes, modes};
use crate::watch::program::Outcome;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use smallvec::SmallVec;
use std::sync::{Mutex, PoisonError};

/// The settings that decide what operations mean, and at which a program was made.
#[derive(Clone, Copy, PartialEq)]
struct Settings {
    records: bool,
    inference: bool,
    float: DType,
    device: Device,
    threads: usize,
    packing: bool,
    resets: u64,
    /// Inside of a transform.
    inside: bool,
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
            resets: crate::device::resets(),
            inside: !interp::is_plain(),
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
    /// Of the arguments, what computes gradients of results with a history by the function itself.
    again: Py<PyAny>,
}

/// The programs of a function for calls with tensors alone, newest first.
#[pyclass(name = "_FastPath", module = "wengert._core", subclass, frozen)]
#[derive(Default)]
pub struct PyFastPath {
    known: Mutex<Arc<Vec<Arc<Known>>>>,
}

/// The arguments of a call, if all are tensors of no other class.
fn tensors<'py>(args: &Bound<'py, PyTuple>) -> Option<SmallVec<[Bound<'py, PyTensor>; 8]>> {
    args.iter().map(|x| x.cast_into_exact::<PyTensor>().ok()).collect()
}

impl PyFastPath {
    /// Returns the programs; puts others in their place if `new` is given.
    fn known(&self, new: Option<Vec<Arc<Known>>>) -> Arc<Vec<Arc<Known>>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let old = known.clone();
        if let Some(new) = new {
            *known = Arc::new(new);
        }
        old
    }

    /// Runs the program for such arguments; None, and nothing changed, if there is none.
    fn run<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let known = self.known(None);
        if known.is_empty() {
            return Ok(None);
        }
        let py = args.py();
        let (Some(tensors), Some(settings)) = (tensors(args), Settings::now()) else { return Ok(None) };
        let Some((mut arrays, recorded)) = arrays_of(&tensors)? else { return Ok(None) };
        for known in known.iter() {
            let objects = tensors.iter().map(|x| x.as_ptr() as usize);
            let arguments = objects.zip(&arrays).zip(&recorded).map(|((object, x), r)| (object, x, *r));
            if known.settings != settings || !are_such(&known.marks, arguments) {
                continue;
            }
            let mut fits = true;
            for watched in &known.watched {
                fits = fits && watched.bind(py).try_borrow()?.is_as_it_was(py)?;
            }
            if !fits {
                continue;
            }
            let (program, random) = (known.program.get(), random::state());
            let Outcome::Done(outputs) = program.outcome_of(py, &mut arrays, &tensors, 0)? else { continue };
            let has_history = program.has_history();
            if let Some(one) = known.one.filter(|_| !has_history) {
                let output = outputs.into_iter().nth(one).map(|y| PyTensor::from(Tensor::Array(y)));
                return output.map(|y| y.into_pyobject(py).map(Bound::into_any)).transpose();
            }
            let again = match has_history {
                true => Some(known.again.bind(py).call1((args,))?.unbind()),
                false => None,
            };
            let outputs = program.results(outputs, &tensors, random, again)?;
            if let Some(one) = known.one {
                let output = outputs.into_iter().nth(one);
                return output.map(|y| y.into_pyobject(py).map(Bound::into_any)).transpose();
            }
            return known.result.bind(py).call1((PyList::new(py, &tensors)?, outputs)).map(Some);
        }
        Ok(None)
    }
}

#[pymethods]
impl PyFastPath {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyFastPath {
        PyFastPath::default()
    }

    /// Adds a program for calls such as `args` with the current settings.
    #[pyo3(signature = (args, watched, program, one, result, again))]
    fn _add_program(
        &self, args: &Bound<'_, PyTuple>, watched: [Py<PyWatched>; 2], program: Py<PyProgram>,
        one: Option<usize>, result: Py<PyAny>, again: Py<PyAny>,
    ) -> PyResult<()> {
        if let (Some(tensors), Some(settings)) = (tensors(args), Settings::now()) {
            let marks = marks_of(&tensors)?;
            let mut all = vec![Arc::new(Known { marks, settings, watched, program, one, result, again })];
            all.extend(self.known(None).iter().cloned());
            self.known(Some(all));
        }
        Ok(())
    }

    /// Runs the program for such arguments; `_call` of the class makes it, or does without.
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        this: &Bound<'py, Self>, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if kwargs.is_none()
            && let Some(result) = this.get().run(args)?
        {
            return Ok(result);
        }
        this.getattr(intern!(this.py(), "_call"))?.call(args, kwargs)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        self.known(None).iter().try_for_each(|known| {
            known.watched.iter().try_for_each(|watched| visit.call(watched))?;
            visit.call(&known.program)?;
            visit.call(&known.result)?;
            visit.call(&known.again)
        })
    }

    fn __clear__(&self) {
        self.known(Some(Vec::new()));
    }
}

exports! { classes: PyFastPath; }
