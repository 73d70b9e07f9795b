//! The batches around tensors inside `vmap` under an outer tape, for hooks that are assembled in Python.

use crate::array::buffer;
use crate::autodiff::levels::{Level, Levels, behind, within};
use crate::py::autograd::hooks::all_returned;
use crate::py::prelude::*;
use crate::tape::hooks::Gradients;

/// The batches that some tensors are in, for hooks that see gradients of all of them.
#[pyclass(name = "_Levels", module = "wengert._core", frozen)]
pub struct PyLevels(Vec<Levels>);

#[pymethods]
impl PyLevels {
    /// Those of these tensors.
    #[new]
    fn new(tensors: &Bound<'_, PyList>) -> PyResult<PyLevels> {
        let mut all = buffer::with_capacity(tensors.len())?;
        for tensor in tensors {
            let levels = behind(&tensor.extract()?).map_or_else(Levels::new, |(_, levels)| levels);
            buffer::grow(&mut all)?;
            all.push(levels);
        }
        Ok(PyLevels(all))
    }

    /// Those of the tensors of both.
    fn __add__(&self, other: &PyLevels) -> PyResult<PyLevels> {
        let (own, more) = (&self.0, &other.0);
        Ok(PyLevels(buffer::collect_at_most(own.len() + more.len(), own.iter().chain(more).cloned())?))
    }

    /// `f(gradients)`, with the gradients of the tensors (or None) as they are seen inside the batches; what
    /// it returns, as it is seen outside.
    fn call<'py>(
        &self,
        f: &Bound<'py, PyAny>,
        gradients: Vec<Option<Tensor>>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let levels: Vec<&[Level]> = self.0.iter().map(|levels| &levels[..]).collect();
        let py = f.py();
        let f = f.clone().unbind();
        let one =
            |g: &Gradients| attached(|py| all_returned(&f.bind(py).run((PyTuple::new(py, g)?,), None)?));
        within(&gradients, &levels, &one)?.map(|out| PyTuple::new(py, out)).transpose()
    }
}

exports! { classes: PyLevels; }
