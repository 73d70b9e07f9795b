//! Core errors as Python exceptions; Python exceptions pass through the core unchanged.

use crate::error::{Kind, is_name};
use crate::py::prelude::*;
use pyo3::create_exception;
use pyo3::exceptions::{
    PyIndexError, PyMemoryError, PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError,
    PyZeroDivisionError,
};
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

create_exception!(
    wengert,
    AnomalyError,
    PyRuntimeError,
    "A value that is not finite, found by detect_anomaly."
);
create_exception!(wengert, CheckpointError, PyRuntimeError, "A recomputation that differs from its forward.");
create_exception!(wengert, DeviceError, PyRuntimeError, "A device that is missing, lost or lacks a feature.");

/// Returns an exception class that derives from both `ValueError` (which users of NumPy catch) and
/// `RuntimeError` (which users of PyTorch catch): the one of this kind of error.
fn class_of_both(py: Python<'_>, kind: Kind) -> PyResult<Bound<'_, PyType>> {
    static CLASSES: [PyOnceLock<Py<PyType>>; 2] = [const { PyOnceLock::new() }; 2];
    let (class, name, doc) = match kind {
        Kind::LinAlg => (&CLASSES[0], "LinAlgError", "A matrix that has no such inverse or factorisation."),
        _ => (&CLASSES[1], "ShapeError", "Shapes that do not fit together."),
    };
    let class = class.get_or_try_init(py, || {
        let bases = PyTuple::new(py, [py.get_type::<PyValueError>(), py.get_type::<PyRuntimeError>()])?;
        let members = PyDict::new(py);
        members.set_item("__module__", "wengert")?;
        members.set_item("__doc__", doc)?;
        let class = py.get_type::<PyType>().call1((name, bases, members))?;
        Ok::<_, PyErr>(class.cast_into::<PyType>()?.unbind())
    })?;
    Ok(class.bind(py).clone())
}

impl From<Error> for PyErr {
    #[cold]
    #[inline(never)]
    fn from(error: Error) -> PyErr {
        if let Some(original) = error.payload().and_then(|p| p.downcast_ref::<PyErr>()) {
            return Python::attach(|py| original.clone_ref(py));
        }
        let error = match function_called() {
            Some(function) => error.named(&function),
            None => error,
        };
        let text = error.to_string();
        match error.kind() {
            kind @ (Kind::Shape | Kind::LinAlg) => Python::attach(|py| match class_of_both(py, kind) {
                Ok(class) => PyErr::from_type(class, text),
                Err(error) => error,
            }),
            Kind::Value => PyValueError::new_err(text),
            Kind::ZeroDivision => PyZeroDivisionError::new_err(text),
            Kind::Index => PyIndexError::new_err(text),
            Kind::Type => PyTypeError::new_err(text),
            Kind::Autodiff | Kind::Foreign => PyRuntimeError::new_err(text),
            Kind::Anomaly => AnomalyError::new_err(text),
            Kind::Checkpoint => CheckpointError::new_err(text),
            Kind::Device => DeviceError::new_err(text),
            Kind::Memory => PyMemoryError::new_err(text),
            Kind::Unsupported => PyNotImplementedError::new_err(text),
        }
    }
}

/// Returns the package function that the user called, if it is composed of several operations.
#[cold]
fn function_called() -> Option<String> {
    Python::try_attach(|py| py.import("wengert._caller").ok()?.call_method0("called").ok()?.extract().ok())?
}

/// Wraps a Python exception as an error of the core.
#[cold]
pub fn foreign(error: PyErr) -> Error {
    let text = error.to_string();
    Error::foreign(Arc::new(error), text)
}

/// Returns a `TypeError` with this message.
#[cold]
pub fn type_error(message: impl Into<String>) -> PyErr {
    PyTypeError::new_err(message.into())
}

/// Returns a `ValueError` with this message.
#[cold]
pub fn value_error(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

/// The same exception, with the operation that its message names replaced by `function`, which the user
/// called.
#[cold]
pub fn renamed(py: Python<'_>, error: PyErr, function: &str) -> PyErr {
    match error.value(py).to_string().split_once(": ") {
        Some((operation, rest)) if is_name(operation) => {
            PyErr::from_type(error.get_type(py), format!("{function}: {rest}"))
        }
        _ => error,
    }
}

/// The error for an argument of a function that must be a tensor.
#[cold]
pub fn no_tensor(function: &str, argument: &str, given: &Bound<'_, PyAny>) -> PyErr {
    let class = given.get_type().name().map_or_else(|_| "this".into(), |class| class.to_string());
    type_error(format!(
        "{function}: {argument} must be a tensor, got {class}; convert it with wengert.tensor()"
    ))
}

/// Registers the exception classes.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    m.add("ShapeError", class_of_both(py, Kind::Shape)?)?;
    m.add("LinAlgError", class_of_both(py, Kind::LinAlg)?)?;
    m.add("AnomalyError", py.get_type::<AnomalyError>())?;
    m.add("CheckpointError", py.get_type::<CheckpointError>())?;
    m.add("DeviceError", py.get_type::<DeviceError>())
}
