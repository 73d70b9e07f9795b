//! Strided subsets of a tensor, in row-major index space; any chain of views reduces to one. `AsStrided`
//! reads one, `AsStridedTranspose` is the transpose, `Put` replaces one: writes into views as functions.

use crate::array::shape::{Axes, MAX_RANK, overlaps_itself};
use crate::ops::pointwise::elementwise::add_into;
use crate::ops::prelude::*;
use crate::ops::reduce::index_type;
use crate::ops::writes::donated::{Donated, based};
use std::sync::Arc;

/// A strided part: its element `i` is element `offset + sum(strides * i)` of the whole in row-major order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Part {
    /// The shape of the part.
    pub shape: Shape,
    /// Strides along its axes, in elements.
    pub strides: [isize; MAX_RANK],
    /// The row-major index of its first element.
    pub offset: usize,
}

impl Part {
    /// The part that covers all of `shape`.
    pub fn whole(shape: &Shape) -> Part {
        Part { shape: *shape, strides: shape.strides(), offset: 0 }
    }

    /// The position of `array` in a row-major tensor that begins `base` elements into the buffer.
    pub fn of(array: &Array, base: usize) -> Part {
        let mut strides = [0; MAX_RANK];
        (0..array.rank()).for_each(|i| strides[i] = array.stride(i));
        Part { shape: array.shape(), strides, offset: array.offset().wrapping_sub(base) }
    }

    /// Returns the part as a view of a contiguous array; an error unless it lies within it.
    pub fn view(&self, whole: &Array) -> Result<Array> {
        if !self.fits(whole.numel()) {
            return Err(Error::autodiff(format!(
                "internal: a part of shape {} from element {} on does not lie in a tensor of {} elements",
                self.shape,
                self.offset,
                whole.numel()
            )));
        }
        whole.with_layout(self.shape, &self.strides[..self.shape.rank()], whole.offset() + self.offset)
    }

    /// Whether the part lies within a tensor of `numel` elements.
    fn fits(&self, numel: usize) -> bool {
        if self.shape.numel() == 0 {
            return true;
        }
        let steps = |i: usize| (self.shape.at(i) as isize - 1).wrapping_mul(self.strides[i]);
        let (mut first, mut last) = (self.offset as isize, self.offset as isize);
        for step in (0..self.shape.rank()).map(steps) {
            first = first.saturating_add(step.min(0));
            last = last.saturating_add(step.max(0));
        }
        first >= 0 && last < numel as isize
    }

    /// Whether its elements are consecutive in row-major order.
    pub fn is_dense(&self) -> bool {
        let dense = self.shape.strides();
        (0..self.shape.rank()).all(|i| self.shape.at(i) == 1 || self.strides[i] == dense[i])
    }

    /// The same part of every element of a leading batch axis, for wholes of `numel` elements each.
    fn batched(&self, size: usize, numel: usize) -> Result<Part> {
        let mut strides = [0; MAX_RANK];
        let rank = self.shape.rank();
        let shape = self.shape.inserted(0, size)?;
        strides[0] = numel as isize;
        strides[1..=rank].copy_from_slice(&self.strides[..rank]);
        Ok(Part { shape, strides, offset: self.offset })
    }

    /// The axes with stride 0, along which the part repeats one element.
    fn repeated(&self) -> Axes {
        (0..self.shape.rank()).filter(|&i| self.strides[i] == 0 && self.shape.at(i) != 1).collect()
    }

    /// Whether two elements of the part may be the same element of the whole.
    pub fn overlaps_itself(&self) -> bool {
        overlaps_itself(&self.shape, |i| self.strides[i])
    }
}

/// The elements of `x`, in row-major order, at `offset + sum(strides * i)`: a view where each stands in one
/// place and `x` is contiguous, else a copy.
///
/// # Errors
/// One if a stride is missing, or an element is outside of `x`.
pub fn as_strided(x: &Tensor, lengths: &[usize], strides: &[isize], offset: usize) -> Result<Tensor> {
    if lengths.len() != strides.len() {
        return Err(Error::value(format!(
            "as_strided: {} lengths for {} strides; give one stride per axis",
            lengths.len(),
            strides.len()
        )));
    }
    let mut part = Part { shape: Shape::new(lengths)?, strides: [0; MAX_RANK], offset };
    part.strides[..strides.len()].copy_from_slice(strides);
    if !part.fits(x.numel()) {
        return Err(Error::index(format!(
            "as_strided: shape {} with strides {strides:?} from {offset} reaches outside of a tensor of {} \
             elements",
            part.shape,
            x.numel()
        )));
    }
    // An axis that repeats an element is one that the transpose sums over.
    let moving: Vec<usize> = (0..lengths.len()).filter(|&i| strides[i] != 0).collect();
    let shape = Shape::new(&moving.iter().map(|&i| lengths[i]).collect::<Vec<usize>>())?;
    if !overlaps_itself(&shape, |i| strides[moving[i]]) {
        return x.as_strided(&part);
    }
    let mut places = Tensor::integer(offset as i64, DType::I64)?;
    for (i, (&length, &stride)) in lengths.iter().zip(strides).enumerate() {
        let along = Tensor::arange(0.0, stride as f64, length, DType::I64, Device::Cpu)?;
        let mut own = vec![1; lengths.len()];
        own[i] = length;
        places = places.add(&along.reshape(&Shape::new(&own)?)?)?;
    }
    let places = places.cast(index_type(x.device()))?.to_device(x.device())?;
    x.reshape(&Shape::new(&[x.numel()])?)?.take(&places, 0)
}

/// A strided part, as a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AsStrided {
    /// The part.
    pub part: Arc<Part>,
}

kernel! {
    AsStrided, "as_strided", |self, x| {
        if x[0].is_contiguous() { self.part.view(x[0]) } else { self.part.view(&x[0].copied()?) }
    }
}

impl Linear for AsStrided {
    const TRANSPOSE: &'static str = "g at its place, zeros elsewhere; the sum where an element is read twice";
    const SELECTS: bool = true;

    fn transpose(&self, _wrt: usize, g: &Tensor, c: &Vjp) -> Result<Tensor> {
        // An element that was read several times gets the sum.
        let repeated = self.part.repeated();
        let mut part = *self.part;
        let mut g = g.clone();
        if !repeated.is_empty() {
            let axes: Vec<i64> = repeated.iter().map(|i| i as i64).collect();
            g = g.sum(Some(&axes), true)?;
            part.shape = g.shape();
        }
        bind(AsStridedTranspose { part: Arc::new(part), shape: c.aval(0)?.shape }, &[&g])
    }
    fn add_transpose(&self, total: &Array, g: &Array, _c: &Vjp) -> Result<bool> {
        if self.part.overlaps_itself() {
            return Ok(false);
        }
        add_into(&self.eval_one(&[total])?, g).map(|()| true)
    }
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        let part = self.part.batched(size, x[0].value.numel() / size.max(1))?;
        in_front(AsStrided { part: Arc::new(part) }, x, size)
    }
}

/// The transpose of [`AsStrided`]: zeros with the input in a strided part.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AsStridedTranspose {
    /// The part; it does not overlap itself.
    pub part: Arc<Part>,
    /// The shape of the output.
    pub shape: Shape,
}

kernel! {
    AsStridedTranspose, "as_strided_transpose", |self, x| {
        let out = Array::empty(self.shape, x[0].dtype(), x[0].device())?;
        on_device!(x[0], create::fill(&out, 0.0))?;
        self.part.view(&out)?.assign(x[0])?;
        Ok(out)
    }
}

impl Linear for AsStridedTranspose {
    const TRANSPOSE: &'static str = "the part of g where x was placed";

    transpose!(|self, g| bind(AsStrided { part: self.part.clone() }, &[g]));
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        let part = Arc::new(self.part.batched(size, self.shape.numel())?);
        in_front(AsStridedTranspose { part, shape: self.shape.inserted(0, size)? }, x, size)
    }
}

/// The main diagonal of the last two axes, as a view.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Diagonal;

impl Diagonal {
    /// The shape and strides of the diagonal of a layout whose last two axes are square.
    fn of(shape: &Shape, stride: impl Fn(usize) -> isize) -> (Shape, [isize; MAX_RANK]) {
        let last = shape.rank() - 1;
        let mut strides = [0; MAX_RANK];
        (0..last).for_each(|i| strides[i] = stride(i));
        strides[last - 1] += stride(last);
        (shape.removed(last), strides)
    }
}

kernel! {
    Diagonal, "diagonal", |self, x| {
        let (shape, strides) = Diagonal::of(&x[0].shape(), |i| x[0].stride(i));
        x[0].with_layout(shape, &strides[..shape.rank()], x[0].offset())
    }
}

impl Linear for Diagonal {
    const TRANSPOSE: &'static str = "g on the diagonal, zeros elsewhere";
    const SELECTS: bool = true;

    fn add_transpose(&self, total: &Array, g: &Array, _c: &Vjp) -> Result<bool> {
        add_into(&self.eval_one(&[total])?, g).map(|()| true)
    }
    fn transpose(&self, _wrt: usize, g: &Tensor, c: &Vjp) -> Result<Tensor> {
        let whole = c.aval(0)?.shape;
        let own = whole.strides();
        let (shape, strides) = Diagonal::of(&whole, |i| own[i]);
        let part = Arc::new(Part { shape, strides, offset: 0 });
        bind(AsStridedTranspose { part, shape: whole }, &[g])
    }
    batch!(in_front: |self| *self);
}

/// The first input with a strided part replaced by the second.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Put {
    /// The part; it does not overlap itself.
    pub part: Arc<Part>,
    /// Memory that need not be copied.
    pub over: Donated,
}

kernel! {
    Put, "put", |self, x| {
        let out = self.over.base(x[0])?;
        self.part.view(&out)?.assign(x[1])?;
        Ok(out)
    },
    into |out| {
        based(x[0], out[0])?;
        self.part.view(out[0])?.assign(x[1])
    }
}

impl Linear for Put {
    const TRANSPOSE: &'static str = "g with zeros on the part for x, the part of g for what was put there";

    fn transpose(&self, wrt: usize, g: &Tensor, _c: &Vjp) -> Result<Tensor> {
        if wrt == 1 {
            return bind(AsStrided { part: self.part.clone() }, &[g]);
        }
        let zeros = Tensor::zeros(self.part.shape, g.dtype(), g.device())?;
        bind(self.clone(), &[g, &zeros])
    }
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        let numel = x[0].value.numel() / x[0].axis.map_or(1, |_| size.max(1));
        in_front(Put { part: Arc::new(self.part.batched(size, numel)?), ..self.clone() }, x, size)
    }
}

impl Tensor {
    /// Returns a strided part of this tensor; it shares memory if this tensor is contiguous.
    pub fn as_strided(&self, part: &Part) -> Result<Tensor> {
        if *part == Part::whole(&self.shape()) {
            return Ok(self.clone());
        }
        bind(AsStrided { part: Arc::new(*part) }, &[self])
    }

    /// Returns zeros of this shape with this tensor in a part that does not overlap itself.
    pub fn scatter_part(&self, part: &Part, shape: Shape) -> Result<Tensor> {
        bind(AsStridedTranspose { part: Arc::new(*part), shape }, &[self])
    }

    /// Returns the same value as the output of a new operation, so that it has its own node of the tape.
    pub fn renamed(&self) -> Result<Tensor> {
        bind(AsStrided { part: Arc::new(Part::whole(&self.shape())) }, &[self])
    }

    /// Returns the main diagonal of the last two axes, which have equal length, as a view.
    pub fn main_diagonal(&self) -> Result<Tensor> {
        bind(Diagonal, &[self])
    }

    /// Returns this tensor with a strided part replaced by `value`, which has its shape and this dtype.
    pub fn put(&self, part: &Part, value: &Tensor) -> Result<Tensor> {
        self.put_over(part, value, Donated::default())
    }

    /// [`Tensor::put`], in place where this tensor's memory is `over`.
    pub fn put_over(&self, part: &Part, value: &Tensor, over: Donated) -> Result<Tensor> {
        bind(Put { part: Arc::new(*part), over }, &[self, value])
    }
}
