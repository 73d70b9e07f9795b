//! Picking elements by index tensors, and the transposes that add them back.
//!
//! `take` picks whole rows of one axis, `gather` one element per index. Every form of advanced indexing
//! becomes a `take` after merging the indexed axes (`Tensor::index`). Indices out of range raise; negative
//! ones count from the end.

use crate::array::Array;
use crate::autodiff::node::Vjp;
use crate::cost;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Arrays, BatchedOutputs, Kernel, Lane, Linear, Needs, Saves};
use crate::ops::{on_device, one};
use crate::shape::Shape;
use crate::tensor::Tensor;
use smallvec::smallvec;

/// `out[.., i.., ..] = x[.., index[i..], ..]` along `axis`. Inputs: x, index (any shape).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Take {
    /// The axis of `x`.
    pub axis: u8,
}

impl Kernel for Take {
    fn name(&self) -> &'static str {
        "take"
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        one!(on_device!(x[0], gather::take(x[0], x[1], self.axis as usize)))
    }
    fn flops(&self, _x: &[&Array], _y: &[Array]) -> u64 {
        0
    }
}

impl Linear for Take {
    const TRANSPOSE: &'static str = "rows of g added up by index";

    fn saves(&self, _needs: Needs, _inputs: usize) -> Saves {
        Saves::input(1)
    }
    fn transpose(&self, _wrt: usize, g: &Tensor, c: &Vjp) -> Result<Tensor> {
        crate::bind::bind1(TakeAdd { axis: self.axis, shape: c.aval(0)?.shape }, &[g, c.input(1)?])
    }
    fn batch(&self, x: &[Lane], size: usize) -> Result<BatchedOutputs> {
        let (value, index) = (x[0].front()?, x[1].front()?);
        let axis = self.axis as usize;
        match (x[0].axis, x[1].axis) {
            (_, None) => {
                let op = Take { axis: self.axis + 1 };
                Ok(smallvec![(crate::bind::bind1(op, &[&value, &index])?, Some(0))])
            }
            // The index axes, the batch among them, come out where the taken axis was.
            (None, _) => Ok(smallvec![(crate::bind::bind1(*self, &[&value, &index])?, Some(axis))]),
            (Some(_), Some(_)) => {
                // One long axis of all batch elements' rows; each batch element indexes its own stretch.
                let rows = value.move_axis(axis + 1, 1)?;
                let n = rows.shape().at(1);
                let merged = rows.flatten(0, 1)?;
                let index = offset_index(&index, size, n)?;
                let out = crate::bind::bind1(Take { axis: 0 }, &[&merged, &index])?;
                // [batch, index.., rest..] -> [batch, before.., index.., after..]
                let count = index.rank() - 1;
                let mut order: Vec<i64> = vec![0];
                order.extend((0..axis).map(|i| (1 + count + i) as i64));
                order.extend((0..count).map(|i| (1 + i) as i64));
                order.extend((1 + count + axis..out.rank()).map(|i| i as i64));
                Ok(smallvec![(out.permute(&order)?, Some(0))])
            }
        }
    }
}

/// Checked indices into `size` stretches of length `n` laid end to end, from indices into each (batch axis in
/// front).
fn offset_index(index: &Tensor, size: usize, n: usize) -> Result<Tensor> {
    check_range(index, 0, n)?;
    let mut dims = vec![1; index.rank()];
    dims[0] = size;
    let starts =
        Tensor::arange(0.0, n as f64, size, index.dtype(), index.device())?.reshape(&Shape::new(&dims)?)?;
    let wrapped = index.lt(0i64)?.select(&index.add(n as i64)?, index)?;
    wrapped.add(&starts)
}

/// The transpose of [`Take`]: rows of `g` added into zeros. Inputs: g, index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TakeAdd {
    /// The axis of the output.
    pub axis: u8,
    /// The shape of the output.
    pub shape: Shape,
}

impl Kernel for TakeAdd {
    fn name(&self) -> &'static str {
        "take_add"
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        one!(on_device!(x[0], gather::take_add(x[0], x[1], self.axis as usize, &self.shape)))
    }
    /// One per input.
    fn flops(&self, x: &[&Array], _y: &[Array]) -> u64 {
        cost::each(x, 1)
    }
}

impl Linear for TakeAdd {
    const TRANSPOSE: &'static str = "rows of g taken by index";

    fn saves(&self, _needs: Needs, _inputs: usize) -> Saves {
        Saves::input(1)
    }
    fn transpose(&self, _wrt: usize, g: &Tensor, c: &Vjp) -> Result<Tensor> {
        crate::bind::bind1(Take { axis: self.axis }, &[g, c.input(1)?])
    }
    fn batch(&self, x: &[Lane], size: usize) -> Result<BatchedOutputs> {
        let axis = self.axis as usize;
        let g = x[0].materialized(size)?;
        if x[1].axis.is_none() {
            let op = TakeAdd { axis: self.axis + 1, shape: self.shape.inserted(0, size)? };
            return Ok(smallvec![(crate::bind::bind1(op, &[&g, &x[1].value])?, Some(0))]);
        }
        let n = self.shape.at(axis);
        let index = offset_index(&x[1].front()?, size, n)?;
        let count = index.rank() - 1;
        // [batch, before.., index.., after..] -> [batch, index.., before.., after..]
        let mut order: Vec<i64> = vec![0];
        order.extend((0..count).map(|i| (1 + axis + i) as i64));
        order.extend((0..axis).map(|i| (1 + i) as i64));
        order.extend((1 + axis + count..g.rank()).map(|i| i as i64));
        let rest = self.shape.removed(axis);
        let op = TakeAdd { axis: 0, shape: rest.inserted(0, size * n)? };
        let out = crate::bind::bind1(op, &[&g.permute(&order)?, &index])?;
        let out = out.reshape(&rest.inserted(0, n)?.inserted(0, size)?)?;
        Ok(smallvec![(out.move_axis(1, 1 + axis)?, Some(0))])
    }
}

/// `out[i, j, ..] = x[index[i, j, ..], j, ..]` for axis 0, and so on. Inputs: x, index (same rank).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Gather {
    /// The axis of `x`.
    pub axis: u8,
}

impl Kernel for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        one!(on_device!(x[0], gather::gather(x[0], x[1], self.axis as usize)))
    }
    fn flops(&self, _x: &[&Array], _y: &[Array]) -> u64 {
        0
    }
}

impl Linear for Gather {
    const TRANSPOSE: &'static str = "elements of g added up by index";

    fn saves(&self, _needs: Needs, _inputs: usize) -> Saves {
        Saves::input(1)
    }
    fn transpose(&self, _wrt: usize, g: &Tensor, c: &Vjp) -> Result<Tensor> {
        crate::bind::bind1(ScatterAdd { axis: self.axis, shape: c.aval(0)?.shape }, &[g, c.input(1)?])
    }
    fn batch(&self, x: &[Lane], size: usize) -> Result<BatchedOutputs> {
        let (value, index) = (x[0].materialized(size)?, x[1].materialized(size)?);
        Ok(smallvec![(crate::bind::bind1(Gather { axis: self.axis + 1 }, &[&value, &index])?, Some(0))])
    }
}

/// The transpose of [`Gather`]: elements of `g` added into zeros. Inputs: g, index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ScatterAdd {
    /// The axis of the output.
    pub axis: u8,
    /// The shape of the output.
    pub shape: Shape,
}

impl Kernel for ScatterAdd {
    fn name(&self) -> &'static str {
        "scatter_add"
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        one!(on_device!(x[0], gather::scatter_add(x[0], x[1], self.axis as usize, &self.shape)))
    }
    /// One per input.
    fn flops(&self, x: &[&Array], _y: &[Array]) -> u64 {
        cost::each(x, 1)
    }
}

impl Linear for ScatterAdd {
    const TRANSPOSE: &'static str = "elements of g gathered by index";

    fn saves(&self, _needs: Needs, _inputs: usize) -> Saves {
        Saves::input(1)
    }
    fn transpose(&self, _wrt: usize, g: &Tensor, c: &Vjp) -> Result<Tensor> {
        crate::bind::bind1(Gather { axis: self.axis }, &[g, c.input(1)?])
    }
    fn batch(&self, x: &[Lane], size: usize) -> Result<BatchedOutputs> {
        let (g, index) = (x[0].materialized(size)?, x[1].materialized(size)?);
        let op = ScatterAdd { axis: self.axis + 1, shape: self.shape.inserted(0, size)? };
        Ok(smallvec![(crate::bind::bind1(op, &[&g, &index])?, Some(0))])
    }
}

/// Raises for what cannot be an index.
pub(crate) fn check_index(op: &str, index: &Tensor) -> Result<()> {
    if index.dtype().is_integer() {
        return Ok(());
    }
    Err(Error::dtype(format!(
        "{op}: indices must be integers, got {}; convert with .long() (or .int() on a GPU)",
        index.dtype()
    )))
}

impl Tensor {
    /// Rows of `axis` picked by `index`, whose axes take its place.
    pub fn take(&self, index: &Tensor, axis: i64) -> Result<Tensor> {
        check_index("take", index)?;
        let axis = self.shape().axis(axis, "take")? as u8;
        if self.rank() + index.rank() > crate::shape::MAX_RANK + 1 {
            return Err(Error::shape("take: the result would have more than 8 axes"));
        }
        crate::bind::bind1(Take { axis }, &[self, index])
    }

    /// One element per index along `axis`; `index` has as many axes, and is no longer on the others.
    pub fn gather(&self, axis: i64, index: &Tensor) -> Result<Tensor> {
        check_index("gather", index)?;
        let i = self.shape().axis(axis, "gather")?;
        let fits = index.rank() == self.rank()
            && (0..self.rank()).all(|k| k == i || index.shape().at(k) <= self.shape().at(k));
        if !fits {
            return Err(Error::shape(format!(
                "gather: index of shape {} does not fit shape {}: the same number of axes, and no longer except along \
                 axis {i}",
                index.shape(),
                self.shape()
            )));
        }
        crate::bind::bind1(Gather { axis: i as u8 }, &[self, index])
    }

    /// `self` with the elements of `source` added at `index` along `axis`.
    pub fn scatter_add(&self, axis: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        check_index("scatter_add", index)?;
        let i = self.shape().axis(axis, "scatter_add")?;
        if index.rank() != self.rank() || source.rank() != self.rank() {
            return Err(Error::shape(format!(
                "scatter_add: index {} and source {} must have as many axes as the tensor {}",
                index.shape(),
                source.shape(),
                self.shape()
            )));
        }
        for k in 0..self.rank() {
            let n = index.shape().at(k);
            if n > source.shape().at(k) || (k != i && n > self.shape().at(k)) {
                return Err(Error::shape(format!(
                    "scatter_add: index of shape {} does not fit source {} and tensor {}",
                    index.shape(),
                    source.shape(),
                    self.shape()
                )));
            }
        }
        let (own, mut part) = crate::interp::autocast::widest(self, source)?;
        part = part.cast(own.dtype())?;
        for k in 0..self.rank() {
            part = part.narrow(k as i64, 0, index.shape().at(k))?;
        }
        own.add(&crate::bind::bind1(ScatterAdd { axis: i as u8, shape: self.shape() }, &[&part, index])?)
    }

    /// NumPy's advanced indexing: `indices[k]` indexes axis `k`, `None` keeps it whole. The index tensors
    /// broadcast together; their axes come where the first of them was if they are adjacent, else in front.
    pub fn index(&self, indices: &[Option<Tensor>]) -> Result<Tensor> {
        let plan = IndexPlan::new(self.shape(), indices)?;
        let Some(linear) = plan.linear(indices)? else { return Ok(self.clone()) };
        let merged = self.permute(&plan.order())?.reshape(&plan.merged)?;
        let taken = merged.take(&linear, 0)?;
        let front = linear.rank();
        if plan.position == 0 {
            return Ok(taken);
        }
        let mut order: Vec<i64> = (front..front + plan.position).map(|i| i as i64).collect();
        order.extend((0..front).map(|i| i as i64));
        order.extend((front + plan.position..taken.rank()).map(|i| i as i64));
        taken.permute(&order)
    }

    /// This tensor with the slices of `source` added to those along `axis` that `index`, a vector, names.
    pub fn index_add(&self, axis: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        check_index("index_add", index)?;
        let axis = self.shape().axis(axis, "index_add")?;
        let index = if index.rank() == 0 { index.unsqueeze(0)? } else { index.clone() };
        if index.rank() != 1 || source.shape() != self.shape().with(axis, index.numel()) {
            return Err(Error::shape(format!(
                "index_add: index of shape {} and source of shape {} along axis {axis} of a tensor of shape {}; expected a \
                 vector, and a source as long as it along that axis and as the tensor elsewhere",
                index.shape(),
                source.shape(),
                self.shape()
            )));
        }
        let op = TakeAdd { axis: axis as u8, shape: self.shape() };
        self.add(&crate::bind::bind1(op, &[&source.cast(self.dtype())?, &index])?)
    }
}

/// How several index tensors become one.
struct IndexPlan {
    shape: Shape,
    /// The indexed axes.
    axes: Vec<usize>,
    /// How many whole axes come before the index axes in the result.
    position: usize,
    /// The shape with all indexed axes merged in front.
    merged: Shape,
}

impl IndexPlan {
    fn new(shape: Shape, indices: &[Option<Tensor>]) -> Result<IndexPlan> {
        if indices.len() > shape.rank() {
            return Err(Error::index(format!(
                "too many indices: {} given for a tensor of shape {shape}",
                indices.len()
            )));
        }
        let axes: Vec<usize> = (0..indices.len()).filter(|&i| indices[i].is_some()).collect();
        let adjacent = axes.windows(2).all(|w| w[1] == w[0] + 1);
        let position = if adjacent { axes.first().copied().unwrap_or(0) } else { 0 };
        let count: usize = axes.iter().map(|&a| shape.at(a)).product();
        let mut dims = vec![count];
        dims.extend((0..shape.rank()).filter(|i| !axes.contains(i)).map(|i| shape.at(i)));
        Ok(IndexPlan { shape, axes, position, merged: Shape::new(&dims)? })
    }

    /// Indexed axes first, the others in order.
    fn order(&self) -> Vec<i64> {
        let rest = (0..self.shape.rank()).filter(|i| !self.axes.contains(i));
        self.axes.iter().copied().chain(rest).map(|i| i as i64).collect()
    }

    /// The index into the merged axis; checks nothing but what merging would hide.
    fn linear(&self, indices: &[Option<Tensor>]) -> Result<Option<Tensor>> {
        let mut total: Option<Tensor> = None;
        for (k, &axis) in self.axes.iter().enumerate() {
            let Some(index) = &indices[axis] else { continue };
            check_index("index", index)?;
            let size = self.shape.at(axis);
            let stride: usize = self.axes[k + 1..].iter().map(|&a| self.shape.at(a)).product();
            let part = if self.axes.len() == 1 {
                index.clone()
            } else {
                check_range(index, axis, size)?;
                index.lt(0i64)?.select(&index.add(size as i64)?, index)?.mul(stride as i64)?
            };
            total = Some(match total {
                None => part,
                Some(sum) => {
                    if sum.shape().broadcast(&part.shape()).is_none() {
                        return Err(Error::index(format!(
                            "index tensors of shapes {} and {} do not broadcast together",
                            sum.shape(),
                            part.shape()
                        )));
                    }
                    sum.add(&part)?
                }
            });
        }
        Ok(total)
    }
}

/// Raises for an index outside `-size..size`; only where merged axes would let it slip into another row.
fn check_range(index: &Tensor, axis: usize, size: usize) -> Result<()> {
    let Some(array) = index.concrete() else { return Ok(()) };
    if array.numel() == 0 {
        return Ok(());
    }
    let host = Tensor::Array(array.to_device(crate::buffer::Device::Cpu)?);
    let (low, high) = (host.amin(None, false)?.item()?, host.amax(None, false)?.item()?);
    let bad = if low < -(size as f64) { low } else { high };
    if low < -(size as f64) || high >= size as f64 {
        return Err(Error::index(format!("index {bad} is out of range for axis {axis} of length {size}")));
    }
    Ok(())
}

/// The positions of true elements, one int64 row per element: `[count, rank]`. The count depends on the data.
pub fn nonzero(x: &Tensor) -> Result<Tensor> {
    let array = x.array("nonzero")?.to_device(crate::buffer::Device::Cpu)?;
    let mask = crate::cpu::copy::cast(&array, DType::Bool)?;
    let found = Tensor::Array(crate::cpu::gather::nonzero(&mask)?);
    match x.device() {
        crate::buffer::Device::Cpu => Ok(found),
        device => found.cast(DType::I32)?.to_device(device),
    }
}
