//! The matrix product. Batch axes broadcast; operands may have any strides, so transposes cost nothing.

use crate::ops::pointwise::operand::promote;
use crate::ops::prelude::*;

/// The meaning of an operand's last axes. The forms are closed under transposition, so every derivative of a
/// product is one product, and neither vectors nor transposes need a view node on the tape.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// A matrix.
    Plain,
    /// A matrix stored as its transpose.
    Transposed,
    /// A vector that acts as a matrix of one row.
    Row,
    /// A vector that acts as a matrix of one column.
    Column,
}

impl Form {
    /// The form under which the same elements are the transposed matrix.
    fn transposed(self) -> Form {
        match self {
            Form::Plain => Form::Transposed,
            Form::Transposed => Form::Plain,
            Form::Row => Form::Column,
            Form::Column => Form::Row,
        }
    }

    /// The number of axes of the matrix; those before them are the batch.
    fn rank(self) -> usize {
        match self {
            Form::Plain | Form::Transposed => 2,
            Form::Row | Form::Column => 1,
        }
    }

    /// The operand as a matrix, a view.
    fn matrix(self, x: &Array) -> Result<Array> {
        let rank = x.rank();
        match self {
            Form::Plain => Ok(x.clone()),
            Form::Transposed => x.transposed(rank - 2, rank - 1),
            Form::Row => x.with_axis(rank - 1),
            Form::Column => x.with_axis(rank),
        }
    }
}

/// The product of two matrices, with batch axes that broadcast. The result has no axis for a `Row` on the
/// left or a `Column` on the right. A `Column` on the left takes a `Row` on the right: the outer product.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Matmul {
    /// The left operand.
    pub left: Form,
    /// The right operand.
    pub right: Form,
}

/// Matrix by matrix.
pub const MATRICES: Matmul = Matmul { left: Form::Plain, right: Form::Plain };

/// The product of two operands in these forms.
pub fn product(x: &Tensor, left: Form, y: &Tensor, right: Form) -> Result<Tensor> {
    bind(Matmul { left, right }, &[x, y])
}

impl Matmul {
    /// The form of the result; `None` for the inner product of two vectors, which has no axis.
    fn result(&self) -> Option<Form> {
        match (self.left, self.right) {
            (Form::Row, Form::Column) => None,
            (Form::Row, _) => Some(Form::Row),
            (_, Form::Column) => Some(Form::Column),
            _ => Some(Form::Plain),
        }
    }

    /// The shape of the product of these operands.
    pub fn shape(&self, x: &[&Array]) -> Result<Shape> {
        let (a, b) = (self.left.matrix(x[0])?, self.right.matrix(x[1])?);
        let rank = a.rank().max(b.rank());
        let (a, b) = (ranked(a, rank)?.shape(), ranked(b, rank)?.shape());
        // An axis of length 1 is repeated.
        let batch = (0..rank - 2).map(|i| if a.at(i) == 1 { b.at(i) } else { a.at(i) });
        let mut lengths: SmallVec<[usize; 8]> = batch.collect();
        if self.left != Form::Row {
            lengths.push(a.at(rank - 2));
        }
        if self.right != Form::Column {
            lengths.push(b.at(rank - 1));
        }
        Shape::new(&lengths)
    }

    /// The product of a vector with a cotangent that has only the batch axes.
    fn scaled(g: &Tensor, x: &Tensor) -> Result<Tensor> {
        if g.rank() == 0 { x.mul(g) } else { g.unsqueeze(-1)?.mul(x) }
    }

    /// Computes a batch of one operand against one matrix or vector as a single large product, if possible:
    /// stacks the rows of the batch, or places its columns side by side.
    fn one_product(&self, x: &[Batched]) -> Result<Option<(Tensor, Option<usize>)>> {
        let (left, right) = (self.left, self.right);
        let alone = |i: usize, form: Form| x[i].axis.is_none() && x[i].value.rank() == form.rank();
        let stacked = |i: usize, form: Form| x[i].axis.is_some() && x[i].value.rank() == form.rank() + 1;
        if stacked(0, left) && alone(1, right) {
            let (value, y) = (x[0].front()?, &x[1].value);
            return match left {
                Form::Row => Ok(Some((product(&value, Form::Plain, y, right)?, Some(0)))),
                Form::Plain | Form::Column => {
                    let out = product(&joined(&value)?, left, y, right)?;
                    Ok(Some((parted(&out, value.shape().part(0, 2), 0)?, Some(0))))
                }
                Form::Transposed => Ok(None),
            };
        }
        if alone(0, left) && stacked(1, right) {
            let (value, x) = (x[1].front()?, &x[0].value);
            return match right {
                Form::Column => Ok(Some((product(&value, Form::Plain, x, left.transposed())?, Some(0)))),
                Form::Transposed | Form::Row => {
                    let out = product(x, left, &joined(&value)?, right)?;
                    let axis = out.rank() - 1;
                    Ok(Some((parted(&out, value.shape().part(0, 2), axis)?, Some(axis))))
                }
                Form::Plain => Ok(None),
            };
        }
        Ok(None)
    }
}

kernel! {
    Matmul, "matmul", |self, x| {
        if *self == MATRICES && x[0].rank() == x[1].rank() {
            return on_device!(x[0], matmul::matmul(x[0], x[1]));
        }
        let (a, b) = (self.left.matrix(x[0])?, self.right.matrix(x[1])?);
        let rank = a.rank().max(b.rank());
        let (a, b) = (ranked(a, rank)?, ranked(b, rank)?);
        let out = on_device!(a, matmul::matmul(&a, &b))?;
        // The kernel's results are contiguous, so a view drops axes of length 1.
        let mut shape = out.shape();
        if self.right == Form::Column {
            shape = shape.removed(rank - 1);
        }
        if self.left == Form::Row {
            shape = shape.removed(rank - 2);
        }
        if shape.rank() == rank {
            return Ok(out);
        }
        out.with_layout(shape, &shape.strides()[..shape.rank()], out.offset())
    },
    /// 2 m n k.
    flops |x, y| {
        let terms = self.left.matrix(x[0]).map_or(0, |m| m.dim(m.rank() - 1));
        y.iter().map(|y| cost::product(y.numel(), terms)).sum()
    }
}

/// Prepends axes of length 1 to `x`, up to `rank`: the kernels take operands of equal rank.
fn ranked(mut x: Array, rank: usize) -> Result<Array> {
    while x.rank() < rank {
        x = x.with_axis(0)?;
    }
    Ok(x)
}

impl Bilinear for Matmul {
    const TRANSPOSES: [&'static str; 2] = ["g y' for x", "x' g for y"];

    fn transpose_left(&self, g: &Tensor, y: &Tensor, _c: &Vjp) -> Result<Tensor> {
        match (self.result(), self.left) {
            (None, _) => Matmul::scaled(g, y),
            (Some(form), Form::Transposed) => product(y, self.right, g, form.transposed()),
            (Some(form), _) => product(g, form, y, self.right.transposed()),
        }
    }
    fn transpose_right(&self, g: &Tensor, x: &Tensor, _c: &Vjp) -> Result<Tensor> {
        match (self.result(), self.right) {
            (None, _) => Matmul::scaled(g, x),
            (Some(form), Form::Transposed) => product(g, form.transposed(), x, self.left),
            (Some(form), _) => product(x, self.left.transposed(), g, form),
        }
    }
    fn batch(&self, x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
        if let Some(out) = self.one_product(x)? {
            return Ok(smallvec![out]);
        }
        let axes = |i: usize, form: Form| x[i].value.rank() - x[i].axis.is_some() as usize - form.rank();
        let batch = axes(0, self.left).max(axes(1, self.right));
        // Missing batch axes of an operand stand behind the one in front.
        let leading = |x: &Batched, rank: usize| {
            let at = x.axis.is_some() as usize;
            x.front()?.with_rank(rank + at, at)
        };
        let left = leading(&x[0], batch + self.left.rank())?;
        let right = leading(&x[1], batch + self.right.rank())?;
        Ok(smallvec![(product(&left, self.left, &right, self.right)?, Some(0))])
    }
}

/// Merges the first two axes of `x`.
fn joined(x: &Tensor) -> Result<Tensor> {
    let shape = x.shape();
    let rows = Shape::new(&[shape.at(0) * shape.at(1)])?;
    x.reshape(&if shape.rank() == 2 { rows } else { rows.inserted(1, shape.at(2))? })
}

/// Splits axis `axis` of `x` into two of these lengths.
fn parted(x: &Tensor, lengths: Shape, axis: usize) -> Result<Tensor> {
    x.reshape(&x.shape().with(axis, lengths.at(1)).inserted(axis, lengths.at(0))?)
}

#[cold]
fn mismatch(x: &Tensor, y: &Tensor) -> Error {
    Error::shape(format!(
        "matmul: shapes {} and {} do not multiply: the last axis of the first must equal the second-to-last \
         (or only) axis of the second, and leading axes must broadcast",
        x.shape(),
        y.shape()
    ))
}

impl Tensor {
    /// Matrix product as `numpy.matmul`: vectors are rows or columns, leading axes broadcast.
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        let (a, b) = (self.shape(), other.shape());
        if a.rank() == 0 || b.rank() == 0 {
            return Err(Error::shape(format!(
                "matmul: operands need at least one axis, got shapes {a} and {b}; multiply scalars with *"
            )));
        }
        if self.dtype() == DType::Bool && other.dtype() == DType::Bool {
            return Err(Error::dtype(
                "matmul: numbers expected, got two bool tensors; convert one with .int() to count, and \
                 compare the counts with > 0 for a logical product",
            ));
        }
        if self.dtype() != other.dtype() && !crate::interp::autocasting() {
            let dtype = promote(self, other);
            return self.cast(dtype)?.matmul(&other.cast(dtype)?);
        }
        let inner = b.at(b.rank().saturating_sub(2).min(b.rank() - 1));
        if a.at(a.rank() - 1) != inner {
            return Err(mismatch(self, other));
        }
        let left = if a.rank() == 1 { Form::Row } else { Form::Plain };
        let right = if b.rank() == 1 { Form::Column } else { Form::Plain };
        if b.rank() <= 2 && a.rank() > 2 {
            // One tall product; its backward is one product too, without a sum over the batch.
            let rows = a.part(0, a.rank() - 1);
            let flat = self.reshape(&Shape::new(&[rows.numel(), inner])?)?;
            let out = product(&flat, left, other, right)?;
            let shape = if b.rank() == 2 { rows.inserted(rows.rank(), b.at(1))? } else { rows };
            return out.reshape(&shape);
        }
        if left == Form::Row || right == Form::Column {
            return product(self, left, other, right);
        }
        if a.part(0, a.rank() - 2).broadcast(&b.part(0, b.rank() - 2)).is_none() {
            return Err(mismatch(self, other));
        }
        product(self, left, other, right)
    }
}
