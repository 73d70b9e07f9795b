//! The operations and the rows of the elementwise tables, for tests (has every operation a record?) and for
//! the documentation; counts of floating point operations (`src/watch/cost.rs`).

use crate::op::{Op, OpEntry};
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::table::{Arg, Fun, all};
use crate::ops::pointwise::unary::{Parametric, Unary};
use crate::py::prelude::*;
use crate::watch::cost;

/// Every kind of operation: its name, its class, its precision under autocast.
#[pyfunction]
fn op_kinds() -> Vec<(&'static str, String, String)> {
    let kind = |e: OpEntry| (e.name, format!("{:?}", e.class), format!("{:?}", e.precision));
    Op::entries().into_iter().map(kind).collect()
}

/// Every row of the tables of elementwise functions: its name, its documentation, its table.
#[pyfunction]
fn op_rows() -> Vec<(&'static str, &'static str, &'static str)> {
    let unary = Unary::ALL.iter().map(|f| (f.name(), f.doc(), "Unary"));
    let parametric = Parametric::ALL.iter().map(|f| (f.name(), f.doc(), "Parametric"));
    let binary = Binary::ALL.iter().map(|f| (f.name(), f.doc(), "Binary"));
    unary.chain(parametric).chain(binary).collect()
}

/// What the documentation tells of every kind of operation: name, documentation, class, precision, and its
/// reverse and forward rules as formulas.
#[pyfunction]
fn _op_entries(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let entry = |e: OpEntry| {
        let [vjp, jvp] = e.rules;
        let (class, precision) = (format!("{:?}", e.class), format!("{:?}", e.precision));
        named!(py, name = e.name, doc = e.doc, class = class, precision = precision, vjp = vjp, jvp = jvp,)
    };
    Op::entries().into_iter().map(entry).collect()
}

/// What the documentation tells of every row of the tables: name, number of inputs, value and partials as
/// formulas (None where one is zero), its precision under autocast, what each partial reads, and the floating
/// point operations of value and partials.
#[pyfunction]
fn _op_formulas(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |fun: Fun| {
        let inputs = if matches!(fun, Fun::Binary(_)) { 2 } else { 1 };
        let reads = |i| fun.reads(i).map_or_else(Vec::new, |r| r.iter().copied().map(Arg::name).collect());
        named!(
            py,
            name = fun.name(),
            inputs = inputs,
            precision = format!("{:?}", fun.columns().precision),
            value = fun.formula(),
            flops = fun.flops(),
            partials = (0..inputs).map(|i| fun.partial_formula(i)).collect::<Vec<_>>(),
            reads = (0..inputs).map(reads).collect::<Vec<Vec<&str>>>(),
            partial_flops = (0..inputs).map(|i| fun.partial_flops(i)).collect::<Vec<_>>(),
        )
    };
    all().map(row).collect()
}

functions! {
    /// Begins to count floating point operations in this thread; regions nest.
    _flops_begin() = cost::begin();
    /// Ends the innermost region of counting.
    _flops_end() = cost::end();
    /// What the innermost region has counted: module, whether in backward, operation, calls, floating point
    /// operations, nanoseconds on the host.
    _flops_read() -> Vec<cost::Row> = cost::read();
    /// Says which module runs, as a number; returns the one before.
    _flops_scope(scope: u32) -> u32 = cost::set_scope(scope);
}

exports! {
    functions: op_kinds, op_rows, _op_entries, _op_formulas, _flops_begin, _flops_end, _flops_read,
        _flops_scope
}
