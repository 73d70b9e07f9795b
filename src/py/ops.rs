//! The list of operations and the rows of its tables, for the tests that ask whether each has a record.

use crate::op::Op;
use crate::ops::binary::Binary;
use crate::ops::unary::{Parametric, Unary};
use pyo3::prelude::*;

/// Every kind of operation: its name, its class, its precision under autocast.
#[pyfunction]
fn op_kinds() -> Vec<(&'static str, String, String)> {
    Op::ALL
        .iter()
        .map(|(name, class, precision)| (*name, format!("{class:?}"), format!("{precision:?}")))
        .collect()
}

/// Every row of the tables of elementwise functions: its name, its documentation, its table.
#[pyfunction]
fn op_rows() -> Vec<(&'static str, &'static str, &'static str)> {
    let unary = Unary::ALL.iter().map(|f| (f.name(), f.doc(), "Unary"));
    let parametric = Parametric::ALL.iter().map(|f| (f.name(), f.doc(), "Parametric"));
    let binary = Binary::ALL.iter().map(|f| (f.name(), f.doc(), "Binary"));
    unary.chain(parametric).chain(binary).collect()
}

/// Registers the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(op_kinds, m)?)?;
    m.add_function(wrap_pyfunction!(op_rows, m)?)
}
