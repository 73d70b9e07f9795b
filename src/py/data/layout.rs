//! Orders of elements in memory that programs for PyTorch name. Tensors lie in row-major order here, whatever
//! they ask for.

use crate::py::args::extracted;
use crate::py::prelude::*;

/// An order of elements in memory, such as `wengert.channels_last`. Functions that take one look at it and
/// change nothing: no layer is faster in another order than row-major.
#[pyclass(name = "memory_format", module = "wengert", frozen)]
pub struct MemoryFormat {
    name: &'static str,
}

#[pymethods]
impl MemoryFormat {
    fn __repr__(&self) -> String {
        format!("wengert.{}", self.name)
    }
    fn __reduce__(&self) -> &'static str {
        self.name
    }
}

/// The argument `memory_format` of a function.
pub struct Format(&'static str);

impl Format {
    /// The axes of a row-major tensor of that order, the last moving fastest; `None` for row-major order.
    pub fn order(&self) -> Option<&'static [i64]> {
        match self.0 {
            "channels_last" => Some(&[0, 2, 3, 1]),
            "channels_last_3d" => Some(&[0, 2, 3, 4, 1]),
            _ => None,
        }
    }
}

extracted!(Format, |obj| match obj.cast::<MemoryFormat>() {
    Ok(format) => Ok(Format(format.get().name)),
    Err(_) => Err(type_error(format!(
        "memory_format: wengert.channels_last or its like expected, got {}",
        obj.get_type().name()?
    ))),
});

/// Registers the class and its objects.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<MemoryFormat>()?;
    for name in ["channels_last", "channels_last_3d", "contiguous_format", "preserve_format"] {
        m.add(name, Bound::new(m.py(), MemoryFormat { name })?)?;
    }
    Ok(())
}
