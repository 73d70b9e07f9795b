//! Operands that lie otherwise than the loop of a group runs: those that broadcast to it, such as a row to a
//! matrix, are read tile by tile; those that fill a part of it are read on a GPU.

use super::loops::{is_contiguous, on_gpu};
use super::{Fusion, Loop};
use crate::arguments::chain::{ElementRule, Part, Span};
use crate::array::buffer::Device;
use crate::array::nest::Nest;
use crate::array::shape::Shape;
use crate::cpu::pointwise::fused::ElementFn;
use crate::op::Op;
use crate::watch::program::Source;
use crate::watch::program::act::Act;
use crate::watch::script::View;
use smallvec::SmallVec;

/// What broadcasts is read on the host where its runs are at least so long.
const RUN: usize = 16;

/// The loop over a shape that an array broadcasts to, if it does.
pub fn broadcast(view: &View, shape: &Shape) -> Option<Nest> {
    let (rank, added) = (shape.rank(), shape.rank().checked_sub(view.shape.rank())?);
    let mut nest = Nest::empty();
    for i in (0..rank).filter(|&i| shape.at(i) != 1) {
        let stride = match i.checked_sub(added).map(|k| (view.shape.at(k), view.strides[k])) {
            None | Some((1, _)) => 0,
            Some((length, stride)) => (length == shape.at(i)).then_some(stride)?,
        };
        nest.push(shape.at(i), &[stride]);
    }
    nest.rank = nest.rank.max(1);
    Some(nest)
}

/// The first index of a part along each axis, and which of its own axes lies along it.
type Place = SmallVec<[(usize, Option<usize>); 8]>;

/// Where an array lies in a dense one of a shape, so far behind its start.
fn placed(view: &View, offset: usize, shape: &Shape) -> Option<Place> {
    let (mut rest, strides, mut axes) = (offset, shape.strides(), Place::new());
    let mut own = (0..view.shape.rank()).filter(|&k| view.shape.at(k) != 1).peekable();
    for (i, &stride) in strides[..shape.rank()].iter().enumerate() {
        let start = rest / stride as usize;
        rest %= stride as usize;
        let axis = own.next_if(|&k| view.strides[k] == stride && shape.at(i) != 1);
        if start + axis.map_or(1, |k| view.shape.at(k)) > shape.at(i) {
            return None;
        }
        axes.push((start, axis));
    }
    (own.next().is_none() && rest == 0).then_some(axes)
}

/// The part of a dense array of a shape that an array at this place fills.
fn part(view: &View, place: &[(usize, Option<usize>)], shape: &Shape, adds: bool) -> Part {
    let span = |(i, &(start, axis)): (usize, &(usize, Option<usize>))| {
        let (count, stride) = axis.map_or((1, 0), |k| (view.shape.at(k), view.strides[k]));
        Span { length: shape.at(i), start, count, stride }
    };
    Part { axes: place.iter().enumerate().map(span).collect(), adds }
}

/// How a value lies that a loop does not read in order.
#[derive(Clone, PartialEq)]
pub enum Lie {
    /// It broadcasts.
    Nest(Box<Nest>),
    /// It is a part.
    Part(Part),
}

/// Such a value.
#[derive(PartialEq)]
pub struct Operand {
    value: u32,
    lie: Lie,
}

impl Fusion<'_> {
    /// What a number behind those of values stands for.
    fn operand<T>(&self, number: u32, f: impl FnOnce(&Operand) -> T) -> Option<T> {
        let behind = (number as usize).checked_sub(self.values.len())?;
        self.operands.borrow().get(behind).map(f)
    }

    /// The value that a number stands for.
    pub fn value(&self, number: u32) -> u32 {
        self.operand(number, |operand| operand.value).unwrap_or(number)
    }

    /// How it lies, unless in order.
    pub fn lie(&self, number: u32) -> Option<Lie> {
        self.operand(number, |operand| operand.lie.clone())
    }

    /// How many axes the kernel of a GPU is told of it.
    pub fn axes(&self, number: u32) -> usize {
        let axes = |operand: &Operand| match &operand.lie {
            Lie::Nest(nest) => nest.rank,
            Lie::Part(part) => part.axes.len(),
        };
        self.operand(number, axes).unwrap_or(1)
    }

    /// The number for a value that is read so.
    fn number(&self, value: u32, lie: Lie) -> u32 {
        let (mut all, operand) = (self.operands.borrow_mut(), Operand { value, lie });
        let known = all.iter().position(|one| *one == operand).unwrap_or(all.len());
        if known == all.len() {
            all.push(operand);
        }
        (self.values.len() + known) as u32
    }

    /// The loop over the whole of a value that a step on a GPU is which makes it of a part and zeros, or adds
    /// to a part of it.
    pub fn part_of(&self, act: &Act) -> Option<Loop> {
        let (value, to, place, run) = match act {
            Act::Run { op, inputs, outputs, draw: None } => {
                let Op::Unslice(pad) = &**op else { return None };
                let (region, shape) = (&pad.region, &pad.shape);
                let to = (*outputs.first()?)?;
                if pad.fill.get()[0].to_bits() != 0 || region.steps.iter().any(|&step| step != 1) {
                    return None;
                }
                let mut own = 0..;
                let axis = |i| if region.dropped.contains(i) { None } else { own.next() };
                let place: Place = region.starts.iter().copied().zip((0..shape.rank()).map(axis)).collect();
                (*inputs.first()?, to, place, ElementFn::elsewhere(|| ElementRule::Same, self.view(to).dtype))
            }
            Act::Write { op, inputs, outputs, draw: None, shown: false } => {
                let ([sum, value], [to]) = (inputs.as_slice(), outputs.as_slice()) else { return None };
                let (base, part) = (self.root(*to), self.view(*to));
                let whole = self.view(base);
                let adds = op.name() == "add" && sum == to && base != *to;
                let alike = part.dtype == whole.dtype && part.shape == self.view(*value).shape;
                if !adds || !alike {
                    return None;
                }
                let place = placed(part, part.offset.checked_sub(whole.offset)?, &whole.shape)?;
                (*value, base, place, on_gpu(op, &[part.dtype, self.view(*value).dtype])?)
            }
            _ => return None,
        };
        let (view, whole) = (self.view(value), self.view(to));
        let is_whole = is_contiguous(whole) && matches!(self.values[to as usize].source, Source::Step);
        let fits = whole.dtype.is_float() && whole.shape.rank() == place.len() && whole.shape.numel() > 0;
        if !is_whole || !fits || run.out != whole.dtype {
            return None;
        }
        let adds = matches!(act, Act::Write { .. });
        let number = self.number(value, Lie::Part(part(view, &place, &whole.shape, adds)));
        Some((run, [to].into_iter().take(usize::from(adds)).chain([number]).collect(), to))
    }

    /// The number of a value as a loop of this shape reads it, if it broadcasts in runs.
    pub fn broadcast(&self, value: u32, shape: &Shape) -> Option<u32> {
        let nest = broadcast(self.view(value), shape)?;
        let last = nest.rank - 1;
        let in_runs = nest.dims[last] >= RUN && matches!(nest.strides[0][last], 0 | 1);
        if !in_runs && self.device(value) == Device::Cpu {
            return None;
        }
        Some(self.number(value, Lie::Nest(Box::new(nest))))
    }
}
