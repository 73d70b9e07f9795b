//! In-place operations on tensor objects: the value is computed first and written second
//! (`src/ops/writes/inplace.rs`), and the object takes over the history of the operation.

use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::table::Fun;
use crate::ops::pointwise::unary::Unary;
use crate::ops::views::strided::Part;
use crate::ops::writes::inplace::{
    self, exchange, exchange_part, exchange_rows, shielding, write, write_part, write_rows,
};
use crate::ops::writes::rows::Rows;
use crate::ops::writes::writable;
use crate::py::prelude::*;
use crate::py::tensor::operators::binary_of;
use crate::py::tensor::real_complex::{in_kind, rescaled};
use crate::py::tensor::view::{forget, gaps, is_recorded, link, numbers, written};
use crate::py::writes::outer;

/// Replaces the value of `slf` by `f` of it.
pub fn update(
    slf: &Bound<'_, PyTensor>, name: &str, f: impl FnOnce(Python<'_>, &Tensor) -> PyResult<Tensor>,
) -> PyResult<()> {
    let old = refresh(slf)?;
    check_root(slf, name)?;
    let new = shielding(&old, || f(slf.py(), &old))?;
    drop(old);
    overwrite(slf, name, new)
}

/// Overwrites `slf` by an elementwise function of it and `other`, in its memory; returns whether it could.
pub fn row_over(slf: &Bound<'_, PyTensor>, fun: Fun, other: Option<&Arg>) -> PyResult<bool> {
    let target = refresh(slf)?;
    if link(slf).is_some() {
        return Ok(false);
    }
    run(slf.py(), target.numel(), || inplace::row_over(fun, &target, other.map(Arg::operand)))
}

/// Replaces the value of `slf` by a binary elementwise function of it and `other`.
pub fn binary(slf: &Bound<'_, PyTensor>, fun: Binary, other: &Arg) -> PyResult<()> {
    if row_over(slf, Fun::Binary(fun), Some(other))? {
        return Ok(());
    }
    update(slf, fun.name(), |py, x| binary_of(py, x, other, fun, false))
}

/// Returns the elementwise function and second operand that the method `name` stands for, if it does nothing
/// else. `pow` is excluded, as it has cheaper special forms.
fn row(name: &str, args: &Bound<'_, PyTuple>) -> PyResult<Option<(Fun, Option<Arg>)>> {
    match args.len() {
        0 => Ok(Unary::ALL.iter().find(|f| f.name() == name).map(|&f| (Fun::Unary(f), None))),
        1 => {
            let found = Binary::ALL.iter().find(|f| f.name() == name && **f != Binary::Pow);
            let Some(&fun) = found else { return Ok(None) };
            Ok(Arg::from_any(&args.get_item(0)?)?.map(|other| (Fun::Binary(fun), Some(other))))
        }
        _ => Ok(None),
    }
}

/// Raises if `slf` is a leaf that must not be written at present, or a view of one, and if a custom function
/// returned one of its arguments as this object.
pub fn check_root(slf: &Bound<'_, PyTensor>, name: &str) -> Result<()> {
    let link = link(slf);
    let root = link.as_ref().map_or(slf, |(root, _)| root).read();
    if let Some(function) = root.ties.as_ref().and_then(|ties| ties.returned_by) {
        return Err(writable::of_custom(name, function));
    }
    let check = if link.is_some() { writable::check_root } else { writable::check_leaf };
    check(name, &root.t)
}

/// Stores `new` in `slf`, and in the root of which it is a view.
pub fn overwrite(slf: &Bound<'_, PyTensor>, name: &str, new: Tensor) -> PyResult<()> {
    if let Some((root, part)) = link(slf) {
        let complex = slf.read().t.dtype().is_complex();
        forget(slf, &root)?;
        return store_part(&root, name, &part, new, complex);
    }
    let old = slf.read().t.clone();
    let new = outer::admitted(name, slf, &old, new)?;
    let in_memory = is_memory(slf);
    let next =
        slf.py().detached(|| if in_memory { write(name, &old, new) } else { exchange(name, &old, new) })?;
    written(slf, next)
}

/// Stores `new`, which has the dtype of the part, in a part of `root`. `root` is no view, or a view apart.
pub fn overwrite_part(root: &Bound<'_, PyTensor>, name: &str, part: &Part, new: Tensor) -> PyResult<()> {
    let complex = new.dtype().is_complex();
    store_part(root, name, part, new, complex)
}

/// [`overwrite_part`] for a part that counts in complex numbers (`complex`) or in real ones.
fn store_part(
    root: &Bound<'_, PyTensor>, name: &str, part: &Part, new: Tensor, complex: bool,
) -> PyResult<()> {
    let old = root.read().t.clone();
    if let Some((own, whole)) = gaps(root) {
        let wide = old.scatter_part(&own, Shape::new(&[whole])?)?;
        let next = in_kind(&wide, complex, |wide| exchange_part(name, wide, part, new))?;
        let next = next.unwrap_or(wide).as_strided(&own)?;
        return overwrite(root, name, next);
    }
    let new = outer::admitted(name, root, &old, new)?;
    replaced(root, &old, complex, |old, in_memory| {
        if in_memory { write_part(name, old, part, new) } else { exchange_part(name, old, part, new) }
    })
}

/// Makes what `write(old, in_memory)` returns the value of `root`; [`in_kind`] explains the rest.
fn replaced(
    root: &Bound<'_, PyTensor>, old: &Tensor, complex: bool,
    write: impl FnOnce(&Tensor, bool) -> Result<Option<Tensor>> + Send,
) -> PyResult<()> {
    let in_memory = is_memory(root);
    match root.py().detached(|| in_kind(old, complex, |old| write(old, in_memory)))? {
        Some(next) => written(root, next),
        None => Ok(()),
    }
}

/// Whether writes go to the tensor's memory: false for a view apart whose numbers are those of no memory.
fn is_memory(slf: &Bound<'_, PyTensor>) -> bool {
    numbers(slf).is_none_or(|(root, _)| root.read().t.concrete().is_some() && is_memory(&root))
}

/// Writes `value(shape)` to the rows of `slf` that `places` finds, or adds it there. `places(part, numel)`
/// gets a part of a tensor of `numel` elements; `shape` is the shape of the written value.
pub fn overwrite_rows(
    slf: &Bound<'_, PyTensor>, name: &str, places: impl Fn(&Part, usize) -> Result<Rows>,
    value: impl Fn(&Shape) -> Result<Tensor>, add: bool,
) -> PyResult<()> {
    let old = refresh(slf)?;
    check_root(slf, name)?;
    if let Tensor::Array(target) = &old
        && target.device() == Device::Cpu
        && !is_recorded(slf)
    {
        // Writes directly into memory, whatever its layout.
        let rows = places(&Part::of(target, 0), 0)?;
        if rows.shape.numel() == 0 {
            return Ok(());
        }
        let value = value(&rows.shape)?;
        if let (Tensor::Array(index), Tensor::Array(new)) = (&rows.index, &value)
            && new.device() == Device::Cpu
        {
            // All of the memory, whichever part of it the target is.
            let count = target.buffer().bytes() / target.dtype().size() / rows.width.max(1);
            let shape = Shape::new(&[count, rows.width])?;
            let table = target.with_layout(shape, &[rows.width as isize, 1], 0)?;
            let write = || inplace::store_rows(name, target, (&table, rows.width), new, index, add);
            return run(slf.py(), new.numel(), write);
        }
    }
    let (root, part) = link(slf).unwrap_or_else(|| (slf.clone(), Part::whole(&old.shape())));
    let dtype = old.dtype();
    drop(old);
    forget(slf, &root)?;
    let whole = root.read().t.clone();
    if let Some((own, count)) = gaps(&root).filter(|_| !root.is(slf)) {
        // The view counts elements in gaps that its root does not hold.
        let rows = places(&part, rescaled(count, whole.dtype(), dtype))?;
        let value = value(&rows.shape)?;
        let wide = whole.scatter_part(&own, Shape::new(&[count])?)?;
        let store = |wide: &Tensor| exchange_rows(name, wide, &rows, value, add);
        let next = in_kind(&wide, dtype.is_complex(), store)?.unwrap_or(wide);
        return overwrite(&root, name, next.as_strided(&own)?);
    }
    let rows = places(&part, rescaled(whole.numel(), whole.dtype(), dtype))?;
    if rows.shape.numel() == 0 {
        return Ok(());
    }
    // Like a value, an index must not belong to a transform that the tensor is from outside of.
    outer::admitted(name, &root, &whole, rows.index.clone())?;
    let value = outer::admitted(name, &root, &whole, value(&rows.shape)?)?;
    replaced(&root, &whole, dtype.is_complex(), |whole, in_memory| match in_memory {
        true => write_rows(name, whole, &rows, value, add),
        false => exchange_rows(name, whole, &rows, value, add),
    })
}

/// Writes the only element of `value` where `mask` holds; returns whether that was possible in place.
pub fn fill_where(slf: &Bound<'_, PyTensor>, name: &str, mask: &Tensor, value: &Tensor) -> PyResult<bool> {
    let target = refresh(slf)?;
    check_root(slf, name)?;
    if is_recorded(slf) {
        return Ok(false);
    }
    run(slf.py(), target.numel(), || inplace::fill_where(name, &target, mask, value))
}

#[pymethods]
impl PyTensor {
    /// Stores `value`, the result of the operation `name` for which this tensor was given as `out`.
    pub fn _store(slf: &Bound<'_, Self>, name: &str, value: AsTensor) -> PyResult<()> {
        let (own, shape) = (slf.read().t.shape(), value.0.shape());
        if own != shape {
            return Err(
                Error::shape(format!("{name}: out has shape {own}, expected {shape} as the result")).into()
            );
        }
        update(slf, name, |_, _| Ok(value.0))
    }

    /// Replaces the elements by the result of method `name`; `x.exp_()` is `x._in_place("exp")`.
    #[pyo3(signature = (name, *args, **kwargs))]
    pub fn _in_place<'py>(
        slf: &Bound<'py, Self>, name: &str, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        if kwargs.is_none()
            && let Some((fun, other)) = row(name, args)?
            && row_over(slf, fun, other.as_ref())?
        {
            return Ok(slf.clone());
        }
        update(slf, name, |py, x| x.into_pyobject(py)?.call_method(name, args, kwargs)?.extract())?;
        Ok(slf.clone())
    }
}

/// Returns a scalar on the CPU moved to the device of `like`; any other value unchanged.
pub fn beside(like: &Tensor, value: Tensor) -> Result<Tensor> {
    if value.rank() == 0 && value.device() == Device::Cpu {
        value.to_device(like.device())
    } else {
        Ok(value)
    }
}
