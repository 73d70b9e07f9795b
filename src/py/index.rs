//! `x[key]` and `x[key] = value` with NumPy's semantics.
//!
//! A key is split into a basic part (integers, slices, new axes: a view) and an advanced part (index tensors
//! and masks: a gather). Assignment to a basic key is a write into that view; assignment to an advanced key
//! builds the new value by `where` and writes all of it. Both differentiate and batch like everything else.
//! Where no derivative is in sight, a basic key is written directly.

use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::index::nonzero;
use crate::ops::region::Region;
use crate::ops::strided::Part;
use crate::py::args::Arg;
use crate::py::aside::Aside;
use crate::py::convert;
use crate::py::error::type_error;
use crate::py::inplace::{self, beside};
use crate::py::selection::{hidden_mask, replaced, selection};
use crate::py::tensor::{Look, PyTensor};
use crate::py::view::{self, link, refresh, value};
use crate::shape::Shape;
use crate::tensor::Tensor;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PySlice, PyString, PyTuple};

/// One part of a key.
enum Item {
    /// One element of an axis, which disappears.
    At(i64),
    /// A range of an axis.
    Range(Py<PySlice>),
    /// A new axis of length 1.
    New,
    /// As many whole axes as are left.
    Rest,
    /// An advanced index.
    Index(Tensor),
    /// A mask over as many axes as it has.
    Mask(Tensor),
}

/// A key applied to a shape: a region, the shape after new and dropped axes, and the advanced indices of
/// that.
struct Plan {
    region: Region,
    shape: Shape,
    indices: Vec<Option<Tensor>>,
    /// Whether an ellipsis of no axes stands between advanced indices, whose axes then come first as if it had some.
    split: bool,
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
        return Ok(Item::Mask(Tensor::from_slice(&[v.is_true()], &[])?));
    }
    if obj.is_instance_of::<PyInt>() {
        return Ok(Item::At(obj.extract()?));
    }
    let t = match Arg::from_any(obj)? {
        Some(Arg::Tensor(t)) => t,
        Some(Arg::Int(i)) => return Ok(Item::At(i)),
        Some(Arg::Bool(v)) => Tensor::from_slice(&[v], &[])?,
        Some(Arg::Float(_) | Arg::Complex(..)) => return Err(not_an_index(obj)),
        None if obj.is_instance_of::<PyString>() => return Err(not_an_index(obj)),
        None => match obj.len() {
            Ok(0) => Tensor::from_slice::<i64>(&[], &[0])?,
            Ok(_) => convert::as_tensor(obj)?,
            Err(_) => return Err(not_an_index(obj)),
        },
    };
    match t.dtype() {
        DType::Bool => Ok(Item::Mask(t)),
        d if d.is_differentiable() => Err(not_an_index(obj)),
        _ if t.rank() == 0 && t.concrete().is_some() => Ok(Item::At(t.item()? as i64)),
        _ => Ok(Item::Index(t)),
    }
}

#[cold]
fn not_an_index(obj: &Bound<'_, PyAny>) -> PyErr {
    let shown = match obj.cast::<PyTensor>() {
        Ok(t) => format!("a {} tensor; convert it with .long()", t.look().t.dtype()),
        Err(_) => obj.get_type().name().map_or_else(|_| String::new(), |n| n.to_string()),
    };
    PyIndexError::new_err(format!(
        "a tensor is indexed by integers, slices, None, ..., integer tensors and bool masks, got {shown}"
    ))
}

fn items(key: &Bound<'_, PyAny>) -> PyResult<Vec<Item>> {
    match key.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|k| item(&k)).collect(),
        Err(_) => Ok(vec![item(key)?]),
    }
}

impl Plan {
    fn new(py: Python<'_>, shape: Shape, mut items: Vec<Item>) -> PyResult<Plan> {
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
        // As in NumPy, integers count as advanced indices where there is another one.
        let advanced = items.iter().any(|i| matches!(i, Item::Index(_) | Item::Mask(_)));
        let mut plan =
            Builder { region: Region::whole(&shape), dims: Vec::new(), indices: Vec::new(), shape, axis: 0 };
        let whole = shape.rank() - used;
        let split = advanced && rests == 1 && whole == 0 && is_split(&items);
        for item in items {
            plan.push(py, item, whole, advanced)?;
        }
        Ok(Plan { region: plan.region, shape: Shape::new(&plan.dims)?, indices: plan.indices, split })
    }

    /// The view that the basic part of the key selects.
    fn basic(&self, x: &Tensor) -> Result<Tensor> {
        x.slice(self.region.clone())?.reshape(&self.shape)
    }

    fn is_basic(&self) -> bool {
        self.indices.iter().all(Option::is_none)
    }

    fn read(&self, x: &Tensor) -> Result<Tensor> {
        let part = self.basic(x)?;
        if self.is_basic() {
            return Ok(part);
        }
        let found = part.index(&self.indices)?;
        if self.split { self.in_front(found) } else { Ok(found) }
    }

    /// What the advanced indices found with their axes in front, where they stand together and are not there already.
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

/// Whether there are advanced indices (or integers, which count as such beside them) on both sides of the ellipsis.
fn is_split(items: &[Item]) -> bool {
    let is_advanced = |i: &Item| matches!(i, Item::At(_) | Item::Index(_) | Item::Mask(_));
    let mut sides = items.split(|i| matches!(i, Item::Rest));
    sides.all(|side| side.iter().any(is_advanced))
}

/// A plan in the making.
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
                }
                self.axis += 1;
            }
            Item::Range(slice) => {
                let range = slice.bind(py).indices(self.shape.at(self.axis) as isize)?;
                self.region.starts[self.axis] = if range.slicelength > 0 { range.start as usize } else { 0 };
                // The step to an element that does not exist may be any number.
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

    /// A mask is the index of its true elements, one index tensor per axis.
    fn push_mask(&mut self, mask: &Tensor) -> PyResult<()> {
        if mask.rank() == 0 {
            let picked = if mask.item()? != 0.0 { vec![0i64] } else { Vec::new() };
            self.keep(1, Some(Tensor::from_slice(&picked, &[picked.len()])?));
            return Ok(());
        }
        let own = self.shape.part(self.axis, self.axis + mask.rank());
        if own != mask.shape() {
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

fn plan(py: Python<'_>, x: &Tensor, key: &Bound<'_, PyAny>) -> PyResult<Plan> {
    let mut plan = Plan::new(py, x.shape(), items(key)?)?;
    for index in plan.indices.iter_mut().flatten() {
        if index.device() != x.device() && index.concrete().is_some() {
            let dtype = if x.device() == crate::buffer::Device::Cpu { DType::I64 } else { DType::I32 };
            *index = index.cast(dtype)?.to_device(x.device())?;
        }
    }
    Ok(plan)
}

#[pymethods]
impl PyTensor {
    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let found = |t: PyTensor| Ok(Bound::new(py, t)?.into_any());
        if key.is_instance_of::<PyInt>() && !key.is_instance_of::<PyBool>() {
            if slf.look().t.rank() == 0 {
                return Err(PyIndexError::new_err("a tensor without axes cannot be indexed; use item()"));
            }
            let i = key.extract()?;
            return found(view::apply(slf, |x| x.select_index(0, i))?);
        }
        let t = value(slf)?;
        if let Some((key, mask)) = hidden_mask(key)? {
            return selection(py, &t, &key, &mask);
        }
        let plan = plan(py, &t, key)?;
        found(if plan.is_basic() { view::apply(slf, |x| plan.basic(x))? } else { plan.read(&t)?.into() })
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let old = refresh(slf)?;
        inplace::check_root(slf, "setitem")?;
        if let Some(new) = replaced(&old, key, value)? {
            return inplace::overwrite(slf, "setitem", new);
        }
        let value = match Arg::from_any(value)? {
            Some(value) => beside(&old, value.operand().to_tensor(old.dtype(), &old)?)?,
            None => convert::as_tensor(value)?.cast(old.dtype())?,
        };
        if let Some(new) = masked(&old, key, &value)? {
            return inplace::overwrite(slf, "setitem", new);
        }
        let plan = plan(py, &old, key)?;
        if let Some(target) = old.concrete() {
            crate::ops::inplace::check_writable("setitem", target)?;
        }
        if !plan.is_basic() {
            let new = py.aside(|| assigned(&plan, &old, &value))?;
            return inplace::overwrite(slf, "setitem", new);
        }
        if let (Tensor::Array(target), Tensor::Array(from)) = (&old, &value)
            && !view::is_recorded(slf)
        {
            return Ok(write_view(&plan, target, from)?);
        }
        let value = fitted(&value, &plan.shape)?;
        let (root, from) = link(slf).unwrap_or_else(|| (slf.clone(), Part::whole(&old.shape())));
        let whole = root.look().t.numel();
        let part = view::trace(whole, &from, |x| Ok(vec![plan.basic(x)?]))?.pop().flatten();
        let part = part.ok_or_else(|| Error::shape("internal: a basic key is no view"))?;
        inplace::overwrite_part(&root, "setitem", &part, value)
    }

    fn __delitem__(&self, _key: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(type_error("elements of a tensor cannot be deleted; select the others by an index or a mask"))
    }
}

fn misfit(value: &Shape, target: &Shape) -> Error {
    Error::shape(format!(
        "setitem: a value of shape {value} cannot be broadcast to the indexed shape {target}"
    ))
}

/// Assignment to a basic key of a tensor without history: through the view.
fn write_view(plan: &Plan, target: &Array, value: &Array) -> Result<()> {
    let part = target.slice_view(&plan.region.starts, &plan.region.steps, &plan.region.lengths)?;
    let Some(part) = part.reshape_view(&plan.shape) else {
        return Err(Error::shape("internal: the view of a basic key did not reshape"));
    };
    let trimmed = value_shape(value.shape(), &plan.shape);
    let value = value.reshape_view(&trimmed).ok_or_else(|| misfit(&value.shape(), &plan.shape))?;
    if value.device() != part.device() {
        return Err(Error::value(format!(
            "setitem: the value is on {} and the tensor on {}; move it with .to()",
            value.device(),
            part.device()
        )));
    }
    if value.shape().broadcast(&part.shape()) != Some(part.shape()) {
        return Err(misfit(&value.shape(), &part.shape()));
    }
    crate::ops::inplace::store("setitem", target, &part, &value)
}

/// The shape of a value without leading axes of length 1 that its target does not have.
fn value_shape(value: Shape, target: &Shape) -> Shape {
    let mut value = value;
    while value.rank() > target.rank() && value.at(0) == 1 {
        value = value.removed(0);
    }
    value
}

/// `value` broadcast to the shape of what it replaces.
fn fitted(value: &Tensor, target: &Shape) -> Result<Tensor> {
    let trimmed = value_shape(value.shape(), target);
    if trimmed.broadcast(target) != Some(*target) {
        return Err(misfit(&value.shape(), target));
    }
    value.reshape(&trimmed)?.expand(target)
}

/// `x` with `value` where a mask of its shape holds, for masks that only `vmap` knows; `None` for other keys.
fn masked(x: &Tensor, key: &Bound<'_, PyAny>, value: &Tensor) -> PyResult<Option<Tensor>> {
    let Ok(mask) = key.cast::<PyTensor>() else { return Ok(None) };
    let mask = crate::py::view::value(mask)?;
    if mask.dtype() != DType::Bool || mask.concrete().is_some() || value.rank() > 0 {
        return Ok(None);
    }
    let own = x.shape();
    if mask.rank() > own.rank() || own.part(0, mask.rank()) != mask.shape() {
        return Ok(None);
    }
    let mut wide = mask.clone();
    while wide.rank() < own.rank() {
        wide = wide.unsqueeze(-1)?;
    }
    Ok(Some(wide.select(value, x)?))
}

/// `x` with the elements at an advanced key replaced by `value`.
fn assigned(plan: &Plan, x: &Tensor, value: &Tensor) -> Result<Tensor> {
    let target = plan.read(&x.detach())?.shape();
    let value = fitted(value, &target)?;
    if target.numel() == 0 {
        return Ok(x.clone());
    }
    if plan.indices.iter().flatten().any(|i| i.concrete().is_none()) {
        return assigned_by_rules(plan, x, &value.flatten(0, -1)?);
    }
    let (source, mask) = sources(plan, x, target.numel())?;
    let scattered = value.flatten(0, -1)?.take(&source, 0)?;
    mask.select(&scattered, x)
}

/// The same for indices that only an interpreter knows, as `vmap` does: the last value for each element is
/// added to zeros.
fn assigned_by_rules(plan: &Plan, x: &Tensor, value: &Tensor) -> Result<Tensor> {
    let shape = x.shape();
    let (count, total) = (value.numel(), shape.numel());
    let index = if x.device() == crate::buffer::Device::Cpu { DType::I64 } else { DType::I32 };
    let places = Tensor::arange(0.0, 1.0, total, index, x.device())?;
    let places = plan.read(&places.reshape(&shape)?)?.reshape(&Shape::new(&[count])?)?;
    let zeros = Tensor::zeros(Shape::new(&[total])?, x.dtype(), x.device())?;
    let later = places.unsqueeze(1)?.eq(&places.unsqueeze(0)?)?.triangle(1, true)?.any(Some(&[1]), false)?;
    let last = later.logical_not()?;
    let hit = zeros.detach().scatter_add(0, &places, &last.cast(x.dtype())?)?.ne(0i64)?;
    let scattered = zeros.scatter_add(0, &places, &last.select(value, 0.0)?)?;
    hit.reshape(&shape)?.select(&scattered.reshape(&shape)?, x)
}

/// Per element of `x`: which element of the value replaces it (the last one where several do), and whether
/// any does.
fn sources(plan: &Plan, x: &Tensor, count: usize) -> Result<(Tensor, Tensor)> {
    let shape = x.shape();
    let host = |t: &Tensor| -> Result<Tensor> {
        let array = t.array("assignment by an index that vmap batches")?;
        Tensor::Array(array.to_device(crate::buffer::Device::Cpu)?).cast(DType::I64)
    };
    let indices =
        plan.indices.iter().map(|i| i.as_ref().map(&host).transpose()).collect::<Result<Vec<_>>>()?;
    let own = Plan { region: plan.region.clone(), shape: plan.shape, indices, split: plan.split };
    let places = (0..shape.numel() as i64).collect::<Vec<_>>();
    let places = own.read(&Tensor::from_slice(&places, &shape.to_vec())?)?;
    let places = crate::cpu::copy::contiguous(places.array("setitem")?)?;
    let mut source = vec![0i64; shape.numel()];
    let mut mask = vec![false; shape.numel()];
    for (k, &at) in places.slice::<i64>()?.iter().enumerate().take(count) {
        source[at as usize] = k as i64;
        mask[at as usize] = true;
    }
    let index = if x.device() == crate::buffer::Device::Cpu { DType::I64 } else { DType::I32 };
    let dims = shape.to_vec();
    let source = Tensor::from_slice(&source, &dims)?.cast(index)?.to_device(x.device())?;
    let mask = Tensor::from_slice(&mask, &dims)?.to_device(x.device())?;
    Ok((source, mask))
}
