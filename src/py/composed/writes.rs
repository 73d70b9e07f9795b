//! What is written to places that an index names: the arguments.

use crate::ops::indexing::{check_index, check_same_dtype};
use crate::ops::writes::combine::Writes;
use crate::py::composed::shapes::on_axis;
use crate::py::data::create::constant;
use crate::py::prelude::*;
use crate::py::relative::Relative;

/// The words for what [`reduced`] does.
const REDUCTIONS: [&str; 5] = ["sum", "prod", "mean", "amax", "amin"];

/// Raises for an unknown reduction.
pub fn check_reduction(name: &str, reduce: &str) -> PyResult<()> {
    match REDUCTIONS.contains(&reduce) {
        true => Ok(()),
        false => Err(value_error(format!(
            "{name}: reduce must be one of {}, got '{reduce}'",
            REDUCTIONS.join(", ")
        ))),
    }
}

/// What is written to `x`: a tensor of its dtype, or what becomes one.
pub fn given(name: &str, x: &Tensor, source: &Relative<'_>) -> PyResult<Arg> {
    let operand = source.operand(name, x)?;
    match &operand {
        Arg::Tensor(t) if source.is_tensor() => check_same_dtype(name, x.dtype(), t.dtype())?,
        _ => {}
    }
    Ok(operand)
}

/// The arguments of a scatter, which fit: the source is the part that the index names.
pub fn elements(name: &str, x: &Tensor, dim: i64, index: &Tensor, source: &Relative<'_>) -> PyResult<Writes> {
    let (x, axis) = on_axis(name, x, dim)?;
    let index = index.at_least_vector()?;
    let source = match given(name, &x, source)? {
        Arg::Tensor(t) => t.at_least_vector()?,
        number => constant(name, &number, index.shape(), x.dtype(), x.device())?,
    };
    check_index(name, &index)?;
    let (own, named, given) = (x.shape(), index.shape(), source.shape());
    let fits = named.rank() == own.rank()
        && given.rank() == own.rank()
        && (0..own.rank()).all(|k| named.at(k) <= given.at(k) && (k == axis || named.at(k) <= own.at(k)));
    if !fits {
        return Err(Error::shape(format!(
            "{name}: index of shape {named} does not fit a source of shape {given} and a tensor of shape \
             {own}: as many axes, and no longer on any but axis {axis} of the tensor"
        ))
        .into());
    }
    let source = source.corner(&named)?.cast(x.dtype())?;
    Ok(Writes { x, axis: axis as i64, index, source })
}

/// The arguments of a write of slices, which fit: a vector of indices, and a source as long along the axis.
pub fn slices(name: &str, x: &Tensor, dim: i64, index: &Tensor, source: &Relative<'_>) -> PyResult<Writes> {
    let (x, axis) = on_axis(name, x, dim)?;
    let source = given(name, &x, source)?.tensor_with(&x)?.at_least_vector()?;
    let mut expected = x.shape().to_vec();
    expected[axis] = index.numel();
    if index.rank() > 1 || source.shape().to_vec() != expected {
        return Err(Error::shape(format!(
            "{name}: index of shape {} and source of shape {} for axis {axis} of a tensor of shape {}; \
             expected a vector and a source of shape {}",
            index.shape(),
            source.shape(),
            x.shape(),
            Shape::new(&expected)?
        ))
        .into());
    }
    check_index(name, index)?;
    Ok(Writes { x, axis: axis as i64, index: index.at_least_vector()?, source })
}
