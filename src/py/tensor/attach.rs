//! Creation of view objects: applies a chain of views to an object and links the result to its root. Read
//! next: `src/py/tensor/view.rs`, which defines how views follow their roots.

use crate::ops::views::strided::Part;
use crate::py::prelude::*;
use crate::py::tensor::real_complex::rescaled;
use crate::py::tensor::view::{View, count, gaps, link, share};
use crate::tape::saving;
use crate::watch::absent;

/// Returns the part that `f`, a chain of views, selects of the part `from` of a tensor of `whole` elements;
/// `None` if `f` copies. `f` runs on scratch memory of this dtype that is never read.
pub fn trace(
    whole: usize, from: &Part, dtype: DType, f: impl Fn(&Tensor) -> Result<Vec<Tensor>>,
) -> Result<Vec<Option<Part>>> {
    let memory = Array::empty(Shape::new(&[whole])?, dtype, Device::Cpu)?;
    let view = memory.with_layout(from.shape, &from.strides[..from.shape.rank()], from.offset)?;
    let memory = Tensor::from(memory);
    let part = |t: &Tensor| t.concrete().filter(|_| share(t, &memory)).map(|a| Part::of(a, 0));
    Ok(f(&view.into())?.iter().map(part).collect())
}

/// Returns the root of `obj`, of value `t`, and its part; an `obj` that is no view is its own root.
pub fn rooted<'py>(obj: &Bound<'py, PyTensor>, t: &Tensor) -> (Bound<'py, PyTensor>, Part) {
    let whole = || gaps(obj).map_or_else(|| Part::whole(&t.shape()), |(part, _)| part);
    link(obj).unwrap_or_else(|| (obj.clone(), whole()))
}

/// Applies a chain of views and links the result to the root of `obj`.
pub fn apply(obj: &Bound<'_, PyTensor>, f: impl Fn(&Tensor) -> Result<Tensor>) -> PyResult<PyTensor> {
    let this = obj.read();
    if this.view.is_none()
        && let Some(array) = this.t.concrete()
        && array.is_contiguous()
    {
        // The common case: contiguous memory that is no view.
        let out = f(&this.t)?;
        let link = || View {
            root: obj.clone().unbind(),
            epoch: this.epoch,
            base: array.offset(),
            part: None,
            apart: false,
            made: interp::level(),
        };
        let view = share(&out, &this.t).then(link);
        return Ok(PyTensor::viewing(out, view));
    }
    drop(this);
    across(obj, f)
}

/// [`apply`] for views that may change between real and complex, such as real parts.
pub fn across(obj: &Bound<'_, PyTensor>, f: impl Fn(&Tensor) -> Result<Tensor>) -> PyResult<PyTensor> {
    let t = value(obj)?;
    let out = f(&t)?;
    let view = attach(obj, &t, &[&out], false, |x| Ok(vec![f(x)?]))?.pop().flatten();
    Ok(PyTensor::viewing(out, view))
}

/// [`apply`] with several results.
pub fn apply_all(
    obj: &Bound<'_, PyTensor>, f: impl Fn(&Tensor) -> Result<Vec<Tensor>>,
) -> PyResult<Vec<PyTensor>> {
    let t = value(obj)?;
    let out = f(&t)?;
    let views = attach(obj, &t, &out.iter().collect::<Vec<_>>(), false, f)?;
    Ok(out.into_iter().zip(views).map(|(t, view)| PyTensor::viewing(t, view)).collect())
}

/// Returns the links of `outs`, which `f` made from `obj` of value `t`. A view apart is a root itself, unless
/// `through` asks for the tensor that it shares its numbers with.
fn attach(
    obj: &Bound<'_, PyTensor>, t: &Tensor, outs: &[&Tensor], through: bool,
    f: impl Fn(&Tensor) -> Result<Vec<Tensor>>,
) -> PyResult<Vec<Option<View>>> {
    if saving::bottom(t).is_some_and(absent::is_absent) {
        // Nothing is written that a view could show.
        return Ok(outs.iter().map(|_| None).collect());
    }
    let own = if through { None } else { gaps(obj) };
    let this = obj.read();
    let (root, base, from) = match &this.view {
        Some(view) if through || !view.apart => {
            // A view without a part is located by the value that the object holds, not by a newer one.
            let moved = || if share(t, &this.t) { None } else { view.part(&this.t) };
            let from = view.part.as_deref().copied().or_else(moved);
            (view.root.clone_ref(obj.py()), view.base, from)
        }
        _ => (obj.clone().unbind(), t.concrete().map_or(0, Array::offset), own.map(|(part, _)| part)),
    };
    drop(this);
    let (epoch, dense) = {
        let root = root.bind(obj.py()).read();
        (root.epoch, root.t.concrete().is_some_and(Array::is_contiguous))
    };
    let whole = count(root.bind(obj.py()), t.dtype());
    let made = interp::level();
    let link = |out: &Tensor, part: Option<Box<Part>>| {
        let base = rescaled(base, t.dtype(), out.dtype());
        View { root: root.clone_ref(obj.py()), epoch, base, part, apart: false, made }
    };
    if dense && from.is_none() && t.concrete().is_some() {
        return Ok(outs.iter().map(|out| share(out, t).then(|| link(out, None))).collect());
    }
    let from = from.unwrap_or_else(|| match t.concrete() {
        Some(array) if dense => Part::of(array, base),
        _ => Part::whole(&t.shape()),
    });
    let crosses = outs.iter().any(|out| out.dtype().is_complex() != t.dtype().is_complex());
    let dtype = match t.dtype().is_complex() {
        true => DType::C64,
        false if crosses => DType::F32,
        false => DType::Bool,
    };
    let parts = trace(whole, &from, dtype, f)?;
    let copied = |out: &Tensor| t.concrete().is_some() && out.concrete().is_some() && !share(out, t);
    let view = |(out, part): (&&Tensor, Option<Part>)| {
        part.filter(|_| !copied(out)).map(|part| link(out, Some(Box::new(part))))
    };
    let views = outs.iter().zip(parts).map(view);
    Ok(views.collect())
}

/// Returns an object of `out`, the value of `obj` without history, that shares its numbers with `obj`.
pub fn detached(obj: &Bound<'_, PyTensor>, t: &Tensor, out: Tensor) -> PyResult<PyTensor> {
    if interp::is_plain() {
        return Ok(out.into());
    }
    if !interp::replaces_values() {
        return Ok(PyTensor::sharing(out, None));
    }
    // The memory of `t` locates the view, even where `out` is no memory.
    let view = attach(obj, t, &[t], true, |x| Ok(vec![x.clone()]))?.pop().flatten();
    let part = |view: &View| view.part(t).filter(|_| t.concrete().is_none() || out.concrete().is_none());
    let view = view.map(|view| View { part: part(&view).map(Box::new).or(view.part), apart: true, ..view });
    Ok(PyTensor::sharing(out, view))
}

/// Whether the elements are contiguous; inside `vmap` and `jvp` the chain of views decides.
pub fn is_contiguous(obj: &Bound<'_, PyTensor>, t: &Tensor) -> bool {
    if let Some(array) = t.concrete() {
        return array.is_contiguous();
    }
    let this = obj.read();
    // Locates the view by the value that the object holds, which may be memory, and older than `t`.
    let part = this.view.as_ref().and_then(|view| view.part(&this.t));
    part.is_none_or(|part| part.is_dense())
}
