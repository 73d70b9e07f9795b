//! Indexed writes, at a cost proportional to the elements written.
//!
//! A tensor is viewed as a table: rows of `width` elements in row-major order, as wide as the index allows.
//! An index becomes row numbers ([`Rows`]). [`PutRows`] is the one operation that writes, in place over its
//! first operand where it may (`src/ops/writes/inplace.rs`). Read next: `src/py/tensor/index.rs`.

use crate::cpu::indexing::gather::positions;
use crate::cpu::indexing::put::{self, offsets, sums, sums_of_parts};
use crate::ops::indexing::index::index_from_front;
use crate::ops::indexing::{check_index, index_shape};
use crate::ops::pointwise::operand::Operand;
use crate::ops::prelude::*;
use crate::ops::views::strided::Part;
use crate::ops::writes::donated::{Donated, based};
use crate::watch::debug::{self, Modes};

/// The first input with rows replaced by those of the second, or with these added. Inputs: x (any shape),
/// value `[n, width]`, index `[n]`, all on the CPU. Where indices repeat, the last one wins.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PutRows {
    /// The number of elements of a row.
    pub width: u64,
    /// Whether the rows are added to x instead of replacing.
    pub add: bool,
    /// Memory that need not be copied.
    pub over: Donated,
}

kernel! {
    PutRows, "put_rows", |self, x| {
        let out = self.over.base(x[0])?;
        put::rows(&out, self.width as usize, x[1], x[2], self.add)?;
        Ok(out)
    },
    into |out| {
        based(x[0], out[0])?;
        put::rows(out[0], self.width as usize, x[1], x[2], self.add)
    },
    /// One per added element.
    flops |x, _y| if self.add { cost::each(&x[1..2], 1) } else { 0 }
}

impl Linear for PutRows {
    const TRANSPOSE: &'static str =
        "for x: g, with zeros where rows were replaced; for value: the rows of g where it stayed";
    const READS: Saves = Saves::input(2);

    fn transpose(&self, wrt: usize, g: &Tensor, c: &Vjp) -> Result<Tensor> {
        let (index, width) = (c.input(2)?, self.width as usize);
        if wrt == 0 && self.add {
            return Ok(g.clone());
        }
        if wrt == 0 {
            let zeros = Tensor::zeros(Shape::new(&[index.numel(), width])?, g.dtype(), g.device())?;
            return bind(self.clone(), &[g, &zeros, index]);
        }
        let table = Shape::new(&[g.numel() / width.max(1), width])?;
        let taken = g.reshape(&table)?.take(index, 0)?;
        if self.add {
            return Ok(taken);
        }
        bind(IsLast, &[index])?.unsqueeze(1)?.select(&taken, 0.0)
    }
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        let (whole, value) = (x[0].materialized(size)?, x[1].materialized(size)?);
        let index = x[2].materialized(size)?;
        let rows = whole.numel() / size.max(1) / (self.width as usize).max(1);
        let starts = Tensor::arange(0.0, rows as f64, size, DType::I64, Device::Cpu)?.unsqueeze(1)?;
        let index = index.add(&starts)?.flatten(0, 1)?;
        Ok(smallvec![(bind(self.clone(), &[&whole, &value.flatten(0, 1)?, &index])?, Some(0))])
    }
}

/// Whether each element is the last occurrence of its value along the last axis, which wins on repeats.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IsLast;

kernel! { IsLast, "is_last", |self, x| put::is_last(x[0]) }

impl Discrete for IsLast {
    batch!(first_in_front: |self| *self);
}

/// Whether `count` elements are added to `x` in place. If there are many, a pass over all of `x` in order is
/// used instead: it can use several threads, and it adds halves in float32.
pub fn adds_in_part(x: &Tensor, count: usize) -> bool {
    x.device() == Device::Cpu && put::adds(x.dtype()) && count.saturating_mul(4) <= x.numel()
}

/// The rows of a tensor that an index selects.
pub struct Rows {
    /// Row numbers, int64 `[n]`.
    pub index: Tensor,
    /// The number of elements of each.
    pub width: usize,
    /// The shape of the value to be written, in the order of the rows.
    pub shape: Shape,
}

/// An index tensor, the length of its axis, and the stride of that axis.
struct Indexed {
    index: Tensor,
    length: usize,
    stride: isize,
}

/// The elements an index selects, in row-major order: `offset` plus one element of each of three lists.
struct Places {
    offset: usize,
    before: Vec<(usize, isize)>,
    /// The sum of index tensors, of this shape; if `parts`, with a separate part per element of `before`.
    indexed: Vec<Indexed>,
    shape: Shape,
    parts: bool,
    after: Vec<(usize, isize)>,
}

impl Rows {
    /// The rows of `part[indices]` in a tensor of `numel` elements; `None` keeps an axis whole. The index
    /// axes come first if they are not adjacent, or if `in_front`.
    pub fn of_index(part: &Part, numel: usize, indices: &[Option<Tensor>], in_front: bool) -> Result<Rows> {
        let axis = |i: usize| (part.shape.at(i), part.strides[i]);
        let shape = index_shape("setitem", indices)?;
        let named = |i: usize| {
            let index = indices[i].clone()?;
            Some(Indexed { index, length: axis(i).0, stride: axis(i).1 })
        };
        let axes: Vec<usize> = (0..indices.len()).filter(|&i| indices[i].is_some()).collect();
        let indexed = axes.iter().filter_map(|&i| named(i)).collect();
        let adjacent = axes.windows(2).all(|w| w[1] == w[0] + 1);
        let position = if adjacent && !in_front { axes.first().copied().unwrap_or(0) } else { 0 };
        let rest = (position..part.shape.rank()).filter(|i| !axes.contains(i));
        let (before, after) = ((0..position).map(axis).collect(), rest.map(axis).collect());
        Places { offset: part.offset, before, indexed, shape, parts: false, after }.rows(numel)
    }

    /// The rows of `part[.., index]`, with `axis` axes before the index.
    pub fn of_slices(part: &Part, numel: usize, axis: usize, index: &Tensor) -> Result<Rows> {
        let mut indices = vec![None; part.shape.rank()];
        indices[axis] = Some(index.clone());
        Rows::of_index(part, numel, &indices, false)
    }

    /// The rows of `part[index[i, j, ..], j, ..]` for axis 0, and so on.
    pub fn of_scatter(part: &Part, numel: usize, axis: usize, index: &Tensor) -> Result<Rows> {
        check_index("scatter", index)?;
        let own = index.shape();
        let along = |i: usize| (own.at(i), part.strides[i]);
        let (before, after) = ((0..axis).map(along).collect(), (axis + 1..own.rank()).map(along).collect());
        let indexed =
            vec![Indexed { index: index.clone(), length: part.shape.at(axis), stride: part.strides[axis] }];
        Places { offset: part.offset, before, indexed, shape: own, parts: true, after }.rows(numel)
    }
}

impl Places {
    /// The shape of the selection.
    fn target(&self) -> Result<Shape> {
        if self.parts {
            return Ok(self.shape);
        }
        let whole = |axes: &[(usize, isize)]| axes.iter().map(|a| a.0).collect::<Vec<_>>();
        Shape::new(&[whole(&self.before), self.shape.to_vec(), whole(&self.after)].concat())
    }

    fn rows(mut self, numel: usize) -> Result<Rows> {
        let shape = self.target()?;
        if self.shape.numel() == 0 {
            // An empty selection is never out of range.
            return Ok(Rows { index: Tensor::from_slice::<i64>(&[], &[0])?, width: 1, shape });
        }
        // The stride of an axis of one element does not matter.
        for axis in self.before.iter_mut().chain(&mut self.after).filter(|axis| axis.0 <= 1) {
            axis.1 = 0;
        }
        let mut run = 1;
        while let Some(&(length, stride)) = self.after.last().filter(|_| !self.parts)
            && (length <= 1 || stride == run as isize)
        {
            run *= length.max(1);
            self.after.pop();
        }
        let strides = self.before.iter().chain(&self.after).map(|axis| axis.1);
        let strides = strides.chain(self.indexed.iter().filter(|i| i.length > 1).map(|i| i.stride));
        let width = strides.map(isize::unsigned_abs).chain([self.offset, numel]).fold(run, divisor).max(1);
        if width < run {
            self.after.push((run / width, width as isize));
        }
        for axis in self.before.iter_mut().chain(&mut self.after) {
            axis.1 /= width as isize;
        }
        self.indexed.iter_mut().for_each(|i| i.stride /= width as isize);
        self.offset /= width;
        let is_known = self.indexed.iter().all(|i| i.index.concrete().is_some());
        let index = if is_known && !debug::modes().has(Modes::SCRIPT) {
            self.numbers()?.into()
        } else {
            self.composed()?
        };
        Ok(Rows { index, width, shape })
    }

    /// The row numbers, where the indices are known.
    fn numbers(&self) -> Result<Array> {
        let mut all = crate::array::buffer::filled(0i64, self.shape.numel())?;
        for i in &self.indexed {
            let index = &i.index.array("setitem")?.to_device(Device::Cpu)?;
            let mut own = positions(index, i.length)?.into_iter();
            let mut steps = Array::empty(index.shape(), DType::I64, Device::Cpu)?;
            let to = steps.slice_mut::<i64>()?.iter_mut();
            to.zip(&mut own).for_each(|(to, at)| *to = at as i64 * i.stride as i64);
            let wide = crate::cpu::pointwise::copy::contiguous(&steps.expand(&self.shape)?)?;
            all.iter_mut().zip(wide.slice::<i64>()?).for_each(|(to, step)| *to += step);
        }
        let mut first = offsets(&self.before)?;
        first.iter_mut().for_each(|at| *at += self.offset as i64);
        let third = offsets(&self.after)?;
        if self.parts {
            let each = self.shape.numel() / first.len().max(1) / third.len().max(1);
            return sums_of_parts(&first, &all, each, &third);
        }
        sums(&first, &all, &third)
    }

    /// [`Places::numbers`] by tensor operations, for indices that an interpreter owns.
    fn composed(&self) -> Result<Tensor> {
        let listed = |all: Vec<i64>, axis: usize| -> Result<Tensor> {
            let mut dims = [1; 3];
            dims[axis] = all.len();
            Tensor::from_slice(&all, &dims)
        };
        let (first, third) = (listed(offsets(&self.before)?, 0)?, listed(offsets(&self.after)?, 2)?);
        let dims = if self.parts {
            let (b, a) = (first.numel(), third.numel());
            [b, self.shape.numel() / b.max(1) / a.max(1), a]
        } else {
            [1, self.shape.numel(), 1]
        };
        let mut total = first.add(&third)?.add(self.offset as i64)?;
        for i in &self.indexed {
            let at = index_from_front(&i.index.to_device(Device::Cpu)?, 0, i.length)?;
            let at = at.mul(i.stride as i64)?.expand(&self.shape)?.reshape(&Shape::new(&dims)?)?;
            total = total.add(&at)?;
        }
        let count = total.numel();
        total.reshape(&Shape::new(&[count])?)
    }
}

/// The greatest common divisor; `divisor(a, 0)` is `a`.
fn divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { divisor(b, a % b) }
}

impl Tensor {
    /// This tensor with rows replaced by those of `value`, of shape `rows.shape`, or with these added.
    pub fn put_rows(&self, rows: &Rows, value: &Tensor, add: bool) -> Result<Tensor> {
        self.put_rows_over(rows, value, add, Donated::default())
    }

    /// [`Tensor::put_rows`], in place where this tensor's memory is `over`.
    pub fn put_rows_over(&self, rows: &Rows, value: &Tensor, add: bool, over: Donated) -> Result<Tensor> {
        if rows.shape.numel() == 0 {
            return self.with_nothing_of(value);
        }
        let table = value.reshape(&Shape::new(&[rows.index.numel(), rows.width])?)?;
        if self.device() != Device::Cpu {
            return self.put_rows_composed(rows, &table, add);
        }
        let op = PutRows { width: rows.width as u64, add, over };
        bind(op, &[self, &table, &rows.index])
    }

    /// Returns a copy that also depends on `other`, of which it reads no element: that derivative is zero.
    pub fn with_nothing_of(&self, other: &Tensor) -> Result<Tensor> {
        if !self.dtype().is_differentiable() || !other.dtype().is_differentiable() {
            return self.copied();
        }
        let nothing = other.reshape(&Shape::new(&[other.numel()])?)?.narrow(0, 0, 0)?;
        // Adding minus zero changes no number, not even zeros of either sign.
        self.add(&nothing.sum(None, false)?.cast(self.dtype())?.neg()?)
    }

    /// [`Tensor::put_rows`] by operations that GPUs support.
    fn put_rows_composed(&self, rows: &Rows, value: &Tensor, add: bool) -> Result<Tensor> {
        let count = self.numel() / rows.width;
        let table = self.reshape(&Shape::new(&[count, rows.width])?)?;
        let here = |index: &Tensor| index.cast(DType::I32)?.to_device(self.device());
        let next = if add {
            table.index_add(0, &here(&rows.index)?, value)?
        } else {
            // For each row of the tensor, the row of the value that wins there; -1 for none.
            let last = here(&rows.index.scatter_last(0, count)?)?;
            let written = value.take(&last.clamp(Some(Operand::Int(0)), None)?, 0)?;
            last.ge(0i64)?.unsqueeze(1)?.select(&written, &table)?
        };
        next.reshape(&self.shape())
    }
}
