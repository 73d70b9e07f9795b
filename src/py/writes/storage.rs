//! The memory behind tensors, as PyTorch shows it: what its storages are here, tensors over memory that
//! exists, and tensors whose elements lie at given distances.

use crate::ops::views::strided::as_strided;
use crate::ops::writes::writable::check_outside;
use crate::py::args::{Listed, amount, count, shape};
use crate::py::data::create::{Any, made, place, place_beside};
use crate::py::prelude::*;
use crate::py::writes::assign::This;
use pyo3::types::{PySlice, PyType};

/// The memory of a tensor on the CPU, which its views share: its address, its size, and its elements.
///
/// `Tensor.storage()` counts elements, `Tensor.untyped_storage()` bytes. It cannot be resized.
///
/// Example:
///     >>> x = wg.zeros(2, 3)
///     >>> x.untyped_storage().nbytes(), x[1].untyped_storage().data_ptr() == x.data_ptr()
///     (24, True)
#[pyclass(module = "wengert", frozen)]
pub struct UntypedStorage {
    memory: Py<PyTensor>,
}

/// Methods and properties that are those of the memory as a tensor.
macro_rules! of_memory {
    ($($(#[$attribute:meta])* $name:ident = $memory:ident.$how:ident($what:literal);)*) => {
        #[pymethods]
        impl UntypedStorage {
            $(
                $(#[$attribute])*
                fn $name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                    self.$memory.bind(py).$how($what)
                }
            )*
        }
    };
}

of_memory! {
    /// What the elements are; uint8 where they are bytes.
    #[getter]
    dtype = memory.getattr("dtype");
    /// Where the memory lies.
    #[getter]
    device = memory.getattr("device");
    /// Returns the address of the first element.
    data_ptr = memory.call_method0("data_ptr");
    /// Returns the number of bytes.
    nbytes = memory.getattr("nbytes");
    /// Returns the bytes per element.
    element_size = memory.getattr("itemsize");
    /// Returns the number of elements.
    size = memory.call_method0("numel");
    /// Returns the elements as a list.
    tolist = memory.call_method0("tolist");
}

#[pymethods]
impl UntypedStorage {
    /// `memory` is all of it, as a tensor with one axis.
    #[new]
    fn new(memory: Py<PyTensor>) -> UntypedStorage {
        UntypedStorage { memory }
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.memory.bind(py).read().t.numel()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let found = self.memory.bind(index.py()).get_item(index)?;
        found.call_method0(if index.is_instance_of::<PySlice>() { "tolist" } else { "item" })
    }

    fn __setitem__(&self, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.memory.bind(index.py()).set_item(index, value)
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, Self>) -> PyResult<bool> {
        let py = slf.py();
        let mut same = true;
        for of in [Self::data_ptr, Self::nbytes, Self::dtype] {
            same &= of(slf.get(), py)?.eq(of(other.get(), py)?)?;
        }
        Ok(same)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.data_ptr(py)?.hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let memory = self.memory.bind(py).read().t.clone();
        let device = self.device(py)?.str()?;
        Ok(format!("UntypedStorage({} of {} on {device})", memory.numel(), memory.dtype()))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (Py<PyTensor>,)) {
        (slf.get_type(), (slf.get().memory.clone_ref(slf.py()),))
    }
}

/// All of the memory that a tensor lies in, as a tensor with one axis, of its elements or of bytes.
fn memory(x: &Tensor, bytes: bool) -> Result<Tensor> {
    let x = x.detach();
    let array = x.array("storage")?;
    let dtype = if bytes { DType::U8 } else { array.dtype() };
    let all = Shape::new(&[array.buffer().bytes() / dtype.size()])?;
    Ok(Array::strided(array.buffer().clone(), all, &[1], 0, dtype)?.into())
}

/// The storage of a tensor, counted in its elements or in bytes.
fn storage_of(x: &PyTensor, py: Python<'_>, bytes: bool) -> PyResult<UntypedStorage> {
    crate::watch::script::refuse(|| {
        "the storage of a tensor, which may be another in each run; ask after the call".into()
    });
    let memory = PyTensor::from(memory(&*x.value()?, bytes)?);
    Ok(UntypedStorage { memory: Py::new(py, memory)? })
}

/// A part of `whole` from `offset` on, of the shape and the strides given: all of it in row-major order by
/// default.
fn part_of(whole: &Tensor, size: Option<Listed>, stride: Option<Listed>, offset: usize) -> PyResult<Tensor> {
    let lengths = match size {
        Some(size) => shape(&size.0)?.to_vec(),
        None => vec![count("set_: a length", whole.numel() as i64 - offset as i64)?],
    };
    let strides: Vec<isize> = match stride {
        Some(stride) => stride.0.iter().map(|&n| n as isize).collect(),
        None => Shape::new(&lengths)?.strides()[..lengths.len()].to_vec(),
    };
    Ok(as_strided(whole, &lengths, &strides, offset).named("set_")?)
}

/// Makes a tensor whose elements lie `stride` apart in memory.
fn strided(
    py: Python<'_>, size: &Listed, stride: &Listed, (dtype, device): (DType, Device), grad: bool,
) -> PyResult<PyTensor> {
    let (lengths, steps) = (&size.0, &stride.0);
    let shown = || Ok::<_, PyErr>((PyTuple::new(py, lengths)?, PyTuple::new(py, steps)?));
    if lengths.len() != steps.len() || lengths.iter().chain(steps).any(|&n| n < 0) {
        let (lengths, steps) = shown()?;
        return Err(value_error(format!(
            "empty_strided: a stride that is not negative for each axis expected, got {lengths}, {steps}"
        )));
    }
    let own = shape(lengths)?;
    let last =
        lengths.iter().zip(steps).map(|(&n, &step)| i128::from(n - 1) * i128::from(step)).sum::<i128>();
    let reach = if lengths.contains(&0) { 0 } else { usize::try_from(last + 1).unwrap_or(usize::MAX) };
    let whole = Tensor::zeros(Shape::new(&[reach]).named("empty_strided")?, dtype, device)?;
    let steps: Vec<isize> = steps.iter().map(|&n| n as isize).collect();
    let out = as_strided(&whole, &own.to_vec(), &steps, 0).named("empty_strided")?;
    let kept = {
        let array = out.array("empty_strided")?;
        own.iter().zip(&steps).zip(array.strides()).all(|((n, step), own)| n < 2 || *step == own)
    };
    if !kept && !lengths.contains(&0) {
        let (lengths, steps) = shown()?;
        return Err(value_error(format!(
            "empty_strided: elements of shape {lengths} meet with strides {steps}; leave room for each"
        )));
    }
    made(out, grad)
}

#[pymethods]
impl PyTensor {
    /// Returns the memory in which the tensor lies, counted in its elements.
    ///
    /// Raises:
    ///     TypeError: inside of a transform, where values are no memory.
    ///
    /// Example:
    ///     >>> wg.tensor([1.0, 2.0])[1].storage().tolist()
    ///     [1.0, 2.0]
    fn storage(&self, py: Python<'_>) -> PyResult<UntypedStorage> {
        storage_of(self, py, false)
    }

    /// Returns the memory in which the tensor lies, counted in bytes; see `storage`.
    ///
    /// Example:
    ///     >>> wg.zeros(2, 3).untyped_storage().size()
    ///     24
    fn untyped_storage(&self, py: Python<'_>) -> PyResult<UntypedStorage> {
        storage_of(self, py, true)
    }

    /// Makes this tensor one over the memory of `source`, in place.
    ///
    /// Args:
    ///     source: a tensor or the storage of one, of the same dtype; without it the tensor has no elements
    ///         left.
    ///     storage_offset: the position of the first element in a storage.
    ///     size: the shape over a storage; by default all of it.
    ///     stride: the strides over a storage; by default those of row-major order.
    ///
    /// Raises:
    ///     RuntimeError: the tensor requires a gradient.
    ///     TypeError: for another dtype.
    ///     IndexError: an element would lie outside of the storage.
    ///
    /// Example:
    ///     >>> x = wg.zeros(3)
    ///     >>> y = wg.empty(0).set_(x)
    ///     >>> y[0] = 5.0
    ///     >>> x
    ///     tensor([5., 0., 0.])
    #[pyo3(signature = (source=None, storage_offset=0, size=None, stride=None))]
    fn set_<'py>(
        slf: &This<'py>, source: Any<'_, 'py>, #[pyo3(from_py_with = amount)] storage_offset: usize,
        size: Option<Listed>, stride: Option<Listed>,
    ) -> PyResult<This<'py>> {
        let own = value(slf)?;
        check_outside("set", &own)?;
        if slf.getattr("requires_grad")?.is_truthy()? {
            return Err(Error::autodiff(
                "set_: the tensor requires a gradient; assign to its .data, or use another tensor",
            )
            .into());
        }
        let storage = source.and_then(|source| source.cast::<UntypedStorage>().ok());
        let given = match (source, storage) {
            (Some(_), Some(storage)) => value(storage.get().memory.bind(slf.py()))?,
            (Some(source), None) => match source.cast::<PyTensor>() {
                Ok(source) => value(source)?.detach(),
                Err(_) => return Err(no_tensor("set_", "source", source)),
            },
            (None, _) => Tensor::zeros(Shape::new(&[0])?, own.dtype(), own.device())?,
        };
        if given.dtype() != own.dtype() {
            return Err(type_error(format!(
                "set_: memory of wengert.{} expected, got wengert.{}; convert with .to(), or use view(dtype)",
                own.dtype(),
                given.dtype()
            )));
        }
        let given = match size.is_some() || storage_offset > 0 || storage.is_some() {
            true => part_of(&memory(&given, false)?, size, stride, storage_offset)?,
            false => given,
        };
        drop(own);
        slf.setattr("data", PyTensor::from(given))?;
        Ok(slf.clone())
    }

    /// Makes a tensor as `empty_strided` does, of the dtype and on the device of this one where they are not
    /// given.
    ///
    /// Example:
    ///     >>> wg.ones(1).new_empty_strided((2, 3), (1, 2)).stride()
    ///     (1, 2)
    #[pyo3(signature = (size, stride, *, dtype=None, device=None, requires_grad=false))]
    #[allow(clippy::too_many_arguments)]
    fn new_empty_strided(
        &self, py: Python<'_>, size: Listed, stride: Listed, dtype: Any, device: Any, requires_grad: bool,
    ) -> PyResult<PyTensor> {
        strided(py, &size, &stride, place_beside(&*self.value()?, dtype, device)?, requires_grad)
    }
}

/// Makes a tensor of shape `size` whose elements lie `stride` apart in memory, to be filled.
///
/// Args:
///     size: the lengths of the axes.
///     stride: one per axis, in elements; 0 where all positions along an axis are one element.
///     dtype: float32 by default.
///     device: the CPU by default.
///     requires_grad: whether gradients are recorded for it.
///
/// Raises:
///     ValueError: for as many strides as there are not axes, negative ones, and those with which elements of
///         different positions meet.
#[pyfunction]
#[pyo3(signature = (size, stride, *, dtype=None, device=None, requires_grad=false))]
fn empty_strided(
    py: Python<'_>, size: Listed, stride: Listed, dtype: Any, device: Any, requires_grad: bool,
) -> PyResult<PyTensor> {
    strided(py, &size, &stride, place(dtype, device)?, requires_grad)
}

exports! { classes: UntypedStorage; functions: empty_strided }
