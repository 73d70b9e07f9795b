//! In-place changes of shape: the object takes another layout of its memory, with the view in its history.
//!
//! Views of a tensor count its elements in row-major order (`src/py/tensor/view.rs`), so those made before
//! follow it where that order stays. Where axes change places they keep the memory, and with it the numbers,
//! but no longer the history; so a tensor with a history may change so only while nothing else refers to it.

use crate::ops::writes::alone;
use crate::ops::writes::writable::check_outside;
use crate::py::args::{count, integers};
use crate::py::data::create::Any;
use crate::py::data::layout::Format;
use crate::py::error::renamed;
use crate::py::prelude::*;
use crate::py::tensor::object::State;
use crate::py::tensor::options::starred;
use crate::py::tensor::view::{ERA, cut, keep_gradient, link, numbers};
use crate::py::tensor::{changed, leaf, replace};
use crate::py::writes::assign::This;
use crate::py::writes::inplace::check_root;

/// The error for a change of shape that cannot be made in place.
#[cold]
fn refused(name: &str, why: &str, instead: &str) -> PyErr {
    Error::autodiff(format!("{name}: {why}; write {instead}")).into()
}

/// Makes this tensor the view of it that its method `name` returns: `x.t_()` is `changed_shape(x, "t", ())`.
fn changed_shape<'py>(slf: &This<'py>, name: &str, args: &Bound<'py, PyTuple>) -> PyResult<This<'py>> {
    let (own, instead) = (format!("{name}_"), format!("y = x.{name}(...)"));
    let is_alone = {
        let old = refresh(slf)?;
        check_root(slf, name)?;
        check_outside(name, &old)?;
        drop(old);
        !alone::memory(&slf.read().t, 1).is_empty()
    };
    let is_leaf = leaf(&slf.read().t).is_some();
    // The result has the history of this tensor, whether or not recording is on.
    let made = interp::with_grad(|| slf.call_method1(name, args));
    let made = made.map_err(|error| renamed(slf.py(), error, &own))?;
    let made = made.cast::<PyTensor>()?;
    if is_leaf {
        slf.setattr("data", made)?;
        return Ok(slf.clone());
    }
    let is_view = link(slf).is_some();
    let (t, part) = {
        let made = made.read();
        (made.t.clone(), made.view.as_ref().and_then(|view| view.part(&made.t)))
    };
    if numbers(slf).is_some() || (is_view && part.is_none()) {
        return Err(refused(&own, "this tensor shares the numbers of another", &instead));
    }
    let stays = t.numel() < 2 || part.is_some_and(|part| part.is_dense());
    if !is_view && !stays && t.traced().is_some() && !is_alone {
        let why = "views or saved values refer to this tensor, which has a history, in its own order";
        return Err(refused(&own, why, &instead));
    }
    keep_gradient(slf, &t);
    let view = if is_view { changed(made, |made| made.view.take())? } else { None };
    let moved = |this: &mut State| {
        if !is_view && !stays {
            this.epoch += ERA;
        }
        let view = if is_view { std::mem::replace(&mut this.view, view) } else { None };
        (std::mem::replace(&mut this.t, t), view)
    };
    changed(slf, moved).map(drop)?;
    Ok(slf.clone())
}

/// Changes of shape in place, each named after the method whose view the tensor becomes.
macro_rules! reshapings {
    ($($(#[$attribute:meta])* $method:ident($($parameter:ident: $type:ty),*) = $name:literal;)*) => {
        #[pymethods]
        impl PyTensor {
            $(
                $(#[$attribute])*
                fn $method<'py>(slf: &This<'py>, $($parameter: $type),*) -> PyResult<This<'py>> {
                    let args: Vec<&Bound<'py, PyAny>> = vec![$($parameter),*];
                    changed_shape(slf, $name, &PyTuple::new(slf.py(), args)?)
                }
            )*
        }
    };
}

reshapings! {
    /// Adds an axis of length 1 at position `dim` in place; see `squeeze_`.
    ///
    /// Example:
    ///     >>> wg.ones(2).unsqueeze_(0).shape
    ///     (1, 2)
    unsqueeze_(dim: &Bound<'py, PyAny>) = "unsqueeze";
    /// Exchanges two axes in place; see `squeeze_`.
    ///
    /// Views made before keep the memory, but no longer follow the history of this tensor.
    ///
    /// Raises:
    ///     RuntimeError: for a tensor with a history to which views or saved values refer.
    ///
    /// Example:
    ///     >>> wg.ones(2, 3).transpose_(0, 1).shape
    ///     (3, 2)
    transpose_(dim0: &Bound<'py, PyAny>, dim1: &Bound<'py, PyAny>) = "transpose";
    /// Exchanges two axes in place, as `transpose_`.
    ///
    /// Example:
    ///     >>> wg.ones(2, 3).swapaxes_(0, 1).shape
    ///     (3, 2)
    swapaxes_(axis0: &Bound<'py, PyAny>, axis1: &Bound<'py, PyAny>) = "swapaxes";
    /// Exchanges two axes in place, as `transpose_`.
    ///
    /// Example:
    ///     >>> wg.ones(2, 3).swapdims_(0, 1).shape
    ///     (3, 2)
    swapdims_(dim0: &Bound<'py, PyAny>, dim1: &Bound<'py, PyAny>) = "swapdims";
    /// Exchanges the axes of a matrix in place, as `transpose_`.
    ///
    /// Example:
    ///     >>> wg.ones(2, 3).t_().shape
    ///     (3, 2)
    t_() = "t";
}

#[pymethods]
impl PyTensor {
    /// Removes the axes of length 1, or only those in `dim`, in place.
    ///
    /// What is said here holds for all changes of shape in place: the tensor takes the layout that the method
    /// without the line returns, and its history gains that view. No memory is copied.
    ///
    /// Raises:
    ///     RuntimeError: for a leaf that requires a gradient, while recording.
    ///
    /// Example:
    ///     >>> wg.ones(1, 2).squeeze_().shape
    ///     (2,)
    #[pyo3(signature = (dim=None))]
    fn squeeze_<'py>(slf: &This<'py>, dim: Any<'_, 'py>) -> PyResult<This<'py>> {
        changed_shape(slf, "squeeze", &PyTuple::new(slf.py(), dim)?)
    }

    /// Changes the shape to that of `the_template` in place; see `resize_`.
    ///
    /// Example:
    ///     >>> wg.arange(4).resize_as_(wg.ones(2, 2))
    ///     tensor([[0, 1],
    ///             [2, 3]])
    fn resize_as_<'py>(slf: &This<'py>, the_template: &Bound<'py, PyAny>) -> PyResult<This<'py>> {
        let Ok(template) = the_template.cast::<PyTensor>() else {
            return Err(no_tensor("resize_as_", "the_template", the_template));
        };
        let shape = template.read().t.shape();
        resized(slf, "resize_as_", &shape)
    }

    /// Changes the shape in place; the number of elements may change too.
    ///
    /// Elements are counted in row-major order. As many as fit keep their values. A larger tensor gets
    /// what follows in its memory, or zeros where the memory is too small. `memory_format` is accepted.
    ///
    /// Raises RuntimeError for a tensor that requires a gradient or is inside of a transform, and for one
    /// whose memory is too small and shared with other tensors.
    #[pyo3(signature = (*size, memory_format=None), text_signature = "($self, *size, memory_format=None)")]
    fn resize_<'py>(
        slf: &Bound<'py, Self>, size: &Bound<'py, PyTuple>, memory_format: Option<Format>,
    ) -> PyResult<Bound<'py, Self>> {
        let _ = memory_format;
        let sizes = integers(&starred("resize_", size, [])?)?;
        let sizes = sizes.iter().map(|&n| count("resize_: a length", n)).collect::<PyResult<Vec<_>>>()?;
        resized(slf, "resize_", &Shape::new(&sizes)?)
    }
}

/// Changes the shape in place, on behalf of the method `name`.
fn resized<'py>(slf: &This<'py>, name: &str, shape: &Shape) -> PyResult<This<'py>> {
    let t = refresh(slf)?;
    check_outside(name.trim_end_matches('_'), &t)?;
    let Tensor::Array(array) = &t else {
        let why = "a tensor that requires a gradient, or is inside of a transform, has a shape for good";
        return Err(refused(name, why, "y = x.reshape(...), or resize a clone() of its detach()"));
    };
    let wanted = array.offset().saturating_add(shape.numel()).saturating_mul(array.dtype().size());
    let next = if wanted <= array.buffer().bytes() {
        Tensor::from(array.with_layout(*shape, &shape.strides()[..shape.rank()], array.offset())?)
    } else {
        let more = (shape.numel() - t.numel()) as i64;
        let next = t.flatten(0, -1)?.pad(&[(0, more)], 0.0)?.reshape(shape)?;
        drop(t);
        if alone::memory(&slf.read().t, 1).is_empty() {
            let why = "other tensors or arrays share its memory, which is too small";
            return Err(refused(name, why, "y = x.new_zeros(...), and copy what is to stay"));
        }
        next
    };
    cut(slf)?;
    replace(slf, next)?;
    Ok(slf.clone())
}
