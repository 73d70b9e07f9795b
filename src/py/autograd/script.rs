//! Scripts for tests: what a region ran, and the same again with other numbers.

use crate::op::Op;
use crate::ops::nn::attention::Settings;
use crate::optim::Rule;
use crate::py::prelude::*;
use crate::watch::script::{self, Script};

/// The operations of a region.
#[pyclass(name = "Script", module = "wengert._core", frozen)]
pub struct PyScript(Script);

/// Begins to write down what this thread runs.
#[pyfunction]
fn _begin_script() {
    script::begin();
}

/// Ends it, and returns what ran.
#[pyfunction]
fn _end_script() -> Option<PyScript> {
    script::end().map(PyScript)
}

#[pymethods]
impl PyScript {
    /// The names of the operations, in order.
    fn names(&self) -> Vec<&'static str> {
        self.0.names()
    }

    /// Runs all again on the memory that was found: with random numbers of another seed, another learning
    /// rate, and so many steps later.
    #[pyo3(signature = (seed=None, lr=None, later=0))]
    fn run(&self, py: Python<'_>, seed: Option<u64>, lr: Option<f64>, later: i32) -> Result<()> {
        let with_seed = |settings: &mut Settings| {
            if let (Some(dropout), Some(seed)) = (&mut settings.dropout, seed) {
                dropout.state.0.seed = seed;
            }
        };
        let change = |op: &mut Op| match op {
            Op::Random(random) => random.state.0.seed = seed.unwrap_or(random.state.0.seed),
            Op::Attention(op) => with_seed(&mut op.settings),
            Op::AttentionVjp(op) => with_seed(&mut op.settings),
            Op::Update(update) => {
                update.steps.0.iter_mut().for_each(|step| *step += later);
                match &mut update.rule {
                    Rule::Sgd(sgd) => sgd.lr = lr.unwrap_or(sgd.lr),
                    Rule::Adam(adam) => adam.lr = lr.unwrap_or(adam.lr),
                }
            }
            _ => {}
        };
        py.detached(|| self.0.run(change))
    }
}

exports! { classes: PyScript; functions: _begin_script, _end_script }
