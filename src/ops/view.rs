//! Views and their transposes: reshape, permute, expand, slice, pad, triangles, cat. Data moves only where it
//! must.

use crate::array::Array;
use crate::autodiff::node::Vjp;
use crate::error::{Error, Result};
use crate::op::{Arrays, BatchedOutputs, Kernel, Lane, Linear, Op};
use crate::ops::table::Params;
use crate::ops::{on_device, one};
use crate::shape::{MAX_RANK, Shape, normalize_axis};
use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// Same elements in row-major order, other shape; a view where the strides allow it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reshape {
    /// The new shape.
    pub shape: Shape,
}

impl Kernel for Reshape {
    fn name(&self) -> &'static str {
        "reshape"
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        if let Some(view) = x[0].reshape_view(&self.shape) {
            return Ok(smallvec![view]);
        }
        let dense = x[0].copied()?;
        one!(
            dense
                .reshape_view(&self.shape)
                .ok_or_else(|| Error::shape("internal: a dense array did not reshape"))
        )
    }
}

impl Linear for Reshape {
    fn transpose(&self, _wrt: usize, g: &Tensor, c: &Vjp) -> Result<Tensor> {
        g.reshape(&c.aval(0)?.shape)
    }
    fn batch(&self, x: &[Lane], size: usize) -> Result<BatchedOutputs> {
        Ok(smallvec![(x[0].front()?.reshape(&self.shape.inserted(0, size)?)?, Some(0))])
    }
}

/// Axes in another order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Permute {
    /// `order[i]` is the input axis that becomes axis `i`.
    pub order: [u8; MAX_RANK],
}

impl Kernel for Permute {
    fn name(&self) -> &'static str {
        "permute"
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        one!(x[0].permute(&self.order[..x[0].rank()]))
    }
}

impl Linear for Permute {
    fn transpose(&self, _wrt: usize, g: &Tensor, _c: &Vjp) -> Result<Tensor> {
        let mut inverse = [0u8; MAX_RANK];
        for (i, &o) in self.order[..g.rank()].iter().enumerate() {
            inverse[o as usize] = i as u8;
        }
        crate::bind::bind1(Permute { order: inverse }, &[g])
    }
    fn batch(&self, x: &[Lane], _size: usize) -> Result<BatchedOutputs> {
        let value = x[0].front()?;
        let mut order = [0u8; MAX_RANK];
        for (slot, &axis) in order[1..value.rank()].iter_mut().zip(&self.order) {
            *slot = axis + 1;
        }
        Ok(smallvec![(crate::bind::bind1(Permute { order }, &[&value])?, Some(0))])
    }
}

/// Broadcast to a larger shape, without copying.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Expand {
    /// The new shape.
    pub shape: Shape,
}

impl Kernel for Expand {
    fn name(&self) -> &'static str {
        "expand"
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        one!(x[0].expand(&self.shape))
    }
}

impl Linear for Expand {
    fn transpose(&self, _wrt: usize, g: &Tensor, c: &Vjp) -> Result<Tensor> {
        g.sum_to(&c.aval(0)?.shape)
    }
    fn batch(&self, x: &[Lane], size: usize) -> Result<BatchedOutputs> {
        let shape = self.shape.inserted(0, size)?;
        // The input may have fewer axes than the output: the missing ones go behind the batch axis.
        let value = x[0].front()?;
        let mut dims = value.shape().to_vec();
        let missing = shape.rank() - dims.len();
        dims.splice(1..1, std::iter::repeat_n(1, missing));
        Ok(smallvec![(value.reshape(&Shape::new(&dims)?)?.expand(&shape)?, Some(0))])
    }
}

/// A regular part of a tensor, per axis: `start + step * i` for `i < length`. Steps may be negative.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// First index per axis.
    pub starts: SmallVec<[usize; 4]>,
    /// Step per axis.
    pub steps: SmallVec<[isize; 4]>,
    /// Number of elements per axis.
    pub lengths: Shape,
}

impl Region {
    /// The whole of `shape`.
    pub fn whole(shape: &Shape) -> Region {
        Region { starts: smallvec![0; shape.rank()], steps: smallvec![1; shape.rank()], lengths: *shape }
    }

    /// The same region for every element of a batch in front.
    fn batched(&self, size: usize) -> Result<Region> {
        let mut out = self.clone();
        out.starts.insert(0, 0);
        out.steps.insert(0, 1);
        out.lengths = self.lengths.inserted(0, size)?;
        Ok(out)
    }
}

/// A region of a tensor as a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slice {
    /// The region.
    pub region: Arc<Region>,
}

impl Kernel for Slice {
    fn name(&self) -> &'static str {
        "slice"
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        one!(x[0].slice_view(&self.region.starts, &self.region.steps, &self.region.lengths))
    }
}

impl Linear for Slice {
    fn transpose(&self, _wrt: usize, g: &Tensor, c: &Vjp) -> Result<Tensor> {
        let shape = c.aval(0)?.shape;
        crate::bind::bind1(Unslice { region: self.region.clone(), shape, fill: Params::default() }, &[g])
    }
    fn batch(&self, x: &[Lane], size: usize) -> Result<BatchedOutputs> {
        let op = Slice { region: Arc::new(self.region.batched(size)?) };
        Ok(smallvec![(crate::bind::bind1(op, &[&x[0].front()?])?, Some(0))])
    }
}

/// The transpose of a slice: the input placed on a region of a tensor that is `fill` elsewhere.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Unslice {
    /// Where the input goes.
    pub region: Arc<Region>,
    /// The shape of the output.
    pub shape: Shape,
    /// The value elsewhere.
    pub fill: Params,
}

impl Kernel for Unslice {
    fn name(&self) -> &'static str {
        "pad"
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        let out = Array::empty(self.shape, x[0].dtype(), x[0].device())?;
        on_device!(x[0], create::fill(&out, self.fill.get()[0]))?;
        let target = out.slice_view(&self.region.starts, &self.region.steps, &self.region.lengths)?;
        on_device!(x[0], copy::copy_into(&target, x[0]))?;
        Ok(smallvec![out])
    }
}

impl Linear for Unslice {
    fn tangent(&self) -> Op {
        Unslice { fill: Params::default(), ..self.clone() }.into()
    }
    fn transpose(&self, _wrt: usize, g: &Tensor, _c: &Vjp) -> Result<Tensor> {
        crate::bind::bind1(Slice { region: self.region.clone() }, &[g])
    }
    fn batch(&self, x: &[Lane], size: usize) -> Result<BatchedOutputs> {
        let region = Arc::new(self.region.batched(size)?);
        let op = Unslice { region, shape: self.shape.inserted(0, size)?, fill: self.fill };
        Ok(smallvec![(crate::bind::bind1(op, &[&x[0].front()?])?, Some(0))])
    }
}

/// The lower or upper triangle of the last two axes; zero elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Triangle {
    /// The diagonal that bounds it; 0 is the main one, positive ones lie above.
    pub diagonal: i64,
    /// Keep what lies on and above the diagonal, instead of on and below.
    pub upper: bool,
}

impl Kernel for Triangle {
    fn name(&self) -> &'static str {
        if self.upper { "triu" } else { "tril" }
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        one!(on_device!(x[0], create::tri(x[0], self.diagonal, self.upper)))
    }
}

impl Linear for Triangle {
    fn transpose(&self, _wrt: usize, g: &Tensor, _c: &Vjp) -> Result<Tensor> {
        crate::bind::bind1(*self, &[g])
    }
    fn batch(&self, x: &[Lane], _size: usize) -> Result<BatchedOutputs> {
        Ok(smallvec![(crate::bind::bind1(*self, &[&x[0].front()?])?, Some(0))])
    }
}

/// Inputs joined along an axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cat {
    /// The axis.
    pub axis: u8,
    /// The length of each input along it.
    pub lengths: SmallVec<[usize; 2]>,
}

/// The most tensors that one operation joins; more are joined in groups.
const CAT_INPUTS: usize = 32;

impl Kernel for Cat {
    fn name(&self) -> &'static str {
        "cat"
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        let axis = self.axis as usize;
        let total = x.iter().map(|a| a.dim(axis)).sum();
        let out = Array::empty(x[0].shape().with(axis, total), x[0].dtype(), x[0].device())?;
        let mut region = Region::whole(&out.shape());
        for part in x {
            region.lengths = part.shape();
            let target = out.slice_view(&region.starts, &region.steps, &region.lengths)?;
            on_device!(part, copy::copy_into(&target, part))?;
            region.starts[axis] += part.dim(axis);
        }
        Ok(smallvec![out])
    }
}

impl Linear for Cat {
    fn transpose(&self, wrt: usize, g: &Tensor, _c: &Vjp) -> Result<Tensor> {
        g.narrow(self.axis as i64, self.lengths[..wrt].iter().sum(), self.lengths[wrt])
    }
    fn batch(&self, x: &[Lane], size: usize) -> Result<BatchedOutputs> {
        let parts = x.iter().map(|l| l.materialized(size)).collect::<Result<Vec<Tensor>>>()?;
        let refs: Vec<&Tensor> = parts.iter().collect();
        Ok(smallvec![(crate::bind::bind1(Cat { axis: self.axis + 1, ..self.clone() }, &refs)?, Some(0))])
    }
}

impl Tensor {
    /// The same elements in row-major order with another shape of equal size; a view where strides allow.
    pub fn reshape(&self, shape: &Shape) -> Result<Tensor> {
        if self.shape() == *shape {
            return Ok(self.clone());
        }
        if self.numel() != shape.numel() {
            return Err(Error::shape(format!(
                "reshape: shape {} has {} elements and cannot become {shape} with {}",
                self.shape(),
                self.numel(),
                shape.numel()
            )));
        }
        crate::bind::bind1(Reshape { shape: *shape }, &[self])
    }

    /// Axes in the order given; negative axes count from the end.
    pub fn permute(&self, order: &[i64]) -> Result<Tensor> {
        let rank = self.rank();
        let mut seen = [false; MAX_RANK];
        let mut resolved = [0u8; MAX_RANK];
        if order.len() != rank {
            return Err(Error::value(format!(
                "permute: {} axes given for a tensor with {rank}",
                order.len()
            )));
        }
        for (slot, &axis) in resolved.iter_mut().zip(order) {
            let i = self.shape().axis(axis, "permute")?;
            if std::mem::replace(&mut seen[i], true) {
                return Err(Error::value(format!("permute: axis {axis} appears twice in {order:?}")));
            }
            *slot = i as u8;
        }
        crate::bind::bind1(Permute { order: resolved }, &[self])
    }

    /// Two axes exchanged.
    pub fn transpose(&self, a: i64, b: i64) -> Result<Tensor> {
        if self.rank() == 0 && (-1..=0).contains(&a) && (-1..=0).contains(&b) {
            return Ok(self.clone());
        }
        let (a, b) = (self.shape().axis(a, "transpose")?, self.shape().axis(b, "transpose")?);
        let mut order = [0u8; MAX_RANK];
        (0..self.rank()).for_each(|i| order[i] = i as u8);
        order.swap(a, b);
        crate::bind::bind1(Permute { order }, &[self])
    }

    /// Axis `from` moved to position `to`, the others in order.
    pub fn move_axis(&self, from: usize, to: usize) -> Result<Tensor> {
        if from == to {
            return Ok(self.clone());
        }
        let mut axes: Vec<i64> = (0..self.rank() as i64).filter(|&i| i != from as i64).collect();
        axes.insert(to, from as i64);
        self.permute(&axes)
    }

    /// Broadcast to `shape`; the result shares memory.
    pub fn expand(&self, shape: &Shape) -> Result<Tensor> {
        if self.shape() == *shape {
            return Ok(self.clone());
        }
        if self.shape().broadcast(shape) != Some(*shape) {
            return Err(Error::shape(format!(
                "expand: shape {} cannot be broadcast to {shape}: axes are aligned from the last, and only length 1 grows",
                self.shape()
            )));
        }
        crate::bind::bind1(Expand { shape: *shape }, &[self])
    }

    /// Without the axes in `axes` that have length 1 (all such axes when `None`).
    pub fn squeeze(&self, axes: Option<&[i64]>) -> Result<Tensor> {
        let own = self.shape();
        let chosen = own.axes(axes, "squeeze")?;
        let dims: Vec<usize> =
            own.iter().enumerate().filter(|&(i, d)| d != 1 || !chosen.contains(i)).map(|(_, d)| d).collect();
        self.reshape(&Shape::new(&dims)?)
    }

    /// With a new axis of length 1 at `axis`.
    pub fn unsqueeze(&self, axis: i64) -> Result<Tensor> {
        let at = normalize_axis(axis, self.rank() + 1, "unsqueeze")?;
        self.reshape(&self.shape().inserted(at, 1)?)
    }

    /// Axes `start..=end` merged into one.
    pub fn flatten(&self, start: i64, end: i64) -> Result<Tensor> {
        let own = self.shape();
        if own.rank() == 0 {
            return self.reshape(&Shape::new(&[1])?);
        }
        let (start, end) = (own.axis(start, "flatten")?, own.axis(end, "flatten")?);
        if start > end {
            return Err(Error::value(format!("flatten: start axis {start} lies behind end axis {end}")));
        }
        let mut dims = own.to_vec();
        let merged = dims[start..=end].iter().product();
        dims.splice(start..=end, [merged]);
        self.reshape(&Shape::new(&dims)?)
    }

    /// A region of this tensor, as a view.
    pub fn slice(&self, region: Region) -> Result<Tensor> {
        if region == Region::whole(&self.shape()) {
            return Ok(self.clone());
        }
        crate::bind::bind1(Slice { region: Arc::new(region) }, &[self])
    }

    /// `length` elements from `start` along `axis`.
    pub fn narrow(&self, axis: i64, start: usize, length: usize) -> Result<Tensor> {
        let i = self.shape().axis(axis, "narrow")?;
        let size = self.shape().at(i);
        if start.checked_add(length).is_none_or(|end| end > size) {
            return Err(Error::index(format!(
                "narrow: {start} + {length} elements exceed axis {i} of length {size}"
            )));
        }
        let mut region = Region::whole(&self.shape());
        region.starts[i] = start;
        region.lengths = region.lengths.with(i, length);
        self.slice(region)
    }

    /// The element at `index` along `axis`, without that axis; negative indices count from the end.
    pub fn select_index(&self, axis: i64, index: i64) -> Result<Tensor> {
        let i = self.shape().axis(axis, "select")?;
        let size = self.shape().at(i) as i64;
        if index < -size || index >= size {
            return Err(Error::index(format!("index {index} is out of range for axis {i} of length {size}")));
        }
        let start = if index < 0 { index + size } else { index } as usize;
        let part = self.narrow(i as i64, start, 1)?;
        part.reshape(&self.shape().removed(i))
    }

    /// Reversed along `axes`.
    pub fn flip(&self, axes: &[i64]) -> Result<Tensor> {
        let chosen = self.shape().axes(Some(axes), "flip")?;
        let mut region = Region::whole(&self.shape());
        for i in chosen.iter() {
            region.starts[i] = self.shape().at(i).saturating_sub(1);
            region.steps[i] = -1;
        }
        self.slice(region)
    }

    /// With `before` and `after` elements of `value` around each axis; negative counts cut off.
    pub fn pad(&self, widths: &[(i64, i64)], value: f64) -> Result<Tensor> {
        if widths.len() != self.rank() {
            return Err(Error::value(format!("pad: {} pairs given for {} axes", widths.len(), self.rank())));
        }
        let own = self.shape();
        let mut cut = Region::whole(&own);
        let mut place = Region::whole(&own);
        let mut out = own.to_vec();
        for (i, &(before, after)) in widths.iter().enumerate() {
            let length = own.at(i) as i64;
            let kept = length.saturating_add(before.min(0)).saturating_add(after.min(0));
            let total = length.saturating_add(before).saturating_add(after);
            if kept < 0 || total < 0 {
                return Err(Error::value(format!(
                    "pad: ({before}, {after}) would leave axis {i} of length {} with {total} elements",
                    own.at(i)
                )));
            }
            cut.starts[i] = before.min(0).unsigned_abs() as usize;
            cut.lengths = cut.lengths.with(i, kept as usize);
            place.starts[i] = before.max(0) as usize;
            out[i] = total as usize;
        }
        let out = Shape::new(&out)?;
        place.lengths = cut.lengths;
        let part = self.slice(cut)?;
        if out == part.shape() {
            return Ok(part);
        }
        crate::bind::bind1(
            Unslice { region: Arc::new(place), shape: out, fill: [value, 0.0].into() },
            &[&part],
        )
    }

    /// The lower (`upper = false`) or upper triangle of the last two axes.
    pub fn triangle(&self, diagonal: i64, upper: bool) -> Result<Tensor> {
        if self.rank() < 2 {
            return Err(Error::shape(format!(
                "triangle: at least two axes expected, got shape {}",
                self.shape()
            )));
        }
        crate::bind::bind1(Triangle { diagonal, upper }, &[self])
    }
}

/// Tensors joined along an existing axis; all other axes must agree.
pub fn cat(parts: &[Tensor], axis: i64) -> Result<Tensor> {
    let Some(first) = parts.first() else {
        return Err(Error::value("cat: at least one tensor expected, got none"));
    };
    let i = first.shape().axis(axis, "cat")?;
    let dtype = parts.iter().fold(first.dtype(), |d, p| d.promote(p.dtype()));
    for (k, part) in parts.iter().enumerate() {
        let same = part.rank() == first.rank() && part.shape().with(i, first.shape().at(i)) == first.shape();
        if !same {
            return Err(Error::shape(format!(
                "cat: tensor {k} has shape {}, expected {} except along axis {i}",
                part.shape(),
                first.shape()
            )));
        }
    }
    let mut joined = first.shape().to_vec();
    joined[i] = parts.iter().map(|p| p.shape().at(i)).sum();
    Shape::new(&joined)?;
    let parts = parts.iter().map(|p| p.cast(dtype)).collect::<Result<Vec<Tensor>>>()?;
    if parts.len() > CAT_INPUTS {
        let groups = parts
            .chunks(parts.len().div_ceil(CAT_INPUTS))
            .map(|p| cat(p, axis))
            .collect::<Result<Vec<_>>>()?;
        return cat(&groups, axis);
    }
    let lengths = parts.iter().map(|p| p.shape().at(i)).collect();
    let refs: Vec<&Tensor> = parts.iter().collect();
    crate::bind::bind1(Cat { axis: i as u8, lengths }, &refs)
}

/// Tensors of one shape joined along a new axis.
pub fn stack(parts: &[Tensor], axis: i64) -> Result<Tensor> {
    let Some(first) = parts.first() else {
        return Err(Error::value("stack: at least one tensor expected, got none"));
    };
    if let Some((k, part)) = parts.iter().enumerate().find(|(_, p)| p.shape() != first.shape()) {
        return Err(Error::shape(format!(
            "stack: tensor {k} has shape {}, expected {} as the first",
            part.shape(),
            first.shape()
        )));
    }
    let at = normalize_axis(axis, first.rank() + 1, "stack")? as i64;
    let parts = parts.iter().map(|p| p.unsqueeze(at)).collect::<Result<Vec<Tensor>>>()?;
    cat(&parts, at)
}

/// A tensor cut along `axis` into parts of these lengths, as views.
pub fn split(x: &Tensor, lengths: &[usize], axis: i64) -> Result<Vec<Tensor>> {
    let i = x.shape().axis(axis, "split")?;
    if lengths.iter().sum::<usize>() != x.shape().at(i) {
        return Err(Error::value(format!(
            "split: lengths {lengths:?} add up to {}, expected {} as axis {i}",
            lengths.iter().sum::<usize>(),
            x.shape().at(i)
        )));
    }
    let mut start = 0;
    lengths
        .iter()
        .map(|&n| {
            let part = x.narrow(i as i64, start, n);
            start += n;
            part
        })
        .collect()
}
