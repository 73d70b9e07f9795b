//! `wengert.Node`, a node of the tape in Python: what it is, what it saves, where its gradients go, and its
//! reverse rule as a call.

use crate::autodiff::accumulate;
use crate::autodiff::levels::edge_behind;
use crate::interp::tape;
use crate::op::Needs;
use crate::py::data::dtype::{PyDType, PyDevice, dtype_object};
use crate::py::data::format::node_name;
use crate::py::prelude::*;
use crate::tape::host_ref::HostRef;
use crate::tape::location::Location;
use crate::tape::node::{Edge, Node, Saved, Slot, Vjp};
use crate::tensor::Aval;

/// The entry of the tape that made a tensor; calling it applies its reverse rule.
#[pyclass(name = "Node", module = "wengert")]
pub struct PyNode(pub Arc<Node>);

/// What is known of a value at a tape entry: which one it is, its shape, dtype, device and bytes.
#[pyclass(name = "NodeValue", module = "wengert", frozen)]
pub struct PyNodeValue {
    slot: Slot,
    aval: Aval,
    bytes: usize,
}

impl PyNodeValue {
    /// Returns a value that is not kept: its bytes are those of its elements.
    fn new(slot: Slot, aval: Aval) -> PyNodeValue {
        PyNodeValue { slot, aval, bytes: aval.shape.numel() * aval.dtype.size() }
    }
}

readings! { PyNodeValue, |object| object;
    /// Which value of the operation it is: `input 0`, `output 0`.
    #[getter]
    name -> String = |value| value.slot.to_string();
    /// Where it lies.
    #[getter]
    device -> PyDevice = |value| PyDevice { device: value.aval.device };
    /// Bytes: of its elements; for a saved value, of the memory that is kept for it.
    #[getter]
    nbytes -> usize = |value| value.bytes;
    __repr__ -> String = |value| {
        format!("<{}: {}{}, {} bytes>", value.name(), value.aval.dtype, value.aval.shape, value.bytes)
    };
}

#[pymethods]
impl PyNodeValue {
    /// Its shape.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.aval.shape.iter())
    }
    /// Its element type.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyDType>> {
        dtype_object(py, self.aval.dtype)
    }
}

readings! { PyNode, |object| object.0;
    /// Returns the name, as in `MulBackward`.
    name -> String =
        |node| if node.is_leaf() { "AccumulateGrad".into() } else { node_name(node.name()) };
    /// The operation, as in `mul`; `leaf` for a tensor that requires a gradient.
    #[getter]
    op -> String = |node| node.name().to_string();
    /// Which entry of the list of operations it is, as in `Map`; `leaf` for a leaf.
    #[getter]
    kind -> &'static str = |node| node.op().map_or("leaf", |op| op.kind());
    /// The class of the operation, which decides its rules: `elementwise`, `linear`, `bilinear`, `general`,
    /// `composite`; `leaf` for a leaf.
    #[getter]
    op_class -> String =
        |node| node.op().map_or_else(|| "leaf".into(), |op| format!("{:?}", op.class()).to_lowercase());
    /// Whether this stands for a leaf, into whose `.grad` its gradient is added.
    #[getter]
    is_leaf -> bool = |node| node.is_leaf();
    /// Per output: its name, shape, dtype, device and bytes.
    #[getter]
    outputs -> Vec<PyNodeValue> = |node| {
        let value = |(i, aval): (usize, &Aval)| PyNodeValue::new(Slot::Output(i as u16), *aval);
        node.outputs.iter().take(node.visible()).enumerate().map(value).collect()
    };
    /// Per input: its name, shape, dtype, device and bytes; None for inputs that need no gradient.
    #[getter]
    inputs -> Vec<Option<PyNodeValue>> = |node| {
        let value = |(i, edge): (usize, &Option<Edge>)| {
            Some(PyNodeValue::new(Slot::Input(i as u16), *edge.as_ref()?.aval()))
        };
        node.edges.iter().enumerate().map(value).collect()
    };
    /// The values kept for backward: which, their shapes, dtypes and bytes. Empty once they were freed.
    #[getter]
    saved -> Vec<PyNodeValue> = |node| {
        let known = |slot: Slot| match slot {
            Slot::Input(i) => node.edges.get(i as usize)?.as_ref().map(|e| *e.aval()),
            Slot::Output(i) => node.outputs.get(i as usize).copied(),
        };
        let value = |(slot, aval, bytes): (Slot, Option<Aval>, usize)| {
            Some(PyNodeValue { slot, aval: aval.or_else(|| known(slot))?, bytes })
        };
        node.saved_values().into_iter().filter_map(value).collect()
    };
    /// Whether the values kept for backward were freed by one.
    #[getter]
    is_freed -> bool = |node| node.is_freed();
    /// Bytes that this entry keeps for backward.
    #[getter]
    saved_bytes -> usize = |node| node.saved_bytes();
    /// Position in the order of recording.
    #[getter]
    sequence_nr -> u64 = |node| node.seq;
    /// File, line and function of the program that recorded it; None unless lines were kept.
    #[getter]
    location -> Option<(String, u32, String)> = |node| node.location.map(Location::parts);
    __hash__ -> usize = |node| Arc::as_ptr(node) as usize;
}

#[pymethods]
impl PyNode {
    /// Per input of the operation: the entry its gradient goes to (or None) and which output of that it is.
    #[getter]
    fn next_functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let next =
            |e: &Option<Edge>| e.as_ref().map_or((None, 0), |e| (Some(PyNode(e.node.clone())), e.index));
        PyTuple::new(py, self.0.edges.iter().map(next))
    }

    /// A dict for the user's own notes on this entry; it lives as long as the entry.
    #[getter]
    fn metadata(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        let notes = self.0.hooks_mut().notes(|| HostRef::new(Arc::new(PyDict::new(py).into_any().unbind())));
        match notes.object::<Py<PyAny>>().and_then(|dict| dict.bind(py).cast::<PyDict>().ok()) {
            Some(dict) => Ok(dict.clone().unbind()),
            None => Err(Error::autodiff("internal: the notes of a tape entry are no dict").into()),
        }
    }

    /// The reverse rule: from one cotangent (or None, for zero) per output to one gradient (or None) per
    /// input. What was saved stays. Raises RuntimeError if it was freed, and for the entry of a leaf.
    #[pyo3(signature = (*cotangents))]
    fn __call__<'py>(
        &self, py: Python<'py>, cotangents: Vec<Option<Tensor>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, py.detached(|| apply(&self.0, &cotangents))?)
    }

    fn __repr__(&self) -> String {
        format!("<{}>", self.name())
    }

    fn __eq__(&self, other: &PyNode) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Applies the reverse rule of `node` to `g` without freeing saved tensors; returns one gradient per input,
/// of the input's shape and dtype.
fn apply(node: &Arc<Node>, g: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
    let Some(op) = node.op() else {
        return Err(Error::autodiff(
            "the tape entry of a leaf has no reverse rule; its gradient is added to .grad of the leaf",
        ));
    };
    if g.len() != node.visible() {
        return Err(Error::autodiff(format!(
            "{}: {} cotangents given, expected {}, one per output (None for zero)",
            node_name(node.name()),
            g.len(),
            node.visible()
        )));
    }
    for (i, (g, aval)) in g.iter().zip(&node.outputs).enumerate() {
        if let Some(g) = g.as_ref().filter(|g| g.shape() != aval.shape) {
            return Err(Error::shape(format!(
                "{}: cotangent {i} has shape {}, expected {} as the output it belongs to",
                node_name(node.name()),
                g.shape(),
                aval.shape
            )));
        }
    }
    let mut needs = Needs::default();
    for (i, _) in node.edges.iter().enumerate().filter(|(_, e)| e.is_some()) {
        needs.add(i);
    }
    let mut saved = Saved::new();
    node.unpack(true, false, g, &mut saved)?;
    let grads = tape::pull_back(op, &Vjp { node, saved: &saved, needs, recorded: false }, g)?;
    let mut grads = grads.into_iter();
    node.edges
        .iter()
        .map(|edge| match (edge, grads.next().flatten()) {
            (Some(edge), Some(g)) => accumulate::fitted(g, edge.aval()).map(Some),
            _ => Ok(None),
        })
        .collect()
}

/// The entry of the tape behind a tensor, and which of its outputs the tensor is; None without a graph.
#[pyfunction]
pub fn _gradient_edge(tensor: &Bound<'_, PyTensor>) -> Option<(PyNode, u32)> {
    let edge = edge_behind(&tensor.read().t)?;
    Some((PyNode(edge.node), edge.index))
}

exports! { classes: PyNode, PyNodeValue; functions: _gradient_edge }
