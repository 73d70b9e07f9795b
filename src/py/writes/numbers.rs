//! Elements replaced by what a function of Python's numbers makes of them.

use crate::py::data::convert;
use crate::py::prelude::*;
use crate::py::writes::assign::{This, in_place};

/// Sets the elements of `slf` to what a function makes of their numbers and those of `others`, on behalf of
/// the method `name` with a line behind it.
fn by_numbers<'py>(
    slf: &This<'py>, name: &str, callable: &Bound<'py, PyAny>, others: &[This<'py>],
) -> PyResult<This<'py>> {
    let all = || std::iter::once(slf).chain(others);
    for x in all() {
        if x.getattr("requires_grad")?.is_truthy()? {
            return Err(Error::autodiff(format!(
                "{name}_: a function of Python's numbers has no derivative, and the tensor requires a \
                 gradient; write the function with operations of tensors"
            ))
            .into());
        }
    }
    if all().any(|x| x.read().t.device() != Device::Cpu) {
        return Err(type_error(format!("{name}_: tensors on the CPU expected; move them with .cpu()")));
    }
    let numbers = |x: &This<'py>| x.call_method1("reshape", (-1,))?.call_method0("tolist")?.try_iter();
    let mut rows = all().map(numbers).collect::<PyResult<Vec<_>>>()?;
    let found = PyList::empty(slf.py());
    for _ in 0..slf.read().t.numel() {
        let next = rows.iter_mut().filter_map(Iterator::next).collect::<PyResult<Vec<_>>>()?;
        found.append(callable.run(PyTuple::new(slf.py(), next)?, None)?)?;
    }
    in_place(slf, name, |_, x| match found.is_empty() {
        true => Ok(x.clone()),
        false => Ok(convert::in_dtype(&found, x.dtype())?.reshape(&x.shape())?),
    })
}

#[pymethods]
impl PyTensor {
    /// Replaces every element by what a function of Python's numbers makes of it, in place: slow, on the CPU
    /// only.
    ///
    /// Args:
    ///     callable: takes and returns one number.
    ///
    /// Raises:
    ///     RuntimeError: the tensor requires a gradient.
    ///     TypeError: the tensor lies on a GPU.
    ///
    /// Example:
    ///     >>> wg.tensor([1.0, 2.0]).apply_(lambda x: x + 1)
    ///     tensor([2., 3.])
    fn apply_<'py>(slf: &This<'py>, callable: &Bound<'py, PyAny>) -> PyResult<This<'py>> {
        by_numbers(slf, "apply", callable, &[])
    }

    /// Replaces every element by what a function of two of Python's numbers makes of it and of that of
    /// `tensor`, in place: slow, on the CPU only.
    ///
    /// Args:
    ///     tensor: broadcasts to the shape of this one.
    ///     callable: takes two numbers and returns one.
    ///
    /// Raises:
    ///     RuntimeError: a tensor requires a gradient.
    ///     TypeError: a tensor lies on a GPU, or `tensor` is none.
    ///
    /// Example:
    ///     >>> wg.tensor([1.0, 2.0]).map_(wg.tensor([3.0, 5.0]), lambda x, y: x * y)
    ///     tensor([ 3., 10.])
    fn map_<'py>(
        slf: &This<'py>, tensor: &Bound<'py, PyAny>, callable: &Bound<'py, PyAny>,
    ) -> PyResult<This<'py>> {
        let Ok(other) = tensor.cast::<PyTensor>() else {
            return Err(no_tensor("map_", "tensor", tensor));
        };
        let wide = value(other)?.expand(&slf.read().t.shape()).named("map_")?;
        by_numbers(slf, "map", callable, &[Bound::new(slf.py(), PyTensor::from(wide))?])
    }
}
