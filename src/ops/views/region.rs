//! Slices, their transpose (padding), and triangles.

use crate::array::shape::Axes;
use crate::op::Op;
use crate::ops::pointwise::elementwise::add_into;
use crate::ops::pointwise::table::Params;
use crate::ops::prelude::*;
use std::sync::Arc;

/// A regular part of a tensor. Per axis: indices `start + step * i` for `i < length`. Steps may be negative.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// First index per axis.
    pub starts: SmallVec<[usize; 4]>,
    /// Step per axis.
    pub steps: SmallVec<[isize; 4]>,
    /// Number of elements per axis.
    pub lengths: Shape,
    /// The axes that the view loses, as by an integer in an index; their length in `lengths` is 1.
    pub dropped: Axes,
}

impl Region {
    /// The region that covers all of `shape`.
    pub fn whole(shape: &Shape) -> Region {
        let (starts, steps) = (smallvec![0; shape.rank()], smallvec![1; shape.rank()]);
        Region { starts, steps, lengths: *shape, dropped: Axes::default() }
    }

    /// Whether the region covers all of `shape`, in order.
    fn is_whole(&self, shape: &Shape) -> bool {
        self.dropped.is_empty()
            && self.lengths == *shape
            && self.steps.iter().all(|&step| step == 1)
            && self.starts.iter().all(|&i| i == 0)
    }

    /// Keeps the element at `index` along axis `i`, which is whole so far, without the axis; negative indices
    /// count from the end.
    fn select(&mut self, i: usize, index: i64) -> Result<()> {
        let size = self.lengths.at(i) as i64;
        if index < -size || index >= size {
            return Err(Error::index(format!("index {index} is out of range for axis {i} of length {size}")));
        }
        self.starts[i] = if index < 0 { index + size } else { index } as usize;
        self.lengths = self.lengths.with(i, 1);
        self.dropped.insert(i);
        Ok(())
    }

    /// The same region of every element of a leading batch axis.
    fn batched(&self, size: usize) -> Result<Region> {
        let mut out = self.clone();
        out.starts.insert(0, 0);
        out.steps.insert(0, 1);
        out.lengths = self.lengths.inserted(0, size)?;
        out.dropped = self.dropped.shifted();
        Ok(out)
    }

    /// The region of an array, as a view.
    pub fn view(&self, of: &Array) -> Result<Array> {
        let part = of.slice_view(&self.starts, &self.steps, &self.lengths)?;
        Ok(if self.dropped.is_empty() { part } else { part.without(self.dropped) })
    }
}

/// A region of a tensor, as a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slice {
    /// The region.
    pub region: Arc<Region>,
}

kernel! {
    Slice, "slice", |self, x| self.region.view(x[0])
}

impl Linear for Slice {
    const TRANSPOSE: &'static str = "g at its place, zeros elsewhere";
    const SELECTS: bool = true;

    fn add_transpose(&self, total: &Array, g: &Array, _c: &Vjp) -> Result<bool> {
        add_into(&self.eval_one(&[total])?, g).map(|()| true)
    }

    fn transpose(&self, _wrt: usize, g: &Tensor, c: &Vjp) -> Result<Tensor> {
        let shape = c.aval(0)?.shape;
        bind(Unslice { region: self.region.clone(), shape, fill: Params::default() }, &[g])
    }
    batch!(in_front: |self, size| Slice { region: Arc::new(self.region.batched(size)?) });
}

/// The transpose of a slice: writes the input to a region of a tensor that is `fill` elsewhere.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Unslice {
    /// The region that the input fills.
    pub region: Arc<Region>,
    /// The shape of the output.
    pub shape: Shape,
    /// The value elsewhere.
    pub fill: Params,
}

kernel! {
    Unslice, "pad", |self, x| {
        let Region { starts, steps, dropped, .. } = &*self.region;
        let x = dropped.iter().try_fold(x[0].clone(), |x, axis| x.with_axis(axis))?;
        on_device!(x, gather::pad(&x, &self.shape, starts, steps, self.fill.get()[0]))
    }
}

impl Linear for Unslice {
    const TRANSPOSE: &'static str = "the part of g where x was placed";

    fn tangent(&self) -> Op {
        Unslice { fill: Params::default(), ..self.clone() }.into()
    }
    transpose!(|self, g| bind(Slice { region: self.region.clone() }, &[g]));
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        let region = Arc::new(self.region.batched(size)?);
        in_front(Unslice { region, shape: self.shape.inserted(0, size)?, fill: self.fill }, x, size)
    }
}

/// The lower or upper triangle of the last two axes; zero elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Triangle {
    /// The diagonal that bounds it: 0 is the main one, positive ones lie above.
    pub diagonal: i64,
    /// Whether elements on and above the diagonal are kept, rather than on and below.
    pub upper: bool,
}

kernel! {
    Triangle, if self.upper { "triu" } else { "tril" }, |self, x| {
        on_device!(x[0], create::tri(x[0], self.diagonal, self.upper))
    }
}

impl Linear for Triangle {
    const TRANSPOSE: &'static str = "the same triangle of g";

    transpose!(|self, g| bind(*self, &[g]));
    batch!(in_front: |self| *self);
}

impl Tensor {
    /// Returns a region of this tensor, as a view.
    pub fn slice(&self, region: Region) -> Result<Tensor> {
        if region.is_whole(&self.shape()) {
            return Ok(self.clone());
        }
        bind(Slice { region: Arc::new(region) }, &[self])
    }

    /// Returns `length` elements from `start` along `axis`, as a view.
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

    /// Returns the element at `index` along `axis`, without that axis; negative indices count from the end.
    pub fn select_index(&self, axis: i64, index: i64) -> Result<Tensor> {
        let i = self.shape().axis(axis, "select")?;
        let mut region = Region::whole(&self.shape());
        region.select(i, index)?;
        self.slice(region)
    }

    /// [`Tensor::select_index`] of the first axes, one index for each.
    pub fn select_indices(&self, at: &[i64]) -> Result<Tensor> {
        let shape = self.shape();
        if at.len() > shape.rank() {
            let used = at.len();
            return Err(Error::index(format!(
                "too many indices: {used} given for a tensor of shape {shape}"
            )));
        }
        let mut region = Region::whole(&shape);
        at.iter().enumerate().try_for_each(|(i, &index)| region.select(i, index))?;
        self.slice(region)
    }

    /// Reverses the order along `axes`, as a view.
    pub fn flip(&self, axes: &[i64]) -> Result<Tensor> {
        let chosen = self.shape().axes(Some(axes), "flip")?;
        let mut region = Region::whole(&self.shape());
        for i in chosen.iter() {
            region.starts[i] = self.shape().at(i).saturating_sub(1);
            region.steps[i] = -1;
        }
        self.slice(region)
    }

    /// Pads each axis with `before` and `after` elements of `value`; negative counts crop.
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
                    "pad: ({before}, {after}) takes more elements away than axis {i} has, which are {length}"
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
        bind(Unslice { region: Arc::new(place), shape: out, fill: [value, 0.0].into() }, &[&part])
    }

    /// Returns the lower (`upper = false`) or upper triangle of the last two axes, zero elsewhere.
    pub fn triangle(&self, diagonal: i64, upper: bool) -> Result<Tensor> {
        if self.rank() < 2 {
            return Err(Error::shape(format!(
                "triangle: at least two axes expected, got shape {}",
                self.shape()
            )));
        }
        bind(Triangle { diagonal, upper }, &[self])
    }
}
