//! Parses a key in brackets into a basic part (integers, slices, new axes: a view) and an advanced part
//! (index tensors and masks: a gather): an [`AppliedKey`] for a shape. Read next: `src/py/tensor/index.rs`.

use crate::array::buffer::Buffer;
use crate::array::dtype::Truth;
use crate::ops::indexing::nonzero;
use crate::ops::views::region::Region;
use crate::ops::views::strided::Part;
use crate::ops::writes::rows::Rows;
use crate::py::args::{beyond_every_axis, position};
use crate::py::autograd::staging;
use crate::py::data::convert;
use crate::py::prelude::*;
use crate::watch::absent;
use pyo3::exceptions::PyIndexError;
use pyo3::types::{PyBytes, PyEllipsis, PySequence, PySlice, PyString};

/// One component of a key.
enum Item {
    /// One index along an axis, which is dropped.
    At(i64),
    /// A slice of an axis.
    Range(Py<PySlice>),
    /// A new axis of length 1.
    New,
    /// An ellipsis: all axes that the other components leave.
    Rest,
    /// An advanced index.
    Index(Tensor),
    /// A mask, which covers as many axes as it has.
    Mask(Tensor),
}

/// A key applied to a shape: a region, its shape with axes added and dropped, and advanced indices into that.
pub struct AppliedKey {
    /// The region of the basic part.
    pub region: Region,
    /// The shape of the basic part, after new and dropped axes.
    pub shape: Shape,
    /// Per axis of `shape`, its advanced index.
    pub indices: Vec<Option<Tensor>>,
    /// Whether an ellipsis that covers no axes separates advanced indices. The axes of these come first then,
    /// as if the ellipsis covered some.
    pub split: bool,
}

fn item(obj: &Bound<'_, PyAny>) -> PyResult<Item> {
    if let Ok(slice) = obj.cast::<PySlice>() {
        return Ok(Item::Range(slice.clone().unbind()));
    }
    if obj.is_none() {
        return Ok(Item::New);
    }
    if obj.is(PyEllipsis::get(obj.py())) {
        return Ok(Item::Rest);
    }
    if let Ok(v) = obj.cast::<PyBool>() {
        return Ok(Item::Mask(Tensor::from_slice(&[Truth::from(v.is_true())], &[])?));
    }
    if obj.is_instance_of::<PyInt>() {
        return Ok(Item::At(position(obj)?));
    }
    let t = match Arg::from_any(obj)? {
        Some(Arg::Tensor(t)) => t,
        Some(Arg::Int(i)) => return Ok(Item::At(i64::try_from(i).map_err(|_| beyond_every_axis(i))?)),
        Some(Arg::Bool(v)) => Tensor::from_slice(&[Truth::from(v)], &[])?,
        Some(Arg::Float(_) | Arg::Complex(..)) => return Err(not_an_index(obj)),
        // A text, a dict or a set has a length, and is no list of indices.
        None if obj.is_instance_of::<PyString>() || obj.cast::<PySequence>().is_err() => {
            return Err(not_an_index(obj));
        }
        None if obj.is_instance_of::<PyBytes>() => return Err(not_an_index(obj)),
        None => match obj.len() {
            Ok(0) => Tensor::from_slice::<i64>(&[], &[0])?,
            Ok(_) => convert::as_tensor(obj)?,
            Err(_) => return Err(not_an_index(obj)),
        },
    };
    match t.dtype() {
        DType::Bool => Ok(Item::Mask(t)),
        d if d.is_differentiable() => Err(not_an_index(obj)),
        _ if t.rank() == 0 && t.concrete().is_some_and(|x| !absent::is_absent(x)) => {
            staging::left("an index", &t)?;
            Ok(Item::At(t.item()? as i64))
        }
        _ => Ok(Item::Index(t)),
    }
}

#[cold]
fn not_an_index(obj: &Bound<'_, PyAny>) -> PyErr {
    let shown = match obj.cast::<PyTensor>() {
        Ok(t) => format!("a {} tensor; convert it with .long()", t.read().t.dtype()),
        Err(_) => obj.get_type().name().map_or_else(|_| String::new(), |n| n.to_string()),
    };
    PyIndexError::new_err(format!(
        "a tensor is indexed by integers, slices, None, ..., integer tensors and bool masks, got {shown}"
    ))
}

fn items(key: &Bound<'_, PyAny>) -> PyResult<Vec<Item>> {
    if let Ok(tuple) = key.cast::<PyTuple>() {
        return tuple.iter().map(|k| item(&k)).collect();
    }
    // A list with a slice, None or an ellipsis counts as a tuple, since no tensor can be made of it.
    let no_number =
        |k: Bound<'_, PyAny>| k.is_instance_of::<PySlice>() || k.is_none() || k.is(PyEllipsis::get(key.py()));
    match key.cast::<PyList>() {
        Ok(list) if list.iter().any(no_number) => list.iter().map(|k| item(&k)).collect(),
        _ => Ok(vec![item(key)?]),
    }
}

impl AppliedKey {
    fn new(py: Python<'_>, shape: Shape, mut items: Vec<Item>) -> PyResult<AppliedKey> {
        let used: usize = items
            .iter()
            .map(|i| match i {
                Item::New | Item::Rest => 0,
                Item::Mask(m) => m.rank(),
                _ => 1,
            })
            .sum();
        let rests = items.iter().filter(|i| matches!(i, Item::Rest)).count();
        if rests > 1 {
            return Err(PyIndexError::new_err("an index has at most one ellipsis (...)"));
        }
        if used > shape.rank() {
            return Err(PyIndexError::new_err(format!(
                "too many indices: {used} given for a tensor of shape {shape}"
            )));
        }
        if rests == 0 {
            items.push(Item::Rest);
        }
        // As in NumPy, integers count as advanced indices beside another advanced index.
        let advanced = items.iter().any(|i| matches!(i, Item::Index(_) | Item::Mask(_)));
        let mut plan =
            Builder { region: Region::whole(&shape), dims: Vec::new(), indices: Vec::new(), shape, axis: 0 };
        let whole = shape.rank() - used;
        let split = advanced && rests == 1 && whole == 0 && is_split(&items);
        for item in items {
            plan.push(py, item, whole, advanced)?;
        }
        Ok(AppliedKey { region: plan.region, shape: Shape::new(&plan.dims)?, indices: plan.indices, split })
    }

    /// Returns the view that the basic part selects.
    pub fn basic(&self, x: &Tensor) -> Result<Tensor> {
        x.slice(self.region.clone())?.reshape(&self.shape)
    }

    /// Whether the key has no advanced part.
    pub fn is_basic(&self) -> bool {
        self.indices.iter().all(Option::is_none)
    }

    /// Returns the elements of `x` that the key selects.
    pub fn read(&self, x: &Tensor) -> Result<Tensor> {
        let part = self.basic(x)?;
        if self.is_basic() {
            return Ok(part);
        }
        let found = part.index(&self.indices)?;
        if self.split { self.in_front(found) } else { Ok(found) }
    }

    /// Returns the part that the basic part of the key selects of `of`.
    pub fn basic_part(&self, of: &Part) -> Result<Part> {
        // A stand-in for memory, never read: only the layout matters.
        let memory = Buffer::foreign(std::ptr::null_mut(), 0, Device::Cpu, Box::new(()));
        let rank = of.shape.rank();
        // SAFETY: nobody reads or writes elements of this array or of its views, which end here.
        let layout =
            unsafe { Array::strided_unchecked(memory, of.shape, &of.strides[..rank], of.offset, DType::U8) }?;
        let part = self.region.view(&layout)?;
        let part =
            part.reshape_view(&self.shape).ok_or_else(|| Error::shape("internal: a basic key is no view"))?;
        Ok(Part::of(&part, 0))
    }

    /// Returns the places that the key selects of the part `of` a tensor of `numel` elements.
    pub fn rows(&self, of: &Part, numel: usize) -> Result<Rows> {
        Rows::of_index(&self.basic_part(of)?, numel, &self.indices, self.split)
    }

    /// Moves the axes of the advanced indices to the front, if adjacent; otherwise they are there already.
    fn in_front(&self, found: Tensor) -> Result<Tensor> {
        let mut places = self.indices.iter().enumerate().filter(|(_, i)| i.is_some()).map(|(place, _)| place);
        let Some(first) = places.next() else { return Ok(found) };
        let last = places.next_back().unwrap_or(first);
        if self.indices[first..=last].iter().any(Option::is_none) {
            return Ok(found);
        }
        let kept = self.indices.iter().filter(|i| i.is_none()).count();
        (0..found.rank() - kept).try_fold(found, |x, i| x.move_axis(first + i, i))
    }
}

/// Whether advanced indices, or integers that count as such, are on both sides of the ellipsis.
fn is_split(items: &[Item]) -> bool {
    let is_advanced = |i: &Item| matches!(i, Item::At(_) | Item::Index(_) | Item::Mask(_));
    let mut sides = items.split(|i| matches!(i, Item::Rest));
    sides.all(|side| side.iter().any(is_advanced))
}

/// A plan under construction.
struct Builder {
    region: Region,
    dims: Vec<usize>,
    indices: Vec<Option<Tensor>>,
    shape: Shape,
    axis: usize,
}

impl Builder {
    fn keep(&mut self, length: usize, index: Option<Tensor>) {
        self.dims.push(length);
        self.indices.push(index);
    }

    fn push(&mut self, py: Python<'_>, item: Item, whole: usize, advanced: bool) -> PyResult<()> {
        match item {
            Item::New => self.keep(1, None),
            Item::Rest => {
                for _ in 0..whole {
                    self.keep(self.shape.at(self.axis), None);
                    self.axis += 1;
                }
            }
            Item::At(i) => {
                let size = self.shape.at(self.axis);
                let at = if i < 0 { i + size as i64 } else { i };
                if at < 0 || at >= size as i64 {
                    return Err(PyIndexError::new_err(format!(
                        "index {i} is out of range for axis {} of length {size}",
                        self.axis
                    )));
                }
                if advanced {
                    self.keep(size, Some(Tensor::from_slice(&[at], &[])?));
                } else {
                    self.region.starts[self.axis] = at as usize;
                    self.region.lengths = self.region.lengths.with(self.axis, 1);
                    self.region.dropped.insert(self.axis);
                }
                self.axis += 1;
            }
            Item::Range(slice) => {
                let range = slice.bind(py).indices(self.shape.at(self.axis) as isize)?;
                self.region.starts[self.axis] = if range.slicelength > 0 { range.start as usize } else { 0 };
                // With fewer than two elements the step is never used, and may be any number.
                self.region.steps[self.axis] = if range.slicelength > 1 { range.step } else { 1 };
                self.region.lengths = self.region.lengths.with(self.axis, range.slicelength);
                self.keep(range.slicelength, None);
                self.axis += 1;
            }
            Item::Index(t) => {
                self.keep(self.shape.at(self.axis), Some(t));
                self.axis += 1;
            }
            Item::Mask(mask) => self.push_mask(&mask)?,
        }
        Ok(())
    }

    /// Replaces a mask by the positions of its true elements, one index tensor per axis. A mask's axis of
    /// length 0 selects nothing of an axis of any length, as in the array API standard.
    fn push_mask(&mut self, mask: &Tensor) -> PyResult<()> {
        if mask.rank() == 0 {
            staging::left("a mask", mask)?;
            let picked = if mask.item()? != 0.0 { vec![0i64] } else { Vec::new() };
            self.keep(1, Some(Tensor::from_slice(&picked, &[picked.len()])?));
            return Ok(());
        }
        let own = self.shape.part(self.axis, self.axis + mask.rank());
        if (0..mask.rank()).any(|k| ![0, own.at(k)].contains(&mask.shape().at(k))) {
            return Err(PyIndexError::new_err(format!(
                "a mask of shape {} does not fit axes of shape {own}",
                mask.shape()
            )));
        }
        let found = nonzero(mask).map_err(|e| {
            e.context(
                "indexing with a mask, whose result has a size that depends on the data; use where() instead",
            )
        })?;
        for k in 0..mask.rank() {
            self.keep(own.at(k), Some(found.select_index(1, k as i64)?));
            self.axis += 1;
        }
        Ok(())
    }
}

/// Returns the plan of a key for a tensor; indices are moved to the tensor's device.
pub fn plan(py: Python<'_>, x: &Tensor, key: &Bound<'_, PyAny>) -> PyResult<AppliedKey> {
    let mut plan = AppliedKey::new(py, x.shape(), items(key)?)?;
    for index in plan.indices.iter_mut().flatten() {
        if index.device() != x.device() && index.concrete().is_some() {
            if x.device() == Device::Cpu {
                return Err(Error::value(format!(
                    "indexing: the index is on {} and the tensor on cpu; move the index with .cpu()",
                    index.device()
                ))
                .into());
            }
            *index = index.cast(DType::I32)?.to_device(x.device())?;
        }
    }
    Ok(plan)
}
