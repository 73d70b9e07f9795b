//! Collective operations behind `wengert.psum` and its kin, groups of processes, which are Python objects
//! (`python/wengert/distributed/_group.py`), and the instruction set that they agree on.

use crate::arguments::group::{Group, Read, SharedGroup};
use crate::cpu::run::isa::{Isa, isa, lower};
use crate::ops::collective::window::number;
use crate::ops::collective::{self, Exchange, Members};
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::operand::{Operand, binary};
use crate::py::args::Tensors;
use crate::py::nn::optim::gradient;
use crate::py::prelude::*;
use crate::py::window::{DirectWindow, PyWindow, SHORT};
use crate::watch::script;
use pyo3::ffi;

/// A group of processes as an attribute of operations.
#[pyclass(name = "_Ranks", module = "wengert._core", frozen)]
pub struct PyRanks(SharedGroup);

#[pymethods]
impl PyRanks {
    /// The ranks of an object with the methods of `Group`, which meet in this window.
    #[new]
    fn new(group: Py<PyAny>, window: &PyWindow) -> PyRanks {
        PyRanks(SharedGroup(Arc::new(PyGroup { group, window: window.0.clone() })))
    }
}

/// Ranks that a Python object reaches.
struct PyGroup {
    group: Py<PyAny>,
    window: Arc<DirectWindow>,
}

impl PyGroup {
    fn call<A>(&self, method: &str, args: impl FnOnce(Python<'_>) -> PyResult<A>) -> Result<()>
    where
        A: for<'py> IntoPyObject<'py, Target = PyTuple>,
    {
        attached(|py| self.group.bind(py).getattr(method)?.run(args(py)?, None).map(drop))
    }
}

/// A `memoryview` of memory, for the time of a call.
fn read_view(py: Python<'_>, bytes: &[u8]) -> PyResult<Py<PyAny>> {
    view(py, bytes.as_ptr().cast_mut(), bytes.len(), ffi::PyBUF_READ)
}

/// [`read_view`] of memory that is written.
fn write_view(py: Python<'_>, bytes: &mut [u8]) -> PyResult<Py<PyAny>> {
    view(py, bytes.as_mut_ptr(), bytes.len(), ffi::PyBUF_WRITE)
}

fn view(py: Python<'_>, bytes: *mut u8, length: usize, flags: std::ffi::c_int) -> PyResult<Py<PyAny>> {
    // SAFETY: the memory is borrowed by the caller; the methods of a group keep no view of it.
    unsafe {
        let made = ffi::PyMemoryView_FromMemory(bytes.cast(), length as ffi::Py_ssize_t, flags);
        Ok(Bound::from_owned_ptr_or_err(py, made)?.unbind())
    }
}

impl Group for PyGroup {
    fn rank(&self) -> usize {
        self.window.rank
    }
    fn size(&self) -> usize {
        self.window.size
    }
    fn share(&self, what: &str, sent: &[&[u8]], read: Read) -> Result<()> {
        let own: usize = sent.iter().map(|piece| piece.len()).sum();
        let Some(_turn) = self.window.begin(own) else { return Ok(()) };
        let window = &self.window.window;
        let bytes = own * self.window.size;
        window.enter(number(what, "allgather", bytes as i64), [-1, -1], sent)?;
        // Whoever waits longer says what for, and looks whether it is in vain.
        if !window.wait(SHORT)? {
            self.call("_wait_on", |_| Ok((what,)))?;
        }
        if !window.agree()? {
            self.call("_compare", |_| Ok((what, bytes)))?;
        }
        let (first, step) = window.rows()?;
        read(first, step)
    }
    fn all_gather(&self, what: &str, sent: &[u8], received: &mut [u8]) -> Result<()> {
        self.call("all_gather", |py| Ok((read_view(py, sent)?, write_view(py, received)?, what)))
    }
    fn all_to_all(&self, what: &str, sent: &[u8], received: &mut [u8]) -> Result<()> {
        self.call("all_to_all", |py| Ok((read_view(py, sent)?, write_view(py, received)?, what)))
    }
    fn exchange(
        &self, what: &str, sent: &[u8], to: Option<usize>, received: &mut [u8], from: Option<usize>,
    ) -> Result<()> {
        let [to, from] = [to, from].map(|rank| rank.map_or(-1, |rank| rank as i64));
        self.call("exchange", |py| Ok((read_view(py, sent)?, to, write_view(py, received)?, from, what)))
    }
    fn broadcast(&self, what: &str, bytes: &mut [u8], root: usize) -> Result<()> {
        self.call("broadcast", |py| Ok((write_view(py, bytes)?, root, what)))
    }
}

/// What the members of an axis do with `x`: `kind` is a variant of the core's operation, and `at` its axis,
/// its two axes, its member or its pairs. `members` is `_Ranks`, or the position along the axis of a batch
/// with the number of examples.
#[pyfunction]
fn _collective(
    py: Python<'_>, x: Tensor, kind: &str, at: &Bound<'_, PyAny>, members: &Bound<'_, PyAny>,
) -> PyResult<Tensor> {
    let (members, index) = match members.cast::<PyRanks>() {
        Ok(ranks) => (Members::Processes(ranks.get().0.clone()), None),
        Err(_) => {
            let (index, count): (Tensor, usize) = members.extract()?;
            (Members::Examples(count), Some(index))
        }
    };
    let exchange = match kind {
        "max" | "min" => {
            let largest = kind == "max";
            return Ok(py.detached(|| x.collective_extremum(largest, members, index.as_ref()))?);
        }
        "sum" => Exchange::Sum,
        "sum_scatter" => Exchange::SumScatter { axis: at.extract()? },
        "gather" => Exchange::Gather { axis: at.extract()? },
        "all_to_all" => {
            let (split, concat) = at.extract()?;
            Exchange::AllToAll { split, concat }
        }
        "permute" => Exchange::Permute { pairs: at.extract::<Vec<(usize, usize)>>()?.into() },
        "broadcast" => Exchange::Broadcast { root: at.extract()? },
        _ => return Err(value_error(format!("internal: there is no collective operation {kind}"))),
    };
    Ok(py.detached(|| x.collective(exchange, members, index.as_ref()))?)
}

/// Returns the sum over ranks of one vector of the elements of tensors, without derivatives.
#[pyfunction]
fn _sum_joined(py: Python<'_>, tensors: Tensors, ranks: &PyRanks) -> PyResult<Tensor> {
    Ok(py.detached(|| collective::sum_joined(&tensors.0, &ranks.0))?)
}

/// Divides the sum over ranks of the gradients of these parameters, which have one dtype, by `divisor`, and
/// makes the quotients their gradients. Returns false, having done nothing, for halves, whose sum may be
/// beyond their range, in transforms, and where a parameter has no gradient.
#[pyfunction]
fn _average_gradients(
    py: Python<'_>, params: Vec<Tensor>, ranks: &PyRanks, divisor: usize,
) -> PyResult<bool> {
    let is_half = params.iter().any(|param| param.dtype().size() == 2);
    let grads: Option<Vec<Tensor>> = params.iter().map(gradient).collect();
    let Some(grads) = grads.filter(|_| !is_half && interp::is_plain()) else { return Ok(false) };
    let average = py.detached(|| -> Result<Tensor> {
        let sum = collective::sum_joined(&grads, &ranks.0)?;
        binary(Binary::Div, (&sum).into(), Operand::Int(divisor as i128))
    })?;
    let mut start = 0;
    for param in &params {
        let (Some(node), n) = (param.node(), param.numel()) else { continue };
        let Some(mut slot) = node.grad() else { continue };
        let own = average.narrow(0, start, n)?.reshape(&param.shape())?;
        start += n;
        script::cleared(node, &slot);
        let before = slot.replace(own);
        drop(slot);
        // Outside the lock: its memory may belong to a Python object with a destructor.
        drop(before);
    }
    Ok(true)
}

/// Returns the name of the instruction set that kernels use; with `most`, uses none above that from now on.
#[pyfunction]
#[pyo3(signature = (most=None))]
fn _isa(most: Option<&str>) -> PyResult<&'static str> {
    let known = [("baseline", Isa::Baseline), ("avx2", Isa::Avx2), ("avx512", Isa::Avx512)];
    if let Some(most) = most {
        let found = known.iter().find(|(name, _)| *name == most);
        lower(found.ok_or_else(|| value_error(format!("there is no instruction set '{most}'")))?.1);
    }
    Ok(known.iter().find(|(_, set)| *set == isa()).map_or("", |(name, _)| name))
}

exports! { classes: PyRanks; functions: _average_gradients, _collective, _isa, _sum_joined }
