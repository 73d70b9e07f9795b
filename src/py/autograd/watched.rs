//! What a function for `wengert.jit` reads beside its arguments, as it was found: whether it is still so.

use crate::py::autograd::marks::{Mark, Marks};
use crate::py::prelude::*;
use crate::tape::saving::is_packing;
use pyo3::exceptions::{PyAttributeError, PyKeyError, PyValueError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::types::{PyBytes, PyComplex, PyFloat, PyString, PyType};

type Object = Py<PyAny>;

/// A place where Python keeps objects, and what it held.
enum Place {
    /// All items of a dictionary, in order.
    Items(Py<PyDict>, Vec<(Object, Object)>),
    /// One item of a mapping, if there is one.
    Item(Object, Object, Option<Object>),
    /// The members of another container, in order.
    Members(Object, Vec<Object>),
    /// What a function of no arguments returns.
    Answer(Object, Object),
    /// An attribute of an object, if it has it.
    Attribute(Object, Py<PyString>, Option<Object>),
    /// The class of an object.
    Kind(Object, Py<PyType>),
}

impl Place {
    fn is_as_it_was(&self, py: Python<'_>) -> PyResult<bool> {
        match self {
            Place::Items(dict, items) => holds(dict.bind(py), items),
            Place::Item(mapping, key, was) => {
                let (mapping, key) = (mapping.bind(py), key.bind(py));
                // What was there is most likely there: one look instead of two.
                match was {
                    Some(was) if !mapping.is_exact_instance_of::<PyDict>() => match mapping.get_item(key) {
                        Ok(found) => same(&found, was),
                        Err(e) if e.is_instance_of::<PyKeyError>(py) => Ok(false),
                        Err(e) => Err(e),
                    },
                    _ => both(found(mapping, key)?, was.as_ref()),
                }
            }
            Place::Members(container, members) => {
                if let Ok(list) = container.bind(py).cast::<PyList>() {
                    if list.len() != members.len() {
                        return Ok(false);
                    }
                    for (i, was) in members.iter().enumerate() {
                        if !list.get_item(i).is_ok_and(|found| same(&found, was).unwrap_or(false)) {
                            return Ok(false);
                        }
                    }
                    return Ok(true);
                }
                let mut count = 0;
                for member in container.bind(py).try_iter()? {
                    match members.get(count) {
                        Some(was) if same(&member?, was)? => count += 1,
                        _ => return Ok(false),
                    }
                }
                Ok(count == members.len())
            }
            Place::Answer(function, was) => same(&function.bind(py).call0()?, was),
            Place::Attribute(object, name, was) => {
                both(attribute(object.bind(py), name.bind(py))?, was.as_ref())
            }
            Place::Kind(object, kind) => Ok(object.bind(py).get_type_ptr().cast() == kind.as_ptr()),
        }
    }

    /// What is kept there, in words.
    fn described(&self, py: Python<'_>) -> PyResult<String> {
        Ok(match self {
            Place::Items(dict, items) => {
                let dict = dict.bind(py);
                let changed = |(key, was): &&(Object, Object)| {
                    !dict.get_item(key).is_ok_and(|x| x.is_some_and(|x| same(&x, was).unwrap_or(false)))
                };
                let old = items.iter().find(changed).map(|(key, _)| key.bind(py).clone());
                let is_new = |key: &Bound<'_, PyAny>| !items.iter().any(|(known, _)| known.is(key));
                match old.or_else(|| dict.keys().iter().find(is_new)) {
                    Some(key) => key.str()?.to_string(),
                    None => "the order of a dictionary".to_string(),
                }
            }
            Place::Item(_, key, _) => key.bind(py).str()?.to_string(),
            Place::Attribute(_, name, _) => name.bind(py).to_string(),
            Place::Answer(function, _) => {
                // What the answer is about is what the function is given.
                let given = function.bind(py).getattr("args").and_then(|args| args.get_item(0));
                let about = given.unwrap_or_else(|_| function.bind(py).clone());
                format!("an object of type {}", about.get_type().name()?)
            }
            Place::Members(x, _) | Place::Kind(x, _) => {
                format!("an object of type {}", x.bind(py).get_type().name()?)
            }
        })
    }

    fn visit(&self, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        match self {
            Place::Items(dict, items) => {
                visit.call(dict)?;
                items.iter().try_for_each(|(key, value)| visit.call(key).and_then(|()| visit.call(value)))
            }
            Place::Item(mapping, key, was) => {
                visit.call(mapping)?;
                visit.call(key)?;
                was.iter().try_for_each(|was| visit.call(was))
            }
            Place::Members(container, members) => {
                visit.call(container)?;
                members.iter().try_for_each(|member| visit.call(member))
            }
            Place::Answer(function, was) => visit.call(function).and_then(|()| visit.call(was)),
            Place::Attribute(object, _, was) => {
                visit.call(object)?;
                was.iter().try_for_each(|was| visit.call(was))
            }
            Place::Kind(object, kind) => visit.call(object).and_then(|()| visit.call(kind)),
        }
    }
}

/// Whether a dictionary holds these items, in this order.
fn holds(dict: &Bound<'_, PyDict>, items: &[(Object, Object)]) -> PyResult<bool> {
    if dict.len() != items.len() {
        return Ok(false);
    }
    let (mut at, mut key, mut value) = (0, std::ptr::null_mut(), std::ptr::null_mut());
    for (name, was) in items {
        // SAFETY: the dictionary is alive. References are made of what it lends before other code runs; if
        // that changes the dictionary, the next call looks at what is there then.
        if unsafe { ffi::PyDict_Next(dict.as_ptr(), &raw mut at, &raw mut key, &raw mut value) } == 0 {
            return Ok(false);
        }
        if key == name.as_ptr() && value == was.as_ptr() {
            continue;
        }
        // SAFETY: as above.
        let [key, value] = unsafe { [key, value].map(|x| Bound::from_borrowed_ptr(dict.py(), x)) };
        if !same(&key, name)? || !same(&value, was)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The item of a mapping, if there is one.
fn found<'py>(mapping: &Bound<'py, PyAny>, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Ok(dict) = mapping.cast::<PyDict>() {
        return dict.get_item(key);
    }
    match mapping.contains(key)? {
        true => mapping.get_item(key).map(Some),
        false => Ok(None),
    }
}

/// The attribute of an object, if it has it; the contents of a cell that is empty are none.
fn attribute<'py>(
    object: &Bound<'py, PyAny>, name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match object.getattr(name) {
        Ok(found) => Ok(Some(found)),
        Err(e) if e.is_instance_of::<PyAttributeError>(object.py()) => Ok(None),
        Err(e) if e.is_instance_of::<PyValueError>(object.py()) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether there is what there was, or nothing as before.
fn both(found: Option<Bound<'_, PyAny>>, was: Option<&Object>) -> PyResult<bool> {
    match (found, was) {
        (Some(found), Some(was)) => same(&found, was),
        (found, was) => Ok(found.is_none() && was.is_none()),
    }
}

/// Whether this is the same object, or an equal number or text. The text of a number tells 0.0 from -0.0, and
/// is the same for every NaN.
fn same(found: &Bound<'_, PyAny>, was: &Object) -> PyResult<bool> {
    if found.is(was) {
        return Ok(true);
    }
    let was = was.bind(found.py());
    if !found.get_type().is(was.get_type()) {
        return Ok(false);
    }
    if found.is_exact_instance_of::<PyInt>() || found.is_exact_instance_of::<PyString>() {
        return found.eq(was);
    }
    let is_value = found.is_instance_of::<PyInt>()
        || found.is_instance_of::<PyFloat>()
        || found.is_instance_of::<PyString>()
        || found.is_instance_of::<PyBytes>()
        || found.is_instance_of::<PyComplex>();
    Ok(is_value && found.repr()?.as_any().eq(was.repr()?)?)
}

/// The places of a function, which are compared at every call.
#[pyclass(name = "_Watched", module = "wengert._core")]
#[derive(Default)]
pub struct PyWatched {
    places: Vec<Place>,
    tensors: Vec<Py<PyTensor>>,
    /// What tells these tensors apart, and whether hooks pack what operations save.
    marks: Marks,
    packing: bool,
}

#[pymethods]
impl PyWatched {
    #[new]
    fn new() -> PyWatched {
        PyWatched { packing: is_packing(), ..PyWatched::default() }
    }

    /// Watches all items of a dictionary.
    fn items(&mut self, dict: &Bound<'_, PyDict>) {
        let items = dict.iter().map(|(key, value)| (key.unbind(), value.unbind())).collect();
        self.places.push(Place::Items(dict.clone().unbind(), items));
    }

    /// Watches one item of a mapping, or that there is none.
    fn item(&mut self, mapping: &Bound<'_, PyAny>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let was = found(mapping, key)?.map(Bound::unbind);
        self.places.push(Place::Item(mapping.clone().unbind(), key.clone().unbind(), was));
        Ok(())
    }

    /// Watches the members of a container, or the keys of a mapping.
    fn members(&mut self, container: &Bound<'_, PyAny>) -> PyResult<()> {
        let members = container.try_iter()?.map(|member| Ok(member?.unbind())).collect::<PyResult<_>>()?;
        self.places.push(Place::Members(container.clone().unbind(), members));
        Ok(())
    }

    /// Watches what a function of no arguments returns.
    fn answer(&mut self, function: &Bound<'_, PyAny>) -> PyResult<()> {
        self.places.push(Place::Answer(function.clone().unbind(), function.call0()?.unbind()));
        Ok(())
    }

    /// Watches an attribute of an object, or that it has none of that name. Returns what there is.
    fn attribute<'py>(
        &mut self, object: &Bound<'py, PyAny>, name: &Bound<'py, PyString>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let was = attribute(object, name)?;
        let kept = was.clone().map(Bound::unbind);
        self.places.push(Place::Attribute(object.clone().unbind(), name.clone().unbind(), kept));
        Ok(was)
    }

    /// Watches of which class an object is.
    fn kind(&mut self, object: &Bound<'_, PyAny>) {
        self.places.push(Place::Kind(object.clone().unbind(), object.get_type().unbind()));
    }

    /// Watches where these tensors lie.
    fn tensors(&mut self, tensors: Vec<Bound<'_, PyTensor>>) -> PyResult<()> {
        self.marks = tensors.iter().map(Mark::in_place).collect::<PyResult<_>>()?;
        self.tensors = tensors.into_iter().map(Bound::unbind).collect();
        Ok(())
    }

    /// Whether everything is as it was.
    pub fn is_as_it_was(&self, py: Python<'_>) -> PyResult<bool> {
        for place in &self.places {
            if !place.is_as_it_was(py)? {
                return Ok(false);
            }
        }
        for (tensor, mark) in self.tensors.iter().zip(&self.marks) {
            if !mark.is_in_place(tensor.bind(py))? {
                return Ok(false);
            }
        }
        Ok(is_packing() == self.packing)
    }

    /// What is not as it was, in words.
    fn changed(&self, py: Python<'_>) -> PyResult<String> {
        for place in &self.places {
            if !place.is_as_it_was(py)? {
                return place.described(py);
            }
        }
        Ok("the memory, history or hooks of a tensor".to_string())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        self.places.iter().try_for_each(|place| place.visit(&visit))?;
        self.tensors.iter().try_for_each(|t| visit.call(t))
    }

    fn __clear__(&mut self) {
        let _dropped = std::mem::take(self);
    }
}

exports! { classes: PyWatched; }
