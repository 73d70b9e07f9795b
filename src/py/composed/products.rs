//! Products of vectors and matrices beside `matmul`.

use crate::interp::autocast;
use crate::py::args::optional_whole;
use crate::py::composed::pointwise::times;
use crate::py::composed::{composed, in_low};
use crate::py::prelude::*;
use crate::py::relative::Relative;

/// `beta * x + alpha * product`; with `beta` 0, NaN in `x` does not count. Of integers, whole factors.
fn scaled(x: &Tensor, beta: &Arg, product: &Tensor, alpha: &Arg) -> Result<Tensor> {
    let whole = !(x.dtype().is_differentiable() || product.dtype().is_differentiable());
    let product = times(product, alpha, whole)?;
    match *beta {
        Arg::Int(0) | Arg::Bool(false) => product.depending_on(x),
        Arg::Float(v) if v == 0.0 || (whole && v.abs() < 1.0) => product.depending_on(x),
        _ => times(x, beta, whole)?.add(&product),
    }
}

/// Raises unless two operands have these numbers of axes.
fn check_ranks(name: &str, [x, y]: [&Tensor; 2], [a, b]: [usize; 2]) -> Result<()> {
    if [x.rank(), y.rank()] == [a, b] {
        return Ok(());
    }
    let (x, y) = (x.shape(), y.shape());
    Err(Error::shape(format!("{name}: operands with {a} and {b} axes expected, got shapes {x} and {y}")))
}

/// The sum of the products of two batches of matrices: one product over batch and inner axis together.
fn summed(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    check_ranks("addbmm", [x, y], [3, 3])?;
    let (a, b) = (x.shape(), y.shape());
    if a.at(0) != b.at(0) || a.at(2) != b.at(1) {
        return Err(Error::shape(format!(
            "addbmm: batches of matrices of shapes {a} and {b} do not multiply; expected (b, n, m) and \
             (b, m, p)"
        )));
    }
    let inner = a.at(0) * a.at(2);
    let rows = x.permute(&[1, 0, 2])?.reshape(&Shape::new(&[a.at(1), inner])?)?;
    rows.matmul(&y.reshape(&Shape::new(&[inner, b.at(2)])?)?)
}

/// Methods that add a product of two operands to the tensor.
macro_rules! sums {
    ($(
        $(#[$doc:meta])* $name:ident($a:ident, $b:ident) = |$x:ident, $y:ident| $value:expr, $text:literal;
    )*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[$doc])*
                #[pyo3(
                    signature = ($a, $b, *, beta=Arg::Int(1), alpha=Arg::Int(1)),
                    text_signature = $text
                )]
                fn $name(
                    &self, py: Python<'_>, $a: Relative<'_>, $b: Relative<'_>, beta: Arg, alpha: Arg,
                ) -> PyResult<PyTensor> {
                    let (name, own) = (stringify!($name), &self.value()?.into_owned());
                    let more = [$a.beside(name, own)?, $b.beside(name, own)?].map(Arg::Tensor);
                    composed(py, name, own, || {
                        in_low(own, more, |own, [$x, $y]| {
                            let (ref $x, ref $y) = ($x.tensor_with(own)?, $y.tensor_with(own)?);
                            let product: Result<Tensor> = $value;
                            scaled(own, &beta, &product?, &alpha)
                        })
                    })
                }
            )*
        }
    };
}

sums! {
    /// Returns `beta * input + alpha * (mat1 @ mat2)`; with `beta` 0, NaN and infinities in `input` do not
    /// count.
    ///
    /// Of integers, `beta` and `alpha` lose their fractions, here and in the other functions that add a
    /// product.
    addmm(mat1, mat2) = |x, y| x.matmul(y), "($self, mat1, mat2, *, beta=1, alpha=1)";
    /// Returns `beta * input + alpha * (batch1 @ batch2)` of batches of matrices.
    baddbmm(batch1, batch2) = |x, y| {
        check_ranks("baddbmm", [x, y], [3, 3])?;
        x.matmul(y)
    }, "($self, batch1, batch2, *, beta=1, alpha=1)";
    /// Returns `beta * input + alpha * sum(batch1 @ batch2)`, summed over the batch.
    addbmm(batch1, batch2) = |x, y| summed(x, y), "($self, batch1, batch2, *, beta=1, alpha=1)";
    /// Returns `beta * input + alpha * (mat @ vec)`.
    addmv(mat, vec) = |x, y| {
        check_ranks("addmv", [x, y], [2, 1])?;
        x.matmul(y)
    }, "($self, mat, vec, *, beta=1, alpha=1)";
    /// Returns `beta * input + alpha * outer(vec1, vec2)`.
    addr(vec1, vec2) = |x, y| {
        check_ranks("addr", [x, y], [1, 1])?;
        x.unsqueeze(1)?.mul(y)
    }, "($self, vec1, vec2, *, beta=1, alpha=1)";
}

/// Sums products over the last axis of both.
fn inner(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    if x.rank() == 0 || y.rank() == 0 {
        return x.mul(y);
    }
    let (a, b) = (x.shape(), y.shape());
    let (lead, rest) = (a.part(0, a.rank() - 1), b.part(0, b.rank() - 1));
    let length = a.at(a.rank() - 1);
    if b.at(b.rank() - 1) != length {
        return Err(Error::shape(format!("inner: the last axes of shapes {a} and {b} differ in length")));
    }
    let matrix = |x: &Tensor, rows: &Shape| x.reshape(&Shape::new(&[rows.numel(), length])?);
    let product = matrix(x, &lead)?.matmul(&matrix(y, &rest)?.transpose(0, 1)?)?;
    product.reshape(&Shape::new(&[lead.to_vec(), rest.to_vec()].concat())?)
}

/// The Kronecker product: axes of the two alternate, and are merged in pairs.
fn kron(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let rank = x.rank().max(y.rank());
    let lengths = |x: &Tensor| [vec![1; rank - x.rank()], x.shape().to_vec()].concat();
    let (a, b) = (lengths(x), lengths(y));
    let spread =
        |of: &[usize], at: fn(usize) -> [usize; 2]| of.iter().flat_map(|&n| at(n)).collect::<Vec<_>>();
    let (left, right) = (spread(&a, |n| [n, 1]), spread(&b, |n| [1, n]));
    let blocks = x.reshape(&Shape::new(&left)?)?.mul(&y.reshape(&Shape::new(&right)?)?)?;
    let merged: Vec<usize> = a.iter().zip(&b).map(|(n, m)| n * m).collect();
    blocks.reshape(&Shape::new(&merged)?)
}

/// The cross product along an axis; axes that one of the two has not are broadcast as well.
fn cross(x: &Tensor, y: &Tensor, axis: i64) -> Result<Tensor> {
    let (a, b) = (x.shape(), y.shape());
    let length = |shape: &Shape| -> Result<usize> {
        let one = Shape::new(&[1])?;
        let shape = if shape.rank() == 0 { &one } else { shape };
        Ok(shape.at(shape.axis(axis, "cross")?))
    };
    if [length(&a)?, length(&b)?] != [3, 3] {
        return Err(Error::shape(format!(
            "cross: length 3 along axis {axis} expected, got shapes {a} and {b}"
        )));
    }
    if axis >= 0 && a.rank() != b.rank() {
        return Err(Error::shape(format!(
            "cross: axis {axis} is not the same in shapes {a} and {b}; count it from the end"
        )));
    }
    let rank = a.rank().max(b.rank());
    x.with_rank(rank, 0)?.cross(&y.with_rank(rank, 0)?, axis)
}

#[pymethods]
impl PyTensor {
    /// Returns the inner product of two vectors, `sum(conj(input) * other)`.
    fn vdot(&self, py: Python<'_>, other: Relative<'_>) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let y = &other.beside("vdot", x)?;
        check_ranks("vdot", [x, y], [1, 1])?;
        composed(py, "vdot", x, || {
            let (x, y) = autocast::widest(x, y)?;
            // As for `dot`, a single sum makes no use of matrix units.
            let _region = interp::autocasting().then(|| interp::enter_autocast(None));
            if x.dtype().is_complex() { x.conj()?.matmul(&y) } else { x.matmul(&y) }
        })
    }

    /// Sums products over the last axis of both.
    fn inner(&self, py: Python<'_>, other: Relative<'_>) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let y = &other.beside("inner", x)?;
        composed(py, "inner", x, || inner(x, y))
    }

    /// Returns the Kronecker product: every element of `input` times all of `other`, block by block.
    fn kron(&self, py: Python<'_>, other: Relative<'_>) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let y = &other.beside("kron", x)?;
        composed(py, "kron", x, || kron(x, y))
    }

    /// Returns the cross product of vectors of length 3 along `dim`, by default the first axis of that
    /// length; the other axes broadcast.
    ///
    /// Raises:
    ///     ShapeError: the two have different numbers of axes, no axis of length 3, or do not broadcast.
    #[pyo3(signature = (other, dim=None))]
    fn cross(
        &self, py: Python<'_>, other: Relative<'_>, #[pyo3(from_py_with = optional_whole)] dim: Option<i64>,
    ) -> PyResult<PyTensor> {
        let x = &self.value()?.into_owned();
        let y = &other.beside("cross", x)?;
        let (a, b) = (x.shape(), y.shape());
        if a.rank() != b.rank() {
            return Err(Error::shape(format!(
                "cross: as many axes expected of both, got shapes {a} and {b}; unsqueeze() adds one"
            ))
            .into());
        }
        let first = || a.iter().zip(b.iter()).position(|pair| pair == (3, 3)).map_or(-1, |axis| axis as i64);
        composed(py, "cross", x, || cross(x, y, dim.unwrap_or_else(first)))
    }
}

functions! {
    /// The cross product along an axis, where axes that one of the two has not are broadcast.
    _cross(py: Python<'_>, x: Tensor, y: Tensor, axis: i64) -> PyResult<PyTensor> =
        composed(py, "cross", &x, || cross(&x, &y, axis));
}

exports! { functions: _cross }
