//! The public indexing functions: they check arguments and choose the operation (`src/ops/indexing/index.rs`,
//! `src/ops/writes/rows.rs`). Where an index has no axes, a tensor without axes counts as a vector.

pub mod index;

use crate::ops::indexing::index::{Gather, ScatterAdd, Take, TakeAdd, index_from_front};
use crate::ops::prelude::*;
use crate::ops::views::strided::Part;
use crate::ops::writes::rows::{Rows, adds_in_part};
use crate::watch::{absent, script};

/// Raises unless `index` is an integer tensor.
pub(crate) fn check_index(op: &str, index: &Tensor) -> Result<()> {
    if index.dtype().is_integer() {
        return Ok(());
    }
    Err(Error::dtype(format!(
        "{op}: indices must be integers, got {}; convert with .long() (or .int() on a GPU)",
        index.dtype()
    )))
}

/// Raises unless the source has the dtype of the tensor it is written to.
pub(crate) fn check_same_dtype(op: &str, own: DType, source: DType) -> Result<()> {
    // Autocast converts them.
    if own == source || crate::interp::autocasting() {
        return Ok(());
    }
    Err(Error::dtype(format!(
        "{op}: the source is {source} and the tensor {own}, one dtype expected; convert one of them with \
         .to()"
    )))
}

impl Tensor {
    /// Returns this tensor, as a vector of one element if it has no axes.
    pub(crate) fn at_least_vector(&self) -> Result<Tensor> {
        if self.rank() == 0 { self.unsqueeze(0) } else { Ok(self.clone()) }
    }

    /// Selects rows along `axis` by one index or a vector of them. A tensor without axes is one row.
    pub fn index_select(&self, axis: i64, index: &Tensor) -> Result<Tensor> {
        check_index("index_select", index)?;
        if index.rank() > 1 || (self.rank() == 0 && index.numel() != 1) {
            return Err(Error::shape(format!(
                "index_select: {} expected, got an index of shape {} for a tensor of shape {}",
                if self.rank() == 0 { "one index" } else { "a vector of indices" },
                index.shape(),
                self.shape()
            )));
        }
        let picked = self.at_least_vector()?.take(&index.at_least_vector()?, axis)?;
        if self.rank() == 0 { picked.reshape(&self.shape()) } else { Ok(picked) }
    }

    /// Selects rows of `axis` by `index`, whose axes replace it.
    pub fn take(&self, index: &Tensor, axis: i64) -> Result<Tensor> {
        check_index("take", index)?;
        let axis = self.shape().axis(axis, "take")? as u8;
        if self.rank() + index.rank() > crate::array::shape::MAX_RANK + 1 {
            return Err(Error::shape("take: the result would have more than 8 axes"));
        }
        bind(Take { axis }, &[self, index])
    }

    /// Selects one element per index along `axis`. `index` has as many axes, no longer than this tensor's on
    /// the others. A tensor without axes counts as a vector of one element.
    pub fn gather(&self, axis: i64, index: &Tensor) -> Result<Tensor> {
        check_index("gather", index)?;
        if self.rank() == 0 || index.rank() == 0 {
            let out = self.at_least_vector()?.gather(axis, &index.at_least_vector()?)?;
            return out.reshape(&index.shape());
        }
        let i = self.shape().axis(axis, "gather")?;
        let fits = index.rank() == self.rank()
            && (0..self.rank()).all(|k| k == i || index.shape().at(k) <= self.shape().at(k));
        if !fits {
            return Err(Error::shape(format!(
                "gather: index of shape {} does not fit shape {}: the same number of axes, and no longer \
                 except along axis {i}",
                index.shape(),
                self.shape()
            )));
        }
        bind(Gather { axis: i as u8 }, &[self, index])
    }

    /// Checks the arguments of a `scatter_add`; returns its axis.
    pub fn scatter_axis(&self, op: &str, axis: i64, index: &Tensor, source: &Tensor) -> Result<usize> {
        check_index(op, index)?;
        let i = self.shape().axis(axis, op)?;
        if index.rank() != self.rank() || source.rank() != self.rank() {
            return Err(Error::shape(format!(
                "{op}: index {} and source {} must have as many axes as the tensor {}",
                index.shape(),
                source.shape(),
                self.shape()
            )));
        }
        for k in 0..self.rank() {
            let n = index.shape().at(k);
            if n > source.shape().at(k) || (k != i && n > self.shape().at(k)) {
                return Err(Error::shape(format!(
                    "{op}: index of shape {} does not fit source {} and tensor {}",
                    index.shape(),
                    source.shape(),
                    self.shape()
                )));
            }
        }
        check_same_dtype(op, self.dtype(), source.dtype())?;
        Ok(i)
    }

    /// Returns the first elements of this tensor along every axis, as many as `shape` says.
    pub fn corner(&self, shape: &Shape) -> Result<Tensor> {
        (0..self.rank()).try_fold(self.clone(), |part, k| part.narrow(k as i64, 0, shape.at(k)))
    }

    /// Returns `self` with the elements of `source` added at `index` along `axis`. Scalars count as vectors.
    pub fn scatter_add(&self, axis: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        if self.rank() == 0 || index.rank() == 0 || source.rank() == 0 {
            let (own, part) = (self.at_least_vector()?, source.at_least_vector()?);
            return own.scatter_add(axis, &index.at_least_vector()?, &part)?.reshape(&self.shape());
        }
        let i = self.scatter_axis("scatter_add", axis, index, source)?;
        let (own, part) = crate::interp::autocast::widest(self, source)?;
        let part = part.cast(own.dtype())?.corner(&index.shape())?;
        if adds_in_part(&own, index.numel()) {
            let rows = Rows::of_scatter(&Part::whole(&own.shape()), own.numel(), i, index)?;
            return own.put_rows(&rows, &part, true);
        }
        own.add(&bind(ScatterAdd { axis: i as u8, shape: self.shape() }, &[&part, index])?)
    }

    /// NumPy's advanced indexing: `indices[k]` indexes axis `k`, `None` keeps it whole. The index tensors
    /// broadcast together; their axes replace the first indexed axis if those are adjacent, else come first.
    pub fn index(&self, indices: &[Option<Tensor>]) -> Result<Tensor> {
        let plan = IndexPlan::new(self.shape(), indices)?;
        let Some(linear) = plan.linear(indices)? else { return Ok(self.clone()) };
        let rest = (0..self.rank()).filter(|i| !plan.axes.contains(i));
        let order: Vec<i64> = plan.axes.iter().copied().chain(rest).map(|i| i as i64).collect();
        let in_order = order.is_sorted();
        let ordered = if in_order { self.clone() } else { self.permute(&order)? };
        let merged = ordered.reshape(&plan.merged)?;
        let taken = merged.take(&linear, 0)?;
        if plan.position == 0 { Ok(taken) } else { taken.move_axes(0, linear.rank(), plan.position) }
    }

    /// Checks the arguments of an `index_add`; returns its axis and its index as a vector.
    pub fn slice_axis(&self, axis: i64, index: &Tensor, source: &Tensor) -> Result<(usize, Tensor)> {
        check_index("index_add", index)?;
        let axis = self.shape().axis(axis, "index_add")?;
        let index = index.at_least_vector()?;
        if index.rank() != 1 || source.shape() != self.shape().with(axis, index.numel()) {
            return Err(Error::shape(format!(
                "index_add: index of shape {} and source of shape {} along axis {axis} of a tensor of shape \
                 {}; expected a vector, and a source as long as it along that axis and as the tensor \
                 elsewhere",
                index.shape(),
                source.shape(),
                self.shape()
            )));
        }
        check_same_dtype("index_add", self.dtype(), source.dtype())?;
        Ok((axis, index))
    }

    /// This tensor with the slices of `source` added to those along `axis` that the vector `index` selects.
    pub fn index_add(&self, axis: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        if self.rank() == 0 && source.rank() == 0 {
            let out = self.at_least_vector()?.index_add(axis, index, &source.at_least_vector()?)?;
            return out.reshape(&self.shape());
        }
        let (axis, index) = self.slice_axis(axis, index, source)?;
        if self.numel() == 0 {
            // Without elements, no index is out of range.
            return self.with_nothing_of(source);
        }
        let source = source.cast(self.dtype())?;
        if adds_in_part(self, source.numel()) {
            let rows = Rows::of_slices(&Part::whole(&self.shape()), self.numel(), axis, &index)?;
            return self.put_rows(&rows, &source, true);
        }
        let op = TakeAdd { axis: axis as u8, shape: self.shape() };
        self.add(&bind(op, &[&source, &index])?)
    }
}

/// The plan that reduces several index tensors to one.
struct IndexPlan {
    shape: Shape,
    /// The indexed axes.
    axes: Vec<usize>,
    /// The number of whole axes before the index axes in the result.
    position: usize,
    /// The shape with all indexed axes merged into one in front.
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

    /// Returns the index into the merged axis. Checks only what merging would hide, in nonempty selections.
    fn linear(&self, indices: &[Option<Tensor>]) -> Result<Option<Tensor>> {
        let shape = index_shape("index", indices)?;
        if let [axis] = self.axes[..] {
            return Ok(indices[axis].clone());
        }
        let mut total: Option<Tensor> = None;
        for (k, &axis) in self.axes.iter().enumerate() {
            let Some(index) = &indices[axis] else { continue };
            let index = if shape.numel() == 0 { &index.expand(&shape)? } else { index };
            let stride: usize = self.axes[k + 1..].iter().map(|&a| self.shape.at(a)).product();
            let part = index_from_front(index, axis, self.shape.at(axis))?.mul(stride as i64)?;
            total = Some(match total {
                None => part,
                Some(sum) => sum.add(&part)?,
            });
        }
        Ok(total)
    }
}

/// The shape to which the index tensors broadcast; raises for invalid ones.
pub(crate) fn index_shape(op: &str, indices: &[Option<Tensor>]) -> Result<Shape> {
    indices.iter().flatten().try_fold(Shape::SCALAR, |shape, index| {
        check_index(op, index)?;
        shape.broadcast(&index.shape()).ok_or_else(|| {
            let other = index.shape();
            Error::index(format!("index tensors of shapes {shape} and {other} do not broadcast together"))
        })
    })
}

/// Returns the indices of true elements as rows, `[count, rank]`: int64 on the CPU, int32 on GPUs. The count
/// depends on the data; it is all that is read back from a GPU.
pub fn nonzero(x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_complex() {
        return nonzero(&x.detach().ne(0i64)?);
    }
    let array = x.array("nonzero")?;
    absent::check("a result whose length depends on values", array)?;
    let mask = Tensor::Array(array.clone());
    // A program is made for a number of rows.
    let count = if script::is_on() { mask.count_nonzero(None, false)?.item()? as usize } else { usize::MAX };
    bind(Nonzero { count }, &[&mask])
}

/// The places of true elements, of which there are `count`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Nonzero {
    /// How many; `usize::MAX` for any number.
    pub count: usize,
}

kernel! {
    Nonzero, "nonzero", |self, x| {
        let mask = on_device!(x[0], copy::cast(&x[0], DType::Bool))?;
        on_device!(mask, gather::nonzero(&mask))
    }
}

impl Discrete for Nonzero {
    fn batch(&self, _x: &[Batched], _size: usize) -> Result<BatchedOutputs> {
        Err(Error::autodiff("nonzero: its examples would have results of different lengths"))
    }
}
