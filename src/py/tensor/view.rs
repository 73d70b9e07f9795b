//! Views as Python objects. A view remembers the object it was made from (its root) and, where a value is not
//! memory, which part of it it is. A recorded write through any of them replaces the root's tensor by a
//! function of the old one (`src/ops/writes/inplace.rs`) and moves the root's epoch; a view that finds the
//! epoch moved takes its value, and with it its history, from the root anew.
//!
//! What `detach()` and `.data` give shares the numbers and not the history. Memory sees to that where there
//! is memory. Inside `vmap` and `jvp` it is a view *apart*: it takes the numbers from its root and keeps its
//! own history, hands what is written into it on to the root, and is itself the root of the views that are
//! made of it. Where the root is memory and the view is not part of it, no epoch tells of a write, and every
//! look takes the numbers anew.
//!
//! New views are made in `src/py/tensor/attach.rs`. Parts count elements of the view's kind
//! (`src/py/tensor/kind.rs`): a real view of a complex root counts twice as many.

use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::error::Result;
use crate::interp::{self, Tag};
use crate::ops::views::strided::Part;
use crate::ops::writes::alone;
use crate::ops::writes::history::{self, Keep};
use crate::py::tensor::kind::{counted, recounted, rescaled};
use crate::py::tensor::object::{PyTensor, ReadGuard, ReadState, State, Value};
use crate::py::tensor::{in_use, replace, same};
use crate::tensor::Tensor;
use crate::tensor::over_memory;
use pyo3::prelude::*;

/// The epochs of a root whose memory was exchanged differ by at least this much; its views are on their own.
const ERA: u64 = 1 << 32;

/// How a view hangs on the tensor it was made from.
pub struct View {
    /// The tensor that is no view itself.
    pub root: Py<PyTensor>,
    /// The epoch of the root that the own value belongs to.
    pub epoch: u64,
    /// Where the root begins in its buffer.
    pub base: usize,
    /// Which part of the root; `None` as long as both are memory in row-major order and the strides tell.
    pub part: Option<Box<Part>>,
    /// Whether it shares only the numbers of the root, and not its history.
    pub apart: bool,
    /// The level in which it was made; 0 outside of transforms.
    pub made: Tag,
}

impl View {
    /// Which part of the root the view `t` is.
    pub fn part(&self, t: &Tensor) -> Option<Part> {
        match (&self.part, t.concrete()) {
            (Some(part), _) => Some(**part),
            (None, Some(array)) => Some(Part::of(array, self.base)),
            (None, None) => None,
        }
    }
}

/// Whether two tensors are the same memory.
pub fn share(a: &Tensor, b: &Tensor) -> bool {
    matches!((a.concrete(), b.concrete()), (Some(a), Some(b)) if a.buffer().same(b.buffer()))
}

/// Whether `t`, the value of a view, does not follow its root, which is memory that may be written at any
/// time.
fn strays(t: &Tensor, root: &Tensor) -> bool {
    root.concrete().is_some() && !share(t, root)
}

/// How the views of a view apart count where its elements do not lie in row-major order: as what it shares
/// its numbers with counts, of how many elements it is which part.
pub fn gaps(root: &Bound<'_, PyTensor>) -> Option<(Part, usize)> {
    let this = root.read();
    let view = this.view.as_ref().filter(|view| view.apart)?;
    let part = view.part(&this.t).filter(|part| !part.is_dense() && !part.overlaps())?;
    Some((part, count(view.root.bind(root.py()), this.t.dtype())))
}

/// How many elements of this dtype the views of a root count in it.
pub fn count(root: &Bound<'_, PyTensor>, dtype: DType) -> usize {
    let whole = gaps(root).map_or_else(|| root.read().t.numel(), |(_, whole)| whole);
    let own = root.read().t.dtype();
    rescaled(whole, own, dtype)
}

/// The value of a root with the elements that its views count.
fn spaced(root: &Bound<'_, PyTensor>) -> Result<Tensor> {
    let gaps = gaps(root);
    let t = root.read().t.clone();
    match gaps {
        Some((part, whole)) => t.placed(&part, Shape::new(&[whole])?),
        None => Ok(t),
    }
}

impl PyTensor {
    /// The value with its history as of now; that of a view may have been written through its root.
    #[inline]
    pub fn value(&self) -> PyResult<Value<'_>> {
        let this = self.read();
        if this.view.is_none() { Ok(Value::Read(this)) } else { value_of_view(this) }
    }
}

/// The value of a view.
fn value_of_view(this: ReadGuard<'_>) -> PyResult<Value<'_>> {
    let Some(view) = &this.view else { return Ok(Value::Read(this)) };
    match Python::attach(|py| renewed(py, &this.t, view))? {
        None => Ok(Value::Read(this)),
        Some((t, _)) => Ok(Value::Renewed(t)),
    }
}

/// The value of an object with its history as of now.
#[inline]
pub fn value(obj: &Bound<'_, PyTensor>) -> PyResult<Tensor> {
    Ok(obj.get().value()?.into_owned())
}

/// The value of a view whose root was written since, and the root's epoch; `None` if nothing happened.
fn renewed(py: Python<'_>, t: &Tensor, view: &View) -> PyResult<Option<(Tensor, u64)>> {
    let root = view.root.bind(py);
    if root.read().view.is_some() {
        refresh(root)?;
    }
    let (epoch, strays) = {
        let root = root.read();
        (root.epoch, view.part.is_some() && strays(t, &root.t))
    };
    if (epoch == view.epoch && !strays) || epoch.abs_diff(view.epoch) >= ERA {
        return Ok(None);
    }
    let Some(part) = view.part(t) else { return Ok(None) };
    let complex = t.dtype().is_complex();
    if view.apart {
        let numbers = interp::no_grad(|| counted(&spaced(root)?.detach(), complex)?.as_strided(&part))?;
        // A value that is no memory of its own must not change with that of the root.
        let numbers = match numbers.concrete() {
            Some(memory) if t.concrete().is_none() => memory.copied()?.into(),
            _ => numbers,
        };
        return Ok(Some((history::kept(t, &numbers, Keep::All)?, epoch)));
    }
    // The history of a view is that of its root, whether or not recording is on where it is looked at.
    let fresh = interp::with_grad(|| counted(&spaced(root)?, complex)?.as_strided(&part))?;
    // What had to be copied, since the root is memory in another order, lies where the view lies.
    let copied = root.read().view.is_none() && !share(&fresh, &root.read().t);
    let fresh = match t.concrete() {
        Some(memory) if copied && fresh.concrete().is_some() => over_memory(&fresh, memory),
        _ => fresh,
    };
    Ok(Some((fresh, epoch)))
}

/// Renews a view, so that hooks and gradients can be attached to it; returns its value.
pub fn refresh(obj: &Bound<'_, PyTensor>) -> PyResult<Tensor> {
    let fresh = {
        let this = obj.read();
        match &this.view {
            None => return Ok(this.t.clone()),
            Some(view) => match renewed(obj.py(), &this.t, view)? {
                None => return Ok(this.t.clone()),
                Some((t, epoch)) => (t, epoch, view.part(&this.t)),
            },
        }
    };
    let (t, epoch, part) = fresh;
    let exchange = |this: &mut State| {
        // Other memory may begin elsewhere.
        let part = part.filter(|_| !share(&t, &this.t)).map(Box::new);
        if let Some(view) = &mut this.view {
            view.epoch = epoch;
            if part.is_some() {
                view.part = part;
            }
            // Views of what is apart find their root there.
            this.epoch += u64::from(view.apart);
        }
        std::mem::replace(&mut this.t, t.clone())
    };
    let old = obj.get().change(exchange).ok_or_else(in_use)?;
    drop(old);
    Ok(t)
}

/// The root of a view and which part of it the view is; `None` for a tensor that is no view, or a view apart.
pub fn link<'py>(obj: &Bound<'py, PyTensor>) -> Option<(Bound<'py, PyTensor>, Part)> {
    linked(obj, false)
}

/// What a view apart shares its numbers with, and which part of it.
pub fn numbers<'py>(obj: &Bound<'py, PyTensor>) -> Option<(Bound<'py, PyTensor>, Part)> {
    linked(obj, true)
}

fn linked<'py>(obj: &Bound<'py, PyTensor>, apart: bool) -> Option<(Bound<'py, PyTensor>, Part)> {
    let this = obj.read();
    let view = this.view.as_ref().filter(|view| view.apart == apart)?;
    let root = view.root.bind(obj.py());
    if root.read().epoch.abs_diff(view.epoch) >= ERA {
        return None;
    }
    Some((root.clone(), view.part(&this.t)?))
}

/// Whether a write into `obj` may concern a graph: it or what it hangs on, however far up, is more than
/// memory.
pub fn is_recorded(obj: &Bound<'_, PyTensor>) -> bool {
    let above = || link(obj).or_else(|| numbers(obj));
    obj.read().t.traced().is_some() || above().is_some_and(|(root, _)| is_recorded(&root))
}

/// Makes `next` the value of a root after a write; its views renew themselves when they are used.
pub fn written(root: &Bound<'_, PyTensor>, next: Tensor) -> PyResult<()> {
    if root.read().view.is_none() && same(&root.read().t, &next) {
        // The memory has the new numbers, for the views too.
        return Ok(());
    }
    let part = numbers(root).map(|(_, part)| Box::new(part));
    give(root, &next);
    replace(root, next)?;
    let moved = |this: &mut State| {
        this.epoch += 1;
        if let (Some(view), Some(part)) = (&mut this.view, part) {
            view.part = Some(part);
        }
    };
    root.get().change(moved).ok_or_else(in_use)?;
    hand_on(root)
}

/// Makes `next` the gradient of the leaf whose gradient `obj` is, if it still is.
fn give(obj: &Bound<'_, PyTensor>, next: &Tensor) {
    let this = obj.read();
    let leaf = this.ties.as_ref().and_then(|ties| ties.gradient_of.as_ref());
    let Some(mut slot) = leaf.and_then(|leaf| leaf.grad()) else { return };
    if slot.as_ref().is_some_and(|g| same(g, &this.t)) {
        let before = slot.replace(next.clone());
        drop(slot);
        // Outside the lock: its memory may belong to a Python object with a destructor.
        drop(before);
    }
}

/// Lets a view keep nothing of the value of its root, which is about to be replaced there: the view takes it
/// anew.
pub fn forget(obj: &Bound<'_, PyTensor>, root: &Bound<'_, PyTensor>) -> Result<()> {
    let stand_in = {
        let (this, above) = (obj.read(), root.read());
        if obj.is(root) || this.t.concrete().is_some() || above.t.concrete().is_some() {
            return Ok(());
        }
        alone::stand_in(&this.t)?
    };
    // First the epoch, so that nobody takes what stands in for the value.
    if root.get().change(|above| above.epoch += 1).is_some() {
        let old = obj.get().change(|this| std::mem::replace(&mut this.t, stand_in));
        drop(old);
    }
    Ok(())
}

/// Hands the numbers of a view apart on to its root, which keeps its history.
fn hand_on(obj: &Bound<'_, PyTensor>) -> PyResult<()> {
    let Some((root, part)) = numbers(obj) else { return Ok(()) };
    let (own, old) = (obj.read().t.clone(), root.read().t.clone());
    if share(&own, &old) {
        return Ok(());
    }
    let next = interp::no_grad(|| {
        let space = spaced(&root)?.detach();
        let whole = counted(&space, own.dtype().is_complex())?;
        let next = recounted(whole.put(&part, &own.detach())?, &space)?;
        match gaps(&root) {
            Some((part, _)) => next.as_strided(&part),
            None => Ok(next),
        }
    })?;
    written(&root, history::kept(&old, &next, Keep::All)?)?;
    let epoch = root.read().epoch;
    let seen = |this: &mut State| this.view.iter_mut().for_each(|view| view.epoch = epoch);
    obj.get().change(seen).ok_or_else(in_use)
}

/// Notes that `obj` has a history of its own from now on: as a leaf it is no view of its base any more, but
/// shares the numbers with it.
pub fn apart(obj: &Bound<'_, PyTensor>) -> PyResult<()> {
    let here = interp::replaces_values();
    let leave = |this: &mut State| match &mut this.view {
        Some(view) if here => {
            view.apart = true;
            None
        }
        view => view.take(),
    };
    let old = obj.get().change(leave).ok_or_else(in_use)?;
    drop(old);
    Ok(())
}

/// Notes that the memory of `obj` was exchanged: it is no view any more, and its views are on their own.
pub fn cut(obj: &Bound<'_, PyTensor>) -> PyResult<()> {
    let leave = |this: &mut State| {
        this.epoch += ERA;
        this.view.take()
    };
    let old = obj.get().change(leave).ok_or_else(in_use)?;
    drop(old);
    Ok(())
}
