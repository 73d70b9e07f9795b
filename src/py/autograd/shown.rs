//! What a program says of itself, for `wengert.jit`'s listings (`python/wengert/jit/_shown.py`).

use crate::py::autograd::staging::PyProgram;
use crate::py::prelude::*;
use crate::tape::location::Location;
use crate::watch::program::{Kind, ShownStep};

/// What a value is, its number or memory, its shape and its dtype.
type PyValue = (&'static str, usize, Vec<usize>, &'static str);
/// File, line and function.
type Place = Option<(String, u32, String)>;
/// Kind, operations, inputs, outputs, number, value of a look, whether random numbers are drawn, place,
/// number of the module, floating point operations, bytes read and written.
type PyStep = (
    (&'static str, Vec<&'static str>),
    (Vec<u32>, Vec<Option<u32>>),
    (usize, f64, bool),
    (Place, u32),
    (u64, u64, u64),
);

fn step(step: ShownStep) -> PyStep {
    let ShownStep { kind, names, inputs, outputs, number, value, draws, place, scope, flops, traffic } = step;
    let place = place.map(Location::parts);
    let moved = (flops, traffic.0, traffic.1);
    ((kind, names), (inputs, outputs), (number, value, draws), (place, scope), moved)
}

#[pymethods]
impl PyProgram {
    /// The values in the order of their numbers: what each is, its number or memory, its shape, its dtype.
    fn shown_values(&self) -> Vec<PyValue> {
        let kind = |kind: Kind| match kind {
            Kind::Fixed(memory) => ("fixed", memory),
            Kind::Argument(i) => ("argument", i),
            Kind::Gradient(leaf) => ("gradient", leaf),
            Kind::Step => ("step", 0),
            Kind::Within(base) => ("within", base as usize),
        };
        let values = self.program.shown_values().into_iter().map(|value| {
            let (what, number) = kind(value.kind);
            (what, number, value.shape.to_vec(), value.dtype.name())
        });
        values.collect()
    }

    /// The steps in order.
    fn shown_steps(&self) -> Vec<PyStep> {
        self.program.shown_steps().into_iter().map(step).collect()
    }

    /// The values that are returned, and the sequence numbers of the leaves whose gradients change.
    fn shown_ends(&self) -> (Vec<u32>, Vec<Option<u64>>) {
        (self.program.shown_outputs(), self.program.shown_leaves())
    }

    /// The most bytes beyond what is held before, the step that takes them, and what is held after each step.
    fn shown_memory(&self) -> (i64, Option<usize>, Vec<i64>) {
        let memory = self.program.memory();
        (memory.peak, memory.at, memory.after)
    }
}

/// The memory of each tensor, and the sequence number of its node.
#[pyfunction]
fn _stage_places(tensors: Vec<Tensor>) -> Vec<(Option<usize>, Option<u64>)> {
    let place = |t: &Tensor| (t.concrete().map(|x| x.buffer().id()), t.edge().map(|edge| edge.node.seq));
    tensors.iter().map(place).collect()
}

exports! {
    functions: _stage_places
}
