//! Implementations of the shape methods as functions of tensors (moving, rolling, tiling, diagonals),
//! composed of views, pads and joins.

use crate::array::shape::normalize_axis;
use crate::ops::views::join;
use crate::py::args::shape;
use crate::py::prelude::*;
use crate::py::writes::aliasing::unaliased;

/// Lengths of the pieces of `size` elements in `length`; the last may be shorter.
pub fn pieces(length: usize, size: usize) -> Vec<usize> {
    if length == 0 {
        return vec![0];
    }
    (0..length.div_ceil(size)).map(|i| size.min(length - i * size)).collect()
}

/// Returns the shape to expand to; -1 keeps the tensor's own length.
pub fn expanded(own: &Shape, sizes: &[i64]) -> PyResult<Shape> {
    let lead = sizes.len().checked_sub(own.rank());
    let dims: Vec<i64> = sizes
        .iter()
        .enumerate()
        .map(|(i, &d)| match lead.and_then(|l| i.checked_sub(l)) {
            Some(k) if d == -1 => own.at(k) as i64,
            _ => d,
        })
        .collect();
    shape(&dims)
}

/// Normalises axes and checks that they are distinct; a tensor without axes counts as having one.
fn distinct(own: &Shape, axes: &[i64], which: &str) -> Result<Vec<usize>> {
    let rank = own.rank().max(1);
    let found = axes.iter().map(|&a| normalize_axis(a, rank, "movedim")).collect::<Result<Vec<_>>>()?;
    match (1..found.len()).find(|&k| found[..k].contains(&found[k])) {
        Some(k) => Err(Error::value(format!(
            "movedim: axis {} appears twice in {which} {axes:?}; each axis moves once",
            axes[k]
        ))),
        None => Ok(found),
    }
}

/// Moves axes `from` to positions `to`; the others keep their order.
pub fn moved(x: &Tensor, from: &[i64], to: &[i64]) -> Result<Tensor> {
    if from.len() != to.len() {
        return Err(Error::value(format!(
            "movedim: {} axes cannot move to {} positions",
            from.len(),
            to.len()
        )));
    }
    let own = x.shape();
    let from = distinct(&own, from, "source")?;
    let to = distinct(&own, to, "destination")?;
    if own.rank() == 0 {
        return Ok(x.clone());
    }
    let mut rest = (0..x.rank()).filter(|i| !from.contains(i));
    let order: Vec<i64> = (0..x.rank())
        .map(|i| match to.iter().position(|&p| p == i) {
            Some(k) => from[k] as i64,
            None => rest.next().unwrap_or(i) as i64,
        })
        .collect();
    x.permute(&order)
}

/// Shifts elements cyclically along axes.
pub fn rolled(x: &Tensor, shifts: &[i64], axes: &[i64]) -> Result<Tensor> {
    if shifts.len() != axes.len() {
        return Err(Error::value(format!("roll: {} shifts given for {} axes", shifts.len(), axes.len())));
    }
    let mut out = x.clone();
    for (&shift, &axis) in shifts.iter().zip(axes) {
        let i = out.shape().axis(axis, "roll")?;
        let length = out.shape().at(i);
        if length == 0 {
            continue;
        }
        let cut = length - shift.rem_euclid(length as i64) as usize;
        if cut < length {
            let (front, back) = (out.narrow(axis, 0, cut)?, out.narrow(axis, cut, length - cut)?);
            out = join::cat(&[back, front], axis)?;
        }
    }
    Ok(out)
}

/// Repeats `x` `counts[i]` times along axis `i`: broadcasts new axes and merges each into the next.
pub fn tiled(x: &Tensor, counts: &[i64]) -> PyResult<Tensor> {
    let counts = shape(counts)?.to_vec();
    let mut out = x.clone();
    while out.rank() < counts.len() {
        out = out.unsqueeze(0)?;
    }
    for (i, &n) in counts.iter().enumerate() {
        if n == 1 {
            continue;
        }
        let own = out.shape();
        let wide = out.unsqueeze(i as i64)?.expand(&own.inserted(i, n)?)?;
        let mut merged = own.to_vec();
        merged[i] = merged[i].saturating_mul(n);
        out = wide.reshape(&Shape::new(&merged)?)?;
    }
    Ok(unaliased(out, x)?)
}

/// Returns the diagonal of two axes as a new last axis, a view.
pub fn diagonal(x: &Tensor, offset: i64, a: i64, b: i64) -> Result<Tensor> {
    let own = x.shape();
    let (a, b) = (own.axis(a, "diagonal")?, own.axis(b, "diagonal")?);
    if a == b {
        return Err(Error::value(format!("diagonal: two different axes expected, got {a} twice")));
    }
    let rank = x.rank() as i64;
    let matrix = moved(x, &[a as i64, b as i64], &[rank - 2, rank - 1])?;
    let (rows, columns) = (own.at(a), own.at(b));
    let (top, left) = (offset.saturating_neg().max(0) as usize, offset.max(0) as usize);
    let length = rows.saturating_sub(top).min(columns.saturating_sub(left));
    if length == 0 {
        let empty =
            matrix.select_index(-1, 0).or_else(|_| matrix.narrow(-1, 0, 0)?.sum(Some(&[-1]), false))?;
        return empty.narrow(-1, 0, 0);
    }
    matrix.narrow(-2, top, length)?.narrow(-1, left, length)?.main_diagonal()
}

/// Returns a matrix with the vector `x` on its diagonal (a column padded to rows of `n + 1`, flattened, cut
/// to `n * n`), or the diagonal of the matrix `x`.
pub fn matrix_or_diagonal(x: &Tensor, offset: i64) -> Result<Tensor> {
    match x.rank() {
        1 => {}
        2 => return diagonal(x, offset, 0, 1),
        _ => return Err(Error::shape(format!("diag: one or two axes expected, got shape {}", x.shape()))),
    }
    let n = x.numel();
    let size = n.saturating_add(offset.unsigned_abs() as usize);
    if n == 0 {
        return Tensor::zeros(Shape::new(&[size, size])?, x.dtype(), x.device());
    }
    let column = x.reshape(&Shape::new(&[n, 1])?)?;
    let square = column.pad(&[(0, 0), (0, n as i64)], 0.0)?.flatten(0, -1)?.narrow(0, 0, n * n)?;
    let square = square.reshape(&Shape::new(&[n, n])?)?;
    let (top, left) = (offset.saturating_neg().max(0), offset.max(0));
    square.pad(&[(top, left), (left, top)], 0.0)
}
