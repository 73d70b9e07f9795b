//! One level of a tree: what is a container, what its children are, and how it is made again.

use crate::py::prelude::*;
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyComplex, PyFloat, PyString, PyType};

pub type Any<'py> = Bound<'py, PyAny>;

/// The classes that are containers by what they are.
struct Classes {
    ordered: Py<PyType>,
    default: Py<PyType>,
    deque: Py<PyType>,
    /// `wengert.tree._way`: from a class to the functions that take its objects apart and make them, or None.
    way: Py<PyAny>,
    /// What is registered: from a class to these functions.
    registry: Py<PyDict>,
}

impl Classes {
    fn get(py: Python<'_>) -> PyResult<&Classes> {
        static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
        CLASSES.get_or_try_init(py, || {
            let (std, own) = (py.import("collections")?, py.import("wengert.tree")?);
            let class = |name| -> PyResult<Py<PyType>> { Ok(std.getattr(name)?.extract()?) };
            Ok(Classes {
                ordered: class("OrderedDict")?,
                default: class("defaultdict")?,
                deque: class("deque")?,
                way: own.getattr("_way")?.unbind(),
                registry: own.getattr("_REGISTRY")?.extract()?,
            })
        })
    }
}

/// What a node is.
pub enum Kind {
    Leaf,
    None,
    Tuple,
    List,
    Dict,
    Ordered,
    Default,
    Deque,
    /// A named tuple of this class.
    Named(Py<PyType>),
    /// An object of this class, which the function makes of the static part and the children.
    Other(Py<PyType>, Py<PyAny>),
}

impl Kind {
    /// Whether both are of one class.
    pub fn is(&self, other: &Kind) -> bool {
        match (self, other) {
            (Kind::Named(a), Kind::Named(b)) | (Kind::Other(a, _), Kind::Other(b, _)) => a.is(b),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    pub fn is_dict(&self) -> bool {
        matches!(self, Kind::Dict | Kind::Ordered | Kind::Default)
    }
}

pub struct Node {
    pub kind: Kind,
    /// What is needed to make the container besides its children, and is part of the structure: the keys of a
    /// dict, for example.
    pub fixed: Option<Py<PyAny>>,
    /// The order of the keys of a dict where it is not the sorted one, which is that of its children.
    pub order: Option<Py<PyAny>>,
    pub children: usize,
    /// How many leaves are below, and how many nodes with this one.
    pub leaves: usize,
    pub nodes: usize,
}

/// One level of a tree: its class, its static part, the order of its keys, and its children.
pub type Level<'py> = (Kind, Option<Any<'py>>, Option<Any<'py>>, Any<'py>);

/// Keys in order, and the order that they have if it is another one; keys that do not compare stay as they
/// are.
fn sorted_keys<'py>(dict: &Bound<'py, PyDict>) -> PyResult<(Bound<'py, PyList>, Option<Any<'py>>)> {
    let keys = dict.keys();
    match keys.sort() {
        Err(error) if error.is_instance_of::<PyTypeError>(dict.py()) => return Ok((dict.keys(), None)),
        sorted => sorted?,
    }
    let given = dict.keys();
    let same = keys.iter().zip(given.iter()).all(|(a, b)| a.is(&b));
    Ok((keys, (!same).then(|| given.into_any())))
}

/// Takes one level of a tree apart; `None` for a leaf.
pub fn level<'py>(tree: &Any<'py>) -> PyResult<Option<Level<'py>>> {
    let py = tree.py();
    if tree.is_exact_instance_of::<PyTuple>() || tree.is_exact_instance_of::<PyList>() {
        let kind = if tree.is_exact_instance_of::<PyTuple>() { Kind::Tuple } else { Kind::List };
        return Ok(Some((kind, None, None, tree.clone())));
    }
    let values = |dict: &Bound<'py, PyDict>, keys: &Bound<'py, PyList>| -> PyResult<Any<'py>> {
        let value = |key: Any<'py>| dict.as_any().get_item(key);
        Ok(PyTuple::new(py, keys.iter().map(value).collect::<PyResult<Vec<_>>>()?)?.into_any())
    };
    if let Ok(dict) = tree.cast_exact::<PyDict>() {
        let (keys, order) = sorted_keys(dict)?;
        return Ok(Some((Kind::Dict, Some(keys.to_tuple().into_any()), order, values(dict, &keys)?)));
    }
    let class = tree.get_type();
    let is_plain = class.is(PyFloat::type_object(py))
        || class.is(PyInt::type_object(py))
        || class.is(PyBool::type_object(py))
        || class.is(PyString::type_object(py))
        || class.is(PyComplex::type_object(py));
    if is_plain || tree.is_instance_of::<PyTensor>() {
        return Ok(None);
    }
    let classes = Classes::get(py)?;
    if class.is(&classes.ordered) {
        let dict = tree.cast::<PyDict>()?;
        let keys = tree.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let keys = PyList::new(py, keys)?;
        return Ok(Some((Kind::Ordered, Some(keys.to_tuple().into_any()), None, values(dict, &keys)?)));
    }
    if class.is(&classes.default) {
        let dict = tree.cast::<PyDict>()?;
        let (keys, order) = sorted_keys(dict)?;
        let fixed = (tree.getattr("default_factory")?, keys.to_tuple()).into_pyobject(py)?.into_any();
        return Ok(Some((Kind::Default, Some(fixed), order, values(dict, &keys)?)));
    }
    if class.is(&classes.deque) {
        let children = PyTuple::new(py, tree.try_iter()?.collect::<PyResult<Vec<_>>>()?)?.into_any();
        return Ok(Some((Kind::Deque, Some(tree.getattr("maxlen")?), None, children)));
    }
    let mut way = classes.registry.bind(py).get_item(&class)?;
    if way.is_none() {
        // Neither is asked for each leaf of a class that nobody can have told of.
        let modules = py.import("sys")?.getattr(intern!(py, "modules"))?;
        if modules.contains(intern!(py, "optree"))?
            || class.hasattr(intern!(py, "__dataclass_fields__"))?
            || class.hasattr(intern!(py, "__attrs_attrs__"))?
        {
            way = Some(classes.way.bind(py).call1((&class,))?).filter(|way| !way.is_none());
        }
    }
    if let Some(way) = way {
        let (children, fixed): (Any<'py>, Any<'py>) = way.get_item(0)?.call1((tree,))?.extract()?;
        let kind = Kind::Other(class.unbind(), way.get_item(1)?.unbind());
        return Ok(Some((kind, Some(fixed), None, children)));
    }
    if tree.is_instance_of::<PyTuple>() && class.hasattr(intern!(py, "_fields"))? {
        return Ok(Some((Kind::Named(class.unbind()), None, None, tree.clone())));
    }
    Ok(None)
}

/// A level of recursion of the interpreter, which raises where there are too many.
pub struct Depth;

impl Depth {
    pub fn new(py: Python<'_>) -> PyResult<Depth> {
        // SAFETY: attached; a call that succeeds is undone when this is dropped.
        match unsafe { ffi::Py_EnterRecursiveCall(c" in a pytree".as_ptr()) } {
            0 => Ok(Depth),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

impl Drop for Depth {
    fn drop(&mut self) {
        // SAFETY: undoes the call of `new`, on the same thread.
        unsafe { ffi::Py_LeaveRecursiveCall() }
    }
}

/// Whether two static parts are equal.
pub fn same(py: Python<'_>, a: Option<&Any<'_>>, b: Option<&Py<PyAny>>) -> PyResult<bool> {
    match (a, b) {
        (Some(a), Some(b)) => a.eq(b.bind(py)),
        (a, b) => Ok(a.is_none() && b.is_none()),
    }
}

impl Node {
    /// The same node, for another structure.
    pub fn shared(&self, py: Python<'_>) -> Node {
        let kind = match &self.kind {
            Kind::Leaf => Kind::Leaf,
            Kind::None => Kind::None,
            Kind::Tuple => Kind::Tuple,
            Kind::List => Kind::List,
            Kind::Dict => Kind::Dict,
            Kind::Ordered => Kind::Ordered,
            Kind::Default => Kind::Default,
            Kind::Deque => Kind::Deque,
            Kind::Named(class) => Kind::Named(class.clone_ref(py)),
            Kind::Other(class, unflatten) => Kind::Other(class.clone_ref(py), unflatten.clone_ref(py)),
        };
        let [fixed, order] = [&self.fixed, &self.order].map(|x| x.as_ref().map(|x| x.clone_ref(py)));
        Node { kind, fixed, order, ..*self }
    }

    /// The keys of a dict, in the order of its children.
    pub fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Some(fixed) = &self.fixed else { return Ok(PyTuple::empty(py)) };
        let fixed = fixed.bind(py);
        let keys = if let Kind::Default = self.kind { fixed.get_item(1)? } else { fixed.clone() };
        Ok(keys.cast_into()?)
    }

    /// A container of these children.
    pub fn make<'py>(&self, py: Python<'py>, children: Vec<Any<'py>>) -> PyResult<Any<'py>> {
        let fixed = || self.fixed.as_ref().map(|fixed| fixed.bind(py).clone());
        Ok(match &self.kind {
            Kind::Leaf | Kind::None => py.None().into_bound(py),
            Kind::Tuple => PyTuple::new(py, children)?.into_any(),
            Kind::List => PyList::new(py, children)?.into_any(),
            Kind::Dict | Kind::Ordered | Kind::Default => {
                let dict = PyDict::new(py);
                for (key, child) in self.keys(py)?.iter().zip(children) {
                    dict.set_item(key, child)?;
                }
                let dict = match &self.order {
                    None => dict,
                    Some(order) => {
                        let ordered = PyDict::new(py);
                        for key in order.bind(py).try_iter()? {
                            let key = key?;
                            ordered.set_item(&key, dict.as_any().get_item(&key)?)?;
                        }
                        ordered
                    }
                };
                match self.kind {
                    Kind::Dict => dict.into_any(),
                    Kind::Ordered => Classes::get(py)?.ordered.bind(py).call1((dict,))?,
                    _ => {
                        let factory = fixed().map(|fixed| fixed.get_item(0)).transpose()?;
                        Classes::get(py)?.default.bind(py).call1((factory, dict))?
                    }
                }
            }
            Kind::Deque => Classes::get(py)?.deque.bind(py).call1((children, fixed()))?,
            Kind::Named(class) => class.bind(py).call1(PyTuple::new(py, children)?)?,
            Kind::Other(_, unflatten) => unflatten.bind(py).call1((fixed(), children))?,
        })
    }
}
