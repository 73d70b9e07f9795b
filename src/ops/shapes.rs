//! What operations make where values do not matter (`src/watch/absent.rs`): the shape and the dtype of each
//! output, by a rule where there is one, else of what the operation is composed of, else by its kernel.

use crate::array::shape::Axes;
use crate::interp;
use crate::op::{Class, Op};
use crate::ops;
use crate::ops::prelude::*;
use crate::watch::absent::{absent, is_absent};
use crate::watch::debug::{Modes, suspend};

/// The outputs of an operation, without values.
pub fn outputs(op: &Op, x: &[&Array]) -> Result<Tensors> {
    let none = |(shape, dtype): (Shape, DType)| absent(shape, dtype).map(Tensor::Array);
    let on_host = x.iter().all(|x| x.device() == Device::Cpu);
    if let Some(kind) = kind(op, x)?.filter(|_| on_host) {
        return Ok(smallvec![none(kind)?]);
    }
    if op.class() == Class::Composite {
        let tensors: SmallVec<[Tensor; 4]> = x.iter().map(|&x| Tensor::Array(x.clone())).collect();
        let _guard = interp::evaluating();
        if let Some(found) = op.decompose(&tensors.iter().collect::<SmallVec<[&Tensor; 4]>>()) {
            return found;
        }
    }
    let made = {
        let _quiet = suspend(Modes::SHAPES);
        op.eval(x)?
    };
    // A view has no memory of its own.
    let is_view = |y: &Array| x.iter().any(|x| x.buffer().same(y.buffer()));
    let each = made.into_iter();
    each.map(|y| if is_view(&y) { Ok(Tensor::Array(y)) } else { none((y.shape(), y.dtype())) }).collect()
}

/// The shape that operands broadcast to.
fn together(x: &[&Array]) -> Option<Shape> {
    let mut shapes = x.iter().map(|x| x.shape());
    let first = shapes.next()?;
    shapes.try_fold(first, |all, shape| all.broadcast(&shape))
}

/// The shape with another length of an axis.
fn with_length(shape: Shape, axis: usize, length: usize) -> Result<Shape> {
    let lengths: SmallVec<[usize; 8]> =
        shape.iter().enumerate().map(|(i, own)| if i == axis { length } else { own }).collect();
    Shape::new(&lengths)
}

/// The shape and dtype of the one output of an operation; `None` where no rule says it.
fn kind(op: &Op, x: &[&Array]) -> Result<Option<(Shape, DType)>> {
    let like = |i: usize| (x[i].shape(), x[i].dtype());
    let broadcast = |dtype: DType| together(x).map(|shape| (shape, dtype));
    Ok(match op {
        Op::Map(_) | Op::Bitwise(_) | Op::NextAfter(_) | Op::ComplexProduct(_) => {
            let dtypes = x.iter().map(|x| x.dtype());
            broadcast(DType::of_rule(dtypes).unwrap_or(x[0].dtype()))
        }
        Op::Compare(_) | Op::Logical(_) => broadcast(DType::Bool),
        Op::Select(_) => broadcast(x[1].dtype()),
        Op::Cast(op) => Some((x[0].shape(), op.dtype)),
        Op::Contiguous(_) | Op::CumSum(_) | Op::CumProd(_) | Op::Triangle(_) | Op::Softmax(_) => {
            Some(like(0))
        }
        Op::Put(_) | Op::PutRows(_) | Op::Cholesky(_) | Op::Cofactor(_) | Op::MatrixExp(_) => Some(like(0)),
        Op::Sum(ops::reduce::Sum { axes, keepdim }) | Op::Prod(ops::reduce::Prod { axes, keepdim }) => {
            let dtype = x[0].dtype();
            let is_counted = !dtype.is_differentiable() && dtype != DType::U64;
            let dtype = if is_counted { DType::I64 } else { dtype };
            Some((x[0].shape().reduced(*axes, *keepdim), dtype))
        }
        Op::Mean(op) => Some((x[0].shape().reduced(op.axes, op.keepdim), x[0].dtype())),
        Op::Extremum(op) => Some((x[0].shape().reduced(op.axes, op.keepdim), x[0].dtype())),
        Op::CountNonzero(op) => Some((x[0].shape().reduced(op.axes, op.keepdim), DType::I64)),
        Op::ArgExtremum(op) => {
            Some((x[0].shape().reduced(Axes::one(op.axis as usize), op.keepdim), DType::I64))
        }
        Op::ArgSort(op) => {
            Some((with_length(x[0].shape(), op.axis as usize, op.count as usize)?, DType::I64))
        }
        Op::ArgScan(_) => Some((x[0].shape(), DType::I64)),
        Op::Spread(op) => Some((op.shape, x[0].dtype())),
        Op::Matmul(op) => Some((op.shape(x)?, x[0].dtype())),
        Op::Reshape(op) if x[0].reshape_view(&op.shape).is_none() => Some((op.shape, x[0].dtype())),
        Op::AsStrided(op) if is_absent(x[0]) => Some((op.part.shape, x[0].dtype())),
        Op::AsStridedTranspose(op) => Some((op.shape, x[0].dtype())),
        Op::Solve(_) | Op::TriangularSolve(_) => Some(like(1)),
        Op::Unslice(op) => Some((op.shape, x[0].dtype())),
        Op::Cat(op) => {
            let length = op.lengths.iter().sum();
            Some((with_length(x[0].shape(), op.axis as usize, length)?, x[0].dtype()))
        }
        Op::Take(op) => {
            let (shape, axis) = (x[0].shape(), op.axis as usize);
            let before = shape.iter().take(axis);
            let lengths: SmallVec<[usize; 8]> =
                before.chain(x[1].shape().iter()).chain(shape.iter().skip(axis + 1)).collect();
            Some((Shape::new(&lengths)?, x[0].dtype()))
        }
        Op::TakeAdd(op) => Some((op.shape, x[0].dtype())),
        Op::ScatterAdd(op) => Some((op.shape, x[0].dtype())),
        Op::Gather(_) => Some((x[1].shape(), x[0].dtype())),
        Op::Collective(op) => Some((op.shape(x[0].shape())?, x[0].dtype())),
        Op::Random(op) if op.device == Device::Cpu => Some((op.shape, op.dtype)),
        Op::Create(op) if op.device == Device::Cpu => Some((op.shape, op.dtype)),
        _ => None,
    })
}
