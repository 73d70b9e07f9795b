//! Python access to a thread's debugging modes, its log, the findings of anomaly detection, and scripts: what
//! a region ran, to run again with other numbers in tests.

use crate::op::{Kernel, Op};
use crate::optim::UpdateRule;
use crate::process::sync::lock;
use crate::py::autograd::node::PyNode;
use crate::py::prelude::*;
use crate::tape::location::Location;
use crate::tape::node::{Edge, Node};
use crate::watch::anomaly;
use crate::watch::debug::{self, Line, Listener, Log, Modes};
use crate::watch::script::{self, Script};
use std::sync::Mutex;

/// A line of the log: sequence number (None for a value that left the tape), what, location, inputs.
type PyLine = (Option<u64>, String, Option<PyLocation>, Vec<(u64, u32)>);
/// File, line and function.
type PyLocation = (String, u32, String);
/// A forward value that is not finite: operation, location, index, value, description of the operands.
type PyMade = (String, Option<PyLocation>, Vec<usize>, f64, String);

/// Two Python functions called during backward walks.
struct Callbacks {
    began: Py<PyAny>,
    pulled: Py<PyAny>,
}

/// The concrete values at the bottom of tensors, batch axes included, without history and tangents.
fn tuple<'py>(py: Python<'py>, tensors: &[Option<Tensor>]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, tensors.iter().map(|t| t.as_ref().map(|t| t.peeled(|_| true))))
}

impl Listener for Callbacks {
    fn began(&self, roots: &[(Edge, Tensor)], accumulate: bool) -> Result<()> {
        let roots: Vec<(u64, u32)> = roots.iter().map(|(e, _)| (e.node.seq, e.index)).collect();
        attached(|py| self.began.bind(py).run((roots, accumulate), None).map(|_| ()))
    }

    fn pulled(&self, node: &Arc<Node>, g: &[Option<Tensor>], grads: &[Option<Tensor>]) -> Result<()> {
        attached(|py| {
            let arguments = (PyNode(node.clone()), tuple(py, g)?, tuple(py, grads)?);
            self.pulled.bind(py).run(arguments, None).map(|_| ())
        })
    }
}

/// What a thread did between `begin()` and `end()`.
#[pyclass(name = "_Log", module = "wengert._core", frozen)]
pub struct PyLog {
    log: Arc<Log>,
    before: Mutex<Vec<Option<Arc<Log>>>>,
}

#[pymethods]
impl PyLog {
    /// A log of at most `limit` lines. `began(roots, accumulate)` is called where a backward walk begins,
    /// `pulled(node, cotangents, gradients)` after each reverse rule.
    #[new]
    fn new(limit: usize, began: Py<PyAny>, pulled: Py<PyAny>) -> PyLog {
        let log = Log::new(limit, Box::new(Callbacks { began, pulled }));
        PyLog { log: Arc::new(log), before: Mutex::default() }
    }

    /// Makes this the log of the thread.
    fn begin(&self) {
        lock(&self.before).push(debug::set_log(Some(self.log.clone())));
    }

    /// Gives the thread back the log that it had before.
    fn end(&self) {
        let before = lock(&self.before).pop().flatten();
        drop(debug::set_log(before));
    }

    /// The lines so far, and how many older ones were dropped.
    fn lines(&self) -> (Vec<PyLine>, usize) {
        let (lines, dropped) = self.log.read();
        let line = |l: Line| (l.seq, l.what, l.location.map(Location::parts), l.inputs.into_vec());
        (lines.into_iter().map(line).collect(), dropped)
    }
}

functions! {
    /// Sets the debugging modes of this thread, a sum of 1 (lines), 2 (log), 4 (anomalies), 8 (anomalies of
    /// the forward raise), 16 (for the package's own use), 32 (strict gradients), 64 (count); returns those
    /// before.
    _debug_modes(modes: u32) -> u32 = debug::set_modes(Modes(modes)).0;
    /// The debugging modes of this thread.
    _get_debug_modes() -> u32 = debug::modes().0;
    /// The forward values that were noted as not finite.
    _anomaly_notes() -> Vec<PyMade> = {
        let made = anomaly::made().into_iter();
        made.map(|m| {
            let element = m.element;
            (m.op, m.location.map(Location::parts), element.index, element.value, element.operands)
        })
        .collect()
    };
    /// Forgets them.
    _anomaly_clear() = anomaly::clear();
    /// Begins to write down what this thread runs.
    _begin_script() = script::begin(&[], &[]);
    /// Ends it, and returns what ran.
    _end_script() -> Option<PyScript> = script::end().map(PyScript);
}

/// Records in the thread's log that the value of a recorded tensor leaves the tape here.
#[inline]
pub fn left(what: &str, t: &Tensor) {
    debug::left(what, &[t]);
}

/// The operations of a region.
#[pyclass(name = "Script", module = "wengert._core", frozen)]
pub struct PyScript(Script);

#[pymethods]
impl PyScript {
    /// The names of the operations, in order.
    fn names(&self) -> Vec<&'static str> {
        self.0.names()
    }

    /// Runs all again on the memory found: with another seed, another learning rate, so many steps later.
    #[pyo3(signature = (seed=None, lr=None, later=0))]
    fn run(&self, py: Python<'_>, seed: Option<u64>, lr: Option<f64>, later: i32) -> Result<()> {
        let change = |op: &mut Op| {
            if let (Some(state), Some(seed)) = (op.random_state(), seed) {
                state.seed = seed;
            }
            let Op::Update(update) = op else { return };
            update.steps.0.iter_mut().for_each(|step| *step += later);
            match &mut update.rule {
                UpdateRule::Sgd(sgd) => sgd.lr = lr.unwrap_or(sgd.lr),
                UpdateRule::Adam(adam) => adam.lr = lr.unwrap_or(adam.lr),
                // The first number of most formulas is the rate, which depends on the step.
                UpdateRule::Elementwise(_) => {}
            }
        };
        py.detached(|| self.0.run(change))
    }
}

exports! {
    classes: PyLog, PyScript;
    functions: _debug_modes, _get_debug_modes, _anomaly_notes, _anomaly_clear, _begin_script, _end_script
}
