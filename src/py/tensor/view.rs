//! Views as Python objects. A view remembers its root, the object it was made from, and, where a value is not
//! memory, the part of the root that it is. A recorded write through any of them replaces the root's tensor
//! by a function of the old one (`src/ops/writes/inplace.rs`) and advances the root's epoch. A view that
//! finds the epoch advanced computes its value and history from the root again.
//!
//! `detach()` and `.data` share the numbers but not the history. Where values are memory, sharing it
//! suffices. Inside `vmap` and `jvp` the result is a view *apart*: it takes its numbers from its root, keeps
//! its own history, passes writes on to the root, and is itself the root of views made from it. Where the
//! root is memory not shared by the view, writes advance no epoch, and every read takes the numbers again.
//!
//! New views are made in `src/py/tensor/attach.rs`. Parts count elements of the view's kind
//! (`src/py/tensor/real_complex.rs`): a real view of a complex root counts twice as many.

use crate::autodiff::levels::edge_behind;
use crate::interp::{Tag, eval};
use crate::ops::views::strided::Part;
use crate::ops::writes::alone;
use crate::ops::writes::history::{self, Keep};
use crate::py::prelude::*;
use crate::py::tensor::object::{ReadGuard, State, Value};
use crate::py::tensor::real_complex::{counted, recounted, rescaled};
use crate::py::tensor::{changed, replace, same};
use crate::tensor::over_memory;

/// The epoch of a root advances by this much when its memory is exchanged; older views stop following it.
pub const ERA: u64 = 1 << 32;

/// The link of a view to the tensor it was made from.
pub struct View {
    /// The root; no view itself, or a view apart.
    pub root: Py<PyTensor>,
    /// The epoch of the root to which the stored value belongs.
    pub epoch: u64,
    /// Offset of the root in its buffer, in elements.
    pub base: usize,
    /// The part of the root; `None` while both are contiguous memory and the view's strides give the part.
    pub part: Option<Box<Part>>,
    /// Whether this is a view apart: it shares the numbers of the root, but not its history.
    pub apart: bool,
    /// The level in which it was made; 0 outside of transforms.
    pub made: Tag,
}

impl View {
    /// Returns the part of the root that the view `t` is.
    pub fn part(&self, t: &Tensor) -> Option<Part> {
        match (&self.part, t.concrete()) {
            (Some(part), _) => Some(**part),
            (None, Some(array)) => Some(Part::of(array, self.base)),
            (None, None) => None,
        }
    }
}

/// Whether two tensors have the same buffer.
pub fn share(a: &Tensor, b: &Tensor) -> bool {
    matches!((a.concrete(), b.concrete()), (Some(a), Some(b)) if a.buffer().same(b.buffer()))
}

/// Whether `t`, the value of a view, is separate from its root, which is memory that may be written any time.
fn strays(t: &Tensor, root: &Tensor) -> bool {
    root.concrete().is_some() && !share(t, root)
}

/// If `root` is a view apart with gaps between its elements (and no overlaps), returns its part of the tensor
/// it shares numbers with, and the number of elements there. Its views count elements of that.
pub fn gaps(root: &Bound<'_, PyTensor>) -> Option<(Part, usize)> {
    let this = root.read();
    let view = this.view.as_ref().filter(|view| view.apart)?;
    let part = view.part(&this.t).filter(|part| !part.is_dense() && !part.overlaps_itself())?;
    Some((part, count(view.root.bind(root.py()), this.t.dtype())))
}

/// Returns the number of elements, in this dtype, among which the views of a root select.
pub fn count(root: &Bound<'_, PyTensor>, dtype: DType) -> usize {
    let whole = gaps(root).map_or_else(|| root.read().t.numel(), |(_, whole)| whole);
    let own = root.read().t.dtype();
    rescaled(whole, own, dtype)
}

/// Returns the value of a root together with the gaps that its views count as elements (zeros).
fn spaced(root: &Bound<'_, PyTensor>) -> Result<Tensor> {
    let gaps = gaps(root);
    let t = root.read().t.clone();
    match gaps {
        Some((part, whole)) => t.scatter_part(&part, Shape::new(&[whole])?),
        None => Ok(t),
    }
}

impl PyTensor {
    /// Returns the current value with its history; a view may have been written through its root.
    #[inline]
    pub fn value(&self) -> PyResult<Value<'_>> {
        let this = self.read();
        if this.view.is_none() { Ok(Value::Read(this)) } else { value_of_view(this) }
    }
}

fn value_of_view(this: ReadGuard<'_>) -> PyResult<Value<'_>> {
    let Some(view) = &this.view else { return Ok(Value::Read(this)) };
    match Python::attach(|py| renewed(py, &this.t, view))? {
        None => Ok(Value::Read(this)),
        Some((t, _)) => Ok(Value::Renewed(t)),
    }
}

/// Returns the current value of an object with its history.
#[inline]
pub fn value(obj: &Bound<'_, PyTensor>) -> PyResult<Tensor> {
    Ok(obj.get().value()?.into_owned())
}

/// Returns the new value of a view whose root was written, and the root's epoch; `None` if it was not.
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
        // A value that is not memory must not change when the root's memory does.
        let numbers = match numbers.concrete() {
            Some(memory) if t.concrete().is_none() => eval::copied(memory)?.into(),
            _ => numbers,
        };
        return Ok(Some((history::kept(t, &numbers, Keep::All)?, epoch)));
    }
    // A view has the history of its root, whether or not recording is on at this read.
    let fresh = interp::with_grad(|| counted(&spaced(root)?, complex)?.as_strided(&part))?;
    // Where the root's layout forced a copy, the value stays over the view's own memory.
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
    keep_gradient(obj, &t);
    let exchange = |this: &mut State| {
        // Other memory may have another offset, so the part is stored.
        let part = part.filter(|_| !share(&t, &this.t)).map(Box::new);
        if let Some(view) = &mut this.view {
            view.epoch = epoch;
            if part.is_some() {
                view.part = part;
            }
            // Views of a view apart have it as their root.
            this.epoch += u64::from(view.apart);
        }
        std::mem::replace(&mut this.t, t.clone())
    };
    changed(obj, exchange)?;
    Ok(t)
}

/// Returns the root of a view and its part; `None` for a tensor that is no view, or a view apart.
pub fn link<'py>(obj: &Bound<'py, PyTensor>) -> Option<(Bound<'py, PyTensor>, Part)> {
    linked(obj, false)
}

/// Returns the tensor that a view apart shares its numbers with, and its part; `None` for any other tensor.
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

/// Whether a write into `obj` may become part of a graph: it or a tensor up its chain of roots is traced.
pub fn is_recorded(obj: &Bound<'_, PyTensor>) -> bool {
    let above = || link(obj).or_else(|| numbers(obj));
    obj.read().t.traced().is_some() || above().is_some_and(|(root, _)| is_recorded(&root))
}

/// Makes `next` the value of a root after a write; its views renew themselves when they are used.
pub fn written(root: &Bound<'_, PyTensor>, next: Tensor) -> PyResult<()> {
    if root.read().view.is_none() && same(&root.read().t, &next) {
        // The memory holds the new numbers already, for the views too.
        return Ok(());
    }
    let part = numbers(root).map(|(_, part)| Box::new(part));
    give(root, &next);
    keep_gradient(root, &next);
    replace(root, next)?;
    let moved = |this: &mut State| {
        this.epoch += 1;
        if let (Some(view), Some(part)) = (&mut this.view, part) {
            view.part = Some(part);
        }
    };
    changed(root, moved)?;
    hand_on(root)
}

/// Moves what `retain_grad()` asked for to the node of the next value of `obj`.
pub fn keep_gradient(obj: &Bound<'_, PyTensor>, next: &Tensor) {
    let this = obj.read();
    let Some(keep) = this.ties.as_ref().and_then(|ties| ties.kept.as_ref()) else { return };
    if let Some(hooks) = edge_behind(&this.t).as_ref().and_then(|edge| edge.node.hooks()) {
        hooks.give_up(keep);
    }
    if let Some(edge) = edge_behind(next).filter(|edge| !edge.node.is_leaf()) {
        edge.node.hooks_mut().take_over(edge.index, keep);
    }
}

/// Makes `next` the gradient of the leaf whose gradient is `obj`, if it still is.
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

/// Replaces the value of a view by a stand-in, before the root's value is replaced: the view then shares
/// nothing that would force a copy, and renews itself later.
pub fn forget(obj: &Bound<'_, PyTensor>, root: &Bound<'_, PyTensor>) -> Result<()> {
    let stand_in = {
        let (this, above) = (obj.read(), root.read());
        if obj.is(root) || this.t.concrete().is_some() || above.t.concrete().is_some() {
            return Ok(());
        }
        alone::stand_in(&this.t)?
    };
    // The epoch first: otherwise a reader could take the stand-in for the value.
    if root.get().change(|above| above.epoch += 1).is_some() {
        let old = obj.get().change(|this| std::mem::replace(&mut this.t, stand_in));
        drop(old);
    }
    Ok(())
}

/// Passes the numbers of a view apart on to its root, which keeps its history.
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
    changed(obj, seen)
}

/// Gives `obj` a history of its own: as a leaf it is no longer a view of its base, but shares its numbers.
pub fn apart(obj: &Bound<'_, PyTensor>) -> PyResult<()> {
    let here = interp::replaces_values();
    let leave = |this: &mut State| match &mut this.view {
        Some(view) if here => {
            view.apart = true;
            None
        }
        view => view.take(),
    };
    changed(obj, leave).map(drop)
}

/// Ends all links of `obj`, whose memory was exchanged: it is no view, and its views stop following it.
pub fn cut(obj: &Bound<'_, PyTensor>) -> PyResult<()> {
    let leave = |this: &mut State| {
        this.epoch += ERA;
        this.view.take()
    };
    changed(obj, leave).map(drop)
}
